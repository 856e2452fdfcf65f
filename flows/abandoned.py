"""Flow runs abandoned by a process that was killed: found by their owner's tag, and set to Crashed.

Prefect hears nothing from a killed process and would show its runs as running for ever.
"""

import asyncio
import os
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prefect.client.orchestration import PrefectClient
    from prefect.client.schemas.objects import FlowRun, TaskRun

PREFIX = "owner:"
PAGE = 200  # the most that Prefect's API returns at once
# Process start times are read off a clock that may be corrected meanwhile.
CLOCK_SECONDS = 2.0
MESSAGE = "The process of this run was killed."


def owner_tag() -> str:
    """Return the tag a flow run carries to say whose it is: `owner:<hostname>:<pid>:<create time>`."""
    import psutil

    pid = os.getpid()
    return f"{PREFIX}{socket.gethostname()}:{pid}:{psutil.Process(pid).create_time():.2f}"


def crash_abandoned_runs() -> int:
    """Set to Crashed what dead processes of this machine left running or pending; return how many runs.

    Flow runs first, then the task runs of crashed flow runs. The latter reach the server late, as events, so
    those of flow runs that crashed earlier are looked at too. Two requests when there is nothing to do. The
    environment must name a server that answers (`flows.server.environment`); no event loop may be running.
    """
    return asyncio.run(_crash_abandoned_runs())


async def _crash_abandoned_runs() -> int:
    from prefect.client.orchestration import get_client
    from prefect.states import Crashed

    async with get_client() as client:
        flow_runs = [run for run in await _unfinished_flow_runs(client) if _is_abandoned(run)]
        for flow_run in flow_runs:
            await client.set_flow_run_state(flow_run.id, Crashed(message=MESSAGE), force=True)
        task_runs = await _orphaned_task_runs(client)
        for task_run in task_runs:
            await client.set_task_run_state(task_run.id, Crashed(message=MESSAGE), force=True)
    return len(flow_runs) + len(task_runs)


async def _unfinished_flow_runs(client: "PrefectClient") -> "list[FlowRun]":
    from prefect.client.schemas.filters import FlowRunFilter

    unfinished = FlowRunFilter.model_validate(
        {"state": {"type": {"any_": ["RUNNING", "PENDING", "CANCELLING"]}}}
    )
    found: list[FlowRun] = []
    while (
        len(page := await client.read_flow_runs(flow_run_filter=unfinished, limit=PAGE, offset=len(found)))
        == PAGE
    ):
        found += page
    return found + page


async def _orphaned_task_runs(client: "PrefectClient") -> "list[TaskRun]":
    """Return the unfinished task runs of crashed flow runs that dead processes of this machine owned."""
    from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter

    crashed = FlowRunFilter.model_validate({"state": {"type": {"any_": ["CRASHED"]}}})
    unfinished = TaskRunFilter.model_validate(
        {"state": {"type": {"any_": ["RUNNING", "PENDING", "SCHEDULED"]}}}
    )
    task_runs: list[TaskRun] = []
    while True:
        page = await client.read_task_runs(
            flow_run_filter=crashed, task_run_filter=unfinished, limit=PAGE, offset=len(task_runs)
        )
        task_runs += page
        if len(page) < PAGE:
            break
    parents = {run.flow_run_id for run in task_runs if run.flow_run_id}
    abandoned = {parent for parent in parents if _is_abandoned(await client.read_flow_run(parent))}
    return [run for run in task_runs if run.flow_run_id in abandoned]


def _is_abandoned(flow_run: "FlowRun") -> bool:
    owners = [tag.removeprefix(PREFIX) for tag in flow_run.tags if tag.startswith(PREFIX)]
    return bool(owners) and all(_is_dead(owner) for owner in owners)


def _is_dead(owner: str) -> bool:
    """Say whether `<hostname>:<pid>:<create time>` was a process of this machine that is no more."""
    import psutil

    try:
        hostname, pid, created = owner.rsplit(":", 2)
        if hostname != socket.gethostname():
            return False
        process = psutil.Process(int(pid))
        is_zombie = process.status() == psutil.STATUS_ZOMBIE  # dead, and its parent has not noticed
        return is_zombie or abs(process.create_time() - float(created)) > CLOCK_SECONDS
    except psutil.NoSuchProcess:
        return True
    except ValueError:
        return False
