"""What a paper shows, remade: the figures and tables of the suites that follow one, one module a suite.

A module here is called as its suite and defines `exhibits(home)`, the suite's exhibits in the order of the paper, read
from the results folder. An exhibit none of whose cells is there is left out; one with some of them says so.
"""

import hashlib
import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from textbench.flows.plan.cell import Cell, plan
from textbench.flows.plan.request import Request
from textbench.flows.plan.suites import Part, parts
from textbench.flows.results.index import Index
from textbench.flows.tables.formats import to_csv
from textbench.flows.tables.table import Datum, Table
from textbench.tasks.storage.files import read_json, whole, write_json
from textbench.tasks.tracking.tracker import (
    KIND_TAG,
    REPORTS,
    Tracker,
    TrackingError,
    git_commit,
    read_settings,
)

RECORD = "mlflow.json"  # which pictures and tables of a suite MLflow has


@dataclass(frozen=True)
class Exhibit:
    """A figure or table of a paper, remade: `draw` writes it as SVG, header and rows are its figures as a table.

    `caption` says how the numbers were made, the published figures beside the measured ones.
    """

    name: str
    title: str
    caption: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    draw: Callable[[Path], None] | None = None


def exhibits(home: Path, suite: str) -> list[Exhibit]:
    """Return what the suite shows with the cells of the results folder; nothing for a suite without such a module."""
    name = suite.replace("-", "_")
    if not (Path(__file__).parent / name / "exhibits.py").exists():
        return []
    return list(importlib.import_module(f"{__name__}.{name}.exhibits").exhibits(home))


@dataclass(frozen=True)
class Done:
    """A part of a suite: its cells, and of those that are finished their rows in the index, in the same order.

    The row of `n_earlier` of them is that of the same request under earlier code.
    """

    part: Part
    cells: Sequence[Cell]
    found: Sequence[tuple[Cell, dict[str, Any]]]
    n_earlier: int = 0

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The finished rows, as `flows.results.learning_curves` reads them."""
        return [row | {"labels": dict(cell.request.labels)} for cell, row in self.found]

    @property
    def remarks(self) -> str:
        """Say in sentences what a caption has to: that cells are missing, or are those of earlier code."""
        n_found, n_cells = len(self.found), len(self.cells)
        missing = "" if n_found == n_cells else f" {n_found} of {n_cells} cells are finished so far."
        return missing + (f" Cells that earlier code ran: {self.n_earlier}." if self.n_earlier else "")


def done(home: Path, suite: str) -> list[Done]:
    """Return the parts of a suite with what of them is finished; keys are worked out and nothing is computed."""

    index = Index(home)
    rows = sorted(index.rows(), key=lambda row: row["created"])
    earlier = {_asked(Request(**row["request"])): row for row in rows}  # of equal requests the newest
    found = []
    for part in parts(suite):
        cells = plan(part.request)
        now = {cell.key: row for cell in cells if (row := index.get(cell)) is not None}
        each = [(cell, now.get(cell.key) or earlier.get(_asked(cell.request))) for cell in cells]
        pairs = [(cell, row) for cell, row in each if row is not None]
        found.append(Done(part, cells, pairs, len(pairs) - len(now)))
    return found


def _asked(request: Request) -> str:
    """Return what was asked for, whoever asked."""
    return json.dumps(asdict(replace(request, name="")), sort_keys=True)


def show(home: Path, suite: str) -> list[str]:
    """Write the suite's exhibits to `<home>/suites/<suite>`, log them to MLflow once, and return lines on it.

    An exhibit is `<name>.svg` and `<name>.csv`, its caption is in `captions.md`. Files of exhibits that are no longer
    there are removed.
    """
    found = exhibits(home, suite)
    if not found:
        return []
    folder = home / "suites" / suite
    folder.mkdir(parents=True, exist_ok=True)
    written = {path: exhibit.title for exhibit in found for path in _write(folder, exhibit)}
    for path in {*folder.glob("*.svg"), *folder.glob("*.csv")} - written.keys():
        path.unlink()
    captions = folder / "captions.md"
    captions.write_text("\n".join(f"**{e.name}: {e.title}**\n\n{e.caption}\n" for e in found), "utf-8")
    lines = ["What the paper shows, remade:", *(f"  {path}  {title}" for path, title in written.items())]
    return [*lines, _log(home, suite, [*written, captions])]


def _write(folder: Path, exhibit: Exhibit) -> list[Path]:
    """Write an exhibit's files, each whole or not at all, and return them."""
    written = []
    if exhibit.draw is not None:
        written.append(folder / f"{exhibit.name}.svg")
        with whole(written[-1], ending=".svg") as part:
            exhibit.draw(part)
    if exhibit.header:
        written.append(folder / f"{exhibit.name}.csv")
        rows = [[Datum("", value) for value in row] for row in exhibit.rows]
        table = Table(exhibit.name, exhibit.title, [(name, name) for name in exhibit.header], rows)
        with whole(written[-1]) as part:
            part.write_text(to_csv(table), "utf-8", newline="")
    return written


def _log(home: Path, suite: str, paths: Sequence[Path]) -> str:
    """Log the files as artifacts of an MLflow run, unless it has these very files; return a line on that."""
    tracker = Tracker(read_settings(home))
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()
    about = {"sha256": digest, "tracking_uri": tracker.settings.tracking_uri}
    file = home / "suites" / suite / RECORD
    known = read_json(file)
    if known.items() >= about.items() and tracker.exists():
        return f"MLflow has them as run {known['run']}."
    tags = {KIND_TAG: "suite", "git.commit": git_commit()}
    try:
        client = tracker.client
        experiment = tracker.experiment(REPORTS)
        run_id = client.create_run(experiment, run_name=f"suite {suite}", tags=tags).info.run_id
        for path in paths:
            client.log_artifact(run_id, str(path))
        client.set_terminated(run_id, "FINISHED")
    except TrackingError as error:
        return f"Not logged to MLflow: {error}"
    write_json(file, about | {"run": run_id})
    return f"Logged to MLflow as run {run_id}."
