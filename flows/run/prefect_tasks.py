"""Stages as Prefect tasks of the flow that runs here: on this machine, or on a Dask cluster."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext, SettingsContext, get_settings_context
from prefect.events.worker import EventsWorker
from prefect.futures import PrefectFuture
from prefect.states import Completed, Failed, State
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from textbench.evaluation.cores import n_cores
from textbench.flows.run.engine import AHEAD, Outcome
from textbench.tasks.stages import task_of
from textbench.tasks.storage.cluster import Cluster, digest
from textbench.tasks.storage.isolate import n_jobs
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Store
from textbench.tasks.words import counted

# Events that wait to be sent to the server, each with all that its task knew, 15 KB; and the seconds to wait for that.
MOST_EVENTS = 256
PATIENCE = 10.0


class PrefectThreads(ThreadPoolTaskRunner[Any]):
    """Prefect's pool of threads, which keeps nothing of tasks that ended.

    Of each it would keep what tells it to stop for as long as the flow runs: 3 KB a cell.
    """

    def __init__(self, max_workers: int) -> None:
        super().__init__(max_workers)
        # A task that runs holds its own event.
        self._cancel_events: WeakValueDictionary[uuid.UUID, threading.Event] = WeakValueDictionary()  # type: ignore[assignment]


def task_runner(engine: str) -> TaskRunner[Any]:
    """Return the Prefect task runner of an engine; it bounds nothing, `flows.run.engine.execute` does.

    `engine` is threads, dask for worker processes on this machine, or the address of a Dask cluster's scheduler.
    """
    if engine == "threads":
        return PrefectThreads(AHEAD * (n_jobs() or n_cores()))
    import dask
    from prefect_dask import DaskTaskRunner

    if engine != "dask":
        return DaskTaskRunner(address=engine)
    # Its workers start children of their own, and nobody reads which functions they spend their time in.
    dask.config.set({"distributed.worker.daemon": False, "distributed.worker.profile.enabled": False})
    return DaskTaskRunner(
        cluster_kwargs={
            "n_workers": n_jobs() or n_cores(),
            "threads_per_worker": 1,
            "dashboard_address": None,
        }
    )


@contextmanager
def without_heartbeat() -> Iterator[None]:
    """Let flow runs inside send Prefect no signs of life, whose thread delays their end by up to a second.

    For flows that take less than the first of them.
    """
    context = get_settings_context()
    flows = context.settings.flows.model_copy(update={"heartbeat_frequency": None})
    settings = context.settings.model_copy(update={"flows": flows})
    with SettingsContext(profile=context.profile, settings=settings):
        yield


def state_of(rows: Sequence[Mapping[str, Any]], what: str = "cell") -> State[Any]:
    """Return the state in which a flow ends that has these rows, a row each of `what`: it failed when one did."""
    if n_failed := sum(row["error"] is not None for row in rows):
        return Failed(message=f"{n_failed} of {counted(len(rows), what)} failed", data=rows)
    return Completed(message=counted(len(rows), what), data=rows)


class PrefectTasks:
    """Runs stages as tasks of the flow that asks, by its task runner.

    With a Dask cluster that was there before, documents are still read here, where the command was given, and so is
    what is stored here.
    """

    @property
    def n_workers(self) -> int:
        """As many stages as TEXTBENCH_JOBS says, else this machine's cores, or a cluster's threads."""
        if jobs := n_jobs():
            return jobs
        client = self._client
        return n_cores() if client is None else sum(client.nthreads().values()) or 1

    @cached_property
    def _client(self) -> Any:
        """The client of the flow's Dask cluster, None where it has none."""
        context = FlowRunContext.get()
        return getattr(context.task_runner, "client", None) if context else None

    @cached_property
    def _cluster(self) -> Cluster | None:
        if self._client is None:
            return None
        context = FlowRunContext.get()
        is_ours = context is not None and getattr(context.task_runner, "address", None) is None
        return Cluster(self._client.scheduler.address, digest(), is_ours)

    def start(
        self, stage: str, reference: Reference, store: Store, *, is_stored: bool, ended: Callable[[], None]
    ) -> Outcome:
        """Start a stage and call `ended` when it ends; return its outcome."""
        task = task_of(stage)
        wait_for_events()
        if context := FlowRunContext.get():
            # Prefect keeps the state of every result, for a task that is handed one to say so on its page: 8 KB a cell.
            # Stages are handed references.
            context.run_results.clear()
        is_elsewhere = self._cluster is not None and not self._cluster.is_ours
        if is_elsewhere and (is_stored or stage == "ingest"):
            state: Any = task(reference, store, return_state=True)
            ended()
            return lambda: _error(state)
        store = replace(store, cluster=self._cluster)
        if is_elsewhere:
            # What Prefect keeps of a result would be a file under this machine's path, on another machine.
            task = task.with_options(persist_result=False, cache_policy=NO_CACHE)
        future: PrefectFuture[Any] = task.submit(reference, store)
        future.add_done_callback(lambda _: ended())
        return lambda: _outcome(future)


def wait_for_events() -> None:
    """Wait while more than MOST_EVENTS wait to be sent, for PATIENCE seconds at most.

    A server takes longer for the events of a stage that is stored than the stage does, and thousands of cells would
    wait in memory.
    """
    waiting, until = EventsWorker.instance()._queue, time.monotonic() + PATIENCE
    while waiting.qsize() > MOST_EVENTS and time.monotonic() < until:
        time.sleep(0.01)


def _outcome(future: PrefectFuture[Any]) -> BaseException | str | None:
    future.wait()
    wrapped: Any = getattr(future, "wrapped_future", None)
    if getattr(wrapped, "status", "finished") != "finished":  # Dask's: the worker died, or never got so far
        try:
            wrapped.result()
        except Exception as error:
            return error
    return _error(future.state)


def _error(state: State[Any]) -> BaseException | str | None:
    """Return the error of a task that failed, or a message where there is none; None for one that did not."""
    if state.is_completed():
        return None
    error: Any = state.result(raise_on_failure=False)
    return error if isinstance(error, BaseException) else str(state.message)
