"""Probes of the compressive-features paper where features are many more than documents.

They have the optimum of `evaluation.probes.ElasticNetProbe`, and its scaling of the features, for a fraction of its
work: all 5-grams of a thousand messages are a million columns, of which most are alike.

Source: Paskov, West, Mitchell, Hastie, Compressive Feature Learning, NIPS (2013), section 5 (glmnet's elastic net, and
"L2", its ridge penalty alone); Hastie, Tibshirani, Efficient Quadratic Regularization for Expression Arrays,
Biostatistics 5 (2004), section 2.
"""

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any, Self

import numpy as np

from evaluation.merged_columns import MergedPath
from evaluation.probes import ElasticNetProbe

# The first C leave few features or none. A ridge penalty shares a weight out among all columns, so that its C is as
# much smaller as there are more of these.
GRIDS: dict[str, Mapping[str, tuple[float, ...]]] = {
    "elastic-net": {
        "l1_ratio": (0.003, 0.03, 0.3),
        "C": (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    },
    "ridge": {"C": tuple(10.0**power for power in range(-6, 1))},
}
SMALLEST = 1e-10  # share of the largest eigenvalue, below which a direction is rounding
ACCURACY = 1e-7  # of a ridge objective, as a share of it: what the last Newton step promised


class WideElasticNet(ElasticNetProbe):
    """Elastic-net logistic regression with equal columns merged; arguments and what is learned are the base's."""

    def _prepared(self, X: Any, y: np.ndarray) -> Any:
        path = super()._prepared(X, y)
        return MergedPath(path.X, path.l1_ratio)

    def fit_grid(self, X: Any, y: np.ndarray) -> Iterator[Self]:
        """Yield this probe fitted with every pair of constants of the grid, the columns prepared once."""
        prepared = self._prepared(X, y)
        for l1_ratio in GRIDS["elastic-net"]["l1_ratio"]:
            prepared.restart(l1_ratio)
            for C in GRIDS["elastic-net"]["C"]:
                probe = copy(self)
                probe.C, probe.l1_ratio = C, l1_ratio
                yield probe._fit(prepared, y)


class WideRidge(ElasticNetProbe):
    """Logistic regression with a ridge penalty: minimise |w|^2/2 + C sum_i log(1 + exp(-y_i (w.x_i + b))).

    As the base, but for the penalty (l1_ratio is not read). The weights lie in the span of the documents, so that the
    problem is one of as many unknowns as there are documents (Hastie and Tibshirani).
    """

    def _prepared(self, X: Any, y: np.ndarray) -> Any:
        return GramPath(super()._prepared(X, y).X)

    def fit_grid(self, X: Any, y: np.ndarray) -> Iterator[Self]:
        """Yield this probe fitted with every C of the grid."""
        yield from self.fit_path(X, y, GRIDS["ridge"]["C"])


class GramPath:
    """The ridge problems of one matrix through its Gram matrix, one C after another, each from the last solution.

    X: csc float64 (n_documents, n_features), as the penalty should see it.
    """

    def __init__(self, X: Any) -> None:
        self.X, self.shape = X, X.shape
        values, vectors = np.linalg.eigh((X @ X.T).toarray())
        kept = values > SMALLEST * max(values[-1], 0.0)
        self._root, self._vectors = np.sqrt(values[kept]), vectors[:, kept]
        # Documents in the coordinates of their span, and a last column for the intercept.
        self._inside = np.column_stack([self._vectors * self._root, np.ones(len(values))])
        self._last: dict[int, np.ndarray] = {}

    def solve(
        self, problem: int, positive: np.ndarray, C: float, max_iter: int
    ) -> tuple[np.ndarray, float, bool]:
        """Solve one problem: (coefficients (n_features,), intercept, whether it converged)."""
        start = self._last.get(problem)
        if start is None:
            start = np.zeros(self._inside.shape[1])
            start[-1] = np.log(positive.mean() / (1 - positive.mean()))
        found, converged = _ridge(self._inside, positive.astype(np.float64), C, max_iter, start)
        self._last[problem] = found
        weights = self.X.T @ (self._vectors @ (found[:-1] / self._root))
        return weights, float(found[-1]), converged


def _ridge(
    Z: np.ndarray, target: np.ndarray, C: float, max_iter: int, point: np.ndarray
) -> tuple[np.ndarray, bool]:
    """Newton's method with halved steps; the last of the unknowns is the intercept, which is not penalised."""
    penalised = np.ones(Z.shape[1])
    penalised[-1] = 0.0

    def objective(at: np.ndarray) -> float:
        margins = Z @ at
        return float((penalised * at) @ at / 2 + C * (np.logaddexp(0, margins) - target * margins).sum())

    value = objective(point)
    for _ in range(max_iter):
        probability = 1 / (1 + np.exp(-np.clip(Z @ point, -500, 500)))
        gradient = penalised * point + C * (Z.T @ (probability - target))
        curvature = (Z.T * (C * probability * (1 - probability))) @ Z
        curvature[np.diag_indices(len(point))] += penalised + 1e-12
        step = np.linalg.solve(curvature, gradient)
        promised = gradient @ step
        if promised <= ACCURACY * value:
            return point, True
        share = 1.0
        while (lower := objective(point - share * step)) > value - 0.01 * share * promised:
            share /= 2
            if share < 1e-9:
                return point, False
        point, value = point - share * step, lower
    return point, False


PENALTIES: dict[str, type[WideElasticNet] | type[WideRidge]] = {
    "elastic-net": WideElasticNet,
    "ridge": WideRidge,
}
