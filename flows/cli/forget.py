"""`textbench forget`: take runs or a data set from the leaderboard, the index and MLflow."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from textbench.tasks import InputError
from textbench.tasks.words import counted

LISTED = 20


def forget(
    run: Annotated[
        list[str] | None,
        typer.Argument(
            help="Runs, each `last`, `best`, a method (its newest run), or the beginning of its MLflow id or key.",
            show_default=False,
        ),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            "--dataset",
            "-d",
            help="Instead: all runs on this data set, such as 'data (2)' or data@900bdffd; repeat.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="Instead: all runs of this method; repeat.", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go; take nothing away.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Take runs from the leaderboard, the index and MLflow, after saying which.

    With -d and -m those of the method on the data set. What was computed stays in the store.

    Example: textbench forget -d "data (2)" --dry-run
    """
    from textbench.flows.run import forget as forgetting
    from textbench.flows.run.workspace import home_folder

    home = home_folder()
    rows = forgetting.choose(home, run or (), dataset or (), method or ())
    _say(home, rows)
    if dry_run:
        print("Nothing was taken away (--dry-run).")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise InputError("forget takes runs away and cannot ask here; add --yes")
        typer.confirm("Forget them?", abort=True)
    forgetting.forget(home, rows)
    print(f"Forgot {counted(len(rows), 'run')}. The same command as before records what is stored again.")


def _say(home: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Print the runs, of which documents they are, and from where they go."""
    from textbench.flows.plan.corpora import about
    from textbench.flows.results.runs import in_words, short_id
    from textbench.flows.run.forget import is_in_mlflow, tracker_of, waiting

    for row in rows[:LISTED]:
        print(f"{short_id(row)}  {in_words(row)}")
    if len(rows) > LISTED:
        print(f"... and {len(rows) - LISTED} more")
    for name in dict.fromkeys(row["dataset"] for row in rows):
        own = [row for row in rows if row["dataset"] == name]
        print(f"{name}: {own[0]['about'] or about(home, own)}.")
    tracker = tracker_of(home)
    n_tracked = sum(is_in_mlflow(row, tracker) for row in rows)
    n_waiting = sum(len(waiting(home, row)) for row in rows)
    places = [f"{counted(len(rows), 'run')} from the index"]
    places += [f"{n_tracked} from MLflow (marked deleted)"] if n_tracked else []
    places += [f"{n_waiting} from the spool"] if n_waiting else []
    print(f"To go: {', '.join(places)}.")
