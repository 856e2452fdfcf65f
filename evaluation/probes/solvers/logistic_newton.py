"""Logistic regression by Newton's method on the Gram matrix: many problems at once, one C after another.

With w = sum_i b_i x_i, scores f = K b, targets t_i of 0 or 1 and p_i = 1 / (1 + exp(-f_i)), the solution has
b = C (t - p). The difference r = C (t - p) - b is what is left to do: C (t - p) is a point of the dual problem, and by
Fenchel's equality the duality gap is r.Kr / 2. Newton's step solves (I + D K) step = r with D = C p (1 - p). Conjugate
gradients solve that for all problems together: one product of matrices a step. Each C starts from the polynomial in
log C through the solutions before.

Source: Lin, Weng, Keerthi, Trust Region Newton Method for Large-Scale Logistic Regression, JMLR 9 (2008), in the
coefficients of the documents as in Chapelle, Training a Support Vector Machine in the Primal, Neural Computation 19
(2007); the dual problem: Keerthi, Duan, Shevade, Poo, A Fast Dual Algorithm for Kernel Logistic Regression, Machine
Learning 61 (2005).
"""

import numpy as np
from scipy.interpolate import krogh_interpolate
from scipy.special import expit

from textbench.evaluation.probes.solvers.finite_newton import FORCING, GAP, INNER_GAP, MAX_INNER

N_BEFORE = 4  # solutions that the next is extrapolated from
ROUNDS = 3  # at most, of starting again with scores that do not add up along the steps, but are computed anew
ROWS = 512  # of the Gram matrix that are in float64 at a time
SHORTEST = 1e-6  # share of Newton's step, below which rounding keeps the objective from falling


class LogisticNewton:
    """The problems of one set of documents, all with the same C, solved again from their last solutions.

    minimise |w|^2/2 + b^2/2 + C sum_i log(1 + exp(-y_i (w.x_i/scale + b)))

    gram: float32 (n_documents, n_documents), inner products of the documents; or, with `narrow`, the documents
    themselves, float32 (n_documents, n_features), which is quicker where features are fewer than half the documents.
    Never modified. Products are float32, what adds up along the steps float64. No random numbers: the same bits each
    time.
    """

    def __init__(self, gram: np.ndarray, scale: float, *, narrow: bool = False) -> None:
        self.gram, self.factor, self.narrow = gram, 1 / scale**2, narrow
        self._before: list[tuple[float, np.ndarray, np.ndarray]] = []  # C, b, scores, the newest last

    def solve(self, targets: np.ndarray, C: float, max_steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Solve all problems: coefficients b float64 (n_problems, n_documents), and whether each converged.

        targets: bools (n_problems, n_documents). As long as their number stays the same, so do the problems.
        """
        if not self._before or self._before[-1][1].shape != targets.shape:
            self._before = [(C, np.zeros(targets.shape), np.zeros(targets.shape))]
        b, scores = self._start(targets, C)
        left = np.arange(len(b))
        for _ in range(ROUNDS):
            b[left], scores[left] = self._descend(b[left], scores[left], targets[left], C, max_steps)
            scores[left] = self._exact_scores(b[left])
            rest = C * (targets[left] - expit(scores[left])) - b[left]
            gap = _dot(rest, self._times(rest)) / 2
            left = left[gap > GAP * _objective(_dot(b[left], scores[left]), scores[left], targets[left], C)]
            if not len(left):
                break
        others = [one for one in self._before if one[0] != C]
        self._before = [*others[1 - N_BEFORE :], (C, b, scores)]
        return b.copy(), ~np.isin(np.arange(len(b)), left)

    def _start(self, targets: np.ndarray, C: float) -> tuple[np.ndarray, np.ndarray]:
        """The b and scores of the lowest objective, problem by problem, that the solutions before extrapolate to."""
        places = np.log([one[0] for one in self._before])
        _, b, scores = self._before[-1]
        b, scores = b.copy(), scores.copy()
        lowest = _objective(_dot(b, scores), scores, targets, C)
        for n in range(2, len(places) + 1):
            weights = krogh_interpolate(places[-n:], np.eye(n), np.log(C))
            b_there, at = (np.tensordot(weights, [one[i] for one in self._before[-n:]], 1) for i in (1, 2))
            value = _objective(_dot(b_there, at), at, targets, C)
            lower = value < lowest
            b[lower], scores[lower], lowest = b_there[lower], at[lower], np.minimum(value, lowest)
        return b, scores

    def _descend(
        self, b: np.ndarray, scores: np.ndarray, targets: np.ndarray, C: float, max_steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Newton steps until each problem's gap is small, or none makes its objective fall."""
        left = np.arange(len(b))
        for _ in range(max_steps):
            f, t = scores[left], targets[left]
            p = expit(f)
            rest = C * (t - p) - b[left]
            image = self._times(rest)
            norm = _dot(b[left], f)
            value = _objective(norm, f, t, C)
            wide = _dot(rest, image) / 2 > INNER_GAP * value
            left, f, t, p, rest, image, norm, value = (
                of[wide] for of in (left, f, t, p, rest, image, norm, value)
            )
            if not len(left):
                break
            enough = 2 * (0.3 * INNER_GAP * value)  # the gap is half of the square
            step = self._solve(C * p * (1 - p), rest, image, enough)
            change = self._times(step)
            slope, cross, curve = _dot(rest, change), _dot(step, f), _dot(step, change)
            share, falls = np.ones(len(left)), np.zeros(len(left), dtype=bool)
            while not falls.all() and share.min() > SHORTEST:
                norm_there = norm + 2 * share * cross + share**2 * curve
                there = _objective(norm_there, f + share[:, None] * change, t, C)
                falls = there <= value - 1e-4 * share * slope
                share = np.where(falls, share, share / 2)
            share = np.where(falls, share, 0.0)[:, None]
            b[left] += share * step
            scores[left] += share * change
            left = left[falls]
        return b, scores

    def _solve(
        self, weight: np.ndarray, right: np.ndarray, image: np.ndarray, enough: np.ndarray
    ) -> np.ndarray:
        """Solve (I + D K) step = right for each problem until FORCING of the error is left; weight: D, image: K right.

        enough: squares of errors (n_problems,) that need not be smaller.

        Conjugate gradients in the inner product x.Ky: those in the features, where the error is the gradient's.
        """
        step, error, way, at_way = np.zeros(right.shape), right.copy(), right.copy(), image.copy()
        size = _dot(error, image)
        goal = np.maximum(FORCING**2 * size, enough)
        going = np.flatnonzero(size > 0)
        for _ in range(MAX_INNER):
            if not len(going):
                break
            along, at_along = way[going], at_way[going]
            turned = along + weight[going] * at_along
            share = (size[going] / _dot(at_along, turned))[:, None]
            step[going] += share * along
            error[going] -= share * turned
            at_error = self._times(error[going])
            smaller = _dot(error[going], at_error)
            ratio = (smaller / size[going])[:, None]
            way[going] = error[going] + ratio * along
            at_way[going] = at_error + ratio * at_along
            size[going] = smaller
            going = going[smaller > goal[going]]
        return step

    def _times(self, b: np.ndarray) -> np.ndarray:
        """K b of each row of b, where K holds the bias too."""
        product = b.astype(np.float32) @ self.gram
        product = (product @ self.gram.T if self.narrow else product).astype(np.float64)
        product *= self.factor
        product += b.sum(axis=1, keepdims=True)
        return product

    def _exact_scores(self, b: np.ndarray) -> np.ndarray:
        """K b of each row of b, in float64: coefficients of opposite signs may be large, and cancel."""
        product = np.zeros((len(b), self.gram.shape[1]))
        for start in range(0, len(self.gram), ROWS):
            part = slice(start, start + ROWS)
            product += b[:, part] @ self.gram[part].astype(np.float64)
        product = product @ self.gram.T.astype(np.float64) if self.narrow else product
        return product * self.factor + b.sum(axis=1, keepdims=True)


def _objective(norm: np.ndarray, scores: np.ndarray, targets: np.ndarray, C: float) -> np.ndarray:
    """The objective of each problem; norm: |w|^2 + b^2 (n_problems,)."""
    return norm / 2 + C * np.logaddexp(0.0, np.where(targets, -scores, scores)).sum(axis=1)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", a, b)
