"""The metrics where a document has one label, each one function and one line of `METRICS`.

A metric needs `labels`, and is called `f(y_true, y_pred)` with integer class ids of shape (n,); or `neighbours`, and
is called `f(queries)` with the per-query arrays of `evaluation.metrics.query_by_example.search_by_example`: a ranking
of training documents; or `scores`, and is called `f(y_true, scores)` with a decision value for every class, (n,
n_classes): a ranking of the classes. All but coverage error return a fraction 0..1. Several labels a document have
their own metrics, `evaluation.metrics.multilabel`.

The macro averages run over the classes that occur in y_true or in y_pred, scikit-learn's rule: a class that
no test document has and nothing predicts is left out, one that is only predicted counts as 0. A rate whose
denominator is 0 is 0.

Source: Manning, Raghavan, Schuetze, Introduction to Information Retrieval (2008), sections 8.3-8.4 and 13.6.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:  # the command line imports this module and has to stay instant
    import numpy as np

    from textbench.evaluation.metrics.query_scores import QueryScores


@dataclass(frozen=True)
class Metric:
    """One figure of merit: its name, what it says, its function, what that reads and which way is better.

    `ranks` says which ranking it is of: the "labels" of a document by decision value, the "documents" of a label
    likewise, or the "neighbours" of a document, training documents by cosine. None for what judges decisions.
    """

    name: str
    description: str
    function: Callable[..., float]
    needs: Literal["labels", "neighbours", "scores", "decisions"]
    higher_is_better: bool = True
    ranks: Literal["labels", "documents", "neighbours"] | None = None


def accuracy(y_true: "np.ndarray", y_pred: "np.ndarray") -> float:
    """Accuracy: the share of documents given their class; y_true, y_pred (n,) ints."""
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(y_true, y_pred))


def _f1(y_true: "np.ndarray", y_pred: "np.ndarray", average: str) -> float:
    from sklearn.metrics import f1_score

    return float(f1_score(y_true, y_pred, average=average, zero_division=0))


def macro_f1(y_true: "np.ndarray", y_pred: "np.ndarray") -> float:
    """Macro-averaged F1: the plain mean of the classes' F1; y_true, y_pred (n,) ints."""
    return _f1(y_true, y_pred, "macro")


def micro_f1(y_true: "np.ndarray", y_pred: "np.ndarray") -> float:
    """Micro-averaged F1: F1 of the pooled decisions, here equal to accuracy; y_true, y_pred (n,) ints."""
    return _f1(y_true, y_pred, "micro")


def weighted_f1(y_true: "np.ndarray", y_pred: "np.ndarray") -> float:
    """Weighted F1: the classes' F1 averaged by their documents in y_true; y_true, y_pred (n,) ints."""
    return _f1(y_true, y_pred, "weighted")


def macro_precision(y_true: "np.ndarray", y_pred: "np.ndarray") -> float:
    """Macro-averaged precision: the plain mean of the classes' precision; y_true, y_pred (n,) ints."""
    from sklearn.metrics import precision_score

    return float(precision_score(y_true, y_pred, average="macro", zero_division=0))


def macro_recall(y_true: "np.ndarray", y_pred: "np.ndarray") -> float:
    """Macro-averaged recall: the plain mean of the classes' recall; y_true, y_pred (n,) ints."""
    from sklearn.metrics import recall_score

    return float(recall_score(y_true, y_pred, average="macro", zero_division=0))


def f1_of_rates(precision: float, recall: float) -> float:
    """Return F1 of two rates, their harmonic mean, 0 where both are 0. Of macro rates it is never below `macro_f1`.

    Some papers print it as macro F1: TWE's authors put it in the place of that (`evaluation.claims.published`).
    """
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def lraps(y_true: "np.ndarray", scores: "np.ndarray") -> float:
    """Label ranking average precision (LRAPS): the mean of 1 / rank of a document's class by decision value.

    y_true (n,) ints; scores (n, n_classes) floats. A class that shares its value has the worst rank of the tied.
    """
    from textbench.evaluation.metrics.label_ranking import label_ranking_average_precision

    return float(label_ranking_average_precision(_indicator(y_true, scores), scores).mean())


def coverage_error(y_true: "np.ndarray", scores: "np.ndarray") -> float:
    """Coverage error: the mean rank of a document's class by decision value, 1 at best; ties as for `lraps`."""
    from textbench.evaluation.metrics.label_ranking import coverage

    return float(coverage(_indicator(y_true, scores), scores).mean())


def _indicator(y_true: "np.ndarray", scores: "np.ndarray") -> "np.ndarray":
    import numpy as np

    return y_true[:, None] == np.arange(scores.shape[1])


def mean_average_precision(queries: "QueryScores") -> float:
    """Mean average precision (MAP): the mean over queries of average precision down the whole ranking."""
    return float(queries.average_precision.mean())


def precision_at_1(queries: "QueryScores") -> float:
    """Precision at 1: how often the nearest training document has the query's class."""
    return float(queries.precision_at_1.mean())


def precision_at_3(queries: "QueryScores") -> float:
    """Precision at 3: the mean share of the query's class among the 3 nearest training documents."""
    return float(queries.precision_at_3.mean())


def precision_at_5(queries: "QueryScores") -> float:
    """Precision at 5: the mean share of the query's class among the 5 nearest training documents."""
    return float(queries.precision_at_5.mean())


def precision_at_10(queries: "QueryScores") -> float:
    """Precision at 10: the mean share of the query's class among the 10 nearest training documents."""
    return float(queries.precision_at_10.mean())


def ndcg_at_5(queries: "QueryScores") -> float:
    """Normalised discounted cumulative gain at 5 (nDCG@5) with gains 0 and 1: the mean over queries."""
    return float(queries.ndcg_at_5.mean())


_METRICS = (
    Metric("accuracy", "share of documents given their class", accuracy, "labels"),
    Metric("macro_f1", "F1, plain mean over classes", macro_f1, "labels"),
    Metric("micro_f1", "F1 of the pooled decisions", micro_f1, "labels"),
    Metric("weighted_f1", "F1, mean over classes weighted by documents", weighted_f1, "labels"),
    Metric("macro_precision", "precision, plain mean over classes", macro_precision, "labels"),
    Metric("macro_recall", "recall, plain mean over classes", macro_recall, "labels"),
    Metric("lraps", "1 / rank of the class among the classes", lraps, "scores", ranks="labels"),
    Metric(
        "coverage_error", "rank of the class among the classes", coverage_error, "scores", False, "labels"
    ),
    Metric(
        "map",
        "mean average precision, retrieval by example",
        mean_average_precision,
        "neighbours",
        ranks="neighbours",
    ),
    Metric(
        "precision_at_1", "same class among the nearest 1", precision_at_1, "neighbours", ranks="neighbours"
    ),
    Metric(
        "precision_at_3", "same class among the nearest 3", precision_at_3, "neighbours", ranks="neighbours"
    ),
    Metric(
        "precision_at_5", "same class among the nearest 5", precision_at_5, "neighbours", ranks="neighbours"
    ),
    Metric(
        "precision_at_10",
        "same class among the nearest 10",
        precision_at_10,
        "neighbours",
        ranks="neighbours",
    ),
    Metric(
        "ndcg_at_5",
        "discounted gain of the nearest 5, normalised",
        ndcg_at_5,
        "neighbours",
        ranks="neighbours",
    ),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _METRICS}


def score_labels(y_true: "np.ndarray", y_pred: "np.ndarray") -> dict[str, float]:
    """Every metric that needs labels, by name; y_true, y_pred (n,) ints with n >= 1, else ValueError."""
    _check_labels(y_true, y_pred)
    return {name: m.function(y_true, y_pred) for name, m in METRICS.items() if m.needs == "labels"}


def score_classes(y_true: "np.ndarray", scores: "np.ndarray") -> dict[str, float]:
    """Every metric that needs decision values, by name; y_true (n,) ints, scores (n, n_classes) floats."""
    return {name: m.function(y_true, scores) for name, m in METRICS.items() if m.needs == "scores"}


def score_neighbours(queries: "QueryScores") -> dict[str, float]:
    """Every metric that needs neighbours, by name, from the per-query arrays of retrieval by example."""
    return {name: m.function(queries) for name, m in METRICS.items() if m.needs == "neighbours"}


def per_class(
    y_true: "np.ndarray", y_pred: "np.ndarray", target_names: Sequence[str]
) -> list[dict[str, Any]]:
    """Precision, recall and F1 of each class: rows {class, precision, recall, f1, support}, by class id.

    y_true, y_pred: (n,) ints that index target_names. The rows are the classes of the macro averages (those
    in y_true or y_pred), so the mean of their f1 is macro_f1; support counts the documents of y_true.
    ValueError for an id without a name.
    """
    import numpy as np
    from sklearn.metrics import precision_recall_fscore_support

    _check_labels(y_true, y_pred)
    labels = np.union1d(y_true, y_pred)
    if labels[0] < 0 or labels[-1] >= len(target_names):
        raise ValueError(
            f"class ids must lie in 0..{len(target_names) - 1}, one a target name; "
            f"received {labels[0]}..{labels[-1]}"
        )
    columns = precision_recall_fscore_support(y_true, y_pred, labels=labels, zero_division=0)
    return [
        {
            "class": target_names[label],
            "precision": float(precision),
            "recall": float(recall),
            "f1": float(f1),
            "support": int(support),
        }
        for label, precision, recall, f1, support in zip(labels, *columns, strict=True)
    ]


def _check_labels(y_true: "np.ndarray", y_pred: "np.ndarray") -> None:
    if len(y_true) != len(y_pred) or len(y_true) == 0:
        raise ValueError(
            "y_true and y_pred must have one class each for the same documents, at least one; "
            f"received {len(y_true)} and {len(y_pred)}"
        )
