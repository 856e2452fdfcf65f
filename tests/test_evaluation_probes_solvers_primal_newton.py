"""The finite Newton method on the features: the optimum, paths, degenerate documents."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

from textbench.evaluation.probes import catalogue
from textbench.evaluation.probes.catalogue import LinearSVMProbe
from textbench.evaluation.probes.solvers.finite_newton import GAP, NewtonPath
from textbench.evaluation.probes.solvers.gram import gram_matrix
from textbench.evaluation.probes.solvers.primal_newton import PrimalPath


def problem(seed: int, n: int = 300, n_features: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Features of very different scales, and two overlapping classes."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(0, 1, (n, n_features)) * rng.lognormal(0, 1, n_features)).astype(np.float32)
    return X, X[:, 0] + rng.normal(0, 2, n) > 0.5


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 1e3, 1e5])
@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_vanishes(seed: int, C: float) -> None:
    """Near the optimum f - f* <= gap f, and f is at least 1-strongly convex: |gradient|^2 / 2L <= f - f*."""
    X, positive = problem(seed)
    coefficients, intercept, converged = PrimalPath(X, 3.0).solve(0, positive, C, 100)
    rows = np.column_stack([X / 3, np.ones(len(X))]).astype(np.float64)
    w, sign = np.append(coefficients * 3, intercept), np.where(positive, 1.0, -1.0)
    slack = np.maximum(0, 1 - sign * (rows @ w))
    gradient = w - 2 * C * rows.T @ (sign * slack)
    smoothness = 1 + 2 * C * np.linalg.norm(rows, 2) ** 2
    assert converged
    assert gradient @ gradient <= 2 * smoothness * GAP * (w @ w / 2 + C * slack @ slack)


def test_the_answers_on_digits_are_liblinears() -> None:
    X, y = load_digits(return_X_y=True)
    for label in (0, 8):
        path = PrimalPath(X, 20.0)
        for C in (0.1, 1.0, 10.0):
            coefficients, intercept, converged = path.solve(label, y == label, C, 100)
            reference = LinearSVC(C=C, dual=False, tol=1e-9, max_iter=100_000).fit(X / 20, y == label)
            assert converged
            expected = reference.decision_function(X / 20)
            np.testing.assert_allclose(X @ coefficients + intercept, expected, atol=0.02)


def test_both_newton_methods_agree() -> None:
    X, positive = problem(4, n=100)
    path = PrimalPath(csr_matrix(X), 2.0)
    grid = (0.01, 1.0, 50.0, 0.1)  # downwards too
    gram_path = NewtonPath(gram_matrix(X), np.arange(100), 2.0, positive[None])
    for C in grid:
        ((solution,),) = gram_path.solve([C])
        coefficients, intercept, _ = path.solve(0, positive, C, 100)
        np.testing.assert_allclose(X @ coefficients + intercept, solution.scores, atol=0.02)


def test_a_path_ends_where_a_fresh_start_does_bit_by_bit_again() -> None:
    X, positive = problem(5)
    X.flags.writeable = False
    paths = [PrimalPath(X, 1.0), PrimalPath(X, 1.0)]
    for C in (0.01, 1.0, 100.0, 0.1):
        one, other = (path.solve(0, positive, C, 100) for path in paths)
        np.testing.assert_array_equal(one[0], other[0])
        fresh = PrimalPath(X, 1.0).solve(0, positive, C, 100)
        np.testing.assert_allclose(one[0], fresh[0], atol=5e-3 * np.abs(fresh[0]).max())


def test_empty_documents_copies_and_running_out_of_steps() -> None:
    # Without features the intercept alone is learned: b/2C = 4 (1 - b) - 2 (1 + b), a parabola's vertex.
    positive = np.array([True] * 4 + [False] * 2)
    coefficients, intercept, converged = PrimalPath(np.zeros((6, 3)), 1.0).solve(0, positive, 10.0, 100)
    assert (list(coefficients), converged) == ([0.0] * 3, True)
    assert intercept == pytest.approx(2 / (6 + 0.05), abs=1e-9)
    X, positive = problem(6)
    twice = PrimalPath(np.vstack([X, X]), 1.0).solve(0, np.tile(positive, 2), 1.0, 100)
    np.testing.assert_allclose(
        twice[0], PrimalPath(X, 1.0).solve(0, positive, 2.0, 100)[0], rtol=1e-2, atol=1e-3
    )
    assert not PrimalPath(X, 1.0).solve(0, positive, 100.0, 1)[2]


def test_the_probe_answers_as_by_liblinear(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = load_digits(return_X_y=True)
    monkeypatch.setattr(catalogue, "choose_solver", lambda X: "primal")
    fast = list(LinearSVMProbe().fit_path(X, y, (0.1, 10.0)))
    monkeypatch.setattr(catalogue, "choose_solver", lambda X: "liblinear")
    monkeypatch.setattr(catalogue, "TOLERANCE", 1e-7)
    for probe in fast:
        slow = LinearSVMProbe(C=probe.C).fit(X, y)
        assert probe.converged_ is True  # it is written as JSON
        np.testing.assert_allclose(probe.decision_function(X), slow.decision_function(X), atol=0.03)
        assert (probe.predict(X) != slow.predict(X)).mean() < 0.002
