"""What `textbench run` says for people: before a sweep what it will take, after it what was found and where to look."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.flows.cli.output import print_json
from textbench.flows.cli.voice import VOICE
from textbench.flows.tables.table import Datum, of_texts
from textbench.flows.tables.terminal import print_table
from textbench.tasks.words import counted

if TYPE_CHECKING:
    from rich.console import Console

    from textbench.flows.plan.base_cell import BaseCell
    from textbench.tasks.storage.store import Store

WIDTH = 80


def print_plan(home: Path, cells: "Sequence[BaseCell]", as_json: bool) -> None:
    """Print a line a cell with the seconds it is expected to take, from what its like took; or if a piece is stored."""
    from rich.console import Console

    from textbench.flows.plan.cell import estimate
    from textbench.flows.plan.derived import DerivedArtifact
    from textbench.flows.results.index import Index
    from textbench.tasks.storage.store import Store

    store = Store(home / "store")
    if pieces := [cell for cell in cells if isinstance(cell, DerivedArtifact)]:
        for piece in pieces:
            is_stored = store.has(piece.reference)
            names = ("dataset", "method", "protocol", "seed", "stage")
            if as_json:
                print_json({name: getattr(piece, name) for name in names} | {"stored": is_stored})
            else:
                print(f"{piece.label}: {'stored' if is_stored else 'to be made'}")
        return
    embedded = _embedded(store, cells)
    seconds = estimate(cells, store, Index(home).rows())
    if as_json:
        for cell, value in zip(cells, seconds, strict=True):
            names = ("dataset", "method", "protocol", "seed", "trials")
            expected = {
                "estimated_seconds": value,
                "embedding_seconds": embedded.get(cell.key, {}).get("seconds"),
            }
            print_json({name: getattr(cell, name) for name in names} | expected)
        return
    rows: list[list[str | Datum]] = []
    for cell, value in zip(cells, seconds, strict=True):
        text = "unknown" if value is None else "stored" if value == 0 else f"{value:.0f} s"
        if value is None and "seconds" in (found := embedded.get(cell.key, {})):
            text = f"{found['seconds']:.0f} s to embed"
        parts = [cell.dataset, cell.method]
        rows.append([Datum(" ".join(parts), parts=parts), str(cell.seed), text])
    console = Console()
    print_table(
        console, of_texts(counted(len(cells), "cell"), ("data set, method", "seed", "estimate"), rows)
    )
    known = sum(value for value in seconds if value)
    unknown = sum(value is None for value in seconds)
    said = [f"About {known:.0f} s of computing"] if known or not unknown else []
    said += [f"{counted(unknown, 'cell')} never timed here"] if unknown else []
    console.print(f"{', and '.join(said)}.")
    for cell in cells:
        if cell.key in embedded:
            text = f"{cell.dataset} {cell.method}: {_embedding(embedded[cell.key])}."
            console.print(text, markup=False, highlight=False)


def _embedded(store: "Store", cells: "Sequence[BaseCell]") -> dict[str, dict[str, Any]]:
    """Return what embedding texts will take (`text_vectors.predicted`), by the key of the first cell that needs it.

    Documents that were never read are read now, for their pieces are counted; where they are missing nothing is said.
    """
    from textbench.flows.plan.cell import Cell, text_vectors_of
    from textbench.tasks import InputError, ingest
    from textbench.tasks.text_vectors import predicted

    found: dict[str, dict[str, Any]] = {}
    asked: set[str] = set()
    for cell in cells:
        vectors = text_vectors_of(cell) if isinstance(cell, Cell) else None
        if vectors is None or vectors.key in asked:
            continue
        asked.add(vectors.key)
        with suppress(InputError, OSError):
            ingest.ensure(store, vectors.inputs["corpus"])
            if (said := predicted(store, vectors)) is not None:
                found[cell.key] = said
    return found


def _embedding(found: Mapping[str, Any]) -> str:
    """Say what embedding texts will take, and what of them the model does not read."""
    if "to" in found:
        where = "which is this machine" if found["is_here"] else "away from this machine"
        size = f"{found['n_documents']:,} texts, about {found['n_tokens']:,} tokens,"
        return f"{size} are to be sent to {found['to']}, {where}"
    cut, lost = (
        found["n_documents_cut"] / found["n_documents"],
        found["n_tokens_cut"] / max(1, found["n_tokens"]),
    )
    return (
        f"about {found['seconds']:.0f} CPU seconds to embed {found['n_documents']:,} texts of {found['n_tokens']:,} "
        f"pieces, on one core; {100 * cut:.0f} % of the texts are cut, {100 * lost:.0f} % of the pieces not read"
    )


def print_board(home: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Print the leaderboard of these rows and of all that ran here on their documents, and its verdict."""
    from textbench.flows.plan.corpora import told_apart
    from textbench.flows.results.index import Index
    from textbench.flows.results.summary import latest

    every = Index(home).rows()
    names = {row["dataset"] for row in told_apart(home, rows, among=every)}
    others = [row for row in every if row["dataset"] in names and not row["request"]["labels"]]
    failed = [row for row in rows if row["error"]]
    _print_table(home, [*map(dict, latest(row for row in others if row["protocol"] == "honest")), *failed])


def print_summary(home: Path, rows: Sequence[dict[str, Any]], page: str) -> None:
    """Print the leaderboard and its verdict; `page` is that of the flow."""
    from textbench.flows.results.runs import LAST, short_id
    from textbench.flows.run import mlflow_views
    from textbench.tasks.tracking.tracker import read_settings

    console = _print_table(home, rows)
    if VOICE.get() == "quiet":
        return
    settings = read_settings(home)
    places, done = {}, [row for row in rows if not row["error"]]
    # What was there before this command may not be the last that was made.
    is_cached = done and all(row["cached"] for row in done)
    if settings.is_on:
        up = mlflow_views.address_of(home, settings.tracking_uri)
        places["compare runs in MLflow"] = up or "textbench up, which says where its page is"
    places |= {
        "the flow in Prefect": page,
        "one run in detail": f"textbench show {short_id(done[0]) if is_cached else LAST}",
        "every run so far": "textbench leaderboard",
        "other data and methods": "textbench list datasets, textbench list methods",
    }
    console.print("\nWhere to look next", style="bold")
    for what, where in places.items():
        line = f"  {what:<24} {where}"
        folded = line if len(line) <= WIDTH else f"  {what}\n    {where}"  # an address stays in one piece
        console.print(folded, soft_wrap=True, markup=False)


def _print_table(home: Path, rows: Sequence[dict[str, Any]]) -> "Console":
    """Print the leaderboard of these rows and its verdict; return where it was printed."""
    from rich.console import Console

    from textbench.flows.explain.frames import Results

    console = Console()
    Results(home, rows).print(console)
    return console
