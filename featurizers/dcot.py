"""Dense cohort of terms (dCoT): stacked marginalised denoising encoders from all terms to frequent ones.

Source: Z. Xu, M. Chen, K. Weinberger and F. Sha, "From sBoW to dCoT: marginalized encoders for text
representation", CIKM 2012, section 3.
"""

import copy
import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from textbench.featurizers._dcot.kernels import beside, multiply
from textbench.featurizers._dcot.solvers import FirstLayer, LayerMap, deeper_layer
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers.counts import Counts
from textbench.featurizers.tfidf import TfIdf

INPUT = "counts"
PAPER = "dcot-2012"
ACCEPTS = {
    "n_prototypes": "[1, inf)",
    # Without noise the scatter matrix is singular for more terms than documents; at 1 nothing is left to learn from.
    "noise": "(0, 1)",
    "n_layers": "[1, inf)",
    "solver": ("auto", "primal", "dual", "cg"),
    "tol": "(0, inf)",
    "max_iter": "[1, inf)",
    "prototype_rule": ("count", "df", "tfidf"),
    "ridge": "[0, inf)",
    "weighting": ("counts", "tfidf"),
    "dtype": ("float32", "float64"),
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "noise": FloatDistribution(0.05, 0.99),
    "n_layers": IntDistribution(1, 5),
    "n_prototypes": IntDistribution(100, 3000, log=True),
    "weighting": CategoricalDistribution(["counts", "tfidf"]),
    "ridge": CategoricalDistribution([0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0]),
    "squash": CategoricalDistribution([True, False]),
    "block_norm": CategoricalDistribution([False, True]),
    "include_input": CategoricalDistribution([True, False]),
}
# What a search under the paper's protocol leaves as the paper had it: counts, tanh, and x beside all z_k.
UNSEARCHED = {"weighting": "counts", "squash": True, "block_norm": False, "include_input": True}
WEIGHTINGS = {"counts": Counts, "tfidf": TfIdf}
ROUNDING = 1e-5  # of float32, after sums over a thousand prototypes


class DenseCohortOfTerms(TransformerMixin, BaseEstimator):
    """Dense cohort of terms: z_k = tanh(W_k z_(k-1) + b_k), z_0 = x, features (x, z_1, ..., z_l) (equations 7 and 8).

    W_1 predicts the prototype terms of a document, the `n_prototypes` most frequent ones, from what is left when each
    count is set to 0 with probability `noise` (1 - p in the paper), W_k for k >= 2 likewise z_(k-1) from itself; the
    constant feature of the bias is never set to 0. The expectation over the noise is taken in closed form (equation
    4; `FirstLayer` has the derivation).

    `n_prototypes` is clipped to the number of terms that occur (at least 1). `prototype_rule`: terms are ranked by
    "count", their total count, "df", the documents they occur in, or "tfidf", their sum of TF-IDF weights; the first
    of equals wins. `n_layers`: l. `solver` of the first layer: "primal" ((d+1) x (d+1), in double precision), "dual"
    (n x n), "cg" (conjugate gradients to a relative residual of `tol` in at most `max_iter` steps, with a
    ConvergenceWarning if they do not get there) or "auto", the one estimated to be fastest. `include_input`: whether
    x is among the features. `dtype`: "float32" or "float64", the precision of the solvers and weights.

    Not in the paper, and off by default: `weighting` "tfidf" takes TF-IDF weights (the defaults of `TfIdf`) for x
    instead of counts; `ridge` is added to the diagonal of E[Q], the bias excepted, which holds back terms that are
    rare; `squash` False leaves out tanh; `block_norm` gives x and each z_k less that of the empty document the
    length 1 (an empty document is then zero).

    X: sparse csr, (n_documents, n_terms), non-negative counts. Features: float32, (n_documents, n_features), csr with
    x, else dense; an empty document has x = 0, and z_1 = tanh(b_1). `prototypes_`: (r,) columns of X, most frequent
    first; `weights_`: arrays (r, n_terms), then (r, r); `biases_`: arrays (r,); `solver_`, `n_iter_` and `residual_`
    (None of a direct solver): how the first layer was solved. Raises ValueError on parameters outside their range, on
    negative or non-finite counts, and in `transform` on another number of terms than in `fit`.

    Source: Xu, Chen, Weinberger and Sha (2012), section 3, equations (1) to (8).
    """

    def __init__(
        self,
        *,
        n_prototypes: int = 1000,
        noise: float = 0.8,
        n_layers: int = 3,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 200,
        prototype_rule: str = "count",
        include_input: bool = True,
        ridge: float = 0.0,
        weighting: str = "counts",
        squash: bool = True,
        block_norm: bool = False,
        dtype: str = "float32",
    ) -> None:
        self.n_prototypes = n_prototypes
        self.noise = noise
        self.n_layers = n_layers
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.prototype_rule = prototype_rule
        self.include_input = include_input
        self.ridge = ridge
        self.weighting = weighting
        self.squash = squash
        self.block_norm = block_norm
        self.dtype = dtype

    def fit(self, X: sp.csr_matrix, y: Any = None) -> Self:
        """Learn prototypes, weights and biases from X, csr (n_documents, n_terms)."""
        self._fit(*self._prepare(X))
        return self

    def fit_transform(self, X: sp.csr_matrix, y: Any = None) -> sp.csr_matrix | np.ndarray:
        """Fit to X and return its features; the layers that `fit` went through are not computed again."""
        x, first = self._prepare(X)
        return self._features(x, self._fit(x, first))

    def fit_path(self, X: sp.csr_matrix, noises: Iterable[float]) -> Iterator[tuple[Self, list[np.ndarray]]]:
        """Yield, for each noise level, a copy of this transformer fitted there and z_1, ..., z_l of X.

        What the levels share is computed once, and `shallower` gives every smaller depth.
        """
        x, first = self._prepare(X)
        for noise in noises:
            fitted = copy.copy(self).set_params(noise=noise)
            check_parameters(fitted, ACCEPTS)
            yield fitted, fitted._extend(x, fitted._fit(x, first), self.n_layers)

    def transform(self, X: sp.csr_matrix) -> sp.csr_matrix | np.ndarray:
        """Return the features, float32, (n_documents, n_features): csr, or dense without the input."""
        x = self._input(X)
        return self._features(x, self._layers(x))

    def layers(self, X: sp.csr_matrix) -> list[np.ndarray]:
        """Return z_1, ..., z_l of the documents in X: dense arrays (n_documents, r) of the solvers' dtype."""
        return self._layers(self._input(X))

    def shallower(self, n_layers: int) -> Self:
        """Return the transformer of the first `n_layers` layers: fitting that many gives the same.

        ValueError for more than are fitted, or none.
        """
        check_is_fitted(self)
        if not 1 <= n_layers <= len(self.weights_):
            raise ValueError(
                f"n_layers must be 1 to {len(self.weights_)}, as many as are fitted: got {n_layers!r}"
            )
        shallower = copy.copy(self).set_params(n_layers=n_layers)
        shallower.weights_, shallower.biases_ = self.weights_[:n_layers], self.biases_[:n_layers]
        return shallower

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the terms' names if the input is included, then z1_<prototype>, ..., zl_<prototype>."""
        check_is_fitted(self)
        terms = _check_feature_names_in(self, input_features)
        layers = range(1, len(self.weights_) + 1)
        dense = [f"z{layer}_{term}" for layer in layers for term in terms[self.prototypes_]]
        return np.array([*(terms if self.include_input else ()), *dense], dtype=object)

    def to_arrays(self) -> dict[str, Any]:
        """Return all that `from_arrays` needs: layer k as weights_<k - 1> and biases_<k - 1>, weighter__<name>."""
        check_is_fitted(self)
        names = ("prototypes_", "solver_", "n_iter_", "residual_", "n_features_in_")
        learned = {name: getattr(self, name) for name in names}
        learned |= {f"weights_{k}": W for k, W in enumerate(self.weights_)}
        learned |= {f"biases_{k}": b for k, b in enumerate(self.biases_)}
        learned |= {f"weighter__{name}": value for name, value in self.weighter_.to_arrays().items()}
        return self.get_params() | learned

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """Return the fitted transformer that `to_arrays` described."""
        transformer = cls(**{name: arrays[name] for name in inspect.signature(cls).parameters})
        for name in ("prototypes_", "solver_", "n_iter_", "residual_", "n_features_in_"):
            setattr(transformer, name, arrays[name])
        weighter = {name.removeprefix("weighter__"): value for name, value in arrays.items() if "__" in name}
        transformer.weighter_ = WEIGHTINGS[transformer.weighting].from_arrays(weighter)
        transformer.weights_ = [arrays[f"weights_{k}"] for k in range(transformer.n_layers)]
        transformer.biases_ = [arrays[f"biases_{k}"] for k in range(transformer.n_layers)]
        return transformer

    def term_columns(
        self, terms: Sequence[str], words: Sequence[str], n_shown: int
    ) -> list[tuple[str, list[tuple[str, float]]]]:
        """Return what one-word documents are reconstructed to (figure 2): a heading and (prototype, value) pairs each.

        Values are those of the last layer, the highest first. The first column is the empty document's; from the
        others its values are subtracted. `terms`: the vocabulary, (n_terms,); `words`: some of it.
        """
        positions = {term: column for column, term in enumerate(terms)}
        documents = sp.lil_matrix((len(words) + 1, len(terms)), dtype=np.float64)
        for row, word in enumerate(words, start=1):
            documents[row, positions[word]] = 1
        values = self.layers(documents.tocsr())[-1]
        values[1:] -= values[0]
        names = [terms[column] for column in self.prototypes_]
        best = np.argsort(-values, axis=1, kind="stable")[:, :n_shown]
        return [
            (heading, [(names[k], float(row[k])) for k in order])
            for heading, row, order in zip(["(empty document)", *words], values, best, strict=True)
        ]

    def _prepare(self, X: sp.csr_matrix) -> tuple[sp.csr_matrix, FirstLayer]:
        """Check parameters and X, choose the prototypes, and return x and what all noise levels share."""
        check_parameters(self, ACCEPTS)
        self.weighter_ = WEIGHTINGS[self.weighting]().fit(X)
        self.n_features_in_ = self.weighter_.n_features_in_
        self.prototypes_ = prototypes(Counts().fit_transform(X), self.prototype_rule, self.n_prototypes)
        x = self._input(X)
        return x, FirstLayer(x, self.prototypes_)

    def _input(self, X: sp.csr_matrix) -> sp.csr_matrix:
        check_is_fitted(self)
        x = self.weighter_.transform(X).astype(self.dtype)
        x.sort_indices()
        return x

    def _fit(self, x: sp.csr_matrix, first: FirstLayer) -> list[np.ndarray]:
        """Learn every layer; return z_1, ..., z_(l-1), which had to be computed for it."""
        solution = first.solve(self.noise, self.ridge, self.solver, self.tol, self.max_iter)
        self.solver_, self.n_iter_, self.residual_ = solution.solver, solution.n_iter, solution.residual
        self.weights_: list[np.ndarray] = []
        self.biases_: list[np.ndarray] = []
        self._add(solution)
        layers: list[np.ndarray] = []
        for _ in range(1, self.n_layers):
            self._extend(x, layers, len(self.weights_))
            self._add(deeper_layer(layers[-1], self.noise, self.ridge))
        return layers

    def _add(self, solution: LayerMap) -> None:
        self.weights_.append(solution.weights)
        self.biases_.append(solution.bias)

    def _layers(self, x: sp.csr_matrix) -> list[np.ndarray]:
        return self._extend(x, [], len(self.weights_))

    def _extend(self, x: sp.csr_matrix, layers: list[np.ndarray], n_layers: int) -> list[np.ndarray]:
        """Append to z_1, ..., z_k the layers up to `n_layers`: z_k = tanh(W_k z_(k-1) + b_k) (equation 7)."""
        for k in range(len(layers), n_layers):
            W = self.weights_[k]
            z = layers[-1] @ W.T if k else multiply(x, np.ascontiguousarray(W.T))
            z += self.biases_[k]
            layers.append(np.tanh(z, out=z) if self.squash else z)
        return layers

    def _features(self, x: sp.csr_matrix, layers: list[np.ndarray]) -> sp.csr_matrix | np.ndarray:
        """Put (x, z_1, ..., z_l) side by side (equation 8), once the layers that are missing are added."""
        self._extend(x, layers, len(self.weights_))
        if self.block_norm:
            x = normalize(x)
            empty = self._layers(sp.csr_matrix((1, x.shape[1]), dtype=x.dtype))
            layers = [_directions(z, bias) for z, bias in zip(layers, empty, strict=True)]
        dense = [z.astype(np.float32, copy=False) for z in layers]
        return beside(x.astype(np.float32), dense) if self.include_input else np.hstack(dense)


def _directions(z: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """Return z - origin with rows of unit length, zero where they are equal but for rounding: (n, r)."""
    difference = z - origin
    lengths = np.linalg.norm(difference, axis=1, keepdims=True)
    lengths[lengths <= ROUNDING * np.linalg.norm(origin)] = np.inf
    return difference / lengths


def prototypes(x: sp.csr_matrix, rule: str, n_prototypes: int) -> np.ndarray:
    """Return the columns of x, the terms that rank first by the rule, best first, none that never occurs: (r,) ints."""
    weighted = TfIdf().fit_transform(x) if rule == "tfidf" else x
    values = np.ones(x.nnz) if rule == "df" else weighted.data
    mass = np.bincount(weighted.indices, weights=values, minlength=x.shape[1])
    order = np.argsort(-mass, kind="stable")
    return order[: max(1, min(n_prototypes, np.count_nonzero(mass)))]


def megabytes(method: DenseCohortOfTerms, n_documents: int, n_dimensions: int) -> float:
    """Return about what a run takes for the layers of so many documents: 6.5 bytes a value.

    Learning from 700,000 documents had 13.6 GB; a whole run, which reads the features where they lie, ended with 24 GB.
    """
    return 6.5e-6 * n_documents * method.n_layers * method.n_prototypes


def build(**params: Any) -> DenseCohortOfTerms:
    """Return the unfitted transformer with these parameters."""
    return DenseCohortOfTerms(**params)
