"""Running the parts of a suite from a command, in order."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from textbench.flows.cli.curve import plan_and_check, run_curves
from textbench.flows.cli.pieces import print_pieces, run_pieces
from textbench.flows.cli.start import stopped_by_hand
from textbench.flows.cli.summary import print_plan
from textbench.flows.cli.sweep import require_data, run_cells
from textbench.flows.cli.voice import note

if TYPE_CHECKING:
    from textbench.flows.plan.suites import Part


def parts_of(suite: str | None) -> "list[Part]":
    """Return the parts of a suite that says more than a sweep whose settings options may replace."""
    from textbench.flows.plan.suites import REPLACEABLE, parts, read_suite

    name = suite or "quick"
    return [] if read_suite(name).keys() <= REPLACEABLE else parts(name)


def run_suite(home: Path, parts: "list[Part]", dry_run: bool, as_json: bool, engine: str = "threads") -> int:
    """Run a suite's parts in order, what is stored is not computed again; return how many cells failed."""
    from textbench.flows.papers import show
    from textbench.flows.plan.cell import plan

    n_failed = 0
    for number, part in enumerate(parts, start=1):
        kind = "pieces" if part.pieces else "curves" if part.budgets else "timed" if part.timed else "sweep"
        if part.timed and engine != "threads":
            kind = "timed on this machine, without the engine"
        note(f"part {number} of {len(parts)}: {kind}, {', '.join(part.request.methods[:5])}")
        if part.budgets:
            cells = plan_and_check(home, part)
        else:
            cells = plan(part.request)
            if not dry_run:
                require_data(home, cells)
        if dry_run and part.pieces:
            print_pieces(home, part, as_json)
            continue
        if dry_run:
            print_plan(home, cells, as_json)
            continue
        with stopped_by_hand():
            if part.pieces:
                rows = run_pieces(home, part, as_json, engine)
            elif part.budgets:
                rows = run_curves(home, part, cells, as_json, engine)
            else:
                where = "threads" if part.timed else engine
                rows = run_cells(home, part.request, cells, where, {"timed": part.timed}, as_json)
        n_failed += sum(row["error"] is not None for row in rows)
    for line in [] if dry_run else show(home, parts[0].request.name):
        print(line, file=sys.stderr if as_json else sys.stdout)
    return n_failed
