"""Feature hashing: TF-IDF of words at columns that a hash function gives, without a vocabulary.

Source: K. Weinberger, A. Dasgupta, J. Langford, A. Smola and J. Attenberg, "Feature hashing for large scale multitask
learning", ICML 2009, definition 1 (the signed hash); scikit-learn's HashingVectorizer.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers._texts import checked_texts

INPUT = "texts"
ACCEPTS = {"bits": "[1, 24]", "max_n": "[1, inf)"}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "bits": IntDistribution(10, 20),
    "max_n": IntDistribution(1, 2),
    "use_idf": CategoricalDistribution([True, False]),
}


class Hashing(LearnedArrays, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Feature hashing: phi_j = sum of xi(w) N_w over the words w with h(w) = j, times idf_j, rows of unit length.

    h has 2 to the power of `bits` values, xi is -1 or 1, both from MurmurHash3 of a word or of 2 to `max_n`
    neighbouring ones, in lower case. With `use_idf` idf_j = 1 + ln((1 + N) / (1 + n_j)), of N training documents
    of which n_j are not zero at j; without it nothing is learned.

    X: a list of strings. Features: sparse csr float32, (n_documents, 2 ** bits). `idf_`: float64, (2 ** bits,). Raises
    ValueError on parameters outside their range and on what is no list of strings.

    Source: Weinberger et al. (2009), definition 1.
    """

    learned = ("idf_",)

    def __init__(self, *, bits: int = 18, max_n: int = 1, use_idf: bool = True) -> None:
        self.bits = bits
        self.max_n = max_n
        self.use_idf = use_idf

    def fit(self, X: Sequence[str], y: Any = None) -> Self:
        """Learn the columns' idf from X, a list of strings."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Sequence[str], y: Any = None) -> sp.csr_matrix:
        """Learn the columns' idf from X, and return its weights; texts are hashed once."""
        check_parameters(self, ACCEPTS)
        counts = self._hashed(X)
        with_column = np.bincount(counts.indices, minlength=counts.shape[1])
        idf = 1.0 + np.log((1 + counts.shape[0]) / (1 + with_column))
        self.idf_ = idf if self.use_idf else np.ones(counts.shape[1])
        return self._weighed(counts)

    def transform(self, X: Sequence[str]) -> sp.csr_matrix:
        """Return the weights: csr float32, (n_documents, 2 ** bits)."""
        check_is_fitted(self)
        return self._weighed(self._hashed(X))

    def _hashed(self, X: Sequence[str]) -> sp.csr_matrix:
        hasher = HashingVectorizer(n_features=2**self.bits, ngram_range=(1, self.max_n), norm=None)
        counts = sp.csr_matrix(hasher.transform(checked_texts(X)))
        counts.eliminate_zeros()  # words of opposite signs at one column
        return counts

    def _weighed(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        weighed = counts.copy()
        weighed.data *= self.idf_[weighed.indices]
        return normalize(weighed, copy=False).astype(np.float32)

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return len(self.idf_)


def build(**params: Any) -> Hashing:
    """Return the unfitted transformer with these parameters."""
    return Hashing(**params)
