"""Metrics against confusion matrices worked by hand and scikit-learn, and one common test over all."""

import re

import numpy as np
import pytest
from sklearn import metrics as reference

from textbench.evaluation.metrics.query_by_example import search_by_example
from textbench.evaluation.metrics.single_label import METRICS, per_class, score_labels, score_neighbours

# Confusion matrix, rows true: [[3, 1, 0], [1, 1, 0], [0, 2, 2]].
Y_TRUE = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2, 2])
Y_PRED = np.array([0, 0, 0, 1, 0, 1, 1, 1, 2, 2])


def test_confusion_matrix_by_hand() -> None:
    precision = [3 / 4, 1 / 4, 1.0]
    recall = [3 / 4, 1 / 2, 1 / 2]
    f1 = [3 / 4, 1 / 3, 2 / 3]
    assert score_labels(Y_TRUE, Y_PRED) == pytest.approx(
        {
            "accuracy": 0.6,
            "micro_f1": 0.6,
            "macro_f1": sum(f1) / 3,
            "weighted_f1": (4 * f1[0] + 2 * f1[1] + 4 * f1[2]) / 10,
            "macro_precision": sum(precision) / 3,
            "macro_recall": sum(recall) / 3,
        }
    )


def test_a_class_only_predicted_counts_as_zero_and_an_absent_one_not_at_all() -> None:
    scores = score_labels(np.array([0, 0, 3]), np.array([0, 2, 3]))  # class 1 is absent from both
    assert scores["macro_f1"] == pytest.approx((2 / 3 + 0 + 1) / 3)
    assert scores["macro_precision"] == pytest.approx((1 + 0 + 1) / 3)
    assert scores["macro_recall"] == pytest.approx((1 / 2 + 0 + 1) / 3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(5))
def test_agreement_with_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y_true, y_pred = rng.integers(0, 6, 40), rng.integers(1, 8, 40)
    report = reference.classification_report(y_true, y_pred, output_dict=True, zero_division=0)
    scores = score_labels(y_true, y_pred)
    assert scores["accuracy"] == pytest.approx(report["accuracy"])
    assert scores["macro_f1"] == pytest.approx(report["macro avg"]["f1-score"])
    assert scores["macro_precision"] == pytest.approx(report["macro avg"]["precision"])
    assert scores["macro_recall"] == pytest.approx(report["macro avg"]["recall"])
    assert scores["weighted_f1"] == pytest.approx(report["weighted avg"]["f1-score"])


def test_per_class_rows_average_to_the_macro_figures() -> None:
    rows = per_class(Y_TRUE, Y_PRED, ["acq", "corn", "earn"])
    assert [row["class"] for row in rows] == ["acq", "corn", "earn"]
    assert [row["support"] for row in rows] == [4, 2, 4]
    assert rows[1] == pytest.approx(
        {"class": "corn", "precision": 0.25, "recall": 0.5, "f1": 1 / 3, "support": 2}
    )
    scores = score_labels(Y_TRUE, Y_PRED)
    for key, metric in (("f1", "macro_f1"), ("precision", "macro_precision"), ("recall", "macro_recall")):
        assert np.mean([row[key] for row in rows]) == pytest.approx(scores[metric])


def test_per_class_leaves_out_a_class_that_nobody_has() -> None:
    rows = per_class(np.array([0, 2]), np.array([2, 2]), ["acq", "corn", "earn"])
    assert [(row["class"], row["support"]) for row in rows] == [("acq", 1), ("earn", 1)]


def test_bad_labels_are_named() -> None:
    with pytest.raises(ValueError, match="received 2 and 1"):
        score_labels(np.array([0, 1]), np.array([0]))
    with pytest.raises(ValueError, match="received 0 and 0"):
        score_labels(np.array([], dtype=int), np.array([], dtype=int))
    with pytest.raises(ValueError, match=r"0\.\.1.*received 0\.\.2"):
        per_class(np.array([0, 2]), np.array([0, 0]), ["a", "b"])


@pytest.mark.parametrize("name", METRICS)
def test_common(name: str) -> None:
    """Every metric: its name, a float in 0..1 (coverage error: a rank), and its best value for a perfect answer."""
    metric = METRICS[name]
    assert metric.name == name
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name)
    assert metric.description and not metric.description.endswith(".")
    rng = np.random.default_rng(0)
    best, worst = (1.0, 0.0) if metric.higher_is_better else (1.0, 4.0)
    if metric.needs == "labels":
        y_true = rng.integers(0, 4, 50)
        value, perfect = metric.function(y_true, rng.integers(0, 4, 50)), metric.function(y_true, y_true)
    elif metric.needs == "scores":
        y_true = rng.integers(0, 4, 50)
        value, perfect = (
            metric.function(y_true, rng.random((50, 4))),
            metric.function(y_true, np.eye(4)[y_true]),
        )
    else:
        targets = np.repeat(np.arange(4), 12)
        noise = rng.standard_normal((48, 5))
        value = metric.function(search_by_example(noise, targets, noise[::-1].copy(), targets))
        perfect = metric.function(search_by_example(np.eye(4)[targets], targets, np.eye(4), np.arange(4)))
    assert isinstance(value, float)
    assert min(best, worst) <= value <= max(best, worst)
    assert value != best
    assert perfect == pytest.approx(best)


def test_neighbour_metrics_are_means_over_queries() -> None:
    train = np.eye(3)
    queries = search_by_example(train, np.array([0, 1, 2]), train[:2], np.array([0, 2]))
    # The first query finds its document alone on top, the second a wrong one, then a tie of right and wrong.
    expected = {
        "map": (1 + 1 / 3) / 2,
        "precision_at_1": 1 / 2,
        "precision_at_3": 1 / 3,
        "precision_at_5": 1 / 5,
        "precision_at_10": 1 / 10,
        "ndcg_at_5": (1 + (1 / np.log2(3) + 1 / np.log2(4)) / 2) / 2,
    }
    assert score_neighbours(queries) == pytest.approx(expected)
