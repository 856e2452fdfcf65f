"""The finite Newton method on the Gram matrix: the optimum, paths, splits, degenerate documents."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

from textbench.evaluation.probes.solvers import finite_newton
from textbench.evaluation.probes.solvers.finite_newton import (
    GAP,
    NewtonPath,
    NewtonSolution,
    neighbours,
    way_to,
)
from textbench.evaluation.probes.solvers.gram import gram_matrix


def problem(
    seed: int, n: int = 90, n_features: int = 25, spread: float = 2.0
) -> tuple[np.ndarray, np.ndarray]:
    """Features of very different scales, and two overlapping classes."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(0, 1, (n, n_features)) * rng.lognormal(0, spread, n_features)).astype(np.float32)
    return X, X[:, 0] + rng.normal(0, 2, n) > 0.5


def solve(X: np.ndarray, positive: np.ndarray, *C: float, scale: float = 1.0) -> list[NewtonSolution]:
    path = NewtonPath(gram_matrix(X), np.arange(len(X)), scale, positive[None])
    return [solution for block in neighbours(C) for solution in path.solve(block)[0]]


def best(X: np.ndarray, positive: np.ndarray, C: float, scale: float = 1.0) -> tuple[np.ndarray, float]:
    """The minimum (weights with the bias last, objective) in float64: Newton's method in the primal, halving steps."""
    rows = np.column_stack([X / scale, np.ones(len(X))]).astype(np.float64)
    sign = np.where(positive, 1.0, -1.0)
    w = np.zeros(rows.shape[1])
    value = objective(rows, sign, w, C)
    for _ in range(1000):
        slack = np.maximum(0, 1 - sign * (rows @ w))
        inside = rows[slack > 0]
        hessian = np.eye(len(w)) + 2 * C * inside.T @ inside
        way = np.linalg.solve(hessian, w - 2 * C * rows.T @ (sign * slack))
        t = 1.0
        while (lower := objective(rows, sign, w - t * way, C)) > value and t > 1e-12:
            t /= 2
        if t <= 1e-12 or value - lower <= 1e-14 * value:
            break
        w, value = w - t * way, lower
    return w, value


def objective(rows: np.ndarray, sign: np.ndarray, w: np.ndarray, C: float) -> float:
    slack = np.maximum(0, 1 - sign * (rows @ w))
    return float(w @ w / 2 + C * slack @ slack)


def weights(X: np.ndarray, solution: NewtonSolution, scale: float = 1.0) -> np.ndarray:
    return np.append(solution.b @ X.astype(np.float64) / scale, solution.b.sum())


@pytest.mark.parametrize("C", [1e-4, 1e-2, 0.3, 30.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_objective_is_within_the_gap_of_the_minimum(seed: int, C: float) -> None:
    X, positive = problem(seed, spread=1.0)
    (solution,) = solve(X, positive, C, scale=3.0)
    assert solution.converged
    _, lowest = best(X, positive, C, 3.0)
    rows = np.column_stack([X / 3, np.ones(90)]).astype(np.float64)
    reached = objective(rows, np.where(positive, 1.0, -1.0), weights(X, solution, 3.0), C)
    assert lowest * (1 - 1e-9) <= reached <= lowest * (1 + 1.2 * GAP)
    np.testing.assert_allclose(rows @ weights(X, solution, 3.0), solution.scores, atol=2e-2)


def test_what_is_solved_on_the_way_to_a_large_first_c_is_not_yielded() -> None:
    X, positive = problem(0, spread=1.0)
    way = way_to(100.0, (X**2).sum(axis=1).mean() / 9 + 1)
    assert len(way) > 1 and all(C < 100 for C in way)
    (alone,), *path = solve(X, positive, 100.0, scale=3.0), *solve(X, positive, 0.1, 1.0, 100.0, scale=3.0)
    assert alone.converged and path[-1].converged and len(path) == 3
    rows = np.column_stack([X / 3, np.ones(90)]).astype(np.float64)
    sign = np.where(positive, 1.0, -1.0)
    reached = [objective(rows, sign, weights(X, each, 3.0), 100.0) for each in (alone, path[-1])]
    assert reached[0] == pytest.approx(reached[1], rel=1.2 * GAP)


@pytest.mark.parametrize("C", [1e5, 1e6])
def test_precision_that_does_not_suffice_is_said(C: float) -> None:
    """Of 90 documents with 25 features and so large a C the coefficients are huge, and cancel."""
    converged = []
    for seed in range(3):
        X, positive = problem(seed, spread=1.0)
        (solution,) = solve(X, positive, C, scale=3.0)
        rows = np.column_stack([X / 3, np.ones(90)]).astype(np.float64)
        reached = objective(rows, np.where(positive, 1.0, -1.0), weights(X, solution, 3.0), C)
        converged.append(solution.converged)
        assert solution.converged == (reached <= best(X, positive, C, 3.0)[1] * (1 + 1.2 * GAP))
    assert sum(converged) <= (C < 1e6)


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3])
def test_documents_of_very_different_lengths(C: float) -> None:
    """Counts of documents a thousand times as long as others, as they are."""
    rng = np.random.default_rng(8)
    lengths = np.where(rng.random(150) < 0.1, 2000, 8)
    topics = rng.dirichlet(np.full(300, 0.05), 2)
    y = rng.random(150) < 0.4
    X = np.stack(
        [
            rng.multinomial(n, topics[int(k)] * 0.4 + topics.mean(axis=0) * 0.6)
            for n, k in zip(lengths, y, strict=True)
        ]
    )
    (solution,) = solve(X.astype(np.float32), y, C)
    lowest = best(X, y, C)[1]
    rows = np.column_stack([X, np.ones(150)]).astype(np.float64)
    assert solution.converged
    assert objective(rows, np.where(y, 1.0, -1.0), weights(X, solution), C) <= lowest * (1 + 1.2 * GAP)


def test_the_answers_on_digits_are_liblinears() -> None:
    X, y = load_digits(return_X_y=True)
    X = X[:600].astype(np.float32)
    scale = float(np.sqrt((X**2).sum(axis=1).mean()))
    for positive in (y[:600] == 8, y[:600] == 0):
        solutions = solve(X, positive, 0.1, 0.3, 0.35, 5.0, scale=scale)
        for C, solution in zip((0.1, 0.3, 0.35, 5.0), solutions, strict=True):
            reference = LinearSVC(C=C, tol=1e-7, max_iter=1_000_000, random_state=0).fit(X / scale, positive)
            expected = reference.decision_function(X / scale)
            np.testing.assert_allclose(solution.scores, expected, atol=0.02)
            clear = np.abs(expected) > 0.02
            np.testing.assert_array_equal((solution.scores > 0)[clear], (expected > 0)[clear])


def test_a_path_ends_where_a_fresh_start_does() -> None:
    X, positive = problem(4, spread=1.0)
    grid = (0.01, 0.1, 0.11, 0.12, 0.13, 10.0, 1.0, 0.02)  # downwards too
    for C, on_path in zip(grid, solve(X, positive, *grid), strict=True):
        (fresh,) = solve(X, positive, C)
        lowest = best(X, positive, C)[1]
        # The gap bounds |w - w*|^2 / 2 of either.
        difference = weights(X, on_path) - weights(X, fresh)
        assert np.sqrt(difference @ difference) <= 2 * np.sqrt(2.4 * GAP * lowest)


@pytest.mark.parametrize("shared", [0, finite_newton.SHARED, np.inf])
def test_problems_together_end_where_each_alone_does(shared: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one, all in one system, and by the rule: a balanced class, a rare one, one that is easy."""
    X, balanced = problem(10, n=120, spread=1.0)
    positive = np.stack([balanced, np.arange(120) % 17 == 0, X[:, 1] > 0, ~balanced, X[:, 2] > 1])
    grid = (0.01, 1.0, 1.1, 1.2, 30.0, 100.0, 3.0)
    monkeypatch.setattr(finite_newton, "SHARED", shared)
    path = NewtonPath(gram_matrix(X), np.arange(120), 3.0, positive)
    rows = np.column_stack([X / 3, np.ones(120)]).astype(np.float64)
    for block in neighbours(grid):
        for side, solutions in zip(positive, path.solve(block), strict=True):
            for C, solution in zip(block, solutions, strict=True):
                assert solution.converged
                reached = objective(rows, np.where(side, 1.0, -1.0), weights(X, solution, 3.0), C)
                assert reached <= best(X, side, C, 3.0)[1] * (1 + 1.2 * GAP)


def test_a_split_of_one_gram_matrix_is_the_gram_matrix_of_the_split() -> None:
    X, positive = problem(5)
    train = np.random.default_rng(5).permutation(90)[:60]
    held_out = np.setdiff1d(np.arange(90), train)
    ((shared,),) = NewtonPath(gram_matrix(X), train, 2.0, positive[None, train]).solve([0.7])
    (alone,) = solve(X[train], positive[train], 0.7, scale=2.0)
    np.testing.assert_allclose(shared.scores[train], alone.scores, atol=2e-2)
    assert not shared.b[held_out].any()
    expected = np.column_stack([X[held_out] / 2, np.ones(30)]) @ weights(X, shared, 2.0)
    np.testing.assert_allclose(shared.scores[held_out], expected, atol=2e-2)


def test_copies_and_empty_documents() -> None:
    X, positive = problem(6, n=40, spread=1.0)
    X = np.vstack([X, X[:20], np.zeros((10, 25), dtype=np.float32)])
    positive = np.concatenate([positive, ~positive[:20], np.ones(10, dtype=bool)])  # the copies contradict
    (solution,) = solve(X, positive, 2.0)
    assert solution.converged
    np.testing.assert_allclose(weights(X, solution), best(X, positive, 2.0)[0], atol=1e-2)
    # Without features the intercept alone is learned: b/2C = 4 (1 - b) - 2 (1 + b), a parabola's vertex.
    (empty,) = solve(np.zeros((6, 3), dtype=np.float32), np.array([True] * 4 + [False] * 2), 10.0)
    assert empty.b.sum() == pytest.approx(2 / (6 + 0.05), abs=2e-3)


def test_all_documents_inside_the_margin_is_ridge_regression() -> None:
    """With a tiny C every slack is positive: (K + I / 2C) b = y."""
    X, positive = problem(7, spread=0.5)
    (solution,) = solve(X, positive, 1e-5)
    gram = gram_matrix(X).astype(np.float64) + 1
    expected = np.linalg.solve(gram + np.eye(90) / 2e-5, np.where(positive, 1.0, -1.0))
    np.testing.assert_allclose(solution.b, expected, rtol=1e-2)


def test_the_same_bits_again_and_running_out_of_steps_is_said() -> None:
    X, positive = problem(9, spread=1.0)
    X.flags.writeable = False
    first, second = (solve(X, positive, 0.3, 0.4, 30.0, scale=3.0) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.b, other.b)
    ((stopped,),) = NewtonPath(gram_matrix(X), np.arange(90), 1.0, positive[None]).solve([100.0], max_steps=1)
    assert not stopped.converged


def test_steps_that_lead_uphill_are_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a start far off, the way to the first target overshoots; the line search then leads to the same place."""
    steps = []
    search = finite_newton.line_search

    def noted(*arguments: np.ndarray) -> float:
        steps.append(search(*arguments))
        return steps[-1]

    monkeypatch.setattr(finite_newton, "line_search", noted)
    X, positive = problem(0, n=60, n_features=80, spread=1.0)
    sign = np.where(positive, 1.0, -1.0)
    path = NewtonPath(gram_matrix(X), np.arange(60), 1.0, positive[None])
    for seed in range(5):
        start = np.random.default_rng(seed).normal(0, 30, (1, 60))
        scores = start @ (gram_matrix(X).astype(np.float64) + 1)
        b, _, converged = path._solve_together(start, scores, sign[None], np.array([3.0]), 100)
        assert converged.all()
        rows = np.column_stack([X, np.ones(60)]).astype(np.float64)
        lowest = best(X, positive, 3.0)[1]
        assert objective(rows, sign, b[0] @ rows, 3.0) <= lowest * (1 + 1e-3)
    assert all(0 <= step < 1 for step in steps)
