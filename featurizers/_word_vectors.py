"""What all methods on word vectors share: which terms have a vector, idf, and sums of vectors cluster by cluster."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

# Sums of weighted counts and their squares are float32, which ends at 3.4e38.
LARGEST_WEIGHT = 1e15


def known_terms(word_vectors: Any, n_terms: int) -> np.ndarray:
    """Return the numbers of the terms that have a vector (a row that is not zero): int32, ascending.

    Raises ValueError unless `word_vectors` is (n_terms, n_dimensions) and finite with at least one such row.
    """
    shape = np.shape(word_vectors)
    if len(shape) != 2 or shape[0] != n_terms or not shape[1]:
        raise ValueError(
            f"word_vectors must have shape ({n_terms}, n_dimensions), one row a term: got {shape}"
        )
    if not np.isfinite(word_vectors).all():
        raise ValueError("word_vectors must be finite: got NaN or infinite values")
    terms = np.flatnonzero(np.any(word_vectors, axis=1)).astype(np.int32)
    if not len(terms):
        raise ValueError(
            f"at least one term must have a word vector: got none for {n_terms} terms; lower min_count"
        )
    return terms


def n_empty(counts: sp.csr_matrix) -> int:
    """Return the number of documents without any term, rows of counts (n_documents, n_terms)."""
    return int((np.diff(counts.indptr) == 0).sum())


def smoothed_idf(counts: sp.csr_matrix) -> np.ndarray:
    """Return 1 + ln((1 + N) / (1 + n_k)), float64 (n_terms,): N documents, n_k of them with term k.

    N and n_k are of counts (n_documents, n_terms).
    """
    n_documents, n_terms = counts.shape
    return 1 + np.log((1 + n_documents) / (1 + np.bincount(counts.indices, minlength=n_terms)))


def weighted_average(counts: sp.csr_matrix, vectors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return each document's mean of its tokens' vectors, weighted by `weights` (n_terms,) >= 0: float32, dense.

    A document without terms is a row of zeros. counts: csr (n_documents, n_terms).
    """
    weighted = counts.multiply(weights).tocsr()
    total = np.asarray(weighted.sum(axis=1))
    weighted = weighted.multiply(1 / np.where(total > 0, total, 1)).tocsr()
    return np.ascontiguousarray(weighted @ vectors.astype(np.float64), dtype=np.float32)


def one_hot(labels: np.ndarray, n_clusters: int) -> sp.csr_matrix:
    """Return hard memberships of `labels` (n_terms,): csr float64 (n_terms, n_clusters), a one in each row."""
    n_terms = len(labels)
    return sp.csr_matrix((np.ones(n_terms), labels, np.arange(n_terms + 1)), shape=(n_terms, n_clusters))


@dataclass(frozen=True)
class ClusterSums:
    """Sums of word vectors by document and cluster, for the pairs of both that have a term; sorted by both.

    `values` float32 (n_pairs, n_dimensions); `documents` and `clusters` int64 (n_pairs,); `n_documents`, `n_clusters`.
    """

    values: np.ndarray
    documents: np.ndarray
    clusters: np.ndarray
    n_documents: int
    n_clusters: int

    def to_csr(self, keep: np.ndarray | None = None) -> sp.csr_matrix:
        """Return csr float32 (n_documents, n_clusters * n_dimensions), cluster by cluster; `keep` marks what stays."""
        n_dimensions = self.values.shape[1]
        kept = self.values != 0 if keep is None else keep
        columns = (self.clusters[:, None] * n_dimensions + np.arange(n_dimensions)).astype(np.int32)
        lengths = np.bincount(self.documents, kept.sum(axis=1), minlength=self.n_documents)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        shape = (self.n_documents, self.n_clusters * n_dimensions)
        return sp.csr_matrix((self.values[kept], columns[kept], offsets), shape=shape)


def cluster_sums(
    counts: sp.csr_matrix, vectors: np.ndarray, memberships: sp.csr_matrix, weights: np.ndarray
) -> ClusterSums:
    """Return the sums of weight * P(cluster | term) * vector over the tokens of each document, for each cluster.

    counts: csr (n_documents, n_terms); vectors: float32 (n_terms, n_dimensions); memberships: csr (n_terms,
    n_clusters), whose stored entries are what is worked on; weights: float64 (n_terms,). Raises ValueError for a
    weighted count beyond `LARGEST_WEIGHT`.
    """
    n_documents, n_clusters = counts.shape[0], memberships.shape[1]
    # One entry for each token type of a document and each cluster of its term.
    n_own = np.diff(memberships.indptr)[counts.indices]
    entry = np.repeat(np.arange(counts.nnz), n_own)
    first = np.cumsum(n_own) - n_own
    place = memberships.indptr[counts.indices][entry] + np.arange(len(entry)) - first[entry]
    terms = counts.indices[entry]
    share = counts.data[entry] * weights[terms] * memberships.data[place]
    if share.max(initial=0) > LARGEST_WEIGHT:
        raise ValueError(f"a weighted count must be at most {LARGEST_WEIGHT:g}: got {share.max():g}")
    document = np.repeat(np.arange(n_documents), np.diff(counts.indptr))[entry]
    pairs, row = np.unique(document * n_clusters + memberships.indices[place], return_inverse=True)
    shape = (len(pairs), counts.shape[1])
    values = sp.csr_matrix((share.astype(np.float32), (row, terms)), shape=shape) @ vectors
    return ClusterSums(values, pairs // n_clusters, pairs % n_clusters, n_documents, n_clusters)


def blocks(n_documents: int, size: int) -> list[slice]:
    """Return slices of at most `size` documents that cover all."""
    return [slice(start, start + size) for start in range(0, n_documents, size)]


def stack(parts: list[sp.csr_matrix]) -> sp.csr_matrix:
    """Return parts, blocks of rows (n_rows, n_features), in one matrix; the column numbers stay int32."""
    return parts[0] if len(parts) == 1 else sp.csr_matrix(sp.vstack(parts, format="csr"))
