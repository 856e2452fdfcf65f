"""`textbench store`: how much room the stored results take, and how to get it back."""

import math
import re
import sys
from typing import Annotated

import typer

from textbench.flows.cli.output import print_json
from textbench.flows.tables.table import of_texts
from textbench.flows.tables.terminal import print_table
from textbench.tasks import InputError

store_app = typer.Typer(help="Show or prune the stored results.", no_args_is_help=True)
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
LET_GO = ", made again where needed"  # what is said of features that were quickly made, which are not kept
Json = Annotated[bool, typer.Option("--json", help="Print JSON Lines and nothing else.")]


@store_app.command()
def size(json: Json = False) -> None:
    """Show how many artifacts each stage has stored, the megabytes they take, and the seconds that a megabyte took.

    Example: textbench store size
    """
    from collections import Counter

    from textbench.flows.run.workspace import home_folder
    from textbench.tasks.storage.files import is_let_go
    from textbench.tasks.storage.garbage import EMBEDDINGS, artifacts, chunks, seconds_of
    from textbench.tasks.storage.store import ASIDE

    root = home_folder() / "store"
    counts: Counter[str] = Counter()
    octets: Counter[str] = Counter()
    taken: dict[str, float] = {}
    for stage, folder, size in artifacts(root):
        name = f"{stage}{LET_GO}" if is_let_go(folder) else stage
        counts[name] += 1
        octets[name] += size
        if name == stage:
            taken[stage] = taken.get(stage, 0.0) + seconds_of(folder)
    for folder in (root / ASIDE).glob("*"):
        counts[ASIDE] += 1
        octets[ASIDE] += sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    for path in chunks(root):
        counts[EMBEDDINGS] += 1
        octets[EMBEDDINGS] += path.stat().st_size
    if json:
        for stage, number in counts.items():
            found = {"stage": stage, "artifacts": number, "bytes": octets[stage], "seconds": taken.get(stage)}
            print_json(found)
        return
    from rich.console import Console

    said = {ASIDE: "damaged, set aside", EMBEDDINGS: f"{EMBEDDINGS}, kept in chunks"}
    rows = [
        [
            said.get(s, s),
            str(n),
            f"{octets[s] / 1e6:.1f}",
            f"{taken[s] * 1e6 / octets[s]:.2g}" if s in taken else "-",
        ]
        for s, n in counts.items()
    ]
    rows.append(["total", str(counts.total()), f"{octets.total() / 1e6:.1f}", "-"])
    print_table(Console(), of_texts(f"{root}", ("stage", "artifacts", "MB", "s/MB"), rows))


@store_app.command()
def prune(
    older_than: Annotated[
        str, typer.Option("--older-than", help="Age: a number and s, m, h, d or w, such as 12h.")
    ] = "30d",
    keep_best: Annotated[
        bool,
        typer.Option(
            "--keep-best",
            help="Keep what the best method of each data set and protocol was made from, however old.",
        ),
    ] = False,
    cheap: Annotated[
        float,
        typer.Option(
            help="Delete vectors and features too, however new, that took fewer seconds a megabyte (see store size).",
            min=0,
        ),
    ] = 0.0,
    at_most: Annotated[
        float | None,
        typer.Option(
            help="Megabytes: of what is left the oldest go too, until the rest takes no more.",
            min=0,
            show_default=False,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Delete stored artifacts made longer ago than --older-than, and damaged ones; --at-most bounds the rest.

    Recorded figures stay in the leaderboard and in MLflow; what a run needs again is computed again.

    Example: textbench store prune --older-than 12h --keep-best --cheap 0.1 --yes
    """
    from textbench.flows.results.index import Index
    from textbench.flows.results.runs import made_from
    from textbench.flows.results.winner import best_runs
    from textbench.flows.run.workspace import home_folder
    from textbench.tasks.storage.garbage import prune as prune_store

    age = seconds(older_than)
    home = home_folder()
    root = home / "store"
    if not yes:
        if json or not sys.stdin.isatty():
            raise InputError("store prune deletes files and cannot ask here; add --yes")
        what = f"artifacts older than {older_than}" + (
            f", and what took less than {cheap:g} s/MB," if cheap else ""
        )
        what += f" and the oldest beyond {at_most:g} MB," if at_most is not None else ""
        typer.confirm(f"Delete {what} from {root}?", abort=True)
    keep = made_from(home, best_runs(Index(home).rows())) if keep_best else frozenset()
    bound = math.inf if at_most is None else at_most * 1e6
    count, freed = prune_store(root, older_than=age, keep=keep, cheap=cheap, at_most=bound)
    if json:
        print_json({"deleted": count, "bytes": freed})
    else:
        print(f"Deleted {count} artifacts, {freed / 1e6:.1f} MB.")


def seconds(duration: str) -> float:
    """Return a duration such as "12h" or "30d" in seconds. Raises InputError for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", duration.strip().lower())
    if match is None:
        raise InputError(
            f"a duration is a number and one of {', '.join(UNITS)}, such as 12h or 30d; got {duration!r}"
        )
    return float(match[1]) * UNITS[match[2]]
