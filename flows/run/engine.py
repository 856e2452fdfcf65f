"""The engine: runs the stages of cells as Prefect tasks, whichever flow asks, and says why one failed."""

import contextlib
import errno
import hashlib
import json
import logging
import queue
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext
from prefect.futures import PrefectFuture
from prefect.states import State
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from textbench.flows.plan.base_cell import BaseCell
from textbench.flows.run.scheduler import AnyCell, Scheduler
from textbench.tasks.stages import STAGES
from textbench.tasks.storage import tracebacks
from textbench.tasks.storage.cluster import Cluster, digest
from textbench.tasks.storage.isolate import CellError, n_cores, n_jobs
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Store

log = logging.getLogger("textbench.run")
steps = logging.getLogger("textbench.steps")  # too much for a log: what only a progress bar shows
# Stages under way for each that may compute: what is stored is only looked up, but Prefect keeps something of each.
AHEAD = 4


def sweep_id(name: str, cells: Sequence[BaseCell], attempt: str = "") -> str:
    """Return the sweep's id: the same for the same cells, so that a resumed sweep keeps its tag."""
    keys = json.dumps([sorted(cell.key for cell in cells), attempt])
    return f"{name}-{hashlib.sha256(keys.encode()).hexdigest()[:8]}"


def task_runner(engine: str) -> TaskRunner[Any]:
    """Return the Prefect task runner of an engine; it bounds nothing, `execute` does.

    `engine` is threads, dask for worker processes on this machine, or the address of a Dask cluster's scheduler.
    """
    if engine == "threads":
        return ThreadPoolTaskRunner(max_workers=AHEAD * (n_jobs() or n_cores()))
    import dask
    from prefect_dask import DaskTaskRunner

    if engine != "dask":
        return DaskTaskRunner(address=engine)
    dask.config.set({"distributed.worker.daemon": False})  # its workers start children of their own
    return DaskTaskRunner(
        cluster_kwargs={
            "n_workers": n_jobs() or n_cores(),
            "threads_per_worker": 1,
            "dashboard_address": None,
        }
    )


def n_workers() -> int:
    """Return how many stages the flow that asks may compute at once.

    Those that TEXTBENCH_JOBS says, else as many as this machine has cores, or a cluster threads.
    """
    if jobs := n_jobs():
        return jobs
    runner = _cluster_runner()
    return n_cores() if runner is None else sum(runner.client.nthreads().values()) or 1


def _cluster_runner() -> Any:
    """Return the task runner of the flow that asks if it is of a Dask cluster that was there before, else None."""
    context = FlowRunContext.get()
    address = getattr(context.task_runner, "address", None) if context else None
    return context.task_runner if context and address else None


def execute(
    cells: Sequence[AnyCell], store: Store, workers: int, finish: Callable[[AnyCell, str | None], None]
) -> None:
    """Run the stages of all cells as Prefect tasks, at most `workers` computing at once, first cells first.

    A stage that several cells share runs once (`flows.run.scheduler`). `finish(cell, error)` is called as each cell
    ends; a failed stage fails the cells that need it and no others. With a Dask cluster documents are still read
    here, where the command was given, and so is what is stored here.
    """
    runner = _cluster_runner()
    sent = store if runner is None else replace(store, cluster=Cluster(runner.address, digest()))
    ended: queue.Queue[str] = queue.Queue()
    running: dict[str, PrefectFuture[Any]] = {}
    computing: dict[str, tuple[BaseCell, str]] = {}
    agenda = Scheduler(cells, store.has)
    while not agenda.is_done:
        while agenda.over:
            finish(*agenda.over.popleft())
        may = {"may_read": len(running) < AHEAD * workers, "may_compute": len(computing) < workers}
        if step := agenda.take(**may):
            cell, stage, reference, is_stored = step
            if not is_stored:
                computing[reference.key] = (cell, stage)
                log.info("%s: %s", cell.label, stage, extra={"cell": cell.key, "stage": stage})
            if runner is not None and (is_stored or stage == "ingest"):
                state: Any = STAGES[stage](reference, store, return_state=True)
                _note_end(computing.pop(reference.key, None))
                agenda.settle(reference.key, _reason(state, reference.key, store))
            else:
                running[reference.key] = _submit(stage, reference, sent, ended)
        elif running:
            key = ended.get()
            _note_end(computing.pop(key, None))
            agenda.settle(key, _error(running.pop(key), key, store))


def _note_end(computed: tuple[BaseCell, str] | None) -> None:
    """Tell that a cell's stage ended, if it was computed: the cell waits until its next one starts, or is recorded."""
    if computed:
        cell, stage = computed
        extra = {"cell": cell.key, "stage": stage, "waits": "waits"}
        steps.debug("%s: %s ended", cell.label, stage, extra=extra)


def _submit(stage: str, reference: Reference, store: Store, ended: "queue.Queue[str]") -> PrefectFuture[Any]:
    task = STAGES[stage]
    if store.cluster is not None:
        # What Prefect keeps of a result would be a file under this machine's path, on another machine.
        task = task.with_options(persist_result=False, cache_policy=NO_CACHE)
    future = task.submit(reference, store)
    future.add_done_callback(lambda _: ended.put(reference.key))
    return future


def _error(future: PrefectFuture[Any], key: str, store: Store) -> str | None:
    future.wait()
    wrapped: Any = getattr(future, "wrapped_future", None)
    if getattr(wrapped, "status", "finished") != "finished":  # Dask's: the worker died, or never got so far
        try:
            wrapped.result()
        except Exception as error:
            return _named(error)
    return _reason(future.state, key, store)


def _reason(state: State[Any], key: str, store: Store) -> str | None:
    """Say why the stage that makes the artifact `key` failed, None if it did not; its traceback is kept as a file."""
    home = store.root.parent
    if state.is_completed():
        tracebacks.path_of(home, key).unlink(missing_ok=True)  # of an earlier attempt
        return None
    error = state.result(raise_on_failure=False)
    if isinstance(error, CellError) and error.details:
        with contextlib.suppress(OSError):  # a full disk hides no reason
            return f"{describe(error)} (traceback: {tracebacks.keep(home, key, error.details)})"
    return _named(error) if isinstance(error, BaseException) else str(state.message)


def _named(error: BaseException) -> str:
    if isinstance(error, CellError | OSError):
        return describe(error)
    return f"{type(error).__name__}: {error}"


def describe(error: CellError | OSError) -> str:
    """Say in one line why a computation failed, and for a full disk what to do."""
    if not isinstance(error, OSError) or not error.strerror:
        return " ".join(str(error).split())
    place = f" ({error.filename})" if error.filename else ""
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return f"{error.strerror}{place}" + (
        "; free space, or set TEXTBENCH_HOME to another disk" if is_full else ""
    )
