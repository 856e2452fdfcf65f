"""Rankers: one file each holds a retrieval model, a function from counts to the score of every document.

To add one, write a file here; its name, with hyphens for underscores, is the ranker's name. The file holds

- a docstring whose first line says the model and its synonym, then `Source:` with paper, section and equation;
- `score(index, *, ...)`, float32 (n_queries, n_documents), higher is better, -inf for a document that is not
  retrieved; its parameters all have defaults;
- `SEARCH_SPACE`, the Optuna distributions to tune over: each key a parameter of `score` whose default lies inside;
- `NEEDS`, the names of what it reads of the index beside the counts: `features`, `term_vectors`.

Everything is sparse matrix products over all documents at once.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    Matrix: TypeAlias = "np.ndarray | csr_matrix"


@dataclass(frozen=True, eq=False)
class CollectionIndex:
    """What rankers read: counts of documents and queries over one vocabulary, learned from the documents.

    documents, queries: csr (n_documents, n_terms) and (n_queries, n_terms), counts. document_features and
    query_features: csr or dense, (n_documents, n_features) and (n_queries, n_features), a representation of both.
    term_vectors: dense (n_terms, n_features), words in the space of the documents. ValueError for shapes that
    do not fit together.
    """

    documents: "csr_matrix"
    queries: "csr_matrix"
    document_features: "Matrix | None" = None
    query_features: "Matrix | None" = None
    term_vectors: np.ndarray | None = None

    def __post_init__(self) -> None:
        n_terms = self.documents.shape[1]
        if self.queries.shape[1] != n_terms:
            raise ValueError(
                f"queries must have the documents' {n_terms} terms; received {self.queries.shape[1]}"
            )
        for name, features, n_rows in (
            ("document_features", self.document_features, self.documents.shape[0]),
            ("query_features", self.query_features, self.queries.shape[0]),
            ("term_vectors", self.term_vectors, n_terms),
        ):
            if features is not None and features.shape[0] != n_rows:
                raise ValueError(f"{name} must have {n_rows} rows; received {features.shape[0]}")

    @cached_property
    def lengths(self) -> np.ndarray:
        """Words in each document, |d|: float64 (n_documents,)."""
        return np.asarray(self.documents.sum(axis=1), dtype=np.float64).ravel()

    @cached_property
    def query_lengths(self) -> np.ndarray:
        """Known words in each query, |q|: float64 (n_queries,)."""
        return np.asarray(self.queries.sum(axis=1), dtype=np.float64).ravel()

    @cached_property
    def background(self) -> np.ndarray:
        """The collection's language model, p(w|C) = count of w / all words: float64 (n_terms,)."""
        counts = np.asarray(self.documents.sum(axis=0), dtype=np.float64).ravel()
        return counts / max(counts.sum(), 1.0)

    @cached_property
    def query_model(self) -> "csr_matrix":
        """The queries' maximum-likelihood models, P(w|q) = count / |q|: csr float64 (n_queries, n_terms)."""
        return scale_rows(self.queries, 1 / np.maximum(self.query_lengths, 1))

    @cached_property
    def postings(self) -> "csr_matrix":
        """The documents' counts by term: csr float32 (n_terms, n_documents)."""
        return self.documents.astype(np.float32).T.tocsr()

    @cached_property
    def cosines(self) -> np.ndarray:
        """Cosine of the features of every query and document: float32 (n_queries, n_documents)."""
        assert self.document_features is not None and self.query_features is not None
        return cosines(self.query_features, self.document_features)


def scale_rows(X: "csr_matrix", factors: np.ndarray) -> "csr_matrix":
    """Return diag(factors) X as csr float64; X is not modified."""
    from scipy.sparse import csr_matrix

    data = X.data * np.repeat(factors, np.diff(X.indptr))
    return csr_matrix((data.astype(np.float64), X.indices, X.indptr), shape=X.shape)


def only_matching(scores: np.ndarray, matched: np.ndarray) -> np.ndarray:
    """Return scores as float32, -inf where a document shares nothing with the query: where `matched` is False."""
    result = scores.astype(np.float32)
    result[~matched] = -np.inf
    return result


def cosines(queries: "Matrix", documents: "Matrix") -> np.ndarray:
    """Cosine of every pair of rows: float32 (n_queries, n_documents), 0 for a row of zeros. Both csr or both dense."""
    product = unit_rows(queries) @ unit_rows(documents).T
    return np.asarray(product if isinstance(product, np.ndarray) else product.toarray(), dtype=np.float32)


def unit_rows(X: "Matrix") -> "Matrix":
    """Return the rows over their Euclidean norms, float32; a row of zeros stays one. X is not modified."""
    lengths = norms(X)
    factors = 1 / np.where(lengths > 0, lengths, 1.0)
    if isinstance(X, np.ndarray):
        return (X * factors[:, None]).astype(np.float32)
    unit = X.astype(np.float32)
    unit.data *= np.repeat(factors, np.diff(X.indptr)).astype(np.float32)
    return unit


def norms(X: "Matrix") -> np.ndarray:
    """Return the Euclidean norm of each row: float64 (n_rows,)."""
    squares = np.square(X.astype(np.float64)) if isinstance(X, np.ndarray) else X.astype(np.float64).power(2)
    return np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
