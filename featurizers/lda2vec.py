"""lda2vec: words predict their context together with their document, which is a mixture of topic vectors.

Source: C. Moody, "Mixing Dirichlet topic models and word embeddings to make lda2vec", arXiv 1605.02019, 2016, equations
(1) to (6), and its author's code.
"""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._kernels import in_parallel, one_blas_thread, shares
from textbench.featurizers._paragraph_vectors import validated_documents
from textbench.featurizers._topical.documents import counted
from textbench.featurizers._topical.embeddings import TopicReading, Trained
from textbench.featurizers._topical.inference import infer, smoothed
from textbench.featurizers._topical.mixtures import LARGEST_WEIGHT, _infer_mixtures, _train_mixtures, room_of
from textbench.featurizers._topical.skip_gram import FIRST_RATE, LAST_RATE, KnownTokens, sample_table
from textbench.featurizers._topical.topic_vectors import mean_vectors
from textbench.featurizers._topical.topical_method import TopicalMethod

INPUT = "tokens"
NEEDS = ("word_vectors", "output_vectors", "vector_norms", "token_topics")
PAPER = "scdv-2017"
ACCEPTS = {
    "prior": "[0, inf)",
    "window": "[1, inf)",
    "negative": "[1, inf)",
    "epochs": "[1, inf)",
    "infer_epochs": "[1, inf)",
    "start": ("lda", "random"),
    "features": ("vectors", "proportions"),
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "prior": CategoricalDistribution([0.0, 1.0, 200.0]),
    "epochs": IntDistribution(1, 20),
    "features": CategoricalDistribution(["vectors", "proportions"]),
}


class Lda2Vec(TopicalMethod):
    """lda2vec: e_d = sum_k p_dk t_k, p_d = softmax(a_d), where v_w + e_d predicts the words around w by skip-gram.

    Words and outputs start at the word vectors, topics t at the mean vectors of the topics of tokens; all are trained
    `epochs` times with `negative` samples in a `window`, from `random_state`. A document's weights a move once a time,
    along what all its windows ask, and along `prior` times the slope of sum_k (1 / n_topics - 1) log p_dk, which makes
    mixtures sparse; they `start` at the log of LDA's proportions (so do re-implementations) or at nothing ("random", as
    the author's code), and stay within 10 of zero. Training and new documents alike are inferred with all else held
    fixed, `infer_epochs` times, negative samples drawn by their own tokens. `features` are e ("vectors") or p. The
    number of topics is that of `token_topics`. (Plain stochastic steps; no dropout.)

    X: token ids, an int32 array (n_tokens,) a document. Features: dense float32, (n_documents, n_dimensions) or
    (n_documents, n_topics); a document without a term that has a vector is a row of zeros. `components_`: LDA's P(term
    | topic), float32 (n_topics, n_terms). Raises ValueError on unknown parameter values, topics of other tokens, token
    ids beyond the word vectors, documents to learn from that hold no term that has one.

    Source: Moody (2016), equations (1) to (6).
    """

    accepts = ACCEPTS
    learned = (
        "terms_",
        "vectors_",
        "output_vectors_",
        "topic_vectors_",
        "components_",
        "term_counts_",
        "alpha_",
        "n_empty_documents_",
    )

    def __init__(
        self,
        *,
        prior: float = 1.0,
        window: int = 5,
        negative: int = 15,
        epochs: int = 10,
        infer_epochs: int = 20,
        start: str = "lda",
        features: str = "vectors",
        random_state: int | None = None,
    ) -> None:
        self.prior = prior
        self.window = window
        self.negative = negative
        self.epochs = epochs
        self.infer_epochs = infer_epochs
        self.start = start
        self.features = features
        self.random_state = random_state

    def _learn(self, read: TopicReading, trained: Trained, counts: sp.csr_matrix, eta: float) -> np.ndarray:
        known, table = read.reading, smoothed(read.counts, eta)
        self.term_counts_ = known.counts
        self.vectors_, self.output_vectors_ = trained.words.copy(), trained.outputs.copy()
        self.topic_vectors_ = np.ascontiguousarray(mean_vectors(read.counts, trained.words), dtype=np.float32)
        state = np.random.default_rng(self.random_state).integers(2**63, size=1).astype(np.uint64)
        work = known.tokens, known.offsets, known.kept, known.table
        model = self.vectors_, self.output_vectors_, self.topic_vectors_, self._weights(counts, table)
        _train_mixtures(work, model, self._settings(learns=True), int(self.epochs), state)
        return table

    def _settings(self, *, learns: bool) -> tuple[int, int, float, float, bool, bool, float, float]:
        concentration = 1 / len(self.topic_vectors_)
        sizes = int(self.window), int(self.negative), float(self.prior), concentration
        return (*sizes, learns, learns, FIRST_RATE, LAST_RATE)

    def _weights(self, counts: sp.csr_matrix, table: np.ndarray) -> np.ndarray:
        """Return where documents' weights start, float64 (n_documents, n_topics)."""
        if self.start == "random":
            return np.zeros((counts.shape[0], len(self.topic_vectors_)))
        theta = infer(counts, table, self.alpha_).proportions
        logs = np.log(np.maximum(theta.astype(np.float64), 1e-30))
        return np.clip(logs - logs.mean(axis=1, keepdims=True), -LARGEST_WEIGHT, LARGEST_WEIGHT)

    @one_blas_thread()
    def transform(self, X: Sequence[np.ndarray]) -> np.ndarray:
        """Return e or p: dense float32, (n_documents, n_features)."""
        check_is_fitted(self)
        documents, counts = validated_documents(X), counted(X, self.terms_)
        n_terms = max([int(self.terms_.max()), *(int(d.max(initial=0)) for d in documents)]) + 1
        read = KnownTokens.of(documents, self.terms_, n_terms, 0.0)
        seeds = np.array([zlib.crc32(document.tobytes()) for document in documents], dtype=np.uint64)
        weights = self._weights(counts, self._table)
        model = self.vectors_, self.output_vectors_, self.topic_vectors_, weights
        given = (
            read.offsets,
            read.tokens,
            sample_table(self.term_counts_),
            model,
            self._settings(learns=False),
            int(self.infer_epochs),
            seeds,
        )
        longest, (n_topics, size) = int(np.diff(read.offsets).max(initial=1)), self.topic_vectors_.shape
        sizes = longest, size, n_topics, int(self.window), int(self.negative)
        in_parallel(
            _infer_mixtures,
            [(begin, end, *given, room_of(*sizes)) for begin, end in shares(read.offsets)],
        )
        weights -= weights.max(axis=1, keepdims=True)
        p = np.exp(weights)
        p /= p.sum(axis=1, keepdims=True)
        p[np.diff(read.offsets) == 0] = 0
        found = p if self.features == "proportions" else p @ self.topic_vectors_
        return np.ascontiguousarray(found, dtype=np.float32)

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        n_topics, n_dimensions = self.topic_vectors_.shape
        return n_topics if self.features == "proportions" else n_dimensions


def build(**params: Any) -> Lda2Vec:
    """Return the unfitted transformer with these parameters."""
    return Lda2Vec(**params)
