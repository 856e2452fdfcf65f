"""Probes of the compressive-features paper where features are many more than documents.

They have the optimum of `evaluation.probes.ElasticNetProbe`, and its scaling of the features, for a fraction of its
work: all 5-grams of a thousand messages are a million columns, of which most are alike.

Source: Paskov, West, Mitchell, Hastie, Compressive Feature Learning, NIPS (2013), section 5 (glmnet's elastic net, and
"L2", its ridge penalty alone); Hastie, Tibshirani, Efficient Quadratic Regularization for Expression Arrays,
Biostatistics 5 (2004).
"""

from typing import Any

import numpy as np

from evaluation.merged_columns import MergedPath
from evaluation.probes import ElasticNetProbe

# The smallest C leave few features or none. A ridge penalty shares a weight out among all columns, so that its C is as
# much smaller as there are more of these.
C_GRIDS = {
    "elastic-net": (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    "ridge": tuple(10.0**power for power in range(-8, 2)),
}
L1_RATIOS = (0.1, 0.5, 0.9)
SMALLEST = 1e-10  # share of the largest eigenvalue, below which a direction is rounding


class WideElasticNet(ElasticNetProbe):
    """Elastic-net logistic regression with equal columns merged; arguments and what is learned are the base's."""

    def _prepared(self, X: Any, y: np.ndarray) -> Any:
        path = super()._prepared(X, y)
        return MergedPath(path.X, path.l1_ratio)


class WideRidge(ElasticNetProbe):
    """Logistic regression with a ridge penalty: minimise |w|^2/2 + C sum_i log(1 + exp(-y_i (w.x_i + b))).

    As the base, but for the penalty (l1_ratio is not read). The weights lie in the span of the documents, so that the
    problem is one of as many unknowns as there are documents (Hastie and Tibshirani, section 2).
    """

    def _prepared(self, X: Any, y: np.ndarray) -> Any:
        return GramPath(super()._prepared(X, y).X)


class GramPath:
    """The binary problems of one matrix through its Gram matrix; X: csc float64 (n_documents, n_features)."""

    def __init__(self, X: Any) -> None:
        self.X, self.shape = X, X.shape
        values, vectors = np.linalg.eigh((X @ X.T).toarray())
        kept = values > SMALLEST * values[-1]
        self._root = np.sqrt(values[kept])
        self._vectors = vectors[:, kept]

    def solve(
        self, problem: int, positive: np.ndarray, C: float, max_iter: int
    ) -> tuple[np.ndarray, float, bool]:
        """Solve one problem: (coefficients (n_features,), intercept, whether it converged)."""
        import warnings

        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        if not len(self._root):
            share = positive.mean()
            return np.zeros(self.shape[1]), float(np.log(share / (1 - share))), True
        solver = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-6, max_iter=max_iter)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the last return value says it
            solver.fit(self._vectors * self._root, positive)
        weights = self.X.T @ (self._vectors @ (solver.coef_[0] / self._root))
        return weights, float(solver.intercept_[0]), bool(np.max(solver.n_iter_) < max_iter)


def wide_probe(penalty: str, l1_ratio: float, row_norm: str) -> ElasticNetProbe:
    """Return the unfitted probe of a penalty of C_GRIDS; ValueError for another."""
    if penalty not in C_GRIDS:
        raise ValueError(f"penalty must be one of {', '.join(C_GRIDS)}; received {penalty!r}")
    probe = WideElasticNet if penalty == "elastic-net" else WideRidge
    return probe(l1_ratio=l1_ratio, row_norm=row_norm)
