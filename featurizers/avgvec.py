"""Average of word vectors: each document is the mean of its tokens' vectors.

Source: the baseline AvgVec of D. Mekala, V. Gupta, B. Paranjape and H. Karnick, "SCDV: Sparse Composite Document
Vectors using soft clustering over distributional representations", EMNLP 2017, table 3.
"""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._word_vectors import known_terms, n_empty, weighted_average
from textbench.featurizers.counts import validated_counts

INPUT = "counts"
NEEDS = ("word_vectors",)
PAPER = "scdv-2017"
SEARCH_SPACE: dict[str, BaseDistribution] = {}


class AvgVec(LearnedArrays, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Average of word vectors: (sum_w N_w v(w)) / (sum_w N_w), over the terms w that have a vector.

    X: sparse csr, (n_documents, n_terms), non-negative counts N. Features: dense float32, (n_documents, n_dimensions);
    a document without a term that has a vector is a row of zeros, and `fit` counts them in `n_empty_documents_`. Raises
    ValueError on negative or non-finite counts, another number of terms than in `fit`, word vectors that do not fit.

    Source: Mekala et al. (2017), section 4.1.
    """

    learned = ("terms_", "vectors_", "n_empty_documents_", "n_features_in_")

    def fit(self, X: sp.csr_matrix, y: Any = None, *, word_vectors: np.ndarray) -> Self:
        """Take word_vectors, float32 (n_terms, n_dimensions), of the terms of X, csr (n_documents, n_terms)."""
        counts = validated_counts(self, X, reset=True)
        self.terms_ = known_terms(word_vectors, counts.shape[1])
        self.vectors_ = np.ascontiguousarray(word_vectors[self.terms_], dtype=np.float32)
        self.n_empty_documents_ = n_empty(counts[:, self.terms_])
        return self

    def transform(self, X: sp.csr_matrix) -> np.ndarray:
        """Return the averages: dense float32, (n_documents, n_dimensions)."""
        counts = validated_counts(self, X, reset=False)[:, self.terms_]
        return weighted_average(counts, self.vectors_, np.ones(len(self.terms_)))

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.vectors_.shape[1]


def build() -> AvgVec:
    """Return the unfitted transformer; it has no parameters."""
    return AvgVec()
