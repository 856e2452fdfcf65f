"""Columns of documents' features: which of them most documents have, for they are quicker as dense arrays."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# A column that more than this share of the documents has is full: as a column of a float32 array it takes at most
# twice the memory of its csr entries.
FULL = 0.25


def full_columns(X: "np.ndarray | csr_matrix", share: float = FULL) -> np.ndarray:
    """Which columns of X (n_documents, n_features) more than this share of the documents have, bools (n_features,)."""
    if isinstance(X, np.ndarray):
        return np.count_nonzero(X, axis=0) > share * len(X)
    return np.bincount(X.indices, minlength=X.shape[1]) > share * X.shape[0]
