"""Mixtures of von Mises-Fisher distributions as topics (MvTM): topics are regions of directions of word vectors.

Source: X. Li, J. Chi, C. Li, J. Ouyang and B. Fu, "Integrating topic modeling with word embeddings by mixtures of
vMFs", COLING 2016. Its schedule and settings are not known here; those below are ours.
"""

from collections import deque
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from textbench.featurizers._kernels import one_blas_thread
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers._topical.inference import expected_counts, infer, smoothed
from textbench.featurizers._topical.topic_em import mixtures, spheres_at_start
from textbench.featurizers._word_vectors import known_terms, n_empty
from textbench.featurizers.counts import validated_counts

INPUT = "counts"
NEEDS = ("word_vectors",)
PAPER = "scdv-2017"
ACCEPTS = {
    "n_topics": "[1, inf)",
    "n_bases": "[1, inf)",
    "alpha": "(0, inf)",
    "beta": "[0, inf)",
    "max_kappa": "(0, inf)",
    "max_iter": "[1, inf)",
}
SMOOTHING = 0.01  # of a topic's terms, as of LDA's
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "n_topics": IntDistribution(20, 200, log=True),
    "n_bases": IntDistribution(1, 5),
    "alpha": FloatDistribution(0.05, 1.0, log=True),
    "max_kappa": FloatDistribution(20.0, 1000.0, log=True),
}


class MixturesOfVonMisesFisher(
    LearnedArrays, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """MvTM: theta, the proportions of `n_topics` topics, each a mixture of von Mises-Fisher distributions of words.

    p(v_w | k) = sum_c omega_kc C(kappa_kc) exp(kappa_kc mu_kc . v_w): a topic has `n_bases` bases of its own or, with
    `overlapping`, all topics mix the same n_topics * n_bases. `max_iter` rounds of EM with the priors `alpha` (of
    documents' topics) and `beta` (of bases), from spherical k-means of the terms (`random_state`). No kappa grows
    beyond `max_kappa` (None: no limit), or small topics would close in on one frequent word. A document's theta is a
    maximum a posteriori, for training and new documents alike.

    X: sparse csr, (n_documents, n_terms), counts. Features: dense float32, (n_documents, n_topics), rows that sum to 1;
    a document without a term that has a vector is a row of zeros. `components_`: P(w | k) among the terms that have a
    vector, by the tokens expected of each topic (a density has its peak at rare words), float32 (n_topics, n_terms).
    Raises ValueError on unknown parameter values, counts that are negative or not finite, another number of terms than
    in `fit`.

    Source: Li et al. (2016); Banerjee et al. (2005), section 4.
    """

    learned = (
        "terms_",
        "table_",
        "components_",
        "means_",
        "kappas_",
        "weights_",
        "n_empty_documents_",
        "n_features_in_",
    )

    def __init__(
        self,
        *,
        n_topics: int = 80,
        n_bases: int = 1,
        overlapping: bool = False,
        alpha: float = 0.1,
        beta: float = 0.01,
        max_kappa: float | None = 200.0,
        max_iter: int = 50,
        random_state: int | None = None,
    ) -> None:
        self.n_topics = n_topics
        self.n_bases = n_bases
        self.overlapping = overlapping
        self.alpha = alpha
        self.beta = beta
        self.max_kappa = max_kappa
        self.max_iter = max_iter
        self.random_state = random_state

    @one_blas_thread()
    def fit(self, X: sp.csr_matrix, y: Any = None, *, word_vectors: np.ndarray) -> Self:
        """Learn topics of X, csr (n_documents, n_terms); word_vectors: float32 (n_terms, n_dimensions)."""
        check_parameters(self, ACCEPTS)
        counts = validated_counts(self, X, reset=True)
        self.terms_ = known_terms(word_vectors, counts.shape[1])
        counts = counts[:, self.terms_]
        self.n_empty_documents_ = n_empty(counts)
        vectors = word_vectors[self.terms_].astype(np.float64)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        n = np.asarray(counts.sum(axis=0)).ravel() + 1e-9
        start = spheres_at_start(
            vectors, n, self.n_topics, self.n_bases, overlapping=self.overlapping, seed=self.random_state
        )
        rounds = mixtures(
            counts,
            vectors,
            start,
            alpha=float(self.alpha),
            beta=float(self.beta),
            highest=np.inf if self.max_kappa is None else float(self.max_kappa),
            n_rounds=int(self.max_iter),
        )
        spheres, proportions = deque(rounds, maxlen=1).pop()
        self.means_, self.kappas_, self.weights_ = spheres.means, spheres.kappas, spheres.weights
        table = spheres.densities(vectors)[1]
        self.table_ = table.astype(np.float32)
        topics = smoothed(expected_counts(counts, table, proportions), SMOOTHING)
        self.components_ = np.zeros((self.n_topics, self.n_features_in_), dtype=np.float32)
        self.components_[:, self.terms_] = topics.T
        return self

    def transform(self, X: sp.csr_matrix) -> np.ndarray:
        """Return the proportions: dense float32, (n_documents, n_topics)."""
        counts = validated_counts(self, X, reset=False)[:, self.terms_]
        return infer(counts, self.table_, float(self.alpha)).proportions

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.components_.shape[0]


def build(**params: Any) -> MixturesOfVonMisesFisher:
    """Return the unfitted transformer with these parameters."""
    return MixturesOfVonMisesFisher(**params)
