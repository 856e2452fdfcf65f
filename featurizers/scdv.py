"""Sparse composite document vectors (SCDV): idf-weighted word vectors, kept apart by soft cluster, made sparse.

Source: D. Mekala, V. Gupta, B. Paranjape and H. Karnick, "SCDV: Sparse Composite Document Vectors using soft clustering
over distributional representations", EMNLP 2017, section 3, algorithm 1; details from its authors' code.
"""

from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from textbench.featurizers._gaussian_mixture import fit_mixture
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers._word_vectors import (
    ClusterSums,
    blocks,
    cluster_sums,
    known_terms,
    n_empty,
    smoothed_idf,
    stack,
)
from textbench.featurizers.counts import validated_counts

INPUT = "counts"
NEEDS = ("word_vectors",)
PAPER = "scdv-2017"
ACCEPTS = {
    "n_clusters": "[1, inf)",
    "sparsity": "[0, 1]",
    "covariance": ("tied", "tied-spherical", "spherical", "full", "diag"),
}
# The share of values that the threshold leaves on 20 Newsgroups (section 3.3: a fifth), for the forecast of memory.
KEPT = 0.25
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "n_clusters": IntDistribution(10, 100, step=10),
    "sparsity": FloatDistribution(0.0, 0.1, step=0.01),
    "covariance": CategoricalDistribution(["tied", "tied-spherical"]),
}
# A smaller P(cluster | term) counts as none: most are far smaller, and each would cost a whole word vector.
SMALLEST_MEMBERSHIP = 1e-6
DOCUMENTS_AT_ONCE = 512


class Scdv(LearnedArrays, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """SCDV: a document is the sum over its tokens of idf(w) P(c_k | w) v(w), for clusters k = 1..K side by side.

    Word vectors are clustered by a Gaussian mixture of `n_clusters` components whose covariance is "tied" (one full
    matrix for all, the authors' code), "tied-spherical" (one variance for all, the paper's words), "spherical", "full"
    or "diag" (one each), from `random_state`. A document's vector is divided by its length; then values under
    `threshold_` in magnitude become zero: `sparsity` times (|mean smallest value| + |mean largest value|) / 2, the
    means over the documents of `fit`. (The paper's p is 100 times `sparsity`. Its code takes these means over
    training documents alone, even where idf and vectors come from all.)

    X: sparse csr, (n_documents, n_terms), non-negative counts. Features: sparse csr float32, (n_documents, n_clusters *
    n_dimensions), cluster by cluster; a document without a term that has a vector is a row of zeros, and `fit` counts
    them in `n_empty_documents_`. `memberships_`: float32, (n_terms, n_clusters), P(cluster | term), values under 1e-6
    left out; `dropped_membership_` is the most that any term lost so; rows are zero for terms without a vector. A
    cluster that dies has zero columns (RuntimeWarning). Raises ValueError on unknown parameter values, fewer terms with
    a vector than clusters, negative or non-finite counts, another number of terms than in `fit`.

    Source: Mekala et al. (2017), algorithm 1; threshold: section 3.3.
    """

    learned = (
        "terms_",
        "vectors_",
        "term_memberships_",
        "idf_",
        "threshold_",
        "dropped_membership_",
        "n_empty_documents_",
        "n_features_in_",
    )

    def __init__(
        self,
        *,
        n_clusters: int = 60,
        sparsity: float = 0.04,
        covariance: str = "tied",
        random_state: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.sparsity = sparsity
        self.covariance = covariance
        self.random_state = random_state

    def fit(self, X: sp.csr_matrix, y: Any = None, *, word_vectors: np.ndarray) -> Self:
        """Learn idf and threshold from X, csr (n_documents, n_terms), and clusters from word_vectors (n_terms, d)."""
        check_parameters(self, ACCEPTS)
        counts = validated_counts(self, X, reset=True)
        self.terms_ = known_terms(word_vectors, counts.shape[1])
        self.vectors_ = np.ascontiguousarray(word_vectors[self.terms_], dtype=np.float32)
        mixture = fit_mixture(self.vectors_, self.n_clusters, self.covariance, seed=self.random_state)
        is_dropped = mixture.memberships < SMALLEST_MEMBERSHIP
        self.dropped_membership_ = float((mixture.memberships * is_dropped).sum(axis=1).max())
        self.term_memberships_ = np.where(is_dropped, 0.0, mixture.memberships).astype(np.float32)
        counts = counts[:, self.terms_]
        self.n_empty_documents_ = n_empty(counts)
        self.idf_ = smoothed_idf(counts)
        self.threshold_ = self.sparsity * _scale(counts, *self._topics())
        return self

    def transform(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Return the sparse document vectors: csr float32, (n_documents, n_clusters * n_dimensions)."""
        counts = validated_counts(self, X, reset=False)[:, self.terms_]
        topics = self._topics()
        parts = []
        for block in blocks(counts.shape[0], DOCUMENTS_AT_ONCE):
            unit = _unit_sums(counts[block], *topics)
            keep = np.abs(unit.values) >= max(self.threshold_, np.finfo(np.float32).tiny)
            parts.append(unit.to_csr(keep))
        return stack(parts)

    @property
    def memberships_(self) -> np.ndarray:
        """P(cluster | term), float32 (n_terms, n_clusters)."""
        memberships = np.zeros((self.n_features_in_, self.n_clusters), dtype=np.float32)
        memberships[self.terms_] = self.term_memberships_
        return memberships

    def _topics(self) -> tuple[np.ndarray, sp.csr_matrix, np.ndarray]:
        return self.vectors_, sp.csr_matrix(self.term_memberships_), self.idf_

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.n_clusters * self.vectors_.shape[1]


def megabytes(method: Scdv, n_documents: int, n_dimensions: int) -> float:
    """Return about what a run takes for so many documents: 8 bytes a value that is kept."""
    return 8e-6 * KEPT * n_documents * method.n_clusters * n_dimensions


def build(**params: Any) -> Scdv:
    """Return the unfitted transformer with these parameters."""
    return Scdv(**params)


def compose(
    counts: sp.csr_matrix, word_vectors: np.ndarray, memberships: np.ndarray, idf: np.ndarray
) -> np.ndarray:
    """Return algorithm 1's document vectors before sparsifying, of unit length: float32 (n_documents, K * d), dense.

    counts: csr (n_documents, n_terms); word_vectors: (n_terms, d); memberships: (n_terms, K), P(cluster | term); idf:
    (n_terms,). Column k * d + j is dimension j in cluster k.
    """
    unit = _unit_sums(counts, word_vectors.astype(np.float32), sp.csr_matrix(memberships), idf)
    return unit.to_csr().toarray()


def _unit_sums(
    counts: sp.csr_matrix, vectors: np.ndarray, memberships: sp.csr_matrix, idf: np.ndarray
) -> ClusterSums:
    """Return algorithm 1's sums (lines 5-15), each document divided by its length."""
    sums = cluster_sums(counts, vectors, memberships, idf)
    squares = np.einsum("ij,ij->i", sums.values, sums.values, dtype=np.float64)
    lengths = np.sqrt(np.bincount(sums.documents, squares, minlength=sums.n_documents))
    lengths[lengths == 0] = 1
    return replace(sums, values=sums.values / lengths[sums.documents, None].astype(np.float32))


def _scale(counts: sp.csr_matrix, vectors: np.ndarray, memberships: sp.csr_matrix, idf: np.ndarray) -> float:
    """Return t of section 3.3: the mean over |mean of row minima| and |mean of row maxima|."""
    lows, highs = np.zeros(counts.shape[0]), np.zeros(counts.shape[0])
    for block in blocks(counts.shape[0], DOCUMENTS_AT_ONCE):
        unit = _unit_sums(counts[block], vectors, memberships, idf)
        # An attribute of a cluster the document has no term of is zero, and zero may be the row's smallest or largest.
        is_full = np.bincount(unit.documents, minlength=unit.n_documents) == unit.n_clusters
        low, high = np.where(is_full, np.inf, 0.0), np.where(is_full, -np.inf, 0.0)
        np.minimum.at(low, unit.documents, unit.values.min(axis=1))
        np.maximum.at(high, unit.documents, unit.values.max(axis=1))
        lows[block], highs[block] = low, high
    return float((abs(lows.mean()) + abs(highs.mean())) / 2)
