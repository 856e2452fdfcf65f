"""Topic embedding beside mean word vector (TopicVec, TV+MeanWV): topics are vectors that draw words near them.

Source: S. Li, T.-S. Chua, J. Zhu and C. Miao, "Generative topic embedding: a continuous representation of documents",
ACL 2016, sections 4 and 5, and its authors' code, which learns topics class by class.
"""

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

from textbench.featurizers._kernels import one_blas_thread
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers._topical.inference import infer, table_of
from textbench.featurizers._topical.topic_em import link_of, topic_vec
from textbench.featurizers._topical.topic_vectors import log_softmax
from textbench.featurizers._word_vectors import known_terms, n_empty, weighted_average
from textbench.featurizers.counts import validated_counts

INPUT = "counts"
NEEDS = ("word_vectors",)
PAPER = "scdv-2017"
USES_LABELS = {"topics": ("by_class",)}
ACCEPTS = {
    "n_topics": "[1, inf)",
    "alpha": "(0, inf)",
    "radius": "[0, inf)",
    "max_iter": "[1, inf)",
    "e_steps": "[1, inf)",
    "topics": ("shared", "by_class"),
    "amounts": ("counts", "shares"),
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "n_topics": IntDistribution(20, 200, log=True),
    "radius": FloatDistribution(1.0, 20.0),
    "amounts": CategoricalDistribution(["counts", "shares"]),
}


class TopicVec(LearnedArrays, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """TopicVec: amounts of topics, P(w | k) = P(w) exp(v_w . t_k + r_k), beside the mean word vector.

    `n_topics` vectors t within `radius` of zero, the first of them zero (the null topic), learned in `max_iter` rounds
    of variational EM with the prior `alpha`, from random unit vectors (`random_state`), on all documents ("shared"), or
    with `topics` "by_class" so many on those of each class, whose topics are put together: that reads labels, as the
    paper does. Unit word vectors make the radius a concentration; P(w) is how frequent a term is. Amounts are sum_w n_w
    pi_wk of `e_steps` steps, pi by the digamma form; of one step, which the authors' code takes, pi does not depend on
    the document. `amounts` "shares" divides them by the number of tokens. (Where the paper takes damped gradients,
    steps here are exact and no round lowers the bound.)

    X: sparse csr, (n_documents, n_terms), counts. Features: dense float32, (n_documents, n_topics + n_dimensions); a
    document without a term that has a vector is a row of zeros. `components_`: P(w | k), float32 (n_topics, n_terms).
    Raises ValueError on unknown parameter values, counts that are negative or not finite, another number of terms than
    in `fit`, and with "by_class" without labels.

    Source: Li et al. (2016), equations (4) and (13) to (16).
    """

    learned = (
        "terms_",
        "vectors_",
        "topic_vectors_",
        "log_base_",
        "components_",
        "n_empty_documents_",
        "n_features_in_",
    )

    def __init__(
        self,
        *,
        n_topics: int = 100,
        alpha: float = 0.1,
        radius: float = 7.0,
        max_iter: int = 30,
        e_steps: int = 1,
        topics: str = "shared",
        amounts: str = "counts",
        random_state: int | None = None,
    ) -> None:
        self.n_topics = n_topics
        self.alpha = alpha
        self.radius = radius
        self.max_iter = max_iter
        self.e_steps = e_steps
        self.topics = topics
        self.amounts = amounts
        self.random_state = random_state

    @one_blas_thread()
    def fit(self, X: sp.csr_matrix, y: Any = None, *, word_vectors: np.ndarray) -> Self:
        """Learn topics of X, csr (n_documents, n_terms), y (n_documents,) or an indicator where they are by class.

        word_vectors: float32 (n_terms, n_dimensions).
        """
        check_parameters(self, ACCEPTS)
        counts = validated_counts(self, X, reset=True)
        self.terms_ = known_terms(word_vectors, counts.shape[1])
        self.vectors_ = np.ascontiguousarray(word_vectors[self.terms_], dtype=np.float32)
        counts = counts[:, self.terms_]
        self.n_empty_documents_ = n_empty(counts)
        n = np.asarray(counts.sum(axis=0)).ravel() + 1e-9  # a term that never occurs is not impossible
        self.log_base_ = np.log(n / n.sum())
        rng = np.random.default_rng(self.random_state)
        learned = [self._learned(part, rng) for part in self._parts(counts, y)]
        null = np.zeros((1, self.vectors_.shape[1]))
        self.topic_vectors_ = np.vstack([null, *(topics[1:] for topics in learned)])
        self.components_ = np.zeros((len(self.topic_vectors_), self.n_features_in_), dtype=np.float32)
        self.components_[:, self.terms_] = np.exp(
            log_softmax(self.topic_vectors_, self.vectors_, self.log_base_)
        )
        return self

    def _parts(self, counts: sp.csr_matrix, y: Any) -> list[sp.csr_matrix]:
        """Return the documents that topics are learned of together; a label without any has no topics."""
        if self.topics == "shared":
            return [counts]
        if y is None:
            raise ValueError("topics by class are learned from labels: got none")
        if sp.issparse(y) or np.ndim(y) == 2:
            labels = y.toarray() if sp.issparse(y) else np.asarray(y)
            return [counts[np.flatnonzero(column)] for column in labels.T if column.any()]
        return [counts[np.flatnonzero(y == label)] for label in np.unique(y)]

    def _learned(self, counts: sp.csr_matrix, rng: np.random.Generator) -> np.ndarray:
        start = rng.normal(size=(self.n_topics, self.vectors_.shape[1]))
        start *= min(1.0, self.radius) / np.linalg.norm(start, axis=1, keepdims=True)
        start[0] = 0
        rounds = topic_vec(
            counts,
            self.vectors_,
            self.log_base_,
            start,
            alpha=float(self.alpha),
            radius=float(self.radius),
            n_rounds=int(self.max_iter),
        )
        return [topics for topics, _ in rounds][-1]

    @one_blas_thread()
    def transform(self, X: sp.csr_matrix) -> np.ndarray:
        """Return amounts and mean vectors: dense float32, (n_documents, n_topics + n_dimensions)."""
        counts = validated_counts(self, X, reset=False)[:, self.terms_]
        table = table_of(link_of(self.topic_vectors_, self.vectors_, self.log_base_))
        # From equal proportions on; the last step is the sum itself.
        amounts = infer(
            counts, table, float(self.alpha), n_steps=int(self.e_steps) - 1, is_variational=True
        ).expected
        if self.amounts == "shares":
            totals = np.asarray(counts.sum(axis=1))
            amounts = amounts / np.where(totals > 0, totals, 1)
        means = weighted_average(counts, self.vectors_, np.ones(len(self.terms_)))
        return np.ascontiguousarray(np.hstack([amounts, means]), dtype=np.float32)

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.topic_vectors_.shape[0] + self.vectors_.shape[1]


def build(**params: Any) -> TopicVec:
    """Return the unfitted transformer with these parameters."""
    return TopicVec(**params)
