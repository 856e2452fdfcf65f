"""Linear SVM by the finite Newton method on the Gram matrix: the next C of a path, for a few thousand documents.

The squared hinge loss is quadratic as long as the same documents lie inside the margin. With w = sum_i b_i x_i, scores
f = K b and S the documents with y_i f_i < 1, the minimum of that quadratic solves (K_SS + I / 2C) b_S = y_S, b = 0
elsewhere: one Cholesky factorisation of |S| rows, whatever C is and however the features are scaled. Where the
solution keeps S it is the solution; else one moves towards it as far as the loss falls, and S changes. Along a path of
rising C S is small and known but for a few documents, and two to six steps do.

Source: Keerthi, DeCoste, A Modified Finite Newton Method for Fast Solution of Large Scale Linear SVMs, JMLR 6
(2005), in the coefficients of the documents as in Chapelle, Training a Support Vector Machine in the Primal, Neural
Computation 19 (2007).
"""

import numpy as np
from scipy.linalg import lapack

GAP = 1e-9  # relative duality gap of a solution; rounding leaves about 1e-13
MAX_STEPS = 50


def next_solution(gram: np.ndarray, sign: np.ndarray, b: np.ndarray, C: float) -> np.ndarray | None:
    """Minimise b.Kb/2 + C sum_i max(0, 1 - y_i (Kb)_i)^2 from b on: the minimum b, or None if steps run out.

    gram: K float64 (n, n), symmetric and positive semi-definite; sign: y float64 (n,) of 1 and -1; b: (n,), left
    as it is. The relative duality gap of what is returned is at most GAP.
    """
    scores = _product(gram, np.flatnonzero(b), b)
    for _ in range(MAX_STEPS):
        inside = np.flatnonzero(sign * scores < 1)
        target = np.zeros_like(b)
        target[inside] = _solve(gram, sign, inside, C)
        target_scores = _product(gram, inside, target)
        if _relative_gap(sign, target, target_scores, C) <= GAP:
            return target
        step = _line_search(sign, b, scores, target - b, target_scores - scores, C)
        b, scores = b + step * (target - b), scores + step * (target_scores - scores)
    return None


def _product(gram: np.ndarray, nonzero: np.ndarray, b: np.ndarray) -> np.ndarray:
    return b[nonzero] @ gram[nonzero]


def _solve(gram: np.ndarray, sign: np.ndarray, inside: np.ndarray, C: float) -> np.ndarray:
    if not len(inside):
        return np.empty(0)
    system = gram[np.ix_(inside, inside)]
    system.flat[:: len(inside) + 1] += 0.5 / C
    factor, failed = lapack.dpotrf(system.T, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise ValueError(f"the Gram matrix must be positive semi-definite; at C = {C:g} it is not")
    return lapack.dpotrs(factor, sign[inside], lower=1)[0]


def _relative_gap(sign: np.ndarray, b: np.ndarray, scores: np.ndarray, C: float) -> float:
    """The primal objective less the dual one, in parts of the primal; infinite where b is not dual feasible."""
    alpha = sign * b
    if (alpha < 0).any():
        return np.inf
    norm, slack = b @ scores, np.maximum(0.0, 1.0 - sign * scores)
    primal = norm / 2 + C * (slack @ slack)
    dual = alpha.sum() - norm / 2 - alpha @ alpha / (4 * C)
    return float((primal - dual) / primal)


def _line_search(
    sign: np.ndarray, b: np.ndarray, scores: np.ndarray, way: np.ndarray, change: np.ndarray, C: float
) -> float:
    """The step t that minimises the objective at b + t way, where the scores are scores + t change.

    The slope is piecewise linear and rising in t: Newton's method finds its zero, kept inside a bracket.
    """
    slope, curve = scores @ way, change @ way
    slack, fall = 1.0 - sign * scores, sign * change
    lowest, highest, t = 0.0, np.inf, 1.0
    for _ in range(MAX_STEPS):
        active = slack > t * fall
        rest, moved = slack[active] - t * fall[active], fall[active]
        at_t = slope + t * curve - 2 * C * (moved @ rest)
        lowest, highest = (lowest, t) if at_t > 0 else (t, highest)
        following = t - at_t / (curve + 2 * C * (moved @ moved))
        if not lowest <= following <= highest:
            following = (lowest + highest) / 2
        if abs(following - t) <= 1e-12 * t:
            break
        t = following
    return t
