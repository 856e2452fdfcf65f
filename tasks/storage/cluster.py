"""A Dask cluster that computes stages: what its workers have to run, and how one computation spreads over them."""

import contextlib
import functools
import hashlib
import importlib.metadata
import platform
import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from textbench.tasks.storage.definitions import PROJECT, ROOMS

DISTRIBUTION = "textbench"


@dataclass(frozen=True)
class Cluster:
    """A cluster by the address of its scheduler. `code` is the digest of what its workers have to run."""

    address: str
    code: str

    def check(self) -> None:
        """Raise OSError where this process runs other code or libraries: its results would have a wrong key."""
        if digest() != self.code:
            raise OSError(
                f"the Dask worker on {socket.gethostname()} runs another version of textbench or its libraries"
            )


# The cluster over which the computation that runs here may spread.
AROUND: ContextVar[Cluster | None] = ContextVar("AROUND", default=None)


@functools.cache
def versions() -> dict[str, str]:
    """Return what results depend on: a digest of the project's code, Python's version, that of each library."""
    code = hashlib.sha256()
    for room in ROOMS:
        for path in sorted((PROJECT / room).rglob("*.py")):
            code.update(f"{path.relative_to(PROJECT)}\0".encode() + path.read_bytes())
    found = {"code": code.hexdigest()[:12], "Python": platform.python_version()}
    for line in importlib.metadata.requires(DISTRIBUTION) or []:
        name = re.split(r"[^\w.-]", line, maxsplit=1)[0]
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # of an extra
            found[name] = importlib.metadata.version(name)
    return found


def digest() -> str:
    """Return the versions as one word."""
    return hashlib.sha256(repr(sorted(versions().items())).encode()).hexdigest()


@contextlib.contextmanager
def around(cluster: Cluster | None) -> Iterator[None]:
    """Let the computation inside spread over a cluster, if one is given."""
    token = AROUND.set(cluster)
    try:
        yield
    finally:
        AROUND.reset(token)


@contextlib.contextmanager
def executor(cluster: Cluster) -> Iterator[Executor]:
    """Give an executor whose calls the cluster's workers compute, before stages that wait there.

    A store among the arguments becomes the worker's own.
    """
    from distributed import Client

    with Client(cluster.address, set_as_default=False) as client:
        yield _Workers(client)


class _Workers(Executor):
    def __init__(self, client: Any) -> None:
        self._executor = client.get_executor(pure=False)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._executor.submit(_call_here, fn, *args, priority=1, **kwargs)


@runtime_checkable
class Sent(Protocol):
    """What the process that it was sent to has in another form, such as a store."""

    def here(self) -> Any:
        """Return it as this process has it."""


def _call_here(fn: Callable[..., Any], *args: Any) -> Any:
    return fn(*(arg.here() if isinstance(arg, Sent) else arg for arg in args))


def leave_thread() -> None:
    """Free the worker's thread that calls this for other tasks: what it waits for may need that thread."""
    from distributed import secede

    secede()
