"""`textbench claims`: the published figures, and whether they hold."""

import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from textbench.flows.cli.output import print_json
from textbench.flows.cli.runner import run_flow, stopped_by_hand, use_data_dir
from textbench.flows.plan.request import BenchmarkRequest
from textbench.tasks import InputError
from textbench.tasks.words import counted

if TYPE_CHECKING:
    from textbench.flows.referee.explanation import Part

WIDTH = 100  # of an explanation


def claims(
    claim: Annotated[
        str | None,
        typer.Argument(
            help="Only claims whose id begins with these parts, such as scdv-2017/table-1.",
            show_default="all",
        ),
    ] = None,
    paper: Annotated[
        str | None, typer.Option(help="Only the claims of this paper, such as scdv-2017.", show_default=False)
    ] = None,
    run: Annotated[
        bool, typer.Option("--run", help="Compute first what is missing; may take hours.")
    ] = False,
    trials: Annotated[int, typer.Option(help="With --run: settings tried for each method.")] = 0,
    record: Annotated[
        bool, typer.Option("--record", help="Write what was measured into evaluation/measured.csv.")
    ] = False,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of data archives.", show_default="$TEXTBENCH_DATA_DIR")
    ] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show each claim in full: the verdict's algebra, settings, notes."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON Lines and nothing else.")] = False,
) -> None:
    """Show published figures beside measured ones, and by rule whether each holds.

    Fresh figures are of this results folder, recorded ones of the repository. A mean over seeds takes in recorded seeds
    that would come out the same today.

    Example: textbench claims scdv-2017/table-1/scdv/accuracy --explain
    """
    from textbench.flows.referee.explanation import explain as explained
    from textbench.flows.referee.ledger import choose, ledger, left_to_suites, requests
    from textbench.flows.referee.ledger import record as write
    from textbench.flows.run.workspace import home_folder

    chosen = choose(claim, paper)
    if trials < 0:
        raise InputError(f"--trials must be at least 0, got {trials}")
    if trials and not run:
        raise InputError("--trials is of claims that are computed: add --run")
    use_data_dir(data_dir)
    home = home_folder()
    entries = ledger(home, chosen)
    n_failed = 0
    if run:
        n_failed = sum(_run(home, request) for request in requests(entries, trials))
        entries = ledger(home, chosen)
        for suite, (first, *others) in left_to_suites(entries).items():
            more = f" and {counted(len(others), 'other claim')} need" if others else " needs"
            print(f"textbench: {first}{more} a whole suite: textbench run {suite}", file=sys.stderr)
    if record:
        n_written = write(home, entries)
        print(f"textbench: recorded {n_written} figures in evaluation/measured.csv", file=sys.stderr)
    if json:
        for entry in entries:
            print_json(entry.as_json() | ({"explanation": dict(explained(entry))} if explain else {}))
    elif explain:
        for entry in entries:
            _print_in_full(entry.claim.id, explained(entry))
    else:
        from rich.console import Console

        from textbench.flows.explain.frames import Verdicts

        Verdicts(entries).print(Console())
    if n_failed:
        raise typer.Exit(1)


def _run(home: Path, request: BenchmarkRequest) -> int:
    """Run the cells of a request that are missing, progress on standard error, and return how many failed."""
    import contextlib
    import io

    from textbench.flows.plan.cell import plan
    from textbench.flows.results.index import Index

    index = Index(home)
    if not request.timed and all(index.get(cell) for cell in plan(request)):
        return 0
    # The ledger is what this command prints.
    with stopped_by_hand(), contextlib.redirect_stdout(io.StringIO()):
        rows, _ = run_flow(home, request, as_json=True)
    return sum(row["error"] is not None for row in rows)


def _print_in_full(id_: str, parts: "Sequence[Part]") -> None:
    """Print a claim in full, wrapped, each part below its heading."""
    print(id_)
    for heading, lines in parts:
        print(f"\n  {heading}")
        for line in lines:
            depth = 4 + len(line) - len(line.lstrip())
            print(
                textwrap.fill(
                    line.strip(), WIDTH, initial_indent=" " * depth, subsequent_indent=" " * (depth + 2)
                )
            )
    print()
