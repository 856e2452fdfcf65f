"""Latent semantic indexing and principal components, against dense decompositions."""

import numpy as np
import pytest
import scipy.sparse as sp

from textbench.featurizers import lsa_pca, lsi, tfidf, tfidf_log2


def topical_counts(
    n_documents: int = 120, n_terms: int = 90, n_topics: int = 4, seed: int = 1
) -> sp.csr_matrix:
    """Documents of one topic each, with words shared by all: a spectrum with a gap after n_topics."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_terms, 0.05), size=n_topics)
    words = 0.85 * topics[rng.integers(n_topics, size=n_documents)] + 0.15 / n_terms
    return sp.csr_matrix(rng.poisson(60 * words).astype(np.int32))


X = topical_counts()
TALL, WIDE = topical_counts(130, 40), topical_counts(40, 130)


@pytest.mark.parametrize("counts", [X, TALL, WIDE], ids=["square", "tall", "wide"])
@pytest.mark.parametrize("k", [4, 8, 30])
@pytest.mark.parametrize("weighting", ["tfidf", "counts"])
def test_lsi_is_the_truncated_svd(weighting: str, k: int, counts: sp.csr_matrix) -> None:
    W = tfidf.build().fit_transform(counts).toarray() if weighting == "tfidf" else counts.toarray()
    _, s, Vt = np.linalg.svd(W.astype(np.float64), full_matrices=False)
    method = lsi.build(n_components=k, weighting=weighting, random_state=0).fit(counts)
    np.testing.assert_allclose(method.singular_values_, s[:k], rtol=1e-6)
    # Same subspace, with a gap in the spectrum or without: all cosines of the principal angles are 1.
    np.testing.assert_allclose(np.linalg.svd(method.components_ @ Vt[:k].T, compute_uv=False), 1, atol=1e-5)
    exact, ours = W @ Vt[:k].T, method.transform(counts)
    np.testing.assert_allclose(ours @ ours.T, exact @ exact.T, atol=1e-5 * (exact @ exact.T).max())


def test_lsi_repeats_to_the_bit_when_the_rank_is_short() -> None:
    copies = sp.csr_matrix(sp.vstack([X[:7]] * 15))
    first, second = (lsi.build(n_components=20, random_state=0).fit(copies).components_ for _ in range(2))
    assert first.shape[0] == 7 and first.tobytes() == second.tobytes()


def test_lsi_with_all_components_keeps_every_inner_product() -> None:
    W = tfidf.build().fit_transform(X).toarray()
    features = lsi.build(n_components=1000, random_state=0).fit_transform(X)
    np.testing.assert_allclose(features @ features.T, W @ W.T, atol=1e-5)


def test_lsi_components_are_orthonormal_with_a_fixed_sign() -> None:
    V = lsi.build(n_components=6, random_state=3).fit(X).components_
    np.testing.assert_allclose(V @ V.T, np.eye(6), atol=1e-5)
    assert (V[np.arange(6), np.abs(V).argmax(axis=1)] > 0).all()


def test_lsi_normalized_rows_have_unit_length() -> None:
    plain = lsi.build(n_components=4, random_state=0).fit_transform(X)
    unit = lsi.build(n_components=4, normalize=True, random_state=0).fit_transform(X)
    np.testing.assert_allclose(unit, plain / np.linalg.norm(plain, axis=1, keepdims=True), rtol=1e-5)


def test_lsi_drops_directions_beyond_the_rank() -> None:
    copies = sp.csr_matrix(sp.vstack([X[:7]] * 5))
    assert lsi.build(n_components=30, random_state=0).fit_transform(copies).shape == (35, 7)


def test_lsi_of_one_document_is_its_length() -> None:
    method = lsi.build(weighting="counts", random_state=0).fit(X[0])
    np.testing.assert_allclose(method.transform(X[0]), [[np.linalg.norm(X[0].toarray())]], rtol=1e-6)


@pytest.mark.parametrize("params", [{"n_components": 0}, {"n_components": 2.5}, {"weighting": "tf-idf"}])
def test_lsi_names_the_value_it_refuses(params: dict) -> None:
    value = next(iter(params.values()))
    with pytest.raises(ValueError, match=f"got {value!r}"):
        lsi.build(**params).fit(X)


@pytest.mark.parametrize("counts", [X, TALL, WIDE], ids=["square", "tall", "wide"])
@pytest.mark.parametrize("n_components", [3, 8, 30])
def test_lsa_pca_solves_the_eigenproblem_of_the_covariance(counts: sp.csr_matrix, n_components: int) -> None:
    x = tfidf_log2.build().fit_transform(counts).toarray().astype(np.float64)
    eigenvalues, vectors = np.linalg.eigh(np.cov(x, rowvar=False))
    method = lsa_pca.build(n_components=n_components, random_state=0).fit(counts)
    np.testing.assert_allclose(method.explained_variance_, eigenvalues[::-1][:n_components], rtol=1e-8)
    cosines = np.abs(np.sum(method.components_.T * vectors[:, ::-1][:, :n_components], axis=0))
    np.testing.assert_allclose(cosines, 1, atol=1e-5)


def test_lsa_pca_projects_uncentred_and_differs_from_scores_by_a_constant() -> None:
    x = tfidf_log2.build().fit_transform(X).toarray().astype(np.float64)
    method = lsa_pca.build(n_components=5, random_state=0).fit(X)
    features = method.transform(X)
    np.testing.assert_allclose(features, x @ method.components_.T, atol=1e-6)
    scores = (x - x.mean(axis=0)) @ method.components_.T
    np.testing.assert_allclose(np.ptp(features - scores, axis=0), 0, atol=1e-6)
    # Principal component scores are uncorrelated, and their variances are the eigenvalues.
    np.testing.assert_allclose(np.cov(features, rowvar=False), np.diag(method.explained_variance_), atol=1e-7)


def test_lsa_pca_sign_does_not_depend_on_the_seed() -> None:
    ours, theirs = (lsa_pca.build(n_components=4, random_state=seed).fit(X).components_ for seed in (0, 1))
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert (ours[np.arange(4), np.abs(ours).argmax(axis=1)] > 0).all()


def test_lsa_pca_repeats_to_the_bit_when_the_rank_is_short() -> None:
    # Six distinct documents, centred: rank five. Beyond it the Lanczos iteration starts afresh from random
    # vectors.
    copies = sp.csr_matrix(sp.vstack([X[:6]] * 15))
    fits = [lsa_pca.build(n_components=20, random_state=0).fit(copies) for _ in range(2)]
    assert fits[0].components_.shape == (5, X.shape[1])
    assert fits[0].components_.tobytes() == fits[1].components_.tobytes()


def test_lsa_pca_with_all_components_keeps_every_distance() -> None:
    x = tfidf_log2.build().fit_transform(WIDE).toarray()
    features = lsa_pca.build(n_components=1000, random_state=0).fit_transform(WIDE)
    assert features.shape == (40, 39)
    for i, j in ((0, 1), (5, 30), (38, 39)):
        assert np.linalg.norm(features[i] - features[j]) == pytest.approx(
            np.linalg.norm(x[i] - x[j]), rel=1e-4
        )


def test_lsa_pca_names_the_value_it_refuses() -> None:
    with pytest.raises(ValueError, match="whole number from 1: got 'ten'"):
        lsa_pca.build(n_components="ten").fit(X)


def test_lsa_pca_refuses_one_document() -> None:
    with pytest.raises(ValueError, match="at least 2 training documents: got 1"):
        lsa_pca.build().fit(X[0])
