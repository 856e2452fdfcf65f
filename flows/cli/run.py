"""`textbench run`: the flow `benchmark`."""

from dataclasses import replace
from typing import Annotated, Any

import typer

from textbench.flows.cli.own import takes_own_data
from textbench.flows.cli.request import (
    Address,
    CellsAsJson,
    DataDir,
    Engine,
    Folds,
    Fresh,
    Jobs,
    Paper,
    Probe,
)

# What goes beside a suite of parts and holds for each of them; a part says for itself what any other option would.
BESIDE_PARTS = ("data_dir", "engine", "address", "jobs", "dry_run", "json")


@takes_own_data
def run(
    context: typer.Context,
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
    seeds: Annotated[
        int | None, typer.Option(help="Run seeds 0 .. N-1.", show_default="the suite's; 3 without one")
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(help="Settings tried for each method; 0 runs its defaults.", show_default=False),
    ] = None,
    search_seconds: Annotated[
        float | None,
        typer.Option(help="Try settings until they have cost this many seconds.", show_default=False),
    ] = None,
    folds: Folds = None,
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
    paper: Paper = None,
    data_dir: DataDir = None,
    engine: Engine = "threads",
    address: Address = None,
    jobs: Jobs = None,
    timed: Annotated[
        bool,
        typer.Option(
            "--timed", help="One cell at a time, nothing cached, the same bits: seconds to publish."
        ),
    ] = False,
    fresh: Fresh = False,
    probe: Probe = None,
    rule: Annotated[
        str | None, typer.Option(help="Token rule, such as letters or words.", show_default="the data set's")
    ] = None,
    own: dict[str, Any] | None = None,
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
    json: CellsAsJson = False,
) -> None:
    """Compare methods on data sets and print a leaderboard.

    Finished work is kept: run the same command again after a break and it goes on where it stopped.

    Example: textbench run -d r8 -d r52 -m tfidf -m lsi --seeds 5
    """
    from textbench.flows.cli import request as options
    from textbench.flows.cli.start import stopped_by_hand, use_data_dir
    from textbench.flows.cli.suite import parts_of, run_suite
    from textbench.flows.cli.summary import print_plan
    from textbench.flows.cli.sweep import require_data, run_cells
    from textbench.flows.plan.cell import plan
    from textbench.flows.run.workspace import home_folder
    from textbench.tasks.tracking.tracker import read_settings

    if several := parts_of(suite):
        options.refuse_beside(f"suite {suite}", context, BESIDE_PARTS)
        where = options.read_engine(engine, address)
        use_data_dir(data_dir)
        if run_suite(home_folder(), several, dry_run, json, where):
            raise typer.Exit(1)
        return
    request = options.read_request(suite, dataset, method, options.read_seeds(seed, seeds), trials, protocol)
    request = replace(request, probe=probe, rule=rule, paper=paper)
    if own:  # the documents replace the suite's data sets
        request = replace(request, own=own, datasets=dataset or [], name="custom")
    validation = {"n_folds": folds, "held_out": held_out, "metric": tune_metric}
    request = replace(request, **options.read_search(search_seconds, validation, protocol, paper))
    options.check_limits(time_limit, memory_limit)
    where = options.read_engine(engine, address, timed=timed)
    use_data_dir(data_dir)
    home = home_folder()
    read_settings(home)
    cells = plan(request)
    if dry_run:
        print_plan(home, cells, json)
        return
    how = {"timed": timed, "fresh": fresh, "time_limit": time_limit, "memory_limit": memory_limit}
    require_data(home, cells)
    with stopped_by_hand():
        rows = run_cells(home, request, cells, where, how, json)
    if any(row["error"] for row in rows):
        raise typer.Exit(1)
