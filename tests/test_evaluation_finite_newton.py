"""The finite Newton method: the optimality conditions, any start, degenerate documents, and its part in a path."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from evaluation import dual_descent, finite_newton
from evaluation.dual_descent import DualPath
from evaluation.finite_newton import next_solution


def problem(seed: int, n: int = 90, n_features: int = 25) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, their Gram matrix with a bias, and signs of two overlapping classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 1, (n, n_features)) * rng.lognormal(0, 2, n_features)
    sign = np.where(X[:, 0] + rng.normal(0, 2, n) > 0.5, 1.0, -1.0)
    return X, X @ X.T + 1, sign


@pytest.mark.parametrize("C", [1e-4, 0.3, 30.0, 1e5])
@pytest.mark.parametrize("seed", range(3))
def test_the_conditions_of_the_optimum_hold(seed: int, C: float) -> None:
    """w minimises |w|^2/2 + C sum max(0, 1 - y w.x)^2 just if b_i = 2 C y_i max(0, 1 - y_i w.x_i)."""
    _, gram, sign = problem(seed)
    b = next_solution(gram, sign, np.zeros(90), C)
    assert b is not None
    expected = 2 * C * sign * np.maximum(0, 1 - sign * (gram @ b))
    np.testing.assert_allclose(b, expected, atol=1e-5 * np.abs(b).max())


def test_the_answer_is_liblinears() -> None:
    X, gram, sign = problem(4)
    reference = LinearSVC(C=2.0, tol=1e-10, max_iter=10_000_000, random_state=0).fit(X, sign)
    b = next_solution(gram, sign, np.zeros(90), 2.0)
    assert b is not None
    np.testing.assert_allclose(b @ X, reference.coef_[0], atol=1e-5 * np.abs(reference.coef_).max())
    assert b.sum() == pytest.approx(reference.intercept_[0], abs=1e-5)


def test_where_it_starts_does_not_matter_and_the_start_is_left_alone() -> None:
    _, gram, sign = problem(5)
    expected = next_solution(gram, sign, np.zeros(90), 10.0)
    rng = np.random.default_rng(5)
    for size in (1e-3, 1.0, 1e3):
        start = rng.normal(0, size, 90) * (rng.random(90) < 0.5)
        before = start.copy()
        found = next_solution(gram, sign, start, 10.0)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
        np.testing.assert_array_equal(start, before)


def test_copies_and_empty_documents() -> None:
    X, _, sign = problem(6, n=40)
    X = np.vstack([X, X[:20], np.zeros((10, 25))])
    sign = np.concatenate([sign, -sign[:20], np.ones(10)])  # the copies contradict their originals
    gram = X @ X.T + 1
    b = next_solution(gram, sign, np.zeros(70), 50.0)
    assert b is not None
    np.testing.assert_allclose(b, 100 * sign * np.maximum(0, 1 - sign * (gram @ b)), atol=1e-6)
    # Without features the intercept alone is learned: b/2C = 4 (1 - b) - 2 (1 + b), a parabola's vertex.
    empty = next_solution(np.ones((6, 6)), np.array([1.0] * 4 + [-1.0] * 2), np.zeros(6), 10.0)
    assert empty is not None
    assert empty.sum() == pytest.approx(2 / (6 + 0.05))


def test_a_matrix_that_is_no_gram_matrix_is_refused() -> None:
    with pytest.raises(ValueError, match="positive semi-definite; at C = 1 it is not"):
        next_solution(-5 * np.eye(3), np.array([1.0, -1.0, 1.0]), np.zeros(3), 1.0)


def test_a_path_is_exact_after_its_first_problem_and_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    X, gram, sign = problem(7)
    full = np.arange(25) % 2 == 0

    def path() -> list[np.ndarray]:
        both = DualPath(X, full, 2.0)
        return [both.solve(0, sign > 0, C, 100_000)[0] for C in (0.1, 1.0, 10.0)]

    newton = path()
    b = next_solution((gram - 1) / 4 + 1, sign, np.zeros(90), 10.0)
    assert b is not None
    np.testing.assert_allclose(newton[2], b @ X / 4, rtol=1e-6)
    monkeypatch.setattr(finite_newton, "MAX_STEPS", 0)
    for exact, descent in zip(newton, path(), strict=True):
        np.testing.assert_allclose(descent, exact, atol=1e-2 * np.abs(exact).max())
    monkeypatch.setattr(dual_descent, "FEW", 89)
    descended = path()
    monkeypatch.setattr(dual_descent, "next_solution", None)  # more documents than FEW: never called
    np.testing.assert_array_equal(path()[2], descended[2])
