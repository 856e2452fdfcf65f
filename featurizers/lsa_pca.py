"""Latent semantic analysis by covariance (principal components): TF-IDF in bits on the leading eigenvectors.

Source: P. Tiňo, lecture notes on document mining, sections 3 and 4, steps 1 to 5.
"""

import inspect
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, IntDistribution
from scipy.sparse.linalg import LinearOperator, aslinearoperator, eigsh
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._parameters import check_parameters
from textbench.featurizers.tfidf_log2 import TfIdfLog2

INPUT = "counts"
ACCEPTS = {"n_components": "[1, inf)"}
SEARCH_SPACE: dict[str, BaseDistribution] = {"n_components": IntDistribution(25, 400, log=True)}
# The weights are float32, so an eigenvalue (a square) this far below the largest is rounding.
RANK_TOLERANCE = 1e-12


class LsaPca(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Latent semantic analysis by covariance: x~ = U^T x, U leading eigenvectors of the covariance.

    x are the weights of equation (3) (`TfIdfLog2`). The covariance C, divided by N - 1, is centred, but the
    projection is not: it is printed as U^T x, which differs from principal component scores by the constant
    U^T mean(x). `n_components`, the notes' c, is clipped to the rank of C and is at least 1 (a zero direction
    if all weights are zero). `random_state`: seed of the iteration's first vector.

    X: sparse csr, (n_documents, n_terms), non-negative counts. Features: dense float32, (n_documents,
    n_components); an empty document is a row of zeros. `components_`: U^T, float32, (n_components, n_terms),
    orthonormal rows, the entry of largest magnitude positive; `explained_variance_`: the eigenvalues of C,
    float64, (n_components,), descending, in squared bits. Raises ValueError on n_components that is not a
    whole number from 1, fewer than two training documents, negative or non-finite counts, or another number
    of terms than in `fit`.

    Source: P. Tiňo, lecture notes on document mining, sections 3 and 4, steps 1 to 5.
    """

    def __init__(self, *, n_components: int = 100, random_state: int | None = None) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: sp.csr_matrix, y: Any = None) -> Self:
        """Learn weights and eigenvectors from X, csr (n_documents, n_terms).

        ValueError for fewer than two documents.
        """
        check_parameters(self, ACCEPTS)
        self.weighter_ = TfIdfLog2().fit(X)
        self.n_features_in_ = self.weighter_.n_features_in_
        x = self.weighter_.transform(X).astype(np.float64)
        N, T = x.shape
        if N < 2:
            raise ValueError(f"a covariance needs at least 2 training documents: got {N}")
        # All documents alike is the one way to have no variance, and then N_k = N or 0 makes every weight 0.
        if x.nnz == 0:
            eigenvalues, U = np.zeros(1), np.zeros((T, 1))
        else:
            scatter, U = leading_eigenvectors(x, min(self.n_components, N - 1, T), self.random_state)
            eigenvalues = scatter / (N - 1)
        self.explained_variance_ = eigenvalues
        components = svd_flip(None, U.T, u_based_decision=False)[1]
        self.components_ = np.ascontiguousarray(components, dtype=np.float32)
        return self

    def transform(self, X: sp.csr_matrix) -> np.ndarray:
        """Return U^T x of every document: dense float32, (n_documents, n_components)."""
        check_is_fitted(self)
        return np.ascontiguousarray(self.weighter_.transform(X) @ self.components_.T)

    def to_arrays(self) -> dict[str, Any]:
        """Return all that `from_arrays` needs: parameters, idf, eigenvectors and eigenvalues."""
        check_is_fitted(self)
        learned = {"components_": self.components_, "explained_variance_": self.explained_variance_}
        return {**self.get_params(), **learned, **self.weighter_.to_arrays()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """Return the fitted transformer that `to_arrays` described."""
        transformer = cls(**{name: arrays[name] for name in inspect.signature(cls).parameters})
        transformer.weighter_ = TfIdfLog2.from_arrays(arrays)
        transformer.n_features_in_ = transformer.weighter_.n_features_in_
        transformer.components_ = arrays["components_"]
        transformer.explained_variance_ = arrays["explained_variance_"]
        return transformer

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.components_.shape[0]


def leading_eigenvectors(
    x: sp.csr_matrix, n_components: int, random_state: int | None, *, centred: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues and eigenvectors of sum_i (x_i - mean) (x_i - mean)^T: Lanczos iteration (ARPACK).

    x: sparse csr float64, (n, d), not all rows equal; without `centred` the mean is left out (and x is not all
    zero), and the eigenvectors are the right singular vectors of x. Returns float64 arrays (k,), descending,
    and (d, k), k <= n_components: eigenvalues that are rounding are left out. Neither the centred rows nor the
    d x d matrix is formed; where n < d the iteration runs on the n x n Gram matrix, which has the same
    eigenvalues, and its eigenvectors are mapped back.
    """
    # Not scikit-learn's PCA: when the rank is below n_components ARPACK asks for fresh random vectors, which
    # PCA does not seed, so that equal seeds give unequal bits.
    n, d = x.shape
    rows: LinearOperator = aslinearoperator(x)
    if centred:
        mean = np.asarray(x.mean(axis=0)).reshape(1, d)
        rows = rows - aslinearoperator(np.ones((n, 1))) @ aslinearoperator(mean)
    side = rows if n < d else rows.T
    gram: LinearOperator = side @ side.T
    m = gram.shape[0]
    if 2 * n_components + 1 < m:
        values, vectors = eigsh(gram, k=n_components, rng=np.random.default_rng(random_state))
    else:  # ARPACK's basis of 2k + 1 vectors would be no smaller than the matrix
        values, vectors = np.linalg.eigh(gram @ np.eye(m))
    order = np.argsort(-values, kind="stable")[:n_components]
    order = order[values[order] > RANK_TOLERANCE * values[order[0]]]
    U = vectors[:, order] if n >= d else side.T @ vectors[:, order]
    return values[order], U / np.linalg.norm(U, axis=0)


def build(**params: Any) -> LsaPca:
    """Return the unfitted transformer with these parameters."""
    return LsaPca(**params)
