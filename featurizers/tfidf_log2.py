"""TF-IDF in bits: relative frequency times the binary logarithm of the inverse document frequency.

Source: P. Tiňo, lecture notes on document mining, section 1, equation (3); section 2 reads the weights as
each term's contribution to a cross-entropy, in bits (equation (6)).
"""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers.counts import validated_counts

INPUT = "counts"
SEARCH_SPACE: dict[str, BaseDistribution] = {}


class TfIdfLog2(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """TF-IDF in bits: x_k = N_k^i / |d^i| * log2(N / N_k), as printed, with no normalisation after it.

    N_k^i is the count of term k in document i, |d^i| the number of counted words in it, and N_k the number of
    the N training documents that have term k. A term of no training document (N_k = 0) has no idf; its weight
    is 0.

    X: sparse csr, (n_documents, n_terms), non-negative counts. Features: sparse csr float32, (n_documents,
    n_terms), in bits; an empty document is a row of zeros. `idf_`: float64, (n_terms,), in bits. Raises
    ValueError on negative or non-finite counts and another number of terms than in `fit`.

    Source: P. Tiňo, lecture notes on document mining, equation (3).
    """

    def fit(self, X: sp.csr_matrix, y: Any = None) -> Self:
        """Learn `idf_` from X, csr (n_documents, n_terms)."""
        counts = validated_counts(self, X, reset=True)
        N, T = counts.shape
        N_k = np.bincount(counts.indices, minlength=T)
        self.idf_ = np.where(N_k > 0, np.log2(N / np.maximum(N_k, 1)), 0.0)
        return self

    def transform(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Return the weights: csr float32, (n_documents, n_terms)."""
        weights = normalize(validated_counts(self, X, reset=False), norm="l1", copy=False)
        weights.data *= self.idf_[weights.indices]
        weights.eliminate_zeros()
        return weights.astype(np.float32)

    def to_arrays(self) -> dict[str, Any]:
        """Return all that `from_arrays` needs: idf and the number of terms."""
        check_is_fitted(self)
        return {"idf_": self.idf_, "n_features_in_": self.n_features_in_}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """Return the fitted transformer that `to_arrays` described."""
        transformer = cls()
        transformer.idf_ = arrays["idf_"]
        transformer.n_features_in_ = arrays["n_features_in_"]
        return transformer


def build() -> TfIdfLog2:
    """Return the unfitted transformer; it has no parameters."""
    return TfIdfLog2()
