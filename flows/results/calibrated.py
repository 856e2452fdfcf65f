"""Whether a run's probabilities are right: log loss, Brier score and calibration error, from what is stored of it.

Decision values become probabilities (`evaluation.ensembles.Calibration`), fitted to the out-of-fold
scores of training documents that the run kept, and are judged on the test documents. Nothing is trained or predicted
again, and no key changes.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.evaluation.metrics.calibration import PROBABILITIES
from textbench.flows.results.metric_names import heading, places, scale, unit
from textbench.flows.results.runs import Run
from textbench.tasks import InputError, ensemble, out_of_fold
from textbench.tasks.storage.files import Damaged
from textbench.tasks.storage.isolate import CellError
from textbench.tasks.storage.store import Store

if TYPE_CHECKING:
    import numpy as np

    from textbench.tasks.storage.recipe import Reference
    from textbench.tasks.storage.store import Artifact


def with_probabilities(home: Path, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of the index with PROBABILITIES among their metrics, where these can be had."""
    return [{**row, "metrics": row["metrics"] | _figures(home, row)} for row in rows]


def without_probabilities(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows without PROBABILITIES among their metrics, as runs in MLflow have them."""
    return [
        {
            **row,
            "metrics": {name: value for name, value in row["metrics"].items() if name not in PROBABILITIES},
        }
        for row in rows
    ]


def _figures(home: Path, row: Mapping[str, Any]) -> dict[str, float]:
    if not row.get("key") or row["error"]:
        return {}
    try:
        return calibration(Run(home, row)) or {}
    except InputError:  # its data set or method is no longer here
        return {}


def calibration(run: Run) -> dict[str, float] | None:
    """Return log loss, Brier score and calibration error (a fraction) of a run on its test documents.

    None where out-of-fold scores were not kept (`--no-scores`, `--timed`, labels of a budget, a file's predictions),
    are gone, or are of no document.
    """
    return of_result(Store(run.home / "store"), run.reference)


def of_result(store: Store, result: "Reference") -> dict[str, float] | None:
    """Return `calibration` of a result artifact."""
    try:
        return _of_result(store, result)
    except (OSError, Damaged, CellError):  # what is gone and cannot be made again is not judged
        return None


def _of_result(store: Store, result: "Reference") -> dict[str, float] | None:
    from textbench.evaluation.ensembles import Calibration
    from textbench.tasks.corpus import read_targets

    scores = _out_of_fold(store, result)
    if scores is None or not len(documents := scores.array("documents")):
        return None
    corpus, known = store.open(result.inputs["corpus"]), scores.array("scores")
    several = (targets := read_targets(corpus, "train")[documents]).ndim == 2
    line = Calibration.fit(known, ensemble.indicator_of(targets, known.shape[1]), several_labels=several)
    shares = line.probabilities(store.open(result).array("scores"))
    indicator = ensemble.indicator_of(read_targets(corpus, "test"), known.shape[1])
    return judged(indicator, shares, several_labels=several)


def judged(indicator: "np.ndarray", shares: "np.ndarray", *, several_labels: bool) -> dict[str, float]:
    """Return what probabilities, (n_documents, n_labels), are worth for a bool indicator of that shape, by name."""
    return {
        name: metric.function(indicator, shares, several_labels=several_labels)
        for name, metric in PROBABILITIES.items()
    }


def shown(found: Mapping[str, float]) -> str:
    """Return the figures as a line."""
    return ", ".join(
        f"{heading(name)} {scale(name) * value:.{places(name)}f} ({unit(name)})"
        for name, value in found.items()
    )


def _out_of_fold(store: Store, result: "Reference") -> "Artifact | None":
    """Return what holds a result's out-of-fold scores; of an ensemble that is its choice."""
    choice = result.inputs.get("choice")
    if choice is None or "validation" not in choice.params:
        return None
    is_ensemble = "member_01" in result.inputs
    found = choice if is_ensemble else out_of_fold.reference(result)
    return store.open(found) if store.has(found) else None
