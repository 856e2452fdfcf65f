"""The worker: runs what people start on Prefect's page, and `nightly` on its schedule, one flow run at a time.

`python -m textbench.flows.servers.worker HOME API_URL CRON` is started by `flows.servers.services`. CRON is empty for
no schedule. It ends by SIGTERM, or when its server does.
"""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import DeploymentFilter
from prefect.runner import Runner
from prefect.states import Crashed

from textbench.flows.deployments import deployments
from textbench.flows.servers import prefect_server, services
from textbench.flows.servers.deployment_names import ending, owners
from textbench.flows.servers.orphaned_runs import UNFINISHED, crash_abandoned_runs
from textbench.tasks.storage.locks import locked

POLL_SECONDS = 2.0  # how long a run that was just asked for waits to be seen
WATCH_SECONDS = 5.0
MESSAGE = "The worker of this run was killed."


def work(home: Path, api_url: str, cron: str | None) -> None:
    """Register the deployments and run what is asked of them, until SIGTERM or the server's end."""
    info = prefect_server.ServerInfo(home, api_url, prefect_server.configured_api_url() == api_url)
    with nullcontext() if info.configured else prefect_server.hold(home):
        prefect_server.wait(info)
        if not info.configured:
            threading.Thread(target=_end_with_server, args=(home, api_url), daemon=True).start()
        # Two runs at once would take each other's cores, and the seconds of both would be wrong.
        runner = Runner(name="textbench", limit=1, query_seconds=POLL_SECONDS, pause_on_shutdown=True)
        place = services.folder(home) if info.configured else prefect_server.folder(home)
        with locked(place / "deployments.lock"):  # two folders at once choose two names
            own = deployments(home, cron, ending(home, asyncio.run(owners())))
            made: list[Any] = [runner.add_deployment(deployment) for deployment in own]
        crash_abandoned_runs()
        asyncio.run(_crash_unfinished(made))
        services.worker(home).note(ready=True)
        asyncio.run(runner.start())


async def _crash_unfinished(deployments: Sequence[UUID]) -> None:
    """Set to Crashed what a worker that was killed left running: nobody but the worker runs these deployments."""
    own = DeploymentFilter.model_validate({"id": {"any_": deployments}})
    async with get_client() as client:
        for run in await client.read_flow_runs(flow_run_filter=UNFINISHED, deployment_filter=own):
            await client.set_flow_run_state(run.id, Crashed(message=MESSAGE), force=True)


def _end_with_server(home: Path, api_url: str) -> None:
    """End this process when our server is gone, or has come back elsewhere: a worker without one only waits."""
    while True:
        time.sleep(WATCH_SECONDS)
        if prefect_server.status(home)["address"] != api_url:
            os.kill(os.getpid(), signal.SIGTERM)
            return


if __name__ == "__main__":
    work(Path(sys.argv[1]), sys.argv[2], sys.argv[3] or None)
