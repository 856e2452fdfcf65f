"""The probes: the classifiers that every representation is judged by, fixed but for one constant C.

C is chosen by cross-validation on the training documents alone (`evaluation.tuning`). A probe is saved as
arrays, never as a pickle.

Source: Fan, Chang, Hsieh, Wang, Lin, LIBLINEAR: A Library for Large Linear Classification, JMLR 9 (2008).
"""

import inspect
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from evaluation.solver_choice import Solver, choose_logistic_solver, choose_solver, full_columns

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from evaluation.gram import GramDocuments

# On Reuters R8 predictions at 1e-3 and at 1e-5 are the same for counts and tf-idf, and differ for at most 3
# in 1,000 documents for 200 singular vectors; the large C take less than half the time.
TOLERANCE = 1e-3
ROW_NORMS = ("none", "l1")
# The score, with its sign, of a label that no training document has, or that all have: beyond any margin.
CONSTANT = 1e6


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
        c_grid: Sequence[float],
    ) -> Iterator[tuple[Iterator[Self], Any]]:
        """Yield for each fold, positions (train, test), the probes of `fit_path` and what they are to be asked about.

        The latter is a matrix (n_test, n) that `predict` and `decision_function` of these probes take: the rows
        `test` of X, or another form of them.
        """
        for train, test in folds:
            yield copy(self).fit_path(X[train], y[train], c_grid), X[test]

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
        return _root_mean_square_norm(X) if self.scaled else 1.0

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
        self._fit_labels(documents, labels, indicator[:, labels])

    def _fit_labels(self, documents: Any, labels: np.ndarray, indicator: np.ndarray) -> None:
        """Fit the columns of an indicator (n_documents, n_labels) with both kinds of documents: those rows."""
        for label, y in zip(labels.tolist(), indicator.T, strict=True):
            self._fit_label(documents, label, y)

    def decision_function(self, X: "np.ndarray | csr_matrix") -> np.ndarray:
        """Signed scores: (n_documents, n_classes), or (n_documents,) for the second of two classes."""
        if X.shape[1] != self.coef_.shape[1]:
            raise ValueError(
                f"X must have the {self.coef_.shape[1]} features of training; received {X.shape[1]}"
            )
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return scores[:, 0] if len(self.intercept_) == 1 and self.thresholds_ is None else scores

    def predict(self, X: "np.ndarray | csr_matrix") -> "np.ndarray | csr_matrix":
        """The class of the highest score (n_documents,); for several labels those above their thresholds.

        The latter as a csr indicator int8 (n_documents, n_labels).
        """
        scores = self.decision_function(X)
        if self.thresholds_ is not None:
            from scipy.sparse import csr_matrix

            return csr_matrix(scores > self.thresholds_, dtype=np.int8)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(scores))
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def to_arrays(self) -> dict[str, Any]:
        """Everything that prediction needs, as arrays and JSON values."""
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


class LiblinearProbe(LinearProbe):
    """A probe that LIBLINEAR fits, through scikit-learn, or what is quicker for its documents."""

    @abstractmethod
    def _solver(self) -> Any:
        """The unfitted scikit-learn estimator."""

    @abstractmethod
    def _chosen(self, X: "np.ndarray | csr_matrix") -> Solver:
        """Who solves the problems of these documents."""

    @abstractmethod
    def _gram_documents(self) -> "type[GramDocuments]":
        """How the solver wants documents that go by their inner products."""

    def fit_path(
        self, X: "np.ndarray | csr_matrix", y: "np.ndarray | csr_matrix", c_grid: Sequence[float]
    ) -> Iterator[Self]:
        """Yield a fitted probe for each C of c_grid, in that order; neighbours in it may be solved together."""
        return self._path(self._prepared(X, y, c_grid), y, c_grid)

    def _prepared(
        self,
        X: "np.ndarray | csr_matrix",
        y: "np.ndarray | csr_matrix",
        c_grid: Sequence[float] | None = None,
    ) -> Any:
        if self._chosen(X) != "gram":
            return super()._prepared(X, y)
        from evaluation.gram import gram_matrix

        check_documents(X, y)
        self.scale_ = self._scale(X)
        every = np.arange(X.shape[0])
        return self._gram_documents()(X, gram_matrix(X), every, self.scale_, c_grid or (self.C,))

    def fit_folds(
        self,
        X: "np.ndarray | csr_matrix",
        y: "np.ndarray | csr_matrix",
        folds: Iterable[tuple[np.ndarray, np.ndarray]],
        c_grid: Sequence[float],
    ) -> Iterator[tuple[Iterator[Self], Any]]:
        """Yield for each fold the probes of `fit_path` and what they are to be asked about.

        One Gram matrix serves all folds, where it is the quicker way; the probes then know no features, but
        the products with the fold's documents, which are what they are asked about.
        """
        if self._chosen(X) != "gram":
            yield from super().fit_folds(X, y, folds, c_grid)
            return
        from scipy.sparse import eye_array

        from evaluation.gram import gram_matrix

        gram = gram_matrix(X)
        for train, test in folds:
            check_documents(X[train], y[train])
            probe = copy(self)
            probe.scale_ = self._scale(X[train])
            documents = self._gram_documents()(X, gram, train, probe.scale_, c_grid, held_out=test)
            yield probe._path(documents, y[train], c_grid), eye_array(len(test), format="csr")

    def _fit_label(self, documents: Any, label: int, y: np.ndarray) -> None:
        solver = self._solve(documents, y)
        self.coef_[label] = solver.coef_[0] / self.scale_
        self.intercept_[label] = solver.intercept_[0]

    def _solve(self, documents: Any, y: np.ndarray) -> Any:
        from sklearn.exceptions import ConvergenceWarning

        solver = self._solver()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # `converged_` says it
            solver.fit(documents, y)
        self.converged_ &= bool(np.max(solver.n_iter_) < self.max_iter)
        return solver


class LinearSVMProbe(LiblinearProbe):
    """Linear support vector machine: L2-regularised squared hinge loss, each class against the rest.

    Arguments, shapes, errors: `LinearProbe`. Scores are margins, in units of the hinge. `choose_solver` says who
    solves the problem: Newton's method on the features or on the Gram matrix or dual descent, with a certified
    duality gap, or LIBLINEAR. max_iter: Newton steps, passes of dual descent or LIBLINEAR's.
    """

    def _chosen(self, X: "np.ndarray | csr_matrix") -> Solver:
        return choose_solver(X)

    def _gram_documents(self) -> "type[GramDocuments]":
        from evaluation.gram import HingeDocuments

        return HingeDocuments

    def _solver(self) -> Any:
        from sklearn.svm import LinearSVC

        return LinearSVC(
            C=self.C, dual="auto", tol=TOLERANCE, max_iter=self.max_iter, random_state=self.random_state
        )

    def _prepared(
        self,
        X: "np.ndarray | csr_matrix",
        y: "np.ndarray | csr_matrix",
        c_grid: Sequence[float] | None = None,
    ) -> Any:
        solver = self._chosen(X)
        if solver in ("liblinear", "gram"):
            return super()._prepared(X, y, c_grid)
        check_documents(X, y)
        self.scale_ = self._scale(X)
        if solver == "primal":
            from evaluation.primal_newton import PrimalPath

            return PrimalPath(X, self.scale_)
        from evaluation.dual_descent import DualPath  # it loads numba, which takes a second

        return DualPath(X, full_columns(X), self.scale_, self.random_state)

    def _fit_classes(self, documents: Any, y: np.ndarray) -> None:
        if hasattr(documents, "solve"):
            super()._fit_classes(documents, y)
            return
        self.converged_ = True
        solver = self._solve(documents, y)  # LIBLINEAR goes through the classes itself
        self.coef_ = solver.coef_ / self.scale_
        self.intercept_ = solver.intercept_

    def _fit_label(self, documents: Any, label: int, y: np.ndarray) -> None:
        if not hasattr(documents, "solve"):
            super()._fit_label(documents, label, y)
            return
        self.coef_[label], self.intercept_[label], converged = documents.solve(
            label, y, self.C, self.max_iter
        )
        self.converged_ &= converged


class LogisticRegressionProbe(LiblinearProbe):
    """Logistic regression: L2-regularised logistic loss, each class against the rest.

    Arguments, shapes, errors: `LinearProbe`. Scores are log odds, so that a score above 0 is a probability
    above one half. Solved for all labels together by Newton's method on the Gram matrix, with a certified duality
    gap, or by LIBLINEAR's trust region method (`choose_logistic_solver`), both without random numbers. max_iter: their
    steps.
    """

    def _chosen(self, X: "np.ndarray | csr_matrix") -> Solver:
        return choose_logistic_solver(X)

    def _gram_documents(self) -> "type[GramDocuments]":
        from evaluation.gram import LogisticDocuments

        return LogisticDocuments

    def _fit_labels(self, documents: Any, labels: np.ndarray, indicator: np.ndarray) -> None:
        if not hasattr(documents, "solve"):
            super()._fit_labels(documents, labels, indicator)
            return
        self.coef_[labels], self.intercept_[labels], converged = documents.solve(
            indicator, self.C, self.max_iter
        )
        self.converged_ &= converged

    def _solver(self) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=self.C, solver="liblinear", tol=TOLERANCE, max_iter=self.max_iter)


class ElasticNetProbe(LinearProbe):
    """Elastic-net logistic regression: absolute values and squares of the weights penalised, class by class.

    Arguments, shapes, errors: `LinearProbe`, but every feature is divided by its standard deviation in the
    training documents (1 if it does not vary; features are not centred), which is `scale_` (n_features,), and
    the bias is not penalised. l1_ratio, in (0, 1]: the share of the absolute values; max_iter: Newton steps.
    row_norm "l1" first divides each document by the sum of its absolute values. Scores are log odds.
    `coef_` (n_classes, n_features) is for documents after row_norm, and mostly zero.

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
        super().__init__(C, random_state, max_iter)
        self.l1_ratio = l1_ratio
        self.row_norm = row_norm

    def _prepared(self, X: "np.ndarray | csr_matrix", y: "np.ndarray | csr_matrix") -> Any:
        from scipy.sparse import csc_matrix, diags_array

        from evaluation.elastic_net import ElasticNetPath

        if not 0 < self.l1_ratio <= 1:
            raise ValueError(f"l1_ratio must lie in (0, 1]; received {self.l1_ratio!r}")
        if self.row_norm not in ROW_NORMS:
            raise ValueError(f"row_norm must be one of {', '.join(ROW_NORMS)}; received {self.row_norm!r}")
        check_documents(X, y)
        columns = csc_matrix(self._normed(X), dtype=np.float64)
        mean = np.asarray(columns.mean(axis=0)).ravel()
        deviations = columns.power(2).mean(axis=0) - np.square(mean)
        variance = np.maximum(np.asarray(deviations).ravel(), 0.0)
        # Rounding leaves a constant column a variance of about the last bit of its square.
        self.scale_ = np.where(variance > 1e-12 * mean**2, np.sqrt(variance), 1.0)
        return ElasticNetPath(csc_matrix(columns @ diags_array(1 / self.scale_)), self.l1_ratio)

    def _fit_label(self, documents: Any, label: int, y: np.ndarray) -> None:
        weights, self.intercept_[label], converged = documents.solve(label, y, self.C, self.max_iter)
        self.coef_[label] = weights / self.scale_
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
        """Everything that prediction needs, as arrays and JSON values."""
        return super().to_arrays() | {"l1_ratio": self.l1_ratio, "row_norm": self.row_norm}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """The fitted probe that `to_arrays` described."""
        probe = super().from_arrays(arrays)
        probe.l1_ratio, probe.row_norm = float(arrays["l1_ratio"]), str(arrays["row_norm"])
        return probe


PROBES: dict[str, type[LinearProbe]] = {
    "linear-svm": LinearSVMProbe,
    "logistic-regression": LogisticRegressionProbe,
    "elastic-net": ElasticNetProbe,
}


def probe_class(name: str) -> type[LinearProbe]:
    """The probe of that name; ValueError for a name that is not in PROBES, nearest first."""
    if name not in PROBES:
        nearest = get_close_matches(name, PROBES, n=len(PROBES), cutoff=0.0)
        raise ValueError(f"probe must be one of {', '.join(nearest)}; received {name!r}")
    return PROBES[name]


def build_probe(name: str, C: float = 1.0, random_state: int = 0, **settings: Any) -> LinearProbe:
    """The unfitted probe of that name; ValueError for a name that is not in PROBES, or a setting it lacks."""
    probe = probe_class(name)
    known = [key for key in inspect.signature(probe).parameters if key not in ("C", "random_state")]
    unknown = sorted(settings.keys() - set(known))
    if unknown:
        raise ValueError(f"a setting of {name} must be one of {', '.join(known)}; received {unknown[0]!r}")
    return probe(C=C, random_state=random_state, **settings)


def check_documents(X: Any, y: "np.ndarray | csr_matrix") -> None:
    """Raise ValueError unless X and y, class ids or an indicator, have one row a document, at least one."""
    n_rows = len(X) if isinstance(X, list) else X.shape[0]
    if y.shape[0] == 0 or n_rows != y.shape[0]:
        raise ValueError(
            f"X and y must have one row a document; received {n_rows} rows, {y.shape[0]} classes"
        )
    if y.ndim == 2 and y.shape[1] == 0:
        raise ValueError("an indicator must have at least one label; received none")


def dense_indicator(Y: "np.ndarray | csr_matrix") -> np.ndarray:
    """An indicator as a dense boolean array (n_documents, n_labels)."""
    return (Y if isinstance(Y, np.ndarray) else Y.toarray()).astype(bool)


def _root_mean_square_norm(X: "np.ndarray | csr_matrix") -> float:
    values = X.ravel(order="K") if isinstance(X, np.ndarray) else X.data
    square = float(np.einsum("i,i->", values, values, dtype=np.float64))
    return math.sqrt(square / X.shape[0]) or 1.0  # all-zero features stay as they are


def _divided(X: "np.ndarray | csr_matrix", scale: float) -> "np.ndarray | csr_matrix":
    # One float64 copy, made here; LIBLINEAR's wrapper then takes it as it is.
    if isinstance(X, np.ndarray):
        return np.divide(X, scale, dtype=np.float64, order="C")
    scaled = X.astype(np.float64)
    scaled.data /= scale
    return scaled
