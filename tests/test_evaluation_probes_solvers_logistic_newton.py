"""Logistic regression on the Gram matrix: the optimum, the gap, paths, splits, degenerate documents, the probe."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from textbench.evaluation.probes import catalogue
from textbench.evaluation.probes.catalogue import LogisticRegressionProbe
from textbench.evaluation.probes.linear import CONSTANT
from textbench.evaluation.probes.solvers.finite_newton import GAP
from textbench.evaluation.probes.solvers.gram import gram_matrix
from textbench.evaluation.probes.solvers.logistic_newton import N_BEFORE, LogisticNewton


def problem(seed: int, n: int = 120, n_features: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Documents (n, n_features) float32 and three overlapping labels, bools (3, n)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 1, (n, n_features)).astype(np.float32)
    return X, (X[:, :3] + rng.normal(0, 1, (n, 3)) > 0.5).T


def objective(rows: np.ndarray, target: np.ndarray, w: np.ndarray, C: float) -> float:
    return float(w @ w / 2 + C * np.logaddexp(0, np.where(target, -1, 1) * (rows @ w)).sum())


def newton(X: np.ndarray, scale: float = 1.0, *, narrow: bool = False) -> LogisticNewton:
    return LogisticNewton(X if narrow else gram_matrix(X), scale, narrow=narrow)


def lowest(rows: np.ndarray, target: np.ndarray, C: float) -> float:
    """The minimum in float64 by a library's quasi-Newton method on the weights."""

    def gradient(w: np.ndarray) -> np.ndarray:
        return np.asarray(w + C * rows.T @ (1 / (1 + np.exp(-rows @ w)) - target))

    found = minimize(
        lambda w: objective(rows, target, w, C),
        np.zeros(rows.shape[1]),
        jac=gradient,
        method="L-BFGS-B",
        options={"maxiter": 10_000, "ftol": 1e-15, "gtol": 1e-10},
    )
    return float(found.fun)


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("C", [1e-4, 0.1, 10.0, 140.1])
@pytest.mark.parametrize("seed", range(3))
def test_the_objective_is_within_the_gap_of_the_minimum(seed: int, C: float, narrow: bool) -> None:
    X, targets = problem(seed)
    b, converged = newton(X, 3.0, narrow=narrow).solve(targets, C, 100)
    rows = np.column_stack([X / 3, np.ones(len(X))]).astype(np.float64)
    assert converged.all()
    for own, target in zip(b, targets, strict=True):
        least = lowest(rows, target, C)
        reached = objective(rows, target, own @ rows, C)
        assert least * (1 - 1e-9) <= reached <= least * (1 + 1.2 * GAP)


def test_a_path_ends_where_a_first_c_does_and_problems_do_not_change_each_other() -> None:
    X, targets = problem(5)
    along = newton(X)
    for C in (0.01, 1.0, 30.0):
        b, _ = along.solve(targets, C, 100)
    scores = (X @ X.T + 1).astype(np.float64) @ b.T
    for label in range(3):
        alone, _ = newton(X).solve(targets[label : label + 1], 30.0, 100)
        np.testing.assert_allclose((X @ X.T + 1) @ alone[0], scores[:, label], atol=0.05)


def test_a_path_starts_nearer_than_the_solution_before_and_ends_at_the_minimum() -> None:
    X, targets = problem(6)
    rows = np.column_stack([X, np.ones(len(X))]).astype(np.float64)
    path, before = newton(X), np.zeros(targets.shape)
    for k, C in enumerate((10.1, 20.1, 30.1, 40.1, 50.1, 60.1)):
        if k:
            start, scores = path._start(targets, C)
            np.testing.assert_allclose(scores, start @ rows @ rows.T, atol=1e-2)
            for label, target in enumerate(targets):
                least = lowest(rows, target, C)
                ahead, behind = (objective(rows, target, b[label] @ rows, C) - least for b in (start, before))
                assert ahead <= (behind / 10 if k > 1 else behind * (1 + 1e-9))
        before, converged = path.solve(targets, C, 100)
        assert converged.all()
        for own, target in zip(before, targets, strict=True):
            assert objective(rows, target, own @ rows, C) <= lowest(rows, target, C) * (1 + 1.2 * GAP)
    assert len(path._before) == N_BEFORE


def test_too_few_steps_are_said() -> None:
    X, targets = problem(1)
    assert not newton(X).solve(targets, 100.0, 0)[1].any()


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((8, 3), dtype=np.float32),
        np.repeat(np.float32([[1, 0, 2]]), 8, axis=0),
        np.vstack([np.eye(3), np.zeros((2, 3)), 1e3 * np.eye(3)]).astype(np.float32),
    ],
    ids=["empty documents", "equal documents", "documents of very different lengths"],
)
@pytest.mark.parametrize("narrow", [False, True])
def test_degenerate_documents(X: np.ndarray, narrow: bool) -> None:
    targets = np.array([[True, False] * 4, [True] * 7 + [False]])
    b, converged = newton(X, narrow=narrow).solve(targets, 1.0, 100)
    rows = np.column_stack([X, np.ones(8)]).astype(np.float64)
    assert converged.all()
    for own, target in zip(b, targets, strict=True):
        least = lowest(rows, target, 1.0)
        assert objective(rows, target, own @ rows, 1.0) <= least * (1 + 1.2 * GAP)


@pytest.fixture
def on_gram(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "choose_logistic_solver", lambda X: "gram")


@pytest.mark.usefixtures("on_gram")
@pytest.mark.parametrize("kind", [csr_matrix, np.asarray])
def test_the_probe_agrees_with_liblinear(kind: Callable[[np.ndarray], Any]) -> None:
    X, targets = problem(7)
    indicator = csr_matrix(np.vstack([targets, np.zeros(120), np.ones(120)]).T.astype(np.int8))
    probe = LogisticRegressionProbe(C=2.0).fit(kind(X), indicator)
    assert probe.converged_
    assert probe.intercept_[3:].tolist() == [-CONSTANT, CONSTANT]
    for label in range(3):
        library = LogisticRegression(C=2.0, solver="liblinear", tol=1e-8, max_iter=1000)
        library.fit(X / probe.scale_, targets[label])
        np.testing.assert_allclose(probe.coef_[label] * probe.scale_, library.coef_[0], atol=0.02)
        np.testing.assert_allclose(probe.intercept_[label], library.intercept_[0], atol=0.02)


@pytest.mark.usefixtures("on_gram")
@pytest.mark.parametrize("n_labels", [2, 3])
def test_folds_of_one_gram_matrix_score_as_probes_of_each_fold_do(n_labels: int) -> None:
    X, targets = problem(9)
    y = targets[0].astype(int) if n_labels == 2 else targets[0] + targets[1].astype(int)
    order = np.random.default_rng(0).permutation(120)
    folds = [(order[40:], order[:40]), (order[:80], order[80:])]
    probe, grid = LogisticRegressionProbe(), (0.1, 3.0)
    for (train, test), (path, asked) in zip(folds, probe.fit_folds(X, y, folds), strict=True):
        for C, fitted in zip(grid, path(grid), strict=True):
            alone = LogisticRegressionProbe(C=C).fit(X[train], y[train])
            np.testing.assert_allclose(
                fitted.decision_function(asked), alone.decision_function(X[test]), atol=0.02
            )


@pytest.mark.usefixtures("on_gram")
def test_same_bits_and_the_documents_untouched() -> None:
    X, targets = problem(11)
    kept = X.copy()
    first, second = (
        LogisticRegressionProbe(C=5.0).fit(X, targets[0].astype(int)).to_arrays() for _ in range(2)
    )
    for name in ("coef", "intercept"):
        np.testing.assert_array_equal(first[name], second[name])
    np.testing.assert_array_equal(X, kept)
