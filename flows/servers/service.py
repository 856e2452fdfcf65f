"""A service: a process of its own that is started once, kept, and stopped, whatever happens to who started it.

Its folder has these files; importing this module is cheap:

- `NAME.lock`  the process holds it all its life. A lock dies with its holder, so whatever the state says, the process
  is there exactly when its lock is taken: no stale state or reused process id misleads;
- `NAME.json`  its pid and what else is to be known of it, true only while it runs;
- `NAME.log`   what it said;
- `start.lock` held while a process of the folder is started or stopped, so that two commands at once start one.
"""

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textbench.tasks.storage.files import read_json, write_json
from textbench.tasks.storage.locks import START, is_free, is_held, locked, take

START_SECONDS = 300.0  # on a machine that is busy; on an idle one all of them take less than thirty
STOP_SECONDS = 15.0  # how long a process may take to end before it is killed
LOG_LINES = 8  # shown when a process dies at start
State = dict[str, Any]


class ServerError(RuntimeError):
    """A server cannot be reached, did not start or does not stop; the message says why in a few lines."""


@dataclass(frozen=True)
class Launch:
    """What starts a process: its command, its state at first, its own variables, its working folder.

    It inherits `listener`, whose port nobody else can take.
    """

    command: Sequence[str]
    state: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    listener: socket.socket | None = None


@dataclass(frozen=True)
class Service:
    """A process by its name for people, its folder, the name of its files, and what of its state says it is ready."""

    title: str
    place: Path
    name: str
    is_ready: Callable[[State], bool]
    lock_name: str = ""

    @property
    def lock(self) -> Path:
        """The file that the process holds the lock of."""
        return self.place / (self.lock_name or f"{self.name}.lock")

    @property
    def state_path(self) -> Path:
        """The file of its state."""
        return self.place / f"{self.name}.json"

    @property
    def log(self) -> Path:
        """The file of what it said since it was last started."""
        return self.place / f"{self.name}.log"

    def state(self) -> State:
        """Return what it was last known by, empty when that is missing or damaged."""
        found = read_json(self.state_path)
        return found if isinstance(found.get("pid"), int) else {}

    def note(self, **known: Any) -> None:
        """Add to its state, which whoever started it has written when the start lock is free."""
        with locked(self.place / START):
            write_json(self.state_path, self.state() | known)

    def is_running(self) -> bool:
        """Say whether the process lives."""
        return is_held(self.lock)

    def running_state(self) -> State:
        """Return its state while it runs, else an empty one."""
        return self.state() if self.is_running() else {}

    def start(self, launch: Callable[[], Launch]) -> State:
        """Start the process unless it runs, and return its state; `wait` waits until it is ready.

        `launch` is asked when nobody else can start it. The state is empty where a process runs that has lost it.
        """
        with locked(self.place / START):
            lock = take(self.lock)
            if lock is None:
                return self.state()
            try:
                return self._spawn(launch(), lock)
            finally:
                os.close(lock)  # the process has its own copy, and hands it to no program that it starts

    def _spawn(self, launch: Launch, lock: int) -> State:
        handed = [lock, *([launch.listener.fileno()] if launch.listener else [])]
        with self.log.open("wb") as log, launch.listener or nullcontext():
            process = subprocess.Popen(
                launch.command,
                pass_fds=handed,
                env=os.environ | dict(launch.variables),
                cwd=launch.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # an interrupted command must not take it along
            )
        threading.Thread(target=process.wait, daemon=True).start()  # reap it, should it end before us
        state = {"pid": process.pid, "started": time.time()} | dict(launch.state)
        write_json(self.state_path, state)
        return state

    def wait(self, seconds: float = START_SECONDS) -> None:
        """Wait until it is ready. Raises ServerError with the end of its log when it died or was not ready in time."""
        deadline = time.monotonic() + seconds
        while not self.is_ready(self.state()):
            if not self.is_running():
                raise ServerError(f"{self.title} ended while it was starting:\n{self._log_tail()}")
            if time.monotonic() > deadline:
                raise ServerError(f"{self.title} was not ready in {seconds:g} s:\n{self._log_tail()}")
            time.sleep(0.05)

    def stop(self, unless: Callable[[], bool] = lambda: False) -> bool:
        """Stop the process and what it has started, SIGTERM, then SIGKILL; return whether it ran and was stopped.

        `unless` is asked when nobody else can start it. Raises ServerError when it does not stop.
        """
        if not self.place.exists():
            return False
        with locked(self.place / START):
            was_running = not is_free(self.lock)
            if was_running and unless():
                return False
            if was_running:
                self._end(self.state().get("pid"))
            self.state_path.unlink(missing_ok=True)
        return was_running

    def _end(self, pid: int | None) -> None:
        with suppress(ProcessLookupError):  # what it started holds its lock
            if pid is not None:
                os.kill(pid, signal.SIGTERM)
        is_gone = is_free(self.lock, STOP_SECONDS)
        with suppress(ProcessLookupError, PermissionError):  # it leads a group of its own
            if pid is not None:
                os.killpg(pid, signal.SIGKILL)
        if not is_gone and not is_free(self.lock, STOP_SECONDS):
            raise ServerError(f"{self.title} in {self.place}, pid {pid or 'unknown'}, cannot be stopped")

    def _log_tail(self) -> str:
        try:
            lines = self.log.read_text("utf-8", errors="replace").splitlines()
        except OSError as error:
            return f"no log: {error}"
        return "\n".join(lines[-LOG_LINES:])
