"""Linear SVMs of several classes by dual coordinate descent, LANES of them in one pass over the documents.

Each class against the rest, squared hinge loss, features scaled by r, of the class: minimise |w|^2/2 + b^2/2 +
C sum_i max(0, 1 - y_i (w.(r o x_i) + b))^2. The updates and the stopping rule are LIBLINEAR's, without shrinking. A
document's values are read once for all lanes, and no scaled copy of them is made: what is kept is v = r o w, which
takes steps of r^2 o x.

Source: Hsieh, Chang, Lin, Keerthi and Sundararajan, "A dual coordinate descent method for large-scale linear SVM", ICML
2008, algorithm 1.
"""

import numpy as np
import scipy.sparse as sp
from numba import njit

LANES = 4
IN_ORDER = {"contract", "nsz"}
REORDERED = {"reassoc", *IN_ORDER}


def solve_scaled(
    X: sp.csr_matrix, positive: np.ndarray, ratios: np.ndarray, C: float, tolerance: float, max_passes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return v = r o w, float64 (n_problems, n_features), and the intercepts, (n_problems,).

    X: csr (n_documents, n_features), read as float32; positive: bools (n_problems, n_documents); ratios: r,
    (n_problems, n_features). Documents are visited in an order that a fixed seed draws. Memory beside X: 64 bytes a
    feature, 100 a document.
    """
    n_problems, n_features = ratios.shape
    coef, intercept = np.empty((n_problems, n_features)), np.empty(n_problems)
    documents = (X.data.astype(np.float32, copy=False), X.indices, X.indptr)
    for first in range(0, n_problems, LANES):
        some = slice(first, min(first + LANES, n_problems))
        n = some.stop - first
        table = np.zeros((n_features, 2, LANES))  # v, and r^2: what a term is asked for lies together
        table[:, 1, :n] = ratios[some].T ** 2
        sign = np.ones((X.shape[0], LANES))
        sign[:, :n] = np.where(positive[some].T, 1.0, -1.0)
        bias = np.zeros(LANES)
        _descend(*documents, sign, table, bias, n, C, tolerance, max_passes)
        coef[some], intercept[some] = table[:, 0, :n].T, bias[:n]
    return coef, intercept


@njit(fastmath=IN_ORDER, nogil=True, cache=True)
def _descend(data, indices, indptr, sign, table, bias, n_problems, C, tolerance, max_passes):  # type: ignore[no-untyped-def]
    """Change table and bias in place, until the projected gradients of a whole pass lie within the tolerance.

    Over a document's values the LANES are written out, for sums that stay in registers: in an array they would be
    stored and loaded at every value, which takes twice as long.
    """
    n, diagonal = len(sign), 0.5 / C
    alpha, square = np.zeros((n, LANES)), np.full((n, LANES), 1.0 + diagonal)  # the bias is a feature of ones
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            for lane in range(LANES):
                square[i, lane] += data[k] * data[k] * table[indices[k], 1, lane]
    order, scores, step = np.arange(n), np.empty(LANES), np.empty(LANES)
    np.random.seed(0)  # numba's own generator, not numpy's
    for _ in range(max_passes):
        highest, lowest = -np.inf, np.inf
        np.random.shuffle(order)
        for i in order:
            begun, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
            a, b, c, d = bias[0], bias[1], bias[2], bias[3]
            for k in range(begun, end):
                x, term = data[k], np.uint64(indices[k])
                a += x * table[term, 0, 0]
                b += x * table[term, 0, 1]
                c += x * table[term, 0, 2]
                d += x * table[term, 0, 3]
            scores[0], scores[1], scores[2], scores[3] = a, b, c, d
            moves, high, low = _step(scores, sign[i], square[i], alpha[i], bias, step, n_problems, diagonal)
            highest, lowest = max(highest, high), min(lowest, low)
            if moves:
                a, b, c, d = step[0], step[1], step[2], step[3]
                for k in range(begun, end):
                    x, term = data[k], np.uint64(indices[k])
                    table[term, 0, 0] += x * a * table[term, 1, 0]
                    table[term, 0, 1] += x * b * table[term, 1, 1]
                    table[term, 0, 2] += x * c * table[term, 1, 2]
                    table[term, 0, 3] += x * d * table[term, 1, 3]
        if highest - lowest <= tolerance:
            return


@njit(fastmath=REORDERED, nogil=True, cache=True)
def _step(scores, sign, square, alpha, bias, step, n_problems, diagonal):  # type: ignore[no-untyped-def]
    """Change a document's alpha, the bias and the step of w; return whether any moves, and its extreme gradients."""
    moves, highest, lowest = False, -np.inf, np.inf
    step[:] = 0.0
    for lane in range(n_problems):
        old = alpha[lane]
        gradient = sign[lane] * scores[lane] - 1.0 + diagonal * old
        projected = min(gradient, 0.0) if old == 0.0 else gradient
        highest, lowest = max(highest, projected), min(lowest, projected)
        if abs(projected) > 1e-12:
            alpha[lane] = max(0.0, old - gradient / square[lane])
            step[lane] = (alpha[lane] - old) * sign[lane]
            bias[lane] += step[lane]
            moves = True
    return moves, highest, lowest
