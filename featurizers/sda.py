"""Stacked denoising autoencoder (SDA): hidden units that restore a document from a corrupted one, layer on layer.

Source: X. Glorot, A. Bordes and Y. Bengio, "Domain adaptation for large-scale sentiment classification: a deep learning
approach", ICML 2011, section 3; P. Vincent, H. Larochelle, Y. Bengio and P.-A. Manzagol, "Extracting and composing
robust features with denoising autoencoders", ICML 2008, section 2.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numba
import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from scipy.special import expit
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from textbench.featurizers._dcot.kernels import beside, multiply
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers.counts import validated_counts
from textbench.featurizers.dcot import prototypes

INPUT = "counts"
ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda a: np.maximum(a, 0),
    "sigmoid": expit,
}
ACCEPTS = {
    "n_features": "[1, inf)",
    "n_hidden": "[1, inf)",
    "n_layers": "[1, inf)",
    "noise": "[0, 1)",
    "noise_above": "[0, 1)",
    "activation": ("relu", "sigmoid"),
    "learning_rate": "(0, inf)",
    "n_epochs": "[1, inf)",
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "noise": FloatDistribution(0.1, 0.9),
    "n_layers": IntDistribution(1, 3),
    "n_hidden": IntDistribution(100, 1000, log=True),
}
BATCH = 32  # documents of a step
SMALL = 1e-8  # beside squared gradients


class Autoencoder(NamedTuple):
    """h = act(W^T x + b), z = W h + c. W: (d, n_hidden), a row an input; b: (n_hidden,); c: (d,)."""

    W: np.ndarray
    b: np.ndarray
    c: np.ndarray


class StackedDenoisingAutoencoder(LearnedArrays, TransformerMixin, BaseEstimator):
    """Stacked denoising autoencoder: h_l = act(W_l^T h_(l-1) + b_l), features (x, h_1, ..., h_L), L: `n_layers`.

    x: the `n_features` terms of the highest total count, each present or not. Each layer of `n_hidden` units learns to
    restore its input from what is left when values are set to 0 with probability `noise`, in later layers
    `noise_above`: the cross-entropy of sigmoid(W h + c), the weights tied, by AdaGrad on 32 documents at a time, with
    steps of `learning_rate` over `n_epochs` passes. What is not corrupted is encoded with its values times 1 - noise.
    `activation`: "relu" or "sigmoid". h_l is divided by its largest value in training, so that a later layer reads
    values from 0 to 1. `random_state`: the seed of weights, masks and order. Departures: in Glorot's paper upper layers
    have squared errors, and all layers 5,000 units.

    X: sparse csr, (n_documents, n_terms), non-negative counts. Features: sparse csr float32, (n_documents, n_inputs +
    n_layers * n_hidden). `inputs_`: columns of X, most frequent first, (n_inputs,); `weights_0`: (n_inputs, n_hidden),
    later ones (n_hidden, n_hidden); `biases_`: (n_layers, n_hidden); `largest_`: (n_layers,). Raises ValueError on
    parameters outside their range, negative or non-finite counts, where learning diverges, and in `transform` on
    another number of terms than in `fit`.

    Source: Glorot, Bordes and Bengio (2011), section 3; Vincent et al. (2008), section 2.
    """

    learned = ("inputs_", "biases_", "largest_", "n_features_in_")

    def __init__(
        self,
        *,
        n_features: int = 5000,
        n_hidden: int = 500,
        n_layers: int = 2,
        noise: float = 0.8,
        noise_above: float = 0.3,
        activation: str = "relu",
        learning_rate: float = 0.05,
        n_epochs: int = 8,
        random_state: int | None = None,
    ) -> None:
        self.n_features = n_features
        self.n_hidden = n_hidden
        self.n_layers = n_layers
        self.noise = noise
        self.noise_above = noise_above
        self.activation = activation
        self.learning_rate = learning_rate
        self.n_epochs = n_epochs
        self.random_state = random_state

    def fit(self, X: sp.csr_matrix, y: Any = None) -> Self:
        """Learn the layers from X, csr (n_documents, n_terms)."""
        self._fit(X)
        return self

    def fit_transform(self, X: sp.csr_matrix, y: Any = None) -> sp.csr_matrix:
        """Fit to X, csr (n_documents, n_terms), and return its features."""
        return beside(*self._fit(X))

    def _fit(self, X: sp.csr_matrix) -> tuple[sp.csr_matrix, list[np.ndarray]]:
        """Learn the layers and return x and h_1, ..., h_L of the documents."""
        check_parameters(self, ACCEPTS)
        counts = validated_counts(self, X, reset=True)
        self.inputs_ = prototypes(counts, "count", self.n_features)
        x, rng = self._input(counts), np.random.default_rng(self.random_state)
        self.weights_: list[np.ndarray] = []
        layers: list[np.ndarray] = []
        biases, largest = [], []
        for k in range(self.n_layers):
            h = layers[-1] if k else x
            W, b, _ = self._learn(h, k, rng)
            code = self._code(h, W, b, k)
            largest.append(code.max() or np.float32(1))
            layers.append(code / largest[-1])
            self.weights_.append(W)
            biases.append(b)
        self.biases_, self.largest_ = np.array(biases), np.array(largest, dtype=np.float32)
        return x, layers

    def _input(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        """Return x of the documents: csr float32 (n_documents, n_inputs)."""
        x = counts[:, self.inputs_].astype(np.float32)
        x.data[:] = 1
        return x

    def _learn(self, h: "sp.csr_matrix | np.ndarray", k: int, rng: np.random.Generator) -> Autoencoder:
        """Return layer k + 1, learned from its input h, csr or dense (n, d)."""
        model = _initial(h, self.n_hidden, rng)
        squares = Autoencoder(*(np.zeros_like(part) for part in model))
        for epoch in range(1, self.n_epochs + 1):
            order = rng.permutation(h.shape[0])
            for low in range(0, len(order), BATCH):
                batch = h[order[low : low + BATCH]]
                x = batch.toarray() if isinstance(batch, sp.csr_matrix) else batch
                mask = rng.random(x.shape, dtype=np.float32) >= self._noise(k)
                with np.errstate(all="ignore"):  # what is not finite is refused below
                    _descend(model, squares, gradients(model, x, mask, self.activation), self.learning_rate)
            if not all(np.isfinite(part).all() for part in model):
                raise ValueError(
                    f"layer {k + 1} diverged in epoch {epoch} with learning_rate {self.learning_rate:g}: a smaller one "
                    "is needed"
                )
        return model

    def _noise(self, k: int) -> float:
        return self.noise_above if k else self.noise

    def _code(self, h: "sp.csr_matrix | np.ndarray", W: np.ndarray, b: np.ndarray, k: int) -> np.ndarray:
        """Return act((1 - noise) W^T h + b) of documents h, csr or dense (n, d): float32 (n, n_hidden)."""
        a = multiply(h, W) if sp.issparse(h) else h @ W
        a *= np.float32(1 - self._noise(k))
        a += b
        return ACTIVATIONS[self.activation](a)

    def transform(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Return the features: csr float32, (n_documents, n_inputs + n_layers * n_hidden)."""
        x = self._input(validated_counts(self, X, reset=False))
        layers: list[np.ndarray] = []
        for k, (W, b, largest) in enumerate(zip(self.weights_, self.biases_, self.largest_, strict=True)):
            layers.append(self._code(layers[-1] if k else x, W, b, k) / largest)
        return beside(x, layers)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the terms that are read, then h1_0, ..., hL_<n_hidden - 1>; input_features: the names of all."""
        check_is_fitted(self)
        terms = _check_feature_names_in(self, input_features)[self.inputs_]
        n_layers, n_hidden = self.biases_.shape
        hidden = [f"h{layer}_{unit}" for layer in range(1, n_layers + 1) for unit in range(n_hidden)]
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


def _initial(h: "sp.csr_matrix | np.ndarray", n_hidden: int, rng: np.random.Generator) -> Autoencoder:
    """Return what learning from h, csr or dense (n, d), starts from: it restores the inputs' means, whatever h."""
    n, d = h.shape
    widest = (6 / (d + n_hidden)) ** 0.5
    W = rng.uniform(-widest, widest, (d, n_hidden)).astype(np.float32)
    mean = (np.asarray(h.sum(axis=0, dtype=np.float64)).ravel() + 0.5) / (n + 1)
    return Autoencoder(W, np.zeros(n_hidden, np.float32), np.log(mean / (1 - mean)).astype(np.float32))


def gradients(model: Autoencoder, x: np.ndarray, mask: np.ndarray, activation: str) -> Autoencoder:
    """Return the gradient of sum_i softplus(z_i) - x_i z_i, the mean over documents, by the weights and both biases.

    x: (n, d) of 0 to 1; mask: bools (n, d), what is kept of it. With D = sigmoid(z) - x and A = (W^T D) act'(a) it is
    (mask x) A^T + D h^T for W, A for b and D for c.
    """
    W, b, c = model
    kept = x * mask
    h = ACTIVATIONS[activation](kept @ W + b)
    D = expit(h @ W.T + c)
    D -= x
    D /= x.dtype.type(len(x))
    A = (D @ W) * (h > 0 if activation == "relu" else h * (1 - h))
    return Autoencoder(kept.T @ A + D.T @ h, A.sum(axis=0), D.sum(axis=0))


def _descend(model: Autoencoder, squares: Autoencoder, slopes: Autoencoder, rate: float) -> None:
    """Take a step of AdaGrad in place: each part moves by rate times its slope over the root of its summed squares."""
    for part, square, slope in zip(model, squares, slopes, strict=True):
        _adagrad(part.ravel(), square.ravel(), slope.ravel(), part.dtype.type(rate), part.dtype.type(SMALL))


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _adagrad(part, squares, slopes, rate, small):  # type: ignore[no-untyped-def]
    for i in range(len(part)):
        squares[i] += slopes[i] * slopes[i]
        part[i] -= rate * slopes[i] / np.sqrt(squares[i] + small)


def megabytes(method: StackedDenoisingAutoencoder, n_documents: int, n_dimensions: int) -> float:
    """Return about what a run takes for the layers of so many documents: 4 bytes a value, half of them twice."""
    return 6e-6 * n_documents * method.n_layers * method.n_hidden


def build(**params: Any) -> StackedDenoisingAutoencoder:
    """Return the unfitted transformer with these parameters."""
    return StackedDenoisingAutoencoder(**params)
