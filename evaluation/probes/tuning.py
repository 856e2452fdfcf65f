"""Tuning of a probe: its constants, and for several labels a document one threshold a label.

Both are chosen by cross-validation on the training documents alone, on the folds of `evaluation.probes.folds`. A
classifier that takes the probe's place is scored on the same folds. Features that were learned from labels are learned
anew for each fold, from its training documents alone: else the documents to score would have shaped them.

Source: Yang, A Study of Thresholding Strategies for Text Categorization, SIGIR (2001), section 3.3 (SCut).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from textbench.evaluation.metrics.multilabel import tuning_metrics
from textbench.evaluation.metrics.single_label import Metric
from textbench.evaluation.probes.catalogue import build_probe, probe_class
from textbench.evaluation.probes.folds import Fold, folds_of, rows
from textbench.evaluation.probes.linear import LinearProbe, dense_indicator

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    Targets: TypeAlias = "np.ndarray | csr_matrix"
# Given the positions of a fold's training documents and of those to score: the features of both, matrices of one kind.
FoldFeatures: TypeAlias = Callable[[np.ndarray, np.ndarray], tuple[Any, Any]]

# The logistic loss never vanishes and wants a larger C. With threshold 0 it has no best one on Reuters with
# 120 labels: micro and weighted F1 gain 0.3 to 0.4 points with each step from 300 to 10,000. The grid ends where
# the gains are that small, and such a choice is reported to be on the border. The elastic net's begins where a
# handful of features is used (words of 20 Newsgroups and IMDb, l1_ratio 0.5).
C_GRIDS = {
    "linear-svm": (0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
    "logistic-regression": (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0),
    "elastic-net": (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
}
# The other constants of a probe that are searched beside C. On 20 Newsgroups and IMDb cross-validation wanted shares
# of absolute values of 0.01 to 0.03.
SETTING_GRIDS = {"elastic-net": {"l1_ratio": (0.01, 0.1, 0.5)}}


@dataclass(frozen=True)
class CVResult:
    """The C that cross-validation chose, and how it compared.

    table has a row {C, settings..., mean, std} a candidate, over the n_folds folds that were scored; one row
    without C for a classifier, whose C is None. settings: the probe's constants beside C that were chosen.
    on_border: the chosen C is an end of the grid and beats its neighbour, so that a wider grid might have done
    better. n_not_converged counts the fits that ran out of iterations. fold_scores: the best running mean
    after each fold. pruned_after: the number of folds after which the search was given up, None if it was not.
    """

    C: float | None
    score: float
    table: list[dict[str, float]]
    on_border: bool
    n_folds: int
    n_not_converged: int
    settings: dict[str, float] = field(default_factory=dict)
    fold_scores: list[float] = field(default_factory=list)
    pruned_after: int | None = None


def choose_c(
    X: "np.ndarray | csr_matrix | FoldFeatures",
    y: "Targets",
    probe: str = "linear-svm",
    c_grid: Sequence[float] | None = None,
    n_folds: int = 3,
    metric: str | None = None,
    random_state: int = 0,
    settings: Mapping[str, Sequence[float]] | None = None,
    held_out: float | Sequence[int] | None = None,
    prune_below: Sequence[float] | None = None,
) -> CVResult:
    """Choose a probe's C by stratified cross-validation: the best mean of the folds' metric.

    X: csr or dense (n_documents, n_features), or what makes the features of each fold; y: (n_documents,) ints, or a
    csr or dense indicator (n_documents, n_labels). c_grid: by default the probe's in C_GRIDS. settings: the values of
    the probe's other constants, every combination of which is tried with every C; by default the probe's in
    SETTING_GRIDS, and a constant that is not named keeps its default. Of equally good candidates the first combination
    is taken, and of its values of C the smallest.

    metric: of METRICS one that needs labels, by default accuracy; for several labels of MULTILABEL_METRICS one
    that needs scores, by default micro_f1_zero: it judges decisions, as the figures that are published do,
    needs no thresholds tuned inside the folds, and is not ruled by labels of two or three documents, as the
    macro average is.

    held_out: score this share of the documents once, or those at these positions, instead of n_folds folds.
    prune_below: after fold i, the last apart, the best running mean must reach prune_below[i], or the search
    stops there; entries may be missing at the end or be nan.

    The folds are those of `evaluation.probes.folds.folds_of`; a single document leaves nothing to compare: the first
    candidate, score nan, no folds. ValueError for a wrong argument or a fold whose score is not a number.
    """
    probe_class(probe)  # an unknown name fails before anything is computed
    grid = _checked_grid(C_GRIDS[probe] if c_grid is None else c_grid)
    combinations = _combinations(SETTING_GRIDS.get(probe, {}) if settings is None else settings)
    candidates = [{"C": C} | chosen for chosen in combinations for C in grid]
    measure = _checked_metric(metric, several_labels=y.ndim == 2)
    folds = folds_of(y if callable(X) else X, y, n_folds, random_state, held_out)
    probes = [build_probe(probe, grid[0], random_state, **chosen) for chosen in combinations]
    fits = (
        ((fitted, X_test) for path, X_test in of_one_fold for fitted in path)
        for part in _parts(X, y, folds)
        for of_one_fold in zip(*(probe.fit_folds(*part, grid) for probe in probes), strict=True)
    )
    search = _compare(fits, len(candidates), y, folds, measure, prune_below)
    return _best_of(search, candidates, len(grid), measure)


def score_classifier(
    build: Callable[[], Any],
    X: Any,
    y: "Targets",
    n_folds: int = 3,
    metric: str | None = None,
    random_state: int = 0,
    held_out: float | Sequence[int] | None = None,
    prune_below: Sequence[float] | None = None,
) -> CVResult:
    """Score a classifier that has no C on the folds on which `choose_c` compares values of C.

    build: returns the classifier, unfitted, with `fit(X, y)`, `predict`, and `decision_function` where
    documents have several labels. X: csr or dense (n_documents, n_features), or a list of documents. The other
    arguments, and ValueError, as for `choose_c`.
    """
    measure = _checked_metric(metric, several_labels=y.ndim == 2)
    folds = folds_of(X, y, n_folds, random_state, held_out)
    fits = ([fit] for fit in _fit_each(build, X, y, folds))
    search = _compare(fits, 1, y, folds, measure, prune_below)
    return _best_of(search, [{}], 1, measure)


@dataclass
class _Search:
    """Scores (n_folds, n_candidates) of the folds so far, their best running means, and what went wrong."""

    scores: np.ndarray
    fold_scores: list[float] = field(default_factory=list)
    n_not_converged: int = 0
    pruned_after: int | None = None


def _fit_each(
    build: Callable[[], Any], X: Any, y: "Targets", folds: Sequence[Fold]
) -> Iterator[tuple[Any, Any]]:
    """Yield for each fold what `build` returns, fitted to the rest, and what it is to be asked about."""
    if isinstance(probe := build(), LinearProbe):
        for part in _parts(X, y, folds):
            for path, X_test in probe.fit_folds(*part, [probe.C]):
                yield next(path), X_test
        return
    for train, test in folds:
        yield build().fit(rows(X, train), y[train]), rows(X, test)


def _parts(X: Any, y: "Targets", folds: Sequence[Fold]) -> Iterator[tuple[Any, "Targets", Sequence[Fold]]]:
    """Yield features, targets and folds that go together: all of them, or each fold with features of its own."""
    if not callable(X):
        yield X, y, folds
        return
    from scipy.sparse import vstack

    for train, test in folds:
        made, places = X(train, test), np.arange(len(train) + len(test))
        both = np.concatenate(made) if isinstance(made[0], np.ndarray) else vstack(made, format="csr")
        yield both, y[np.concatenate([train, test])], [(places[: len(train)], places[len(train) :])]


def _compare(
    fits: Iterable[Iterable[tuple[Any, Any]]],
    n_candidates: int,
    y: "Targets",
    folds: Sequence[Fold],
    measure: Metric,
    prune_below: Sequence[float] | None,
) -> _Search:
    """Score the candidates that `fits` holds for each fold, in order, with what they are to be asked about."""
    search = _Search(np.empty((len(folds), n_candidates)))
    for fold, ((_, test), candidates) in enumerate(zip(folds, fits, strict=False)):
        y_test = y[test]
        for candidate, (fitted, X_test) in enumerate(candidates):
            search.n_not_converged += not getattr(fitted, "converged_", True)
            read = fitted.predict if measure.needs == "labels" else fitted.decision_function
            search.scores[fold, candidate] = measure.function(y_test, read(X_test))
        mean = _mean(search.scores[: fold + 1])
        best = float(mean.max() if measure.higher_is_better else mean.min())
        search.fold_scores.append(best)
        if prune_below is None or fold >= len(prune_below) or fold + 1 == len(folds):
            continue
        bound = prune_below[fold]
        if best < bound if measure.higher_is_better else best > bound:
            search.scores, search.pruned_after = search.scores[: fold + 1], fold + 1
            break
    return search


def _mean(scores: np.ndarray) -> np.ndarray:
    # Equal fold scores met in another order give means that differ in the last bit; those are ties.
    return scores.mean(axis=0).round(12)


def _best_of(search: _Search, candidates: list[dict[str, float]], n_grid: int, metric: Metric) -> CVResult:
    """The best candidate; the candidates come in blocks of n_grid values of C that share their settings."""
    scores = search.scores
    if not len(scores):
        first = dict(candidates[0])
        return CVResult(first.pop("C", None), math.nan, [], False, 0, 0, settings=first)
    if np.isnan(scores).any():
        fold, column = np.argwhere(np.isnan(scores))[0]
        at = ", ".join(f"{name} = {value}" for name, value in candidates[column].items())
        raise ValueError(f"{metric.name} must be a number; received nan in fold {fold}{at and f' at {at}'}")
    mean = _mean(scores)
    best = int(mean.argmax() if metric.higher_is_better else mean.argmin())
    neighbour = {0: best + 1, n_grid - 1: best - 1}.get(best % n_grid)
    chosen = dict(candidates[best])
    return CVResult(
        C=chosen.pop("C", None),
        score=float(mean[best]),
        table=[
            candidate | {"mean": float(m), "std": float(s)}
            for candidate, m, s in zip(candidates, mean, scores.std(axis=0), strict=True)
        ],
        on_border=n_grid > 1 and neighbour is not None and bool(mean[best] != mean[neighbour]),
        n_folds=len(scores),
        n_not_converged=search.n_not_converged,
        settings=chosen,
        fold_scores=search.fold_scores,
        pruned_after=search.pruned_after,
    )


def tune_thresholds(
    X: Any,
    Y: "Targets",
    build: Callable[[], Any],
    n_folds: int = 3,
    random_state: int = 0,
    held_out: Sequence[int] | None = None,
) -> np.ndarray:
    """SCut: for each label the threshold with the best F1 on out-of-fold scores, (n_labels,) float64.

    X: csr or dense (n_documents, n_features), what makes the features of each fold, or a list of documents; Y: csr or
    dense indicator (n_documents, n_labels). build: returns the probe or classifier, unfitted, with `fit(X, Y)` and
    `decision_function`. Each document is scored by the classifier that was trained without its fold (the
    folds of `choose_c`), and a label's F1 is that of all documents together. A threshold lies midway between
    two scores; of equally good ones the nearest to 0 is taken, 0 included. held_out: instead of folds score the
    documents at these positions, once, by the classifier that was trained on the others.

    A label with fewer documents than folds, or with none in the training part of some fold, is too rare to
    tune and keeps 0; with a single document all labels do. ValueError for a wrong argument.
    """
    folds = folds_of(Y if callable(X) else X, Y, n_folds, random_state, held_out)
    thresholds = np.zeros(Y.shape[1])
    if not folds:
        return thresholds
    indicator = dense_indicator(Y)
    scores = np.empty(indicator.shape)
    scored = np.sort(np.concatenate([test for _, test in folds]))
    tunable = indicator[scored].sum(axis=0) >= len(folds)
    for (train, test), (fitted, X_test) in zip(folds, _fit_each(build, X, Y, folds), strict=True):
        scores[test] = fitted.decision_function(X_test)
        tunable &= indicator[train].any(axis=0)
    for label in np.flatnonzero(tunable):
        thresholds[label] = best_threshold(scores[scored, label], indicator[scored, label])
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


def _checked_metric(name: str | None, *, several_labels: bool) -> Metric:
    known = tuning_metrics(several_labels=several_labels)
    name = name or ("micro_f1_zero" if several_labels else "accuracy")
    if name not in known:
        raise ValueError(f"metric must be one of {', '.join(known)}; received {name!r}")
    return known[name]


def _checked_grid(c_grid: Sequence[float]) -> list[float]:
    grid = sorted({float(C) for C in c_grid})
    if not grid or not grid[0] > 0 or not np.isfinite(grid).all():
        raise ValueError(f"c_grid must hold positive numbers; received {tuple(c_grid)}")
    return grid


def _combinations(settings: Mapping[str, Sequence[float]]) -> list[dict[str, float]]:
    if any(len(values) == 0 for values in settings.values()):
        raise ValueError(f"each of settings must hold a value at least; received {dict(settings)}")
    return [dict(zip(settings, values, strict=True)) for values in product(*settings.values())]
