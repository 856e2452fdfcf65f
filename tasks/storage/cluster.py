"""A Dask cluster that computes stages: what its workers have to run, and how one computation spreads over them."""

import contextlib
import functools
import hashlib
import importlib.metadata
import platform
import re
import socket
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from textbench.tasks.storage.definitions import PROJECT, ROOMS

DISTRIBUTION = "textbench"
PRIORITY = 1  # of a call: before stages, which have none, for some wait for calls
# What computes an artifact where a cluster is around: by its workers, to the bytes that the artifact's own function
# gives, which the tests hold; so no key says which of both it was.
SPREAD = {
    "textbench.tasks.vectorize:compute": "textbench.tasks.spread.vectorize:compute",
    "textbench.tasks.featurize:compute": "textbench.tasks.spread.lsi:compute",
}


@dataclass(frozen=True)
class Cluster:
    """A cluster by the address of its scheduler. `code` is the digest of what its workers have to run.

    `is_ours`: a run started it here, and its workers share the run's results folder.
    """

    address: str
    code: str
    is_ours: bool = False

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
def executor(cluster: Cluster) -> Iterator["Workers"]:
    """Give an executor whose calls the cluster's workers compute, before stages that wait there.

    A store among the arguments becomes the worker's own.
    """
    from distributed import Client

    with Client(cluster.address, set_as_default=False, direct_to_workers=True) as client:
        yield Workers(client)


class Workers(Executor):
    """The workers of a cluster; what they give comes from them, not by way of the scheduler."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._executor = client.get_executor()

    @property
    def n_threads(self) -> int:
        """How many calls they compute at once."""
        return sum(self._client.nthreads().values())

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return what becomes a call's result; what `hold` or `spread` returned may be among its arguments."""
        return self._executor.submit(_call_here, fn, *args, key=_key(fn), priority=PRIORITY, **kwargs)

    def hold(
        self, fn: Callable[..., Any], /, *args: Any, at: float | None = None, priority: int = PRIORITY
    ) -> Any:
        """Return what stands for a call's result, which stays where it was made as long as what is returned is kept.

        Later calls that are given it are computed there, or `at` a place in the line of workers, in [0, 1). When its
        worker dies it is computed again by another. A call of a higher priority goes before those that wait.
        """
        worker = None if at is None else self._line[int(at * len(self._line))]
        return self._at(worker, priority, fn, *args)

    def everywhere(self, fn: Callable[..., Any], /, *args: Any, priority: int = PRIORITY) -> list[Any]:
        """Return what stands for the results of a call by each worker, in their line; they stay there."""
        return [self._at(worker, priority, fn, *args) for worker in self._line]

    @functools.cached_property
    def _line(self) -> list[str]:
        """The workers that there were when a place among them was first asked for."""
        return sorted(self._client.nthreads())

    def _at(self, worker: str | None, priority: int, fn: Callable[..., Any], *args: Any) -> Any:
        place = {"workers": [worker], "allow_other_workers": True} if worker else {}
        return self._client.submit(_call_here, fn, *args, key=_key(fn), priority=priority, **place)

    def each(self, fn: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Yield the results of calls in order, two of them a thread under way, none here before it is asked for."""
        waiting: deque[Any] = deque()
        for args in calls:
            waiting.append(self.hold(fn, *args))
            if len(waiting) > 2 * self.n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def spread(self, value: Any) -> Any:
        """Send a value to every worker; return what stands for it among the arguments of calls."""
        return self._client.scatter(value, direct=True, broadcast=True, hash=False)


@runtime_checkable
class Sent(Protocol):
    """What the process that it was sent to has in another form, such as a store."""

    def here(self) -> Any:
        """Return it as this process has it."""


def _key(fn: Callable[..., Any]) -> str:
    """Return a new key of a call: Dask keeps seconds of calls by their names, and moves waiting ones accordingly."""
    return f"{name_of(fn)}-{uuid.uuid4().hex}"


def name_of(fn: Callable[..., Any]) -> str:
    """Return a function's name; a partial one has that of a function that it is given, or else of its own."""
    while isinstance(fn, functools.partial):
        fn = next(filter(callable, fn.args), fn.func)
    return fn.__name__


def _call_here(fn: Callable[..., Any], *args: Any) -> Any:
    return fn(*(arg.here() if isinstance(arg, Sent) else arg for arg in args))


def leave_thread() -> None:
    """Free the worker's thread that calls this for other tasks: what it waits for may need that thread."""
    from distributed import secede

    secede()
