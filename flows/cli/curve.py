"""`textbench curve`: the flow `label_budget`."""

from pathlib import Path
from typing import Annotated, Any

import typer

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
    takes,
)
from textbench.flows.cli.output import check_figure
from textbench.flows.cli.runner import run_flow, stopped_by_hand, use_data_dir
from textbench.flows.cli.voice import note, wrote
from textbench.flows.plan.request import LabelBudgetRequest
from textbench.tasks import InputError


@takes(asked=options_of(LabelBudgetRequest), own=own_options)
def curve(
    asked: dict[str, Any],
    own: dict[str, Any] | None,
    data_dir: DataDir = None,
    engine: Engine = "threads",
    address: Address = None,
    jobs: Jobs = None,
    allow_upload: AllowUpload = False,
    metric: Annotated[
        str | None, typer.Option(help="What is shown.", show_default="accuracy", rich_help_panel=OUTPUT)
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            help="Draw the curves to this file (.svg, .png or .pdf).",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: CellsAsJson = False,
) -> None:
    """Draw label-budget curves: how good methods are with few labels.

    Features are learnt on all training texts; only the classifier, and a method that uses labels, is short of them.
    Finished cells are kept.

    Example: textbench curve -d reuters65 -m tfidf -m lsi -m nb --budgets 500,1000,2000 --draws 5
    """
    from textbench.flows.plan.checks import check_metric
    from textbench.flows.run.preflight import checked_curves
    from textbench.flows.run.workspace import home_folder
    from textbench.tasks.tracking.tracker import read_settings

    if not ("datasets" in asked or own) or "methods" not in asked:
        raise InputError(
            "a curve needs --dataset or --data, and --method; textbench list methods shows what there is"
        )
    check_figure(figure)
    request = LabelBudgetRequest(**{"datasets": [], "own": own} | asked)
    where = read_engine(engine, address)
    use_data_dir(data_dir)
    home = home_folder()
    read_settings(home)
    check_metric(request, metric)
    request = checked_curves(home, request, metric, may_cut="budgets" not in asked, say=note)
    with stopped_by_hand():
        rows, _ = run_flow(home, request, engine=where, as_json=json)
    print_curves(home, rows, metric, figure, as_json=json)
    if any(row["error"] for row in rows):
        raise typer.Exit(1)


def print_curves(
    home: Path,
    rows: list[dict[str, Any]],
    metric: str | None = None,
    figure: Path | None = None,
    *,
    as_json: bool = False,
) -> None:
    """Draw the curves, if they are to be drawn, and print them as a table, unless rows are printed as JSON."""
    from rich.console import Console

    from textbench.flows.explain.frames import Curves

    found = Curves(home, rows, metric)
    for path in found.draw(figure) if figure is not None else ():
        wrote(path, as_json=as_json)
    if not as_json:
        found.print(Console())
