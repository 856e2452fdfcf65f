"""Probes for more features than documents: the optimum of the plain ones, equal columns, vanishing gradients."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_matrix, hstack
from sklearn.linear_model import LogisticRegression

from textbench.evaluation.probes.solvers.elastic_net import ElasticNetPath
from textbench.evaluation.probes.solvers.merged_columns import MergedPath, equal_columns
from textbench.evaluation.probes.wide import GRIDS, ElasticNetProbe, RidgeProbe


def counts(n_documents: int = 40, n_features: int = 60) -> tuple[csr_matrix, np.ndarray]:
    """Sparse counts of two classes, many columns equal to others or proportional to them."""
    rng = np.random.default_rng(3)
    y = np.arange(n_documents) % 2
    rates = rng.gamma(0.4, 1.0, (2, n_features))
    X = csr_matrix(rng.poisson(rates[y]).astype(float))
    return csr_matrix(hstack([X, X[:, :30], 2 * X[:, :30], X[:, :10]])), y


def objective(X: np.ndarray, y: np.ndarray, C: float, l1_ratio: float, w: np.ndarray, b: float) -> float:
    loss = np.logaddexp(0, -(2 * y - 1) * (X @ w + b)).sum()
    return float(l1_ratio * np.abs(w).sum() + (1 - l1_ratio) / 2 * (w @ w) + C * loss)


def test_equal_columns_are_those_of_equal_values() -> None:
    X = csc_matrix(counts()[0])
    first, group, size = equal_columns(X)
    dense = X.toarray()
    kinds = {column.tobytes() for column in dense.T}
    assert len(first) == len(kinds) and size.sum() == X.shape[1]
    np.testing.assert_array_equal(dense[:, first][:, group], dense)
    np.testing.assert_array_equal(np.bincount(group), size)


def test_merging_shares_a_weight_out_among_the_columns_that_are_equal() -> None:
    X = csc_matrix(counts()[0])
    path = MergedPath(X, 0.5)
    np.testing.assert_allclose((X @ path.shares.T).toarray(), path.X.toarray())
    np.testing.assert_array_equal(np.diff(path.shares.indptr), path.n_alike)
    weights = np.random.default_rng(0).normal(size=path.shape[1])
    np.testing.assert_allclose(X @ (weights @ path.shares), path.X @ weights)


@pytest.mark.parametrize("l1_ratio", [0.1, 0.5])
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_merging_columns_keeps_the_optimum(C: float, l1_ratio: float) -> None:
    X, y = counts()
    merged = ElasticNetProbe(C=C, l1_ratio=l1_ratio, max_iter=1000).fit(X, y)
    scaled = X.toarray() / merged.scale_
    plain, intercept, converged = ElasticNetPath(csc_matrix(scaled), l1_ratio).solve(0, y == 1, C, 1000)
    assert merged.converged_ and converged
    weights = merged.coef_.toarray()[0] * merged.scale_
    value = objective(scaled, y, C, l1_ratio, weights, merged.intercept_[0])
    assert value == pytest.approx(objective(scaled, y, C, l1_ratio, plain, intercept), rel=1e-3)
    np.testing.assert_allclose(merged.decision_function(X), scaled @ plain + intercept, atol=0.03)


def test_equal_columns_have_equal_weights() -> None:
    X, y = counts()
    probe = ElasticNetProbe(C=0.5, l1_ratio=0.2, max_iter=1000).fit(X, y)
    weights = probe.coef_.toarray()[0] * probe.scale_
    assert probe.converged_ and np.count_nonzero(weights)
    np.testing.assert_allclose(weights[:30], weights[60:90])


@pytest.mark.parametrize("row_norm", ["none", "l1"])
def test_a_folds_documents_are_scored_column_by_column(row_norm: str) -> None:
    """Columns that are equal in the documents of training need not be so in others."""
    X, y = counts()
    train, test = np.arange(30), np.arange(30, 40)
    probe = ElasticNetProbe(l1_ratio=0.3, row_norm=row_norm)
    ((path, held_out),) = probe.fit_folds(X, y, [(train, test)])
    for fitted, C in zip(path((0.1, 0.5)), (0.1, 0.5), strict=True):
        alone = ElasticNetProbe(C, l1_ratio=0.3, row_norm=row_norm).fit(X[train], y[train])
        np.testing.assert_allclose(
            fitted.decision_function(held_out), alone.decision_function(X[test]), atol=0.05
        )


def test_a_path_goes_on_from_its_last_solution_and_a_restart_forgets_it() -> None:
    X, y = counts()
    path = ElasticNetPath(csc_matrix(X), 0.3)
    path.solve(0, y == 1, 0.1, 1000)
    warm = path.solve(0, y == 1, 0.5, 1000)
    path.restart(0.3)
    cold = path.solve(0, y == 1, 0.5, 1000)
    np.testing.assert_allclose(X @ warm[0] + warm[1], X @ cold[0] + cold[1], atol=0.03)


@pytest.mark.parametrize("C", GRIDS["ridge"]["C"][2:])
def test_the_gradient_of_a_ridge_solution_vanishes(C: float) -> None:
    X, y = counts()
    probe = RidgeProbe(C=C).fit(X, y)
    scaled, w = X.toarray() / probe.scale_, probe.coef_[0] * probe.scale_
    residual = 1 / (1 + np.exp(-(scaled @ w + probe.intercept_[0]))) - y
    assert probe.converged_
    assert np.abs(w + C * scaled.T @ residual).max() < 1e-3 * max(np.abs(w).max(), C)
    assert abs(residual.sum()) < 1e-3 * len(y)


def test_ridge_agrees_with_scikit_learn() -> None:
    X, y = counts()
    probe = RidgeProbe(C=0.01).fit(X, y)
    scaled = X.toarray() / probe.scale_
    other = LogisticRegression(C=0.01, tol=1e-8, max_iter=10_000).fit(scaled, y)
    np.testing.assert_allclose(probe.decision_function(X), other.decision_function(scaled), atol=1e-3)


@pytest.mark.parametrize("probe", [ElasticNetProbe, RidgeProbe])
def test_the_grid_is_gone_through_in_order(probe: type[ElasticNetProbe] | type[RidgeProbe]) -> None:
    X, y = counts()
    names = GRIDS["elastic-net" if probe is ElasticNetProbe else "ridge"]
    fitted = list(probe().fit_grid(X, y))
    first = {name: values[0] for name, values in names.items()}
    assert {name: getattr(fitted[0], name) for name in names} == first
    assert len(fitted) == np.prod([len(values) for values in names.values()])
    last: dict[str, Any] = {name: values[-1] for name, values in names.items()}
    alone = probe(**last).fit(X, y)
    np.testing.assert_allclose(fitted[-1].decision_function(X), alone.decision_function(X), atol=0.05)


def test_features_that_say_nothing_leave_the_share_of_the_classes() -> None:
    y = np.array([0, 0, 0, 1])
    for probe in (RidgeProbe(), ElasticNetProbe()):
        scores = probe.fit(csr_matrix((4, 5)), y).decision_function(csr_matrix((1, 5)))
        assert scores == pytest.approx([np.log(1 / 3)], abs=1e-2)
