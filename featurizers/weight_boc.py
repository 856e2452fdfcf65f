"""Weighted bag of concepts (weight-BoC): how often each cluster of terms occurs, weighted by CF-IDF.

Source: H. Kim, H. Kim and S. Cho, "Bag-of-concepts: comprehending document representation through clustering words in
distributed representation", Neurocomputing 266, 2017, section 3.
"""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, IntDistribution
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.preprocessing import normalize

from textbench.featurizers._gaussian_mixture import cluster
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers._word_vectors import known_terms, n_empty, one_hot
from textbench.featurizers.counts import validated_counts

INPUT = "counts"
NEEDS = ("word_vectors",)
PAPER = "scdv-2017"
ACCEPTS = {"n_clusters": "[1, inf)"}
SEARCH_SPACE: dict[str, BaseDistribution] = {"n_clusters": IntDistribution(50, 800, log=True)}


class WeightBoc(LearnedArrays, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Weighted bag of concepts: x_k = (N_k / sum_j N_j) ln(N / n_k), N_k tokens of concept k in the document.

    Concepts are `n_clusters` clusters of the terms by k-means on word vectors of unit length (for spherical k-means);
    n_k of the N documents in `fit` have a term of concept k. A concept of no document, or of all, has weight 0.
    `random_state`: seed of k-means.

    X: sparse csr, (n_documents, n_terms), non-negative counts. Features: sparse csr float32, (n_documents, n_clusters);
    a document without a term that has a vector is a row of zeros, and `fit` counts them in `n_empty_documents_`.
    `labels_`: int32, (n_known_terms,), the concepts of the terms `terms_` that have a vector; `idf_`: float64,
    (n_clusters,). Raises ValueError on fewer terms with a vector than clusters, negative or non-finite counts, another
    number of terms than in `fit`.

    Source: Kim et al. (2017), section 3; the number of concepts behind SCDV's row of this name is not stated.
    """

    learned = ("terms_", "labels_", "idf_", "n_empty_documents_", "n_features_in_")

    def __init__(self, *, n_clusters: int = 200, random_state: int | None = None) -> None:
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, X: sp.csr_matrix, y: Any = None, *, word_vectors: np.ndarray) -> Self:
        """Learn concepts from word_vectors (n_terms, n_dimensions) and their idf from X, csr (n_documents, n_terms)."""
        check_parameters(self, ACCEPTS)
        counts = validated_counts(self, X, reset=True)
        self.terms_ = known_terms(word_vectors, counts.shape[1])
        vectors = normalize(np.asarray(word_vectors[self.terms_], dtype=np.float32))
        self.labels_, _ = cluster(vectors, self.n_clusters, self.random_state)
        concepts = self._concepts(counts)
        n_containing = np.bincount(concepts.indices, minlength=self.n_clusters)
        self.idf_ = np.where(n_containing > 0, np.log(counts.shape[0] / np.maximum(n_containing, 1)), 0.0)
        self.n_empty_documents_ = n_empty(concepts)
        return self

    def transform(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Return the weights: csr float32, (n_documents, n_clusters)."""
        shares = normalize(self._concepts(validated_counts(self, X, reset=False)), norm="l1", copy=False)
        weights = sp.csr_matrix(shares.multiply(self.idf_), dtype=np.float32)
        weights.eliminate_zeros()
        return weights

    def _concepts(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        """Return the counts of concepts: csr float64 (n_documents, n_clusters)."""
        return counts[:, self.terms_] @ one_hot(self.labels_, self.n_clusters)

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.n_clusters


def build(**params: Any) -> WeightBoc:
    """Return the unfitted transformer with these parameters."""
    return WeightBoc(**params)
