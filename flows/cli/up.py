"""`textbench up`: start the Prefect server and keep it."""

from typing import Annotated

import typer


def up(json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False) -> None:
    """Start the Prefect server, unless one is configured or running, and print where its page is.

    It stops by itself after half an hour without use ($TEXTBENCH_SERVER_IDLE_SECONDS), or by `down`.
    """
    from json import dumps

    from rich.console import Console

    from flows import server
    from flows.home import home_folder

    home = home_folder()
    try:
        with Console(stderr=True).status("starting the Prefect server"):
            info = server.wait(server.start(home))
    except server.ServerError as error:
        typer.echo(f"textbench: {error}", err=True)
        raise typer.Exit(1) from error
    typer.echo(dumps({"prefect": server.status(home)}) if json else info.ui_url)
