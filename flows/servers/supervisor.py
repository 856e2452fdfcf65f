"""The supervisor of textbench's own Prefect server: a small process that stops it when nobody needs it.

`python -m textbench.flows.servers.supervisor FOLDER SOCKET` is started by `flows.servers.prefect_server`, which hands
over the socket to listen on. The server is its child and cannot outlive it.
"""

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

from textbench.flows.servers.prefect_server import SUPERVISOR, idle_seconds, supervised
from textbench.flows.servers.service import Service
from textbench.tasks.storage import kept_databases
from textbench.tasks.storage.locks import START, is_free, locked

TICK_SECONDS = 0.5
GRACE_SECONDS = 3.0


def supervise(place: Path, listener: int) -> None:
    """Run the server until it ends, is unused for too long, loses its state file, or we are told to stop."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    service = supervised(place)
    command = [sys.executable, "-m", SUPERVISOR, "--serve", str(place), str(listener)]
    # The server reads from a pipe whose other end only this process has, so it learns of our end in any case.
    with subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=(listener,)) as server:
        try:
            os.close(listener)
            _watch(service, server)
        finally:
            _forget(service)
            _end(server)


def _watch(service: Service, server: "subprocess.Popen[bytes]") -> None:
    started, last_used = time.monotonic(), time.time()
    while server.poll() is None:
        # Without a state nobody finds this server; whoever started us has long written it.
        if service.state().get("pid") != os.getpid() and time.monotonic() - started > GRACE_SECONDS:
            return
        last_used = max(last_used, _last_used(service.place))
        if time.time() - last_used > idle_seconds() and _retire(service):
            return
        time.sleep(TICK_SECONDS)


def _last_used(place: Path) -> float:
    """Return when the server was last used: now, while any command holds `users.lock`."""
    users = place / "users.lock"
    try:
        return users.stat().st_mtime if is_free(users) else time.time()
    except OSError:
        return 0.0


def _retire(service: Service) -> bool:
    """Withdraw the state unless somebody has just found the server; say whether it was withdrawn."""
    if not service.place.exists():
        return True
    with locked(service.place / START):
        if time.time() - _last_used(service.place) <= idle_seconds():
            return False
        _forget(service)
        return True


def _forget(service: Service) -> None:
    if service.state().get("pid") == os.getpid():
        service.state_path.unlink(missing_ok=True)


def _end(server: "subprocess.Popen[bytes]") -> None:
    server.terminate()
    try:
        server.wait(timeout=5)
    except subprocess.TimeoutExpired:
        server.kill()


def serve(place: Path, listener: int) -> None:
    """Run Prefect's API and page on a bound socket, until SIGTERM or the supervisor's end."""
    # What importing Prefect makes, stays: collecting garbage meanwhile would take a tenth of the start.
    gc.disable()
    import prefect.server.database

    database = place / "prefect.db"
    migration = None if database.exists() or kept_databases.fill(database, "prefect") else _migrate()
    _die_with_supervisor()
    import prefect.main  # noqa: F401
    import uvicorn
    from prefect.server.api.server import create_app

    app = create_app(final=True)
    # Should the migration have failed, the server migrates itself and says what is wrong.
    if migration is not None and os.waitpid(migration, 0)[1] == 0:
        kept_databases.keep(database, "prefect")
    gc.enable()
    gc.freeze()
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=2)
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=listener)])


def _migrate() -> int:
    """Create a new database in a fork while this process imports the server: a third of a first start."""
    child = os.fork()
    if child:
        return child
    _die_with_supervisor()
    try:
        from prefect.server.database import provide_database_interface

        asyncio.run(provide_database_interface().create_db())
        os._exit(0)
    finally:
        os._exit(1)  # never back into the server's code


def _die_with_supervisor() -> None:
    """End this process as soon as its standard input does, which is when the supervisor is gone."""

    def watch() -> NoReturn:
        os.read(0, 1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Supervise, or with `--serve` be the server."""
    *options, place, listener = sys.argv[1:]
    (serve if options else supervise)(Path(place), int(listener))


if __name__ == "__main__":
    main()
