"""Topic vectors: gradients against differences, maxima against scipy's, and the cases whose answer is known."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.topical import slope_by_differences
from textbench.featurizers._topical import topic_vectors as fits
from textbench.featurizers._topical.ascent import maximise

RNG = np.random.default_rng(5)
K, V, D = 3, 14, 4
VECTORS = RNG.normal(size=(V, D))
COUNTS = RNG.gamma(0.5, 8, size=(K, V))
LOG_BASE = np.log(RNG.dirichlet(np.full(V, 2.0)))
TOPICS = RNG.normal(size=(K, D))
SEEN, NOISE = RNG.gamma(1, 5, size=(K, V)), RNG.dirichlet(np.full(V, 2.0))


@pytest.mark.parametrize("base", [None, LOG_BASE], ids=["uniform", "unigram"])
def test_the_softmax_gradient_is_the_slope(base: np.ndarray | None) -> None:
    def total(topics: np.ndarray) -> float:
        return fits.softmax_objective(topics, COUNTS, VECTORS, 0.3, base)[0].sum()

    slopes = fits.softmax_objective(TOPICS, COUNTS, VECTORS, 0.3, base)[1]
    np.testing.assert_allclose(slopes, slope_by_differences(total, TOPICS), rtol=1e-5, atol=1e-6)


def test_the_negatives_gradient_is_the_slope() -> None:
    drawn = RNG.gamma(1, 5, size=(K, V))

    def total(topics: np.ndarray) -> float:
        return fits.negatives_objective(topics, SEEN, drawn, VECTORS)[0].sum()

    slopes = fits.negatives_objective(TOPICS, SEEN, drawn, VECTORS)[1]
    np.testing.assert_allclose(slopes, slope_by_differences(total, TOPICS), rtol=1e-5, atol=1e-6)


def test_the_softmax_fit_is_scipys_and_does_not_depend_on_the_start() -> None:
    found = fits.fit_softmax(COUNTS, VECTORS, TOPICS, penalty=0.05, n_steps=200, tolerance=0)
    for k in range(K):
        best = minimize(
            lambda t, k=k: -fits.softmax_objective(t[None], COUNTS[k : k + 1], VECTORS, 0.05)[0][0],
            np.zeros(D),
            tol=1e-10,
        )
        np.testing.assert_allclose(found[k], best.x, atol=1e-4)
    other = fits.fit_softmax(COUNTS, VECTORS, -3 * TOPICS, penalty=0.05, n_steps=200, tolerance=0)
    np.testing.assert_allclose(found, other, atol=1e-4)


def test_counts_and_penalty_doubled_leave_the_fit_as_it_is() -> None:
    one, two = (
        fits.fit_softmax(f * COUNTS, VECTORS, TOPICS, penalty=f * 0.1, n_steps=200, tolerance=0)
        for f in (1, 2)
    )
    np.testing.assert_allclose(one, two, atol=1e-4)


def test_equal_vectors_or_a_great_penalty_give_a_uniform_softmax() -> None:
    same = np.ones((V, 1)) @ VECTORS[:1]
    found = fits.fit_softmax(COUNTS, same, TOPICS, penalty=0.01, n_steps=200, tolerance=0)
    assert (np.abs(TOPICS).max(axis=1) > 0.1).all()
    np.testing.assert_allclose(found, 0, atol=1e-8)
    np.testing.assert_allclose(np.exp(fits.log_softmax(TOPICS, same)), 1 / V)
    found = fits.fit_softmax(COUNTS, VECTORS, TOPICS, penalty=1e9)
    np.testing.assert_allclose(np.exp(fits.log_softmax(found, VECTORS)), 1 / V, rtol=1e-4)


def test_a_softmax_finds_its_own_topic_again() -> None:
    """The Kullback-Leibler divergence falls to zero where the counts are a softmax themselves."""
    phi = np.exp(fits.log_softmax(TOPICS, VECTORS))
    found = fits.fit_softmax(phi, VECTORS, TOPICS * 0, penalty=0.0, n_steps=300, tolerance=0)
    np.testing.assert_allclose(found, TOPICS, atol=1e-4)
    assert abs((phi * (np.log(phi) - fits.log_softmax(found, VECTORS))).sum()) < 1e-8


def test_no_row_ever_falls_and_none_leaves_the_ball() -> None:
    values = []

    def functions(topics: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return fits.softmax_objective(topics, COUNTS, VECTORS, 0.0)

    for n in range(8):
        found = maximise(functions, 9 * TOPICS, n_steps=n, radius=0.5)
        assert (np.linalg.norm(found, axis=1) <= 0.5 + 1e-12).all()
        values.append(functions(found)[0])
    assert (np.diff(values, axis=0) >= 0).all()
    # At the edge of the ball the slope points outwards: no way along the edge leads up.
    found = maximise(functions, TOPICS, n_steps=300, tolerance=0, radius=0.5)
    slopes = functions(found)[1]
    along = slopes - (slopes * found).sum(axis=1, keepdims=True) * found / 0.25
    assert (np.linalg.norm(along, axis=1) < 1e-3 * np.linalg.norm(slopes, axis=1)).all()


def test_the_negatives_fit_is_where_its_slope_is_zero() -> None:
    found = fits.fit_negatives(SEEN, NOISE, 5, VECTORS, TOPICS, n_steps=300, tolerance=0)
    drawn = 5 * NOISE * (SEEN.sum(axis=1, keepdims=True) - SEEN)
    values, slopes = fits.negatives_objective(found, SEEN, drawn, VECTORS)
    np.testing.assert_allclose(slopes / SEEN.sum(), 0, atol=1e-5)
    assert (values >= fits.negatives_objective(TOPICS, SEEN, drawn, VECTORS)[0]).all()


def test_what_stands_around_a_token_is_counted_by_distance() -> None:
    tokens, topics = RNG.integers(V, size=20).astype(np.int32), RNG.integers(K, size=20).astype(np.int32)
    offsets, window = np.array([0, 8, 8, 20]), 3
    expected = np.zeros((K, V))
    for begin, end in itertools.pairwise(offsets):
        for i in range(begin, end):
            for j in range(begin, end):
                if i != j and abs(i - j) <= window:
                    expected[topics[j], tokens[i]] += (window - abs(i - j) + 1) / window
    np.testing.assert_allclose(fits.topics_around(tokens, topics, offsets, K, V, window), expected)


def test_a_topic_of_no_token_has_a_mean_of_zero() -> None:
    counts = np.array([[2.0, 0.0], [1.0, 0.0]])
    np.testing.assert_allclose(
        fits.mean_vectors(counts, VECTORS[:2]), [VECTORS[:2].T @ [2 / 3, 1 / 3], [0] * D]
    )
