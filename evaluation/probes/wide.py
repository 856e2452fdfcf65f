"""Probes where features may be many more than documents: logistic regression with an elastic net or a ridge penalty.

All 5-grams of 20 Newsgroups are twelve million columns, of which most are equal to others once they are scaled: the
elastic net is solved for those that differ (`evaluation.probes.solvers.merged_columns`). The ridge penalty is one of
as many unknowns as there are documents.

Source: Paskov, West, Mitchell, Hastie, Compressive Feature Learning, NIPS (2013), section 5 (glmnet's elastic net, and
"L2", its ridge penalty alone); Hastie, Tibshirani, Efficient Quadratic Regularization for Expression Arrays,
Biostatistics 5 (2004), section 2.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from textbench.evaluation.probes.linear import LinearProbe, check_documents

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix, csr_matrix

    from textbench.evaluation.probes.solvers.merged_columns import MergedPath

# The first C leave few features or none. A ridge penalty shares a weight out among all columns, so that its C is as
# much smaller as there are more of these.
GRIDS: dict[str, Mapping[str, tuple[float, ...]]] = {
    "elastic-net": {
        "l1_ratio": (0.003, 0.03, 0.3),
        "C": (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    },
    "ridge": {"C": tuple(10.0**power for power in range(-6, 1))},
}
ROW_NORMS = ("none", "l1")
SMALLEST = 1e-10  # share of the largest eigenvalue, below which a direction is rounding
ACCURACY = 1e-7  # of a ridge objective, as a share of it: what the last Newton step promised
STEP_ACCURACY = 1e-2  # of a Newton step of it: the residual's length that is left


class ScaledProbe(LinearProbe):
    """Logistic regression, class by class, on features of one deviation: what the elastic net and the ridge share.

    Arguments, shapes, errors: `LinearProbe`, but every feature is divided by its standard deviation in the
    training documents (1 if it does not vary; features are not centred), which is `scale_` (n_features,), and
    the bias is not penalised. max_iter: Newton steps. row_norm "l1" first divides each document by the sum of its
    absolute values; `coef_` is for documents after that. Scores are log odds.
    """

    def __init__(
        self, C: float = 1.0, random_state: int = 0, max_iter: int = 200, *, row_norm: str = "none"
    ) -> None:
        super().__init__(C, random_state, max_iter)
        self.row_norm = row_norm

    @abstractmethod
    def fit_grid(self, X: "np.ndarray | csr_matrix", y: np.ndarray) -> Iterator[Self]:
        """Yield this probe fitted with every combination of the constants in GRIDS, in that order."""

    def _columns(self, X: "np.ndarray | csr_matrix", y: "np.ndarray | csr_matrix") -> "csc_matrix":
        """The documents as the penalty should see them; sets `scale_`."""
        from scipy.sparse import csc_matrix, diags_array

        if self.row_norm not in ROW_NORMS:
            raise ValueError(f"row_norm must be one of {', '.join(ROW_NORMS)}; received {self.row_norm!r}")
        check_documents(X, y)
        columns = csc_matrix(self._normed(X), dtype=np.float64)
        mean = np.asarray(columns.mean(axis=0)).ravel()
        deviations = columns.power(2).mean(axis=0) - np.square(mean)
        variance = np.maximum(np.asarray(deviations).ravel(), 0.0)
        # Rounding leaves a constant column a variance of about the last bit of its square.
        self.scale_ = np.where(variance > 1e-12 * mean**2, np.sqrt(variance), 1.0)
        return csc_matrix(columns @ diags_array(1 / self.scale_))

    def _fit_label(self, documents: Any, label: int, y: np.ndarray) -> None:
        self.coef_[label], self.intercept_[label], converged = documents.solve(
            label, y, self.C, self.max_iter
        )
        self.converged_ &= converged

    def _normed(self, X: "np.ndarray | csr_matrix") -> Any:
        if self.row_norm == "none":
            return X
        from sklearn.preprocessing import normalize

        return normalize(X.astype(np.float64), norm=self.row_norm)

    def decision_function(self, X: "np.ndarray | csr_matrix") -> np.ndarray:
        """Log odds: (n_documents, n_classes), or (n_documents,) for the second of two classes."""
        return super().decision_function(self._normed(X))

    def to_arrays(self) -> dict[str, Any]:
        """Return everything that prediction needs, as arrays and JSON values."""
        return super().to_arrays() | {"row_norm": self.row_norm}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """The fitted probe that `to_arrays` described."""
        probe = super().from_arrays(arrays)
        probe.row_norm = str(arrays["row_norm"])
        return probe


class ElasticNetProbe(ScaledProbe):
    """Elastic-net logistic regression: absolute values and squares of the weights penalised.

    Arguments, shapes, errors: `ScaledProbe`. l1_ratio, in (0, 1]: the share of the absolute values. `coef_` is a csr
    matrix (n_classes, n_features), for there may be tens of millions of features, of which few are used.

    Source: Paskov, West, Mitchell, Hastie, Compressive Feature Learning, NIPS (2013), section 6.
    """

    def __init__(
        self,
        C: float = 1.0,
        random_state: int = 0,
        max_iter: int = 200,
        l1_ratio: float = 0.5,
        row_norm: str = "none",
    ) -> None:
        super().__init__(C, random_state, max_iter, row_norm=row_norm)
        self.l1_ratio = l1_ratio

    def fit_grid(self, X: "np.ndarray | csr_matrix", y: np.ndarray) -> Iterator[Self]:
        """Yield this probe fitted with every pair of constants in GRIDS, in that order."""
        documents = self._prepared(X, y)
        for l1_ratio in GRIDS["elastic-net"]["l1_ratio"]:
            documents.restart(l1_ratio)
            for probe in self._path(documents, y, GRIDS["elastic-net"]["C"]):
                probe.l1_ratio = l1_ratio
                yield probe

    def _prepared(self, X: "np.ndarray | csr_matrix", y: "np.ndarray | csr_matrix") -> "MergedPath":
        from textbench.evaluation.probes.solvers.merged_columns import MergedPath

        if not 0 < self.l1_ratio <= 1:
            raise ValueError(f"l1_ratio must lie in (0, 1]; received {self.l1_ratio!r}")
        return MergedPath(self._columns(X, y), self.l1_ratio)

    def _fit(self, documents: Any, y: "np.ndarray | csr_matrix") -> Self:
        from scipy.sparse import csr_matrix

        super()._fit(documents, y)  # the weights of merged columns
        self.coef_ = csr_matrix(csr_matrix(self.coef_) @ documents.shares)
        self.coef_.data /= self.scale_[self.coef_.indices]
        return self

    def to_arrays(self) -> dict[str, Any]:
        """Return everything that prediction needs, as arrays and JSON values."""
        coef = {"coef": self.coef_.data, "columns": self.coef_.indices, "starts": self.coef_.indptr}
        return super().to_arrays() | coef | {"n_features": self.coef_.shape[1], "l1_ratio": self.l1_ratio}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """The fitted probe that `to_arrays` described."""
        from scipy.sparse import csr_matrix

        probe = super().from_arrays(arrays)
        shape = len(arrays["starts"]) - 1, int(arrays["n_features"])
        probe.coef_ = csr_matrix((arrays["coef"], arrays["columns"], arrays["starts"]), shape=shape)
        probe.l1_ratio = float(arrays["l1_ratio"])
        return probe


class RidgeProbe(ScaledProbe):
    """Logistic regression with a ridge penalty: minimise |w|^2/2 + C sum_i log(1 + exp(-y_i (w.x_i + b))).

    Arguments, shapes, errors: `ScaledProbe`. The weights lie in the span of the documents (Hastie and Tibshirani).
    """

    def _prepared(self, X: "np.ndarray | csr_matrix", y: "np.ndarray | csr_matrix") -> "GramPath":
        return GramPath(self._columns(X, y))

    def _fit_label(self, documents: Any, label: int, y: np.ndarray) -> None:
        super()._fit_label(documents, label, y)
        self.coef_[label] /= self.scale_

    def fit_grid(self, X: "np.ndarray | csr_matrix", y: np.ndarray) -> Iterator[Self]:
        """Yield this probe fitted with every C in GRIDS, in that order."""
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
        """Solve one problem: (coefficients (n_features,), intercept, whether it converged).

        positive: bools (n_documents,).
        """
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
    squares = np.einsum("ij,ij->j", Z, Z)

    def objective(at: np.ndarray) -> float:
        margins = Z @ at
        return float((penalised * at) @ at / 2 + C * (np.logaddexp(0, margins) - target * margins).sum())

    value = objective(point)
    for _ in range(max_iter):
        probability = 1 / (1 + np.exp(-np.clip(Z @ point, -500, 500)))
        gradient = penalised * point + C * (Z.T @ (probability - target))
        step = _newton_step(Z, penalised + 1e-12, C * probability * (1 - probability), squares, gradient)
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


def _newton_step(
    Z: np.ndarray, diagonal: np.ndarray, curvature: np.ndarray, squares: np.ndarray, gradient: np.ndarray
) -> np.ndarray:
    """Solve (diag(diagonal) + Z' diag(curvature) Z) step = gradient by preconditioned conjugate gradients.

    All columns of Z but the last, the intercept's, are orthogonal, with these squares: were the curvature the same
    for every document, the preconditioner would be the matrix itself but for the intercept's row.
    """
    inverse = 1 / (diagonal + curvature.mean() * squares)
    step, left = np.zeros_like(gradient), gradient
    direction = preconditioned = inverse * left
    size = first = left @ preconditioned
    while size > STEP_ACCURACY**2 * first:
        product = diagonal * direction + Z.T @ (curvature * (Z @ direction))
        length = size / (direction @ product)
        step, left = step + length * direction, left - length * product
        preconditioned = inverse * left
        size, last = left @ preconditioned, size
        direction = preconditioned + size / last * direction
    return step


PENALTIES: dict[str, type[ElasticNetProbe] | type[RidgeProbe]] = {
    "elastic-net": ElasticNetProbe,
    "ridge": RidgeProbe,
}
