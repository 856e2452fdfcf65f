"""Chapter four, the papers' own figures and tables: what `flows.papers` remakes, as figures and tables of the page."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textbench.flows.papers import Exhibit, exhibits
from textbench.flows.plan.suites import parts, suites
from textbench.flows.plots import style
from textbench.flows.report.charts import Figure
from textbench.flows.report.evidence import Evidence
from textbench.flows.tables.table import LOCAL, Table, datum

FOLDED = 12  # rows from which on a table is folded under its figure


@dataclass(frozen=True)
class Shown:
    """The exhibits of a suite, as figures and tables of the page."""

    suite: str
    title: str
    figures: Sequence[Figure]
    tables: Sequence[Table]


def shown(evidence: Evidence) -> list[Shown]:
    """Return what the suites show that local runs are part of, or whose paper they follow."""
    names, papers, found = _names(evidence), {row["paper"] for row in evidence.rows} - {None}, []
    for suite in suites():
        # Asking a suite for its cells takes seconds.
        is_asked = suite in names or any(part.request.paper in papers for part in parts(suite))
        made = exhibits(evidence.home, suite) if is_asked else []
        if made:
            figures = [figure(suite, one) for one in made if one.draw is not None]
            tables = [table(suite, one) for one in made if one.header]
            found.append(
                Shown(suite, f"Suite {suite}: the paper's figures and tables, remade", figures, tables)
            )
    return found


def _names(evidence: Evidence) -> set[str]:
    """Return the suites and sweeps of the local runs."""
    rows: list[Mapping[str, Any]] = [*evidence.rows, *evidence.budgets]
    asked = {(row.get("request") or {}).get("name", "") for row in rows}
    return asked | {name.rpartition("-")[0] for row in rows for name in row["sweeps"]}


def figure(suite: str, exhibit: Exhibit) -> Figure:
    """Return an exhibit's picture, its colours those of the page."""
    assert exhibit.draw is not None
    name = f"fig-{suite}-{exhibit.name}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picture.svg"
        exhibit.draw(path)
        svg = style.element(path.read_text("utf-8"), name, exhibit.title, exhibit.caption)
    return Figure(name, f"{exhibit.title}. {exhibit.caption}", svg)


def table(suite: str, exhibit: Exhibit) -> Table:
    """Return an exhibit's figures as a table; where there is a picture, the words are under that."""
    headings = [(heading, heading) for heading in exhibit.header]
    rows = [[datum(value) for value in row] for row in exhibit.rows]
    note = "" if exhibit.draw is not None else exhibit.caption
    title = f"{exhibit.title}, in figures" if exhibit.draw is not None else exhibit.title
    is_folded = exhibit.draw is not None and len(rows) >= FOLDED
    return Table(f"{suite}-{exhibit.name}", title, headings, rows, note, LOCAL, is_folded=is_folded)
