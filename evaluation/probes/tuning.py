"""Tuning of a probe: its constants, and for several labels a document one threshold a label.

Both are chosen by cross-validation on the training documents alone, on the folds of `evaluation.probes.folds`. A
classifier that takes the probe's place is scored on the same folds. Features that were learned from labels are learned
anew for each fold, from its training documents alone: else the documents to score would have shaped them.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby, product, starmap, tee
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from textbench.evaluation.metrics.multilabel import tuning_metrics
from textbench.evaluation.metrics.single_label import Metric
from textbench.evaluation.probes.catalogue import build_probe, probe_class
from textbench.evaluation.probes.folds import Fold, folds_of, rows, sample
from textbench.evaluation.probes.linear import LinearProbe, dense_indicator
from textbench.evaluation.probes.search import FoldScores, Search, beside_c, climb, mean_score
from textbench.evaluation.probes.thresholds import thresholds_that_pay

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    Targets: TypeAlias = "np.ndarray | csr_matrix"
# Given the positions of a fold's training documents and of those to score: the features of both, matrices of one kind.
FoldFeatures: TypeAlias = Callable[[np.ndarray, np.ndarray], tuple[Any, Any]]

# The logistic loss never vanishes and wants a larger C. The elastic net's grid begins where a handful of features is
# used (words of 20 Newsgroups and IMDb, l1_ratio 0.5). A grid grows while its end is the best, to LIMITS.
C_GRIDS = {
    "linear-svm": (0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
    "logistic-regression": (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0),
    "elastic-net": (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    "neighbours": (1.0, 3.0, 10.0, 30.0),
    "perceptron": (100.0, 1000.0, 10_000.0),
}
# The other constants of a probe that are searched beside C. On 20 Newsgroups and IMDb cross-validation wanted shares
# of absolute values of 0.01 to 0.03.
SETTING_GRIDS = {"elastic-net": {"l1_ratio": (0.01, 0.1, 0.5)}}
# With more training documents than LARGE a sample of SAMPLE goes through the grid, and all of them only confirm what it
# found; between the two are samples TIMES as large as the one before, as long as they are TIMES smaller than the whole.
LARGE = 30_000
SAMPLE = 10_000
TIMES = 8
MOST_SCORES = 3_000_000  # of a candidate, 24 MB, that are kept until the best is known


@dataclass(frozen=True)
class CVResult:
    """The C that cross-validation chose, and how it compared.

    table has a row {C, settings..., mean, std} a candidate, over the n_folds folds that were scored; one row
    without C for a classifier, whose C is None. settings: the probe's constants beside C that were chosen.
    on_border: the chosen C is an end of the grid and beats its neighbour, so that a wider grid might have done
    better; a grid that grows has LIMITS for ends. n_not_converged counts the fits that ran out of iterations.
    fold_scores: the best running mean after each fold, until the last of the grid as it began. pruned_after: the
    number of folds after which the search was given up, None if it was not. sampled: what samples of the training
    documents said, rows as in table with n_documents, smaller samples first; empty where all documents were asked.
    out_of_fold: what the chosen candidate says of each fold's documents; empty where not all folds of all documents
    were scored, for a classifier without `labels_of`, and where it would be more than MOST_SCORES.
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
    sampled: list[dict[str, float]] = field(default_factory=list)
    out_of_fold: list[FoldScores] = field(default_factory=list, compare=False)


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
    csr or dense indicator (n_documents, n_labels). c_grid: these values and no others; by default the probe's in
    C_GRIDS, with further ones (1, 3, 10, ...) while its end is the best, to LIMITS. settings: the values of
    the probe's other constants, every combination of which is tried with every C of the grid; by default the probe's
    in SETTING_GRIDS, and a constant that is not named keeps its default. Of equally good candidates the first
    combination is taken, and of its values of C the smallest.

    metric: of METRICS one that needs labels, by default accuracy; for several labels of MULTILABEL_METRICS one
    that needs scores, by default micro_f1_zero: it judges decisions, as the figures that are published do,
    needs no thresholds tuned inside the folds, and is not ruled by labels of two or three documents, as the
    macro average is.

    held_out: score this share of the documents once, or those at these positions, instead of n_folds folds.
    prune_below: after fold i, the last apart, the best running mean must reach prune_below[i], or the search
    stops there; entries may be missing at the end or be nan.

    With more than LARGE training documents and no c_grid, a stratified sample of SAMPLE goes through the grid on
    n_folds folds. All documents are then asked, on the first of the folds, about the best candidate and its
    neighbours in C, one after another while they get better; before them samples TIMES as large each, as long as they
    are TIMES smaller than the whole.

    The folds are those of `evaluation.probes.folds.folds_of`; a single document leaves nothing to compare: the first
    candidate, score nan, no folds. ValueError for a wrong argument or a fold whose score is not a number.
    """
    probe_class(probe)  # an unknown name fails before anything is computed
    grid = _checked_grid(C_GRIDS[probe] if c_grid is None else c_grid)
    combinations = _combinations(SETTING_GRIDS.get(probe, {}) if settings is None else settings)
    measure = _checked_metric(metric, several_labels=y.ndim == 2)
    folds = folds_of(y if callable(X) else X, y, n_folds, random_state, held_out)
    over = partial(_FoldPaths, X, y, probe, random_state, measure, may_grow=c_grid is None)
    candidates = [{"C": C} | chosen for chosen in combinations for C in grid]
    if c_grid is not None or not folds or y.shape[0] <= LARGE:
        paths = over(folds)
        search = paths.score(candidates, prune_below)
        if c_grid is None:
            climb(search, measure, paths.score)
        return _best_of(search, measure)
    sampled: list[dict[str, float]] = []
    for size in _sample_sizes(y.shape[0]):
        some = _folds_of_sample(y, size, n_folds, random_state, held_out)
        paths = over(some[:1] if sampled else some)
        search = paths.score(candidates)
        climb(search, measure, paths.score)
        sampled += [{"n_documents": size} | row for row in _best_of(search, measure).table]
        candidates = [search.candidates[search.best(measure)]]
    paths = over(folds[:1])
    search = paths.score(candidates)
    climb(search, measure, paths.score)
    return replace(_best_of(search, measure), sampled=sampled, out_of_fold=[])


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
    fits = ([fit] for fit in fit_each(build, X, y, folds))
    return _best_of(_compare(fits, [{}], y, folds, measure, prune_below), measure)


class _FoldPaths:
    """What fits probes on each fold, for each combination of settings.

    Where the grid may grow they are kept, so that a further C goes on from the last; features that each fold has of its
    own would take too much room. Other arguments as of `choose_c`; folds: of all documents, or of a sample.
    """

    def __init__(
        self,
        X: Any,
        y: "Targets",
        probe: str,
        random_state: int,
        measure: Metric,
        folds: Sequence[Fold],
        *,
        may_grow: bool,
    ) -> None:
        self.X, self.y, self.probe, self.random_state = X, y, probe, random_state
        self.measure, self.folds = measure, folds
        self.is_kept = may_grow and not callable(X)
        self.kept: dict[tuple[Any, ...], tuple[Iterator[Any], list[Any]]] = {}  # to come, and those so far

    def score(
        self, candidates: Sequence[dict[str, float]], prune_below: Sequence[float] | None = None
    ) -> Search:
        """Score candidates on the folds; those that share their settings stand together, and are one path of C."""
        grids = {
            tuple(chosen.items()): [candidate["C"] for candidate in path]
            for chosen, path in groupby(candidates, beside_c)
        }
        if not self.is_kept:
            self.kept.clear()
        new = [settings for settings in grids if settings not in self.kept]
        for settings, parts in zip(new, tee(_parts(self.X, self.y, self.folds), len(new)), strict=True):
            built = build_probe(self.probe, grids[settings][0], self.random_state, **dict(settings))
            self.kept[settings] = chain.from_iterable(starmap(built.fit_folds, parts)), []
        fits = (self._fitted(fold, grids) for fold in range(len(self.folds)))
        return _compare(fits, list(candidates), self.y, self.folds, self.measure, prune_below)

    def _fitted(
        self, fold: int, grids: Mapping[tuple[Any, ...], Sequence[float]]
    ) -> Iterator[tuple[LinearProbe, Any]]:
        for settings, grid in grids.items():
            to_come, so_far = self.kept[settings]
            path, X_test = so_far[fold] if fold < len(so_far) else next(to_come)
            if self.is_kept and fold == len(so_far):
                so_far.append((path, X_test))
            for fitted in path(grid):
                yield fitted, X_test


def _sample_sizes(n_documents: int) -> list[int]:
    sizes = [SAMPLE]
    while sizes[-1] * TIMES**2 <= n_documents:
        sizes.append(sizes[-1] * TIMES)
    return sizes


def _folds_of_sample(
    y: "Targets", size: int, n_folds: int, random_state: int, held_out: "float | Sequence[int] | None"
) -> list[Fold]:
    """The folds of a stratified sample, as positions among all; documents that are held out by name all stay so."""
    if isinstance(held_out, Sequence):
        ((train, test),) = folds_of(y, y, n_folds, random_state, held_out)
        return [(train[sample(y[train], size, random_state)], test)]
    some = sample(y, size, random_state)
    parts = folds_of(y[some], y[some], n_folds, random_state, held_out)
    return [(some[train], some[test]) for train, test in parts]


def fit_each(
    build: Callable[[], Any], X: Any, y: "Targets", folds: Sequence[Fold]
) -> Iterator[tuple[Any, Any]]:
    """Yield for each fold what `build` returns, fitted to the rest, and what it is to be asked about.

    X, y: as of `choose_c`, or X a list of documents.
    """
    for X_part, y_part, some in _parts(X, y, folds):
        if isinstance(probe := build(), LinearProbe):
            for path, X_test in probe.fit_folds(X_part, y_part, some):
                yield next(path([probe.C])), X_test
        else:
            for train, test in some:
                yield build().fit(rows(X_part, train), y_part[train]), rows(X_part, test)


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
    candidates: list[dict[str, float]],
    y: "Targets",
    folds: Sequence[Fold],
    measure: Metric,
    prune_below: Sequence[float] | None,
) -> Search:
    """Score the candidates, which `fits` holds fitted for each fold with what they are to be asked about."""
    search = Search(candidates, np.empty((len(folds), len(candidates))))
    search.fold_scores = [[] for _ in candidates]
    for fold, ((_, test), of_one_fold) in enumerate(zip(folds, fits, strict=False)):
        y_test = y[test]
        for candidate, (_, (fitted, X_test)) in enumerate(zip(candidates, of_one_fold, strict=True)):
            search.n_not_converged += not getattr(fitted, "converged_", True)
            answer, scores = _answers(fitted, X_test, measure)
            search.scores[fold, candidate] = measure.function(y_test, answer)
            if scores is not None and scores.size * len(folds) <= MOST_SCORES:
                search.fold_scores[candidate].append(FoldScores(test, scores, np.asarray(fitted.classes_)))
        mean = mean_score(search.scores[: fold + 1])
        best = float(mean.max() if measure.higher_is_better else mean.min())
        search.best_means.append(best)
        if prune_below is None or fold >= len(prune_below) or fold + 1 == len(folds):
            continue
        bound = prune_below[fold]
        if best < bound if measure.higher_is_better else best > bound:
            search.scores, search.pruned_after = search.scores[: fold + 1], fold + 1
            break
    return search


def _best_of(search: Search, measure: Metric) -> CVResult:
    scores = search.scores
    if not len(scores):
        first = dict(search.candidates[0])
        return CVResult(first.pop("C", None), math.nan, [], False, 0, 0, settings=first)
    if np.isnan(scores).any():
        fold, column = np.argwhere(np.isnan(scores))[0]
        at = ", ".join(f"{name} = {value}" for name, value in search.candidates[column].items())
        raise ValueError(f"{measure.name} must be a number; received nan in fold {fold}{at and f' at {at}'}")
    best = search.best(measure)
    chosen, kept = dict(search.candidates[best]), search.fold_scores[best]
    return CVResult(
        C=chosen.pop("C", None),
        score=float(mean_score(scores)[best]),
        table=search.table(),
        on_border=len(search.candidates) > 1 and bool(search.ends(measure)),
        n_folds=len(scores),
        n_not_converged=search.n_not_converged,
        settings=chosen,
        fold_scores=search.best_means,
        pruned_after=search.pruned_after,
        out_of_fold=[] if search.pruned_after or len(kept) < len(scores) else kept,
    )


def _answers(fitted: Any, X_test: Any, measure: Metric) -> "tuple[Any, np.ndarray | None]":
    """Return what a metric asks of a classifier, labels or decision values; and these, where one call gives both."""
    if not hasattr(fitted, "labels_of"):
        read = fitted.predict if measure.needs == "labels" else fitted.decision_function
        return read(X_test), None
    scores = fitted.decision_function(X_test)
    return (fitted.labels_of(scores) if measure.needs == "labels" else scores), scores


def tune_thresholds(
    X: Any,
    Y: "Targets",
    build: Callable[[], Any],
    n_folds: int = 3,
    random_state: int = 0,
    held_out: Sequence[int] | None = None,
) -> np.ndarray:
    """For each label the threshold that `thresholds_that_pay` takes on out-of-fold scores, (n_labels,) float64.

    X: csr or dense (n_documents, n_features), what makes the features of each fold, or a list of documents; Y: csr or
    dense indicator (n_documents, n_labels). build: returns the probe or classifier, unfitted, with `fit(X, Y)` and
    `decision_function`. Each document is scored by the classifier that was trained without its fold (the
    folds of `choose_c`), and all documents' scores stand together. held_out: instead of folds score the
    documents at these positions, once, by the classifier that was trained on the others.

    A label with fewer documents than folds, or with none in the training part of some fold, is too rare to
    tune and keeps 0; with a single document all labels do. ValueError for a wrong argument.
    """
    folds = folds_of(Y if callable(X) else X, Y, n_folds, random_state, held_out)
    fits = zip(folds, fit_each(build, X, Y, folds), strict=True)
    return thresholds_of(
        [(test, fitted.decision_function(X_test)) for (_, test), (fitted, X_test) in fits], Y
    )


def thresholds_of(parts: Sequence[tuple[np.ndarray, np.ndarray]], Y: "Targets") -> np.ndarray:
    """The thresholds of `tune_thresholds` from out-of-fold scores.

    parts: of each fold its documents, positions (n_scored,), and their scores, (n_scored, n_labels), by a classifier
    that was trained on all others. Y, what is returned: as there.
    """
    thresholds = np.zeros(Y.shape[1])
    if not parts:
        return thresholds
    indicator = dense_indicator(Y)
    scored = np.sort(np.concatenate([test for test, _ in parts]))
    tunable = indicator[scored].sum(axis=0) >= len(parts)
    scores, folds = np.empty(indicator.shape), np.empty(len(indicator), dtype=int)
    for number, (test, of_test) in enumerate(parts):
        scores[test], folds[test] = of_test, number
        tunable &= np.delete(indicator, test, axis=0).any(axis=0)
    if tunable.any():
        some = np.ix_(scored, tunable)
        thresholds[tunable] = thresholds_that_pay(scores[some], indicator[some], folds[scored])
    return thresholds


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
    different = [dict.fromkeys(values) for values in settings.values()]
    return [dict(zip(settings, values, strict=True)) for values in product(*different)]
