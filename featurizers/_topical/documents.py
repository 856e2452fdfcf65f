"""Documents of tokens as tables of counts, and their vectors: mean word vector beside expected topic vector.

`documents` are int32 arrays of token ids (n_tokens,), `terms` those that are known, ascending (n_known,),
`word_vectors` have a row a term (n_terms, n_dimensions), `counts` a row a document (n_documents, n_known), `idf` a
number a term.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from textbench.featurizers._kernels import one_blas_thread
from textbench.featurizers._paragraph_vectors import validated_documents
from textbench.featurizers._topical.inference import infer
from textbench.featurizers._word_vectors import known_terms, smoothed_idf, weighted_average


def joined(documents: Sequence[np.ndarray]) -> np.ndarray:
    """Return the tokens of documents one after another, int32 (n_tokens,)."""
    return np.concatenate([np.zeros(0, dtype=np.int32), *documents])


def counted(documents: Sequence[np.ndarray], terms: np.ndarray) -> sp.csr_matrix:
    """Return how often each of `terms` (ascending) occurs, csr float64 (n_documents, n_terms), without other terms.

    Raises ValueError for documents that are not arrays of token ids.
    """
    documents = validated_documents(documents)
    tokens = joined(documents)
    rows = np.repeat(np.arange(len(documents)), [len(document) for document in documents])
    columns = np.searchsorted(terms, tokens).clip(max=len(terms) - 1)
    is_known = terms[columns] == tokens
    shape = (len(documents), len(terms))
    counts = sp.csr_matrix((np.ones(is_known.sum()), (rows[is_known], columns[is_known])), shape=shape)
    counts.sum_duplicates()
    return counts


def known_of(documents: Sequence[np.ndarray], word_vectors: Any) -> np.ndarray:
    """Return the terms with a vector, int32, ascending. ValueError for a token id that the vectors have no row for."""
    n_terms = len(word_vectors)
    largest = joined(documents).max(initial=-1)
    if largest >= n_terms:
        raise ValueError(
            f"word_vectors must have a row for each term: got {n_terms} for a token id {largest}"
        )
    return known_terms(word_vectors, n_terms)


def frequencies(counts: sp.csr_matrix, idf: np.ndarray | None = None) -> sp.csr_matrix:
    """Return counts (n_documents, n_terms), times idf if given, in rows that sum to 1, csr float64."""
    weighted = counts if idf is None else counts.multiply(idf).tocsr()
    totals = np.asarray(weighted.sum(axis=1)).ravel()
    shares = weighted.copy()
    shares.data = weighted.data / np.repeat(np.where(totals > 0, totals, 1), np.diff(weighted.indptr))
    return shares


@one_blas_thread()
def topical_vectors(
    counts: sp.csr_matrix,
    table: np.ndarray,
    alpha: float,
    words: np.ndarray,
    topics: np.ndarray,
    idf: np.ndarray | None = None,
) -> np.ndarray:
    """Return [sum_w f_dw v_w ; sum_w f_dw sum_k q_dwk t_k], float32 (n_documents, 2 n_dimensions).

    counts: csr (n_documents, n_terms); table: (n_terms, n_topics), p(term | topic) up to a factor of the term; words:
    v (n_terms, n_dimensions); topics: t (n_topics, n_dimensions); f are frequencies, with `idf` (n_terms,) weighted.
    """
    weights = np.ones(counts.shape[1]) if idf is None else idf
    shares = infer(counts, table, alpha, frequencies(counts, idf).data).expected
    means = weighted_average(counts, words, weights)
    return np.ascontiguousarray(np.hstack([means, shares @ topics.astype(np.float32)]), dtype=np.float32)


def idf_of(weighting: str, counts: sp.csr_matrix) -> np.ndarray:
    """Return what a term's counts are multiplied by, float64 (n_terms,): smoothed idf, or of "frequency" ones."""
    return smoothed_idf(counts) if weighting == "tfidf" else np.ones(counts.shape[1])
