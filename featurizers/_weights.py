"""Weights of very many counts in one pass: the bits of scikit-learn's, without copies of the matrix.

The weights have the columns and the rows of their counts, which are in memory once; they can be read, not written to.

Source: none; the formulas are those of the methods that call it.
"""

import numpy as np
import scipy.sparse as sp
from numba import njit

from textbench.featurizers._kernels import in_parallel, shares

MANY = 2**22  # entries; fewer are weighed sooner than the kernel is loaded
MAX_COUNT = 2**20
NORMS = {None: 0, "l1": 1, "l2": 2}


def are_many(X: sp.csr_matrix) -> bool:
    """Tell whether X, (n_documents, n_terms), is csr, large, and of counts as stored: whole, positive, once each."""
    if not sp.issparse(X) or X.format != "csr" or X.nnz < max(MANY, 1) or X.dtype.kind not in "iu":
        return False
    return bool(X.has_canonical_format and X.data.min() > 0 and X.data.max() < MAX_COUNT)


def document_frequency(X: sp.csr_matrix) -> np.ndarray:
    """Return how many documents of X, (n_documents, n_terms), have each term: int64, (n_terms,)."""
    df = np.zeros(X.shape[1], dtype=np.int64)
    _add_each(X.indices, df)
    return df


def weigh(X: sp.csr_matrix, tf: np.ndarray, idf: np.ndarray, norm: str | None) -> sp.csr_matrix:
    """Return tf[count] * idf[term], each document divided by its norm: csr float32, the shape of X.

    tf: float64, for every count up to the largest. idf: float64, (n_terms,).
    """
    weights = np.empty(X.nnz, dtype=np.float32)
    rest = X.indices, X.data, tf, idf, NORMS[norm], weights
    in_parallel(_weigh, [(X.indptr[low : high + 1], *rest) for low, high in shares(X.indptr)])
    indices, indptr = X.indices.view(), X.indptr.view()
    indices.flags.writeable = indptr.flags.writeable = False
    return sp.csr_matrix((weights, indices, indptr), shape=X.shape, copy=False)


@njit(cache=True, nogil=True)
def _add_each(terms, df):  # type: ignore[no-untyped-def]
    for term in terms:
        df[term] += 1


@njit(cache=True, nogil=True)
def _weigh(indptr, indices, data, tf, idf, norm, weights):  # type: ignore[no-untyped-def]
    room = np.empty(np.max(np.diff(indptr)) if len(indptr) > 1 else 0)
    for d in range(len(indptr) - 1):
        own = slice(indptr[d], indptr[d + 1])
        terms, counts, given, total = indices[own], data[own], weights[own], 0.0
        products = room[: len(terms)]
        for k in range(len(terms)):
            products[k] = tf[counts[k]] * idf[terms[k]]
        if norm == 1:
            for product in products:
                total += abs(product)
        elif norm == 2:
            for product in products:
                total += product * product
            total = np.sqrt(total)
        if total == 0:
            total = 1.0
        for k in range(len(terms)):
            given[k] = products[k] / total
