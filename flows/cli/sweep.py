"""Running sweeps from a command: one, or the parts of a suite."""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.flows.cli.voice import note

if TYPE_CHECKING:
    from textbench.flows.plan.cell import Cell, Request
    from textbench.flows.plan.suites import Part


def run_cells(
    home: Path,
    request: "Request",
    cells: "list[Cell]",
    engine: str,
    options: Mapping[str, Any],
    as_json: bool,
) -> list[dict[str, Any]]:
    """Run the flow `benchmark` and return a row a cell; without `as_json` print what was found.

    `options` are those of the flow beside the request: timed, fresh, time_limit, memory_limit.
    """
    from textbench.flows.cli.start import run_flow
    from textbench.flows.cli.summary import print_summary
    from textbench.flows.results.index import Index
    from textbench.tasks.storage.store import Store

    store = Store(home / "store")
    is_new = (
        options.get("timed")
        or options.get("fresh")
        or not all(store.has(cell.references["evaluate"]) for cell in cells)
    )
    arguments = asdict(request) | dict(options)
    rows, info = run_flow(
        home,
        "textbench.flows.benchmark:benchmark",
        arguments,
        cells,
        engine=engine,
        as_json=as_json,
        is_new=bool(is_new),
        index=Index(home),
    )
    if not as_json:
        print_summary(home, rows, info.ui_url)
    return rows


def parts_of(suite: str | None) -> "list[Part]":
    """Return the parts of a suite that says more than a sweep whose settings options may replace."""
    from textbench.flows.plan.suites import REPLACEABLE, parts, read_suite

    name = suite or "quick"
    return [] if read_suite(name).keys() <= REPLACEABLE else parts(name)


def run_suite(home: Path, parts: "list[Part]", dry_run: bool, as_json: bool, engine: str = "threads") -> int:
    """Run a suite's parts in order, what is stored is not computed again; return how many cells failed."""
    from textbench.flows.cli.curve import plan_and_check, run_curves
    from textbench.flows.cli.pieces import print_pieces, run_pieces
    from textbench.flows.cli.start import stopped_by_hand
    from textbench.flows.cli.summary import print_plan
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


def require_data(home: Path, cells: "list[Cell]") -> None:
    """Ingest what is not stored yet, so that methods and documents that are missing or bad stop a run before it begins.

    Raises InputError for a method's file that cannot be loaded, for documents that are none, a part without a token,
    folds that are asked for where the data has validation documents of its own, and a metric that tuning cannot compute
    on the user's documents, or a database that machines share and that does not answer; TrackingError where MLflow,
    which something new is to be written to, does not answer.
    """
    from textbench.flows.plan.checks import check_tuning_metric, check_validation
    from textbench.tasks import ingest, method_files
    from textbench.tasks.storage.remote import check_databases
    from textbench.tasks.storage.store import Store
    from textbench.tasks.tokens import TokenRule, check_tokens
    from textbench.tasks.tracking.tracker import Tracker, read_settings

    store = Store(home / "store")
    missing = [cell for cell in cells if not store.has(cell.references["evaluate"])]
    if missing:
        check_databases()
        Tracker(read_settings(home)).require()
    methods = dict.fromkeys(cell.references["tune"].params["method"] for cell in missing)
    for path in [method for method in methods if method.endswith(".py")]:
        method_files.check(path)
    for cell in {cell.references["vectorize"].key: cell for cell in cells}.values():
        corpus, vectors = cell.references["ingest"], cell.references["vectorize"]
        validation = cell.request.validation if cell.request.own else {}
        if store.has(corpus) and store.has(vectors) and not validation:
            continue
        try:
            ingest.ensure(store, corpus)
            found = ingest.read_corpus(store.open(corpus))
        except OSError:
            continue  # not the documents' fault: the cells say so, each for itself
        check_tokens(cell.dataset, found, TokenRule(**vectors.params["rule"]))
        check_tuning_metric(
            validation.get("metric"), cell.dataset, several_labels=found.train_targets.ndim == 2
        )
        check_validation(validation, cell.dataset, found)
