"""Probes: the optimum of the objective, indifference to scale, round trips, the choice of C."""

import math
import warnings
from collections.abc import Callable
from io import BytesIO

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from evaluation import probes
from evaluation.metrics import METRICS, Metric
from evaluation.probes import C_GRID, PROBES, LinearSVMProbe, build_probe, choose_c

Kind = Callable[[np.ndarray], "np.ndarray | csr_matrix"]


def float32_array(X: np.ndarray) -> np.ndarray:
    return X.astype(np.float32)


both_kinds = pytest.mark.parametrize("kind", [float32_array, csr_matrix])


def blobs(seed: int, n_classes: int = 3, n: int = 90, n_features: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping clouds around random centres."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    return rng.normal(0, 1, (n_classes, n_features))[y] + rng.normal(0, 1, (n, n_features)), y


@pytest.mark.parametrize("C", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("n_features", [4, 120])
def test_the_objective_is_at_its_minimum(C: float, n_features: int) -> None:
    """f = |w|^2/2 + b^2/2 + C sum max(0, 1 - y (w.x + b))^2 with x over the root mean square norm.

    f is strongly convex with constant 1, so f exceeds its minimum by at most |gradient|^2 / 2.
    """
    X, y = blobs(0, n_features=n_features)
    probe = LinearSVMProbe(C=C).fit(X, y)
    X = np.column_stack([X / np.sqrt((X**2).sum(axis=1).mean()), np.ones(90)])
    weights = np.column_stack([probe.coef_ * probe.scale_, probe.intercept_])
    for c, w in zip(probe.classes_, weights, strict=True):
        sign = np.where(y == c, 1, -1)
        slack = np.maximum(0, 1 - sign * (X @ w))
        objective = w @ w / 2 + C * slack @ slack
        gradient = w - 2 * C * X.T @ (sign * slack)
        assert gradient @ gradient / 2 < 0.01 * objective


@both_kinds
@pytest.mark.parametrize("n_classes", [2, 4])
def test_scale_of_the_features_does_not_matter(kind: Kind, n_classes: int) -> None:
    X, y = blobs(1, n_classes)
    new, _ = blobs(2, n_classes)
    small, large = LinearSVMProbe(C=3).fit(kind(X), y), LinearSVMProbe(C=3).fit(kind(1000 * X), y)
    np.testing.assert_array_equal(small.predict(kind(new)), large.predict(kind(1000 * new)))
    margins = small.decision_function(kind(new))
    np.testing.assert_allclose(large.decision_function(kind(1000 * new)), margins, rtol=1e-3, atol=1e-3)
    assert large.scale_ == pytest.approx(1000 * small.scale_)


@both_kinds
@pytest.mark.parametrize("n_classes", [2, 4])
def test_agreement_with_linear_svc_on_scaled_features(kind: Kind, n_classes: int) -> None:
    X, y = blobs(3, n_classes)
    scale = np.sqrt((X**2).sum(axis=1).mean())
    reference = LinearSVC(C=1, tol=1e-8, max_iter=100_000, random_state=0).fit(X / scale, y + 10)
    probe = LinearSVMProbe(C=1).fit(kind(X), y + 10)
    margins = reference.decision_function(X / scale)
    np.testing.assert_allclose(probe.decision_function(kind(X)), margins, atol=5e-3)
    # A document on the border may go either way within the tolerance.
    clear = np.abs(margins if n_classes == 2 else np.diff(np.sort(margins)[:, -2:])[:, 0]) > 0.02
    np.testing.assert_array_equal(probe.predict(kind(X))[clear], reference.predict(X / scale)[clear])


@pytest.mark.parametrize("n_classes", [1, 2, 4])
def test_round_trip_through_arrays(n_classes: int) -> None:
    X, y = blobs(4, n_classes)
    probe = LinearSVMProbe(C=0.3, random_state=5).fit(X, y)
    file = BytesIO()
    np.savez(file, **probe.to_arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        restored = LinearSVMProbe.from_arrays(arrays)
    np.testing.assert_array_equal(restored.decision_function(X), probe.decision_function(X))
    np.testing.assert_array_equal(restored.predict(X), probe.predict(X))
    assert vars(restored).keys() == vars(probe).keys()
    assert (restored.C, restored.random_state, restored.converged_) == (0.3, 5, True)


@both_kinds
def test_inputs_are_left_alone_and_the_same_seed_gives_the_same_bits(kind: Kind) -> None:
    X, y = blobs(5, n=40, n_features=60)
    features = kind(X)
    values = features if isinstance(features, np.ndarray) else features.data
    values.flags.writeable = False
    first, second = LinearSVMProbe(C=3).fit(features, y), LinearSVMProbe(C=3).fit(features, y)
    first.predict(features)
    np.testing.assert_array_equal(first.coef_, second.coef_)


def test_limiting_cases() -> None:
    X, y = blobs(6)
    lone = LinearSVMProbe().fit(X, np.full(90, 7))
    assert set(lone.predict(X)) == {7}
    nothing = LinearSVMProbe().fit(csr_matrix((90, 4)), np.repeat([0, 1], [60, 30]))
    assert set(nothing.predict(csr_matrix((5, 4)))) == {0}
    assert nothing.scale_ == 1
    assert not LinearSVMProbe(C=1e4, max_iter=1).fit(X, y).converged_
    counts = csr_matrix(np.array([[5, 0], [0, 5]]))
    np.testing.assert_array_equal(LinearSVMProbe().fit(counts, np.array([1, 0])).predict(counts), [1, 0])


def test_the_chosen_c_is_that_of_a_search_written_otherwise() -> None:
    X, y = blobs(8, n=120)
    result = choose_c(X, y, random_state=3)
    scores = {}
    for C in C_GRID:
        fold_scores = []
        for train, test in StratifiedKFold(3, shuffle=True, random_state=3).split(X, y):
            scale = np.sqrt((X[train] ** 2).sum(axis=1).mean())
            svm = LinearSVC(C=C, tol=1e-6, max_iter=100_000, random_state=0).fit(X[train] / scale, y[train])
            fold_scores.append(svm.score(X[test] / scale, y[test]))
        scores[C] = np.mean(fold_scores)
    for row in result.table:
        assert row["mean"] == pytest.approx(scores[row["C"]], abs=1.5 / 120)
    best = max(row["mean"] for row in result.table)
    winners = [row["C"] for row in result.table if row["mean"] == best]
    assert (result.score, result.C) == (best, winners[0])
    assert (result.n_folds, result.n_not_converged) == (3, 0)


def test_a_planted_large_c_is_found_on_the_border() -> None:
    """A few huge documents make the others' signal small: the majority class wins unless C is large."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [80, 40])
    X = np.column_stack([np.where(y == 1, 0.1, -0.1) + rng.normal(0, 0.01, 120), np.zeros(120)])
    X[:12, 1] = 30.0
    result = choose_c(X, y, c_grid=(0.01, 0.1, 1e4))
    assert result.C == 1e4
    assert result.on_border
    assert result.score > 0.95
    inside = choose_c(X, y, c_grid=(0.01, 1e4, 2e4))
    assert inside.C == 1e4
    assert not inside.on_border


def test_of_equal_candidates_the_smallest_is_taken_and_is_no_border() -> None:
    y = np.repeat([0, 1], 20)
    X = np.where(y == 0, -1.0, 1.0)[:, None]
    result = choose_c(X, y, c_grid=(10, 1, 100))
    assert (result.C, result.score, result.on_border) == (1, 1.0, False)
    assert [row["C"] for row in result.table] == [1, 10, 100]


@pytest.mark.filterwarnings("error")
def test_few_documents() -> None:
    X = np.eye(5)
    rare = choose_c(X, np.array([0, 0, 0, 1, 2]))
    assert rare.n_folds == 3
    all_different = choose_c(X, np.arange(5))  # no fold trains on the class it is asked for
    assert (all_different.n_folds, all_different.score, all_different.C) == (3, 0.0, C_GRID[0])
    assert choose_c(X[:2], np.array([0, 1])).n_folds == 2
    one_class = choose_c(X, np.zeros(5, dtype=int))
    assert (one_class.C, one_class.score, one_class.on_border) == (C_GRID[0], 1.0, False)
    lone = choose_c(X[:1], np.array([3]))
    assert (lone.C, lone.n_folds, lone.table) == (C_GRID[0], 0, [])
    assert math.isnan(lone.score)


def test_folds_that_do_not_converge_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        probes, "build_probe", lambda name, C=1.0, seed=0: LinearSVMProbe(C, seed, max_iter=1)
    )
    X, y = blobs(9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose_c(X, y, c_grid=(1e3, 1e4)).n_not_converged == 6


def test_a_score_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Metric("broken", "never a number", lambda y_true, y_pred: math.nan, "labels")
    monkeypatch.setitem(METRICS, "broken", broken)
    with pytest.raises(ValueError, match=r"broken must be a number; received nan in fold 0 at C = 0.3"):
        choose_c(*blobs(0), metric="broken")


def test_lower_is_better_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = blobs(10)
    error = Metric("error", "wrong", lambda a, b: float(np.mean(a != b)), "labels", higher_is_better=False)
    monkeypatch.setitem(METRICS, "error", error)
    by_error, by_accuracy = choose_c(X, y, metric="error"), choose_c(X, y)
    assert by_error.C == by_accuracy.C
    assert by_error.score == pytest.approx(1 - by_accuracy.score)


def test_bad_input_is_named() -> None:
    X, y = blobs(0)
    with pytest.raises(ValueError, match="one of linear-svm; received 'linear_svm'"):
        build_probe("linear_svm")
    with pytest.raises(ValueError, match="C must be positive; received -1"):
        LinearSVMProbe(C=-1).fit(X, y)
    with pytest.raises(ValueError, match="received 90 rows, 3 classes"):
        LinearSVMProbe().fit(X, y[:3])
    with pytest.raises(ValueError, match="the 6 features of training; received 5"):
        LinearSVMProbe().fit(X, y).predict(X[:, :5])
    with pytest.raises(ValueError, match=r"accuracy, macro_f1.*received 'map'"):
        choose_c(X, y, metric="map")
    with pytest.raises(ValueError, match=r"positive numbers; received \(0, 1\)"):
        choose_c(X, y, c_grid=(0, 1))
    with pytest.raises(ValueError, match="n_folds must be at least 2; received 1"):
        choose_c(X, y, n_folds=1)
    assert PROBES == ("linear-svm",)
