"""Answers: what finished runs said of every test document, read back so that runs are compared on the same ones."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.evaluation.statistics.intervals import documents_half_width
from textbench.evaluation.statistics.sufficient_statistics import (
    ONE_LABEL,
    SEVERAL_LABELS,
    SufficientStatistics,
    indicator_tally,
    label_tally,
    mean_of,
    mean_tally,
)
from textbench.flows.plan.corpora import documents_in
from textbench.flows.results.runs import Run
from textbench.tasks import InputError
from textbench.tasks.storage.store import Store

if TYPE_CHECKING:
    import numpy as np
    import pyarrow

# Metrics that are means over documents, and the column of predictions.parquet that holds them.
MEANS = {"map": "average_precision"}
MEANS_SEVERAL = {
    "precision_at_1": "precision_at_1",
    "ndcg_at_1": "precision_at_1",  # the same thing at rank 1
    "lraps": "label_ranking_average_precision",
}


def predictions(home: Path, row: Mapping[str, Any]) -> "pyarrow.Table":
    """Return the predictions of a finished run, a row a test document (`tasks.predict.reference`).

    row: a row of the index with its `key`. Raises InputError when they are no longer in the store.
    """
    run, store = Run(home, row), Store(home / "store")
    if not store.has(run.reference):
        raise InputError(
            f"the predictions of {row['dataset']} {row['method']} seed {row['seed']} are no longer in the store; "
            f"run it again with: {run.command}"
        )
    return store.open(run.reference).table("predictions")


def corpus_key(home: Path, row: Mapping[str, Any]) -> str:
    """Return what stands for the documents a run was tested on: where it is equal they are the same, in the same order.

    Raises InputError for a run of an earlier version whose result is no longer in the store.
    """
    if corpus := row.get("corpus"):
        return str(corpus["documents_sha256"])
    return documents_in(home, Run(home, row).reference.inputs["corpus"])


def is_several(table: "pyarrow.Table") -> bool:
    """Tell whether the documents have several labels each."""
    return "label_ranking_average_precision" in table.column_names


def is_right(table: "pyarrow.Table") -> "np.ndarray":
    """Return for which documents the answer is right, (n_documents,) bool.

    Of several labels that is whether the highest-scored is one of the document's; a tie at the top counts as wrong
    unless every tied label is.
    """
    import numpy as np

    if is_several(table):
        return np.asarray(numbers(table["precision_at_1"]) == 1)
    return np.asarray(numbers(table["target"]) == numbers(table["predicted"]))


def testable(several: bool) -> list[str]:
    """Return the metrics whose difference can be bootstrapped over documents."""
    return [*SEVERAL_LABELS, *MEANS_SEVERAL] if several else [*ONE_LABEL, *MEANS]


def tally(tables: Sequence["pyarrow.Table"], metric: str) -> SufficientStatistics:
    """Return a metric's tally over runs of several seeds on the same documents, its mean over the runs.

    Raises InputError for a metric that is not kept per document.
    """
    import numpy as np

    several = is_several(tables[0])
    if metric not in testable(several):
        raise InputError(
            f"{metric} is not kept per document and has no paired test; choose from {', '.join(testable(several))}"
        )
    if not all(_is_kept(table, metric) for table in tables):
        raise InputError(
            f"{metric} was not computed per document of all these runs: classifiers, ensembles and files of "
            "predictions have none; choose another metric"
        )
    column = (MEANS_SEVERAL if several else MEANS).get(metric)
    if column or (metric in ("accuracy", "micro_f1") and not several):
        values = [numbers(table[column]) if column else is_right(table) for table in tables]
        mean = np.mean(values, axis=0)
        return mean_tally(mean[~np.isnan(mean)])  # of very many documents not all were asked as queries
    if several:
        return mean_of([indicator_tally(metric, *_indicators(table)) for table in tables])
    return mean_of([label_tally(metric, *labels(table)) for table in tables])


def require_same_number(tallies: Iterable[SufficientStatistics]) -> None:
    """Raise InputError where a metric of runs is not of equally many test documents: an earlier version asked all."""
    numbers_of = sorted({len(tally.columns) for tally in tallies})
    if len(numbers_of) > 1:
        listed = " and ".join(f"{n:,}" for n in numbers_of)
        raise InputError(f"the metric is of {listed} test documents: run the older ones again")


def labels(table: "pyarrow.Table") -> "tuple[np.ndarray, np.ndarray]":
    """Return true and predicted classes, (n_documents,) ints each."""
    return numbers(table["target"]), numbers(table["predicted"])


def numbers(column: "pyarrow.Array | pyarrow.ChunkedArray") -> "np.ndarray":
    """Return numbers of a column, none missing; by `to_numpy` pyarrow would load pandas, for longer than this takes."""
    import numpy as np
    import pyarrow

    whole = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    return np.from_dlpack(whole)


def _indicators(table: "pyarrow.Table") -> "tuple[np.ndarray, np.ndarray]":
    """Return true and predicted labels as dense indicators, as wide as the highest label of both."""
    import numpy as np

    lists = [table[name].combine_chunks() for name in ("target", "predicted")]
    flat = [numbers(column.flatten()) for column in lists]
    width = 1 + max((int(part.max()) for part in flat if len(part)), default=0)
    indicators = []
    for column, part in zip(lists, flat, strict=True):
        dense = np.zeros((len(column), width), dtype=bool)
        dense[np.repeat(np.arange(len(column)), numbers(column.value_lengths())), part] = True
        indicators.append(dense)
    return indicators[0], indicators[1]


def document_intervals(table: "pyarrow.Table", metrics: Iterable[str]) -> dict[str, float]:
    """Return half the 95 % interval over the test documents, in fractions, of each metric that is kept per document."""
    kept = [name for name in metrics if name in testable(is_several(table)) and _is_kept(table, name)]
    halves = {name: documents_half_width(tally([table], name)) for name in kept}
    return {name: half for name, half in halves.items() if half == half}


def _is_kept(table: "pyarrow.Table", metric: str) -> bool:
    column = (MEANS_SEVERAL if is_several(table) else MEANS).get(metric)
    return column is None or column in table.column_names
