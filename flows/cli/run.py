"""`textbench run`: the flow `benchmark`, or those of a suite's parts."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textbench.flows.cli.curve import print_curves
from textbench.flows.cli.options import (
    OUTPUT,
    Address,
    AllowUpload,
    CellsAsJson,
    DataDir,
    Engine,
    Jobs,
    options_of,
    own_options,
    read_engine,
    refuse_beside,
    takes,
)
from textbench.flows.cli.runner import cells_of, run_flow, stopped_by_hand, use_data_dir
from textbench.flows.cli.summary import print_plan, print_summary
from textbench.flows.cli.voice import note
from textbench.flows.plan.request import (
    COMPARE,
    BenchmarkRequest,
    DerivedRequest,
    LabelBudgetRequest,
    Request,
    first_seeds,
)
from textbench.tasks import InputError

if TYPE_CHECKING:
    from textbench.flows.plan.suites import Part

# What goes beside a suite of parts and holds for each of them; a part says for itself what any other option would.
BESIDE_PARTS = ("part", "data_dir", "engine", "address", "jobs", "allow_upload", "dry_run", "json")
SUITES = "the suite's"
KINDS = {BenchmarkRequest: "sweep", LabelBudgetRequest: "curves", DerivedRequest: "pieces"}


@takes(
    asked=options_of(
        BenchmarkRequest, datasets=SUITES, methods=SUITES, seeds=f"{SUITES}; 3 without one", trials=SUITES
    ),
    own=own_options,
)
def run(
    context: typer.Context,
    asked: dict[str, Any],
    own: dict[str, Any] | None,
    suite: Annotated[
        str | None,
        typer.Argument(help="A suite of `textbench list suites`.", show_default="quick"),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(
            help="Of a suite of parts only this one, by its number or name in `textbench list suites`.",
            show_default="all",
            rich_help_panel=COMPARE,
        ),
    ] = None,
    vectors: Annotated[
        list[Path] | None,
        typer.Option(
            help="A file of vectors made elsewhere, in a method's place: .npy, .npz or Parquet; repeat for more. See "
            "`textbench texts`.",
            show_default=False,
            rich_help_panel=COMPARE,
        ),
    ] = None,
    data_dir: DataDir = None,
    engine: Engine = "threads",
    address: Address = None,
    jobs: Jobs = None,
    allow_upload: AllowUpload = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="List the cells and what they are expected to take; compute only samples of very many documents.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    json: CellsAsJson = False,
) -> None:
    """Compare methods on data sets and print a leaderboard.

    Finished work is kept: run the same command again after a break and it goes on where it stopped.

    Example: textbench run -d r8 -d r52 -m tfidf -m lsi --seeds 5
    """
    from textbench.flows.plan.cell import plan
    from textbench.flows.plan.suites import REPLACEABLE, number_of, parts, read_suite
    from textbench.flows.run.preflight import require_data
    from textbench.flows.run.room import require_room
    from textbench.flows.run.workspace import home_folder
    from textbench.tasks.catalogue import VECTORS, spelled
    from textbench.tasks.storage.store import Store
    from textbench.tasks.tracking.tracker import read_settings

    if vectors:
        given = [spelled(VECTORS, {"path": str(path)}) for path in vectors]
        asked = asked | {"methods": [*asked.get("methods", ()), *given]}
    name = suite or "quick"
    settings = read_suite(name)
    if not settings.keys() <= REPLACEABLE:
        refuse_beside(f"suite {suite}", context, BESIDE_PARTS)
        where = read_engine(engine, address)
        use_data_dir(data_dir)
        whole = parts(name)
        only = None if part is None else number_of(whole, part)
        if run_suite(home_folder(), whole, dry_run, json, where, only):
            raise typer.Exit(1)
        return
    if part is not None:
        raise InputError(f"{suite or 'what is compared'} has no parts; leave out --part")
    if own or "datasets" in asked or "methods" in asked:  # they stand in place of the suite's
        name = "custom"
    settings = {key: value for key, value in settings.items() if key != "description"}
    settings["seeds"] = first_seeds(settings.get("seeds", 1))
    settings |= {"name": name, "own": own} | ({"datasets": []} if own else {})
    request = BenchmarkRequest(**settings | asked)
    where = read_engine(engine, address, timed=request.timed)
    use_data_dir(data_dir)
    home = home_folder()
    read_settings(home)
    cells = plan(request)
    if dry_run:
        require_room(Store(home / "store"), cells, request.memory_limit, request.time_limit, note)
        print_plan(home, cells, json)
        return
    require_data(home, cells, say=note, memory_limit=request.memory_limit, time_limit=request.time_limit)
    if run_request(home, request, where, json):
        raise typer.Exit(1)


def run_request(home: Path, request: Request, engine: str, as_json: bool) -> int:
    """Run what is asked for, print what was found unless it is printed as JSON; return how many cells failed."""
    with stopped_by_hand():
        rows, info = run_flow(home, request, engine=engine, as_json=as_json)
        if isinstance(request, LabelBudgetRequest):
            print_curves(home, rows, as_json=as_json)
        elif isinstance(request, BenchmarkRequest) and not as_json:
            print_summary(home, rows, info.ui_url)
    return sum(row["error"] is not None for row in rows)


def run_suite(
    home: Path,
    parts: "list[Part]",
    dry_run: bool,
    as_json: bool,
    engine: str = "threads",
    only: int | None = None,
) -> int:
    """Run a suite's parts in order, what is stored is not computed again; return how many cells failed.

    `only`: the number of the one part to run, from 1.
    """
    from textbench.flows.papers import show
    from textbench.flows.plan.cell import plan
    from textbench.flows.run.preflight import checked_curves, require_data

    n_failed = 0
    for number, part in enumerate(parts, start=1):
        if only not in (None, number):
            continue
        # What one part learns the next ones read, and the exhibits.
        request: Any = replace(part.request, keep_features=True)  # type: ignore[call-arg]
        where, kind = engine, KINDS[type(request)]
        if part.is_timed:
            where = "threads"
            kind = "timed" if engine == where else "timed on this machine, without the engine"
        note(f"part {number} of {len(parts)}: {kind}, {', '.join(request.methods[:5])}")
        if isinstance(request, LabelBudgetRequest):
            request = checked_curves(home, request, say=note)
        elif not dry_run:
            require_data(home, plan(request), say=note)
        if dry_run:
            print_plan(home, cells_of(request), as_json)
        else:
            n_failed += run_request(home, request, where, as_json)
    for line in [] if dry_run else show(home, parts[0].request.name):
        print(line, file=sys.stderr if as_json else sys.stdout)
    return n_failed
