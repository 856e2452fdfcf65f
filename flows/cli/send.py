"""`textbench send`: write to MLflow the runs that had to wait for it."""

import typer

from textbench.flows.run import outbox
from textbench.flows.run.workspace import home_folder
from textbench.tasks.tracking.tracker import Tracker, read_settings
from textbench.tasks.words import counted


def send() -> None:
    """Send runs that waited for a tracking server which did not answer (`when_down: spool` in mlflow.yaml).

    The next `textbench run` does so too.

    Example: MLFLOW_TRACKING_URI=http://127.0.0.1:5000 textbench send
    """
    home = home_folder()
    settings = read_settings(home)
    if not outbox.waiting(home, settings.tracking_uri):
        n_others = len(outbox.waiting(home))
        typer.echo(
            f"no runs wait for {settings.tracking_uri}"
            + (f"; {n_others} wait for another" if n_others else "")
        )
        return
    n_sent, refused = outbox.send(home, Tracker(settings))
    typer.echo(f"sent {counted(n_sent, 'run')} to {settings.tracking_uri}")
    for name, reason in refused.items():
        typer.echo(f"textbench: {outbox.folder(home) / name}.json: {reason}", err=True)
    if refused:
        raise typer.Exit(1)
