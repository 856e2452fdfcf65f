"""MLflow's page for the runs of a results folder, as a process of its own that `services` starts and stops.

`python -m textbench.flows.servers.mlflow_page HOME SOCKET` is handed the socket to listen on. `mlflow server` would do
the same with two processes more and no way to hand it a port that is its own.
"""

import os
import socket
import sys
from pathlib import Path

from textbench.flows.run.mlflow_views import arrange, runs_page
from textbench.flows.servers import services
from textbench.tasks.tracking.tracker import Tracker, read_settings


def serve(home: Path, listener: int) -> None:
    """Serve the runs that mlflow.yaml points to, until SIGTERM. The database is made if it is not there."""
    settings = read_settings(home)
    tracker = Tracker(settings)
    tracker.prepare()
    arrange(tracker)
    page = services.mlflow_page(home)
    page.note(page=runs_page(tracker, page.state()["address"]))
    # What `mlflow server` hands its processes.
    os.environ["_MLFLOW_SERVER_FILE_STORE"] = settings.tracking_uri
    os.environ["_MLFLOW_SERVER_ARTIFACT_ROOT"] = settings.artifact_root
    import uvicorn
    from mlflow.server.fastapi_app import app

    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=2)
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=listener)])


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
