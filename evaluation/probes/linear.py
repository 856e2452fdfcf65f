"""What the probes share: a linear classifier of every representation, fixed but for one constant C.

C is chosen by cross-validation on the training documents alone (`evaluation.probes.tuning`). A probe is saved as
arrays, never as a pickle.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

import numpy as np

from textbench.evaluation.columns import row_blocks

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

ProbeT = TypeVar("ProbeT", bound="LinearProbe")
FoldPath: TypeAlias = Callable[[Sequence[float]], Iterator[ProbeT]]  # from a grid of C to fitted probes
# The score, with its sign, of a label that no training document has, or that all have: beyond any margin.
CONSTANT = 1e6
ROWS = 8192  # sparse documents that are scored at once


class LinearProbe(ABC):
    """A linear classifier: what the probes share. The subclass says which loss, and how it is fitted.

    The features are divided by one number s, the root mean square of the training rows' norms. This only
    reparametrises C (training on X/s with C is training on X with C/s^2 and a bias feature of s), so that one
    grid of C serves counts, unit rows and singular vectors alike; SVMlight's default, C = 1/mean(x.x), is C =
    1 here. No relative scale between features changes. The bias is penalised like a weight. With `scaled`
    false s is 1, and C is that of the features as given: how papers give theirs.

    X: csr or dense (n_documents, n_features), any real dtype, never modified. y: (n_documents,) ints, or, for
    several labels a document, a csr or dense indicator (n_documents, n_labels): then each label is a problem
    of its own; one that no training document has scores -CONSTANT everywhere, one that all have +CONSTANT.

    Learned: `classes_` (n_classes,), the columns for several labels; `coef_` (n_classes, n_features) and
    `intercept_` (n_classes,), both for features as given (one row for two classes or one), `scale_`, and
    `converged_`: whether the solver met its tolerance in max_iter. `thresholds_` is None, or (n_labels,) for
    several labels: `fit` sets 0 and who has tuned others assigns them. With one class, that class is predicted.
    ValueError if C is not positive, shapes differ or there is no document.
    """

    coef_: Any
    # Whether random_state draws more than the order in which a solver visits the documents of a convex problem.
    DRAWS = False

    def __init__(
        self, C: float = 1.0, random_state: int = 0, max_iter: int = 10_000, scaled: bool = True
    ) -> None:
        self.C = C
        self.random_state = random_state
        self.max_iter = max_iter
        self.scaled = scaled

    @abstractmethod
    def _fit_label(self, documents: Any, label: int, y: np.ndarray) -> None:
        """Fit the booleans y (n_documents,), neither all true nor all false: row `label` of what is learned."""

    def fit(self, X: "np.ndarray | csr_matrix", y: "np.ndarray | csr_matrix") -> Self:
        """Learn the hyperplanes from X (n_documents, n_features) and y, class ids or an indicator."""
        return self._fit(self._prepared(X, y), y)

    def fit_path(
        self, X: "np.ndarray | csr_matrix", y: "np.ndarray | csr_matrix", c_grid: Sequence[float]
    ) -> Iterator[Self]:
        """Yield a fitted probe for each C of c_grid, in that order; the other constants are this probe's.

        What no C changes is computed once, and a solver that can starts from the solution before.
        """
        return self._path(self._prepared(X, y), y, c_grid)

    def fit_folds(
        self,
        X: "np.ndarray | csr_matrix",
        y: "np.ndarray | csr_matrix",
        folds: Iterable[tuple[np.ndarray, np.ndarray]],
    ) -> "Iterator[tuple[FoldPath[Self], Any]]":
        """Yield for each of the folds, positions (train, test), what fits probes and what these are to be asked about.

        The former returns the probes of `fit_path` for a grid of C; called again it may go on from its last solution.
        The latter is a matrix (n_test, n) that `predict` and `decision_function` of these probes take: the rows
        `test` of X, or another form of them.
        """
        for train, test in folds:
            yield partial(self._fit_rows, X, y, train), X[test]

    def _fit_rows(
        self,
        X: "np.ndarray | csr_matrix",
        y: "np.ndarray | csr_matrix",
        train: np.ndarray,
        c_grid: Sequence[float],
    ) -> Iterator[Self]:
        return copy(self).fit_path(X[train], y[train], c_grid)

    def _path(self, documents: Any, y: "np.ndarray | csr_matrix", c_grid: Sequence[float]) -> Iterator[Self]:
        for C in c_grid:
            probe = copy(self)
            probe.C = C
            yield probe._fit(documents, y)

    def _prepared(self, X: "np.ndarray | csr_matrix", y: "np.ndarray | csr_matrix") -> Any:
        """The documents as the solver wants them, with `shape`; sets `scale_`."""
        check_documents(X, y)
        self.scale_: Any = self._scale(X)
        return _divided(X, self.scale_)

    def _scale(self, X: "np.ndarray | csr_matrix") -> float:
        return root_mean_square_norm(X) if self.scaled else 1.0

    def _fit(self, documents: Any, y: "np.ndarray | csr_matrix") -> Self:
        if not self.C > 0:
            raise ValueError(f"C must be positive; received {self.C!r}")
        self.thresholds_: np.ndarray | None = None
        if y.ndim == 2:
            self.classes_ = np.arange(y.shape[1])
            self.thresholds_ = np.zeros(y.shape[1])
            self._fit_each(documents, dense_indicator(y))
            return self
        self.classes_ = np.unique(y)
        if len(self.classes_) == 1:
            self.coef_, self.intercept_ = np.zeros((1, documents.shape[1])), np.zeros(1)
            self.converged_ = True
            return self
        self._fit_classes(documents, y)
        return self

    def _fit_classes(self, documents: Any, y: np.ndarray) -> None:
        # One row, for the second class, decides between two.
        others = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        self._fit_each(documents, y[:, None] == others)

    def _fit_each(self, documents: Any, indicator: np.ndarray) -> None:
        """Fit each column of a boolean indicator (n_documents, n_labels) against the rest."""
        n_positive = indicator.sum(axis=0)
        self.coef_ = np.zeros((indicator.shape[1], documents.shape[1]))
        self.intercept_ = np.where(n_positive == 0, -CONSTANT, CONSTANT)
        self.converged_ = True
        labels = np.flatnonzero((n_positive > 0) & (n_positive < len(indicator)))
        if len(labels):
            self._fit_labels(documents, labels, indicator[:, labels])

    def _fit_labels(self, documents: Any, labels: np.ndarray, indicator: np.ndarray) -> None:
        """Fit the columns of an indicator (n_documents, n_labels) with both kinds of documents: those rows."""
        for label, y in zip(labels.tolist(), indicator.T, strict=True):
            self._fit_label(documents, label, y)

    def decision_function(self, X: "np.ndarray | csr_matrix") -> np.ndarray:
        """Signed scores: (n_documents, n_classes), or (n_documents,) for the second of two classes.

        ValueError for another number of features than in `fit`.
        """
        if X.shape[1] != self.coef_.shape[1]:
            raise ValueError(
                f"X must have the {self.coef_.shape[1]} features of training; received {X.shape[1]}"
            )
        # In double precision sparse documents are copied to it: some at a time.
        is_small = isinstance(X, np.ndarray) or X.shape[0] <= ROWS
        blocks = [X] if is_small else (X[rows] for rows in row_blocks(X.shape[0], ROWS))
        scores = np.concatenate([self._products(block) for block in blocks]) + self.intercept_
        return scores[:, 0] if len(self.intercept_) == 1 and self.thresholds_ is None else scores

    def _products(self, X: "np.ndarray | csr_matrix") -> np.ndarray:
        products = X @ self.coef_.T
        return products if isinstance(products, np.ndarray) else products.toarray()

    def predict(self, X: "np.ndarray | csr_matrix") -> "np.ndarray | csr_matrix":
        """The class of the highest score (n_documents,); for several labels those above their thresholds.

        The latter as a csr indicator int8 (n_documents, n_labels).
        """
        return self.labels_of(self.decision_function(X))

    def labels_of(self, scores: np.ndarray) -> "np.ndarray | csr_matrix":
        """What `predict` returns where `decision_function` returned these scores."""
        if self.thresholds_ is not None:
            from scipy.sparse import csr_matrix

            return csr_matrix(scores > self.thresholds_, dtype=np.int8)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(scores))
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def to_arrays(self) -> dict[str, Any]:
        """Return everything that prediction needs, as arrays and JSON values."""
        arrays = {
            "coef": self.coef_,
            "intercept": self.intercept_,
            "classes": self.classes_,
            "scale": self.scale_,
            "converged": self.converged_,
            "C": self.C,
            "random_state": self.random_state,
            "max_iter": self.max_iter,
            "scaled": self.scaled,
        }
        return arrays | ({} if self.thresholds_ is None else {"thresholds": self.thresholds_})

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """The fitted probe that `to_arrays` described."""
        probe = cls(float(arrays["C"]), int(arrays["random_state"]), int(arrays["max_iter"]))
        probe.scaled = bool(arrays["scaled"])
        probe.coef_ = np.asarray(arrays["coef"])
        probe.intercept_ = np.asarray(arrays["intercept"])
        probe.classes_ = np.asarray(arrays["classes"])
        scale = np.asarray(arrays["scale"])
        probe.scale_ = scale if scale.ndim else float(scale)
        probe.converged_ = bool(arrays["converged"])
        probe.thresholds_ = np.asarray(arrays["thresholds"]) if "thresholds" in arrays else None
        return probe


def check_documents(X: Any, y: "np.ndarray | csr_matrix") -> None:
    """Raise ValueError unless X and y, class ids or an indicator, have one row a document, at least one.

    y: (n_documents,), or (n_documents, n_labels).
    """
    n_rows = len(X) if isinstance(X, list) else X.shape[0]
    if y.shape[0] == 0 or n_rows != y.shape[0]:
        raise ValueError(
            f"X and y must have one row a document; received {n_rows} rows, {y.shape[0]} classes"
        )
    if y.ndim == 2 and y.shape[1] == 0:
        raise ValueError("an indicator must have at least one label; received none")


def dense_indicator(Y: "np.ndarray | csr_matrix") -> np.ndarray:
    """The indicator Y as a dense boolean array (n_documents, n_labels)."""
    return (Y if isinstance(Y, np.ndarray) else Y.toarray()).astype(bool)


def root_mean_square_norm(X: "np.ndarray | csr_matrix", rows: np.ndarray | None = None) -> float:
    """The root mean square of the norms of X's rows, or of some, ints (n,); 1 where all are zero."""
    n_rows = X.shape[0] if rows is None else len(rows)
    blocks = [X] if rows is None else (X[rows[some]] for some in row_blocks(n_rows, ROWS))
    square = sum(map(_square, blocks))
    return math.sqrt(square / n_rows) or 1.0  # all-zero features stay as they are


def _square(X: "np.ndarray | csr_matrix") -> float:
    values = X.ravel(order="K") if isinstance(X, np.ndarray) else X.data
    return float(np.einsum("i,i->", values, values, dtype=np.float64))


def _divided(X: "np.ndarray | csr_matrix", scale: float) -> "np.ndarray | csr_matrix":
    # One float64 copy, made here; LIBLINEAR's wrapper then takes it as it is.
    if isinstance(X, np.ndarray):
        return np.divide(X, scale, dtype=np.float64, order="C")
    scaled = X.astype(np.float64)
    scaled.data /= scale
    return scaled
