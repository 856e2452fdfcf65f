"""Elastic-net logistic regression by Newton steps, each solved by coordinate descent (newGLMNET), along a path of C.

minimise r |w|_1 + (1 - r) |w|^2/2 + C sum_i log(1 + exp(-y_i (w.x_i + b))), the intercept b not penalised.

Source: Yuan, Ho, Lin, An Improved GLMNET for L1-regularized Logistic Regression, JMLR 13 (2012), algorithm 3,
with a quadratic term beside the absolute values; Zou, Hastie, Regularization and Variable Selection via the
Elastic Net, JRSS B 67 (2005).
"""

import numpy as np
from numba import njit
from scipy.sparse import csc_matrix

# A solution is accepted when no optimality condition is off by more than this share of the L1 penalty.
TOLERANCE = 0.01
# Passes of coordinate descent over the working set in one Newton step.
MAX_SWEEPS = 50


class ElasticNetPath:
    """The binary problems of one matrix, solved for one C after another, each from the last solution.

    X: csc float64 (n_documents, n_features), as the penalty should see it; never modified. n_alike: (n_features,), how
    many equal columns each of them stands for, by default one (`evaluation.merged_columns`).
    """

    def __init__(self, X: csc_matrix, l1_ratio: float, n_alike: np.ndarray | None = None) -> None:
        self.X = X
        self.shape = X.shape
        self.n_alike = np.ones(X.shape[1]) if n_alike is None else n_alike
        self.restart(l1_ratio)

    def restart(self, l1_ratio: float) -> None:
        """Forget the last solutions; the next ones are for this share of the absolute values."""
        self.l1_ratio = l1_ratio
        self._last: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def solve(
        self, problem: int, positive: np.ndarray, C: float, max_iter: int
    ) -> tuple[np.ndarray, float, bool]:
        """Solve one problem: (coefficients (n_features,), intercept, whether it converged).

        positive: (n_documents,) bools, neither all true nor all false, the same whenever `problem` is. max_iter:
        Newton steps.
        """
        target = positive.astype(np.float64)
        start = self._last.get(problem)
        if start is None:
            intercept = np.log(target.mean() / (1 - target.mean()))
            start = (np.zeros(self.X.shape[1]), np.array([intercept]), np.full(self.shape[0], intercept))
        weights, bias, margins = self._last[problem] = start
        columns = (self.X.data, self.X.indices, self.X.indptr)
        l1, l2 = self.l1_ratio, (1.0 - self.l1_ratio) / self.n_alike
        converged = _newton(columns, target, C, l1, l2, TOLERANCE, max_iter, weights, bias, margins)
        return weights.copy(), float(bias[0]), bool(converged)


@njit(nogil=True, cache=True)
def _newton(columns, target, C, l1, l2, tolerance, max_iter, weights, bias, margins):  # type: ignore[no-untyped-def]
    """Newton steps in place until the optimality conditions hold; whether they do."""
    n_features, n_documents = len(weights), len(target)
    residual, curvature, moved = np.empty(n_documents), np.empty(n_documents), np.empty(n_documents)
    gradient, step = np.empty(n_features), np.zeros(n_features)
    working = np.empty(n_features, np.int64)
    for _ in range(max_iter):
        for i in range(n_documents):
            probability = 1.0 / (1.0 + np.exp(-margins[i]))
            residual[i] = C * (probability - target[i])
            curvature[i] = C * probability * (1.0 - probability)
        violation, n_working = abs(residual.sum()), 0
        for j in range(n_features):
            gradient[j] = l2[j] * weights[j] + _product(columns, j, residual)
            if weights[j] != 0.0:
                excess = abs(gradient[j] + l1 * np.sign(weights[j]))
            else:
                excess = max(abs(gradient[j]) - l1, 0.0)
            if weights[j] != 0.0 or excess > 0.0:
                working[n_working] = j
                n_working += 1
            violation = max(violation, excess)
        if violation <= tolerance * l1:
            return True
        moved[:] = 0.0
        chosen = working[:n_working]
        shift = _direction(
            columns, residual, curvature, gradient, l1, l2, 0.1 * violation, chosen, weights, step, moved
        )
        if not _search(target, C, l1, l2, residual, chosen, weights, bias, margins, step, moved, shift):
            return False
        step[chosen] = 0.0
    return False


@njit(fastmath={"reassoc", "contract", "nsz"}, nogil=True, cache=True)
def _product(columns, j, dense):  # type: ignore[no-untyped-def]
    values, rows, starts = columns
    total = 0.0
    for k in range(starts[j], starts[j + 1]):
        total += values[k] * dense[rows[k]]
    return total


@njit(fastmath={"reassoc", "contract", "nsz"}, nogil=True, cache=True)
def _direction(columns, residual, curvature, gradient, l1, l2, tolerance, working, weights, step, moved):  # type: ignore[no-untyped-def]
    """Minimise the quadratic model over the working set, `step` in place; the intercept's step.

    moved becomes what both do to the margins.
    """
    values, rows, starts = columns
    second = np.empty(len(working))
    for m, j in enumerate(working):
        second[m] = l2[j] + 1e-12
        for k in range(starts[j], starts[j + 1]):
            second[m] += curvature[rows[k]] * values[k] ** 2
    total, intercept = curvature.sum() + 1e-12, 0.0
    for _ in range(MAX_SWEEPS):
        shift = 0.0
        for i in range(len(moved)):
            shift -= residual[i] + curvature[i] * moved[i]
        largest = abs(shift)
        moved += shift / total
        intercept += shift / total
        for m, j in enumerate(working):
            slope = gradient[j] + l2[j] * step[j]
            for k in range(starts[j], starts[j + 1]):
                slope += values[k] * curvature[rows[k]] * moved[rows[k]]
            old = weights[j] + step[j]
            goal = old - slope / second[m]
            change = np.sign(goal) * max(abs(goal) - l1 / second[m], 0.0) - old
            if change != 0.0:
                step[j] += change
                for k in range(starts[j], starts[j + 1]):
                    moved[rows[k]] += change * values[k]
                largest = max(largest, second[m] * abs(change))
        if largest <= tolerance:
            break
    return intercept


@njit(nogil=True, cache=True)
def _search(target, C, l1, l2, residual, working, weights, bias, margins, step, moved, shift):  # type: ignore[no-untyped-def]
    """Armijo's rule in place: halve the step until the objective falls by a hundredth of what it promised."""
    promised = (residual * moved).sum()
    for j in working:
        promised += l2[j] * weights[j] * step[j] + l1 * (abs(weights[j] + step[j]) - abs(weights[j]))
    share = 1.0
    for _ in range(30):
        change = 0.0
        for i in range(len(target)):
            change += _loss(margins[i] + share * moved[i], target[i]) - _loss(margins[i], target[i])
        change *= C
        for j in working:
            new = weights[j] + share * step[j]
            change += l2[j] / 2 * (new**2 - weights[j] ** 2) + l1 * (abs(new) - abs(weights[j]))
        if change <= 0.01 * share * promised:
            for j in working:
                weights[j] += share * step[j]
            margins += share * moved
            bias[0] += share * shift
            return True
        share /= 2
    return False


@njit(nogil=True, cache=True)
def _loss(margin, target):  # type: ignore[no-untyped-def]
    return max(margin, 0.0) - margin * target + np.log1p(np.exp(-abs(margin)))
