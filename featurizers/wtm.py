"""Word-topic mixture (WTM): topical word embeddings whose vectors shape the topics in turn, reconstructed.

Source: X. Fu, T. Wang, J. Li, C. Yu and W. Liu, "Improving distributed word representation and topic model by
word-topic mixture model", ACML 2016. Its abstract says what is done; how is reconstructed: the steps are those of Y.
Liu et al., "Topical word embeddings", AAAI 2015, and D. Q. Nguyen et al., TACL 3 (2015).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._topical.documents import counted, topical_vectors
from textbench.featurizers._topical.embeddings import TopicReading, Trained, fitted_topics, unit_rows
from textbench.featurizers._topical.inference import infer
from textbench.featurizers._topical.latent_features import mixed
from textbench.featurizers._topical.topical_method import TopicalMethod

INPUT = "tokens"
NEEDS = ("word_vectors", "output_vectors", "vector_norms", "token_topics")
PAPER = "scdv-2017"
ACCEPTS = {
    "share": "[0, 1]",
    "n_sweeps": "[0, inf)",
    "penalty": "[0, inf)",
    "window": "[1, inf)",
    "negative": "[1, inf)",
    "features": ("vectors", "proportions"),
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "share": FloatDistribution(0.0, 1.0),
    "features": CategoricalDistribution(["vectors", "proportions"]),
}
EVERY = 10  # sweeps, after which vectors are fitted again


class WordTopicMixture(TopicalMethod):
    """WTM: TWE-1's vectors, of topics that word vectors have shaped: p(w | k) = share softmax + (1 - share) phi.

    TWE-1's topic vectors (`window`, `negative`) are moved to where the divergence of phi_k from softmax_w(v_w . t_k),
    and `penalty` |t|^2 over the topic's tokens, is least; then come `n_sweeps` of Gibbs sampling in which that softmax
    has a `share`, and every tenth moves the vectors again. With "features" "vectors" a document is [sum_w f_w v_w ;
    sum_w f_w sum_k q_wk t_k] with TWE-1's vectors of the topics in the end, with "proportions" theta. The number of
    topics and the priors are those of `token_topics`; `random_state`: seed of the sampling. (That documents are
    TWE-1's, and the order of the steps, is a reconstruction.)

    X: token ids, an int32 array (n_tokens,) a document. Features: dense float32, (n_documents, 2 n_dimensions) or
    (n_documents, n_topics); a document without a term that has a vector is a row of zeros. `components_`: p(w | k),
    float32 (n_topics, n_terms). Raises ValueError on unknown parameter values, topics of other tokens, token ids beyond
    the word vectors, documents to learn from that hold no term that has one.

    Source: Fu et al. (2016), abstract; Liu et al. (2015); Nguyen et al. (2015).
    """

    accepts = ACCEPTS
    learned = (
        "terms_",
        "vectors_",
        "topic_vectors_",
        "softmax_vectors_",
        "components_",
        "alpha_",
        "n_empty_documents_",
    )

    def __init__(
        self,
        *,
        share: float = 0.6,
        n_sweeps: int = 100,
        penalty: float = 0.01,
        window: int = 5,
        negative: int = 10,
        features: str = "vectors",
        random_state: int | None = None,
    ) -> None:
        self.share = share
        self.n_sweeps = n_sweeps
        self.penalty = penalty
        self.window = window
        self.negative = negative
        self.features = features
        self.random_state = random_state

    def _learn(self, read: TopicReading, trained: Trained, counts: sp.csr_matrix, eta: float) -> np.ndarray:
        found = mixed(
            read,
            trained.words,
            fitted_topics(read, trained, self.window, self.negative),
            share=float(self.share) if self.n_sweeps else 0.0,
            alpha=self.alpha_,
            beta=eta,
            penalty=float(self.penalty),
            n_sweeps=int(self.n_sweeps),
            seed=self.random_state,
            every=EVERY,
            of_all=True,
        )
        pairs = read.reading.tokens.astype(np.int64) * read.n_topics + found.assigned
        counts = np.bincount(pairs, minlength=read.counts.size).reshape(read.counts.shape)
        after = replace(read, topics=found.assigned, counts=counts.astype(np.float64))
        self.vectors_ = unit_rows(trained.words)
        self.topic_vectors_ = unit_rows(fitted_topics(after, trained, self.window, self.negative))
        self.softmax_vectors_ = found.topics.astype(np.float32)
        return found.table

    def transform(self, X: Sequence[np.ndarray]) -> np.ndarray:
        """Return vectors or proportions: dense float32, (n_documents, n_features)."""
        check_is_fitted(self)
        counts = counted(X, self.terms_)
        if self.features == "proportions":
            return infer(counts, self._table, self.alpha_).proportions
        return topical_vectors(counts, self._table, self.alpha_, self.vectors_, self.topic_vectors_)

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        n_topics, n_dimensions = self.topic_vectors_.shape
        return n_topics if self.features == "proportions" else 2 * n_dimensions


def build(**params: Any) -> WordTopicMixture:
    """Return the unfitted transformer with these parameters."""
    return WordTopicMixture(**params)
