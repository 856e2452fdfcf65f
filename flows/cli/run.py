"""`textbench run`: the flow `benchmark`."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tasks import InputError

if TYPE_CHECKING:
    from flows.cells import Cell, Request
    from flows.suites import Part

PROTOCOLS = ("honest", "transductive", "faithful")
ENGINES = ("threads", "dask")
# Without the workflow, MLflow's page opens on traces of language models.
MLFLOW_PAGE = "http://127.0.0.1:5000/#/experiments?workflowType=machine_learning"
MAX_SEEDS = 1000


def run(
    suite: Annotated[
        str | None,
        typer.Argument(help="A suite of `textbench list suites`.", show_default="quick"),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option("--dataset", "-d", help="Data set, instead of the suite's; repeat for more."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method", "-m", help="Method (a name, or a Python file), instead of the suite's; repeat."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Run this one seed.", show_default=False)] = None,
    seeds: Annotated[int | None, typer.Option(help="Run seeds 0 .. N-1.", show_default=False)] = None,
    trials: Annotated[
        int | None,
        typer.Option(help="Settings tried for each method; 0 runs its defaults.", show_default=False),
    ] = None,
    search_seconds: Annotated[
        float | None,
        typer.Option(help="Try settings until they have cost this many seconds.", show_default=False),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(help="Folds of the cross-validation.", show_default="3")
    ] = None,
    held_out: Annotated[
        float | None,
        typer.Option(
            help="Tune on this share of the training documents, instead of folds.", show_default=False
        ),
    ] = None,
    tune_metric: Annotated[
        str | None,
        typer.Option(help="What tuning goes by.", show_default="accuracy; several labels: micro_f1_zero"),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            help="honest learns from training texts alone; transductive also reads unlabelled test texts; "
            "faithful does what a paper did."
        ),
    ] = "honest",
    paper: Annotated[
        str | None,
        typer.Option(help="With faithful: whose protocol, such as scdv-2017.", show_default="the method's"),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder of data archives.", show_default="$TEXTBENCH_DATA_DIR"),
    ] = None,
    engine: Annotated[str, typer.Option(help="threads, or dask for worker processes.")] = "threads",
    timed: Annotated[
        bool,
        typer.Option(
            "--timed", help="One cell at a time with all cores, nothing cached: seconds to publish."
        ),
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute everything again.")] = False,
    probe: Annotated[
        str | None,
        typer.Option(help="linear-svm, logistic-regression or elastic-net.", show_default="the protocol's"),
    ] = None,
    rule: Annotated[
        str | None, typer.Option(help="Token rule, such as letters or words.", show_default="the data set's")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Your own documents: CSV, TSV, JSONL, Parquet, or a folder of one folder a class.",
            show_default=False,
        ),
    ] = None,
    text_column: Annotated[str, typer.Option(help="With --data: the column of texts.")] = "text",
    label_column: Annotated[str, typer.Option(help="With --data: the column of labels.")] = "label",
    label_separator: Annotated[
        str | None, typer.Option(help="With --data: what parts several labels.", show_default=False)
    ] = None,
    split_column: Annotated[
        str | None, typer.Option(help="With --data: the column that says train or test.", show_default=False)
    ] = None,
    test_size: Annotated[
        float | None, typer.Option(help="With --data: share drawn for the test.", show_default="0.3")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds a stage may take.", show_default=False)
    ] = None,
    memory_limit: Annotated[
        float | None, typer.Option(help="Megabytes a stage may use.", show_default=False)
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="List the cells and what they are expected to take; compute nothing."),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON Lines, one object a cell, and nothing else.")
    ] = False,
) -> None:
    """Compare methods on data sets and print a leaderboard.

    Finished work is kept: run the same command again after a break and it goes on where it stopped.

    Example: textbench run -d r8 -d r52 -m tfidf -m lsi --seeds 5
    """
    from flows.cells import plan
    from flows.cli.start import use_data_dir
    from flows.home import home_folder
    from tasks.tracking import read_settings

    if (several := _parts(suite)) and not (dataset or method or data):
        given = {"--seed": seed, "--seeds": seeds, "--trials": trials, "--probe": probe, "--rule": rule}
        if refused := [name for name, value in given.items() if value is not None]:
            raise InputError(f"suite {suite} says {refused[0]} for each of its parts; leave it out")
        use_data_dir(data_dir)
        _run_suite(several, dry_run, json)
        return
    own = {
        "text_column": text_column,
        "label_column": label_column,
        "label_separator": label_separator,
        "split_column": split_column,
        "test_size": test_size,
    }
    request = _request(suite, dataset, method, _seeds(seed, seeds), trials, protocol)
    request = replace(request, probe=probe, rule=rule, paper=paper, **_own(data, own, dataset))
    validation = {"n_folds": folds, "held_out": held_out, "metric": tune_metric}
    request = replace(request, **_search(search_seconds, validation, protocol, paper))
    if engine not in ENGINES:
        raise InputError(f"--engine must be {' or '.join(ENGINES)}, got {engine!r}")
    for name, limit in (("--time-limit", time_limit), ("--memory-limit", memory_limit)):
        if limit is not None and not limit > 0:
            raise InputError(f"{name} must be above 0, got {limit:g}")
    use_data_dir(data_dir)
    home = home_folder()
    read_settings(home)
    cells = plan(request)
    if dry_run:
        _print_plan(home, cells, json)
        return
    options = {"timed": timed, "fresh": fresh, "time_limit": time_limit, "memory_limit": memory_limit}
    _require_data(home, cells)
    with stopped_by_hand():
        rows = run_cells(home, request, cells, engine, options, json)
    if any(row["error"] for row in rows):
        raise typer.Exit(1)


@contextlib.contextmanager
def stopped_by_hand() -> Iterator[None]:
    """Let Ctrl-C end this process at once: an ordinary exit would wait for threads that wait for computations.

    What it computed in children ends with it. A KeyboardInterrupt could be lost in a library's clean-up.
    """

    def stop(*_: object) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h\n")  # the progress bar has hidden the cursor
        print("textbench: stopped; the same command goes on where this one was", file=sys.stderr, flush=True)
        os._exit(130)

    previous = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _parts(suite: str | None) -> "list[Part]":
    """Return the parts of a suite that has several, or that is a curve."""
    from flows.suites import parts

    found = parts(suite or "quick")
    return found if len(found) > 1 or found[0].budgets else []


def _run_suite(parts: "list[Part]", dry_run: bool, as_json: bool) -> None:
    """Run a suite's parts in order; what is stored is not computed again."""
    from flows.cells import plan
    from flows.cli.curve import plan_and_check, run_curves
    from flows.home import home_folder

    home = home_folder()
    n_failed = 0
    for number, part in enumerate(parts, start=1):
        kind = "curves" if part.budgets else "timed" if part.timed else "sweep"
        print(
            f"part {number} of {len(parts)}: {kind}, {', '.join(part.request.methods[:5])}", file=sys.stderr
        )
        options = {"timed": part.timed, "fresh": False, "time_limit": None, "memory_limit": None}
        if part.budgets:
            cells = plan_and_check(home, part)
        else:
            cells = plan(part.request)
            _require_data(home, cells)
        if dry_run:
            _print_plan(home, cells, as_json)
            continue
        with stopped_by_hand():
            rows = (
                run_curves(home, part, cells, as_json)
                if part.budgets
                else run_cells(home, part.request, cells, "threads", options, as_json)
            )
        n_failed += sum(row["error"] is not None for row in rows)
    if n_failed:
        raise typer.Exit(1)


def _own(data: Path | None, options: dict[str, Any], datasets: list[str] | None) -> dict[str, Any]:
    """Return what `--data` and its options change in a request: the documents replace the suite's data sets."""
    if data is None:
        given = [name for name, value in options.items() if value not in (None, "text", "label")]
        if given:
            raise InputError(f"--{given[0].replace('_', '-')} describes your own documents and needs --data")
        return {}
    return {"own": {"path": str(data)} | options, "datasets": datasets or [], "name": "custom"}


def _search(
    seconds: float | None, validation: dict[str, Any], protocol: str, paper: str | None
) -> dict[str, Any]:
    """Return what the options on tuning change in a request, after checking them."""
    from evaluation.metrics import METRICS
    from evaluation.multilabel import MULTILABEL_METRICS
    from tasks.catalogue import nearest

    if seconds is not None and not seconds > 0:
        raise InputError(f"--search-seconds must be above 0, got {seconds:g}")
    given = {name: value for name, value in validation.items() if value is not None}
    if given.get("n_folds", 2) < 2:
        raise InputError(f"--folds must be at least 2, got {given['n_folds']}")
    if not 0 < given.get("held_out", 0.5) < 1:
        raise InputError(f"--held-out is a share between 0 and 1, got {given['held_out']:g}")
    if len(given.keys() & {"n_folds", "held_out"}) == 2:
        raise InputError("--folds and --held-out are two ways to validate; give one of them")
    known = METRICS | MULTILABEL_METRICS
    if given.get("metric", "accuracy") not in known:
        raise InputError(f"there is no metric {given['metric']!r}; {nearest(given['metric'], known)}")
    if paper is not None and protocol != "faithful":
        raise InputError(
            f"--paper says whose faithful protocol is meant and needs --protocol faithful, got {protocol}"
        )
    return {"search_seconds": seconds, "validation": given}


def _require_data(home: Path, cells: "list[Cell]") -> None:
    """Load what is not stored yet, so that documents that are missing or bad stop the run before it begins."""
    from tasks import catalogue, own_data
    from tasks.store import Store

    store = Store(home / "store")
    for corpus in {cell.dataset: cell.references["ingest"] for cell in cells}.values():
        if store.has(corpus):
            continue
        if "own" in corpus.params:
            own_data.load(own_data.OwnData(**corpus.params["own"]))
        else:
            catalogue.dataset(corpus.params["dataset"]).load().load()


def _seeds(seed: int | None, seeds: int | None) -> list[int] | None:
    if seed is not None and seeds is not None:
        raise InputError("--seed runs one seed and --seeds runs several; give one of them")
    if seeds is not None and not 1 <= seeds <= MAX_SEEDS:
        raise InputError(f"--seeds must lie in 1 .. {MAX_SEEDS}, got {seeds}")
    if seed is not None and not 0 <= seed < 2**32:
        raise InputError(f"--seed must lie in 0 .. 2^32 - 1, got {seed}")
    return [seed] if seed is not None else list(range(seeds)) if seeds is not None else None


def _request(
    suite: str | None,
    datasets: list[str] | None,
    methods: list[str] | None,
    seeds: list[int] | None,
    trials: int | None,
    protocol: str,
) -> "Request":
    from flows.cells import Request
    from flows.suites import read_suite
    from tasks.catalogue import nearest

    if protocol not in PROTOCOLS:
        raise InputError(f"there is no protocol {protocol!r}; {nearest(protocol, PROTOCOLS)}")
    settings = read_suite(suite or "quick")
    trials = settings.get("trials", 0) if trials is None else trials
    if trials < 0:
        raise InputError(f"--trials must be at least 0, got {trials}")
    return Request(
        datasets=datasets or settings["datasets"],
        methods=methods or settings["methods"],
        seeds=seeds if seeds is not None else list(range(settings.get("seeds", 1))),
        protocol=protocol,  # type: ignore[arg-type]
        trials=trials,
        name="custom" if datasets or methods else suite or "quick",
    )


def _print_plan(home: Path, cells: "list[Cell]", as_json: bool) -> None:
    import json

    from rich.console import Console
    from rich.table import Table

    from flows.cells import Index, estimate
    from tasks.store import Store

    seconds = estimate(cells, Store(home / "store"), Index(home).rows())
    if as_json:
        for cell, value in zip(cells, seconds, strict=True):
            names = ("dataset", "method", "protocol", "seed", "trials")
            print(json.dumps({name: getattr(cell, name) for name in names} | {"estimated_seconds": value}))
        return
    table = Table("data set", "method", "seed", "estimate", title=f"{len(cells)} cells")
    for cell, value in zip(cells, seconds, strict=True):
        text = "unknown" if value is None else "stored" if value == 0 else f"{value:.0f} s"
        table.add_row(cell.dataset, cell.method, str(cell.seed), text)
    console = Console()
    console.print(table)
    known = sum(value for value in seconds if value)
    unknown = sum(value is None for value in seconds)
    console.print(
        f"About {known:.0f} s of computing" + (f", and {unknown} cells never timed here." if unknown else ".")
    )


def run_cells(
    home: Path, request: "Request", cells: "list[Cell]", engine: str, options: dict[str, Any], as_json: bool
) -> list[dict[str, Any]]:
    """Run the flow `benchmark` and return a row a cell; without `as_json` print what was found."""
    from flows.cli.start import run_flow
    from tasks.store import Store
    from tasks.tracking import Tracker, read_settings

    store = Store(home / "store")
    is_new = (
        options["timed"]
        or options["fresh"]
        or not all(store.has(cell.references["evaluate"]) for cell in cells)
    )
    if is_new:
        Tracker(read_settings(home)).check()
    arguments = asdict(request) | options
    rows, info = run_flow(
        home,
        "flows.benchmark:benchmark",
        arguments,
        cells,
        engine=engine,  # type: ignore[arg-type]
        as_json=as_json,
        is_new=is_new,
    )
    if not as_json:
        _print_summary(home, rows, info.ui_url)
    return rows


def _print_summary(home: Path, rows: list[dict[str, Any]], page: str) -> None:
    from rich.console import Console

    from flows.leaderboard import render_table
    from flows.verdict import verdicts
    from tasks.tracking import read_settings

    console = Console()
    render_table(rows, console)
    for line in verdicts(home, rows):
        console.print(f"\n{line}", markup=False, highlight=False)
    address = read_settings(home).tracking_uri
    console.print("\nWhere to look next", style="bold")
    look = f"mlflow ui --backend-store-uri {address}" if address.startswith("sqlite") else f"open {address}"
    console.print(f"  compare runs in MLflow   {look}", soft_wrap=True)
    if address.startswith("sqlite"):
        console.print(f"                           then open {MLFLOW_PAGE}", soft_wrap=True, markup=False)
    console.print(f"  the flow in Prefect      {page}", soft_wrap=True)
    console.print("  one run in detail        textbench show last")
    console.print("  every run so far         textbench leaderboard")
    console.print("  other data and methods   textbench list datasets, textbench list methods")
