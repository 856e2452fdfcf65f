"""Non-negative matrix factorisation (NMF): TF-IDF as non-negative mixtures of non-negative topics.

Source: D. Lee and H. S. Seung, "Learning the parts of objects by non-negative matrix factorization", Nature
401 (1999); computed by coordinate descent, A. Cichocki and A.-H. Phan, "Fast local algorithms for large scale
nonnegative matrix and tensor factorizations", IEICE Transactions E92-A(3), 2009, as in scikit-learn's NMF.
"""

import inspect
import warnings
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.decomposition import NMF, non_negative_factorization
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._parameters import check_parameters
from textbench.featurizers.counts import Counts
from textbench.featurizers.tfidf import TfIdf

INPUT = "counts"
WEIGHTINGS = {"tfidf": TfIdf, "counts": Counts}
ACCEPTS = {
    "n_topics": "[1, inf)",
    "weighting": ("tfidf", "counts"),
    "max_iter": "[1, inf)",
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "n_topics": IntDistribution(20, 400, log=True),
    "weighting": CategoricalDistribution(list(WEIGHTINGS)),
}
# Of the first step: mixtures are the solution of a convex problem, and must not depend on the other documents.
TOLERANCE = 1e-9
MAX_SWEEPS = 1_000


class NonNegativeFactors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Non-negative matrix factorisation: X ~ W H, W and H non-negative, least squares.

    `weighting` of X: "tfidf" (sublinear, smoothed, unit length) or "counts". `n_topics`: rows of H, clipped to
    the smaller side of X; topics that come out zero are dropped. `max_iter`: sweeps over W and H, from a
    random start (`random_state`). Features: the W that is best for H, for training and new documents alike.

    X: sparse csr, (n_documents, n_terms), non-negative counts. Features: dense float32, (n_documents,
    n_topics), non-negative; an empty document is a row of zeros. `components_`: H, float64, (n_topics, n_terms),
    rows of unit length. Raises ValueError on unknown parameter values, negative or non-finite counts, another
    number of terms than in `fit`.

    Source: Lee and Seung (1999); Cichocki and Phan (2009); scikit-learn's NMF.
    """

    def __init__(
        self,
        *,
        n_topics: int = 100,
        weighting: str = "tfidf",
        max_iter: int = 50,
        random_state: int | None = None,
    ) -> None:
        self.n_topics = n_topics
        self.weighting = weighting
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: sp.csr_matrix, y: Any = None) -> Self:
        """Learn weights and topics from X, csr (n_documents, n_terms)."""
        check_parameters(self, ACCEPTS)
        self.weighter_ = WEIGHTINGS[self.weighting]().fit(X)
        self.n_features_in_ = self.weighter_.n_features_in_
        weights = self.weighter_.transform(X).astype(np.float64)
        model = NMF(
            n_components=min(self.n_topics, *weights.shape),
            init="random",  # the start by singular vectors is NaN where the rank is short
            max_iter=self.max_iter,
            random_state=self.random_state,
        )
        topics = np.zeros((1, weights.shape[1]))
        if weights.nnz:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the last sweeps change little
                topics = model.fit(weights).components_
        lengths = np.linalg.norm(topics, axis=1)
        alive = lengths > 0
        self.components_ = topics[alive] / lengths[alive, None] if alive.any() else topics[:1]
        return self

    def transform(self, X: sp.csr_matrix) -> np.ndarray:
        """Return W: dense float32, (n_documents, n_topics)."""
        check_is_fitted(self)
        weights = self.weighter_.transform(X).astype(np.float64)
        if not weights.nnz or not self.components_.any():
            return np.zeros((weights.shape[0], len(self.components_)), dtype=np.float32)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            W, _, _ = non_negative_factorization(
                weights,
                H=self.components_,
                n_components=len(self.components_),
                update_H=False,
                tol=TOLERANCE,
                max_iter=MAX_SWEEPS,
            )
        return np.ascontiguousarray(W, dtype=np.float32)

    def to_arrays(self) -> dict[str, Any]:
        """Return all that `from_arrays` needs; what the weights need is under `weighter__...`."""
        check_is_fitted(self)
        weighter = {f"weighter__{name}": value for name, value in self.weighter_.to_arrays().items()}
        return {**self.get_params(), "components_": self.components_, **weighter}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """Return the fitted transformer that `to_arrays` described."""
        transformer = cls(**{name: arrays[name] for name in inspect.signature(cls).parameters})
        weighter = {name.removeprefix("weighter__"): value for name, value in arrays.items() if "__" in name}
        transformer.weighter_ = WEIGHTINGS[transformer.weighting].from_arrays(weighter)
        transformer.n_features_in_ = transformer.weighter_.n_features_in_
        transformer.components_ = arrays["components_"]
        return transformer

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.components_.shape[0]


def build(**params: Any) -> NonNegativeFactors:
    """Return the unfitted transformer with these parameters."""
    return NonNegativeFactors(**params)
