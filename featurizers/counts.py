"""Bag of words: how often each term occurs in the document.

Source: P. Tiňo, lecture notes on document mining, section 1, weights (ii).
"""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

INPUT = "counts"
SEARCH_SPACE: dict[str, BaseDistribution] = {}


class Counts(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Bag of words: x_k = N_k, the number of times term k occurs in the document.

    X: sparse csr, (n_documents, n_terms), non-negative counts of any numeric dtype. Features: sparse csr
    float32, (n_documents, n_terms), exact up to 2**24. Raises ValueError on negative or non-finite counts
    and, in `transform`, on another number of terms than in `fit`.

    Source: P. Tiňo, lecture notes on document mining, section 1, weights (ii).
    """

    def fit(self, X: sp.csr_matrix, y: Any = None) -> Self:
        """Check X, csr (n_documents, n_terms), and remember its number of terms."""
        validated_counts(self, X, reset=True)
        return self

    def transform(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Return the counts: csr float32, (n_documents, n_terms)."""
        return validated_counts(self, X, reset=False).astype(np.float32)

    def to_arrays(self) -> dict[str, Any]:
        """Return all that `from_arrays` needs: the number of terms."""
        check_is_fitted(self)
        return {"n_features_in_": self.n_features_in_}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """Return the fitted transformer that `to_arrays` described."""
        transformer = cls()
        transformer.n_features_in_ = arrays["n_features_in_"]
        return transformer


def build() -> Counts:
    """Return the unfitted transformer; it has no parameters."""
    return Counts()


def validated_counts(transformer: BaseEstimator, X: sp.csr_matrix, *, reset: bool) -> sp.csr_matrix:
    """Return a copy of X, csr float64 (n_documents, n_terms), without duplicates or stored zeros.

    `reset=True` (in `fit`) makes `transformer` remember the number of terms, `reset=False` (in `transform`)
    checks it. Raises ValueError on negative or non-finite counts or another number of terms, NotFittedError
    before `fit`.
    """
    if not reset:
        check_is_fitted(transformer)
    # Copied first: a change of dtype makes scipy merge duplicate entries in the caller's own matrix. Stored
    # zeros must go, or they would count as occurrences in document frequencies and become log(0) in sublinear
    # weights.
    own = X.copy() if sp.issparse(X) else X
    counts = sp.csr_matrix(
        validate_data(transformer, own, reset=reset, accept_sparse="csr", dtype=np.float64)
    )
    counts.sum_duplicates()
    counts.eliminate_zeros()
    if counts.nnz and counts.data.min() < 0:
        raise ValueError(
            f"term counts must not be negative: got {counts.data.min():g}, accepted are 0, 1, 2, ..."
        )
    return counts
