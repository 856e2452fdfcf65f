"""Commands as processes forked of one that has imported the slow libraries, which halves what a small run costs.

That one has imported nothing of the project: it is found as in a process that was started for the command. Prefect
reads the environment when it is imported: that is done again when the command imports it. The server that a command
forks its computations of is forked of it too.
"""

import contextlib
import fcntl
import functools
import gc
import importlib
import importlib.abc
import importlib.machinery
import json
import multiprocessing.util
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
# What a run imports, or what that is made of.
LIBRARIES = (
    *(
        "alembic",
        "cryptography",
        "docker",
        "fastapi",
        "graphviz",
        "griffe",
        "httpx",
        "matplotlib.pyplot",
        "mlflow",
    ),
    *(
        "mlflow.store.tracking.sqlalchemy_store",
        "opentelemetry.sdk.trace",
        "pandas",
        "pendulum",
        "platformdirs",
        "pyarrow.dataset",
        "pyarrow.parquet",
    ),
    *("numba", "optuna.distributions", "rich", "sklearn.decomposition", "sklearn.metrics", "sklearn.svm"),
    *("sqlalchemy.orm", "typer", "websockets"),
)
# Of Prefect all but what sets up logging by the environment.
PREFECT = (
    "prefect", "prefect.artifacts", "prefect.blocks.notifications", "prefect.blocks.system", "prefect.cache_policies",
    "prefect.client.orchestration", "prefect.client.schemas.filters", "prefect.context", "prefect.flow_runs",
    "prefect.flows", "prefect.futures", "prefect.runtime", "prefect.serializers", "prefect.states",
    "prefect.task_engine", "prefect.task_runners", "prefect.tasks", "prefect.transactions",
)  # fmt: skip
SOURCE = "import sys; from tests.warm import fork; exec(fork(int(sys.argv[1])))"
MAIN = "from textbench.flows.cli import main; main()"
ENVIRONMENT = dict(os.environ)  # of all tests; each may change its own


class Process:
    """`textbench ARGUMENTS`, or other code, in this environment and folder, used as a `subprocess.Popen`.

    Its output goes to files.
    """

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, code: str = MAIN
    ) -> None:
        asked, self._output, self._errors = (tempfile.TemporaryFile("w+", encoding="utf-8") for _ in "123")  # noqa: SIM115
        told, tell = os.pipe()
        self._told = os.fdopen(told, "rb", buffering=0)
        with asked, os.fdopen(tell, "wb"):
            json.dump([["textbench", *arguments], dict(environment), str(folder), code], asked)
            asked.seek(0)
            fds = [asked.fileno(), self._output.fileno(), self._errors.fileno(), tell]
            socket.send_fds(_connection(), [b"."], fds)
        self.pid = int(self._told.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, or minus the signal that ended it. Raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("textbench", timeout or 0)
            self.returncode = int(self._told.readline())
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Return its output and its errors when it has ended. Raises TimeoutExpired."""
        self.wait(timeout)
        for file in (self._output, self._errors):
            file.seek(0)
        with self._output, self._errors:
            return self._output.read(), self._errors.read()

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        self.send_signal(signal.SIGKILL)


@functools.cache
def _connection() -> socket.socket:
    """Start the process that commands are forked of; it ends when nobody is connected to it any more."""
    ours, theirs = socket.socketpair()
    with theirs:
        command, fd = [sys.executable, "-c", SOURCE, str(theirs.fileno())], theirs.fileno()
        subprocess.Popen(command, cwd=PROJECT, env=ENVIRONMENT, pass_fds=[fd], stdin=subprocess.DEVNULL)
    return ours


def fork(fd: int) -> str:
    """Import the libraries, and return in a new process for every command that is asked for, with what it is to run."""
    for library in (*LIBRARIES, *PREFECT):
        importlib.import_module(library)
    assert "prefect.main" not in sys.modules, "it sets up logging by the environment, which is the command's"
    sys.meta_path.insert(0, _Prefect())
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait
    connection = socket.socket(fileno=fd)
    while fds := socket.recv_fds(connection, 1, 4)[1]:
        if not os.fork():
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            connection.close()
            *given, tell = fds
            if not (pid := os.fork()):
                os.close(tell)
                return _become(*given)
            os.write(tell, f"{pid}\n".encode())
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            os.write(tell, f"{code}\n".encode())
            os._exit(0)
        for fd in fds:
            os.close(fd)
    os._exit(0)


class _Prefect(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports Prefect as it was imported before the fork, with the settings of the environment that there is then."""

    def __init__(self) -> None:
        self._module = sys.modules.pop("prefect")
        self._spec = self._module.__spec__

    def find_spec(self, name: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name == "prefect" else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        sys.meta_path.remove(self)
        module.__spec__ = self._spec
        importlib.import_module("prefect.context").refresh_global_settings_context()


def _become(asked: int, output: int, errors: int) -> str:
    """Take on the arguments, the environment and the folder that are asked for, write to these files.

    Return what is to be run.
    """
    with os.fdopen(asked) as stream:
        sys.argv, environment, folder, code = json.load(stream)
    for fd, stream_fd in ((output, 1), (errors, 2)):
        os.dup2(fd, stream_fd)
        os.close(fd)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    with contextlib.suppress(ImportError):
        importlib.import_module("sitecustomize")  # as an interpreter that starts
    _fork_server()
    return str(code)


def _fork_server() -> None:
    """Fork what becomes the server of computations once this command starts one: now, while it has no threads."""
    spawn = multiprocessing.util.spawnv_passfds
    theirs, ours = socket.socketpair()
    if not (pid := os.fork()):
        ours.close()
        _become_server(theirs)
    theirs.close()

    def start(path: Any, arguments: Sequence[str], fds: Sequence[int]) -> int:
        if "multiprocessing.forkserver" not in arguments[-1]:
            return spawn(path, arguments, fds)
        multiprocessing.util.spawnv_passfds = spawn  # another would be started as ever
        with ours, tempfile.TemporaryFile("w+", encoding="utf-8") as asked:
            json.dump([arguments[-1], dict(os.environ), list(fds)], asked)
            asked.seek(0)
            socket.send_fds(ours, [b"."], [asked.fileno(), *fds])
        return pid

    multiprocessing.util.spawnv_passfds = start


def _become_server(connection: socket.socket) -> None:
    """Run what the command would have started, with its environment and files; end with it if it starts nothing."""
    received = socket.recv_fds(connection, 1, 3)[1]
    if not received:
        os._exit(0)
    asked, *given = (fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in received)
    with os.fdopen(asked) as stream:
        code, environment, fds = json.load(stream)
    for fd, wanted in zip(given, fds, strict=True):
        os.dup2(fd, wanted)
        os.close(fd)
    os.environ.clear()
    os.environ.update(environment)
    exec(code, {"__name__": "__main__"})
    os._exit(0)
