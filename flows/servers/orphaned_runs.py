"""Flow runs abandoned by a process that was killed: found by their owner's tag, and set to Crashed.

Prefect hears nothing from a killed process and would show its runs as running for ever.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter
from prefect.client.schemas.objects import FlowRun, TaskRun
from prefect.exceptions import PrefectHTTPStatusError
from prefect.states import Crashed

from textbench.flows.servers.service import ServerError

PREFIX = "owner:"
PAGE = 200  # the most that Prefect's API returns at once
MESSAGE = "The process of this run was killed."
Run = TypeVar("Run", FlowRun, TaskRun)


def _in_state(*types: str) -> dict[str, Any]:
    return {"state": {"type": {"any_": types}}}


UNFINISHED = FlowRunFilter.model_validate(_in_state("RUNNING", "PENDING", "CANCELLING"))
CRASHED = FlowRunFilter.model_validate(_in_state("CRASHED"))
UNFINISHED_TASKS = TaskRunFilter.model_validate(_in_state("RUNNING", "PENDING", "SCHEDULED"))


def owner_tag() -> str:
    """Return the tag a flow run carries to say whose it is: `owner:<hostname>:<pid>:<its start>`."""
    pid = os.getpid()
    return f"{PREFIX}{socket.gethostname()}:{pid}:{_start(pid):.2f}"


def _start(pid: int) -> float:
    """Return when a process began: on Linux seconds since boot, which setting the clock does not change.

    Raises psutil.NoSuchProcess when there is none.
    """
    try:
        # The name, which may hold anything, stands in brackets; the start is field 22 of proc(5).
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return psutil.Process(pid).create_time()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def crash_abandoned_runs() -> int:
    """Set to Crashed what dead processes of this machine left running or pending; return how many runs.

    Flow runs first, then the task runs of crashed flow runs. The latter reach the server late, as events, so
    those of flow runs that crashed earlier are looked at too. Two requests when there is nothing to do. The
    environment must name a server that answers (`flows.servers.prefect_server.environment`); no event loop may be
    running.

    Raises ServerError when the server lets nobody in by this user and password, or cannot reach its database, and
    when it is gone meanwhile.
    """
    try:
        return asyncio.run(_crash_abandoned_runs())
    except PrefectHTTPStatusError as error:
        status, url = error.response.status_code, error.request.url
        remedy = (
            "set PREFECT_API_AUTH_STRING to USER:PASSWORD" if status in (401, 403) else "its log says why"
        )
        address = f"{url.scheme}://{url.netloc.decode()}"
        raise ServerError(
            f"the Prefect server at {address} answers with status {status}; {remedy}"
        ) from error
    except httpx.TransportError as error:
        raise ServerError(
            f"the Prefect server stopped answering ({type(error).__name__}); the same command goes on"
        ) from error


async def _crash_abandoned_runs() -> int:
    async with get_client() as client:
        flow_runs = [
            run
            for run in await _every(client.read_flow_runs, flow_run_filter=UNFINISHED)
            if _is_abandoned(run)
        ]
        for flow_run in flow_runs:
            await client.set_flow_run_state(flow_run.id, Crashed(message=MESSAGE), force=True)
        task_runs = await _orphaned_task_runs(client)
        for task_run in task_runs:
            await client.set_task_run_state(task_run.id, Crashed(message=MESSAGE), force=True)
    return len(flow_runs) + len(task_runs)


async def _every(
    read: Callable[..., Awaitable[list[Run]]], **wanted: FlowRunFilter | TaskRunFilter
) -> list[Run]:
    """Return all runs that a method of Prefect's client finds, page by page."""
    found = page = await read(**wanted, limit=PAGE)
    while len(page) == PAGE:
        page = await read(**wanted, limit=PAGE, offset=len(found))
        found = found + page
    return found


async def _orphaned_task_runs(client: PrefectClient) -> list[TaskRun]:
    """Return the unfinished task runs of crashed flow runs that dead processes of this machine owned."""
    task_runs = await _every(client.read_task_runs, flow_run_filter=CRASHED, task_run_filter=UNFINISHED_TASKS)
    parents = {run.flow_run_id for run in task_runs if run.flow_run_id}
    abandoned = {parent for parent in parents if _is_abandoned(await client.read_flow_run(parent))}
    return [run for run in task_runs if run.flow_run_id in abandoned]


def _is_abandoned(flow_run: FlowRun) -> bool:
    owners = [tag.removeprefix(PREFIX) for tag in flow_run.tags if tag.startswith(PREFIX)]
    return bool(owners) and all(_is_dead(owner) for owner in owners)


def _is_dead(owner: str) -> bool:
    """Say whether `<hostname>:<pid>:<its start>` was a process of this machine that is no more."""
    try:
        hostname, pid, start = owner.rsplit(":", 2)
        if hostname != socket.gethostname():
            return False
        is_zombie = psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE  # its parent has not noticed
        return is_zombie or f"{_start(int(pid)):.2f}" != start
    except psutil.NoSuchProcess:
        return True
    except ValueError:
        return False
