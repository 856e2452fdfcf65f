"""Gaussian LDA: topics are normal distributions of word vectors, a document is the proportions of its topics.

Source: R. Das, M. Zaheer and C. Dyer, "Gaussian LDA for topic models with word embeddings", ACL 2015, section 3; the
sampling is partially collapsed: means and covariances are drawn once a sweep.
"""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from textbench.featurizers._kernels import one_blas_thread
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers._topical.gaussians import Prior, posterior, sampled_topics
from textbench.featurizers._topical.inference import infer, table_of
from textbench.featurizers._topical.topic_em import spheres_at_start
from textbench.featurizers._word_vectors import known_terms, n_empty
from textbench.featurizers.counts import validated_counts

INPUT = "counts"
NEEDS = ("word_vectors",)
ACCEPTS = {
    "n_topics": "[1, inf)",
    "alpha": "(0, inf)",
    "kappa": "(0, inf)",
    "shrinkage": "[0, inf)",
    "n_iter": "[0, inf)",
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "n_topics": IntDistribution(20, 200, log=True),
    "alpha": FloatDistribution(1e-2, 2.0, log=True),
    "shrinkage": FloatDistribution(0.01, 10.0, log=True),
    "n_iter": IntDistribution(10, 100, log=True),
}


class GaussianLda(LearnedArrays, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Gaussian LDA: theta, the proportions of topics v_w ~ N(mu_k, Sigma_k), with a normal inverse Wishart prior.

    `n_topics` topics, of a term at first that of the nearest of so many spherical k-means: in each of `n_iter` sweeps
    every topic's mean and covariance is drawn given the vectors of its tokens, then every token's topic with the prior
    `alpha` on documents' topics (None: one over their number). The prior mean is that of all tokens and has the weight
    of `kappa` tokens; the prior covariance is that of all tokens, with `shrinkage` times the weight of a topic of
    average size, and at least one token's: with less, topics of fewer terms than dimensions are flat and hold them for
    ever. (The authors' prior is about three times n_dimensions times the identity, against which no topic of unit
    vectors stands out, and their topics start at random.) A document's theta is a maximum a posteriori with the
    predictive densities of the last state, for training and new documents alike. `random_state`: seed of k-means and of
    the sampling.

    X: sparse csr, (n_documents, n_terms), counts. Features: dense float32, (n_documents, n_topics), rows that sum to 1;
    a document without a term that has a vector is a row of zeros. `components_`: the densities among the terms that
    have a vector, float32 (n_topics, n_terms), rows that sum to 1. Raises ValueError on unknown parameter values,
    counts that are negative, fractional or not finite, another number of terms than in `fit`.

    Source: Das et al. (2015), section 3, equation (1).
    """

    learned = ("terms_", "table_", "components_", "alpha_", "n_empty_documents_", "n_features_in_")

    def __init__(
        self,
        *,
        n_topics: int = 80,
        alpha: float | None = 0.1,
        kappa: float = 0.1,
        shrinkage: float = 1.0,
        n_iter: int = 50,
        random_state: int | None = None,
    ) -> None:
        self.n_topics = n_topics
        self.alpha = alpha
        self.kappa = kappa
        self.shrinkage = shrinkage
        self.n_iter = n_iter
        self.random_state = random_state

    @one_blas_thread()
    def fit(self, X: sp.csr_matrix, y: Any = None, *, word_vectors: np.ndarray) -> Self:
        """Sample topics of X, csr (n_documents, n_terms); word_vectors: float32 (n_terms, n_dimensions).

        Raises ValueError for counts that are not whole.
        """
        check_parameters(self, ACCEPTS)
        counts = validated_counts(self, X, reset=True)
        if np.any(counts.data != np.rint(counts.data)):
            odd = counts.data[counts.data != np.rint(counts.data)][0]
            raise ValueError(f"term counts must be whole numbers: got {odd:g}, accepted are 0, 1, 2, ...")
        self.terms_ = known_terms(word_vectors, counts.shape[1])
        counts = counts[:, self.terms_]
        self.n_empty_documents_ = n_empty(counts)
        self.alpha_ = 1 / self.n_topics if self.alpha is None else float(self.alpha)
        vectors = word_vectors[self.terms_].astype(np.float64)
        occurs = np.asarray(counts.sum(axis=0)).ravel()
        weight = max(1.0, self.shrinkage * occurs.sum() / self.n_topics)
        prior = Prior.of(vectors, occurs, float(self.kappa), weight)
        start = self._regions(vectors, occurs)
        n = sampled_topics(
            counts,
            vectors,
            prior,
            start,
            int(self.n_topics),
            self.alpha_,
            int(self.n_iter),
            self.random_state,
        )
        logs = np.column_stack([posterior(prior, vectors, own).log_predictive(vectors) for own in n.T])
        self.table_ = table_of(logs)
        density = np.exp(logs - logs.max(axis=0))
        self.components_ = np.zeros((self.n_topics, self.n_features_in_), dtype=np.float32)
        self.components_[:, self.terms_] = (density / density.sum(axis=0)).T
        return self

    def _regions(self, vectors: np.ndarray, occurs: np.ndarray) -> np.ndarray:
        """Return the nearest of n_topics spherical k-means of the terms, ints (n_terms,)."""
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        spheres = spheres_at_start(
            unit, occurs + 1e-9, int(self.n_topics), 1, overlapping=False, seed=self.random_state
        )
        return (unit @ spheres.means.T).argmax(axis=1)

    def transform(self, X: sp.csr_matrix) -> np.ndarray:
        """Return the proportions: dense float32, (n_documents, n_topics)."""
        counts = validated_counts(self, X, reset=False)[:, self.terms_]
        return infer(counts, self.table_, self.alpha_).proportions

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.components_.shape[0]


def build(**params: Any) -> GaussianLda:
    """Return the unfitted transformer with these parameters."""
    return GaussianLda(**params)
