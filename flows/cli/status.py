"""`textbench status`: which services are used, where they are, and whether they answer."""

from json import dumps
from typing import Annotated, Any

import typer

from textbench.flows.run import outbox, prometheus
from textbench.flows.run.workspace import home_folder
from textbench.flows.servers import services
from textbench.tasks import InputError
from textbench.tasks.words import counted


def status(
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
    metrics: Annotated[bool, typer.Option("--metrics", help="Print Prometheus' text format.")] = False,
) -> None:
    """Say where the Prefect server, its worker and MLflow's page are, whether they answer, and if runs wait.

    Example: textbench status --json
    """
    home = home_folder()
    if json and metrics:
        raise InputError("--json and --metrics are two formats: choose one")
    found = services.status(home)
    if metrics:
        typer.echo(prometheus.exposition(home, found), nl=False)
        return
    waiting = outbox.waiting(home)
    if waiting:
        found["spool"] = {"waiting": len(waiting), "folder": str(outbox.folder(home))}
    if json:
        typer.echo(dumps(found))
        return
    for name, state in found.items():
        typer.echo(f"{name:8} {_line(name, state)}")
        for folder, is_used in state.get("folders", {}).items():
            typer.echo(f"{'':8} serves {folder}{'' if is_used else ' (not in use)'}")


def _line(name: str, state: dict[str, Any]) -> str:
    if name == "spool":
        waiting = counted(state["waiting"], "run waits", "runs wait")
        return f"{waiting} in {state['folder']}; to send to MLflow: textbench send"
    if state["address"] is None and state["configured"]:
        return "is not used: tracking_uri is none"
    if state["address"] is None:
        how = "the next command that needs one starts it" if name == "prefect" else "textbench up starts it"
        return f"is not running; {how}"
    whose = "configured" if state["configured"] else f"started by textbench, pid {state['pid']}"
    if name == "worker":
        when = f", nightly at {state['nightly']} UTC" if state["nightly"] else ""
        return f"{'is ready' if state['healthy'] else 'is starting'} ({whose}){when}"
    return f"{'answers' if state['healthy'] else 'does not answer'} at {state['page']} ({whose})"
