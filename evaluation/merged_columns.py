"""Elastic-net logistic regression where many columns are alike: equal columns become one, with a penalty of its own.

Of all k-grams most stand in one document alone, so that, once scaled by their deviation, thousands of columns are the
same. m equal columns have equal weights w at the optimum (the penalty is strictly convex); with W = m w their part of
the penalty r m |w| + (1 - r) m w^2/2 is r |W| + (1 - r) W^2/(2 m): one column, whose square counts an m-th. The optimum
is the one of all columns.

Source: Zou, Hastie, Regularization and Variable Selection via the Elastic Net, JRSS B 67 (2005), section 2.3 (equal
weights); Yuan, Ho, Lin, An Improved GLMNET, JMLR 13 (2012), algorithm 3, as in `evaluation.elastic_net`.
"""

import numpy as np
from numba import njit
from scipy.sparse import csc_matrix

from evaluation.elastic_net import MAX_SWEEPS, TOLERANCE, _loss, _product

DIGITS = 9  # that two columns share where they are taken as equal: the rest is rounding of their deviations


class MergedPath:
    """The binary problems of one matrix, solved for one C after another, equal columns as one.

    X: csc float64 (n_documents, n_features), as the penalty should see it; never modified. l1_ratio: r, in (0, 1).
    """

    def __init__(self, X: csc_matrix, l1_ratio: float) -> None:
        self.shape = X.shape
        first, self.group_, self.size_ = equal_columns(X)
        self.X = csc_matrix(X[:, first])
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
        l2 = (1.0 - self.l1_ratio) / self.size_
        converged = _newton(
            columns, target, C, self.l1_ratio, l2, TOLERANCE, max_iter, weights, bias, margins
        )
        return (weights / self.size_)[self.group_], float(bias[0]), bool(converged)


def equal_columns(X: csc_matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the columns that are equal up to rounding: (first of each group, group of each column, sizes float64).

    Columns are told apart by their products with two random vectors: with DIGITS digits of both, two that differ are
    taken as one once in 10^18 pairs.
    """
    marks = X.T @ np.random.default_rng(0).normal(size=(X.shape[0], 2))
    largest = np.abs(marks).max(initial=0.0) or 1.0
    rounded = np.round(marks / largest, DIGITS)
    _, first, group, size = np.unique(
        rounded[:, 0] + 1j * rounded[:, 1], return_index=True, return_inverse=True, return_counts=True
    )
    return first, group, size.astype(np.float64)


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
