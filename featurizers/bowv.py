"""Bag of word vectors (BoWV, gwBoWV): word vectors pooled by hard cluster, with inverse cluster frequencies.

Source: V. Gupta, H. Karnick, A. Bansal and P. Jhala, "Product classification in e-commerce using distributional
semantics", COLING 2016, section 3.2; details from its authors' code.
"""

from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.preprocessing import normalize

from textbench.featurizers._gaussian_mixture import cluster
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers._word_vectors import (
    blocks,
    cluster_sums,
    known_terms,
    n_empty,
    one_hot,
    smoothed_idf,
    stack,
)
from textbench.featurizers.counts import validated_counts

INPUT = "counts"
NEEDS = ("word_vectors",)
PAPER = "scdv-2017"
ACCEPTS = {
    "n_clusters": "[1, inf)",
    "pooling": ("mean", "sum"),
}
# The share of clusters that a document has a term of, for the forecast of memory.
FULL = 0.5
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "n_clusters": IntDistribution(10, 100, step=10),
    "pooling": CategoricalDistribution(["mean", "sum"]),
}
DOCUMENTS_AT_ONCE = 512


class Bowv(LearnedArrays, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Bag of word vectors: for each of K clusters of terms the pooled vector of the document's tokens in it.

    Terms are clustered by k-means (`n_clusters`, `random_state` its seed). `pooling`: "mean", the mean vector of the
    document's tokens in the cluster, or "sum" (the authors' code). These K * d values are divided by their length;
    then K inverse cluster frequencies follow, the sums of the tokens' idf in each cluster, divided by theirs.

    X: sparse csr, (n_documents, n_terms), non-negative counts. Features: sparse csr float32, (n_documents, n_clusters *
    n_dimensions + n_clusters), cluster by cluster; a document without a term that has a vector is a row of zeros, and
    `fit` counts them in `n_empty_documents_`. `labels_`: int32, (n_known_terms,), the clusters of the terms `terms_`
    that have a vector. Raises ValueError on unknown parameter values, fewer terms with a vector than clusters, negative
    or non-finite counts, another number of terms than in `fit`.

    Source: Gupta et al. (2016), section 3.2.
    """

    learned = ("terms_", "vectors_", "labels_", "idf_", "n_empty_documents_", "n_features_in_")

    def __init__(
        self, *, n_clusters: int = 60, pooling: str = "mean", random_state: int | None = None
    ) -> None:
        self.n_clusters = n_clusters
        self.pooling = pooling
        self.random_state = random_state

    def fit(self, X: sp.csr_matrix, y: Any = None, *, word_vectors: np.ndarray) -> Self:
        """Learn idf from X, csr (n_documents, n_terms), and clusters from word_vectors (n_terms, n_dimensions)."""
        check_parameters(self, ACCEPTS)
        counts = validated_counts(self, X, reset=True)
        self.terms_ = known_terms(word_vectors, counts.shape[1])
        self.vectors_ = np.ascontiguousarray(word_vectors[self.terms_], dtype=np.float32)
        self.labels_, _ = cluster(self.vectors_, self.n_clusters, self.random_state)
        counts = counts[:, self.terms_]
        self.idf_ = smoothed_idf(counts)
        self.n_empty_documents_ = n_empty(counts)
        return self

    def transform(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Return the bags of vectors: csr float32, (n_documents, n_clusters * n_dimensions + n_clusters)."""
        counts = validated_counts(self, X, reset=False)[:, self.terms_]
        clusters = one_hot(self.labels_, self.n_clusters)
        return stack(
            [self._pooled(counts[block], clusters) for block in blocks(counts.shape[0], DOCUMENTS_AT_ONCE)]
        )

    def _pooled(self, counts: sp.csr_matrix, clusters: sp.csr_matrix) -> sp.csr_matrix:
        sums = cluster_sums(counts, self.vectors_, clusters, np.ones(len(self.terms_)))
        if self.pooling == "mean":
            sizes = (counts @ clusters)[sums.documents, sums.clusters]
            sums = replace(sums, values=(sums.values / np.asarray(sizes).reshape(-1, 1)).astype(np.float32))
        frequencies = (counts.multiply(self.idf_).tocsr() @ clusters).astype(np.float32)
        parts = [normalize(sums.to_csr(), copy=False), normalize(frequencies, copy=False)]
        return sp.csr_matrix(sp.hstack(parts, format="csr"))

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.n_clusters * (self.vectors_.shape[1] + 1)


def megabytes(method: Bowv, n_documents: int, n_dimensions: int) -> float:
    """Return about what a run takes for so many documents: 8 bytes a value that is not zero."""
    return 8e-6 * FULL * n_documents * method.n_clusters * (n_dimensions + 1)


def build(**params: Any) -> Bowv:
    """Return the unfitted transformer with these parameters."""
    return Bowv(**params)
