"""Linear SVM by the finite Newton method in passes over very many documents.

The squared hinge loss is quadratic as long as the same documents S lie inside the margin, with the Hessian
H = I + 2C X_S' X_S over the features and a column of ones. Conjugate gradients solve H v = -gradient roughly; one
moves along v as far as the loss falls, and S changes. A pass reads every document once, in order, for all classes: the
products with X and with its transpose are those of one row while it is in the cache, so that mapped files may be
larger than memory. The preconditioner is the Hessian of a sample of the documents; it serves all classes, and its
inverse is Woodbury's where features are more than the sample. A solution is accepted only with a small duality gap.

Source: Keerthi, DeCoste, A Modified Finite Newton Method for Fast Solution of Large Scale Linear SVMs, JMLR 6 (2005);
Byrd, Chin, Neveitt, Nocedal, On the Use of Stochastic Hessian Information in Optimization Methods for Machine
Learning, SIAM Journal on Optimization 21 (2011), for the sampled Hessian.
"""

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from scipy.linalg import cho_factor, cho_solve

from textbench.evaluation.columns import full_columns, row_blocks
from textbench.evaluation.cores import in_threads
from textbench.evaluation.probes.solvers.dual_descent import REORDERED, rows_in_place
from textbench.evaluation.probes.solvers.finite_newton import GAP, line_search, way_to

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

SAMPLE = 4_000  # documents of the preconditioner
EVERY = 4  # of them is one that says how much is left in most directions
MAX_STEPS = 50  # Newton steps
ROUGH = 0.1  # the duality gap up to which the smaller C on the way to a first large one are solved
FORCING = 0.1  # conjugate gradients leave so much of the gradient, in the norm of the preconditioner
MAX_INNER = 100  # of them in a step
LANES = 4  # classes that are solved together
PARTS = 32  # of the documents, whose sums are added in their order: the same bits on however many threads


class _State(NamedTuple):
    """The classes of one group, w over the features and last the intercept: (n_features + 1, n), (n_documents, n)."""

    w: np.ndarray
    scores: np.ndarray


class StreamedNewton:
    """The binary problems of one set of documents, solved for one C after another, each from the last solution.

    minimise |w|^2/2 + b^2/2 + C sum_i max(0, 1 - y_i (w.x_i/scale + b))^2.

    X: csr or dense (n_documents, n_features), float32 or float64, mapped or not, never modified nor copied; sums are
    float64. rows: (n_documents,) ints, positions of the documents if not all of X's. No random numbers: the same bits
    each time. Memory: SAMPLE documents, and at most SAMPLE^2 float64, twice.
    """

    def __init__(self, X: "np.ndarray | csr_matrix", scale: float, rows: np.ndarray | None = None) -> None:
        every = np.arange(X.shape[0]) if rows is None else rows
        self.rows = rows_in_place(X, every, scale)
        self.shape = (len(every), X.shape[1])
        some = every[np.unique(np.linspace(0, len(every) - 1, SAMPLE).astype(np.intp))]
        self.hessian = _SampledHessian(X[some], len(every), scale)
        self._last: dict[int, _State] = {}

    def solve_all(
        self, positive: np.ndarray, C: float, max_iter: int
    ) -> list[tuple[np.ndarray, float, bool]]:
        """Solve each problem: (coefficients (n_features,) for x as given, intercept, whether it converged).

        positive: bools (n_documents, n_problems), the same at each call. max_iter: Newton steps.
        """
        solved: list[tuple[np.ndarray, float, bool]] = []
        for group in row_blocks(positive.shape[1], LANES):
            state, converged = self._follow(group.start, positive[:, group], C, min(max_iter, MAX_STEPS))
            coefficients = state.w[:-1] * self.rows.factor
            solved += zip(coefficients.T, state.w[-1].tolist(), converged.tolist(), strict=True)
        return solved

    def _follow(
        self, group: int, positive: np.ndarray, C: float, max_steps: int
    ) -> tuple[_State, np.ndarray]:
        """Solve a group of classes from its last solutions, or from 0 by way of smaller C: which converged."""
        sign = np.where(positive, 1.0, -1.0)
        if group not in self._last:
            state = _State(np.zeros((self.shape[1] + 1, sign.shape[1])), np.zeros(sign.shape))
            for before in way_to(C, self.hessian.mean_square):
                self._solve(state, sign, before, max_steps, ROUGH)
            self._last[group] = state
        return self._last[group], self._solve(self._last[group], sign, C, max_steps, GAP)

    def _solve(
        self, state: _State, sign: np.ndarray, C: float, max_steps: int, least_gap: float
    ) -> np.ndarray:
        """Newton steps, which change the state, until each duality gap is small: which converged."""
        w, scores = state
        left = np.arange(sign.shape[1])
        inverse: Callable[[np.ndarray], np.ndarray] | None = None
        for _ in range(max_steps):
            slack = np.maximum(0.0, 1.0 - sign[:, left] * scores[:, left])
            gradient = w[:, left] - 2 * C * self._transposed(sign[:, left] * slack)
            gaps = _relative_gaps(w[:, left], gradient, slack, C)
            some = gaps > least_gap
            left, gradient, inside = left[some], gradient[:, some], slack[:, some] > 0
            if not len(left):
                break
            if inverse is None:
                inverse = self.hessian.inverse(2 * C * float(inside.mean()))
            way, change = self._step(gradient, inside, C, inverse)
            for k, one in enumerate(left):
                slope, curve = float(w[:, one] @ way[:, k]), float(way[:, k] @ way[:, k])
                t = line_search(sign[:, one], scores[:, one], change[:, k], slope, curve, C)
                w[:, one] += t * way[:, k]
                scores[:, one] += t * change[:, k]
        return ~np.isin(np.arange(sign.shape[1]), left)

    def _step(
        self,
        gradient: np.ndarray,
        inside: np.ndarray,
        C: float,
        inverse: Callable[[np.ndarray], np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Solve H v = -gradient roughly by preconditioned conjugate gradients: v, and the scores along it."""
        v, change = np.zeros_like(gradient), np.zeros(inside.shape)
        rest = -gradient
        scaled = inverse(rest)
        way, size = scaled, np.einsum("ij,ij->j", rest, scaled)
        wanted, left = FORCING**2 * size, np.arange(gradient.shape[1])
        for _ in range(MAX_INNER):
            forward = way[:, left]
            along, curved = self._curved(forward, inside[:, left])
            curved = forward + 2 * C * curved
            length = size[left] / np.einsum("ij,ij->j", forward, curved)
            v[:, left] += length * forward
            change[:, left] += length * along
            rest[:, left] -= length * curved
            scaled = inverse(rest[:, left])
            new_size = np.einsum("ij,ij->j", rest[:, left], scaled)
            way[:, left] = scaled + new_size / size[left] * forward
            size[left] = new_size
            left = left[new_size > wanted[left]]
            if not len(left):
                break
        return v, change

    def _curved(self, w: np.ndarray, inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The scores X w (n_documents, n), and X_S' of them (n_features + 1, n), in one pass."""
        n, scores = w.shape[1], np.empty((len(inside), LANES))
        w, inside = _in_lanes(w), _in_lanes(inside)
        parts = in_threads(
            lambda part: _multiply_both(self.rows, w, inside, part[0], part[1], scores), self._parts()
        )
        return scores[:, :n], np.sum(parts, axis=0)[:, :n]

    def _transposed(self, weights: np.ndarray) -> np.ndarray:
        """The product of X' with weights (n_documents, n), (n_features + 1, n), in one pass."""
        n, weights = weights.shape[1], _in_lanes(weights)
        parts = in_threads(
            lambda part: _multiply_transposed(self.rows, weights, self.shape[1], part[0], part[1]),
            self._parts(),
        )
        return np.asarray(np.sum(parts, axis=0)[:, :n])

    def _parts(self) -> list[tuple[int, int]]:
        ends = np.linspace(0, self.shape[0], PARTS + 1).astype(int).tolist()
        return list(itertools.pairwise(ends))


class _SampledHessian:
    """The Hessian of all documents about as a sample of them has it, ridge I + weight X' X, and its inverse.

    Most directions in which the few lie are their own, not those of all documents: the median value of their products
    is noise, and joins the ridge.

    X: csr or dense (n_some, n_features), of n_documents; a column of ones is last.
    """

    def __init__(self, X: "np.ndarray | csr_matrix", n_documents: int, scale: float) -> None:
        n_some, n_features = X.shape
        self.is_wide = n_features >= n_some
        full = full_columns(X) if self.is_wide else np.ones(n_features, dtype=bool)
        self.dense_columns, self.sparse_columns = np.append(full, True), np.append(~full, False)
        share = np.sqrt(n_documents / n_some)
        dense = X[:, full] if isinstance(X, np.ndarray) else X[:, full].toarray()
        self.dense = np.column_stack([dense / scale, np.ones(n_some)]) * share
        self.sparse = sp.csr_matrix(X[:, ~full], dtype=np.float64) * (share / scale)
        self.mean_square = (np.vdot(self.dense, self.dense) + self.sparse.power(2).sum()) / n_documents
        products = _products(self.dense[::EVERY], self.sparse[::EVERY])
        self.noise = float(np.median(np.linalg.eigvalsh(products)))
        self.products = _products(self.dense, self.sparse) if self.is_wide else self.dense.T @ self.dense

    def inverse(self, weight: float) -> Callable[[np.ndarray], np.ndarray]:
        """A function of vectors (n_features + 1, n), float64."""
        ridge = 1 + weight * self.noise
        matrix = self.products * (weight / ridge)
        matrix[np.diag_indices_from(matrix)] += 1
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)

        def wide(vectors: np.ndarray) -> np.ndarray:
            inner = self.dense @ vectors[self.dense_columns] + self.sparse @ vectors[self.sparse_columns]
            inner = cho_solve(factor, inner * (weight / ridge), check_finite=False)
            inverse = vectors.copy()
            inverse[self.dense_columns] -= self.dense.T @ inner
            inverse[self.sparse_columns] -= self.sparse.T @ inner
            return inverse / ridge

        def tall(vectors: np.ndarray) -> np.ndarray:
            return np.asarray(cho_solve(factor, vectors, check_finite=False)) / ridge

        return wide if self.is_wide else tall


def _products(dense: np.ndarray, sparse: sp.csr_matrix) -> np.ndarray:
    """The Gram matrix of documents (n, n), whose columns are in two parts."""
    return np.asarray(dense @ dense.T + (sparse @ sparse.T).toarray())


def _in_lanes(columns: np.ndarray) -> np.ndarray:
    """Columns (n, LANES or fewer) with further ones of zeros, in C's order."""
    lanes = np.zeros((len(columns), LANES), dtype=columns.dtype)
    lanes[:, : columns.shape[1]] = columns
    return lanes


def _relative_gaps(w: np.ndarray, gradient: np.ndarray, slack: np.ndarray, C: float) -> np.ndarray:
    """The primal objectives less those of the dual points alpha = 2C slack, in parts of the primal."""
    norm, losses = np.einsum("ij,ij->j", w, w) / 2, C * np.einsum("ij,ij->j", slack, slack)
    dual_w = w - gradient
    dual = 2 * C * slack.sum(axis=0) - np.einsum("ij,ij->j", dual_w, dual_w) / 2 - losses
    return np.asarray((norm + losses - dual) / (norm + losses))


@njit(fastmath=REORDERED, nogil=True, cache=True)
def _multiply_both(rows, w, inside, begin, end, scores):  # type: ignore[no-untyped-def]
    last = len(w) - 1
    sums = np.zeros(w.shape)
    score = np.empty(LANES)
    for i in range(begin, end):
        _score(rows, i, w, score)
        for c in range(LANES):
            scores[i, c] = score[c] * rows.factor + w[last, c]
            score[c] = scores[i, c] * inside[i, c]
            sums[last, c] += score[c]
            score[c] *= rows.factor
        _add(rows, i, score, sums)
    return sums


@njit(fastmath=REORDERED, nogil=True, cache=True)
def _multiply_transposed(rows, weights, n_features, begin, end):  # type: ignore[no-untyped-def]
    sums = np.zeros((n_features + 1, LANES))
    weight = np.empty(LANES)
    for i in range(begin, end):
        for c in range(LANES):
            sums[n_features, c] += weights[i, c]
            weight[c] = weights[i, c] * rows.factor
        _add(rows, i, weight, sums)
    return sums


# Classes are written out, four of them, for a loop over few is not vectorised.
@njit(fastmath=REORDERED, nogil=True, cache=True, inline="always")
def _score(rows, i, w, score):  # type: ignore[no-untyped-def]
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    place = rows.places[i]
    for j in range(rows.block.shape[1]):
        value = np.float64(rows.block[place, j])
        a += value * w[j, 0]
        b += value * w[j, 1]
        c += value * w[j, 2]
        d += value * w[j, 3]
    for k in range(rows.begins[i], rows.ends[i]):
        value, column = np.float64(rows.values[k]), rows.columns[k]
        a += value * w[column, 0]
        b += value * w[column, 1]
        c += value * w[column, 2]
        d += value * w[column, 3]
    score[0], score[1], score[2], score[3] = a, b, c, d


@njit(fastmath=REORDERED, nogil=True, cache=True, inline="always")
def _add(rows, i, weight, sums):  # type: ignore[no-untyped-def]
    a, b, c, d = weight[0], weight[1], weight[2], weight[3]
    place = rows.places[i]
    for j in range(rows.block.shape[1]):
        value = np.float64(rows.block[place, j])
        sums[j, 0] += value * a
        sums[j, 1] += value * b
        sums[j, 2] += value * c
        sums[j, 3] += value * d
    for k in range(rows.begins[i], rows.ends[i]):
        value, column = np.float64(rows.values[k]), rows.columns[k]
        sums[column, 0] += value * a
        sums[column, 1] += value * b
        sums[column, 2] += value * c
        sums[column, 3] += value * d
