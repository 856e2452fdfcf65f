"""Which finished run a command is about: its argument and options, and the line that says what was taken."""

from pathlib import Path
from typing import Annotated, Any

import typer

from textbench.flows.cli.voice import note

RUN_HELP = (
    "`last`, `best`, a method (its newest run), or the beginning of a run's MLflow id or key (6 or more)."
)

RunName = Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP)]
DataSet = Annotated[
    str | None,
    typer.Option("--dataset", "-d", help="Take the run among those on this data set.", show_default=False),
]
OfProtocol = Annotated[
    str | None,
    typer.Option(
        "--protocol", help="Take it among runs under this protocol.", show_default="any; for best honest"
    ),
]


def take_run(
    home: Path, name: str, dataset: str | None = None, protocol: str | None = None
) -> dict[str, Any]:
    """Return the index row of the run that `name` means (`flows.results.runs.find_run`).

    Where it is no id, a line on standard error says which run that is.
    """
    from textbench.flows.results.runs import BEST, find_run, in_words, is_id_of, of_best_run

    row = find_run(home, name, dataset, protocol)
    if not is_id_of(row, name):
        seeds = of_best_run(home, row) if name == BEST else ""
        note(f"{name} is {in_words(row)}, {row['key'][:12]}{seeds and f': best{seeds}'}")
    return row
