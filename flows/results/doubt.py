"""What makes figures doubtful: that test documents are a sample, and flaws of these.

A run keeps half of each metric's 95 % interval over test documents in its row (`documents_95`), worked out when it
ended, so that a leaderboard of thousands reads no predictions. Those of older runs are worked out from their
predictions, where a table lacks them for at most MOST_READ runs.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from textbench.flows.results.index import Index
from textbench.flows.results.predictions import document_intervals
from textbench.flows.results.runs import is_whole
from textbench.flows.results.summary import latest, summarise
from textbench.tasks.storage.files import META, Damaged, read_meta
from textbench.tasks.storage.isolate import CellError
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Store

Row = Mapping[str, Any]
MOST_READ = 200  # runs whose predictions are read back for a table; one takes milliseconds
MOST_TRIED = 3  # runs of a data set whose audit is looked for
FEW = 100  # test documents, below which that is said


def with_doubt(home: Path, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return rows of the leaderboard with `documents_95`, and `data_note`, a line on what is wrong with their data.

    Rows without the index's `key` are of runs that only MLflow knows: nothing is known of their test documents.
    """
    lacking = [row for row in rows if not row["error"] and not row.get("documents_95") and row.get("key")]
    found = {row["key"]: _documents_95(home, row) for row in lacking} if len(lacking) <= MOST_READ else {}
    notes = _notes(home, rows)
    doubted = []
    for row in rows:
        known = found.get(row.get("key", ""), row.get("documents_95") or {})
        doubted.append({**row, "documents_95": known, "data_note": notes.get(row["dataset"], "")})
    return doubted


def intervals(home: Path, row: Row) -> dict[str, Any]:
    """Return by metric half the 95 % interval of a run over its test `documents`, and of the mean over the `seeds`.

    The latter is of the `n_seeds` newest runs that were asked for alike; empty for one, and for a part of the labels.
    """
    found: dict[str, Any] = {
        "documents": with_doubt(home, [row])[0]["documents_95"],
        "seeds": {},
        "n_seeds": 1,
    }
    names = ("dataset", "method", "protocol", "made_by")
    alike = [r for r in Index(home).rows() if all(r.get(n) == row.get(n) for n in names) and is_whole(r)]
    for summary in summarise(latest(alike)) if is_whole(row) else ():
        if summary.holds(row):
            seeds = {name: half for name, half in summary.half_width_seeds.items() if half == half}
            found |= {"seeds": seeds, "n_seeds": summary.n_seeds}
    return found


def _notes(home: Path, rows: Sequence[Row]) -> dict[str, str]:
    """Return by data set what is wrong with it, by the first of its runs whose audit is stored."""
    tried: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("key") and not row["error"]:
            tried.setdefault(row["dataset"], []).append(row)
    audits = _audits(home) if tried else {}
    found = {name: (_note(home, row, audits) for row in some[:MOST_TRIED]) for name, some in tried.items()}
    return {name: next((note for note in notes if note is not None), "") for name, notes in found.items()}


def _audits(home: Path) -> dict[str, Reference]:
    """Return the stored audits by the key of the documents, whichever version of the code made them."""
    recipes = map(_recipe, (home / "store" / "audit").glob(f"*/{META}"))
    return {recipe.inputs["corpus"].key: recipe for recipe in recipes if recipe is not None}


def documents_95(store: Store, result: Reference, metrics: Iterable[str]) -> dict[str, float]:
    """Return half a result's 95 % intervals over test documents, by metric; none where its predictions are gone."""
    try:
        return document_intervals(store.open(result).table("predictions"), metrics)
    except (OSError, CellError):  # what cannot be made again is as good as gone
        return {}


def _documents_95(home: Path, row: Row) -> dict[str, float]:
    store, result = Store(home / "store"), _result(home, row)
    return documents_95(store, result, row["metrics"]) if result is not None and store.has(result) else {}


def _result(home: Path, row: Row) -> Reference | None:
    """Return the recipe of a run's result; None where that is no longer in the store."""
    return _recipe(home / "store" / "evaluate" / row["key"] / META)


def _recipe(meta: Path) -> Reference | None:
    try:
        return Reference.from_json(read_meta(meta)["recipe"])
    except (OSError, Damaged):
        return None


def _note(home: Path, row: Row, audits: Mapping[str, Reference]) -> str | None:
    """Return what the audit of a run's documents found; None where that is not stored."""
    store, result = Store(home / "store"), _result(home, row)
    audit = audits.get(result.inputs["corpus"].key) if result is not None else None
    if audit is None or not store.has(audit):
        return None
    try:
        return data_note(store.open(audit).json("audit"))
    except (OSError, CellError):
        return None


def data_note(audit: Mapping[str, Any]) -> str:
    """Return in a line what makes a test part flatter methods or tell little; "" for one that is large and clean.

    audit: the findings of `tasks.audit.audit`.
    """
    n_test, twice = audit["documents"]["test"], audit["duplicates"]
    parts = [f"only {n_test} test documents"] * (n_test < FEW)
    if twice["across"]:
        parts.append(f"{twice['across']:,} of {n_test:,} test documents are also training documents")
    repeats = [
        f"{twice[part]:,} {word}" for part, word in (("test", "test"), ("train", "training")) if twice[part]
    ]
    if repeats:
        parts.append(f"{' and '.join(repeats)} documents repeat an earlier one of their part")
    return "; ".join(parts)
