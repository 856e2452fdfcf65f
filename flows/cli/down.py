"""`textbench down`: stop the worker, MLflow's page and the Prefect server that textbench started."""

from typing import Annotated

import typer

from textbench.flows.run.workspace import home_folder
from textbench.flows.servers import prefect_server, services


def down(
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Stop the Prefect server even if other folders use it, and their services."
        ),
    ] = False,
) -> None:
    """Stop what textbench started here: the worker, MLflow's page, and the Prefect server, if no other folder uses it.

    Configured servers are left alone.

    Example: textbench down
    """
    home = home_folder()
    stopped = services.stop(home, everything)
    used = (str(folder) for folder, is_used in prefect_server.folders(home).items() if is_used)
    others = [folder for folder in used if folder != str(home)]
    typer.echo(f"stopped: {', '.join(stopped)}" if stopped else "no server was running")
    if others:
        typer.echo(f"the Prefect server stays up for {', '.join(others)}; textbench down --all stops it")
