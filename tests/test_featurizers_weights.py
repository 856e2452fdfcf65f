"""The weights of single terms, against formulas written out and examples worked by hand."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from textbench.featurizers import _weights, binary, counts, frequency, tfidf, tfidf_log2

# Three documents over four terms; the third term is in none of them, the second document is empty but for
# term 0.
TOY = np.array([[2, 1, 0, 1], [3, 0, 0, 0], [1, 1, 0, 0]])


def random_counts(seed: int = 3) -> np.ndarray:
    C = np.random.default_rng(seed).poisson(0.7, size=(25, 12))
    C[:, 0] = 0
    C[4] = 0
    return C


def test_binary_counts_and_frequency_by_hand() -> None:
    X = sp.csr_matrix(TOY)
    shares = [[0.5, 0.25, 0, 0.25], [1, 0, 0, 0], [0.5, 0.5, 0, 0]]
    assert binary.build().fit_transform(X).toarray().tolist() == [[1, 1, 0, 1], [1, 0, 0, 0], [1, 1, 0, 0]]
    assert counts.build().fit_transform(X).toarray().tolist() == TOY.tolist()
    assert frequency.build().fit_transform(X).toarray().tolist() == shares


def test_frequencies_of_a_document_sum_to_one() -> None:
    sums = frequency.build().fit_transform(sp.csr_matrix(random_counts())).sum(axis=1)
    expected = np.ones(25)
    expected[4] = 0  # the empty document
    np.testing.assert_allclose(np.ravel(sums), expected, atol=1e-6)


def test_tfidf_log2_by_hand() -> None:
    # Equation (3): term 0 is in all documents, log2(3/3) = 0; term 1 in two, log2(3/2); term 3 in one,
    # log2(3).
    method = tfidf_log2.build().fit(sp.csr_matrix(TOY))
    half, three = np.log2(1.5), np.log2(3)
    np.testing.assert_allclose(method.idf_, [0, half, 0, three], rtol=1e-15)
    expected = [[0, half / 4, 0, three / 4], [0, 0, 0, 0], [0, half / 2, 0, 0]]
    np.testing.assert_allclose(method.transform(sp.csr_matrix(TOY)).toarray(), expected, rtol=1e-6)


def test_tfidf_log2_of_a_new_document_uses_the_training_idf_and_its_own_length() -> None:
    method = tfidf_log2.build().fit(sp.csr_matrix(TOY))
    new = method.transform(sp.csr_matrix(np.array([[0, 1, 6, 1]]))).toarray()
    # The six words no training document has weigh nothing, yet the document is eight words long.
    np.testing.assert_allclose(new, [[0, np.log2(1.5) / 8, 0, np.log2(3) / 8]], rtol=1e-6)


def test_tfidf_log2_sums_to_the_cross_entropy() -> None:
    # Section 2, equation (6): a document's weights sum to sum_k P(t_k) log2 1/Q(t_k).
    C = random_counts()
    weights = tfidf_log2.build().fit_transform(sp.csr_matrix(C)).toarray()
    for i in (0, 7, 24):
        terms = np.flatnonzero(C[i])
        P = C[i, terms] / C[i].sum()
        Q = (C[:, terms] > 0).mean(axis=0)
        assert weights[i].sum() == pytest.approx(-(P * np.log2(Q)).sum(), rel=1e-5)


@pytest.mark.parametrize("sublinear_tf", [True, False])
@pytest.mark.parametrize("smooth_idf", [True, False])
@pytest.mark.parametrize("norm", ["l2", "l1", None])
def test_tfidf_is_its_formula(sublinear_tf: bool, smooth_idf: bool, norm: str | None) -> None:
    C = random_counts()
    N, n_k = len(C), (C > 0).sum(axis=0)
    expected = np.zeros(C.shape)
    for i, k in zip(*np.nonzero(C), strict=True):
        tf = 1 + np.log(C[i, k]) if sublinear_tf else C[i, k]
        idf = 1 + np.log((1 + N) / (1 + n_k[k]) if smooth_idf else N / n_k[k])
        expected[i, k] = tf * idf
    if norm is not None:
        length = np.linalg.norm(expected, ord=int(norm[1]), axis=1, keepdims=True)
        expected /= np.where(length > 0, length, 1)
    method = tfidf.build(sublinear_tf=sublinear_tf, smooth_idf=smooth_idf, norm=norm)
    features = method.fit_transform(sp.csr_matrix(C)).toarray()
    np.testing.assert_allclose(features, expected, rtol=1e-6)


def test_tfidf_without_smoothing_gives_an_unseen_term_no_weight() -> None:
    method = tfidf.build(smooth_idf=False).fit(sp.csr_matrix(TOY))
    assert method.transform(sp.csr_matrix(np.array([[0, 0, 5, 0]]))).toarray().tolist() == [[0, 0, 0, 0]]


def test_tfidf_refuses_an_unknown_norm() -> None:
    with pytest.raises(ValueError, match="'l3'"):
        tfidf.build(norm="l3").fit(sp.csr_matrix(TOY))


def test_scaling_a_document_leaves_length_free_weights_alone() -> None:
    C = random_counts()
    for method in (binary.build(), frequency.build(), tfidf_log2.build(), tfidf.build(sublinear_tf=False)):
        once, thrice = (method.fit_transform(sp.csr_matrix(c)).toarray() for c in (C, 3 * C))
        np.testing.assert_allclose(once, thrice, rtol=1e-6)


@pytest.mark.parametrize("norm", ["l2", "l1", None])
@pytest.mark.parametrize("sublinear_tf", [True, False])
@pytest.mark.parametrize("smooth_idf", [True, False])
def test_tfidf_of_many_counts_has_the_bits_of_scikit_learns(
    norm: str | None, sublinear_tf: bool, smooth_idf: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X, new = (sp.csr_matrix(rng.poisson(0.7, (300, 80)).astype(np.int32) ** 3) for _ in range(2))
    before = X.copy()
    options = {"norm": norm, "sublinear_tf": sublinear_tf, "smooth_idf": smooth_idf}
    monkeypatch.setattr(_weights, "MANY", 0)
    weigh = tfidf.build(**options)
    found = weigh.fit_transform(X), weigh.transform(new)
    assert all(
        np.array_equal(getattr(X, name), getattr(before, name)) for name in ("indptr", "indices", "data")
    )
    theirs = TfidfTransformer(**options)
    expected = theirs.fit_transform(X.astype(float)), theirs.transform(new.astype(float))
    for mine, other in zip(found, expected, strict=True):
        for name in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(other.astype(np.float32), name))
    with pytest.raises(ValueError, match="features"):
        weigh.transform(new[:, :70])
    # Where the counts' columns are the weights' too, nobody can change them through these.
    found[0].data[::2] = 0
    with pytest.raises(ValueError, match="read-only"):
        found[0].eliminate_zeros()
    np.testing.assert_array_equal(X.indices, before.indices)
