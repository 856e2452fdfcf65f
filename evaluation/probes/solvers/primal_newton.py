"""Linear SVM by the finite Newton method on the features: a path of C, for documents of few features.

The squared hinge loss is quadratic as long as the same documents S lie inside the margin: with X_S their features and
a column of ones, the minimum of that quadratic solves (I + 2C X_S' X_S) w = 2C X_S' y_S. Where the solution keeps S it
is the solution; else one moves towards it as far as the loss falls, and S changes. A step costs |S| times the square
of the features, whatever the number of documents. A solution is accepted only with a small duality gap.

Source: Keerthi, DeCoste, A Modified Finite Newton Method for Fast Solution of Large Scale Linear SVMs, JMLR 6 (2005).
"""

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from textbench.evaluation.probes.solvers.finite_newton import GAP, MAX_STEPS, line_search

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class PrimalPath:
    """The binary problems of one set of documents, each solved again from its last solution.

    minimise |w|^2/2 + b^2/2 + C sum_i max(0, 1 - y_i (w.x_i/scale + b))^2

    X: csr or dense (n_documents, n_features), any real dtype, never modified; a copy of its features is kept as
    float64. No random numbers: the same bits each time.
    """

    def __init__(self, X: "np.ndarray | csr_matrix", scale: float) -> None:
        self.scale, self.shape = scale, X.shape
        self.rows = np.ones((X.shape[0], X.shape[1] + 1))  # the bias is a feature of ones
        self.rows[:, :-1] = X if isinstance(X, np.ndarray) else X.toarray()
        self.rows[:, :-1] /= scale
        self._last: dict[int, np.ndarray] = {}

    def solve_all(
        self, positive: np.ndarray, C: float, max_iter: int
    ) -> list[tuple[np.ndarray, float, bool]]:
        """What `solve` returns for each column of positive, bools (n_documents, n_problems)."""
        return [self.solve(k, column, C, max_iter) for k, column in enumerate(positive.T)]

    def solve(
        self, problem: int, positive: np.ndarray, C: float, max_iter: int
    ) -> tuple[np.ndarray, float, bool]:
        """Solve one problem: (coefficients (n_features,) of X, intercept, whether it converged).

        positive: (n_documents,) bools; problem: which one it is, for the start. max_iter: Newton steps.
        """
        sign = np.where(positive, 1.0, -1.0)
        w = self._last.get(problem, np.zeros(self.rows.shape[1]))
        scores, converged = self.rows @ w, False
        for _ in range(min(max_iter, MAX_STEPS)):
            inside = sign * scores < 1
            target = self._minimum(inside, sign, C)
            way, change = target - w, self.rows @ target - scores
            if np.array_equal(sign * (scores + change) < 1, inside):
                step = 1.0
            else:
                step = line_search(sign, scores, change, w @ way, way @ way, C)
            w, scores = w + step * way, scores + step * change
            if converged := self._relative_gap(w, scores, sign, C) <= GAP:
                break
        self._last[problem] = w
        return w[:-1] / self.scale, float(w[-1]), converged

    def _minimum(self, inside: np.ndarray, sign: np.ndarray, C: float) -> np.ndarray:
        """The minimum of the quadratic that has these documents inside the margin."""
        rows = self.rows[inside]
        hessian = rows.T @ rows  # half of it is computed, by BLAS's syrk
        hessian *= 2 * C
        hessian[np.diag_indices_from(hessian)] += 1.0
        factor = cho_factor(hessian, overwrite_a=True, check_finite=False)
        return np.asarray(cho_solve(factor, 2 * C * sign[inside] @ rows, check_finite=False))

    def _relative_gap(self, w: np.ndarray, scores: np.ndarray, sign: np.ndarray, C: float) -> float:
        """The primal objective less that of the dual point alpha = 2C max(0, 1 - y f), in parts of the primal."""
        slack = np.maximum(0.0, 1.0 - sign * scores)
        alpha = 2 * C * slack
        dual_w = (sign * alpha) @ self.rows
        primal = w @ w / 2 + C * slack @ slack
        dual = alpha.sum() - dual_w @ dual_w / 2 - alpha @ alpha / (4 * C)
        return float((primal - dual) / primal)
