"""`textbench errors`: the documents that finished runs get wrong."""

from pathlib import Path
from typing import Annotated

import typer

from textbench.flows.cli.output import check_file, print_json
from textbench.flows.cli.take import RUN_HELP, DataSet, OfProtocol, take_run
from textbench.flows.cli.voice import wrote
from textbench.tasks import InputError

ON_TERMINAL, ON_PAGE = 20, 500  # documents that are shown


def errors(
    run: Annotated[list[str], typer.Argument(metavar="RUN [RUN]", help=f"One or two runs. {RUN_HELP}")],
    dataset: DataSet = None,
    protocol: OfProtocol = None,
    only: Annotated[
        str | None,
        typer.Option(
            help="different, first-wrong, second-wrong, both-wrong or wrong.",
            show_default="different; of one run wrong",
        ),
    ] = None,
    classes: Annotated[
        list[str] | None,
        typer.Option("--class", help="Only documents of this class, or taken for it; repeat for more."),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            help="Documents shown at most, evenly from all.",
            min=1,
            show_default=f"{ON_TERMINAL}; on a page {ON_PAGE}; with --json all",
        ),
    ] = None,
    texts: Annotated[
        bool, typer.Option("--texts", help="With the texts; else nothing shown or written holds any.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Write a page to this file, .html, instead.", show_default=False),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON Lines, a document each.")] = False,
) -> None:
    """Show the test documents that two runs answer differently, or one gets wrong, and which terms decided.

    With what each class is taken for, and whether a training document is nearly the same.

    Example: textbench errors tfidf nb -d r8 -o errors.html
    """
    from textbench.flows.explain import errors as found_in
    from textbench.flows.run.workspace import home_folder

    if len(run) > 2:
        raise InputError(f"errors are of one run or of two, got {len(run)}")
    check_file("--out", out, [".html", ".htm"])
    home = home_folder()
    rows = [take_run(home, name, dataset, protocol) for name in run]
    found = found_in.errors(home, rows, only or "", classes or ())
    if json:
        for record in found.records(top, with_texts=texts):
            print_json(record)
    elif out is not None:
        from textbench.flows.report import errors_page

        errors_page.write(out, found, top or ON_PAGE, with_texts=texts)
        wrote(out)
    else:
        from rich.console import Console

        from textbench.flows.explain.frames import ErrorResults

        ErrorResults(found, top or ON_TERMINAL, with_texts=texts).print(Console())
