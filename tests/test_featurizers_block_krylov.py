"""Randomised block Krylov method: against scipy's exact SVD, on spectra that fall and that end."""

from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from textbench.featurizers import _block_krylov, lsi
from textbench.featurizers._block_krylov import leading_singular_vectors, n_basis, product

N_COMPONENTS = 6


def documents(n: int = 900, n_terms: int = 400, seed: int = 0) -> sp.csr_matrix:
    """Counts of documents of a few topics, whose words are Zipf's."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(0.3 / np.arange(1, n_terms + 1) ** 0.5, size=12)
    rows = [rng.multinomial(40, topics[i % 12]) for i in range(n)]
    return sp.csr_matrix(np.array(rows, dtype=np.float32))


def test_singular_values_and_directions_are_nearly_those_of_the_exact_decomposition() -> None:
    X = documents()
    values, vectors = leading_singular_vectors(X, N_COMPONENTS, 0)
    _, exact, rows = svds(X.astype(np.float64), k=N_COMPONENTS)
    exact, rows = exact[::-1], rows[::-1]
    assert (values <= exact * (1 + 1e-6)).all()
    np.testing.assert_allclose(values, exact, rtol=1e-4)
    cosines = np.linalg.svd(rows @ vectors, compute_uv=False)
    assert cosines.min() > 0.999  # of the largest angle between both subspaces
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(N_COMPONENTS), atol=1e-6)


def test_a_matrix_of_lower_rank_is_decomposed_exactly() -> None:
    rng = np.random.default_rng(1)
    X = sp.csr_matrix((rng.normal(size=(700, 4)) @ rng.normal(size=(4, 300))).astype(np.float32))
    values, vectors = leading_singular_vectors(X, N_COMPONENTS, 0)
    exact = np.linalg.svd(X.toarray().astype(np.float64), compute_uv=False)
    np.testing.assert_allclose(values[:4], exact[:4], rtol=1e-5)
    assert (values[4:] < 1e-3 * exact[0]).all()
    assert np.isfinite(vectors).all()


def test_three_passes_are_made_and_blocks_of_rows_change_nothing_but_rounding() -> None:
    X, read = documents(), []

    def counted(shares: list[list[sp.csr_matrix]], slices: list[np.ndarray]) -> np.ndarray:
        read.append(sum(block.shape[0] for rows in shares for block in rows))
        return product(shares, slices)

    with patch.object(_block_krylov, "product", counted), patch.object(_block_krylov, "SAMPLE", 90):
        whole = leading_singular_vectors(X, N_COMPONENTS, 0)
    assert read[:4] == [45] * 4 and sum(read[4:]) == 3 * 900
    with patch.object(_block_krylov, "SAMPLE", 90), patch.object(_block_krylov, "ROWS", 70):
        blocks = leading_singular_vectors(X, N_COMPONENTS, 0)
    np.testing.assert_allclose(blocks[0], whole[0], rtol=1e-5)


@pytest.mark.parametrize("seed", [0, 1])
def test_equal_seeds_give_equal_bits(seed: int) -> None:
    first, again = (leading_singular_vectors(documents(), N_COMPONENTS, seed) for _ in range(2))
    assert first[0].tobytes() == again[0].tobytes()
    assert first[1].tobytes() == again[1].tobytes()


def test_lsi_of_many_documents_is_nearly_that_of_few() -> None:
    X = documents()
    exact = lsi.build(n_components=N_COMPONENTS, random_state=0).fit(X)
    with patch.object(lsi, "LARGE", 1000):
        assert min(X.shape) > n_basis(N_COMPONENTS)
        randomised = lsi.build(n_components=N_COMPONENTS, random_state=0).fit(X)
    np.testing.assert_allclose(randomised.singular_values_, exact.singular_values_, rtol=1e-3)
    assert np.linalg.svd(randomised.components_ @ exact.components_.T, compute_uv=False).min() > 0.99


@pytest.mark.parametrize("n_threads", [1, 3])
def test_any_number_of_threads_gives_the_same_bits(n_threads: int) -> None:
    expected = leading_singular_vectors(documents(), N_COMPONENTS, 0)
    with patch.object(_block_krylov, "n_cores", lambda: n_threads):
        found = leading_singular_vectors(documents(), N_COMPONENTS, 0)
    assert [one.tobytes() for one in found] == [one.tobytes() for one in expected]


def test_products_are_those_of_the_matrix_whatever_its_blocks_and_the_vectors_at_a_time() -> None:
    X = documents()
    block = np.random.default_rng(0).standard_normal((X.shape[1], 151), dtype=np.float32)
    wide = X.astype(np.float64)
    expected = wide.T @ (wide @ block)
    whole = product([[X[:500], X[500:]]], [block])
    np.testing.assert_allclose(whole, expected, atol=1e-5 * np.abs(expected).max())
    with patch.object(_block_krylov, "VECTORS", 64), patch.object(_block_krylov, "PIECE", 70):
        slices = _block_krylov.slices_of([[block[:130]], [block[130:]]])
        assert [one.shape[1] for one in slices] == [50, 50, 51]
        assert (product([[X[:500], X[500:]]], slices) == whole).all()


def test_documents_times_vectors_have_the_bits_of_scipys_product() -> None:
    X = documents()
    block = np.random.default_rng(0).standard_normal((X.shape[1], 40), dtype=np.float32)
    for slices in ([block], [block[:, :30].copy(), block[:, 30:].copy()]):
        with patch.object(_block_krylov, "PIECE", 70):
            pieces = [piece.copy() for piece in _block_krylov.multiplied(X, slices)]
        assert len(pieces) == 13
        assert (np.concatenate(pieces) == X @ block).all()


def test_directions_of_very_different_strength_are_orthonormal() -> None:
    """As the first of counts, to which all documents belong, beside those that tell them apart."""
    X = documents()
    X.data[X.indices == 0] *= 1000
    values, vectors = leading_singular_vectors(X, N_COMPONENTS, 0)
    exact = svds(X.astype(np.float64), k=N_COMPONENTS, return_singular_vectors=False)[::-1]
    assert exact[0] > 100 * exact[1]
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(N_COMPONENTS), atol=1e-5)
    np.testing.assert_allclose(values, exact, rtol=2e-2)


def test_what_goes_wrong_is_raised_and_nothing_begins_after_it() -> None:
    begun = []

    def failing(shares: list[list[sp.csr_matrix]], slices: list[np.ndarray]) -> np.ndarray:
        begun.append(len(slices))
        if len(begun) > 3:
            raise MemoryError("no room")
        return product(shares, slices)

    with (
        patch.object(_block_krylov, "product", failing),
        patch.object(_block_krylov, "n_cores", lambda: 1),
        pytest.raises(MemoryError, match="no room"),
    ):
        leading_singular_vectors(documents(), N_COMPONENTS, 0)
    assert len(begun) <= 2 + 8  # of the sample, and of one pass
