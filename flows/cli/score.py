"""`textbench score`: predictions that were made elsewhere, scored and tested like those of a method."""

from pathlib import Path
from typing import Annotated, Any

import typer

from textbench.flows.cli.options import CellsAsJson, DataDir, one_data_set, own_options, takes
from textbench.flows.cli.output import print_json
from textbench.flows.cli.runner import stopped_by_hand, use_data_dir
from textbench.flows.cli.voice import note


@takes(own=own_options)
def score(
    predictions: Annotated[
        list[Path],
        typer.Argument(help="Files with a row a test document: CSV, TSV or Parquet.", show_default=False),
    ],
    own: dict[str, Any] | None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", "-d", help="The data set they are of.", show_default=False)
    ] = None,
    data_dir: DataDir = None,
    json: CellsAsJson = False,
) -> None:
    """Score predictions from files: every metric, tests and verdict, beside the methods that ran here.

    A file has a column id, as `textbench texts` writes it, and a column label (several: parted by |), or one of scores
    for each class, under its name. Without ids its rows count in the order of the test documents, which is said.

    Example: textbench score -d 20ng predictions.csv
    """
    from textbench.flows.cli.summary import print_board
    from textbench.flows.plan.cell import plan
    from textbench.flows.plan.request import BenchmarkRequest
    from textbench.flows.run.engine import Threads
    from textbench.flows.run.preflight import require_data
    from textbench.flows.run.sweep import run_sweep
    from textbench.flows.run.workspace import home_folder
    from textbench.tasks.catalogue import PREDICTIONS, spelled
    from textbench.tasks.tracking.tracker import read_settings

    name = one_data_set(dataset, own)
    methods = [spelled(PREDICTIONS, {"path": str(path)}) for path in predictions]
    request = BenchmarkRequest([name] if name else [], methods, own=own, name="score")
    use_data_dir(data_dir)
    home = home_folder()
    read_settings(home)
    cells = plan(request)
    require_data(home, cells, say=note)
    note(f"scoring {len(cells)} of {', '.join(sorted({cell.dataset for cell in cells}))}")
    with stopped_by_hand(), Threads() as runner:
        rows = run_sweep(request, runner)
    if json:
        for row in rows:
            print_json(row)
    else:
        print_board(home, rows)
    if any(row["error"] for row in rows):
        raise typer.Exit(1)
