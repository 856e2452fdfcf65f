"""`textbench down`: stop the worker, MLflow's page and the Prefect server that textbench started."""

import typer


def down() -> None:
    """Stop what textbench started: the worker, MLflow's page, the Prefect server. Configured ones are left alone."""
    from flows import server, services
    from flows.home import home_folder

    try:
        stopped = services.stop(home_folder())
    except server.ServerError as error:
        typer.echo(f"textbench: {error}", err=True)
        raise typer.Exit(1) from error
    typer.echo(f"stopped: {', '.join(stopped)}" if stopped else "no server was running")
