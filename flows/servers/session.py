"""A session: what a command needs around a flow, namely a Prefect server that answers and quiet logging."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from textbench.flows.servers import prefect_server

# The command line prints its own progress; Prefect's page keeps the logs.
LOGGING = {
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_EXTRA_LOGGERS": "textbench",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
}


@contextmanager
def opened(home: Path) -> Iterator[prefect_server.ServerInfo]:
    """Begin to start a Prefect server, or find one, and set the environment for Prefect to be imported.

    The server may still be starting when this returns: `server.wait` before the first flow.
    """
    with nullcontext() if prefect_server.configured_api_url() else prefect_server.hold(home):
        info = prefect_server.start(home)
        os.environ.update(prefect_server.environment(home, info.api_url) | LOGGING)
        yield info
