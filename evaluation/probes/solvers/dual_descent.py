"""Linear SVM by dual coordinate descent, for documents most of whose values lie in full columns.

The problem, updates, shrinking and first stopping rule are those of LIBLINEAR's dual solver for the squared hinge
loss. What differs is the layout: the full columns are one dense block, read in the order and the precision in
which it is stored, where LIBLINEAR keeps an index beside every value. Along a path of C each problem starts from
the solution of the one before, several problems are solved at a time, and a solution is accepted only with a small
duality gap. It is for more documents than `evaluation.probes.solvers.finite_newton` takes.

Source: Hsieh, Chang, Lin, Keerthi, Sundararajan, A Dual Coordinate Descent Method for Large-scale Linear SVM, ICML
(2008), algorithm 3; Fan, Chang, Hsieh, Wang, Lin, LIBLINEAR, JMLR 9 (2008), appendix B.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

from textbench.evaluation.cores import in_threads

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# LIBLINEAR's spread of the projected gradient, to begin with, and the largest relative duality gap.
TOLERANCE = 1e-3
GAP = 1e-5
# Sums may be reordered, which vector instructions need; nothing else is relaxed.
REORDERED = {"reassoc", "contract", "nsz"}


class Rows(NamedTuple):
    """Documents as the loops read them: row places[i] of the dense block, and values begins[i]:ends[i] beside it."""

    block: np.ndarray  # (n_rows, n_full)
    places: np.ndarray  # (n_documents,) ints
    values: np.ndarray
    columns: np.ndarray
    begins: np.ndarray  # (n_documents,) ints
    ends: np.ndarray
    factor: float


def rows_in_place(X: "np.ndarray | csr_matrix", rows: np.ndarray, scale: float) -> Rows:
    """Documents where they lie: an array is one block, and a csr matrix has none. Other types become float64.

    X: csr or dense (n, n_features); rows: (n_documents,) ints, the positions of the documents among them.
    """
    dtype = _dtype(X)
    if isinstance(X, np.ndarray):
        none = np.zeros(len(rows), dtype=np.int64)
        block = np.ascontiguousarray(X, dtype=dtype)
        return Rows(block, rows, np.zeros(0, dtype=dtype), none[:0], none, none, 1 / scale)
    values, block = X.data.astype(dtype, copy=False), np.zeros((1, 0), dtype=dtype)
    begins, ends = X.indptr[rows], X.indptr[rows + 1]
    return Rows(block, np.zeros_like(rows), values, X.indices, begins, ends, 1 / scale)


def _dtype(X: "np.ndarray | csr_matrix") -> Any:
    return np.float32 if X.dtype == np.float32 else np.float64


class DualPath:
    """The binary problems of one matrix, solved for one C after another, each from the last solution.

    minimise |w|^2/2 + b^2/2 + C sum_i max(0, 1 - y_i (w.x_i/scale + b))^2.

    X: csr or dense (n_documents, n_features), any real dtype, never modified; float32 is read as it is, other
    types as float64; sums are float64. full: bools (n_features,), the columns of the dense block, a copy; an array is
    one block where it lies. The same seed gives the same bits, on however many threads.
    """

    def __init__(self, X: "np.ndarray | csr_matrix", full: np.ndarray, scale: float, seed: int = 0) -> None:
        if isinstance(X, np.ndarray):
            full = np.ones(X.shape[1], dtype=bool)
            self.rows = rows_in_place(X, np.arange(len(X)), scale)
        else:
            block, rest = _parts(X, full)
            layout = rest.data, rest.indices, rest.indptr[:-1], rest.indptr[1:]
            self.rows = Rows(block, np.arange(len(block)), *layout, 1 / scale)
        self.full = full
        self.scale = scale
        self.seed = seed
        self.square = _squares(self.rows) / scale**2 + 1.0  # the bias is a feature of ones
        self.shape = (len(self.square), X.shape[1])
        self._last: dict[int, tuple[np.ndarray, ...]] = {}

    def solve_all(
        self, positive: np.ndarray, C: float, max_iter: int
    ) -> list[tuple[np.ndarray, float, bool]]:
        """What `solve` returns for each column of positive, bools (n_documents, n_problems): all cores solve them."""
        solved: list[tuple[np.ndarray, float, bool]] = in_threads(
            lambda problem: self.solve(problem, positive[:, problem], C, max_iter), range(positive.shape[1])
        )
        return solved

    def solve(
        self, problem: int, positive: np.ndarray, C: float, max_iter: int
    ) -> tuple[np.ndarray, float, bool]:
        """Solve one problem: (coefficients (n_features,) for x as given, intercept, whether it converged).

        positive: (n_documents,) bools, the same whenever `problem` is. max_iter: passes over the documents.
        """
        start = self._last.get(problem)
        sign = np.where(positive, 1.0, -1.0)
        if start is None:
            n_full = np.count_nonzero(self.full)
            sizes = (len(positive), n_full, len(self.full) - n_full, 1)
            start = tuple(np.zeros(size) for size in sizes)
        alpha, dense, sparse, bias = self._last[problem] = start
        tolerance, gap, n_passes = TOLERANCE, np.inf, 0
        while gap > GAP and n_passes < max_iter:
            n_passes += _descend(
                self.rows,
                self.square,
                sign,
                C,
                tolerance,
                max_iter - n_passes,
                self.seed,
                alpha,
                dense,
                sparse,
                bias,
            )
            gap = _relative_gap(self.rows, sign, C, alpha, dense, sparse, bias)
            tolerance /= 10
        return *self._coefficients(start), bool(gap <= GAP)

    def _coefficients(self, solution: tuple[np.ndarray, ...]) -> tuple[np.ndarray, float]:
        _, dense, sparse, bias = solution
        coefficients = np.empty(len(self.full))
        coefficients[self.full], coefficients[~self.full] = dense / self.scale, sparse / self.scale
        return coefficients, float(bias[0])


def _parts(X: "csr_matrix", full: np.ndarray) -> tuple[np.ndarray, Any]:
    """The full columns of csr documents as an array, C order, the others as csr, columns of both rising."""
    dense = X[:, full].astype(_dtype(X), copy=False).toarray(order="C")
    sparse = X[:, ~full].astype(_dtype(X), copy=False)
    sparse.sort_indices()
    return dense, sparse


@njit(fastmath=REORDERED, nogil=True, cache=True)
def _score(rows, i, dense, sparse, bias):  # type: ignore[no-untyped-def]
    total, place = 0.0, rows.places[i]
    for j in range(rows.block.shape[1]):
        total += rows.block[place, j] * dense[j]
    for k in range(rows.begins[i], rows.ends[i]):
        total += rows.values[k] * sparse[rows.columns[k]]
    return total * rows.factor + bias[0]


@njit(fastmath=REORDERED, nogil=True, cache=True)
def _add(rows, i, step, dense, sparse, bias):  # type: ignore[no-untyped-def]
    scaled, place = step * rows.factor, rows.places[i]
    for j in range(rows.block.shape[1]):
        dense[j] += scaled * rows.block[place, j]
    for k in range(rows.begins[i], rows.ends[i]):
        sparse[rows.columns[k]] += scaled * rows.values[k]
    bias[0] += step


@njit(nogil=True, cache=True)
def _squares(rows):  # type: ignore[no-untyped-def]
    """The squared lengths, float64 (n_documents,)."""
    squares = np.zeros(len(rows.places))
    for i, place in enumerate(rows.places):
        for j in range(rows.block.shape[1]):
            squares[i] += np.float64(rows.block[place, j]) ** 2
        for k in range(rows.begins[i], rows.ends[i]):
            squares[i] += np.float64(rows.values[k]) ** 2
    return squares


@njit(nogil=True, cache=True)
def _descend(rows, square, sign, C, tolerance, max_passes, seed, alpha, dense, sparse, bias):  # type: ignore[no-untyped-def]
    """Algorithm 3 in place: until the projected gradients of a whole pass lie within the tolerance; the passes."""
    n = len(sign)
    np.random.seed(seed)  # numba's own generator, not numpy's
    active, n_active = np.arange(n), n
    diagonal = 0.5 / C
    bound = np.inf
    for n_passes in range(1, max_passes + 1):
        highest, lowest = -np.inf, np.inf
        for k in range(n_active):
            other = k + np.random.randint(n_active - k)
            active[k], active[other] = active[other], active[k]
        k = 0
        while k < n_active:
            i = active[k]
            gradient = sign[i] * _score(rows, i, dense, sparse, bias) - 1.0 + diagonal * alpha[i]
            if alpha[i] == 0.0 and gradient > bound:  # it will hardly leave 0: look again at the end
                n_active -= 1
                active[k], active[n_active] = active[n_active], active[k]
                continue
            projected = min(gradient, 0.0) if alpha[i] == 0.0 else gradient
            highest, lowest = max(highest, projected), min(lowest, projected)
            if abs(projected) > 1e-12:
                old = alpha[i]
                alpha[i] = max(0.0, old - gradient / (square[i] + diagonal))
                _add(rows, i, (alpha[i] - old) * sign[i], dense, sparse, bias)
            k += 1
        if highest - lowest <= tolerance:
            if n_active == n:
                return n_passes
            n_active, bound = n, np.inf
        else:
            bound = highest if highest > 0 else np.inf
    return max_passes


@njit(nogil=True, cache=True)
def _relative_gap(rows, sign, C, alpha, dense, sparse, bias):  # type: ignore[no-untyped-def]
    """The primal objective less the dual one, in parts of the primal: by weak duality at least the error."""
    norm = bias[0] ** 2 / 2
    for j in range(len(dense)):
        norm += dense[j] ** 2 / 2
    for j in range(len(sparse)):
        norm += sparse[j] ** 2 / 2
    primal, dual = norm, -norm
    for i in range(len(sign)):
        slack = 1.0 - sign[i] * _score(rows, i, dense, sparse, bias)
        primal += C * max(0.0, slack) ** 2
        dual += alpha[i] - alpha[i] ** 2 / (4 * C)
    return (primal - dual) / primal
