"""Topical word embeddings (TWE-1): the mean word vector of a document beside the mean vector of its words' topics.

Source: Y. Liu, Z. Liu, T.-S. Chua and M. Sun, "Topical word embeddings", AAAI 2015, section "TWE-1", equation (4). With
`joint=True` Topic2Vec: L. Niu and X. Dai, "Topic2Vec: learning distributed representations of topics", IALP 2015.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._topical.documents import counted, idf_of, topical_vectors
from textbench.featurizers._topical.embeddings import (
    TopicReading,
    Trained,
    fitted_topics,
    trained_together,
    unit_rows,
)
from textbench.featurizers._topical.inference import smoothed
from textbench.featurizers._topical.topical_method import TopicalMethod

INPUT = "tokens"
NEEDS = ("word_vectors", "output_vectors", "vector_norms", "token_topics")
PAPER = "scdv-2017"
ACCEPTS = {
    "window": "[1, inf)",
    "negative": "[1, inf)",
    "weighting": ("frequency", "tfidf"),
    "epochs": "[1, inf)",
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "window": IntDistribution(2, 10),
    "weighting": CategoricalDistribution(["frequency", "tfidf"]),
}


class TopicalWordEmbeddings(TopicalMethod):
    """Topical word embeddings: x = [sum_w f_w v_w ; sum_w f_w sum_k q_wk t_k], words and topics side by side.

    A topic's vector t predicts the words around its tokens, as a word's vector does: it maximises what skip-gram with
    `negative` samples in a `window` tends to, exactly, with the output vectors as they are (a concave problem; the
    paper takes one stochastic pass). f are a document's frequencies, with `weighting` "tfidf" times smoothed idf, in
    sum 1; q is P(topic | term, document), of proportions by maximum a posteriori, for training and new documents alike.
    (The paper has sampled topics; q is what they are in the mean.) With `normalize` word and topic vectors have unit
    length; without, the lengths of their training. With `joint` words, topics and outputs are trained anew together,
    `epochs` times, from `random_state` (Topic2Vec). Topics and priors are those of `token_topics`.

    X: token ids, an int32 array (n_tokens,) a document. Features: dense float32, (n_documents, 2 n_dimensions); a
    document without a term that has a vector is a row of zeros. `components_`: P(term | topic), float32 (n_topics,
    n_terms). Raises ValueError on unknown parameter values, topics of other tokens, token ids beyond the word vectors,
    documents to learn from that hold no term that has one.

    Source: Liu et al. (2015), equation (4); Niu and Dai (2015).
    """

    accepts = ACCEPTS
    learned = (
        "terms_",
        "vectors_",
        "topic_vectors_",
        "components_",
        "alpha_",
        "idf_",
        "n_empty_documents_",
    )

    def __init__(
        self,
        *,
        window: int = 5,
        negative: int = 10,
        weighting: str = "frequency",
        normalize: bool = True,
        joint: bool = False,
        epochs: int = 5,
        random_state: int | None = None,
    ) -> None:
        self.window = window
        self.negative = negative
        self.weighting = weighting
        self.normalize = normalize
        self.joint = joint
        self.epochs = epochs
        self.random_state = random_state

    def _learn(self, read: TopicReading, trained: Trained, counts: sp.csr_matrix, eta: float) -> np.ndarray:
        if self.joint:
            trained, topics = trained_together(
                read, trained, self.window, self.negative, self.epochs, self.random_state
            )
        else:
            topics = fitted_topics(read, trained, self.window, self.negative)
        self.vectors_ = unit_rows(trained.words) if self.normalize else trained.words
        self.topic_vectors_ = unit_rows(topics) if self.normalize else topics.astype(np.float32)
        self.idf_ = idf_of(self.weighting, counts)
        return smoothed(read.counts, eta)

    def transform(self, X: Sequence[np.ndarray]) -> np.ndarray:
        """Return the document vectors: dense float32, (n_documents, 2 n_dimensions)."""
        check_is_fitted(self)
        counts = counted(X, self.terms_)
        return topical_vectors(
            counts, self._table, self.alpha_, self.vectors_, self.topic_vectors_, self.idf_
        )

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.vectors_.shape[1] + self.topic_vectors_.shape[1]


def build(**params: Any) -> TopicalWordEmbeddings:
    """Return the unfitted transformer with these parameters."""
    return TopicalWordEmbeddings(**params)
