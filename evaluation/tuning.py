"""Tuning of a probe: its constant C, and for several labels a document one threshold a label.

Both are chosen by cross-validation on the training documents alone. Folds are stratified: by class, or for
several labels by iterative stratification.

Source: Yang, A Study of Thresholding Strategies for Text Categorization, SIGIR (2001), section 3.3 (SCut);
Sechidis, Tsoumakas, Vlahavas, On the Stratification of Multi-Label Data, ECML PKDD (2011), section 4.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from evaluation.metrics import METRICS, Metric
from evaluation.multilabel import MULTILABEL_METRICS
from evaluation.probes import LinearProbe, build_probe, check_documents, dense_indicator, probe_class

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    Targets: TypeAlias = "np.ndarray | csr_matrix"

# The logistic loss never vanishes and wants a larger C. With threshold 0 it has no best one on Reuters with
# 120 labels: micro and weighted F1 gain 0.3 to 0.4 points with each step from 300 to 10,000. The grid ends where
# the gains are that small, and such a choice is reported to be on the border.
C_GRIDS = {
    "linear-svm": (0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
    "logistic-regression": (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0),
}


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
    y: "Targets",
    probe: str = "linear-svm",
    c_grid: Sequence[float] | None = None,
    n_folds: int = 3,
    metric: str | None = None,
    random_state: int = 0,
) -> CVResult:
    """Choose C by stratified cross-validation: the best mean of the folds' metric, of equals the smallest C.

    X: csr or dense (n_documents, n_features); y: (n_documents,) ints, or a csr or dense indicator
    (n_documents, n_labels). c_grid: by default the probe's in C_GRIDS. metric: of METRICS one that needs
    labels, by default accuracy; for several labels of MULTILABEL_METRICS one that needs scores, by default
    micro_f1_zero: it judges decisions, as the figures that are published do, needs no thresholds tuned inside
    the folds, and is not ruled by labels of two or three documents, as the macro average is.

    A class with fewer documents than folds is missing from some of them. When every class is that small the
    folds are drawn without regard to class. Fewer documents than folds make fewer folds, down to 2; a single
    document leaves nothing to compare: the smallest C, score nan, no folds. ValueError for a wrong argument or
    a fold whose score is not a number.
    """
    probe_class(probe)  # an unknown name fails before anything is computed
    grid = _checked_grid(C_GRIDS[probe] if c_grid is None else c_grid)
    measure = _checked_metric(metric, several_labels=y.ndim == 2)
    folds = _folds(X, y, n_folds, random_state)
    if not folds:
        return CVResult(grid[0], math.nan, [], on_border=False, n_folds=0, n_not_converged=0)
    scores = np.empty((len(folds), len(grid)))
    n_not_converged = 0
    for fold, (train, test) in enumerate(folds):
        X_train, X_test = X[train], X[test]
        for column, C in enumerate(grid):
            fitted = build_probe(probe, C, random_state).fit(X_train, y[train])
            n_not_converged += not fitted.converged_
            scores[fold, column] = measure.function(y[test], _read(measure, fitted, X_test))
    return _best_of(scores, grid, measure, n_not_converged)


def tune_thresholds(
    X: "np.ndarray | csr_matrix",
    Y: "Targets",
    probe: str,
    C: float,
    n_folds: int = 3,
    random_state: int = 0,
) -> np.ndarray:
    """SCut: for each label the threshold with the best F1 on out-of-fold scores, (n_labels,) float64.

    X: csr or dense (n_documents, n_features); Y: csr or dense indicator (n_documents, n_labels). Each document
    is scored by the probe that was trained without its fold (the folds of `choose_c`), and a label's F1 is
    that of all documents together. A threshold lies midway between two scores; of equally good ones the
    nearest to 0 is taken, 0 included.

    A label with fewer documents than folds, or with none in the training part of some fold, is too rare to
    tune and keeps 0; with a single document all labels do. ValueError for a wrong argument.
    """
    folds = _folds(X, Y, n_folds, random_state)
    thresholds = np.zeros(Y.shape[1])
    if not folds:
        return thresholds
    indicator = dense_indicator(Y)
    scores = np.empty(indicator.shape)
    tunable = indicator.sum(axis=0) >= len(folds)
    for train, test in folds:
        scores[test] = build_probe(probe, C, random_state).fit(X[train], Y[train]).decision_function(X[test])
        tunable &= indicator[train].any(axis=0)
    for label in np.flatnonzero(tunable):
        thresholds[label] = best_threshold(scores[:, label], indicator[:, label])
    return thresholds


def best_threshold(scores: np.ndarray, positive: np.ndarray) -> float:
    """The threshold t with the best F1 of `scores > t`: 0, or midway between two neighbouring scores.

    scores (n,) floats, positive (n,) bools, n >= 1. Of equally good ones the nearest to 0 (then the lower).
    """
    order = np.argsort(-scores, kind="stable")
    ordered, n_right = scores[order], np.cumsum(positive[order])
    # A cut can fall only where the score changes, or below the last document.
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
    below = np.append(ordered[last[:-1] + 1], ordered[-1] - 1.0)
    candidates = np.append((ordered[last] + below) / 2, 0.0)
    above_zero = np.count_nonzero(scores > 0)
    n_given = np.append(last + 1, above_zero)
    n_hits = np.append(n_right[last], n_right[above_zero - 1] if above_zero else 0)
    f1 = 2 * n_hits / np.maximum(n_given + n_right[-1], 1)
    best = candidates[f1 == f1.max()]
    return float(best[np.lexsort((best, np.abs(best)))[0]])


def _read(metric: Metric, fitted: LinearProbe, X: "np.ndarray | csr_matrix") -> "Targets":
    return fitted.predict(X) if metric.needs == "labels" else fitted.decision_function(X)


def _best_of(scores: np.ndarray, grid: list[float], metric: Metric, n_not_converged: int) -> CVResult:
    if np.isnan(scores).any():
        fold, column = np.argwhere(np.isnan(scores))[0]
        raise ValueError(f"{metric.name} must be a number; received nan in fold {fold} at C = {grid[column]}")
    # Equal fold scores met in another order give means that differ in the last bit; those are ties.
    mean = scores.mean(axis=0).round(12)
    best = int(mean.argmax() if metric.higher_is_better else mean.argmin())
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


def _folds(
    X: "np.ndarray | csr_matrix", y: "Targets", n_folds: int, random_state: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The documents (train, test) of each fold; no folds for a single document."""
    from sklearn.model_selection import KFold, StratifiedKFold

    if n_folds < 2:
        raise ValueError(f"n_folds must be at least 2; received {n_folds!r}")
    check_documents(X, y)
    n_documents = y.shape[0]
    if n_documents == 1:
        return []
    n_folds = min(n_folds, n_documents)
    plain = KFold(n_folds, shuffle=True, random_state=random_state)
    if y.ndim == 2:
        folds = _multilabel_folds(dense_indicator(y), n_folds, random_state)
        # Of a handful of documents the stratification may leave a fold none.
        return folds if all(len(test) for _, test in folds) else list(plain.split(X))
    if np.unique(y, return_counts=True)[1].max() < n_folds:
        return list(plain.split(X))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        return list(StratifiedKFold(n_folds, shuffle=True, random_state=random_state).split(y, y))


def _multilabel_folds(
    indicator: np.ndarray, n_folds: int, random_state: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    from iterstrat.ml_stratifiers import MultilabelStratifiedKFold

    if indicator.shape[1] == 1:  # the splitter wants two labels; the complement says the same
        indicator = np.column_stack([indicator, ~indicator])
    splitter = MultilabelStratifiedKFold(n_splits=n_folds, shuffle=True, random_state=random_state)
    return list(splitter.split(indicator, indicator))


def _checked_metric(name: str | None, *, several_labels: bool) -> Metric:
    metrics, needs = (MULTILABEL_METRICS, "scores") if several_labels else (METRICS, "labels")
    known = {metric.name: metric for metric in metrics.values() if metric.needs == needs}
    name = name or ("micro_f1_zero" if several_labels else "accuracy")
    if name not in known:
        raise ValueError(f"metric must be one of {', '.join(known)}; received {name!r}")
    return known[name]


def _checked_grid(c_grid: Sequence[float]) -> list[float]:
    grid = sorted({float(C) for C in c_grid})
    if not grid or not grid[0] > 0 or not np.isfinite(grid).all():
        raise ValueError(f"c_grid must hold positive numbers; received {tuple(c_grid)}")
    return grid
