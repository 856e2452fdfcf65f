"""What `textbench up` keeps running: a Prefect server, a worker that runs its deployments, and MLflow's page.

The server is that of `flows.servers.prefect_server`. The worker (`flows.servers.worker`) and the page
(`flows.servers.mlflow_page`) are processes of their own, each with three files in `<home>/services`: `NAME.json`
(pid, address, ...), `NAME.log`, and `NAME.lock`, which the process holds all its life: it is there exactly when its
lock is taken. `start.lock` is held while any is started or stopped.

Importing this module is cheap: neither Prefect nor MLflow is imported by anything here.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from textbench.flows.run.workspace import VARIABLE
from textbench.flows.servers import ports, prefect_server
from textbench.flows.servers.prefect_server import ServerError
from textbench.tasks import InputError
from textbench.tasks.storage.files import write_json
from textbench.tasks.storage.locks import is_free, locked, take
from textbench.tasks.tracking.tracker import QUIET, read_settings

WORKER, MLFLOW = "worker", "mlflow"
NIGHTLY_CRON = "0 2 * * *"  # UTC
MLFLOW_PATH = (
    "/#/experiments?workflowType=machine_learning"  # without it the page opens on traces of language models
)
STOP_SECONDS = 15.0  # how long a process may take to end its runs before it is killed
START_SECONDS = 300.0  # on a machine that is busy; on an idle one it takes twenty
LOG_LINES = 8


def folder(home: Path) -> Path:
    """Return `<home>/services`, where states, logs and locks are."""
    return home / "services"


def read_state(home: Path, name: str) -> dict[str, Any]:
    """Return what `NAME.json` says, empty when missing or damaged; it is true only while the process runs."""
    try:
        state = json.loads((folder(home) / f"{name}.json").read_text("utf-8"))
        return state if isinstance(state, dict) and isinstance(state.get("pid"), int) else {}
    except (OSError, ValueError):
        return {}


def write_state(home: Path, name: str, state: Mapping[str, Any]) -> None:
    """Write `NAME.json`; it appears whole or not at all."""
    write_json(folder(home) / f"{name}.json", dict(state))


def is_running(home: Path, name: str) -> bool:
    """Say whether the process of this name lives."""
    if not folder(home).exists():
        return False
    with locked(folder(home) / "start.lock"):
        return not is_free(_lock(home, name))


def start_mlflow(home: Path, host: str, port: int) -> dict[str, Any]:
    """Begin to serve MLflow's page, unless it runs, and return its state; `wait` waits until it answers.

    Raises InputError when the port cannot be listened on.
    """
    folder(home).mkdir(parents=True, exist_ok=True)
    with locked(folder(home) / "start.lock"):
        if not is_free(_lock(home, MLFLOW)):
            return read_state(home, MLFLOW)
        try:
            listener = ports.listen(host, port)
        except OSError as error:
            raise InputError(f"port {port} on {host} cannot be listened on: {error.strerror}") from error
        with listener:
            address = f"http://{ports.reached_at(host)}:{listener.getsockname()[1]}"
            variables = dict(QUIET) | (
                {} if ports.is_loopback(host) else {"MLFLOW_SERVER_ALLOWED_HOSTS": "*"}
            )
            arguments = ["textbench.flows.servers.mlflow_page", str(listener.fileno())]
            return _spawn(home, MLFLOW, arguments, {"address": address}, variables, [listener.fileno()])


def start_worker(home: Path, api_url: str, cron: str | None) -> dict[str, Any]:
    """Begin to serve the deployments of a Prefect server, unless a worker runs, and return the worker's state.

    `cron` says when `nightly` runs, None that it does so only by hand.
    """
    folder(home).mkdir(parents=True, exist_ok=True)
    with locked(folder(home) / "start.lock"):
        if not is_free(_lock(home, WORKER)):
            return read_state(home, WORKER)
        state = {"address": api_url, "nightly": cron, "ready": False}
        return _spawn(
            home,
            WORKER,
            ["textbench.flows.servers.worker", api_url, cron or ""],
            state,
            prefect_server.environment(home, api_url),
            [],
        )


def _lock(home: Path, name: str) -> Path:
    return folder(home) / f"{name}.lock"


def _spawn(
    home: Path,
    name: str,
    arguments: Sequence[str],
    state: Mapping[str, Any],
    variables: Mapping[str, str],
    descriptors: Sequence[int],
) -> dict[str, Any]:
    """Start `python -m MODULE HOME LOCK ...`, which keeps the lock; call it under the start lock."""
    lock = take(_lock(home, name))
    assert lock is not None, "the start lock keeps others out"
    module, *others = arguments
    try:
        with (folder(home) / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", module, str(home), str(lock), *others],
                pass_fds=(lock, *descriptors),
                env=os.environ | dict(variables) | {VARIABLE: str(home)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # an interrupted command must not take it along
            )
    finally:
        os.close(lock)  # the process has its own copy
    threading.Thread(target=process.wait, daemon=True).start()  # reap it, should it end before us
    begun = {"pid": process.pid, "started": time.time()} | dict(state)
    write_state(home, name, begun)
    return begun


def wait(home: Path, name: str, timeout: float = START_SECONDS) -> None:
    """Wait until the worker has registered its deployments, or the page answers.

    Raises ServerError with the end of its log when it died or was not ready in `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    while not _answers(home, name):
        if not is_running(home, name):
            raise ServerError(f"{_title(name)} ended while it was starting:\n{_log_tail(home, name)}")
        if time.monotonic() > deadline:
            raise ServerError(f"{_title(name)} was not ready in {timeout:g} s:\n{_log_tail(home, name)}")
        time.sleep(0.1)


def _answers(home: Path, name: str) -> bool:
    state = read_state(home, name)
    if name == WORKER:
        return bool(state.get("ready"))
    return "address" in state and _is_healthy(state["address"])


def _is_healthy(address: str, timeout: float = 2.0) -> bool:
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{address.rstrip('/')}/health", timeout=timeout) as answer:
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False


def mlflow_address(home: Path, uri: str, run_id: str | None = None) -> str | None:
    """Return the address that shows the runs kept at `uri`, or one of them; None when no page of theirs is up."""
    settings = read_settings(home)
    state = _mlflow_status(home) if uri == settings.tracking_uri else {}
    address = uri if uri.startswith("http") else state.get("address") if state.get("healthy") else None
    if address is None:
        return None
    page = state.get("page") or f"{address.rstrip('/')}{MLFLOW_PATH}"
    return f"{address.rstrip('/')}/#/runs/{run_id}" if run_id else page


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
    return found | {WORKER: _worker_status(home), MLFLOW: _mlflow_status(home)}


def _worker_status(home: Path) -> dict[str, Any]:
    state = read_state(home, WORKER) if is_running(home, WORKER) else {}
    found = {"address": state.get("address"), "healthy": bool(state.get("ready")), "pid": state.get("pid")}
    page = f"{state['address'].removesuffix('/api')}/deployments" if state else None
    return found | {"configured": False, "nightly": state.get("nightly"), "page": page}


def _mlflow_status(home: Path) -> dict[str, Any]:
    settings = read_settings(home)
    uri = settings.tracking_uri
    if not settings.is_on:
        return {"address": None, "healthy": False, "pid": None, "configured": True, "page": None}
    if uri.startswith("http"):
        found = {"address": uri, "healthy": _is_healthy(uri), "pid": None, "configured": True}
        return found | {"page": f"{uri.rstrip('/')}{MLFLOW_PATH}"}
    state = read_state(home, MLFLOW) if is_running(home, MLFLOW) else {}
    address = state.get("address")
    found = {"address": address, "healthy": bool(state) and _answers(home, MLFLOW), "pid": state.get("pid")}
    return found | {"configured": False, "page": state.get("page")}


def stop(home: Path, everything: bool = False) -> list[str]:
    """Stop the worker, MLflow's page and the Prefect server, in this order; return the names of those that ran.

    The Prefect server stays while other results folders use it; with `everything` it is stopped with their workers
    and pages. A run a worker has begun is ended and shown as Crashed. Servers that the user configured are left alone.
    Raises ServerError when one cannot be stopped.
    """
    others = [other for other in prefect_server.folders(home) if other != home] if everything else []
    names = [name for name in (WORKER, MLFLOW) if _end(home, name)]
    names += [f"{name} of {other}" for other in others for name in (WORKER, MLFLOW) if _end(other, name)]
    return [*names, *(["prefect"] if prefect_server.stop(home, everything) else [])]


def _end(home: Path, name: str) -> bool:
    if not folder(home).exists():
        return False
    with locked(folder(home) / "start.lock"):
        state, was_running = read_state(home, name), not is_free(_lock(home, name))
        if was_running and not state:
            raise ServerError(
                f"{_title(name)} runs, but {folder(home) / f'{name}.json'} does not say its pid"
            )
        if was_running:
            os.kill(state["pid"], signal.SIGTERM)
            is_gone = is_free(_lock(home, name), STOP_SECONDS)
            # It leads a group of its own: what it has started goes with it.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(state["pid"], signal.SIGKILL)
            if not is_gone and not is_free(_lock(home, name), STOP_SECONDS):
                raise ServerError(f"{_title(name)}, pid {state['pid']}, cannot be stopped")
        (folder(home) / f"{name}.json").unlink(missing_ok=True)
    return was_running


def _title(name: str) -> str:
    return {WORKER: "the Prefect worker", MLFLOW: "the MLflow page"}[name]


def _log_tail(home: Path, name: str) -> str:
    try:
        lines = (folder(home) / f"{name}.log").read_text("utf-8", errors="replace").splitlines()
    except OSError as error:
        return f"no log: {error}"
    return "\n".join(lines[-LOG_LINES:])
