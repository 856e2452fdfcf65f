"""`textbench ensemble`: finished runs that decide together."""

from typing import Annotated

import typer

from textbench.flows.cli.output import print_json


def ensemble(
    dataset: Annotated[str, typer.Option("--dataset", "-d", help="The data set.", show_default=False)],
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            help="A method that was run on it; repeat for more.",
            show_default="all that were run alike",
        ),
    ] = None,
    protocol: Annotated[str, typer.Option(help="honest, transductive or faithful.")] = "honest",
    trials: Annotated[
        int | None,
        typer.Option(
            help="Members that were tuned with so many trials.", min=0, show_default="as most were tuned"
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Let finished runs decide together, weighed by what they say of training documents out of fold.

    Nothing is fitted again. Greedy selection with replacement, equal weights and stacking are compared; the ensembles
    are runs of their own, which leaderboards, `show` and `compare` know.

    Example: textbench ensemble -d r8 -m tfidf -m nb-svm
    """
    from rich.console import Console

    from textbench.flows.cli.api import ensemble as made
    from textbench.flows.results.ensembles import as_json

    found = made(dataset, method or (), protocol=protocol, trials=trials, tracking=True, progress=not json)
    if json:
        print_json(as_json(found.found))
    else:
        found.print(Console())
