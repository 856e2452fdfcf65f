"""Isolation: run one computation in a child process of its own, measured and limited.

Children are forked from a server that has the numeric libraries loaded, so that starting one takes
milliseconds. The server, and with it every child, dies with the process that started it. What crosses between
them is JSON.
"""

import contextlib
import ctypes
import errno
import functools
import importlib
import json
import multiprocessing
import multiprocessing.resource_tracker
import multiprocessing.synchronize
import multiprocessing.util
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextvars import ContextVar
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from textbench.tasks import InputError
from textbench.tasks.storage import cluster, tracebacks

PRELOAD = "textbench.tasks.storage.preloaded"
POLL_SECONDS = 0.05
JOBS = "TEXTBENCH_JOBS"
MESSAGE_LENGTH = 1000
# What is wrong with the machine, and nothing that a method did.
OF_THE_MACHINE = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
)
_STARTING = threading.Lock()
# Set when nobody waits any more for the computations begun inside.
_STOPPED: ContextVar[threading.Event | None] = ContextVar("_STOPPED", default=None)


class CellError(RuntimeError):
    """A computation that failed by itself: it raised, was killed, or ran over a limit. One line says why."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


@functools.cache
def _context() -> multiprocessing.context.ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    # What a cluster's worker has loaded, those of its computations need that spread.
    context.set_forkserver_preload([PRELOAD, *sys.modules.keys() & {"distributed"}])
    return context


def warm() -> None:
    """Start the server now, in the background, because a computation is going to be needed."""
    _context()
    forkserver.ensure_running()


def run(
    function: str,
    payload: dict[str, Any],
    *,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    threads: int = 1,
    stage: str | None = None,
) -> dict[str, Any]:
    """Call `function` ("module:name") with the JSON object `payload` in a child; return the object it gives.

    `time_limit` is in seconds, `memory_limit` in megabytes of resident memory; over either, the child alone
    is killed. `threads` is the number of threads its linear algebra may use. `stage` is what a
    reason calls it that names a limit. Raises CellError with the child's reason, or OSError where that is one of the
    machine (a full disk).
    """
    receiver, sender = multiprocessing.Pipe(duplex=False)
    arguments = (function, json.dumps(payload), threads, sender)
    child = _context().Process(target=_child, args=arguments, name=function, daemon=True)
    with _may_have_children():
        child.start()
    sender.close()
    try:
        reply = _await_reply(child, receiver, time_limit, memory_limit, f"{stage} " if stage else "")
    finally:
        if child.is_alive():
            child.kill()
        child.join()
        receiver.close()
    if "error" in reply:
        if reply["errno"] is not None:
            raise OSError(reply["errno"], os.strerror(reply["errno"]), reply["filename"])
        raise CellError(reply["error"], reply["traceback"])
    return reply["result"]


@contextlib.contextmanager
def _may_have_children() -> Iterator[None]:
    """Let any process start a child.

    One that is itself a daemon, such as a Dask worker, may: ours dies with it. And the script that this process runs
    is hidden: a child has no use for it, but would import it, and run what it runs again.
    """
    config = multiprocessing.process.current_process()._config  # type: ignore[attr-defined]
    main = sys.modules["__main__"]
    with _STARTING:  # or one thread puts back what another has not done without yet
        daemon = config.pop("daemon", None)
        specification, file = main.__spec__, main.__dict__.pop("__file__", None)
        main.__spec__ = None
        try:
            yield
        finally:
            main.__spec__ = specification
            if file is not None:
                main.__file__ = file
            if daemon is not None:
                config["daemon"] = daemon


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Stop the computations begun inside, also by threads with a copy of the context, that still run at the end."""
    stopped = threading.Event()
    token = _STOPPED.set(stopped)
    try:
        yield
    finally:
        stopped.set()
        _STOPPED.reset(token)


def _await_reply(
    child: Any, receiver: Connection, time_limit: float | None, memory_limit: float | None, named: str
) -> dict[str, Any]:
    deadline = time.monotonic() + time_limit if time_limit else None
    stopped = _STOPPED.get()
    while not wait([receiver, child.sentinel], timeout=POLL_SECONDS):
        if stopped and stopped.is_set():
            raise CellError("was stopped")
        if deadline and time.monotonic() > deadline:
            raise CellError(f"{named}ran over its time limit of {time_limit:g} s and was stopped")
        if memory_limit and (used := _resident_mb(child.pid)) > memory_limit:
            raise CellError(
                f"{named}used {used:.0f} MB, over its memory limit of {memory_limit:g} MB, and was stopped"
            )
    if receiver.poll():
        with contextlib.suppress(EOFError, OSError):  # it died before, or in the middle of, its reply
            return json.loads(receiver.recv_bytes())
    child.join()
    code = child.exitcode
    reason = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
    guess = "; out of memory?" if code == -signal.SIGKILL else ""
    raise CellError(f"its process died ({reason}){guess}")


@contextlib.contextmanager
def pool(workers: int) -> Iterator[Executor]:
    """Give processes for the parallel parts of one computation, forked now, before it has threads of its own.

    They die with it. A computation of a Dask cluster's gets the cluster's workers instead.
    """
    if (around := cluster.AROUND.get()) is not None:
        with cluster.executor(around) as executor:
            yield executor
        return
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, context, _die_with_parent) as processes:
        with _may_have_children():
            processes.submit(os.getpid).result()  # all of them start with the first call
        yield processes


def _resident_mb(pid: int) -> float:
    import psutil

    try:
        process = psutil.Process(pid)
        used = [one.memory_info() for one in (process, *process.children(recursive=True))]
        # Files that are mapped take no memory that others need.
        return sum(one.rss - getattr(one, "shared", 0) for one in used) / 1e6
    except psutil.NoSuchProcess:
        return 0.0


def _child(function: str, payload: str, threads: int, sender: Connection) -> None:
    _die_with_parent()
    # A terminal's Ctrl-C reaches the whole group; the parent decides what becomes of its children.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)  # what a method prints is no part of a command's output
    module, _, name = function.partition(":")
    try:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(threads):
            work: Callable[[dict[str, Any]], dict[str, Any]] = getattr(importlib.import_module(module), name)
            reply = json.dumps({"result": work(json.loads(payload))})
    except BaseException as error:
        reply = json.dumps(_failure(error))
    with contextlib.suppress(BrokenPipeError):  # nobody waits for it any more: the run was interrupted
        sender.send_bytes(reply.encode())
    sender.close()


def _failure(error: BaseException) -> dict[str, Any]:
    text = str(error).encode("utf-8", "backslashreplace").decode()
    first_line = text.strip().partition("\n")[0][:MESSAGE_LENGTH]
    number = error.errno if isinstance(error, OSError) else None
    return {
        "error": _named(error, first_line),
        "errno": number if number in OF_THE_MACHINE else None,
        "filename": str(error.filename or "") if isinstance(error, OSError) else "",
        "traceback": tracebacks.of(error).encode("utf-8", "backslashreplace").decode(),
    }


def _named(error: BaseException, text: str) -> str:
    if isinstance(error, CellError):  # of a part of the computation, named already
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _die_with_parent() -> None:
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    # Our parent is the server, which lives as long as anyone holds its pipe. It hands every child an end of
    # it, and ours would keep the server, and so us, running after the process that started both is gone.
    server: Any = forkserver._forkserver
    if server._forkserver_alive_fd is not None:
        os.close(server._forkserver_alive_fd)
        server._forkserver_alive_fd = None


def end_children() -> None:
    """End what this process has started, and what that has, at once, but for services, which have their own sessions.

    To be called before `os._exit`; by themselves computations, and workers of a local Dask cluster, take seconds to see
    that nobody needs them. Python's tracker of semaphores ends itself, once they are unlinked.
    """
    import psutil

    server: Any = forkserver._forkserver
    tracker: Any = multiprocessing.resource_tracker._resource_tracker
    if server._forkserver_pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server._forkserver_pid, signal.SIGKILL)
    with contextlib.suppress(psutil.Error, OSError):  # the processes of others may be hidden
        for one in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error, OSError):
                if one.pid != tracker._pid and os.getsid(one.pid) == os.getsid(0):
                    one.kill()


def unlink_semaphores() -> None:
    """Remove the named semaphores of this process, such as those of a local Dask cluster's queues.

    To be called before `os._exit`, which runs no finalizers: what is left then is reported as leaked.
    """
    for finalizer in list(multiprocessing.util._finalizer_registry.values()):  # type: ignore[attr-defined]
        if finalizer._callback is multiprocessing.synchronize.SemLock._cleanup:  # type: ignore[attr-defined]
            finalizer()


def n_jobs() -> int | None:
    """Return how many stages TEXTBENCH_JOBS wants computed at once, or None. InputError for what is no number."""
    said = os.environ.get(JOBS, "").strip()
    if not said:
        return None
    if not said.isdecimal() or not int(said):
        raise InputError(f"{JOBS} must be a whole number from 1 on, got {said!r}")
    return int(said)


def usage() -> dict[str, float]:
    """Return this process's CPU seconds and peak resident memory in megabytes so far."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu_seconds": spent.ru_utime + spent.ru_stime, "peak_mb": peak_mb()}


def peak_mb() -> float:
    """Return the most resident memory, in megabytes of 1,000,000 bytes, that this process has had so far.

    Linux says it of the process; what `getrusage` says there is at least that of who started it.
    """
    status = Path("/proc/self/status")
    if status.exists() and "VmHWM:" in (text := status.read_text("utf-8")):
        return int(text.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024  # bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
