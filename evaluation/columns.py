"""Columns of documents' features: which of them most documents have, for they are quicker as dense arrays."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

VALUES = 50_000_000  # whose columns are counted at once: counting makes a copy of them
# A column that more than this share of the documents has is full: as a column of a float32 array it takes at most
# twice the memory of its csr entries.
FULL = 0.25


def full_columns(X: "np.ndarray | csr_matrix", share: float = FULL) -> np.ndarray:
    """Which columns of X (n_documents, n_features) more than this share of the documents have, bools (n_features,)."""
    return column_counts(X) > share * X.shape[0]


def column_counts(X: "np.ndarray | csr_matrix") -> np.ndarray:
    """How many documents of X (n_documents, n_features) have each column, ints (n_features,)."""
    if isinstance(X, np.ndarray):
        return np.count_nonzero(X, axis=0)
    counts = np.zeros(X.shape[1], dtype=np.int64)
    for start in range(0, len(X.indices), VALUES):
        counts += np.bincount(X.indices[start : start + VALUES], minlength=X.shape[1])
    return counts


def row_blocks(n_rows: int, size: int) -> list[slice]:
    """Return slices of at most `size` rows that cover all, one at least."""
    return [slice(start, start + size) for start in range(0, max(n_rows, 1), size)]
