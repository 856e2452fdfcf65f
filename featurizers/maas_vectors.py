"""Word vectors of Maas et al.: a log-linear model of documents, and of their ratings; a document is its words' sum.

Source: A. Maas, R. Daly, P. Pham, D. Huang, A. Ng and C. Potts, "Learning word vectors for sentiment analysis", ACL
2011, sections 3 and 4.
"""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from textbench.featurizers._dcot.kernels import beside, multiply
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._maas import Objective, WordVectors, of_ratings, rating_masses
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers.counts import validated_counts
from textbench.featurizers.dcot import prototypes

INPUT = "counts"
USES_LABELS = {"model": ("full",)}
ACCEPTS = {
    "model": ("semantic", "full"),
    "n_components": "[1, inf)",
    "skip_top": "[0, inf)",
    "n_terms": "[1, inf)",
    "prior": "(0, inf)",
    "ridge": "(0, inf)",
    "sentiment": "[0, inf)",
    "n_rounds": "[1, inf)",
    "beside": ("none", "bnc"),
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "prior": FloatDistribution(0.1, 10.0, log=True),
    "ridge": FloatDistribution(0.1, 10.0, log=True),
    "beside": CategoricalDistribution(["none", "bnc"]),
}
SCALE = 0.01  # of the vectors that learning starts from


class RatedWordVectors(LearnedArrays, TransformerMixin, BaseEstimator):
    """Word vectors of Maas et al.: features R^T v, v the words that a document has, of unit length.

    Documents have vectors theta_k, words phi_w (the rows of R, `n_components` numbers each) and b_w. Minimised is

        -sum_k sum_(i in k) log softmax_(w_i)(R theta_k + b) + prior sum_k |theta_k|^2 + ridge |R|^2
        - sentiment sum_k (1 / |S_k|) sum_(i in k) log p(s_k | w_i),    p(1 | w) = sigmoid(psi^T phi_w + b_c),

    by `n_rounds` of steps for the documents, then for the words. `model` "semantic" has no second line and reads no
    labels; "full" reads the classes as ratings s_k, in their order from 0 to 1; |S_k| is the number of documents on the
    same side of 0.5. (As printed the sum is maximised with the norms added; signs are read as penalties. `prior` and
    `ridge` are not given.) Words: the `n_terms` of the highest total count but for the first `skip_top`, of which one
    is always left. `beside` "bnc": the words that a document has, of unit length, stand before its vector.
    `random_state`: the seed of the vectors to start from.

    X: sparse csr, (n_documents, n_terms), non-negative counts. y: classes, (n_documents,) ints. Features: float32,
    (n_documents, n_components), dense, or csr with the words before. `words_`: columns of X, (n_words,);
    `vectors_`: R, (n_words, n_components); `ratio_`: the share of the second line in the objective's data terms, 0 of
    the semantic model. Raises ValueError on parameters outside their range, negative or non-finite counts, labels that
    are none or several a document, and in `transform` on another number of terms than in `fit`.

    Source: Maas et al. (2011), sections 3 and 4.
    """

    learned = ("words_", "vectors_", "ratio_", "n_features_in_")

    def __init__(
        self,
        *,
        model: str = "semantic",
        n_components: int = 50,
        skip_top: int = 50,
        n_terms: int = 5000,
        prior: float = 1.0,
        ridge: float = 1.0,
        sentiment: float = 1.0,
        n_rounds: int = 10,
        beside: str = "none",
        random_state: int | None = None,
    ) -> None:
        self.model = model
        self.n_components = n_components
        self.skip_top = skip_top
        self.n_terms = n_terms
        self.prior = prior
        self.ridge = ridge
        self.sentiment = sentiment
        self.n_rounds = n_rounds
        self.beside = beside
        self.random_state = random_state

    def fit(self, X: sp.csr_matrix, y: "np.ndarray | None" = None) -> Self:
        """Learn the words' vectors from X, csr (n_documents, n_terms), and for "full" the classes y, (n_documents,).

        ValueError without a class for each document where they are read.
        """
        check_parameters(self, ACCEPTS)
        counts = validated_counts(self, X, reset=True)
        ranked = prototypes(counts, "count", self.skip_top + self.n_terms)
        self.words_ = ranked[min(self.skip_top, len(ranked) - 1) :]
        read = counts[:, self.words_].astype(np.float32)
        masses = rating_masses(read, _ratings(y, len(read.indptr) - 1)) if self.model == "full" else None
        objective = Objective(read, self.prior, self.ridge, self.sentiment, masses)
        words, thetas = self._initial(read), np.zeros((read.shape[0], self.n_components), np.float32)
        for _ in range(self.n_rounds):
            objective.improve_documents(words, thetas)
            words = objective.improve_words(words, thetas)
        self.vectors_, self.ratio_ = words.R, 0.0
        if masses is not None:
            said = self.sentiment * of_ratings(words, masses)[0]
            self.ratio_ = said / max(objective.of_words(words, thetas)[0], np.finfo(float).tiny)
        return self

    def _initial(self, read: sp.csr_matrix) -> WordVectors:
        """Return small random vectors; b are the logarithms of the words' frequencies."""
        rng, shape = np.random.default_rng(self.random_state), (read.shape[1], self.n_components)
        mass = np.maximum(np.asarray(read.sum(axis=0, dtype=np.float64)).ravel(), 1)
        R, psi = (SCALE * rng.standard_normal(size, dtype=np.float32) for size in (shape, shape[1:]))
        return WordVectors(R, np.log(mass / mass.sum()).astype(np.float32), psi, np.zeros(1, np.float32))

    def transform(self, X: sp.csr_matrix) -> "np.ndarray | sp.csr_matrix":
        """Return the features: float32 (n_documents, n_components), csr with the words before them where asked for."""
        present = validated_counts(self, X, reset=False)[:, self.words_].astype(np.float32)
        present.data[:] = 1
        vectors = normalize(multiply(present, self.vectors_))
        return beside(normalize(present), [vectors]) if self.beside == "bnc" else vectors

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return v0, v1, ..., after the words where they are asked for; input_features: the names of all terms."""
        check_is_fitted(self)
        words = _check_feature_names_in(self, input_features)[self.words_]
        before = words if self.beside == "bnc" else ()
        return np.array([*before, *(f"v{k}" for k in range(self.n_components))], dtype=object)


def _ratings(y: "np.ndarray | None", n_documents: int) -> np.ndarray:
    """Return classes y, (n,) ints, as ratings from 0 to 1; 0.5 where there is but one class.

    Raises ValueError without one class for each document.
    """
    if y is None or y.ndim != 1 or len(y) != n_documents:
        given = "none" if y is None else f"those of {y.shape[0]}" if y.ndim == 1 else "several labels"
        raise ValueError(f"model full needs a class for each of {n_documents} documents: got {given}")
    low, high = y.min(), y.max()
    return np.full(len(y), 0.5) if low == high else (y - low) / (high - low)


def build(**params: Any) -> RatedWordVectors:
    """Return the unfitted transformer with these parameters."""
    return RatedWordVectors(**params)
