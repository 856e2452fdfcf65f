"""`textbench down`: stop the Prefect server that textbench started."""

import typer


def down() -> None:
    """Stop the Prefect server that textbench started; a configured one is left alone."""
    from flows import server
    from flows.home import home_folder

    try:
        was_running = server.stop(home_folder())
    except server.ServerError as error:
        typer.echo(f"textbench: {error}", err=True)
        raise typer.Exit(1) from error
    typer.echo("stopped" if was_running else "no server was running")
