"""Latent semantic indexing (LSI, LSA): truncated SVD of the weighted term-document matrix.

Source: S. Deerwester, S. Dumais, G. Furnas, T. Landauer and R. Harshman, "Indexing by latent semantic
analysis", JASIS 41(6), 1990; computed by Lanczos iteration as in R. Lehoucq, D. Sorensen and C. Yang, ARPACK
Users' Guide, SIAM, 1998, and of many documents by the randomised method of `_block_krylov.py`.
"""

import inspect
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._block_krylov import leading_singular_vectors, n_basis
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers.counts import Counts
from textbench.featurizers.lsa_pca import leading_eigenvectors
from textbench.featurizers.tfidf import TfIdf

INPUT = "counts"
WEIGHTINGS = {"tfidf": TfIdf, "counts": Counts}
ACCEPTS = {
    "n_components": "[1, inf)",
    "weighting": ("tfidf", "counts"),
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "n_components": IntDistribution(25, 800, log=True),
    "weighting": CategoricalDistribution(list(WEIGHTINGS)),
    "normalize": CategoricalDistribution([False, True]),
}
# Rounding in float32 is about 1e-7 of the largest singular value; below this share a direction is noise.
RANK_TOLERANCE = 1e-5
# Beyond so many weights the decomposition is randomised, in three passes over them.
LARGE = 10_000_000


class Lsi(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Latent semantic indexing: documents are W V_k, with W = U S V^T the weighted matrix.

    `weighting`: "tfidf" (sublinear, smoothed, unit length: the defaults of `TfIdf`) or "counts".
    `n_components`: the number of directions kept; it is clipped to the rank of the training matrix, since
    directions beyond it are arbitrary, and is at least 1 (zero if all weights are). `normalize`: project
    documents onto the unit sphere, where inner products are cosines. `random_state`: seed of the vector that
    the iteration starts from; the decomposition is exact whatever it is, up to rounding. With more than LARGE
    weights it is randomised: singular values are at most about 1 % too small (20 Newsgroups, 200 directions).

    X: sparse csr, (n_documents, n_terms), non-negative counts. Features: dense float32, (n_documents,
    n_components); an empty document is a row of zeros. `components_`: float32, (n_components, n_terms),
    orthonormal rows, largest singular value first, the entry of largest magnitude positive;
    `singular_values_`: float32, (n_components,). Raises ValueError on unknown parameter values, negative or
    non-finite counts, another number of terms than in `fit`.

    Source: Deerwester et al. (1990).
    """

    def __init__(
        self,
        *,
        n_components: int = 200,
        weighting: str = "tfidf",
        normalize: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.weighting = weighting
        self.normalize = normalize
        self.random_state = random_state

    def fit(self, X: sp.csr_matrix, y: Any = None) -> Self:
        """Learn weights and directions from X, csr (n_documents, n_terms)."""
        check_parameters(self, ACCEPTS)
        self.weighter_ = WEIGHTINGS[self.weighting]().fit(X)
        self.n_features_in_ = self.weighter_.n_features_in_
        W = self.weighter_.transform(X)
        if W.nnz == 0:
            self.components_ = np.zeros((1, W.shape[1]), dtype=np.float32)
            self.singular_values_ = np.zeros(1, dtype=np.float32)
            return self
        s, V = self._decompose(W)
        rank = np.count_nonzero(s > RANK_TOLERANCE * s[0])
        self.components_ = np.ascontiguousarray(V.T[:rank], dtype=np.float32)
        self.singular_values_ = s[:rank].astype(np.float32)
        return self

    def _decompose(self, W: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
        """Return the leading singular values of the weights, descending, and right singular vectors, (n_terms, k)."""
        k = min(self.n_components, *W.shape)
        if W.nnz > LARGE and min(W.shape) > n_basis(k):
            return leading_singular_vectors(W, k, self.random_state)
        squares, V = leading_eigenvectors(W.astype(np.float64), k, self.random_state, centred=False)
        return np.sqrt(squares), svd_flip(None, V.T, u_based_decision=False)[1].T

    def transform(self, X: sp.csr_matrix) -> np.ndarray:
        """Return the documents in concept space: dense float32, (n_documents, n_components)."""
        check_is_fitted(self)
        features = np.ascontiguousarray(self.weighter_.transform(X) @ self.components_.T)
        return normalize(features, copy=False) if self.normalize else features

    def to_arrays(self) -> dict[str, Any]:
        """Return all that `from_arrays` needs; what the weights need is under `weighter__...`."""
        check_is_fitted(self)
        weighter = {f"weighter__{name}": value for name, value in self.weighter_.to_arrays().items()}
        learned = {"components_": self.components_, "singular_values_": self.singular_values_}
        return {**self.get_params(), **learned, **weighter}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """Return the fitted transformer that `to_arrays` described."""
        transformer = cls(**{name: arrays[name] for name in inspect.signature(cls).parameters})
        weighter = {name.removeprefix("weighter__"): value for name, value in arrays.items() if "__" in name}
        transformer.weighter_ = WEIGHTINGS[transformer.weighting].from_arrays(weighter)
        transformer.n_features_in_ = transformer.weighter_.n_features_in_
        transformer.components_ = arrays["components_"]
        transformer.singular_values_ = arrays["singular_values_"]
        return transformer

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.components_.shape[0]


def build(**params: Any) -> Lsi:
    """Return the unfitted transformer with these parameters."""
    return Lsi(**params)
