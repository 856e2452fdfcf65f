"""`textbench results`: boards that travel as one file, packed here, added from elsewhere, computed again."""

import math
from pathlib import Path
from typing import Annotated

import typer

from textbench.flows.cli.output import check_file, print_json
from textbench.flows.cli.voice import wrote
from textbench.tasks import InputError
from textbench.tasks.words import counted

results_app = typer.Typer(help="Results that travel: pack, add, forget, page, verify.", no_args_is_help=True)
DataSets = Annotated[
    list[str] | None, typer.Option("--dataset", "-d", help="Only this data set; repeat for more.")
]
Board = Annotated[
    Path | None, typer.Argument(help="A packed board.", show_default="what the repository records")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON Lines and nothing else.")]


@results_app.command("pack")
def pack_results(
    out: Annotated[Path, typer.Option("-o", "--out", help="The file to write, .parquet.")] = Path(
        "board.parquet"
    ),
    dataset: DataSets = None,
    json: AsJson = False,
) -> None:
    """Write every finished cell to one file that others can add: metrics, intervals, settings, seconds, versions, keys.

    It holds no texts and no paths.

    Example: textbench results pack -o board.parquet
    """
    from textbench.flows.plan.corpora import choose_datasets
    from textbench.flows.results import packed
    from textbench.flows.results.index import Index
    from textbench.flows.run.workspace import home_folder

    check_file("--out", out, [".parquet"])
    home = home_folder()
    rows = Index(home).rows()
    names = choose_datasets(rows, dataset or ())
    lines = packed.cells(home, (row for row in rows if not names or row["dataset"] in names))
    if not lines:
        raise InputError(f"there are no finished runs{' like that' if names else ''} in {home} to pack")
    packed.write(out, lines)
    size = out.stat().st_size
    if json:
        print_json({"file": str(out), "cells": len(lines), "bytes": size})
    else:
        print(f"Wrote {out} ({size / 1e6:.2f} MB): {counted(len(lines), 'cell')}.")
        print(f"Others show it beside theirs after: textbench results add {out}")


@results_app.command("add")
def add_results(
    board: Annotated[str, typer.Argument(help="A packed board: a file, or an http(s) address.")],
    json: AsJson = False,
) -> None:
    """Check a packed board and keep it; `leaderboard` then shows it apart, as from elsewhere.

    What was run here too counts as run here.

    Example: textbench results add board.parquet
    """
    from textbench.flows.results import elsewhere
    from textbench.flows.run.workspace import home_folder

    found = elsewhere.add(home_folder(), board)
    if json:
        print_json({"sha256": found.sha256, "origin": found.origin, "lines": len(found.lines)})
    else:
        print(
            f"Added {found.name}: {counted(len(found.lines), 'line')}. textbench leaderboard shows it apart."
        )


@results_app.command("forget")
def forget_results(
    board: Annotated[str, typer.Argument(help="Its file's name, or the beginning of its sha256.")],
) -> None:
    """Take a board away that was added.

    Example: textbench results forget board.parquet
    """
    from textbench.flows.results import elsewhere
    from textbench.flows.run.workspace import home_folder

    print(f"Forgot {elsewhere.forget(home_folder(), board).name}.")


@results_app.command("page")
def page_of_results(
    board: Board = None,
    out: Annotated[Path, typer.Option("-o", "--out", help="The file to write, .html.")] = Path("board.html"),
) -> None:
    """Write a board as one HTML page without network: sortable, with groups of ties and intervals of ranks.

    Example: textbench results page -o board.html
    """
    from textbench.flows.report import board_page
    from textbench.flows.results import packed

    check_file("--out", out, [".html", ".htm"])
    lines = packed.read(board or packed.FILE)
    board_page.write(out, lines, (board or packed.FILE).name)
    wrote(out)


@results_app.command("verify")
def verify_results(
    board: Annotated[
        Path | None, typer.Argument(help="A packed board.", show_default="the runs of this results folder")
    ] = None,
    sample: Annotated[int, typer.Option(help="How many to compute again.", min=1)] = 5,
    every: Annotated[bool, typer.Option("--all", help="Compute all of them again.")] = False,
    recorded: Annotated[bool, typer.Option("--recorded", help="What the repository records.")] = False,
    seed: Annotated[int, typer.Option(help="Which ones are drawn.", min=0)] = 0,
    longest: Annotated[
        float,
        typer.Option(help="Seconds that one may have taken, all its seeds together, to be drawn.", min=0),
    ] = 100.0,
    dataset: DataSets = None,
    json: AsJson = False,
) -> None:
    """Compute results again in an empty folder and compare them to the bit; what differs is named by its stage.

    Exit code 1 where something differs.

    Example: textbench results verify --sample 2
    """
    from textbench.flows.results import packed
    from textbench.flows.results.index import Index
    from textbench.flows.run import verification
    from textbench.flows.run.workspace import home_folder
    from textbench.tasks.storage.store import Store

    if recorded and board is not None:
        raise InputError("--recorded is a packed board itself: give it or a file")
    own = None
    if recorded or board is not None:
        lines = packed.read(board or packed.FILE)
    else:
        home = home_folder()
        lines, own = packed.cells(home, Index(home).rows(), with_paths=True), Store(home / "store")
    if dataset:
        lines = [line for line in lines if line["dataset"] in dataset]
    chosen = verification.sample(lines, None if every else sample, seed, longest)
    if not json:
        seconds = sum(one for line in chosen if math.isfinite(one := verification.taken(line)))
        print(
            f"Computing {len(chosen)} of {counted(len(lines), 'line')} again, which took {seconds:.0f} s when made."
        )
    n_wrong = 0
    for verdict in verification.verify(chosen, own):
        n_wrong += not verdict.is_same
        if json:
            print_json(vars(verdict))
        else:
            print(f"{'same' if verdict.is_same else 'DIFFERS':8} {verdict.title}: {verdict.said}", flush=True)
    if not json:
        print(f"{len(chosen) - n_wrong} of {len(chosen)} are the same.")
    if n_wrong:
        raise typer.Exit(1)
