"""Rescoring: rows that an earlier table of metrics scored get today's metrics, from stored predictions alone."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from textbench.flows.results.index import Index
from textbench.flows.results.runs import Run
from textbench.tasks import InputError, score
from textbench.tasks.storage.store import Store


def rescored(home: Path, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of the index with the metrics of today, and keep them there; nothing is trained or predicted again.

    A row whose predictions are no longer in the store stays as it is.
    """
    today = score.digest()
    return [dict(row) if row.get("scored_by") == today else _rescored(home, dict(row), today) for row in rows]


def _rescored(home: Path, row: dict[str, Any], today: str) -> dict[str, Any]:
    store = Store(home / "store")
    try:
        result = Run(home, row).reference
    except InputError:
        return row
    if not store.has(result) or not (store.folder(result) / "scores.npy").exists():
        return row
    found = {"metrics": score.metrics(store.open(result)), "scored_by": today}
    Index(home).amend(row["key"], found)
    return row | found
