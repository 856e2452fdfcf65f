"""Neural tensor skip-gram (NTSG-1, -2, -3): topical word embeddings whose words and topics meet in a tensor.

Source: P. Liu, X. Qiu and X. Huang, "Learning context-sensitive word embeddings with neural tensor skip-gram model",
IJCAI 2015, sections 3 and 4. What its three numbers stand for is not known here; the presets are ours.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._topical.documents import counted, idf_of, topical_vectors
from textbench.featurizers._topical.embeddings import TopicReading, Trained
from textbench.featurizers._topical.inference import smoothed
from textbench.featurizers._topical.tensor import TensorModel
from textbench.featurizers._topical.topic_vectors import mean_vectors
from textbench.featurizers._topical.topical_method import TopicalMethod

INPUT = "tokens"
NEEDS = ("word_vectors", "output_vectors", "vector_norms", "token_topics")
PAPER = "scdv-2017"
# Of the three numbers: f, the number of slices, whether there is a tensor.
VARIANTS: dict[int, tuple[str, int, bool]] = {
    1: ("linear", 1, True),
    2: ("tanh", 2, True),
    3: ("tanh", 2, False),
}
ACCEPTS = {
    "variant": (1, 2, 3),
    "activation": ("linear", "tanh", None),
    "n_slices": "[1, inf)",
    "rank": "[1, inf)",
    "window": "[1, inf)",
    "negative": "[1, inf)",
    "epochs": "[1, inf)",
    "weighting": ("frequency", "tfidf"),
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "variant": CategoricalDistribution([1, 2, 3]),
    "rank": IntDistribution(2, 20),
    "epochs": IntDistribution(1, 10),
}


class NeuralTensorSkipGram(TopicalMethod):
    """NTSG: x = [sum_w f_w v_w ; sum_w f_w sum_k q_wk t_k] with words and topics trained to predict their contexts.

    A context c of a word w with topic t is scored u . f(w' P Q t + V_c (w, t) + b_c), in `n_slices` slices, with a
    factorised tensor PQ of rank `rank` that all contexts share; it is trained like skip-gram, with `negative` samples
    in a `window`, `epochs` times from `random_state` on. Words start at the word vectors, topics at the mean vector of
    their tokens, contexts at zero. `variant` presets `activation` (f), `n_slices` and `tensor` (whether there is one):
    1 is linear with one slice, 2 tanh with two, 3 tanh with two and no tensor; each can be given by itself. Topics of
    tokens and priors are those of `token_topics`; f, with `weighting` "tfidf" times idf, and q are TWE-1's.

    X: token ids, an int32 array (n_tokens,) a document. Features: dense float32, (n_documents, 2 n_dimensions); a
    document without a term that has a vector is a row of zeros. `components_`: P(term | topic), float32 (n_topics,
    n_terms). Raises ValueError on unknown parameter values, topics of other tokens, token ids beyond the word vectors,
    documents to learn from that hold no term that has one.

    Source: Liu et al. (2015), equations (5) to (10).
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
        variant: int = 1,
        activation: str | None = None,
        n_slices: int | None = None,
        tensor: bool | None = None,
        rank: int = 10,
        window: int = 5,
        negative: int = 10,
        epochs: int = 5,
        weighting: str = "frequency",
        random_state: int | None = None,
    ) -> None:
        self.variant = variant
        self.activation = activation
        self.n_slices = n_slices
        self.tensor = tensor
        self.rank = rank
        self.window = window
        self.negative = negative
        self.epochs = epochs
        self.weighting = weighting
        self.random_state = random_state

    def _learn(self, read: TopicReading, trained: Trained, counts: sp.csr_matrix, eta: float) -> np.ndarray:
        activation, n_slices, has_tensor = VARIANTS[self.variant]
        activation = activation if self.activation is None else self.activation
        n_slices = n_slices if self.n_slices is None else self.n_slices
        has_tensor = has_tensor if self.tensor is None else self.tensor
        rng = np.random.default_rng(self.random_state)
        topics = mean_vectors(read.counts, trained.words)
        model = TensorModel.start(trained.words, topics, n_slices, self.rank, has_tensor=has_tensor, rng=rng)
        state = rng.integers(2**63, size=1).astype(np.uint64)
        is_tanh = activation == "tanh"
        model.train(
            read, self.window, self.negative, self.epochs, state, is_tanh=is_tanh, has_tensor=has_tensor
        )
        self.vectors_, self.topic_vectors_ = model.words, model.topics
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
        return 2 * self.vectors_.shape[1]


def build(**params: Any) -> NeuralTensorSkipGram:
    """Return the unfitted transformer with these parameters."""
    return NeuralTensorSkipGram(**params)
