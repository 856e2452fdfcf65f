"""`textbench terms`: what a method has learned about terms."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textbench.flows.cli.options import one_data_set, own_options, takes
from textbench.flows.cli.output import check_figure, print_json

if TYPE_CHECKING:
    from textbench.flows.explain.terms import TermColumns


DATASET = "reuters65"


@takes(own=own_options)
def terms(
    word: Annotated[
        list[str] | None,
        typer.Argument(help="Words to show, each a document of its own for dcot.", show_default=False),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", "-d", help="Data set.", show_default=DATASET)
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method", "-m", help="dcot, compressive or a topic model; parameters as in dcot(noise=0.9)."
        ),
    ] = "dcot",
    top: Annotated[int, typer.Option(help="Terms shown a column at most.")] = 10,
    rule: Annotated[
        str | None, typer.Option(help="Token rule, such as letters.", show_default="the data set's")
    ] = None,
    protocol: Annotated[str, typer.Option(help="honest, transductive or faithful.")] = "honest",
    seed: Annotated[int, typer.Option(help="Seed of a method that draws random numbers.")] = 0,
    own: dict[str, Any] | None = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw the columns to this file (.svg, .png, .pdf).", show_default=False),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Show what a method has learned about terms: topics, what dcot makes of a word, which phrases compressive keeps.

    For dcot a column has the terms that a document of that one word is taken to mean, best first; what the empty
    document gets (first column) is subtracted from the others. For compressive words choose the phrases with them. Of
    topic models (lda, nmf, scdv, twe-1 and others) the columns are topics: for a word that in which it is most
    probable, without words the most coherent ones.

    Example: textbench terms --method dcot --dataset reuters65 nasdaq reagan
    """
    from textbench.flows.explain.terms import TermsQuestion, ask
    from textbench.flows.plots.terms import draw
    from textbench.flows.run.workspace import home_folder
    from textbench.tasks.storage.isolate import CellError
    from textbench.tasks.storage.store import Store

    check_figure(figure)
    question = TermsQuestion(
        word or [], one_data_set(dataset, own, DATASET), method, top, rule, protocol, seed, own
    )
    try:
        answer = ask(question, Store(home_folder() / "store"))
    except CellError as error:
        typer.echo(f"textbench: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(1) from error
    if figure is not None:
        draw([(column.heading, column.terms) for column in answer.columns], figure)
    if json:
        print_json(answer.to_json())
    else:
        _render(answer)
        if figure is not None:
            print(f"Drew {figure}.")


def _render(answer: "TermColumns") -> None:
    from itertools import zip_longest

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from textbench.flows.plots.terms import EMPTY

    table = Table(title=f"{answer.dataset}, {answer.method}", title_justify="left")
    for column in answer.columns:
        table.add_column(Text(column.heading), overflow="fold")
    cells = [[f"{term} {_figure(value)}" for term, value in c.terms] or [EMPTY] for c in answer.columns]
    for row in zip_longest(*cells, fillvalue=""):
        table.add_row(*map(Text, row))
    Console().print(table)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:.2f}"
