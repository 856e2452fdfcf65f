"""The metrics where a document may have several labels, each one function and one line of `MULTILABEL_METRICS`.

Y_true and Y_pred are csr or dense indicators (n_documents, n_labels), scores a dense float array of that shape.
A metric needs either `scores`, and is called `f(Y_true, scores)`, or `decisions`, and is called
`f(Y_true, Y_pred)`, where a threshold of its own for each label made the decisions. The metrics `*_zero` make
them from the scores: a label is given where its score is above 0.

Ties and documents without labels are treated as `evaluation.metrics.label_ranking` says. The macro averages run over
the labels that occur in Y_true or in Y_pred, the rule of `evaluation.metrics.single_label` (scikit-learn's with
zero_division=nan); a label that no test document has and nothing predicts says nothing. A rate whose denominator
is 0 is 0.

Source: Manning, Raghavan, Schuetze, Introduction to Information Retrieval (2008), sections 8.3-8.4 and 13.6;
for the rankings see `evaluation.metrics.label_ranking`.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from textbench.evaluation.metrics.single_label import METRICS, Metric

if TYPE_CHECKING:  # the command line imports this module and has to stay instant
    import numpy as np
    from scipy.sparse import csr_matrix

    Indicator: TypeAlias = "np.ndarray | csr_matrix"


def precision_at(Y_true: "Indicator", scores: "np.ndarray", k: int) -> float:
    """Precision at k: the mean share of a document's labels among its k highest-scored."""
    from textbench.evaluation.metrics.label_ranking import precision_at_k

    return float(precision_at_k(Y_true, scores, k).mean())


def ndcg_at(Y_true: "Indicator", scores: "np.ndarray", k: int) -> float:
    """Normalised discounted cumulative gain at k (nDCG@k): the mean of each document against its own best ranking."""
    from textbench.evaluation.metrics.label_ranking import ndcg_at_k

    return float(ndcg_at_k(Y_true, scores, k).mean())


def ndcg_fixed_norm_at(Y_true: "Indicator", scores: "np.ndarray", k: int) -> float:
    """The nDCG at k over the full k-term norm, as SCDV printed it (EMNLP 2017)."""
    from textbench.evaluation.metrics.label_ranking import ndcg_fixed_norm_at_k

    return float(ndcg_fixed_norm_at_k(Y_true, scores, k).mean())


def coverage_error(Y_true: "Indicator", scores: "np.ndarray") -> float:
    """Coverage error: the mean number of labels to read until all of a document's are met; lower is better."""
    from textbench.evaluation.metrics.label_ranking import coverage

    return float(coverage(Y_true, scores).mean())


def lraps(Y_true: "Indicator", scores: "np.ndarray") -> float:
    """Label ranking average precision score (LRAPS): the mean over documents."""
    from textbench.evaluation.metrics.label_ranking import label_ranking_average_precision

    return float(label_ranking_average_precision(Y_true, scores).mean())


def mean_average_precision(Y_true: "Indicator", scores: "np.ndarray") -> float:
    """Mean average precision (MAP): each label ranks the documents; the mean over labels some document has."""
    from sklearn.metrics import average_precision_score

    true = _dense(Y_true)
    true, scores = true[:, true.any(axis=0)], scores[:, true.any(axis=0)]
    return float(average_precision_score(true, scores, average="macro")) if true.size else 0.0


def macro_f1(Y_true: "Indicator", Y_pred: "Indicator") -> float:
    """Macro-averaged F1: the plain mean of the labels' F1."""
    _, _, f1, _, occurs = _rates(Y_true, Y_pred)
    return float(f1[occurs].mean()) if occurs.any() else 0.0


def accuracy(Y_true: "Indicator", Y_pred: "Indicator") -> float:
    """Subset accuracy: the share of documents that are given all of their labels and no other."""
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(Y_true, Y_pred))


def micro_f1(Y_true: "Indicator", Y_pred: "Indicator") -> float:
    """Micro-averaged F1: F1 of the pooled decisions."""
    both, predicted, support = (counts.sum() for counts in _counts(Y_true, Y_pred))
    return float(2 * both / max(predicted + support, 1))


def weighted_f1(Y_true: "Indicator", Y_pred: "Indicator") -> float:
    """Weighted F1: the labels' F1 averaged by their documents in Y_true."""
    _, _, f1, support, _ = _rates(Y_true, Y_pred)
    return float(f1 @ support / max(support.sum(), 1))


def macro_f1_zero(Y_true: "Indicator", scores: "np.ndarray") -> float:
    """The macro-averaged F1 of the labels that score above 0."""
    return macro_f1(Y_true, scores > 0)


def micro_f1_zero(Y_true: "Indicator", scores: "np.ndarray") -> float:
    """The micro-averaged F1 of the labels that score above 0."""
    return micro_f1(Y_true, scores > 0)


def weighted_f1_zero(Y_true: "Indicator", scores: "np.ndarray") -> float:
    """The weighted F1 of the labels that score above 0."""
    return weighted_f1(Y_true, scores > 0)


_METRICS = (
    Metric("micro_f1", "F1 of the pooled decisions", micro_f1, "decisions"),
    Metric("macro_f1", "F1, plain mean over labels", macro_f1, "decisions"),
    Metric("weighted_f1", "F1, mean over labels weighted by documents", weighted_f1, "decisions"),
    Metric("accuracy", "share of documents given just their labels", accuracy, "decisions"),
    Metric("micro_f1_zero", "F1 of the pooled decisions, threshold 0", micro_f1_zero, "scores"),
    Metric("macro_f1_zero", "F1, plain mean over labels, threshold 0", macro_f1_zero, "scores"),
    Metric("weighted_f1_zero", "F1, mean weighted by documents, threshold 0", weighted_f1_zero, "scores"),
    Metric(
        "map", "mean average precision of the labels", mean_average_precision, "scores", ranks="documents"
    ),
    Metric("lraps", "average precision of a document's labels", lraps, "scores", ranks="labels"),
    Metric(
        "coverage_error", "labels read to meet all of a document's", coverage_error, "scores", False, "labels"
    ),
    Metric(
        "precision_at_1",
        "own labels among the highest 1",
        partial(precision_at, k=1),
        "scores",
        ranks="labels",
    ),
    Metric(
        "precision_at_3",
        "own labels among the highest 3",
        partial(precision_at, k=3),
        "scores",
        ranks="labels",
    ),
    Metric(
        "precision_at_5",
        "own labels among the highest 5",
        partial(precision_at, k=5),
        "scores",
        ranks="labels",
    ),
    Metric(
        "ndcg_at_1",
        "discounted gain of the highest 1, normalised",
        partial(ndcg_at, k=1),
        "scores",
        ranks="labels",
    ),
    Metric(
        "ndcg_at_3",
        "discounted gain of the highest 3, normalised",
        partial(ndcg_at, k=3),
        "scores",
        ranks="labels",
    ),
    Metric(
        "ndcg_at_5",
        "discounted gain of the highest 5, normalised",
        partial(ndcg_at, k=5),
        "scores",
        ranks="labels",
    ),
    Metric(
        "ndcg_fixed_norm_at_1",
        "discounted gain of the highest 1 over the 1-term norm",
        partial(ndcg_fixed_norm_at, k=1),
        "scores",
        ranks="labels",
    ),
    Metric(
        "ndcg_fixed_norm_at_3",
        "discounted gain of the highest 3 over the 3-term norm",
        partial(ndcg_fixed_norm_at, k=3),
        "scores",
        ranks="labels",
    ),
    Metric(
        "ndcg_fixed_norm_at_5",
        "discounted gain of the highest 5 over the 5-term norm",
        partial(ndcg_fixed_norm_at, k=5),
        "scores",
        ranks="labels",
    ),
)
MULTILABEL_METRICS: dict[str, Metric] = {metric.name: metric for metric in _METRICS}


def tuning_metrics(*, several_labels: bool) -> dict[str, Metric]:
    """The metrics that cross-validation can go by, by name: of predicted classes, or of the scores of labels."""
    metrics, needs = (MULTILABEL_METRICS, "scores") if several_labels else (METRICS, "labels")
    return {name: metric for name, metric in metrics.items() if metric.needs == needs}


def scored_metrics(*, several_labels: bool, is_classifier: bool) -> dict[str, Metric]:
    """The metrics that a run has, by name; a method that classifies by itself has no features to find neighbours by."""
    if several_labels:
        return MULTILABEL_METRICS
    return {name: metric for name, metric in METRICS.items() if metric.needs == "labels" or not is_classifier}


def is_of_several_labels(metrics: Mapping[str, float]) -> bool:
    """Tell whether these are metrics of documents that may have several labels."""
    return "micro_f1_zero" in metrics


def score_multilabel(Y_true: "Indicator", scores: "np.ndarray", Y_pred: "Indicator") -> dict[str, float]:
    """Every metric of MULTILABEL_METRICS, by name; ValueError for shapes that differ."""
    read = {"scores": scores, "decisions": Y_pred}
    return {name: metric.function(Y_true, read[metric.needs]) for name, metric in MULTILABEL_METRICS.items()}


def per_label(
    Y_true: "Indicator", Y_pred: "Indicator", target_names: Sequence[str], thresholds: "np.ndarray"
) -> list[dict[str, Any]]:
    """Precision, recall and F1 of each label: rows {class, precision, recall, f1, support, threshold}.

    target_names, thresholds: (n_labels,). The rows are the labels of the macro averages (those in Y_true or
    Y_pred), so the mean of their f1 is macro_f1; support counts the documents of Y_true. ValueError for
    another number of names.
    """
    import numpy as np

    if len(target_names) != Y_true.shape[1]:
        raise ValueError(f"target_names must name {Y_true.shape[1]} labels; received {len(target_names)}")
    precision, recall, f1, support, occurs = _rates(Y_true, Y_pred)
    return [
        {
            "class": target_names[label],
            "precision": float(precision[label]),
            "recall": float(recall[label]),
            "f1": float(f1[label]),
            "support": int(support[label]),
            "threshold": float(thresholds[label]),
        }
        for label in np.flatnonzero(occurs).tolist()
    ]


def _rates(Y_true: "Indicator", Y_pred: "Indicator") -> "tuple[np.ndarray, ...]":
    """Each label's precision, recall, F1 and support, and whether it occurs at all: (n_labels,) each."""
    import numpy as np

    both, predicted, support = _counts(Y_true, Y_pred)
    precision, recall = both / np.maximum(predicted, 1), both / np.maximum(support, 1)
    f1 = 2 * both / np.maximum(predicted + support, 1)
    return precision, recall, f1, support, predicted + support > 0


def _counts(Y_true: "Indicator", Y_pred: "Indicator") -> "tuple[np.ndarray, np.ndarray, np.ndarray]":
    """Each label's documents that have it and got it, that got it, and that have it: (n_labels,) each."""
    if Y_true.shape != Y_pred.shape or Y_true.ndim != 2 or 0 in Y_true.shape:
        raise ValueError(
            "Y_true and the predictions must be (n_documents, n_labels) alike, with at least one of each; "
            f"received {Y_true.shape} and {Y_pred.shape}"
        )
    true, pred = _dense(Y_true), _dense(Y_pred)
    return (true & pred).sum(axis=0), pred.sum(axis=0), true.sum(axis=0)


def _dense(Y: "Indicator") -> "np.ndarray":
    import numpy as np

    return (Y if isinstance(Y, np.ndarray) else Y.toarray()).astype(bool)
