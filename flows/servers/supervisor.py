"""The supervisor of textbench's own Prefect server: a small process that stops it when nobody needs it.

`python -m textbench.flows.servers.supervisor FOLDER LOCK SOCKET` is started by `flows.servers.prefect_server`, which
hands over two descriptors: the lock that says a server runs, and the socket to listen on. The server is its child and
cannot outlive it.
"""

import asyncio
import fcntl
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

from textbench.flows.servers.prefect_server import idle_seconds, read_state, state_path

TICK_SECONDS = 0.5
GRACE_SECONDS = 3.0


def supervise(place: Path, listener: int) -> None:
    """Run the server until it ends, is unused for too long, loses its state file, or we are told to stop."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    command = [
        sys.executable,
        "-m",
        "textbench.flows.servers.supervisor",
        "--serve",
        str(place),
        str(listener),
    ]
    # The server reads from a pipe whose other end only this process has, so it learns of our end in any case.
    with subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=(listener,)) as server:
        try:
            os.close(listener)
            _watch(place, server)
        finally:
            _forget(place)
            _end(server)


def _watch(place: Path, server: "subprocess.Popen[bytes]") -> None:
    started, last_used = time.monotonic(), time.time()
    while server.poll() is None:
        # Without a state nobody finds this server; whoever started us has long written it.
        if read_state(place).get("pid") != os.getpid() and time.monotonic() - started > GRACE_SECONDS:
            return
        last_used = max(last_used, _last_used(place))
        if time.time() - last_used > idle_seconds() and _retire(place):
            return
        time.sleep(TICK_SECONDS)


def _last_used(place: Path) -> float:
    """Return when the server was last used: now, while any command holds `users.lock`."""
    try:
        with (place / "users.lock").open("ab") as users:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return os.fstat(users.fileno()).st_mtime
    except BlockingIOError:
        return time.time()
    except OSError:
        return 0.0


def _retire(place: Path) -> bool:
    """Withdraw the state unless somebody is just now finding the server; say whether it was withdrawn."""
    try:
        with (place / "start.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.time() - _last_used(place) <= idle_seconds():
                return False
            _forget(place)
            return True
    except OSError:
        return False


def _forget(place: Path) -> None:
    if read_state(place).get("pid") == os.getpid():
        state_path(place).unlink(missing_ok=True)


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

    migration = _migrate() if not (place / "prefect.db").exists() else None
    _die_with_supervisor()
    import prefect.main  # noqa: F401
    import uvicorn
    from prefect.server.api.server import create_app

    app = create_app(final=True)
    if migration is not None:
        os.waitpid(migration, 0)  # should it have failed, the server migrates itself and says what is wrong
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
    finally:
        os._exit(0)  # never back into the server's code


def _die_with_supervisor() -> None:
    """End this process as soon as its standard input does, which is when the supervisor is gone."""

    def watch() -> NoReturn:
        os.read(0, 1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Supervise, or with `--serve` be the server."""
    if sys.argv[1] == "--serve":
        serve(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        # The lock, argument 2, stays open as long as this process lives, and is not handed on.
        os.set_inheritable(int(sys.argv[2]), False)
        os.set_inheritable(int(sys.argv[3]), False)
        supervise(Path(sys.argv[1]), int(sys.argv[3]))


if __name__ == "__main__":
    main()
