"""The word vectors of Maas et al. against central differences, sums over tokens, a Newton solve, and limits."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from scipy.special import expit, log_softmax, softmax

from textbench.featurizers import maas_vectors
from textbench.featurizers._maas import Objective, WordVectors, of_ratings, rating_masses

N, V, K = 20, 9, 3
RNG = np.random.default_rng(6)
COUNTS = sp.csr_matrix(
    RNG.poisson(0.3 + 2.0 * (np.arange(V) % 2 == (np.arange(N) % 2)[:, None])).astype(float)
)
RATINGS = np.where(np.arange(N) % 2, 0.7 + 0.3 * RNG.random(N), 0.3 * RNG.random(N))


def words(scale: float = 1.0, kind: type = np.float64) -> WordVectors:
    rng = np.random.default_rng(0)
    shapes = ((V, K), (V,), (K,), (1,))
    return WordVectors(*((scale * rng.normal(size=shape)).astype(kind) for shape in shapes))


def thetas() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(N, K))


def plain(one: WordVectors, theta: np.ndarray, prior: float, ridge: float, sentiment: float) -> float:
    """The objective as printed, a token at a time."""
    total = prior * (theta**2).sum() + ridge * (one.R**2).sum()
    n_high = (RATINGS > 0.5).sum()
    for k, counts in enumerate(COUNTS.toarray().astype(int)):
        logs = log_softmax(one.R @ theta[k] + one.b)
        side = n_high if RATINGS[k] > 0.5 else N - n_high
        for w in np.repeat(np.arange(V), counts):
            p = expit(one.psi @ one.R[w] + one.b_c[0])
            total -= logs[w]
            total -= sentiment / side * (RATINGS[k] * np.log(p) + (1 - RATINGS[k]) * np.log(1 - p))
    return float(total)


def full(sentiment: float = 5.0) -> Objective:
    return Objective(COUNTS, 0.7, 0.4, sentiment, rating_masses(COUNTS, RATINGS))


def test_the_objective_is_the_printed_one() -> None:
    found, _ = full().of_words(words(), thetas())
    assert found == pytest.approx(plain(words(), thetas(), 0.7, 0.4, 5.0), rel=1e-13)
    semantic, _ = Objective(COUNTS, 0.7, 0.4).of_words(words(), thetas())
    assert semantic == pytest.approx(plain(words(), thetas(), 0.7, 0.4, 0.0), rel=1e-13)


def test_gradients_by_the_words_by_central_differences() -> None:
    one, objective = words(), full()
    _, found = objective.of_words(one, thetas())
    for name, part in vars(one).items():
        for place in np.ndindex(part.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = part.copy()
                moved[place] += step
                ends.append(objective.of_words(replace(one, **{name: moved}), thetas())[0])
            assert getattr(found, name)[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)


def test_gradients_by_the_documents_by_central_differences() -> None:
    objective, theta = full(), thetas()
    _, found = objective._document_slopes(words(), theta, COUNTS)
    for place in np.ndindex(theta.shape):
        ends = []
        for step in (1e-6, -1e-6):
            moved = theta.copy()
            moved[place] += step
            ends.append(objective.of_words(words(), moved)[0])
        assert found[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)


def test_no_half_round_raises_the_objective() -> None:
    objective, one, theta = full(), words(0.1), np.zeros((N, K))
    values = [objective.of_words(one, theta)[0]]
    for _ in range(4):
        objective.improve_documents(one, theta)
        values.append(objective.of_words(one, theta)[0])
        one = objective.improve_words(one, theta)
        values.append(objective.of_words(one, theta)[0])
    assert all(after < before for before, after in itertools.pairwise(values))


def test_documents_come_to_their_minimum() -> None:
    """By a Newton solver that knows nothing of the steps."""
    objective, one, found = full(), words(), np.zeros((N, K))
    objective.improve_documents(one, found, n_steps=200)

    def alone(theta: np.ndarray, counts: np.ndarray) -> float:
        return float(-counts @ log_softmax(one.R @ theta + one.b) + 0.7 * theta @ theta)

    for theta, counts in zip(found, COUNTS.toarray(), strict=True):
        best = scipy.optimize.minimize(
            alone, np.zeros(K), args=(counts,), method="BFGS", options={"gtol": 1e-9}
        )
        np.testing.assert_allclose(theta, best.x, atol=1e-5)


def test_an_empty_document_and_a_heavy_prior_have_no_vector() -> None:
    X = sp.vstack([COUNTS[:5], sp.csr_matrix((1, V))], format="csr")
    theta = np.ones((6, K))
    Objective(X, 1.0, 1.0).improve_documents(words(), theta, n_steps=100)
    np.testing.assert_allclose(theta[-1], 0, atol=1e-9)
    assert np.abs(theta[:-1]).min() > 1e-4
    Objective(X, 1e9, 1.0).improve_documents(words(), theta, n_steps=100)
    np.testing.assert_allclose(theta, 0, atol=1e-6)


def test_words_without_vectors_have_their_frequencies() -> None:
    """The unigram log-likelihood, at its optimum of b; a heavy ridge leaves no vectors."""
    objective, one, theta = (
        Objective(COUNTS, 1.0, 1.0),
        replace(words(), R=np.zeros((V, K))),
        np.zeros((N, K)),
    )
    for _ in range(4):
        one = objective.improve_words(one, theta)
    mass = COUNTS.sum(axis=0).A1
    np.testing.assert_allclose(softmax(one.b), mass / mass.sum(), atol=1e-5)
    unigram = -(mass * np.log(mass / mass.sum())).sum()
    assert objective.of_words(one, theta)[0] == pytest.approx(unigram, rel=1e-8)
    heavy = Objective(COUNTS, 1.0, 1e6).improve_words(words(), thetas())
    np.testing.assert_allclose(heavy.R, 0, atol=1e-3)


def test_the_order_of_documents_changes_nothing_but_rounding() -> None:
    order = np.random.default_rng(2).permutation(N)
    y = (RATINGS > 0.5).astype(int)
    found = [
        maas_vectors.build(model="full", skip_top=1, n_components=3, n_rounds=3, random_state=0)
        .fit(X, labels)
        .vectors_
        for X, labels in ((COUNTS, y), (COUNTS[order], y[order]))
    ]
    np.testing.assert_allclose(found[0], found[1], atol=2e-2 * np.abs(found[0]).max())


def test_a_document_is_the_sum_of_its_words_of_unit_length() -> None:
    options = {"skip_top": 2, "n_terms": 5, "n_components": 3, "n_rounds": 2, "random_state": 0}
    plain_one, both = (maas_vectors.build(beside=b, **options).fit(COUNTS) for b in ("none", "bnc"))
    assert plain_one.words_.tolist() == np.argsort(-COUNTS.sum(axis=0).A1, kind="stable")[2:7].tolist()
    present = (COUNTS.toarray() > 0)[:, plain_one.words_]
    vectors = present @ plain_one.vectors_
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    some = lengths[:, 0] > 1e-3 * lengths.max()  # the vectors of all words sum to 0, but for rounding
    assert some.sum() > 10
    wanted = (vectors / lengths)[some]
    np.testing.assert_allclose(plain_one.transform(COUNTS)[some], wanted, atol=1e-4)
    joined = both.transform(COUNTS).toarray()
    np.testing.assert_allclose(joined[some, 5:], wanted, atol=1e-4)
    np.testing.assert_allclose(
        joined[:, :5], present / np.linalg.norm(present, axis=1, keepdims=True), atol=1e-6
    )
    assert list(both.get_feature_names_out())[-3:] == ["v0", "v1", "v2"]


def test_ratings_reach_the_vectors_by_their_weight_alone() -> None:
    y = (RATINGS > 0.5).astype(int)
    options = {"skip_top": 1, "n_components": 3, "n_rounds": 3, "random_state": 0}
    semantic = maas_vectors.build(**options).fit(COUNTS)
    assert semantic.ratio_ == 0
    weightless, light, heavy = (
        maas_vectors.build(model="full", sentiment=g, **options).fit(COUNTS, y) for g in (0.0, 1.0, 100.0)
    )
    np.testing.assert_allclose(weightless.vectors_, semantic.vectors_, atol=1e-6)
    assert 0 < light.ratio_ < 0.2 < heavy.ratio_ < 1
    apart = [np.linalg.norm(one.vectors_ - semantic.vectors_) for one in (light, heavy)]
    assert apart[0] < apart[1]


def test_masses_are_sums_over_documents() -> None:
    masses = rating_masses(COUNTS, RATINGS)
    n_high = (RATINGS > 0.5).sum()
    sides = np.where(RATINGS > 0.5, n_high, N - n_high)
    wanted = [(share / sides) @ COUNTS.toarray() for share in (1 - RATINGS, RATINGS)]
    np.testing.assert_allclose(masses, wanted, rtol=1e-13)
    assert of_ratings(words(), masses)[0] > 0


def test_classes_are_ratings_in_their_order() -> None:
    np.testing.assert_allclose(maas_vectors._ratings(np.array([1, 10, 4]), 3), [0, 1, 1 / 3])
    np.testing.assert_allclose(maas_vectors._ratings(np.array([2, 2]), 2), 0.5)


@pytest.mark.parametrize(
    ("y", "said"),
    [(None, "got none"), (np.zeros(3, int), "got those of 3"), (np.ones((N, 2), int), "got several labels")],
)
def test_labels_that_are_no_ratings_are_refused(y: np.ndarray | None, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        maas_vectors.build(model="full").fit(COUNTS, y)


@pytest.mark.parametrize(
    ("name", "value"),
    [("model", "half"), ("prior", 0.0), ("n_rounds", 0), ("beside", "tfidf"), ("sentiment", -1)],
)
def test_the_refused_value_is_named(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*: got {value!r}"):
        maas_vectors.build(**{name: value}).fit(COUNTS)
