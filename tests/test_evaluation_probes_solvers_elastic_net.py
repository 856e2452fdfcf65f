"""Elastic net: optimality conditions, scikit-learn's answer, limiting cases, paths, and the probe around it."""

import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_matrix
from sklearn.linear_model import LogisticRegression

from tests.test_evaluation_probes_catalogue import blobs, several_blobs
from textbench.evaluation.probes.catalogue import build_probe
from textbench.evaluation.probes.solvers.elastic_net import TOLERANCE, ElasticNetPath
from textbench.evaluation.probes.tuning import C_GRIDS, SETTING_GRIDS, choose_c
from textbench.evaluation.probes.wide import ElasticNetProbe


def wide(seed: int, n: int = 60, n_features: int = 150) -> tuple[csc_matrix, np.ndarray]:
    """Sparse documents of more features than there are documents, and two overlapping classes."""
    rng = np.random.default_rng(seed)
    X = csc_matrix(rng.poisson(0.15, (n, n_features)) * rng.exponential(2, n_features))
    return X, X @ rng.normal(0, 1, n_features) + rng.normal(0, 1, n) > 0


@pytest.mark.parametrize("l1_ratio", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_optimality_conditions_hold(C: float, l1_ratio: float) -> None:
    """-C grad(loss) - (1 - r) w lies in r sign(w), or within [-r, r] where w is 0; the intercept's gradient is 0."""
    X, positive = wide(0)
    weights, intercept, converged = ElasticNetPath(X, l1_ratio).solve(0, positive, C, 200)
    probability = 1 / (1 + np.exp(-(X @ weights + intercept)))
    pull = C * (X.T @ (positive - probability)) - (1 - l1_ratio) * weights
    allowed = TOLERANCE * l1_ratio * (1 + 1e-6)
    used = weights != 0
    assert converged
    np.testing.assert_allclose(pull[used], l1_ratio * np.sign(weights[used]), atol=allowed)
    assert (np.abs(pull[~used]) <= l1_ratio + allowed).all()
    assert abs(C * (positive - probability).sum()) <= allowed
    assert used.sum() < 150


@pytest.mark.parametrize("l1_ratio", [0.2, 0.9])
def test_agreement_with_scikit_learn(l1_ratio: float) -> None:
    X, y = blobs(3, n_classes=2)
    probe = ElasticNetProbe(C=0.5, l1_ratio=l1_ratio).fit(X, y)
    saga = LogisticRegression(C=0.5, l1_ratio=l1_ratio, solver="saga", tol=1e-10, max_iter=100_000)
    saga.fit(X / X.std(axis=0), y)
    np.testing.assert_allclose(probe.scale_, X.std(axis=0))
    np.testing.assert_allclose(probe.coef_.toarray()[0] * probe.scale_, saga.coef_[0], atol=3e-3)
    np.testing.assert_allclose(probe.intercept_, saga.intercept_, atol=3e-3)
    np.testing.assert_allclose(
        probe.decision_function(X), saga.decision_function(X / X.std(axis=0)), atol=1e-2
    )


def test_no_weight_below_the_smallest_useful_c() -> None:
    """All weights are 0 until C times the largest slope at 0 exceeds r; the intercept then is the prior log odds."""
    X, positive = wide(1)
    prior = positive.mean()
    edge = 0.5 / np.abs(X.T @ (positive - prior)).max()
    path = ElasticNetPath(X, 0.5)
    weights, intercept, _ = path.solve(0, positive, 0.999 * edge, 200)
    assert not weights.any()
    assert intercept == pytest.approx(np.log(prior / (1 - prior)))
    assert path.solve(0, positive, 1.05 * edge, 200)[0].any()


def test_a_path_ends_where_a_fresh_start_does() -> None:
    X, positive = wide(2)
    path = ElasticNetPath(X, 0.5)
    for C in (0.01, 0.1, 10.0, 0.03):  # downwards too
        weights, intercept, _ = path.solve(0, positive, C, 200)
        fresh, fresh_intercept, _ = ElasticNetPath(X, 0.5).solve(0, positive, C, 200)
        np.testing.assert_allclose(X @ weights + intercept, X @ fresh + fresh_intercept, atol=0.05)


def test_separable_classes_and_huge_values_keep_their_numbers() -> None:
    X = csc_matrix(np.array([[1e4, 0.0], [1e4, 1.0], [-1e4, 0.0], [-1e4, 1.0]]))
    positive = np.array([True, True, False, False])
    weights, intercept, converged = ElasticNetPath(X, 0.5).solve(0, positive, 1e6, 200)
    assert converged
    assert np.isfinite([*weights, intercept]).all()
    assert ((X @ weights + intercept > 0) == positive).all()


def test_the_columns_are_divided_by_their_deviation_and_constant_ones_left() -> None:
    X = np.array([[0.1, 1.0, 0.0], [0.1, 3.0, 0.0], [0.1, 1.0, 0.0], [0.1, 3.0, 0.0]])
    for kind in (np.asarray, csr_matrix):
        probe = ElasticNetProbe().fit(kind(X), np.array([0, 1, 0, 1]))
        np.testing.assert_allclose(probe.scale_, [1, 1, 1])
        probe = ElasticNetProbe().fit(kind(7 * X), np.array([0, 1, 0, 1]))
        np.testing.assert_allclose(probe.scale_, [1, 7, 1])


def test_documents_of_norm_one() -> None:
    """With row_norm the length of a document says nothing; an empty one has the intercept's score."""
    X, positive = wide(4)
    y = positive.astype(int)
    by_probe = ElasticNetProbe(C=0.3, row_norm="l1").fit(X.tocsr(), y)
    lengths = np.asarray(abs(X).sum(axis=1)).ravel()
    by_hand = ElasticNetProbe(C=0.3).fit(X.toarray() / lengths[:, None], y)
    np.testing.assert_allclose(by_probe.coef_.toarray(), by_hand.coef_.toarray(), atol=1e-9)
    np.testing.assert_allclose(
        by_probe.decision_function(5 * X.tocsr()), by_hand.decision_function(X.toarray() / lengths[:, None])
    )
    assert by_probe.decision_function(csr_matrix((1, 150))) == pytest.approx(by_probe.intercept_)
    restored = ElasticNetProbe.from_arrays(by_probe.to_arrays())
    assert (restored.row_norm, restored.l1_ratio) == ("l1", 0.5)
    np.testing.assert_array_equal(
        restored.decision_function(X.tocsr()), by_probe.decision_function(X.tocsr())
    )


@pytest.mark.parametrize("several", [False, True])
def test_both_constants_are_chosen(several: bool) -> None:
    X, y = several_blobs(2) if several else blobs(2)
    result = choose_c(X, y, "elastic-net", random_state=1)
    ratios = SETTING_GRIDS["elastic-net"]["l1_ratio"]
    tried = [(row["l1_ratio"], row["C"]) for row in result.table]
    grid = [(ratio, C) for ratio in ratios for C in C_GRIDS["elastic-net"]]
    assert [pair for pair in tried if pair in grid] == grid
    # The grid grows beside the best alone.
    assert {ratio for ratio, _ in set(tried) - set(grid)} <= {result.settings["l1_ratio"]}
    assert result.n_not_converged == 0
    best = [row for row in result.table if row["mean"] == max(row["mean"] for row in result.table)]
    assert {"C": result.C, "mean": result.score}.items() <= best[0].items()
    assert result.settings == {"l1_ratio": best[0]["l1_ratio"]}
    refitted = build_probe("elastic-net", result.C, 1, **result.settings)
    assert refitted.fit(X, y).converged_


def test_bad_input_is_named() -> None:
    X, y = blobs(0)
    for ratio in (0.0, 1.5):
        with pytest.raises(ValueError, match=rf"l1_ratio must lie in \(0, 1\]; received {ratio}"):
            ElasticNetProbe(l1_ratio=ratio).fit(X, y)
    with pytest.raises(ValueError, match="row_norm must be one of none, l1; received 'l2'"):
        ElasticNetProbe(row_norm="l2").fit(X, y)
    with pytest.raises(
        ValueError, match="setting of elastic-net must be one of max_iter, l1_ratio, row_norm"
    ):
        build_probe("elastic-net", alpha=1)
