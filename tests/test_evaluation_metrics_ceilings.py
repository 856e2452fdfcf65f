"""Ceilings against every prediction and every ranking there is, on cases small enough to enumerate."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from textbench.evaluation.metrics.ceilings import ceilings, multilabel_ceilings
from textbench.evaluation.metrics.multilabel import MULTILABEL_METRICS, score_multilabel
from textbench.evaluation.metrics.query_by_example import search_by_example
from textbench.evaluation.metrics.single_label import METRICS, score_labels, score_neighbours

ATTAINED = ("accuracy", "micro_f1", "macro_recall")


def best_by_enumeration(train: np.ndarray, test: np.ndarray, groups: np.ndarray) -> dict[str, float]:
    """The best value of each metric over all assignments of one trained class to each group."""
    trained = np.unique(train)
    _, group_of = np.unique(groups, return_inverse=True)
    scores = [
        score_labels(test, np.array(choice)[group_of])
        for choice in product(trained, repeat=group_of.max() + 1)
    ]
    return {name: max(score[name] for score in scores) for name in scores[0]}


@pytest.mark.parametrize("seed", range(10))
def test_no_prediction_exceeds_the_ceiling(seed: int) -> None:
    rng = np.random.default_rng(seed)
    train, test = rng.integers(0, 3, 4), rng.integers(0, 4, 8)
    groups = rng.integers(0, 4, 8)
    bounds, best = ceilings(train, test, groups), best_by_enumeration(train, test, groups)
    for name, value in best.items():
        assert value <= bounds[name] + 1e-12, name
    for name in ATTAINED:
        assert best[name] == pytest.approx(bounds[name], abs=1e-12), name


@pytest.mark.parametrize("seed", range(4))
def test_f1_of_one_class_is_attained_by_a_union_of_groups(seed: int) -> None:
    """With one test class trained, beside one that the test set lacks, weighted F1 is that class's alone."""
    rng = np.random.default_rng(seed)
    test, groups = rng.integers(0, 2, 12), rng.integers(0, 5, 12)
    test[0] = 0
    _, group_of = np.unique(groups, return_inverse=True)
    best = 0.0
    for chosen in product([False, True], repeat=group_of.max() + 1):
        predicted = np.array(chosen)[group_of]
        best = max(best, 2 * np.sum(predicted & (test == 0)) / (predicted.sum() + np.sum(test == 0)))
    bound = ceilings(np.array([0, 7]), test, groups)["weighted_f1"]
    assert bound == pytest.approx(best * np.mean(test == 0), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_best_ranking_attains_the_ceiling(seed: int) -> None:
    rng = np.random.default_rng(seed)
    train, test = rng.integers(0, 2, 5), rng.integers(0, 3, 3)
    bounds = ceilings(train, test, np.arange(3))
    best = dict.fromkeys((name for name, m in METRICS.items() if m.needs == "neighbours"), 0.0)
    for order in permutations(range(5)):
        # Queries of class 0 rank in this order, those of class 1 in reverse: cosines fall with the angle.
        angles = np.array(order) * 0.3
        documents = np.column_stack([np.cos(angles), np.sin(angles)])
        queries = np.where(test[:, None] == 0, [[1.0, 0.0]], [[np.cos(1.2), np.sin(1.2)]])
        values = score_neighbours(search_by_example(documents, train, queries, test))
        best = {name: max(best[name], values[name]) for name in best}
    for name, value in best.items():
        assert value == pytest.approx(bounds[name], abs=1e-12), name


def test_by_hand() -> None:
    # One text twice with two classes, a class never trained, a class with 2 training documents.
    bounds = ceilings(np.array([0, 0, 1]), np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2]))
    assert bounds["accuracy"] == 0.5
    assert bounds["macro_f1"] == pytest.approx((4 / 5 + 2 / 3 + 0) / 3)
    assert bounds["macro_precision"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert bounds["macro_recall"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert bounds["map"] == 0.75
    assert bounds["precision_at_5"] == pytest.approx((2 / 5 + 2 / 5 + 1 / 5) / 4)


def test_clean_data_is_bounded_by_one_and_every_metric_has_a_ceiling() -> None:
    targets = np.repeat(np.arange(3), 20)
    assert ceilings(targets, targets, np.arange(60)) == pytest.approx(dict.fromkeys(METRICS, 1.0))


def test_a_test_set_of_untrained_classes_is_hopeless() -> None:
    bounds = ceilings(np.array([5]), np.array([0, 1]), np.array([0, 1]))
    # Of three classes the one that was trained stands first, and theirs tie behind it: the last rank for both.
    assert bounds == dict.fromkeys(METRICS, 0.0) | {"lraps": 1 / 3, "coverage_error": 3.0}


@pytest.mark.parametrize("seed", range(4))
def test_rankings_of_the_classes_attain_their_ceilings(seed: int) -> None:
    """Every ranking of the trained classes for each group, the others tied below; ranks worked out by hand."""
    rng = np.random.default_rng(seed)
    train, test, groups = rng.choice([0, 1, 3], 6), rng.integers(0, 4, 7), rng.integers(0, 3, 7)
    trained, every = np.unique(train), np.union1d(train, test)
    bounds = ceilings(train, test, groups)
    lraps = coverage = 0.0
    for group in np.unique(groups):
        found = []
        for order in permutations(trained):
            ranks = [1 + order.index(c) if c in order else len(every) for c in test[groups == group]]
            found.append((sum(1 / rank for rank in ranks), sum(ranks)))
        lraps += max(inverse for inverse, _ in found)
        coverage += min(total for _, total in found)
    assert bounds["lraps"] == pytest.approx(lraps / len(test))
    assert bounds["coverage_error"] == pytest.approx(coverage / len(test))


def test_a_metric_without_a_bound_has_no_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever adds a metric need not know its bound: the others keep theirs."""
    targets, several = np.array([0, 1]), csr_matrix(np.eye(2))
    before = ceilings(targets, targets, np.arange(2)), multilabel_ceilings(several, several, np.arange(2))
    monkeypatch.setitem(METRICS, "unbounded", METRICS["accuracy"])
    monkeypatch.setitem(MULTILABEL_METRICS, "unbounded", MULTILABEL_METRICS["lraps"])
    after = ceilings(targets, targets, np.arange(2)), multilabel_ceilings(several, several, np.arange(2))
    assert after == before


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="1 training, 2 test documents, 1 groups"):
        ceilings(np.array([0]), np.array([0, 0]), np.array([0]))


# Of several labels these let equal texts be ranked differently, so that they need not be attained.
HELD = ("map", "lraps", "coverage_error")


def best_of_several(train: np.ndarray, test: np.ndarray, group_of: np.ndarray) -> dict[str, float]:
    """The best value of each metric over all rankings of the trained labels for each group, and over all decisions.

    A metric is of the ranking, or of what is decided or scored above 0: not every pair of them has to be tried.
    """
    trained = np.flatnonzero(train.any(axis=0))

    def row(values: np.ndarray) -> np.ndarray:
        scores = np.full(train.shape[1], -100.0)
        scores[trained] = values
        return scores

    rankings = [row(-0.5 - np.array(order)) for order in permutations(range(len(trained)))]
    above = product([0.5, -0.5 - len(trained)], repeat=len(trained))
    decisions = [row(np.array(chosen) + np.arange(len(trained)) / 10) for chosen in above]
    n_groups = group_of.max() + 1
    best: dict[str, float] = {}
    for choice in (*product(rankings, repeat=n_groups), *product(decisions, repeat=n_groups)):
        scores = np.array(choice)[group_of]
        for name, value in score_multilabel(test, scores, scores > 0).items():
            pick = max if MULTILABEL_METRICS[name].higher_is_better else min
            best[name] = pick(best.get(name, value), value)
    return best


@pytest.mark.parametrize("seed", range(8))
def test_no_ranking_and_no_decision_exceeds_the_ceiling_of_several_labels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    train, test = rng.random((3, 4)) < 0.4, rng.random((3, 4)) < 0.5
    train[:, 3], train[0, :2] = False, True
    groups = rng.integers(0, 2, 3)
    _, group_of = np.unique(groups, return_inverse=True)
    bounds = multilabel_ceilings(csr_matrix(train), csr_matrix(test), groups)
    for name, value in best_of_several(train, test, group_of).items():
        gap = bounds[name] - value if MULTILABEL_METRICS[name].higher_is_better else value - bounds[name]
        assert gap >= -1e-12, name
        if name not in HELD:
            assert gap == pytest.approx(0, abs=1e-12), name


@pytest.mark.parametrize("seed", range(4))
def test_rankings_of_different_texts_attain_every_ceiling(seed: int) -> None:
    rng = np.random.default_rng(seed)
    train, test = np.array([[1, 1, 0, 0, 1]]), rng.random((30, 5)) < 0.4
    bounds = multilabel_ceilings(csr_matrix(train), csr_matrix(test), np.arange(30))
    scores = np.where(train > 0, test - 0.5, -100.0)
    assert score_multilabel(test, scores, scores > 0) == pytest.approx(bounds)


def test_several_labels_by_hand() -> None:
    """Documents of 1 and 2 labels cannot fill 5 places; a label that is never trained costs its share."""
    train, test = csr_matrix([[1, 1, 0]]), csr_matrix([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 0]])
    bounds = multilabel_ceilings(train, test, np.arange(4))
    assert bounds["precision_at_1"] == 3 / 4
    # The untrained label is third by accident.
    assert bounds["precision_at_5"] == pytest.approx((1 + 2 + 2) / 20)
    assert bounds["micro_f1"] == pytest.approx(2 * 4 / (4 + 5))
    assert bounds["macro_f1"] == pytest.approx(2 / 3)
    assert bounds["coverage_error"] == (1 + 2 + 3 + 0) / 4
    assert bounds["lraps"] == pytest.approx((1 + 1 + (1 + 2 / 3) / 2 + 1) / 4)
    assert bounds["map"] == pytest.approx((1 + 1 + 1 / 4) / 3)


def test_bad_input_of_several_labels_is_named() -> None:
    with pytest.raises(ValueError, match=r"received \(1, 2\) and \(1, 3\), 1 groups"):
        multilabel_ceilings(csr_matrix((1, 2)), csr_matrix((1, 3)), np.array([0]))
