"""Tuning: C and thresholds against searches written otherwise, planted answers, limiting cases."""

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from tests.test_evaluation_probes_catalogue import blobs, several_blobs
from textbench.evaluation.metrics.multilabel import MULTILABEL_METRICS
from textbench.evaluation.metrics.single_label import METRICS, Metric
from textbench.evaluation.probes import tuning
from textbench.evaluation.probes.catalogue import (
    LinearSVMProbe,
    LogisticRegressionProbe,
    build_probe,
)
from textbench.evaluation.probes.folds import folds_of, sample
from textbench.evaluation.probes.search import LIMITS
from textbench.evaluation.probes.thresholds import thresholds_that_pay
from textbench.evaluation.probes.tuning import (
    C_GRIDS,
    choose_c,
    score_classifier,
    thresholds_of,
    tune_thresholds,
)

GRID = C_GRIDS["linear-svm"]
svm = partial(build_probe, "linear-svm")
every_probe = pytest.mark.parametrize("probe", ["linear-svm", "logistic-regression", "elastic-net"])


def test_the_chosen_c_is_that_of_a_search_written_otherwise() -> None:
    X, y = blobs(8, n=120)
    result = choose_c(X, y, c_grid=GRID, random_state=3)
    scores = {}
    for C in GRID:
        fold_scores = []
        for train, test in StratifiedKFold(3, shuffle=True, random_state=3).split(X, y):
            scale = np.sqrt((X[train] ** 2).sum(axis=1).mean())
            svm = LinearSVC(C=C, tol=1e-6, max_iter=100_000, random_state=0).fit(X[train] / scale, y[train])
            fold_scores.append(svm.score(X[test] / scale, y[test]))
        scores[C] = np.mean(fold_scores)
    for row in result.table:
        assert row["mean"] == pytest.approx(scores[row["C"]], abs=1.5 / 120)
    best = max(row["mean"] for row in result.table)
    winners = [row["C"] for row in result.table if row["mean"] == best]
    assert (result.score, result.C) == (best, winners[0])
    assert (result.n_folds, result.n_not_converged) == (3, 0)


def test_a_planted_large_c_is_found_on_the_border() -> None:
    """A few huge documents make the others' signal small: the majority class wins unless C is large."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [80, 40])
    X = np.column_stack([np.where(y == 1, 0.1, -0.1) + rng.normal(0, 0.01, 120), np.zeros(120)])
    X[:12, 1] = 30.0
    result = choose_c(X, y, c_grid=(0.01, 0.1, 1e4))
    assert result.C == 1e4
    assert result.on_border
    assert result.score > 0.95
    inside = choose_c(X, y, c_grid=(0.01, 1e4, 2e4))
    assert inside.C == 1e4
    assert not inside.on_border


def planted(monkeypatch: pytest.MonkeyPatch, score: Callable[[float], float]) -> None:
    """Let a probe at C reach `score(C)`, whatever the documents are."""

    class Planted(LinearSVMProbe):
        def _fit(self, documents: Any, y: Any) -> "Planted":
            self.classes_ = np.unique(y)
            return self

        def decision_function(self, X: Any) -> np.ndarray:
            return np.full(X.shape[0], score(self.C))

        def labels_of(self, scores: np.ndarray) -> np.ndarray:
            return scores

    monkeypatch.setattr(tuning, "build_probe", lambda name, C=1.0, seed=0: Planted(C, seed))
    monkeypatch.setitem(
        METRICS, "planted", Metric("planted", "the score", lambda y, found: float(found[0]), "labels")
    )


@pytest.mark.parametrize("best", [1e-4, 0.03, 0.1, 1.0, 100.0, 300.0, 1e5])
def test_the_grid_grows_until_the_best_is_inside(best: float, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, lambda C: -abs(math.log(C / best)))
    result = choose_c(*blobs(0), metric="planted")
    assert (result.C, result.on_border, result.n_folds) == (best, False, 3)
    tried = [row["C"] for row in result.table]
    assert tried == sorted(tried)
    assert set(tried) >= set(GRID)
    # One value beyond the best says that it is no end; a best value inside the grid adds none.
    assert len(set(tried) - set(GRID)) == {1e-4: 8, 0.03: 3, 0.1: 2, 100.0: 1, 300.0: 2, 1e5: 7}.get(best, 0)
    assert result.fold_scores[-1] == result.score == pytest.approx(0)
    asked = choose_c(*blobs(0), metric="planted", c_grid=GRID)
    assert [row["C"] for row in asked.table] == list(GRID)
    assert asked.on_border == (best not in GRID[1:-1])


def test_the_grid_grows_to_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for sign, limit in zip((-1, 1), LIMITS, strict=True):
        planted(monkeypatch, lambda C, sign=sign: sign * math.log(C))
        result = choose_c(*blobs(0), metric="planted")
        assert (result.C, result.on_border) == (limit, True)
    planted(monkeypatch, lambda C: min(math.log(C), math.log(30)))
    flat = choose_c(*blobs(0), metric="planted")
    assert (flat.C, flat.on_border, len(flat.table)) == (30, False, len(GRID))
    planted(monkeypatch, math.log)
    pruned = choose_c(*blobs(0), metric="planted", prune_below=[1e3])
    assert (pruned.C, pruned.pruned_after) == (100, 1)


@pytest.mark.parametrize("best", [0.1, 1.0, 3.0, 10.0, 1e3])
def test_a_sample_saves_most_of_the_grid(best: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "LARGE", 89)
    monkeypatch.setattr(tuning, "SAMPLE", 30)
    planted(monkeypatch, lambda C: -abs(math.log(C / best)))
    result = choose_c(*blobs(0), metric="planted")  # 90 documents
    assert (result.C, result.on_border, result.n_folds) == (best, False, 1)
    assert len(result.table) == 3
    assert {row["n_documents"] for row in result.sampled} == {30}
    assert {row["C"] for row in result.sampled} >= set(GRID)
    monkeypatch.setattr(tuning, "LARGE", 90)
    assert choose_c(*blobs(0), metric="planted").sampled == []
    assert [tuning._sample_sizes(n) for n in (100, 1919, 1920, 15360)] == [
        [30],
        [30],
        [30, 240],
        [30, 240, 1920],
    ]


@pytest.mark.parametrize("several", [False, True])
def test_a_sample_and_all_documents_are_scored_as_ever(
    several: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = several_blobs(6) if several else blobs(6, n=300)
    n = len(X)
    monkeypatch.setattr(tuning, "SAMPLE", n // 2)
    whole = choose_c(X, y, random_state=1)
    held_out = list(range(0, n, 4))
    by_part = choose_c(X, y, held_out=held_out, random_state=1)
    monkeypatch.setattr(tuning, "LARGE", n - 1)
    narrowed = choose_c(X, y, random_state=1)
    some = sample(y, n // 2, 1)
    first = {row["C"]: row["mean"] for row in narrowed.sampled}
    assert first == {row["C"]: row["mean"] for row in _grid_of(X[some], y[some])}
    folds = folds_of(X, y, 3, 1)[:1]
    for row in narrowed.table:
        fitted = build_probe("linear-svm", row["C"], 1).fit(X[folds[0][0]], y[folds[0][0]])
        measure = MULTILABEL_METRICS["micro_f1_zero"] if several else METRICS["accuracy"]
        read = fitted.decision_function if several else fitted.predict
        assert row["mean"] == pytest.approx(measure.function(y[folds[0][1]], read(X[folds[0][1]])))
    assert narrowed.score >= whole.score - 0.1
    made = choose_c(lambda train, test: (X[train], X[test]), y, random_state=1)
    assert (made.table, made.sampled) == (narrowed.table, narrowed.sampled)
    parted = choose_c(X, y, held_out=held_out, random_state=1)
    means = {row["C"]: row["mean"] for row in by_part.table}
    assert all(means.get(row["C"], row["mean"]) == pytest.approx(row["mean"]) for row in parted.table)


def _grid_of(X: np.ndarray, y: np.ndarray) -> list[dict[str, float]]:
    return choose_c(X, y, random_state=1).table


def test_of_equal_candidates_the_smallest_is_taken_and_is_no_border() -> None:
    y = np.repeat([0, 1], 20)
    X = np.where(y == 0, -1.0, 1.0)[:, None]
    result = choose_c(X, y, c_grid=(10, 1, 100))
    assert (result.C, result.score, result.on_border) == (1, 1.0, False)
    assert [row["C"] for row in result.table] == [1, 10, 100]


@pytest.mark.filterwarnings("error")
def test_few_documents() -> None:
    X = np.eye(5)
    rare = choose_c(X, np.array([0, 0, 0, 1, 2]))
    assert rare.n_folds == 3
    all_different = choose_c(X, np.arange(5))  # no fold trains on the class it is asked for
    assert (all_different.n_folds, all_different.score, all_different.C) == (3, 0.0, GRID[0])
    assert choose_c(X[:2], np.array([0, 1])).n_folds == 2
    one_class = choose_c(X, np.zeros(5, dtype=int))
    assert (one_class.C, one_class.score, one_class.on_border) == (GRID[0], 1.0, False)
    lone = choose_c(X[:1], np.array([3]))
    assert (lone.C, lone.n_folds, lone.table) == (GRID[0], 0, [])
    assert math.isnan(lone.score)


def test_folds_that_do_not_converge_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        tuning, "build_probe", lambda name, C=1.0, seed=0: LogisticRegressionProbe(C, seed, max_iter=1)
    )
    X, y = blobs(9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose_c(X, y, c_grid=(1e3, 1e4)).n_not_converged == 6


def test_a_score_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Metric("broken", "never a number", lambda y_true, y_pred: math.nan, "labels")
    monkeypatch.setitem(METRICS, "broken", broken)
    with pytest.raises(ValueError, match=r"broken must be a number; received nan in fold 0 at C = 0.3"):
        choose_c(*blobs(0), metric="broken")


def test_lower_is_better_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = blobs(10)
    error = Metric("error", "wrong", lambda a, b: float(np.mean(a != b)), "labels", higher_is_better=False)
    monkeypatch.setitem(METRICS, "error", error)
    by_error, by_accuracy = choose_c(X, y, metric="error"), choose_c(X, y)
    assert by_error.C == by_accuracy.C
    assert by_error.score == pytest.approx(1 - by_accuracy.score)


@every_probe
@pytest.mark.parametrize("metric", ["micro_f1_zero", "lraps", "coverage_error"])
def test_c_for_several_labels_is_that_of_a_search_written_otherwise(probe: str, metric: str) -> None:
    X, Y = several_blobs(4)
    grid = (0.1, 1.0, 10.0)
    result = choose_c(X, csr_matrix(Y), probe, grid, metric=metric, random_state=2, settings={})
    measure = MULTILABEL_METRICS[metric]
    folds = folds_of(X, Y, 3, 2)
    mean = [
        np.mean(
            [
                measure.function(Y[b], build_probe(probe, C, 2).fit(X[a], Y[a]).decision_function(X[b]))
                for a, b in folds
            ]
        )
        for C in grid
    ]
    # Within its tolerance a path may decide on a document otherwise than a fresh start.
    margin = 0.005 if probe == "elastic-net" else 1e-6
    assert [row["mean"] for row in result.table] == pytest.approx(mean, abs=margin)
    assert result.score == pytest.approx(max(mean) if measure.higher_is_better else min(mean), abs=margin)


def test_the_default_metric_judges_decisions() -> None:
    X, Y = several_blobs(5)
    assert choose_c(X, Y) == choose_c(X, Y, metric="micro_f1_zero")
    X, y = blobs(5)
    assert choose_c(X, y) == choose_c(X, y, metric="accuracy")


@pytest.mark.filterwarnings("error")
def test_few_documents_of_several_labels() -> None:
    X = np.eye(5)
    assert choose_c(X, np.eye(5, dtype=np.int8)).n_folds == 3
    assert choose_c(X, csr_matrix(np.ones((5, 1), dtype=np.int8))).score == 1.0
    assert choose_c(X, csr_matrix((5, 4), dtype=np.int8)).score == 0.0
    assert choose_c(X[:2], csr_matrix(np.ones((2, 3)))).n_folds == 2
    assert choose_c(X[:1], csr_matrix(np.ones((1, 3)))).n_folds == 0
    np.testing.assert_array_equal(tune_thresholds(X[:1], np.ones((1, 3)), svm), np.zeros(3))
    np.testing.assert_array_equal(tune_thresholds(X, np.eye(5), svm), np.zeros(5))


@every_probe
def test_thresholds_are_those_of_out_of_fold_scores(probe: str) -> None:
    X, Y = several_blobs(27)  # where thresholds pay
    thresholds = tune_thresholds(X, csr_matrix(Y), lambda: build_probe(probe, 1.0, 4), random_state=4)
    scores, numbers = np.empty(Y.shape), np.empty(len(Y), dtype=int)
    for number, (train, test) in enumerate(folds_of(X, Y, 3, 4)):
        numbers[test] = number
        scores[test] = build_probe(probe, 1.0, 4).fit(X[train], Y[train]).decision_function(X[test])
    had = [0, 1, 2, 4]
    expected = thresholds_that_pay(scores[:, had], Y[:, had] > 0, numbers)
    assert expected.any()
    np.testing.assert_allclose(thresholds[had], expected, atol=1e-9)
    assert thresholds[3] == thresholds[4] == 0


@every_probe
@pytest.mark.parametrize("several", [False, True])
def test_the_chosen_candidates_scores_are_those_of_its_folds(probe: str, several: bool) -> None:
    """Of the best C, one that the grid grew to as well, and settings; thresholds are the same by them."""
    X, y = several_blobs(8) if several else blobs(8)
    found = choose_c(X, y, probe, random_state=4)
    folds = folds_of(X, y, 3, 4)
    assert [part.documents.tolist() for part in found.out_of_fold] == [test.tolist() for _, test in folds]
    for (train, test), part in zip(folds, found.out_of_fold, strict=True):
        alone = build_probe(probe, found.C or 1.0, 4, **found.settings).fit(X[train], y[train])
        np.testing.assert_array_equal(part.classes, alone.classes_)
        np.testing.assert_allclose(part.scores, alone.decision_function(X[test]), atol=0.05)
    if several:
        tuned = tune_thresholds(X, y, lambda: build_probe(probe, found.C or 1.0, 4, **found.settings), 3, 4)
        by_scores = thresholds_of([(part.documents, part.scores) for part in found.out_of_fold], y)
        np.testing.assert_allclose(by_scores, tuned, atol=0.05)


def test_scores_are_kept_where_all_folds_of_all_documents_were_scored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = blobs(8)
    assert choose_c(X, y, held_out=[3, 5]).out_of_fold[0].documents.tolist() == [3, 5]
    assert not choose_c(X, y, c_grid=[1.0], prune_below=[2.0]).out_of_fold
    assert not choose_c(X[:1], y[:1]).out_of_fold
    documents, classes = tokens(0)
    assert not score_classifier(
        NearestCentroidOfTokens, documents, classes
    ).out_of_fold  # it has no `labels_of`
    with monkeypatch.context() as few:
        few.setattr(tuning, "MOST_SCORES", len(y))
        assert not choose_c(X, y).out_of_fold
    with monkeypatch.context() as some:  # room for the smaller folds alone: of 8 documents 3, 3 and 2
        some.setattr(tuning, "MOST_SCORES", 3 * 2)
        assert not choose_c(X[:8, :], np.arange(8) % 2, c_grid=[1.0]).out_of_fold
    monkeypatch.setattr(tuning, "LARGE", 20)
    monkeypatch.setattr(tuning, "SAMPLE", 20)
    assert not choose_c(X, y).out_of_fold


def test_a_value_that_is_listed_twice_is_tried_once() -> None:
    X, y = blobs(8)
    found = choose_c(X, y, c_grid=[1.0, 3.0], settings={"scaled": (True, False, True)})
    assert [(row["scaled"], row["C"]) for row in found.table] == [
        (True, 1.0),
        (True, 3.0),
        (False, 1.0),
        (False, 3.0),
    ]
    assert all(row["mean"] > 0.3 for row in found.table)


def test_labels_too_rare_to_tune_keep_zero() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(0, 1, (300, 2)), np.zeros((300, 2), dtype=np.int8)
    Y[:2, 0] = 1
    Y[:, 1] = X[:, 1] + rng.normal(0, 1, 300) > 1
    thresholds = tune_thresholds(X, Y, svm)
    assert thresholds[0] == 0
    assert thresholds[1] != 0


class NearestCentroidOfTokens:
    """A classifier of token documents: the class whose training documents share most of their tokens."""

    def fit(self, X: list[np.ndarray], y: np.ndarray) -> "NearestCentroidOfTokens":
        self.classes_ = np.unique(y)
        self.counts = np.array([sum(_counts(X[i]) for i in np.flatnonzero(y == c)) for c in self.classes_])
        return self

    def decision_function(self, X: list[np.ndarray]) -> np.ndarray:
        return np.array([_counts(document) for document in X]) @ self.counts.T

    def predict(self, X: list[np.ndarray]) -> np.ndarray:
        return self.classes_[self.decision_function(X).argmax(axis=1)]


def _counts(document: np.ndarray) -> np.ndarray:
    return np.bincount(document, minlength=6)


def tokens(seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 60)
    return [rng.integers(0, 6, n) % 3 + c for c, n in zip(y, rng.integers(1, 9, 60), strict=True)], y


def test_a_classifier_of_token_documents_is_scored_fold_by_fold() -> None:
    X, y = tokens(0)
    result = score_classifier(NearestCentroidOfTokens, X, y, n_folds=4, random_state=3)
    scores = []
    for train, test in StratifiedKFold(4, shuffle=True, random_state=3).split(y, y):
        fitted = NearestCentroidOfTokens().fit([X[i] for i in train], y[train])
        scores.append(np.mean(fitted.predict([X[i] for i in test]) == y[test]))
    assert result.score == pytest.approx(np.mean(scores))
    assert result.table == [{"mean": result.score, "std": pytest.approx(np.std(scores))}]
    assert (result.C, result.n_folds, result.on_border, result.settings) == (None, 4, False, {})
    lone = score_classifier(NearestCentroidOfTokens, X[:1], y[:1])
    assert (lone.C, lone.n_folds) == (None, 0)


@pytest.mark.parametrize("several", [False, True])
def test_a_classifier_is_scored_as_a_probe_is(several: bool) -> None:
    X, y = several_blobs(4) if several else blobs(4)
    by_grid = choose_c(X, y, c_grid=[3.0], random_state=2, held_out=0.3)
    alone = score_classifier(lambda: build_probe("linear-svm", 3.0, 2), X, y, random_state=2, held_out=0.3)
    assert (alone.score, alone.fold_scores, alone.n_folds) == (by_grid.score, [by_grid.score], 1)


def test_a_held_out_part_is_scored_once() -> None:
    X, y = blobs(7)
    result = choose_c(X, y, held_out=0.25, random_state=1)
    ((train, test),) = folds_of(X, y, 3, 1, held_out=0.25)
    for row in result.table:
        probe = build_probe("linear-svm", row["C"], 1).fit(X[train], y[train])
        assert row["mean"] == np.mean(probe.predict(X[test]) == y[test]).round(12)
        assert row["std"] == 0
    assert (result.n_folds, result.fold_scores) == (1, [result.score])


def test_the_running_means_are_of_the_folds_so_far() -> None:
    X, y = blobs(11)
    whole = choose_c(X, y, c_grid=(0.01, 1.0), n_folds=4)
    assert whole.pruned_after is None
    assert len(whole.fold_scores) == 4
    assert whole.fold_scores[-1] == whole.score
    for n_scored in (1, 2, 3):
        bounds = [0.0] * (n_scored - 1) + [1.1]
        stopped = choose_c(X, y, c_grid=(0.01, 1.0), n_folds=4, prune_below=bounds)
        assert (stopped.pruned_after, stopped.n_folds) == (n_scored, n_scored)
        assert stopped.fold_scores == whole.fold_scores[:n_scored]
        assert stopped.score == stopped.fold_scores[-1] == max(row["mean"] for row in stopped.table)


def test_what_reaches_its_bounds_runs_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = blobs(12)
    whole = choose_c(X, y)
    assert choose_c(X, y, prune_below=whole.fold_scores) == whole
    assert choose_c(X, y, prune_below=[math.nan, 0.0, 1.1]) == whole  # no fold is left to save
    above = [score + 1e-6 for score in whole.fold_scores]
    assert choose_c(X, y, prune_below=above).pruned_after == 1
    error = Metric("error", "wrong", lambda a, b: float(np.mean(a != b)), "labels", higher_is_better=False)
    monkeypatch.setitem(METRICS, "error", error)
    wrong = choose_c(X, y, metric="error")
    assert choose_c(X, y, metric="error", prune_below=wrong.fold_scores) == wrong
    below = [score - 1e-6 for score in wrong.fold_scores]
    assert choose_c(X, y, metric="error", prune_below=below).pruned_after == 1


def test_settings_are_searched_with_every_c() -> None:
    X, y = blobs(13)
    both = choose_c(X, y, c_grid=(1.0, 1e3), settings={"max_iter": (1, 10_000)}, probe="logistic-regression")
    each = [
        choose_c(X, y, c_grid=(1.0, 1e3), settings={"max_iter": [n]}, probe="logistic-regression")
        for n in (1, 10_000)
    ]
    assert both.table == each[0].table + each[1].table
    assert each[1].table == [
        row | {"max_iter": 10_000} for row in choose_c(X, y, "logistic-regression", (1.0, 1e3)).table
    ]
    winner = each[0] if each[0].score >= each[1].score else each[1]
    assert (both.C, both.score, both.on_border) == (winner.C, winner.score, winner.on_border)
    assert both.settings == winner.settings
    assert both.n_not_converged == each[0].n_not_converged > 0 == each[1].n_not_converged


def test_bad_input_is_named() -> None:
    X, y = blobs(0)
    with pytest.raises(ValueError, match=r"accuracy, macro_f1.*received 'map'"):
        choose_c(X, y, metric="map")
    with pytest.raises(ValueError, match=r"micro_f1_zero, .*received 'micro_f1'"):
        choose_c(X, y[:, None] == np.arange(3), metric="micro_f1")
    with pytest.raises(ValueError, match=r"positive numbers; received \(0, 1\)"):
        choose_c(X, y, c_grid=(0, 1))
    with pytest.raises(ValueError, match="n_folds must be at least 2; received 1"):
        choose_c(X, y, n_folds=1)
    with pytest.raises(ValueError, match="probe must be one of"):
        choose_c(X, y, probe="svm")
    with pytest.raises(ValueError, match="received 90 rows, 3 classes"):
        tune_thresholds(X, np.eye(3), svm)
    with pytest.raises(
        ValueError, match="setting of linear-svm must be one of max_iter, scaled; received 'l1_ratio'"
    ):
        choose_c(X, y, settings={"l1_ratio": (0.5,)})
    with pytest.raises(ValueError, match=r"must hold a value at least; received \{.max_iter.: \(\)\}"):
        choose_c(X, y, settings={"max_iter": ()})
    with pytest.raises(ValueError, match="received 89 rows, 90 classes"):
        score_classifier(NearestCentroidOfTokens, [np.zeros(1)] * 89, y)
