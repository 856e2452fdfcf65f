"""Weights of very many counts in one pass: the bits of scikit-learn's, without copies of the matrix in float64.

Source: none; the formulas are those of the methods that call it.
"""

import numpy as np
import scipy.sparse as sp
from numba import njit

MANY = 2**22  # entries; fewer are weighed sooner than the kernel is loaded
MAX_COUNT = 2**20
BLOCK = 2**20
NORMS = {None: 0, "l1": 1, "l2": 2}


def are_many(X: sp.csr_matrix) -> bool:
    """Tell whether X, (n_documents, n_terms), is csr, large, and of counts as stored: whole, positive, once each."""
    if not sp.issparse(X) or X.format != "csr" or X.nnz < max(MANY, 1) or X.dtype.kind not in "iu":
        return False
    return bool(X.has_canonical_format and X.data.min() > 0 and X.data.max() < MAX_COUNT)


def document_frequency(X: sp.csr_matrix) -> np.ndarray:
    """Return how many documents of X, (n_documents, n_terms), have each term: int64, (n_terms,)."""
    df = np.zeros(X.shape[1], dtype=np.int64)
    for start in range(0, X.nnz, BLOCK):
        df += np.bincount(X.indices[start : start + BLOCK], minlength=len(df))
    return df


def weigh(X: sp.csr_matrix, tf: np.ndarray, idf: np.ndarray, norm: str | None) -> sp.csr_matrix:
    """Return tf[count] * idf[term], each document divided by its norm: csr float32, the shape of X.

    tf: float64, for every count up to the largest. idf: float64, (n_terms,).
    """
    weights = np.empty(X.nnz, dtype=np.float32)
    _weigh(X.indptr, X.indices, X.data, tf, idf, NORMS[norm], weights)
    return sp.csr_matrix((weights, X.indices.copy(), X.indptr.copy()), shape=X.shape, copy=False)


@njit(cache=True, nogil=True)
def _weigh(indptr, indices, data, tf, idf, norm, weights):  # type: ignore[no-untyped-def]
    for d in range(len(indptr) - 1):
        total = 0.0
        for i in range(indptr[d], indptr[d + 1]):
            weight = tf[data[i]] * idf[indices[i]]
            total += weight * weight if norm == 2 else abs(weight)
        if norm == 2:
            total = np.sqrt(total)
        if norm == 0 or total == 0:
            total = 1.0
        for i in range(indptr[d], indptr[d + 1]):
            weights[i] = tf[data[i]] * idf[indices[i]] / total
