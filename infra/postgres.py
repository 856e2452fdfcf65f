"""PostgreSQL from a package, in a folder and on a port of its own, with the databases of `databases.sql`.

Its programs are those of Debian's package `postgresql`, else those on the PATH. It listens on loopback, and everybody
gives a password (SCRAM). PostgreSQL refuses to run as root: root runs it as the user `postgres`.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from textbench.flows.servers import ports
from textbench.flows.servers.ports import HOST
from textbench.flows.servers.service import ServerError
from textbench.tasks import InputError

DATABASES = Path(__file__).resolve().with_name("databases.sql")
USER = "textbench"
OTHER_USER = "postgres"


def client_variables(port: int, password: str) -> dict[str, str]:
    """Return the variables by which its clients find the server, so that no address carries a password."""
    return {"PGHOST": HOST, "PGPORT": str(port), "PGUSER": USER, "PGPASSWORD": password}


def start(data: Path, port: int, password: str) -> None:
    """Make the database cluster if it is not there, start it unless it runs, and make the databases.

    Its log is `server.log` in its folder, where its user may write.
    Raises InputError for a port in use or a folder the other user cannot reach, ServerError with what went wrong.
    """
    if not (data / "PG_VERSION").exists():
        _initialise(data, password)
    if not is_running(data, port):
        if not ports.is_free(HOST, port):
            raise InputError(f"port {port} on {HOST} is in use; set POSTGRES_PORT to another")
        options = f"-p {port} -c listen_addresses={HOST} -c unix_socket_directories="
        _run("pg_ctl", "-D", str(data), "-l", str(data / "server.log"), "-o", options, "-w", "start")
    make_databases(client_variables(port, password))


def make_databases(variables: Mapping[str, str]) -> None:
    """Make those of the databases that are not there. Raises ServerError when the server refuses."""
    command = [program("psql"), "-d", "postgres", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(DATABASES)]
    made = subprocess.run(
        command, env=os.environ | dict(variables), check=False, capture_output=True, text=True
    )
    if made.returncode:
        raise ServerError(f"the databases could not be made: {made.stderr.strip()}")


def _initialise(data: Path, password: str) -> None:
    """Make the cluster beside its place and move it there, for one that was cut short says it is a cluster."""
    if data.exists() and any(data.iterdir()):
        raise InputError(
            f"{data} is not empty and no cluster of PostgreSQL; move it away, or set TEXTBENCH_SERVERS"
        )
    given, new = data.with_name("postgres.password"), data.with_name(f"{data.name}.new")
    given.touch(0o600)
    given.write_text(f"{password}\n", "utf-8")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700)
    try:
        if os.geteuid() == 0:
            for path in (new, given):
                shutil.chown(path, OTHER_USER, OTHER_USER)
            if subprocess.run([*_as_other_user(), "test", "-w", str(new)], check=False).returncode:
                raise InputError(
                    f"the user {OTHER_USER} cannot reach {data}; "
                    "set TEXTBENCH_SERVERS to a folder inside folders that all may enter"
                )
        arguments = ["-D", str(new), "-U", USER, "--auth=scram-sha-256", f"--pwfile={given}"]
        _run("initdb", *arguments, "-E", "UTF8", "--locale=C.UTF-8")
        new.replace(data)
    finally:
        given.unlink()


def is_running(data: Path, port: int) -> bool:
    """Say whether the server of this folder accepts connections."""
    if pid(data) is None:
        return False
    command = [program("pg_isready"), "-q", "-h", HOST, "-p", str(port)]
    return subprocess.run(command, check=False).returncode == 0


def pid(data: Path) -> int | None:
    """Return the process id that the folder names; the process may have been killed."""
    try:
        return int((data / "postmaster.pid").read_text("utf-8").split("\n")[0])
    except (OSError, ValueError):
        return None


def stop(data: Path) -> bool:
    """Stop the server of this folder, without waiting for its clients, and say whether one ran."""
    status = [*_as_other_user(), program("pg_ctl"), "-D", str(data), "status"]
    if pid(data) is None or subprocess.run(status, cwd="/", check=False, capture_output=True).returncode:
        return False
    _run("pg_ctl", "-D", str(data), "-m", "fast", "-w", "stop")
    return True


def _run(name: str, *arguments: str) -> None:
    command = [*_as_other_user(), program(name), *arguments]
    found = subprocess.run(command, cwd="/", check=False, capture_output=True, text=True)
    if found.returncode:
        raise ServerError(f"PostgreSQL's {name} failed: {(found.stderr or found.stdout).strip()}")


def _as_other_user() -> list[str]:
    return ["runuser", "-u", OTHER_USER, "--"] if os.geteuid() == 0 else []


def program(name: str) -> str:
    """Return the path of one of PostgreSQL's programs, of the newest version installed. InputError if there is none."""
    packaged = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
    newest = max(packaged, key=lambda path: float(path.parts[-3]), default=None)
    found = str(newest) if newest else shutil.which(name)
    if found is None:
        raise InputError(f"PostgreSQL's {name} is not on the PATH; Debian's package is `postgresql`")
    return found
