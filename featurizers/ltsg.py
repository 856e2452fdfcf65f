"""Latent topical skip-gram (LTSG): a vector for each word in each topic, which shape the topics in turn; reconstructed.

Source: J. Law, H. H. Zhuo, J. He and E. Rong, "LTSG: Latent topical skip-gram for mutually learning topic model and
vector representations", 2017. What is known of it is that topics and vectors of words in topics are refined in turn;
the formula by which vectors change topics is ours.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._topical.documents import counted
from textbench.featurizers._topical.embeddings import TopicReading, Trained
from textbench.featurizers._topical.pairs import Pairs, documents_of_pairs, refined
from textbench.featurizers._topical.topical_method import TopicalMethod

INPUT = "tokens"
NEEDS = ("word_vectors", "output_vectors", "vector_norms", "token_topics")
PAPER = "scdv-2017"
ACCEPTS = {
    "n_rounds": "[0, inf)",
    "n_sweeps": "[0, inf)",
    "temperature": "(0, inf)",
    "window": "[1, inf)",
    "negative": "[1, inf)",
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "n_rounds": IntDistribution(1, 10),
    "temperature": FloatDistribution(0.1, 10.0, log=True),
}


class LatentTopicalSkipGram(TopicalMethod):
    """LTSG: x = sum_w f_w sum_k q_wk x_wk, f a document's frequencies, q = P(topic | term, document).

    x_wk starts at the word's vector, for the words and topics that `token_topics` has together. Then, `n_rounds` times:
    one pass of skip-gram (`negative` samples in a `window`) in which a token puts in the vector of its word in its
    topic; t_k, the mean of a topic's tokens' vectors; phi_kw ~ (C_kw + eta) exp(cos(x_wk, t_k) / `temperature`); and
    `n_sweeps` of Gibbs sampling with phi held, which after the last round is not read. Pairs that never occur have the
    word's vector. Of q what is below 0.01 is left out. `random_state`: seed of the sampling. (All but the idea of turns
    is a reconstruction.)

    X: token ids, an int32 array (n_tokens,) a document. Features: dense float32, (n_documents, n_dimensions); a
    document without a term that has a vector is a row of zeros. `components_`: phi, float32 (n_topics, n_terms). Raises
    ValueError on unknown parameter values, topics of other tokens, token ids beyond the word vectors, documents to
    learn from that hold no term that has one.

    Source: Law et al. (2017), abstract and section 1.
    """

    accepts = ACCEPTS
    learned = (
        "terms_",
        "vectors_",
        "pairs_",
        "pair_vectors_",
        "components_",
        "alpha_",
        "n_empty_documents_",
    )

    def __init__(
        self,
        *,
        n_rounds: int = 5,
        n_sweeps: int = 10,
        temperature: float = 1.0,
        window: int = 5,
        negative: int = 10,
        random_state: int | None = None,
    ) -> None:
        self.n_rounds = n_rounds
        self.n_sweeps = n_sweeps
        self.temperature = temperature
        self.window = window
        self.negative = negative
        self.random_state = random_state

    def _learn(self, read: TopicReading, trained: Trained, counts: sp.csr_matrix, eta: float) -> np.ndarray:
        pairs, phi = refined(
            read,
            trained,
            n_rounds=int(self.n_rounds),
            n_sweeps=int(self.n_sweeps),
            temperature=float(self.temperature),
            alpha=self.alpha_,
            beta=eta,
            window=int(self.window),
            negative=int(self.negative),
            seed=self.random_state,
        )
        self.vectors_, self.pairs_, self.pair_vectors_ = trained.words, pairs.numbers, pairs.vectors
        return phi

    def transform(self, X: Sequence[np.ndarray]) -> np.ndarray:
        """Return the document vectors: dense float32, (n_documents, n_dimensions)."""
        check_is_fitted(self)
        pairs = Pairs(self.pairs_, self.pair_vectors_, len(self.components_))
        return documents_of_pairs(counted(X, self.terms_), self._table, self.alpha_, self.vectors_, pairs)

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.vectors_.shape[1]


def build(**params: Any) -> LatentTopicalSkipGram:
    """Return the unfitted transformer with these parameters."""
    return LatentTopicalSkipGram(**params)
