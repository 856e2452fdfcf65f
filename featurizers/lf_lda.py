"""Latent feature topics (LF-LDA, w2v-LDA): LDA whose topics mix counts with a softmax over word vectors.

Source: D. Q. Nguyen, R. Billingsley, L. Du and M. Johnson, "Improving topic models with latent feature word
representations", TACL 3 (2015), section 3, and its authors' code.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._kernels import one_blas_thread
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers._topical.documents import counted, known_of
from textbench.featurizers._topical.embeddings import read_topics
from textbench.featurizers._topical.inference import infer
from textbench.featurizers._topical.latent_features import Mixed, mixed
from textbench.featurizers._topical.token_topics import TokenTopics
from textbench.featurizers._word_vectors import n_empty

INPUT = "tokens"
NEEDS = ("word_vectors", "token_topics")
PAPER = "scdv-2017"
ACCEPTS = {
    "share": "[0, 1]",
    "alpha": "(0, inf)",
    "beta": "(0, inf)",
    "penalty": "[0, inf)",
    "n_iter": "[0, inf)",
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "share": FloatDistribution(0.0, 1.0),
    "alpha": FloatDistribution(1e-2, 2.0, log=True),
    "beta": FloatDistribution(1e-3, 1.0, log=True),
    "n_iter": IntDistribution(50, 400, log=True),
}


class LatentFeatureTopics(LearnedArrays, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """LF-LDA: theta, the proportions of topics p(w | k) = share softmax_w(v_w . t_k) + (1 - share) phi_kw.

    From the topics of `token_topics` on, `n_iter` times: the vectors t maximise the likelihood of the tokens that are
    of the softmax, less `penalty` |t|^2, and each token draws its topic and whether it is of the softmax or of the
    counts, with the priors `alpha` (of documents' topics) and `beta` (of topics' terms). The number of topics is that
    of `token_topics`; `random_state`: seed of the drawing. Theta is a maximum a posteriori given these topics, for
    training and new documents alike. (The paper begins with sweeps of its own, and samples new documents together.)

    X: token ids, an int32 array (n_tokens,) a document; tokens without a vector are left out. Features: dense float32,
    (n_documents, n_topics), rows that sum to 1; a document without a term that has a vector is a row of zeros.
    `components_`: p(w | k), float32 (n_topics, n_terms). Raises ValueError on unknown parameter values, topics of other
    tokens, token ids beyond the word vectors, documents to learn from that hold no term that has one.

    Source: Nguyen et al. (2015), equations (2) to (11).
    """

    learned = ("terms_", "components_", "topic_vectors_", "n_empty_documents_")

    def __init__(
        self,
        *,
        share: float = 0.6,
        alpha: float = 0.1,
        beta: float = 0.01,
        penalty: float = 0.01,
        n_iter: int = 200,
        random_state: int | None = None,
    ) -> None:
        self.share = share
        self.alpha = alpha
        self.beta = beta
        self.penalty = penalty
        self.n_iter = n_iter
        self.random_state = random_state

    @one_blas_thread()
    def fit(
        self, X: Sequence[np.ndarray], y: Any = None, *, word_vectors: np.ndarray, token_topics: TokenTopics
    ) -> Self:
        """Learn topics of X, token ids a document; word_vectors: float32 (n_terms, n_dimensions)."""
        check_parameters(self, ACCEPTS)
        self.terms_ = known_of(X, word_vectors)
        read = read_topics(X, self.terms_, token_topics, len(word_vectors))
        vectors = word_vectors[self.terms_]
        found: Mixed = mixed(
            read,
            vectors,
            np.zeros((read.n_topics, vectors.shape[1])),
            share=float(self.share),
            alpha=float(self.alpha),
            beta=float(self.beta),
            penalty=float(self.penalty),
            n_sweeps=int(self.n_iter),
            seed=self.random_state,
        )
        self.topic_vectors_ = found.topics.astype(np.float32)
        self.components_ = np.zeros((read.n_topics, len(word_vectors)), dtype=np.float32)
        self.components_[:, self.terms_] = found.table.T
        self.n_empty_documents_ = n_empty(counted(X, self.terms_))
        return self

    def transform(self, X: Sequence[np.ndarray]) -> np.ndarray:
        """Return the proportions: dense float32, (n_documents, n_topics)."""
        check_is_fitted(self)
        table = self.components_[:, self.terms_].T
        return infer(counted(X, self.terms_), table, float(self.alpha)).proportions

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.components_.shape[0]


def build(**params: Any) -> LatentFeatureTopics:
    """Return the unfitted transformer with these parameters."""
    return LatentFeatureTopics(**params)
