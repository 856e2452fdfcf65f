"""Topic models: proportions against their optimality conditions, known topics found again."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls

from textbench.featurizers import lda, nmf, tfidf
from textbench.featurizers.lda import proportions

RNG = np.random.default_rng(3)
N_TERMS = 60


def made_of_topics(n_documents: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Documents drawn from the model itself, and their three topics, over terms of their own."""
    phi = np.zeros((3, N_TERMS))
    for topic in range(3):
        phi[topic, 20 * topic : 20 * (topic + 1)] = RNG.dirichlet(np.full(20, 1.0))
    theta = RNG.dirichlet(np.full(3, 0.1), size=n_documents)
    counts = np.array([RNG.multinomial(80, row) for row in theta @ phi])
    return sp.csr_matrix(counts.astype(np.int32)), phi


X, PHI = made_of_topics(200)


def matched(found: np.ndarray) -> np.ndarray:
    """The order of the found topics that fits PHI."""
    return (PHI @ found.T).argmax(axis=1)


def test_lda_finds_the_topics_that_made_the_documents() -> None:
    method = lda.build(n_topics=3, n_iter=100, random_state=0).fit(X)
    order = matched(method.components_)
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(method.components_[order], PHI, atol=0.03)
    # A term tells its topic, so the documents' own tokens can be counted.
    tokens = X.toarray().reshape(-1, 3, 20).sum(axis=2)
    np.testing.assert_allclose(method.transform(X)[:, order], (0.1 + tokens) / 80.3, atol=0.02)


def test_lda_rows_are_distributions() -> None:
    method = lda.build(n_topics=5, n_iter=50, random_state=0).fit(X)
    np.testing.assert_allclose(method.components_.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(method.transform(X).sum(axis=1), 1, rtol=1e-5)


def test_lda_with_one_topic_is_the_smoothed_term_frequency() -> None:
    method = lda.build(n_topics=1, n_iter=2, eta=0.5, random_state=0).fit(X)
    n_tokens = np.asarray(X.sum(axis=0)).ravel()
    total = np.where(n_tokens > 0, n_tokens + 0.5, 0)
    np.testing.assert_allclose(method.components_[0], total / total.sum(), rtol=1e-4)
    assert (method.transform(X) == 1).all()


def test_lda_seeds_differ_and_repeat() -> None:
    first, again, other = (
        lda.build(n_topics=4, n_iter=20, random_state=s).fit(X).components_ for s in (0, 0, 1)
    )
    assert first.tobytes() == again.tobytes() != other.tobytes()


def test_lda_proportions_are_the_maximum() -> None:
    # Karush, Kuhn, Tucker: at the maximum of the objective on the simplex, theta_k times its derivative is
    # theta_k times the multiplier, which is the sum of the weights.
    phi = RNG.dirichlet(np.full(4, 0.5), size=12)
    n = RNG.integers(1, 9, size=12).astype(float)
    theta = proportions(phi, n, 0.3)
    derivative = (n / (phi @ theta)) @ phi + 0.3 / theta
    np.testing.assert_allclose(derivative, n.sum() + 4 * 0.3, rtol=0.01)

    def objective(t: np.ndarray) -> float:
        return n @ np.log(phi @ t) + 0.3 * np.log(t).sum()

    for nearby in RNG.dirichlet(200 * theta + 1, size=100):
        assert objective(nearby) < objective(theta) + 1e-3


def test_lda_proportions_of_a_pure_document_are_smoothed_counts() -> None:
    # Terms of one topic each: the fixed point is (alpha + n_k) / (K alpha + n).
    theta = proportions(np.eye(3), np.array([5.0, 2.0, 0.0]), 0.5)
    np.testing.assert_allclose(theta, np.array([5.5, 2.5, 0.5]) / 8.5, rtol=1e-12)


def test_lda_ignores_the_order_of_the_new_documents_and_unseen_terms() -> None:
    train = X.toarray()
    train[:, -1] = 0
    method = lda.build(n_topics=3, n_iter=30, random_state=0).fit(sp.csr_matrix(train))
    assert not method.components_[:, -1].any()
    with_unseen, without = X[:10].toarray(), X[:10].toarray()
    with_unseen[:, -1], without[:, -1] = 7, 0
    features = method.transform(sp.csr_matrix(without))
    assert method.transform(sp.csr_matrix(with_unseen)).tobytes() == features.tobytes()
    assert method.transform(sp.csr_matrix(without[::-1]))[::-1].tobytes() == features.tobytes()


@pytest.mark.parametrize(
    "params",
    [{"n_topics": 0}, {"n_topics": 2.5}, {"n_iter": 0}, {"alpha": 0.0}, {"eta": -1.0}, {"alpha": "a"}],
)
def test_lda_names_the_value_it_refuses(params: dict) -> None:
    with pytest.raises(ValueError, match=f"got {next(iter(params.values()))!r}"):
        lda.build(**params).fit(X)


def test_lda_refuses_fractions() -> None:
    with pytest.raises(ValueError, match=r"whole numbers: got 0\.5"):
        lda.build().fit(sp.csr_matrix([[1.0, 0.5]]))


@pytest.mark.parametrize("weighting", ["tfidf", "counts"])
def test_nmf_mixtures_solve_the_least_squares(weighting: str) -> None:
    method = nmf.build(n_topics=3, weighting=weighting, random_state=0).fit(X)
    weights = method.weighter_.transform(X).toarray().astype(float)
    features = method.transform(X[:20])
    for row, target in zip(features, weights, strict=False):
        np.testing.assert_allclose(row, nnls(method.components_.T, target)[0], atol=1e-5 * np.abs(row).max())


def test_nmf_finds_the_topics_up_to_scale() -> None:
    method = nmf.build(n_topics=3, weighting="counts", random_state=0).fit(X)
    order = matched(method.components_)
    assert sorted(order) == [0, 1, 2]
    unit = PHI / np.linalg.norm(PHI, axis=1, keepdims=True)
    assert (np.sum(method.components_[order] * unit, axis=1) > 0.98).all()


def test_nmf_with_one_topic_is_the_leading_singular_pair() -> None:
    method = nmf.build(n_topics=1, max_iter=200, random_state=0).fit(X)
    weights = tfidf.build().fit_transform(X).toarray().astype(float)
    singular = np.linalg.svd(weights)[2][0]
    np.testing.assert_allclose(method.components_[0], np.abs(singular), atol=1e-3)


def test_nmf_keeps_no_more_topics_than_documents() -> None:
    method = nmf.build(n_topics=40, random_state=0).fit(X[:6])
    assert method.transform(X[:6]).shape[1] <= 6


@pytest.mark.parametrize("params", [{"n_topics": 0}, {"max_iter": 1.5}, {"weighting": "bm25"}])
def test_nmf_names_the_value_it_refuses(params: dict) -> None:
    with pytest.raises(ValueError, match=f"got {next(iter(params.values()))!r}"):
        nmf.build(**params).fit(X)
