"""What `textbench up` keeps running: a Prefect server, a worker that runs its deployments, and MLflow's page.

The server is that of `flows.servers.prefect_server`. The worker (`flows.servers.worker`) and the page
(`flows.servers.mlflow_page`) are services with files in `<home>/services`. Importing this module is cheap: neither
Prefect nor MLflow is imported by anything here.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textbench.flows.run import mlflow_views
from textbench.flows.run.health import answers
from textbench.flows.run.workspace import SERVICES, VARIABLE
from textbench.flows.servers import ports, prefect_server
from textbench.flows.servers.service import Launch, Service, State
from textbench.tasks.tracking.tracker import QUIET

NIGHTLY_CRON = "0 2 * * *"  # UTC
# The worker's log has what a command shows by itself.
WORKER_LOGGING = {"PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "WARNING", "PREFECT_LOGGING_LEVEL": "INFO"}


def folder(home: Path) -> Path:
    """Return `<home>/services`, where states, logs and locks are."""
    return home / SERVICES


def worker(home: Path) -> Service:
    """Return the worker; it is ready when its deployments are registered.

    Its state has `address`, that of the server it works for, `nightly`, when it runs that flow, and `ready`.
    """
    return Service("the Prefect worker", folder(home), "worker", lambda state: bool(state.get("ready")))


def mlflow_page(home: Path) -> Service:
    """Return MLflow's page. Its state has its `address`, and `page`, what of it is to be opened."""

    def is_ready(state: State) -> bool:
        return "address" in state and answers(f"{state['address']}/health")

    return Service("the MLflow page", folder(home), "mlflow", is_ready)


def start_mlflow(home: Path, host: str, port: int) -> State:
    """Begin to serve MLflow's page, unless it runs, and return its state.

    Raises InputError when the port cannot be listened on.
    """

    def launch() -> Launch:
        listener = ports.listen_or_refuse(host, port)
        variables = QUIET | ({} if ports.is_loopback(host) else {"MLFLOW_SERVER_ALLOWED_HOSTS": "*"})
        state = {"address": f"http://{ports.reached_at(host)}:{listener.getsockname()[1]}", "host": host}
        command = _command("mlflow_page", home, str(listener.fileno()))
        return Launch(command, state, _variables(home, variables), listener=listener)

    return mlflow_page(home).start(launch)


def start_worker(home: Path, api_url: str, cron: str | None) -> State:
    """Begin to serve the deployments of a Prefect server, unless a worker runs, and return the worker's state.

    `cron` says when `nightly` runs, None that it does so only by hand.
    """
    state = {"address": api_url, "nightly": cron, "ready": False}
    variables = prefect_server.environment(home, api_url) | prefect_server.LOGGING | WORKER_LOGGING
    command = _command("worker", home, api_url, cron or "")
    return worker(home).start(lambda: Launch(command, state, _variables(home, variables)))


def _command(module: str, home: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", f"textbench.flows.servers.{module}", str(home), *arguments]


def _variables(home: Path, others: Mapping[str, str]) -> dict[str, str]:
    return {**others, VARIABLE: str(home)}


def status(home: Path) -> dict[str, dict[str, Any]]:
    """Return `prefect`, `worker` and `mlflow`, each with `address`, `healthy`, `pid` and `configured`.

    The address of the worker is that of the server it works for, and it has `nightly`, the schedule, too. Our Prefect
    server has `folders`, those that have used it since it started, and whether they do so now. `page` is
    what to open in a browser. What does not run has None for its address, what the user runs himself for its pid; what
    is configured and has no address is switched off.
    """
    prefect = prefect_server.status(home)
    page = prefect["address"].removesuffix("/api") if prefect["address"] else None
    served = {str(folder): is_used for folder, is_used in prefect_server.folders(home).items()}
    found = {"prefect": prefect | {"page": page, "folders": served}}
    return found | {"worker": _worker_status(home), "mlflow": mlflow_views.status(home)}


def _worker_status(home: Path) -> dict[str, Any]:
    state = worker(home).running_state()
    found = {"address": state.get("address"), "healthy": bool(state.get("ready")), "pid": state.get("pid")}
    page = f"{state['address'].removesuffix('/api')}/deployments" if state else None
    return found | {"configured": False, "nightly": state.get("nightly"), "page": page}


def stop(home: Path, everything: bool = False) -> list[str]:
    """Stop the worker, MLflow's page and the Prefect server, in this order; return the names of those that ran.

    The Prefect server stays while other results folders use it; with `everything` it is stopped with their workers
    and pages. A run a worker has begun is ended and shown as Crashed. Servers that the user configured are left alone.
    Raises ServerError when one cannot be stopped.
    """
    others = [other for other in prefect_server.folders(home) if other != home] if everything else []
    names = []
    for place in (home, *others):
        ran = [service.name for service in (worker(place), mlflow_page(place)) if service.stop()]
        names += ran if place == home else [f"{name} of {place}" for name in ran]
    return [*names, *(["prefect"] if prefect_server.stop(home, everything) else [])]
