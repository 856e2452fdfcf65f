"""Forgetting runs: which are meant, and taking them from the index, from MLflow and from the spool.

Artifacts stay in the store (`textbench store prune` deletes them), so the same command records a run again at once.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textbench.flows.plan.corpora import choose_datasets, choose_methods, keep_numbers
from textbench.flows.results.index import Index
from textbench.flows.results.runs import find_run
from textbench.flows.run import outbox
from textbench.tasks import InputError
from textbench.tasks.storage.locks import locked
from textbench.tasks.tracking.tracker import Tracker, read_settings


def choose(
    home: Path, names: Sequence[str], datasets: Sequence[str], methods: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the rows of the index that are meant, by names of runs or by data sets and methods.

    Raises InputError for both, for neither, for unknown names, and where there is no such run.
    """
    if names and (datasets or methods):
        raise InputError("name either runs, or data sets and methods (-d and -m), not both")
    if names:
        found = {row["key"]: row for row in (find_run(home, name) for name in names)}
        return list(found.values())
    if not datasets and not methods:
        raise InputError("say what to forget: runs by id, key or `last`, data sets with -d, methods with -m")
    every = Index(home).rows()
    datasets, methods = choose_datasets(every, datasets), choose_methods(every, methods)
    rows = [
        row
        for row in every
        if (not datasets or row["dataset"] in datasets) and (not methods or row["method"] in methods)
    ]
    if not rows:
        meant = [f"of {', '.join(methods)}"] if methods else []
        meant += [f"on {', '.join(datasets)}"] if datasets else []
        raise InputError(f"there are no finished runs {' '.join(meant)}")
    return rows


def tracker_of(home: Path) -> Tracker | None:
    """Return what MLflow's runs are marked deleted with, None where runs are not tracked or its database is gone."""
    tracker = Tracker(read_settings(home))
    return tracker if tracker.exists() else None


def is_in_mlflow(row: dict[str, Any], tracker: Tracker | None) -> bool:
    """Tell whether a run has been written to the MLflow that is used now."""
    return (
        tracker is not None and bool(row["run_id"]) and row["tracking_uri"] == tracker.settings.tracking_uri
    )


def waiting(home: Path, row: dict[str, Any]) -> list[str]:
    """Return the entries of the spool that are of a run."""
    return [name for name in outbox.waiting(home) if name.startswith(f"{row['key']}-")]


def forget(home: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Take runs from MLflow, where they are marked deleted, from the spool and from the index, in this order.

    So a run that could not be taken from MLflow is still in the index. Raises TrackingError when MLflow cannot be used,
    before anything is taken.
    """
    tracker = tracker_of(home)
    if tracker is not None and any(is_in_mlflow(row, tracker) for row in rows):
        tracker.prepare()
    index = Index(home)
    keep_numbers(home, index.rows())
    for row in rows:
        with locked(index.folder / f".{row['key']}.lock"):
            if tracker is not None and is_in_mlflow(row, tracker):
                tracker.forget(row["key"])
            for name in waiting(home, row):
                outbox.forget(home, name)
            (index.folder / f"{row['key']}.json").unlink(missing_ok=True)
