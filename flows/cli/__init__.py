"""The command line: one file a command, imported without what is slow; `api` is the same from Python."""

import os
import sys
from typing import Annotated

import typer

from textbench.flows.cli.check import check
from textbench.flows.cli.claims import claims
from textbench.flows.cli.compare import compare
from textbench.flows.cli.curve import curve
from textbench.flows.cli.doctor import doctor
from textbench.flows.cli.down import down
from textbench.flows.cli.ensemble import ensemble
from textbench.flows.cli.errors import errors
from textbench.flows.cli.export import export
from textbench.flows.cli.fetch import fetch
from textbench.flows.cli.forget import forget
from textbench.flows.cli.leaderboard import leaderboard
from textbench.flows.cli.list import list_app
from textbench.flows.cli.models import models_app
from textbench.flows.cli.query import query
from textbench.flows.cli.report import report
from textbench.flows.cli.results import results_app
from textbench.flows.cli.retrieve import retrieve
from textbench.flows.cli.run import run
from textbench.flows.cli.score import score
from textbench.flows.cli.send import send
from textbench.flows.cli.serve import serve
from textbench.flows.cli.show import show
from textbench.flows.cli.status import status
from textbench.flows.cli.store import store_app
from textbench.flows.cli.terms import terms
from textbench.flows.cli.texts import texts
from textbench.flows.cli.transform import transform
from textbench.flows.cli.up import up
from textbench.flows.cli.voice import VOICE
from textbench.flows.servers.service import ServerError
from textbench.tasks import InputError

app = typer.Typer(
    name="textbench",
    help="Compare text representations: same data, same protocols, every number explained.",
    epilog="Start with: textbench run quick. Then: textbench leaderboard, textbench show RUN.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = (
    run,
    curve,
    compare,
    ensemble,
    errors,
    claims,
    report,
    retrieve,
    query,
    terms,
    leaderboard,
    show,
    export,
    transform,
    serve,
    texts,
    score,
)
for command in (*COMMANDS, check, fetch, doctor, up, down, status, send, forget):
    app.command(command.__name__)(command)
app.add_typer(list_app, name="list")
app.add_typer(models_app, name="models")
app.add_typer(results_app, name="results")
app.add_typer(store_app, name="store")


def print_version(is_asked: bool) -> None:
    """Print the version and end."""
    if is_asked:
        from importlib.metadata import version

        print(f"textbench {version('textbench')}")
        raise typer.Exit


@app.callback()
def everywhere(
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Say nothing but results, warnings and errors.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say each stage that begins and each cell that ends.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=print_version, is_eager=True),
    ] = False,
) -> None:
    """Set what holds for every command."""
    if quiet and verbose:
        raise InputError("--quiet and --verbose exclude each other: give one of them")
    VOICE.set("quiet" if quiet else "verbose" if verbose else "normal")


def main() -> None:
    """Run the command line; exit code 0 for success, 1 when a cell failed, 2 for bad input."""
    try:
        app()
    except InputError as error:
        print(f"textbench: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        from textbench.tasks.storage import isolate

        print("textbench: stopped", file=sys.stderr, flush=True)
        isolate.unlink_semaphores()
        os._exit(130)
    except ServerError as error:
        print(f"textbench: {error}", file=sys.stderr)
        sys.exit(1)
