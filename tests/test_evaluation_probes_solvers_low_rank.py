"""The preconditioner of low rank: its inverse, duplicates, and how many products it spares."""

import numpy as np
import pytest

from textbench.evaluation.probes.solvers import finite_newton, low_rank
from textbench.evaluation.probes.solvers.finite_newton import NewtonPath
from textbench.evaluation.probes.solvers.gram import gram_matrix
from textbench.evaluation.probes.solvers.low_rank import LowRank


def features(n: int = 400, n_features: int = 150) -> np.ndarray:
    """Documents whose spectrum falls fast, as that of weighted word vectors does."""
    rng = np.random.default_rng(0)
    return (rng.normal(size=(n, n_features)) * np.arange(1, n_features + 1) ** -1.5).astype(np.float32) * 4


def test_it_multiplies_by_the_inverse_of_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_rank, "RANK", 30)
    X = features(60)
    gram = gram_matrix(X)
    near = LowRank(gram, np.diagonal(gram) / 4 + 1.0, 1 / 4)
    inside = np.random.default_rng(1).random((3, 60)) < 0.7
    ridge = np.array([[0.5], [0.1], [3.0]])
    vectors = np.random.default_rng(2).normal(size=(2, 60)) * inside[[2, 0]]
    found = near.inverses(inside, ridge)(vectors, np.array([2, 0]))
    for row, vector, result in zip((2, 0), vectors, found, strict=True):
        some = inside[row]
        matrix = near.factors @ near.factors.T + np.diag(near.remainder + ridge[row, 0])
        np.testing.assert_allclose(result[some], np.linalg.solve(matrix[np.ix_(some, some)], vector[some]))
        assert not result[~some].any()
    np.testing.assert_allclose(
        near.factors @ near.factors.T + np.diag(near.remainder), gram / 4 + 1, atol=0.1
    )


def test_documents_that_are_there_twice_count_once() -> None:
    X = np.repeat(features(20, 5), 4, axis=0)
    gram = gram_matrix(X)
    near = LowRank(gram, np.diagonal(gram) + 1.0, 1.0)
    assert near.factors.shape[1] <= 6
    np.testing.assert_allclose(near.factors @ near.factors.T, gram + 1, rtol=1e-3, atol=1e-3)


def test_a_slow_system_takes_fewer_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the same objective, at a C where conjugate gradients by the diagonal take many steps."""
    X = features()
    positive = (
        X @ np.random.default_rng(3).normal(size=150) + np.random.default_rng(4).normal(size=400) > 0
    )[None]
    n_products, found = [0, 0], []
    multiply = finite_newton._System._scores
    for way, patience in enumerate((finite_newton.MAX_INNER, finite_newton.PATIENCE)):

        def counted(system: finite_newton._System, b: np.ndarray, way: int = way) -> np.ndarray:
            n_products[way] += len(b)
            return multiply(system, b)

        monkeypatch.setattr(finite_newton, "PATIENCE", patience)
        monkeypatch.setattr(finite_newton._System, "_scores", counted)
        ((solution,),) = NewtonPath(gram_matrix(X), np.arange(400), 1.0, positive).solve([100.0])
        assert solution.converged
        found.append(solution.scores)
    assert 2 * n_products[1] < n_products[0]
    np.testing.assert_allclose(found[0], found[1], atol=0.05)
