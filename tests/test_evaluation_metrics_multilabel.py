"""Metrics of several labels against enumeration of every order of ties, scikit-learn, and cases worked by hand."""

import re
from itertools import permutations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn import metrics as reference

from textbench.evaluation.metrics import label_ranking
from textbench.evaluation.metrics.multilabel import MULTILABEL_METRICS, per_label, score_multilabel

# Three documents over three labels.
Y_TRUE = np.array([[1, 0, 1], [0, 1, 0], [0, 0, 0]])
SCORES = np.array([[0.9, 0.5, -0.1], [0.2, -0.3, -0.4], [-1.0, -2.0, 1.0]])
DEPTHS = (1, 3, 5)


def random_case(seed: int, n: int = 40, n_labels: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Labels, some documents with none and some with all, and scores with many ties."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, n_labels)) < 0.3).astype(np.int8)
    Y[:2], Y[2:4] = 0, 1
    return Y, rng.integers(-3, 4, (n, n_labels)) / 2


def test_by_hand() -> None:
    found = score_multilabel(Y_TRUE, SCORES, SCORES > 0)
    # Decisions at zero: {0, 1}, {0}, {2}; two labels of three are given wrongly, one rightly.
    assert found["micro_f1"] == found["micro_f1_zero"] == pytest.approx(2 * 1 / (4 + 3))
    assert found["macro_f1"] == found["macro_f1_zero"] == pytest.approx((2 / 3 + 0 + 0) / 3)
    assert found["weighted_f1"] == found["weighted_f1_zero"] == pytest.approx((2 / 3) / 3)
    assert found["precision_at_1"] == pytest.approx((1 + 0 + 0) / 3)
    assert found["precision_at_3"] == pytest.approx((2 + 1 + 0) / 9)
    assert found["precision_at_5"] == pytest.approx((2 + 1 + 0) / 15)
    discount = 1 / np.log2([2, 3, 4, 5, 6])
    gains = discount[0] + discount[2], discount[1]
    assert found["ndcg_at_3"] == pytest.approx((gains[0] / discount[:2].sum() + gains[1]) / 3)
    assert found["ndcg_fixed_norm_at_3"] == pytest.approx(sum(gains) / discount[:3].sum() / 3)
    assert found["ndcg_fixed_norm_at_5"] == pytest.approx(sum(gains) / discount.sum() / 3)
    assert found["coverage_error"] == pytest.approx((3 + 2 + 0) / 3)
    assert found["lraps"] == pytest.approx(((1 + 2 / 3) / 2 + 1 / 2 + 1) / 3)
    # Label 0: its document leads; 1: it comes second; 2: it comes second behind the one without labels.
    assert found["map"] == pytest.approx((1 + 1 / 2 + 1 / 2) / 3)


@pytest.mark.parametrize("seed", range(5))
def test_short_lists_are_means_over_every_order_of_the_ties(seed: int) -> None:
    Y, scores = random_case(seed, n=6, n_labels=4)
    for true, row in zip(Y, scores, strict=True):
        orders = [order for order in permutations(range(4)) if (np.diff(row[list(order)]) <= 0).all()]
        lists = np.array([true[list(order)] for order in orders])
        for k in DEPTHS:
            discount = 1 / np.log2(np.arange(2, k + 2))
            first = np.hstack([lists, np.zeros((len(lists), k))])[:, :k]
            best = discount[: min(k, true.sum())].sum()
            one = true[None], row[None], k
            assert label_ranking.precision_at_k(*one) == pytest.approx(first.mean())
            dcg = (first @ discount).mean()
            assert label_ranking.ndcg_fixed_norm_at_k(*one) == pytest.approx(dcg / discount.sum())
            assert label_ranking.ndcg_at_k(*one) == pytest.approx(dcg / best if best else 0)


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
@pytest.mark.parametrize("seed", range(5))
def test_agreement_with_scikit_learn(seed: int, kind: type) -> None:
    Y, scores = random_case(seed)
    pred = scores > 0.6
    found = score_multilabel(kind(Y), scores, kind(pred))
    assert found["lraps"] == pytest.approx(reference.label_ranking_average_precision_score(Y, scores))
    assert found["coverage_error"] == pytest.approx(reference.coverage_error(Y, scores))
    assert found["map"] == pytest.approx(reference.average_precision_score(Y, scores))
    for k in DEPTHS:
        assert found[f"ndcg_at_{k}"] == pytest.approx(reference.ndcg_score(Y, scores, k=k))
    for average in ("micro", "macro", "weighted"):
        tuned, zero = (reference.f1_score(Y, p, average=average) for p in (pred, scores > 0))
        assert found[f"{average}_f1"] == pytest.approx(tuned)
        assert found[f"{average}_f1_zero"] == pytest.approx(zero)


def test_a_label_of_nobody_counts_only_if_it_is_given() -> None:
    Y = np.array([[1, 0, 0], [1, 0, 0]])
    for pred, expected in ((Y, 1.0), (np.array([[1, 0, 1], [1, 0, 0]]), 1 / 2)):
        assert score_multilabel(Y, Y - 0.5, pred)["macro_f1"] == expected
        assert reference.f1_score(Y, pred, average="macro", zero_division=np.nan) == expected
    assert score_multilabel(Y, Y - 0.5, Y)["map"] == 1.0


def test_documents_without_labels_and_labels_without_documents() -> None:
    nothing = np.zeros((2, 3), dtype=np.int8)
    found = score_multilabel(nothing, SCORES[:2], nothing)
    assert {name: value for name, value in found.items() if value} == {"lraps": 1.0, "accuracy": 1.0}


@pytest.mark.parametrize("seed", range(3))
def test_order_of_documents_and_labels_and_rising_maps_of_scores_do_not_matter(seed: int) -> None:
    Y, scores = random_case(seed)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(40), rng.permutation(7)
    expected = score_multilabel(Y, scores, scores > 1)
    moved = scores[rows][:, columns]
    found = score_multilabel(Y[rows][:, columns], 5 * moved**3, moved > 1)
    assert found == pytest.approx(expected)


def test_per_label_rows_average_to_the_macro_figure() -> None:
    Y, scores = random_case(0)
    Y[:, 6], thresholds = 0, np.linspace(0, 1, 7)
    pred = scores > thresholds
    pred[:, 6] = False
    rows = per_label(csr_matrix(Y), csr_matrix(pred), list("abcdefg"), thresholds)
    assert [row["class"] for row in rows] == list("abcdef")
    precision, recall, f1, support = reference.precision_recall_fscore_support(Y, pred, zero_division=0)
    for label, row in enumerate(rows):
        assert row == pytest.approx(
            {
                "class": "abcdef"[label],
                "precision": precision[label],
                "recall": recall[label],
                "f1": f1[label],
                "support": support[label],
                "threshold": thresholds[label],
            }
        )
    assert np.mean([row["f1"] for row in rows]) == pytest.approx(
        score_multilabel(Y, scores, pred)["macro_f1"]
    )


@pytest.mark.parametrize("name", MULTILABEL_METRICS)
def test_common(name: str) -> None:
    """Every metric: its name, a float, and its best value for an answer that knows the labels."""
    metric = MULTILABEL_METRICS[name]
    assert metric.name == name
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name)
    assert metric.description and not metric.description.endswith(".")
    Y = np.eye(8, dtype=np.int8)[np.arange(24) % 8]
    noise = np.random.default_rng(0).normal(0, 1, Y.shape)
    value = metric.function(Y, noise if metric.needs == "scores" else noise > 0)
    perfect = metric.function(Y, Y - 0.5 if metric.needs == "scores" else Y)
    assert isinstance(value, float)
    assert perfect < value if not metric.higher_is_better else 0 <= value < perfect <= 1
    if name in ("precision_at_3", "precision_at_5"):
        assert perfect == pytest.approx(1 / int(name[-1]))
    elif "fixed_norm" in name:
        assert perfect == pytest.approx(1 / np.sum(1 / np.log2(np.arange(2, int(name[-1]) + 2))))
    else:
        assert perfect == pytest.approx(1)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"received \(3, 3\) and \(3, 2\)"):
        label_ranking.precision_at_k(Y_TRUE, SCORES[:, :2], 1)
    with pytest.raises(ValueError, match="must be finite"):
        label_ranking.coverage(Y_TRUE, SCORES * np.nan)
    with pytest.raises(ValueError, match=r"received \(0, 3\) and \(0, 3\)"):
        score_multilabel(Y_TRUE[:0], SCORES[:0], Y_TRUE[:0])
    with pytest.raises(ValueError, match=r"received \(3, 3\) and \(2, 3\)"):
        MULTILABEL_METRICS["micro_f1"].function(Y_TRUE, Y_TRUE[:2])
    with pytest.raises(ValueError, match="must name 3 labels; received 2"):
        per_label(Y_TRUE, Y_TRUE, ["a", "b"], np.zeros(3))
