"""Marginalized stacked denoising autoencoder (mSDA): linear denoisers in closed form, each squashed for the next.

Source: M. Chen, Z. Xu, K. Weinberger and F. Sha, "Marginalized denoising autoencoders for domain adaptation", ICML
2012, section 3.
"""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from textbench.featurizers._dcot.kernels import beside, multiply
from textbench.featurizers._dcot.solvers import LayerMap, deeper_layer, solve_positive_definite
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers.counts import validated_counts
from textbench.featurizers.dcot import prototypes

INPUT = "counts"
ACCEPTS = {
    "n_features": "[1, inf)",
    # The system has as many unknowns in a row: 0.5 GB of them.
    "n_targets": "[1, 8000]",
    "noise": "(0, 1)",
    "n_layers": "[1, inf)",
    "ridge": "[0, inf)",
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "noise": FloatDistribution(0.1, 0.9),
    "n_layers": IntDistribution(1, 5),
}


class MarginalizedSDA(LearnedArrays, TransformerMixin, BaseEstimator):
    """Marginalized stacked denoising autoencoder: h_l = tanh(W_l h_(l-1) + b_l), features (x, h_1, ..., h_L).

    x: the `n_features` terms of the highest total count (None: all), each present or not, or with `binary` False their
    counts. W_1 predicts the first `n_targets` of them from what is left of x when each value is set to 0 with
    probability `noise`, W_l for l >= 2 likewise h_(l-1) from itself, the expectation over the noise in closed form;
    `ridge` is added to the diagonal of E[Q], the bias excepted; L: `n_layers`. Where x has more terms than are
    predicted, it is parted at random (`random_state`) into as many blocks as are needed to have no more terms each, and
    W_1 is the mean of the blocks' maps (section 3.4 for high dimensions). With all terms as targets a layer is
    dCoT's. Departure: the paper has 5,000 terms, five layers and all of the terms as targets.

    X: sparse csr, (n_documents, n_terms), non-negative counts. Features: sparse csr float32, (n_documents, n_inputs +
    n_layers * n_targets); an empty document has h_1 = tanh(b_1). `inputs_`: columns of X, most frequent first,
    (n_inputs,), of which the targets are the first; `weights_0`: (n_targets, n_inputs), later ones (n_targets,
    n_targets); `biases_`: (n_layers, n_targets). Raises ValueError on parameters outside their range, negative or
    non-finite counts, and in `transform` on another number of terms than in `fit`.

    Source: Chen, Xu, Weinberger and Sha (2012), section 3.
    """

    learned = ("inputs_", "biases_", "n_features_in_")

    def __init__(
        self,
        *,
        n_features: int | None = None,
        n_targets: int = 2000,
        noise: float = 0.8,
        n_layers: int = 3,
        ridge: float = 1e-5,
        binary: bool = True,
        random_state: int | None = None,
    ) -> None:
        self.n_features = n_features
        self.n_targets = n_targets
        self.noise = noise
        self.n_layers = n_layers
        self.ridge = ridge
        self.binary = binary
        self.random_state = random_state

    def fit(self, X: sp.csr_matrix, y: Any = None) -> Self:
        """Learn the layers from X, csr (n_documents, n_terms)."""
        self._fit(X)
        return self

    def fit_transform(self, X: sp.csr_matrix, y: Any = None) -> sp.csr_matrix:
        """Fit to X, csr (n_documents, n_terms), and return its features; no layer is computed twice."""
        return beside(*self._fit(X))

    def _fit(self, X: sp.csr_matrix) -> tuple[sp.csr_matrix, list[np.ndarray]]:
        """Learn the layers and return x and h_1, ..., h_L of the documents."""
        check_parameters(self, ACCEPTS)
        counts = validated_counts(self, X, reset=True)
        self.inputs_ = prototypes(counts, "count", self.n_features or counts.shape[1])
        x = self._input(counts)
        self.weights_: list[np.ndarray] = []
        biases: list[np.ndarray] = []
        layers: list[np.ndarray] = []
        for k in range(self.n_layers):
            found = deeper_layer(layers[-1], self.noise, self.ridge) if k else self._first(x)
            self.weights_.append(found.weights)
            biases.append(found.bias)
            layers.append(_squashed(layers[-1] if k else x, found.weights, found.bias))
        self.biases_ = np.array(biases)
        return x, layers

    def _input(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        """Return x of the documents: csr float32 (n_documents, n_inputs)."""
        x = counts[:, self.inputs_].astype(np.float32)
        if self.binary:
            x.data[:] = 1
        return x

    def _first(self, x: sp.csr_matrix) -> LayerMap:
        """Return the first layer, the mean of the maps of x's blocks."""
        n_inputs = x.shape[1]
        n_targets = min(self.n_targets, n_inputs)
        n_blocks = -(-n_inputs // n_targets)
        targets = x[:, :n_targets]
        if n_blocks == 1:
            return reconstruction(x, targets, self.noise, self.ridge)
        order = np.random.default_rng(self.random_state).permutation(n_inputs)
        weights = np.empty((n_targets, n_inputs), dtype=np.float32)
        bias = np.zeros(n_targets)
        for block in np.array_split(order, n_blocks):
            found = reconstruction(x[:, block], targets, self.noise, self.ridge)
            weights[:, block] = found.weights / n_blocks
            bias += found.bias / n_blocks
        return LayerMap(weights, bias.astype(np.float32), "blocks")

    def transform(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Return the features: csr float32, (n_documents, n_inputs + n_layers * n_targets)."""
        x = self._input(validated_counts(self, X, reset=False))
        layers: list[np.ndarray] = []
        for W, b in zip(self.weights_, self.biases_, strict=True):
            layers.append(_squashed(layers[-1] if layers else x, W, b))
        return beside(x, layers)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the terms that are read, then h1_<target>, ..., hL_<target>; input_features: the names of all."""
        check_is_fitted(self)
        terms = _check_feature_names_in(self, input_features)[self.inputs_]
        n_layers, n_targets = self.biases_.shape
        hidden = [f"h{layer}_{term}" for layer in range(1, n_layers + 1) for term in terms[:n_targets]]
        return np.array([*terms, *hidden], dtype=object)

    def to_arrays(self) -> dict[str, Any]:
        """Return all that `from_arrays` needs: layer k has its weights under weights_<k - 1>."""
        arrays = super().to_arrays()
        return arrays | {f"weights_{k}": W for k, W in enumerate(self.weights_)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """Return the fitted transformer that `to_arrays` described."""
        transformer = super().from_arrays(arrays)
        transformer.weights_ = [arrays[f"weights_{k}"] for k in range(len(transformer.biases_))]
        return transformer


def reconstruction(x: sp.csr_matrix, targets: sp.csr_matrix, noise: float, ridge: float) -> LayerMap:
    """Return the map from corrupted documents to targets, W = E[P] E[Q]^(-1): weights (r, d), bias (r,), of x's dtype.

    x: csr (n, d), a row a document; targets: csr (n, r). With p = 1 - noise, S the scatter matrix of x and q = (p, ...,
    p, 1), the constant feature last, E[Q] = S o (q q^T) off the diagonal and S q on it, E[P] that of targets and x with
    column b times q_b. Without the bias, which is mean(targets) - p W mean(x), documents are centred:

        W (p^2 X C X^T + p (1 - p) diag(S) + ridge I) = p Xbar C X^T,    C = I - 11^T/n,

    with documents as columns. Solved in double precision, scaled to ones on the diagonal; a term that no document has
    gets weights of zero.
    """
    n, p = x.shape[0], 1.0 - noise
    X, T = x.astype(np.float64), targets.astype(np.float64)
    mean, target_mean = (np.asarray(part.mean(axis=0)).ravel() for part in (X, T))
    A = (X.T @ X).toarray()
    scatter = np.diag(A).copy()
    A -= n * np.outer(mean, mean)
    A *= p**2
    A[np.diag_indices_from(A)] += p * (1 - p) * scatter + ridge
    diagonal = np.diag(A)
    scales = np.divide(1.0, np.sqrt(diagonal), where=scatter > 0, out=np.zeros(len(A)))
    A *= scales
    A *= scales[:, None]
    A[np.diag_indices_from(A)] = 1.0
    M = (X.T @ T).toarray() - n * np.outer(mean, target_mean)
    M *= p * scales[:, None]
    solve_positive_definite(A, M)
    M *= scales[:, None]
    bias = target_mean - p * (mean @ M)
    return LayerMap(np.ascontiguousarray(M.T, dtype=x.dtype), bias.astype(x.dtype), "primal")


def _squashed(h: "sp.csr_matrix | np.ndarray", W: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return tanh(W h + b), float32 (n, r), of documents h (n, d), csr or dense; W: (r, d), b: (r,)."""
    z = multiply(h, np.ascontiguousarray(W.T)) if sp.issparse(h) else h @ W.T
    z += b
    return np.tanh(z, out=z)


def megabytes(method: MarginalizedSDA, n_documents: int, n_dimensions: int) -> float:
    """Return about what a run takes for the layers of so many documents: 4 bytes a value, half of them twice."""
    return 6e-6 * n_documents * method.n_layers * method.n_targets


def build(**params: Any) -> MarginalizedSDA:
    """Return the unfitted transformer with these parameters."""
    return MarginalizedSDA(**params)
