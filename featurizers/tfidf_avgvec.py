"""TF-IDF average of word vectors (weight-AvgVec): each document is the idf-weighted mean of its tokens' vectors.

Source: P. Singh and A. Mukerjee, "Words are not equal: graded weighting model for building composite document vectors",
ICON 2015; the baseline of Mekala et al., EMNLP 2017, tables 1 and 3.
"""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._word_vectors import known_terms, n_empty, smoothed_idf, weighted_average
from textbench.featurizers.counts import validated_counts

INPUT = "counts"
NEEDS = ("word_vectors",)
PAPER = "scdv-2017"
SEARCH_SPACE: dict[str, BaseDistribution] = {}


class TfidfAvgVec(LearnedArrays, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """TF-IDF average of word vectors: (sum_w N_w idf_w v(w)) / (sum_w N_w idf_w), over the terms w with a vector.

    idf_w = 1 + ln((1 + N) / (1 + n_w)), with N documents in `fit` of which n_w have term w: `idf_`, float64,
    (n_known_terms,).

    X: sparse csr, (n_documents, n_terms), non-negative counts N. Features: dense float32, (n_documents, n_dimensions);
    a document without a term that has a vector is a row of zeros, and `fit` counts them in `n_empty_documents_`. Raises
    ValueError on negative or non-finite counts, another number of terms than in `fit`, word vectors that do not fit.

    Source: Singh and Mukerjee (2015); Mekala et al. (2017), section 4.1.
    """

    learned = ("terms_", "vectors_", "idf_", "n_empty_documents_", "n_features_in_")

    def fit(self, X: sp.csr_matrix, y: Any = None, *, word_vectors: np.ndarray) -> Self:
        """Learn idf from X, csr (n_documents, n_terms); take its terms' word_vectors (n_terms, n_dimensions)."""
        counts = validated_counts(self, X, reset=True)
        self.terms_ = known_terms(word_vectors, counts.shape[1])
        self.vectors_ = np.ascontiguousarray(word_vectors[self.terms_], dtype=np.float32)
        counts = counts[:, self.terms_]
        self.idf_ = smoothed_idf(counts)
        self.n_empty_documents_ = n_empty(counts)
        return self

    def transform(self, X: sp.csr_matrix) -> np.ndarray:
        """Return the averages: dense float32, (n_documents, n_dimensions)."""
        counts = validated_counts(self, X, reset=False)[:, self.terms_]
        return weighted_average(counts, self.vectors_, self.idf_)

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.vectors_.shape[1]


def build() -> TfidfAvgVec:
    """Return the unfitted transformer; it has no parameters."""
    return TfidfAvgVec()
