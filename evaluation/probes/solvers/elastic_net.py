"""Elastic-net logistic regression by Newton steps, each solved by coordinate descent (newGLMNET), along a path of C.

minimise r |w|_1 + (1 - r) |w|^2/2 + C sum_i log(1 + exp(-y_i (w.x_i + b))), the intercept b not penalised.

Source: Yuan, Ho, Lin, An Improved GLMNET for L1-regularized Logistic Regression, JMLR 13 (2012), algorithm 3,
with a quadratic term beside the absolute values; Zou, Hastie, Regularization and Variable Selection via the
Elastic Net, JRSS B 67 (2005); Bertrand, Massias, Anderson Acceleration of Coordinate Descent, AISTATS (2021),
algorithm 4 (the passes are extrapolated: near-separable classes took hundreds of times as many).
"""

import numpy as np
from numba import njit
from scipy.sparse import csc_matrix

# A solution is accepted when no optimality condition is off by more than this share of the L1 penalty.
TOLERANCE = 0.01
# In one Newton step: rounds, each a pass of coordinate descent over the working set and passes over what it uses.
MAX_ROUNDS, MAX_SWEEPS = 20, 200
# Shares of C by way of which a problem's first solution comes: at a large C almost every weight would seem of use.
FIRST_STEPS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
# Iterates that one extrapolation weighs.
N_EXTRAPOLATED = 5


class ElasticNetPath:
    """The binary problems of one matrix, solved for one C after another, each from the last solution.

    X: csc float64 (n_documents, n_features), as the penalty should see it; never modified. n_alike: (n_features,), how
    many equal columns each of them stands for, by default one (`evaluation.probes.solvers.merged_columns`).
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
        steps: tuple[float, ...] = (1.0,)
        if start is None:
            intercept = np.log(target.mean() / (1 - target.mean()))
            start = (np.zeros(self.X.shape[1]), np.array([intercept]), np.full(self.shape[0], intercept))
            steps = (*FIRST_STEPS, 1.0)
        weights, bias, margins = self._last[problem] = start
        columns = (self.X.data, self.X.indices, self.X.indptr)
        l1, l2 = self.l1_ratio, (1.0 - self.l1_ratio) / self.n_alike
        for step in steps:
            converged = _newton(
                columns, target, step * C, l1, l2, TOLERANCE, max_iter, weights, bias, margins
            )
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

    moved becomes what both do to the margins. A sweep over the working set finds the weights that are used; sweeps over
    those alone follow, until one over all leaves nothing to change.
    """
    values, rows, starts = columns
    second = np.empty(len(working))
    for m, j in enumerate(working):
        second[m] = l2[j] + 1e-12
        for k in range(starts[j], starts[j + 1]):
            second[m] += curvature[rows[k]] * values[k] ** 2
    model = columns, residual, curvature, gradient, l1, l2, weights
    intercept = 0.0
    for _ in range(MAX_ROUNDS):
        shift, largest = _sweep(model, working, second, step, moved)
        intercept += shift
        if largest <= tolerance:
            break
        used = weights[working] + step[working] != 0.0
        intercept = _settle(model, tolerance, working[used], second[used], step, moved, intercept)
    return intercept


@njit(fastmath={"reassoc", "contract", "nsz"}, nogil=True, cache=True)
def _sweep(model, chosen, second, step, moved):  # type: ignore[no-untyped-def]
    """Set the intercept, then each chosen weight, to its best: the intercept's change, and the largest slope met."""
    (values, rows, starts), residual, curvature, gradient, l1, l2, weights = model
    total, slope = 1e-12, 0.0
    for i in range(len(moved)):
        total += curvature[i]
        slope += residual[i] + curvature[i] * moved[i]
    shift, largest = -slope / total, abs(slope)
    moved += shift
    for m, j in enumerate(chosen):
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
    return shift, largest


@njit(nogil=True, cache=True)
def _settle(model, tolerance, chosen, second, step, moved, intercept):  # type: ignore[no-untyped-def]
    """Sweep over the chosen weights until nothing changes by more than the tolerance; the intercept's step.

    Every few sweeps the iterates are extrapolated (Anderson), which is kept where it lowers the model.
    """
    steps = np.empty((N_EXTRAPOLATED + 1, len(chosen) + 1))
    moves = np.empty((N_EXTRAPOLATED + 1, len(moved)))
    for sweep in range(MAX_SWEEPS):
        shift, largest = _sweep(model, chosen, second, step, moved)
        intercept += shift
        if largest <= tolerance:
            break
        last = sweep % (N_EXTRAPOLATED + 1)
        steps[last, :-1], steps[last, -1], moves[last] = step[chosen], intercept, moved
        if last == N_EXTRAPOLATED:
            share = _shares(steps)
            before = _value(model, chosen, step, moved)
            step[chosen], moved[:] = _mean(share, steps[1:, :-1]), _mean(share, moves[1:])
            if _value(model, chosen, step, moved) < before:
                intercept = (share * steps[1:, -1]).sum()
            else:
                step[chosen], moved[:] = steps[last, :-1], moves[last]
    return intercept


@njit(fastmath={"reassoc", "contract", "nsz"}, nogil=True, cache=True)
def _shares(steps):  # type: ignore[no-untyped-def]
    """The shares of the iterates after the first, which sum to 1, that make their mean change least in one sweep."""
    n = len(steps) - 1
    products = np.zeros((n, n))
    for a in range(n):
        for b in range(a + 1):
            for m in range(steps.shape[1]):
                products[a, b] += (steps[a + 1, m] - steps[a, m]) * (steps[b + 1, m] - steps[b, m])
            products[b, a] = products[a, b]
    products += np.eye(n) * 1e-10 * np.trace(products)
    share = np.linalg.solve(products, np.ones(n))
    return share / share.sum()


@njit(nogil=True, cache=True)
def _mean(share, of):  # type: ignore[no-untyped-def]
    mean = share[0] * of[0]
    for h in range(1, len(share)):
        mean += share[h] * of[h]
    return mean


@njit(fastmath={"reassoc", "contract", "nsz"}, nogil=True, cache=True)
def _value(model, chosen, step, moved):  # type: ignore[no-untyped-def]
    """What the quadratic model says of a step that changes the chosen weights alone, up to a constant."""
    _, residual, curvature, _, l1, l2, weights = model
    value = 0.0
    for i in range(len(moved)):
        value += moved[i] * (residual[i] + curvature[i] / 2 * moved[i])
    for j in chosen:
        weight = weights[j] + step[j]
        value += l2[j] / 2 * weight**2 + l1 * abs(weight)
    return value


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
