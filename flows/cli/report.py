"""`textbench report`: everything that is known, as one page to pass on."""

from pathlib import Path
from typing import Annotated

import typer

from textbench.flows.cli.output import check_figure, check_file, check_folder
from textbench.tasks import InputError

FILE = Path("report.html")


def report(
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            help="Only local runs of this sweep, such as quick; repeat for more.", show_default="all"
        ),
    ] = None,
    claims: Annotated[
        bool,
        typer.Option(
            "--claims",
            help="With the papers' claims and all that the repository records; works without runs.",
        ),
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write, .html.")] = FILE,
    output: Annotated[
        Path | None, typer.Option("--output", hidden=True, help="What --out was called before.")
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option(
            help="Write every table as CSV, Markdown and LaTeX into this folder too.", show_default=False
        ),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            help="With --claims: draw the verdicts to this file (.svg, .png, .pdf) too.", show_default=False
        ),
    ] = None,
    publish: Annotated[
        bool,
        typer.Option(
            "--publish/--no-publish",
            help="Log it to MLflow, and link it from Prefect's page of the last runs.",
        ),
    ] = True,
    record: Annotated[
        bool,
        typer.Option(
            "--record",
            help="Write the audits, leaderboards, curves and comparisons of probes of this results folder into "
            "the repository; runs of code that has changed since are left out.",
        ),
    ] = False,
) -> None:
    """Write the report: which representation, how sure, at what cost, how each number was made.

    One HTML file without network: your runs, and apart what is recorded of the same data sets and protocols.

    With --claims it also has what the papers claimed, and everything that the repository records.

    Example: textbench report -o report.html --tables tables/
    """
    import sys

    from textbench.flows.plots.verdicts import draw
    from textbench.flows.referee.held import counts, headlines
    from textbench.flows.referee.ledger import choose, ledger
    from textbench.flows.report import audits, page, probes, recorded, recorded_curves
    from textbench.flows.report.chapters import chapters as build
    from textbench.flows.report.evidence import gather
    from textbench.flows.report.publish import publish as log
    from textbench.flows.run.workspace import home_folder
    from textbench.flows.servers import prefect_server
    from textbench.tasks.words import counted

    out = output or out
    check_file("--out", out, [".html", ".htm"])
    check_figure(figure)
    check_folder("--tables", tables)
    if figure is not None and not claims:
        raise InputError("--figure draws the verdicts on the papers' claims: add --claims")
    home = home_folder()
    evidence = gather(home, sweep or ())
    if record:
        n_lines, n_curves = recorded.record(evidence), recorded_curves.record(evidence)
        said = f"{counted(audits.record(evidence), 'audit')}, {counted(n_lines, 'line')} of leaderboards, "
        said += f"{n_curves} of curves"
        said += f", {counted(probes.record(evidence), 'comparison')} of probes"
        if n_left := recorded.n_of_earlier_code(evidence):
            said += f"; left out {counted(n_left, 'run')} of code that has changed since: run the same commands again"
        print(f"textbench: recorded {said}", file=sys.stderr)
    if evidence.is_empty and not claims:
        raise InputError(
            f"nothing has been run in {home}: run something (textbench run quick), or ask for the recorded evidence "
            "(textbench report --claims)"
        )
    entries = ledger(home, choose()) if claims else None
    chapters = build(evidence, entries)
    page.write(out, evidence, chapters)
    print(f"Wrote {out} ({out.stat().st_size / 1e6:.1f} MB): open it in a browser, or print it to PDF.")
    if tables is not None:
        print(
            f"Wrote {page.write_tables(tables, chapters)} tables to {tables}, each as CSV, Markdown and LaTeX."
        )
    if figure is not None and entries is not None:
        draw(counts(entries), figure, headlines(entries))
    if publish:
        server = prefect_server.status(home)
        for line in log(home, out, server["address"] if server["healthy"] else None):
            print(line)
