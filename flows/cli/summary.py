"""What `textbench run` says for people: before a sweep what it will take, after it what was found and where to look."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.words import counted

if TYPE_CHECKING:
    from flows.cells import Cell

# Without the workflow, MLflow's page opens on traces of language models.
MLFLOW_PAGE = "http://127.0.0.1:5000/#/experiments?workflowType=machine_learning"


def print_plan(home: Path, cells: "Sequence[Cell]", as_json: bool) -> None:
    """Print a line a cell with the seconds it is expected to take, from what its like took."""
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
    table = Table("data set", "method", "seed", "estimate", title=counted(len(cells), "cell"))
    for cell, value in zip(cells, seconds, strict=True):
        text = "unknown" if value is None else "stored" if value == 0 else f"{value:.0f} s"
        table.add_row(cell.dataset, cell.method, str(cell.seed), text)
    console = Console()
    console.print(table)
    known = sum(value for value in seconds if value)
    unknown = sum(value is None for value in seconds)
    console.print(
        f"About {known:.0f} s of computing"
        + (f", and {counted(unknown, 'cell')} never timed here." if unknown else ".")
    )


def print_summary(home: Path, rows: Sequence[dict[str, Any]], page: str) -> None:
    """Print the leaderboard and its verdict; `page` is that of the flow."""
    from rich.console import Console

    from flows import services
    from flows.cells import Index
    from flows.corpora import keep_numbers, told_apart
    from flows.doubt import with_doubt
    from flows.leaderboard import render_table
    from flows.verdict import verdicts
    from tasks.tracking import read_settings

    console = Console()
    every = Index(home).rows()
    keep_numbers(home, every)
    rows = with_doubt(home, told_apart(home, rows, among=every))
    render_table(rows, console)
    for line in verdicts(home, rows):
        console.print(f"\n{line}", markup=False, highlight=False)
    settings = read_settings(home)
    console.print("\nWhere to look next", style="bold")
    up = services.mlflow_address(home, settings.tracking_uri)
    if settings.is_on:
        look = up or f"mlflow ui --backend-store-uri {settings.tracking_uri}"
        console.print(f"  compare runs in MLflow   {look}", soft_wrap=True, markup=False)
    if settings.is_on and not up:
        console.print(f"                           then open {MLFLOW_PAGE}", soft_wrap=True, markup=False)
    console.print(f"  the flow in Prefect      {page}", soft_wrap=True)
    console.print("  one run in detail        textbench show last")
    console.print("  every run so far         textbench leaderboard")
    console.print("  other data and methods   textbench list datasets, textbench list methods")
