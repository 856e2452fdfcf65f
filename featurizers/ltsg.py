"""Latent topical skip-gram (LTSG): a vector for each word in each topic, which shape the topics in turn; reconstructed.

Source: J. Law, H. H. Zhuo, J. He and E. Rong, "LTSG: Latent topical skip-gram for mutually learning topic model and
vector representations", 2017. What is known of it is that topics and vectors of words in topics are refined in turn;
the formula by which vectors change topics is ours.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers._topical.documents import counted, known_of
from textbench.featurizers._topical.embeddings import Trained, read_topics
from textbench.featurizers._topical.pairs import Pairs, documents_of_pairs, refined
from textbench.featurizers._topical.token_topics import TokenTopics
from textbench.featurizers._word_vectors import n_empty

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


class LatentTopicalSkipGram(LearnedArrays, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """LTSG: x = sum_w f_w sum_k q_wk x_wk, f a document's frequencies, q = P(topic | term, document).

    x_wk starts at the word's vector, for the words and topics that `token_topics` has together. Then, `n_rounds` times:
    one pass of skip-gram (`negative` samples in a `window`) in which a token puts in the vector of its word in its
    topic; t_k, the mean of a topic's tokens' vectors; phi_kw ~ (C_kw + eta) exp(cos(x_wk, t_k) / `temperature`); and
    `n_sweeps` of Gibbs sampling with phi held. Pairs that never occur have the word's vector. Of q what is below 0.01
    is left out. `random_state`: seed of the sampling. (All but the idea of turns is a reconstruction.)

    X: token ids, an int32 array (n_tokens,) a document. Features: dense float32, (n_documents, n_dimensions); a
    document without a term that has a vector is a row of zeros. `components_`: phi, float32 (n_topics, n_terms). Raises
    ValueError on unknown parameter values, topics of other tokens, token ids beyond the word vectors.

    Source: Law et al. (2017), abstract and section 1.
    """

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

    def fit(
        self,
        X: Sequence[np.ndarray],
        y: Any = None,
        *,
        word_vectors: np.ndarray,
        output_vectors: np.ndarray,
        vector_norms: np.ndarray,
        token_topics: TokenTopics,
    ) -> Self:
        """Refine vectors and topics of X, token ids a document, in turn.

        word_vectors, output_vectors: float32 (n_terms, n_dimensions); vector_norms: (n_terms,).
        """
        check_parameters(self, ACCEPTS)
        self.terms_ = known_of(X, word_vectors)
        read = read_topics(X, self.terms_, token_topics, len(word_vectors))
        trained = Trained.of(word_vectors, output_vectors, vector_norms, self.terms_)
        pairs, phi = refined(
            read,
            trained,
            n_rounds=int(self.n_rounds),
            n_sweeps=int(self.n_sweeps),
            temperature=float(self.temperature),
            alpha=float(token_topics.alpha),
            beta=float(token_topics.eta),
            window=int(self.window),
            negative=int(self.negative),
            seed=self.random_state,
        )
        self.vectors_, self.pairs_, self.pair_vectors_ = trained.words, pairs.numbers, pairs.vectors
        self.components_ = np.zeros((read.n_topics, len(word_vectors)), dtype=np.float32)
        self.components_[:, self.terms_] = phi.T
        self.alpha_ = float(token_topics.alpha)
        self.n_empty_documents_ = n_empty(counted(X, self.terms_))
        return self

    def transform(self, X: Sequence[np.ndarray]) -> np.ndarray:
        """Return the document vectors: dense float32, (n_documents, n_dimensions)."""
        check_is_fitted(self)
        counts, table = counted(X, self.terms_), self.components_[:, self.terms_].T
        pairs = Pairs(self.pairs_, self.pair_vectors_, len(self.components_))
        return documents_of_pairs(counts, table, self.alpha_, self.vectors_, pairs)

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.vectors_.shape[1]


def build(**params: Any) -> LatentTopicalSkipGram:
    """Return the unfitted transformer with these parameters."""
    return LatentTopicalSkipGram(**params)
