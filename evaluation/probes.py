"""The probes: the classifiers that every representation is judged by, fixed but for one constant C.

C is chosen by cross-validation on the training documents alone (`choose_c`). A probe is saved as arrays,
never as a pickle.

Source: Fan, Chang, Hsieh, Wang, Lin, LIBLINEAR: A Library for Large Linear Classification, JMLR 9 (2008).
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from evaluation.metrics import METRICS

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

PROBES = ("linear-svm",)
C_GRID = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
# On Reuters R8 predictions at 1e-3 and at 1e-5 are the same for counts and tf-idf, and differ for at most 3
# in 1,000 documents for 200 singular vectors; the large C take less than half the time.
TOLERANCE = 1e-3


class LinearSVMProbe:
    """Linear support vector machine: L2-regularised squared hinge loss, each class against the rest.

    The features are divided by one number s, the root mean square of the training rows' norms. This only
    reparametrises C (training on X/s with C is training on X with C/s^2 and a bias feature of s), so that one
    grid of C serves counts, unit rows and singular vectors alike; SVMlight's default, C = 1/mean(x.x), is C =
    1 here. No relative scale between features changes.

    X: csr or dense (n_documents, n_features), any real dtype, never modified. y: (n_documents,) ints.
    Learned: `classes_` (n_classes,), `coef_` (n_classes, n_features) and `intercept_` (n_classes,), both for
    features as given (one row for two classes or one), `scale_`, and `converged_`: whether the solver met its
    tolerance in max_iter. With one class, that class is predicted. ValueError if C is not positive, shapes
    differ or there is no document.
    """

    def __init__(self, C: float = 1.0, random_state: int = 0, max_iter: int = 10_000) -> None:
        self.C = C
        self.random_state = random_state
        self.max_iter = max_iter

    def fit(self, X: "np.ndarray | csr_matrix", y: np.ndarray) -> Self:
        """Learn the hyperplanes from X (n_documents, n_features) and y (n_documents,)."""
        if not self.C > 0:
            raise ValueError(f"C must be positive; received {self.C!r}")
        _check_documents(X, y)
        self.classes_ = np.unique(y)
        self.scale_ = _root_mean_square_norm(X)
        if len(self.classes_) == 1:
            self.coef_, self.intercept_ = np.zeros((1, X.shape[1])), np.zeros(1)
            self.converged_ = True
            return self
        self._fit_hyperplanes(X, y)
        return self

    def _fit_hyperplanes(self, X: "np.ndarray | csr_matrix", y: np.ndarray) -> None:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC

        svm = LinearSVC(
            C=self.C, dual="auto", tol=TOLERANCE, max_iter=self.max_iter, random_state=self.random_state
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # `converged_` says it
            svm.fit(_divided(X, self.scale_), y)
        self.coef_ = svm.coef_ / self.scale_
        self.intercept_ = svm.intercept_
        self.converged_ = bool(svm.n_iter_ < self.max_iter)

    def decision_function(self, X: "np.ndarray | csr_matrix") -> np.ndarray:
        """Signed margins: (n_documents, n_classes), or (n_documents,) for the second of two classes."""
        if X.shape[1] != self.coef_.shape[1]:
            raise ValueError(
                f"X must have the {self.coef_.shape[1]} features of training; received {X.shape[1]}"
            )
        margins = np.asarray(X @ self.coef_.T) + self.intercept_
        return margins[:, 0] if len(self.intercept_) == 1 else margins

    def predict(self, X: "np.ndarray | csr_matrix") -> np.ndarray:
        """The class of the largest margin for each document: (n_documents,)."""
        margins = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(margins))
        return self.classes_[(margins > 0).astype(int) if margins.ndim == 1 else margins.argmax(axis=1)]

    def to_arrays(self) -> dict[str, Any]:
        """Everything that prediction needs, as arrays and JSON values."""
        return {
            "coef": self.coef_,
            "intercept": self.intercept_,
            "classes": self.classes_,
            "scale": self.scale_,
            "converged": self.converged_,
            "C": self.C,
            "random_state": self.random_state,
            "max_iter": self.max_iter,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """The fitted probe that `to_arrays` described."""
        probe = cls(float(arrays["C"]), int(arrays["random_state"]), int(arrays["max_iter"]))
        probe.coef_ = np.asarray(arrays["coef"])
        probe.intercept_ = np.asarray(arrays["intercept"])
        probe.classes_ = np.asarray(arrays["classes"])
        probe.scale_ = float(arrays["scale"])
        probe.converged_ = bool(arrays["converged"])
        return probe


def build_probe(name: str, C: float = 1.0, random_state: int = 0) -> LinearSVMProbe:
    """The unfitted probe of that name; ValueError for a name that is not in PROBES."""
    if name not in PROBES:
        nearest = get_close_matches(name, PROBES, n=len(PROBES), cutoff=0.0)
        raise ValueError(f"probe must be one of {', '.join(nearest)}; received {name!r}")
    return LinearSVMProbe(C=C, random_state=random_state)


@dataclass(frozen=True)
class CVResult:
    """The C that cross-validation chose, and how it compared.

    table has a row {C, mean, std} a candidate, over the folds. on_border: the chosen C is an end of the grid
    and beats its neighbour, so that a wider grid might have done better. n_not_converged counts the fits that
    ran out of iterations.
    """

    C: float
    score: float
    table: list[dict[str, float]]
    on_border: bool
    n_folds: int
    n_not_converged: int


def choose_c(
    X: "np.ndarray | csr_matrix",
    y: np.ndarray,
    probe: str = "linear-svm",
    c_grid: Sequence[float] = C_GRID,
    n_folds: int = 3,
    metric: str = "accuracy",
    random_state: int = 0,
) -> CVResult:
    """Choose C by stratified cross-validation: the best mean of the folds' metric, of equals the smallest C.

    X: csr or dense (n_documents, n_features); y: (n_documents,) ints; metric: one that needs labels. A class
    with fewer documents than folds is missing from some of them. When every class is that small the folds are
    drawn without regard to class. Fewer documents than folds make fewer folds, down to 2; a single document
    leaves nothing to compare: the smallest C, score nan, no folds. ValueError for a wrong argument or a fold
    whose score is not a number.
    """
    grid = _checked_grid(c_grid)
    if metric not in METRICS or METRICS[metric].needs != "labels":
        names = [name for name, known in METRICS.items() if known.needs == "labels"]
        raise ValueError(f"metric must be one of {', '.join(names)}; received {metric!r}")
    if n_folds < 2:
        raise ValueError(f"n_folds must be at least 2; received {n_folds!r}")
    build_probe(probe)  # an unknown name fails before anything is computed
    _check_documents(X, y)
    if len(y) == 1:
        return CVResult(grid[0], math.nan, [], on_border=False, n_folds=0, n_not_converged=0)
    scores = np.empty((min(n_folds, len(y)), len(grid)))
    n_not_converged = 0
    for fold, (train, test) in enumerate(_folds(y, len(scores), random_state)):
        X_train, X_test = X[train], X[test]
        for column, C in enumerate(grid):
            fitted = build_probe(probe, C, random_state).fit(X_train, y[train])
            n_not_converged += not fitted.converged_
            scores[fold, column] = METRICS[metric].function(y[test], fitted.predict(X_test))
    return _best_of(scores, grid, metric, n_not_converged)


def _best_of(scores: np.ndarray, grid: list[float], metric: str, n_not_converged: int) -> CVResult:
    if np.isnan(scores).any():
        fold, column = np.argwhere(np.isnan(scores))[0]
        raise ValueError(f"{metric} must be a number; received nan in fold {fold} at C = {grid[column]}")
    # Equal fold scores met in another order give means that differ in the last bit; those are ties.
    mean = scores.mean(axis=0).round(12)
    best = int(mean.argmax() if METRICS[metric].higher_is_better else mean.argmin())
    inner = {0: 1, len(grid) - 1: len(grid) - 2}.get(best)
    return CVResult(
        C=grid[best],
        score=float(mean[best]),
        table=[
            {"C": C, "mean": float(m), "std": float(s)}
            for C, m, s in zip(grid, mean, scores.std(axis=0), strict=True)
        ],
        on_border=len(grid) > 1 and inner is not None and bool(mean[best] != mean[inner]),
        n_folds=len(scores),
        n_not_converged=n_not_converged,
    )


def _folds(y: np.ndarray, n_folds: int, random_state: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import KFold, StratifiedKFold

    largest_class = np.unique(y, return_counts=True)[1].max()
    splitter = StratifiedKFold if largest_class >= n_folds else KFold
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        yield from list(splitter(n_folds, shuffle=True, random_state=random_state).split(y, y))


def _checked_grid(c_grid: Sequence[float]) -> list[float]:
    grid = sorted({float(C) for C in c_grid})
    if not grid or not grid[0] > 0 or not np.isfinite(grid).all():
        raise ValueError(f"c_grid must hold positive numbers; received {tuple(c_grid)}")
    return grid


def _check_documents(X: "np.ndarray | csr_matrix", y: np.ndarray) -> None:
    if len(y) == 0 or X.shape[0] != len(y):
        raise ValueError(
            f"X and y must have one row a document; received {X.shape[0]} rows, {len(y)} classes"
        )


def _root_mean_square_norm(X: "np.ndarray | csr_matrix") -> float:
    values = X.ravel(order="K") if isinstance(X, np.ndarray) else X.data
    square = float(np.einsum("i,i->", values, values, dtype=np.float64))
    return math.sqrt(square / X.shape[0]) or 1.0  # all-zero features stay as they are


def _divided(X: "np.ndarray | csr_matrix", scale: float) -> "np.ndarray | csr_matrix":
    # One float64 copy, made here; LinearSVC then takes it as it is.
    if isinstance(X, np.ndarray):
        return np.divide(X, scale, dtype=np.float64, order="C")
    scaled = X.astype(np.float64)
    scaled.data /= scale
    return scaled
