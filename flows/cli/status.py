"""`textbench status`: which Prefect server is used, and whether it answers."""

from typing import Annotated

import typer


def status(json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False) -> None:
    """Say which Prefect server a command would use and whether it answers."""
    from json import dumps

    from flows import server
    from flows.home import home_folder

    found = server.status(home_folder())
    if json:
        typer.echo(dumps({"prefect": found}))
    elif found["address"] is None:
        typer.echo("no Prefect server is running; the next command that needs one starts it")
    else:
        whose = "configured" if found["configured"] else f"started by textbench, pid {found['pid']}"
        answer = "answers" if found["healthy"] else "does not answer"
        typer.echo(f"Prefect at {found['address']} ({whose}) {answer}")
