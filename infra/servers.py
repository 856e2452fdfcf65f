"""The servers of a group from packages, without Docker: PostgreSQL, storage that speaks S3, Prefect, MLflow and Dask.

    python -m infra.servers start | status | stop | env

They are the services of `compose.yaml`, on this machine's loopback alone. Users and passwords are variables of the
environment, the same as in `.env.example`. Each server but PostgreSQL is a service (`flows.servers.service`) with a
folder of its own in `$TEXTBENCH_SERVERS`, else `.textbench/servers`, for data, log and process id.

The storage is moto's, from a package: it keeps everything in memory and lets everybody in, so it is for trying only.
Set AWS_ENDPOINT_URL to storage of your own (MinIO, Ceph, a provider's), and that is used and left alone.
"""

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from infra import postgres
from textbench.flows.run.health import answers
from textbench.flows.servers import ports
from textbench.flows.servers.ports import HOST
from textbench.flows.servers.service import STOP_SECONDS, Launch, ServerError, Service
from textbench.tasks import InputError

INFRA = Path(__file__).resolve().parent
FOLDER_VARIABLE = "TEXTBENCH_SERVERS"
SECRETS = (
    "POSTGRES_PASSWORD",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "MLFLOW_AUTH_ADMIN_USERNAME",
    "MLFLOW_AUTH_ADMIN_PASSWORD",
    "MLFLOW_FLASK_SERVER_SECRET_KEY",
    "PREFECT_SERVER_API_AUTH_STRING",
)
# The port of each server, and the variable that names another.
PORTS = {
    "postgres": ("POSTGRES_PORT", 5432),
    "s3": ("S3_PORT", 9000),
    "prefect": ("PREFECT_PORT", 4200),
    "mlflow": ("MLFLOW_PORT", 5000),
    "dask": ("DASK_PORT", 8786),
    "dask-page": ("DASK_PAGE_PORT", 8787),
}
BUCKET = "textbench"
STORE = f"s3://{BUCKET}/store"
LOCKS = STUDIES = "postgresql:///optuna"
POSTGRES = "postgres"
N_WORKERS = 2
START_SECONDS = 600.0  # on a machine that is busy; on an idle one all of it takes thirty
ANSWER_SECONDS = 10.0


@dataclass(frozen=True)
class Server:
    """A process: what starts it, the port it takes, the address that says it is healthy, and its own variables."""

    name: str
    command: Sequence[str]
    port: str = ""
    health: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """All servers of a folder, by the settings that the environment holds."""

    folder: Path
    ports: Mapping[str, int]

    def address(self, name: str, scheme: str = "http") -> str:
        """Return where a server listens."""
        return f"{scheme}://{HOST}:{self.ports[name]}"

    @property
    def storage(self) -> str:
        """The address of the storage: the user's own if one is named, else that of ours."""
        return os.environ.get("AWS_ENDPOINT_URL") or self.address("s3")

    def servers(self) -> list[Server]:
        """Return the servers beside PostgreSQL, in the order in which they are started."""
        python = [sys.executable, "-m"]
        storage = [self._storage(python)] if self.storage == self.address("s3") else []
        return [*storage, self._prefect(python), self._mlflow(python), *self._dask(python)]

    def _storage(self, python: list[str]) -> Server:
        command = [*python, "moto.server", "-H", HOST, "-p", str(self.ports["s3"])]
        return Server("s3", command, "s3", f"{self.address('s3')}/moto-api/")

    def _prefect(self, python: list[str]) -> Server:
        port = str(self.ports["prefect"])
        database = {"DRIVER": "postgresql+asyncpg", "HOST": HOST, "PORT": str(self.ports[POSTGRES])}
        database |= {"USER": postgres.USER, "NAME": "prefect", "PASSWORD": os.environ["POSTGRES_PASSWORD"]}
        variables = (
            {f"PREFECT_SERVER_DATABASE_{name}": value for name, value in database.items()}
            | {
                "PREFECT_HOME": str(self.folder / "prefect"),
                "PREFECT_PROFILE": "ephemeral",  # built in: the settings of whoever starts the servers do not count
                "PREFECT_SERVER_UI_API_URL": f"{self.address('prefect')}/api",
                "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
                "DO_NOT_TRACK": "1",
            }
        )
        command = [*python, "prefect", "server", "start", "--host", HOST, "--port", port]
        return Server("prefect", command, "prefect", f"{self.address('prefect')}/api/health", variables)

    def _mlflow(self, python: list[str]) -> Server:
        command = [*python, "mlflow", "server", "--app-name", "basic-auth", "--host", HOST]
        command += ["--port", str(self.ports["mlflow"]), "--workers", "1"]
        command += ["--backend-store-uri", "postgresql:///mlflow"]
        command += ["--artifacts-destination", f"s3://{BUCKET}/mlflow"]
        variables = self.postgres_variables() | {
            "MLFLOW_AUTH_CONFIG_PATH": str(INFRA / "mlflow-users.ini"),
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "AWS_ENDPOINT_URL": self.storage,
        }
        return Server("mlflow", command, "mlflow", f"{self.address('mlflow')}/health", variables)

    def _dask(self, python: list[str]) -> list[Server]:
        scheduler = [*python, "dask", "scheduler", "--host", HOST, "--port", str(self.ports["dask"])]
        page = self.address("dask-page")
        scheduler += ["--dashboard-address", page.removeprefix("http://")]
        worker = [*python, "dask", "worker", self.address("dask", "tcp"), "--host", HOST, "--nthreads", "1"]
        workers = []
        for number in range(1, N_WORKERS + 1):
            name = f"dask-worker-{number}"
            home = self.folder / name
            variables = {
                "TEXTBENCH_HOME": str(home),
                "TEXTBENCH_STORE": STORE,
                "TEXTBENCH_LOCKS": LOCKS,
                "TEXTBENCH_STUDIES": STUDIES,
                "DASK_DISTRIBUTED__WORKER__DAEMON": "false",  # its stages run in children of their own
                "AWS_ENDPOINT_URL": self.storage,
            } | self.postgres_variables()
            command = [*worker, "--name", name, "--local-directory", str(home)]
            command += ["--dashboard-address", f"{HOST}:0"]  # else a page of its own is open to all machines
            workers.append(Server(name, command, variables=variables))
        return [Server("dask-scheduler", scheduler, "dask", f"{page}/health"), *workers]

    def postgres_variables(self) -> dict[str, str]:
        """Return the variables by which PostgreSQL's clients find it."""
        return postgres.client_variables(self.ports[POSTGRES], os.environ["POSTGRES_PASSWORD"])

    @property
    def data(self) -> Path:
        """PostgreSQL's folder."""
        return self.folder / POSTGRES


def read_group() -> Group:
    """Return the group of the environment. Raises InputError for a variable that is missing or bad."""
    folder = Path(os.environ.get(FOLDER_VARIABLE) or ".textbench/servers").expanduser().resolve()
    if missing := [name for name in SECRETS if not os.environ.get(name)]:
        raise InputError(f"{', '.join(missing)} must be set; infra/.env.example says what each is")
    found = {}
    for name, (variable, usual) in PORTS.items():
        text = os.environ.get(variable) or str(usual)
        if not text.isdecimal():
            raise InputError(f"{variable} must be a port, got {text!r}")
        found[name] = ports.check(variable, int(text))
    return Group(folder, found)


def service(group: Group, server: Server) -> Service:
    """Return the service that a server is; a Dask worker, without an address to ask, is ready when it has joined."""

    def is_ready(_: Mapping[str, Any]) -> bool:
        if server.health:
            return answers(server.health, ANSWER_SECONDS)
        return found.log.exists() and "Registered to" in found.log.read_text("utf-8", errors="replace")

    found = Service(server.name, group.folder / server.name, "server", is_ready)
    return found


def start(group: Group) -> None:
    """Start what does not run and wait until all is healthy. Raises ServerError, InputError for a port in use."""
    group.folder.mkdir(parents=True, exist_ok=True)
    postgres.start(group.data, group.ports[POSTGRES], os.environ["POSTGRES_PASSWORD"])
    for server in group.servers():
        if server.name == "prefect":
            _make_bucket(group)  # MLflow wants it, and by now the storage runs
        _end_unlocked(group, server.name)
        service(group, server).start(partial(_launch, group, server))
        if server.name == "s3":
            service(group, server).wait(START_SECONDS)
    for server in group.servers():
        service(group, server).wait(START_SECONDS)


def _launch(group: Group, server: Server) -> Launch:
    if server.port and not ports.is_free(HOST, group.ports[server.port]):
        variable = PORTS[server.port][0]
        raise InputError(f"port {group.ports[server.port]} on {HOST} is in use; set {variable} to another")
    # What is written beside goes to its folder.
    return Launch(server.command, variables=server.variables, folder=group.folder / server.name)


def _make_bucket(group: Group) -> None:
    import boto3
    from botocore.exceptions import ClientError

    client = boto3.client("s3", endpoint_url=group.storage, region_name="us-east-1")
    try:
        client.head_bucket(Bucket=BUCKET)
    except ClientError:
        client.create_bucket(Bucket=BUCKET)


def stop(group: Group) -> list[str]:
    """Stop what runs, PostgreSQL last, and return the names. What does not end in time is killed."""
    stopped = [
        server.name
        for server in reversed(group.servers())
        if service(group, server).stop() or _end_unlocked(group, server.name)
    ]
    if postgres.stop(group.data):
        stopped.append(POSTGRES)
    return stopped


def _end_unlocked(group: Group, name: str) -> bool:
    """End what a version started that gave servers no lock; it knew them by when they began."""
    path = group.folder / f"{name}.json"
    with suppress(OSError, ValueError, psutil.NoSuchProcess):
        known = json.loads(path.read_text("utf-8"))
        process = psutil.Process(known["pid"])
        if process.create_time() == known["created"]:
            family = [process, *process.children(recursive=True)]
            process.terminate()
            for one in psutil.wait_procs(family, STOP_SECONDS)[1]:
                one.kill()
            path.unlink()
            return True
    return False


def status(group: Group) -> dict[str, dict[str, Any]]:
    """Return `address`, `pid` and `healthy` of every server, pid None for what does not run."""
    is_up = postgres.is_running(group.data, group.ports[POSTGRES])
    pid = postgres.pid(group.data) if is_up else None
    found = {POSTGRES: {"address": group.address(POSTGRES, "postgresql"), "pid": pid, "healthy": is_up}}
    for server in group.servers():
        state = service(group, server).running_state()
        address = server.health.removesuffix("/health") or group.address("dask", "tcp")
        is_up = bool(state) and service(group, server).is_ready(state)
        found[server.name] = {"address": address, "pid": state.get("pid"), "healthy": is_up}
    return found


def client_variables(group: Group) -> dict[str, str]:
    """Return what `textbench` needs to use the servers; `$NAME` stands for a variable, so that none shows a secret."""
    return {
        "PREFECT_API_URL": f"{group.address('prefect')}/api",
        "PREFECT_API_AUTH_STRING": "$PREFECT_SERVER_API_AUTH_STRING",
        "MLFLOW_TRACKING_URI": group.address("mlflow"),
        "MLFLOW_TRACKING_USERNAME": "$MLFLOW_AUTH_ADMIN_USERNAME",
        "MLFLOW_TRACKING_PASSWORD": "$MLFLOW_AUTH_ADMIN_PASSWORD",
        "AWS_ENDPOINT_URL": group.storage,
        "TEXTBENCH_STORE": STORE,
        "PGHOST": HOST,
        "PGPORT": str(group.ports[POSTGRES]),
        "PGUSER": postgres.USER,
        "PGPASSWORD": "$POSTGRES_PASSWORD",
        "TEXTBENCH_LOCKS": LOCKS,
        "TEXTBENCH_STUDIES": STUDIES,
    }


def main(arguments: Sequence[str]) -> int:
    """Do what the one argument says and return the exit code."""
    try:
        group = read_group()
        match list(arguments):
            case ["start"]:
                start(group)
                _print(status(group))
            case ["status"]:
                found = status(group)
                _print(found)
                return 0 if all(server["healthy"] for server in found.values()) else 1
            case ["stop"]:
                print("stopped:", ", ".join(stop(group)) or "nothing")
            case ["env"]:
                for name, value in client_variables(group).items():
                    print(f'export {name}="{value}"')
            case _:
                raise InputError(f"start, status, stop or env is accepted, got {shlex.join(arguments)!r}")
    except (InputError, ServerError) as error:
        print(f"servers: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    return 0


def _print(found: Mapping[str, Mapping[str, Any]]) -> None:
    for name, server in found.items():
        health = "healthy" if server["healthy"] else "not answering" if server["pid"] else "not running"
        print(f"{name:15} {server['address']:35} {health}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
