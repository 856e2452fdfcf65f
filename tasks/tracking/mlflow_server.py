"""An MLflow server by its address: does it answer, and does it let this user in? MLflow itself is not imported."""

import base64
import http.client
import os
import socket
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from textbench.tasks import InputError
from textbench.tasks.storage.remote import open_database

SECONDS = 5
# Databases that MLflow keeps runs in, by the beginning of an address, and where they listen.
DATABASE_PORTS = {"postgresql": 5432, "mysql": 3306}


class TrackingError(InputError):
    """The tracking server or database cannot be used; nothing has been computed."""


def require_answer(uri: str) -> None:
    """See that the server is healthy and takes the user and password of the environment. Raises TrackingError."""
    try:
        with urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=SECONDS) as reply:
            if reply.status == 200:
                return _require_access(uri)
            reason = f"status {reply.status}"
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = " ".join(str(getattr(error, "reason", error)).split())
    raise TrackingError(
        f"the MLflow server at {uri} does not answer ({reason}); start it, or change tracking_uri in mlflow.yaml"
    )


def require_database(uri: str) -> None:
    """See that a database server answers, as far as that can be seen in seconds. Raises TrackingError."""
    url = urllib.parse.urlsplit(uri)
    driver = url.scheme.partition("+")[0]
    try:
        place = url.hostname, url.port or DATABASE_PORTS.get(driver, 0)
        if url.scheme in ("postgresql", "postgresql+psycopg2"):
            open_database(url._replace(scheme="postgresql").geturl(), "tracking_uri").close()
        elif place[0] is not None:  # else by a socket of this machine
            socket.create_connection(place, timeout=SECONDS).close()
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        # The address itself holds the password.
        raise TrackingError(
            f"MLflow's database at {url.hostname} cannot be used ({reason}); "
            "start it, or change tracking_uri in mlflow.yaml"
        ) from error


def _require_access(uri: str) -> None:
    # Its health it tells to everybody.
    if os.environ.get("MLFLOW_TRACKING_TOKEN") or Path("~/.mlflow/credentials").expanduser().exists():
        return  # MLflow reads these itself
    user, password = (os.environ.get(f"MLFLOW_TRACKING_{name}", "") for name in ("USERNAME", "PASSWORD"))
    request = urllib.request.Request(f"{uri.rstrip('/')}/api/2.0/mlflow/experiments/search?max_results=1")
    if user or password:
        request.add_header(
            "Authorization", f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
        )
    try:
        urllib.request.urlopen(request, timeout=SECONDS).close()
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            raise TrackingError(
                f"the MLflow server at {uri} does not let this user in (status {error.code}); set "
                "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
            ) from error
    except (OSError, http.client.HTTPException):
        return  # what else is the matter, writing a run will say
