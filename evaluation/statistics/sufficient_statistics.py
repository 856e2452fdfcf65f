"""Tallies: what each test document adds to the sums that a metric is made of.

A metric that is a function of sums over documents can be bootstrapped from them: draw documents, add up,
apply the function. Accuracy, the F1s, precision and recall of `evaluation.metrics.single_label` and
`evaluation.metrics.multilabel` are such functions, and so is every mean over documents. Each `SufficientStatistics`
agrees with the metric of its name.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

ONE_LABEL = ("accuracy", "micro_f1", "macro_f1", "weighted_f1", "macro_precision", "macro_recall")
SEVERAL_LABELS = ("micro_f1", "macro_f1", "weighted_f1")


@dataclass(frozen=True)
class SufficientStatistics:
    """A metric on test documents: `columns` (n_documents, n_columns), and its `statistic` of their sums.

    `statistic` maps sums (n, n_columns) to values (n,). `answers` (n_documents, n) are what a method said of each,
    where columns of two methods do not go by the same classes.
    """

    columns: np.ndarray
    statistic: Callable[[np.ndarray], np.ndarray]
    answers: np.ndarray | None = field(default=None, repr=False, compare=False)

    @property
    def value(self) -> float:
        """The metric on all the documents."""
        return float(self.statistic(self.columns.sum(axis=0, dtype=float)[None])[0])


def mean_tally(values: np.ndarray) -> SufficientStatistics:
    """A mean over documents; values: (n_documents,)."""
    columns = np.column_stack([values, np.ones(len(values))]).astype(float)
    return SufficientStatistics(columns, lambda sums: sums[:, 0] / sums[:, 1])


def label_tally(metric: str, y_true: np.ndarray, y_pred: np.ndarray) -> SufficientStatistics:
    """A metric of `ONE_LABEL`; y_true, y_pred: (n_documents,) ints. ValueError for another metric."""
    if metric not in ONE_LABEL:
        raise ValueError(
            f"{metric!r} is not a sum over documents of one label; choose from {', '.join(ONE_LABEL)}"
        )
    if metric in ("accuracy", "micro_f1"):
        return mean_tally(y_true == y_pred)
    classes = np.union1d(y_true, y_pred)
    found = _rate_tally(metric, y_true[:, None] == classes, y_pred[:, None] == classes)
    return replace(found, answers=y_pred[:, None])


def indicator_tally(metric: str, Y_true: np.ndarray, Y_pred: np.ndarray) -> SufficientStatistics:
    """A metric of `SEVERAL_LABELS`; Y_true, Y_pred: dense (n_documents, n_labels) bool. ValueError for another."""
    if metric not in SEVERAL_LABELS:
        raise ValueError(
            f"{metric!r} is not a sum over documents of several labels; choose from {', '.join(SEVERAL_LABELS)}"
        )
    if metric == "micro_f1":
        columns = np.column_stack(
            [2 * (Y_true & Y_pred).sum(axis=1), Y_true.sum(axis=1) + Y_pred.sum(axis=1)]
        )
        return SufficientStatistics(
            columns.astype(float), lambda sums: sums[:, 0] / np.maximum(sums[:, 1], 1)
        )
    return _rate_tally(metric, Y_true, Y_pred)


def class_tally(rate: str, label: int, y_true: np.ndarray, y_pred: np.ndarray) -> SufficientStatistics:
    """The precision or recall of one class; y_true, y_pred: (n_documents,) ints. ValueError for another rate."""
    if rate not in ("precision", "recall"):
        raise ValueError(f"the rate of a class is precision or recall; received {rate!r}")
    counted = y_pred if rate == "precision" else y_true
    columns = np.column_stack([(y_true == label) & (y_pred == label), counted == label]).astype(float)
    return SufficientStatistics(columns, lambda sums: sums[:, 0] / np.maximum(sums[:, 1], 1))


def mean_of(tallies: Sequence[SufficientStatistics]) -> SufficientStatistics:
    """The mean of metrics on the same documents, such as the runs of several seeds."""
    ends = np.cumsum([tally.columns.shape[1] for tally in tallies])[:-1]

    def statistic(sums: np.ndarray) -> np.ndarray:
        parts = np.split(sums, ends, axis=1)
        return np.mean([tally.statistic(part) for tally, part in zip(tallies, parts, strict=True)], axis=0)

    said = [tally.answers for tally in tallies if tally.answers is not None]
    answers = np.hstack(said) if len(said) == len(tallies) else None
    return SufficientStatistics(np.hstack([tally.columns for tally in tallies]), statistic, answers)


def _rate_tally(metric: str, true: np.ndarray, predicted: np.ndarray) -> SufficientStatistics:
    """A mean over classes, from indicators (n_documents, n_classes); in a sample only what occurs there counts."""
    columns = np.hstack([true & predicted, predicted, true]).astype(np.float32)  # sums of ones stay exact
    average, _, rate = metric.partition("_")

    def statistic(sums: np.ndarray) -> np.ndarray:
        hits, n_predicted, support = np.split(sums, 3, axis=1)
        counted = {"precision": n_predicted, "recall": support, "f1": (n_predicted + support) / 2}[rate]
        values = hits / np.where(counted > 0, counted, 1)
        weights = support if average == "weighted" else (n_predicted + support > 0).astype(float)
        return (values * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)

    return SufficientStatistics(columns, statistic)
