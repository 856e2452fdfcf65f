"""SCDV against algorithm 1 written out as loops, and the threshold against its definition."""

import numpy as np
import pytest
import scipy.sparse as sp

from textbench.featurizers import scdv
from textbench.featurizers._gaussian_mixture import fit_mixture
from textbench.featurizers.tfidf import TfIdf

RNG = np.random.default_rng(5)
N_TERMS, N_DIMENSIONS, N_CLUSTERS = 40, 6, 4


def word_vectors() -> np.ndarray:
    """Unit vectors around a few centres; terms 7 and 21 have none."""
    centres = RNG.normal(size=(N_CLUSTERS, N_DIMENSIONS))
    vectors = centres[RNG.integers(N_CLUSTERS, size=N_TERMS)] + RNG.normal(size=(N_TERMS, N_DIMENSIONS))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[[7, 21]] = 0
    return vectors.astype(np.float32)


VECTORS = word_vectors()
COUNTS = sp.csr_matrix(RNG.poisson(0.3, size=(50, N_TERMS)).astype(np.int32))


def algorithm_1(
    counts: np.ndarray, vectors: np.ndarray, memberships: np.ndarray, idf: np.ndarray
) -> np.ndarray:
    """Lines 5-15 of the paper, loop by loop, in float64, and the normalisation of section 3.3."""
    n_dimensions, n_clusters = vectors.shape[1], memberships.shape[1]
    documents = np.zeros((len(counts), n_clusters * n_dimensions))
    for n, document in enumerate(counts):
        for i, count in enumerate(document):
            for k in range(n_clusters):
                own = slice(k * n_dimensions, (k + 1) * n_dimensions)
                documents[n, own] += count * idf[i] * memberships[i, k] * vectors[i].astype(np.float64)
        length = np.linalg.norm(documents[n])
        documents[n] /= length or 1
    return documents


def fitted(**params: object) -> scdv.Scdv:
    return scdv.build(**{"n_clusters": N_CLUSTERS, "random_state": 0, **params}).fit(
        COUNTS, word_vectors=VECTORS
    )


def test_compose_is_algorithm_1() -> None:
    memberships = RNG.dirichlet(np.full(N_CLUSTERS, 0.3), size=N_TERMS)
    idf = RNG.uniform(1, 5, size=N_TERMS)
    vectors = scdv.compose(COUNTS, VECTORS, memberships, idf)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, algorithm_1(COUNTS.toarray(), VECTORS, memberships, idf), atol=1e-6)


def test_compose_of_one_token_is_its_vector_shared_among_clusters() -> None:
    memberships = np.array([[0.6, 0.8]])  # of length 1, so that normalising changes nothing
    vectors = scdv.compose(sp.csr_matrix([[3]]), np.array([[0.0, 1.0]]), memberships, np.array([2.0]))
    np.testing.assert_allclose(vectors, [[0, 0.6, 0, 0.8]])


def test_one_cluster_is_the_normalised_idf_sum() -> None:
    method = fitted(n_clusters=1, sparsity=0.0)
    sums = (COUNTS.toarray() * TfIdf().fit(COUNTS).idf_) @ VECTORS
    np.testing.assert_allclose(
        method.transform(COUNTS).toarray(), sums / np.linalg.norm(sums, axis=1, keepdims=True), atol=1e-6
    )


@pytest.mark.parametrize("covariance", ["tied", "tied-spherical", "spherical", "full", "diag"])
def test_transform_is_the_thresholded_algorithm(covariance: str) -> None:
    method = fitted(covariance=covariance, sparsity=0.1)
    known = np.flatnonzero(VECTORS.any(axis=1))
    exact = np.zeros((N_TERMS, N_CLUSTERS))
    exact[known] = fit_mixture(VECTORS[known], N_CLUSTERS, covariance, seed=0).memberships
    idf = TfIdf().fit(COUNTS).idf_
    dense = algorithm_1(COUNTS.toarray(), VECTORS, exact, idf)
    scale = (abs(dense.min(axis=1).mean()) + abs(dense.max(axis=1).mean())) / 2
    assert method.threshold_ == pytest.approx(0.1 * scale, rel=1e-4)
    features = method.transform(COUNTS).toarray()
    near = np.abs(np.abs(dense) - method.threshold_) < 1e-5  # rounding may put these on either side
    expected = np.where(np.abs(dense) >= method.threshold_, dense, 0)
    np.testing.assert_allclose(features[~near], expected[~near], atol=1e-5)
    assert near.mean() < 0.01


def test_zero_sparsity_keeps_every_value() -> None:
    method = fitted(sparsity=0.0)
    assert method.threshold_ == 0
    idf = np.zeros(N_TERMS)
    idf[method.terms_] = method.idf_
    np.testing.assert_array_equal(
        method.transform(COUNTS).toarray(), scdv.compose(COUNTS, VECTORS, method.memberships_, idf)
    )


def test_what_is_kept_does_not_change() -> None:
    dense, sparse = (fitted(sparsity=sparsity).transform(COUNTS).toarray() for sparsity in (0.0, 0.2))
    assert 0.1 < np.mean(sparse == 0) < 0.99
    np.testing.assert_array_equal(sparse[sparse != 0], dense[sparse != 0])
    assert np.abs(sparse[sparse != 0]).min() >= np.abs(dense[sparse == 0]).max()


def test_threshold_counts_a_missing_cluster_as_zero() -> None:
    # Two clusters on one axis, vectors +1 and -1: a document of one term has smallest value 0 or largest value 0.
    vectors = np.array([[1.0], [1.0], [-1.0], [-1.0]], dtype=np.float32)
    vectors += np.array([[0.0], [0.01], [0.0], [-0.01]], dtype=np.float32)
    counts = sp.csr_matrix([[1, 0, 0, 0], [0, 0, 1, 0]])
    method = scdv.build(n_clusters=2, sparsity=1.0, random_state=0).fit(counts, word_vectors=vectors)
    assert method.threshold_ == pytest.approx((abs(np.mean([0, -1])) + abs(np.mean([1, 0]))) / 2)


def test_memberships_are_probabilities_of_known_terms() -> None:
    method = fitted()
    assert method.memberships_.shape == (N_TERMS, N_CLUSTERS)
    known = VECTORS.any(axis=1)
    np.testing.assert_allclose(method.memberships_[known].sum(axis=1), 1, atol=N_CLUSTERS * 1e-6 + 1e-6)
    np.testing.assert_array_equal(method.memberships_[~known], 0)


def test_dropped_memberships_are_accounted_for() -> None:
    known = VECTORS[VECTORS.any(axis=1)]
    exact = fit_mixture(known, N_CLUSTERS, "tied", seed=0).memberships
    method = fitted()
    kept = method.memberships_[method.terms_]
    assert kept[kept > 0].min() >= np.float32(1e-6)
    dropped = np.where(kept == 0, exact, 0).sum(axis=1)
    assert 0 < method.dropped_membership_ == pytest.approx(dropped.max())
    np.testing.assert_allclose(1 - kept.sum(axis=1), dropped, atol=1e-6)


def test_documents_without_known_terms_are_zero_and_counted() -> None:
    counts = COUNTS.toarray()
    counts[3], counts[8], counts[8, 7] = 0, 0, 5  # nothing at all; a term without a vector
    method = scdv.build(n_clusters=3, random_state=0).fit(sp.csr_matrix(counts), word_vectors=VECTORS)
    features = method.transform(sp.csr_matrix(counts))
    assert method.n_empty_documents_ == 2
    assert set(np.flatnonzero(np.diff(features.indptr) == 0)) == {3, 8}


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fitted()
    monkeypatch.setattr(scdv, "DOCUMENTS_AT_ONCE", 7)
    parts = fitted()
    assert parts.threshold_ == whole.threshold_
    ours, theirs = parts.transform(COUNTS), whole.transform(COUNTS)
    assert ours.data.tobytes() == theirs.data.tobytes()
    assert ours.indices.tobytes() == theirs.indices.tobytes()


def test_order_of_documents_does_not_matter() -> None:
    order = RNG.permutation(COUNTS.shape[0])
    shuffled = scdv.build(n_clusters=N_CLUSTERS, random_state=0).fit(COUNTS[order], word_vectors=VECTORS)
    assert shuffled.threshold_ == pytest.approx(fitted().threshold_)
    np.testing.assert_allclose(
        shuffled.transform(COUNTS).toarray(), fitted().transform(COUNTS).toarray(), atol=1e-6
    )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"sparsity": -0.1}, "sparsity must be a number from 0 to 1: got -0.1"),
        ({"sparsity": "4%"}, "got '4%'"),
        ({"covariance": "ball"}, "full, diag: got 'ball'"),
        ({"n_clusters": 39}, "with a word vector, 38: got 39"),
        ({"n_clusters": 0}, "whole number from 1: got 0"),
    ],
)
def test_impossible_parameters_are_refused(params: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(**params)
