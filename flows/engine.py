"""The engine: runs the stages of cells as Prefect tasks, whichever flow asks, and says why one failed."""

import errno
import hashlib
import json
import logging
import queue
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.squares import Square
from tasks.isolate import CellError, n_cores
from tasks.recipe import Reference
from tasks.stages import STAGES
from tasks.store import Store

log = logging.getLogger("textbench.run")
Engine = Literal["threads", "dask"]
AnyCell = TypeVar("AnyCell", bound=Square)


def sweep_id(name: str, cells: Sequence[Square], attempt: str = "") -> str:
    """Return the sweep's id: the same for the same cells, so that a resumed sweep keeps its tag."""
    keys = json.dumps([sorted(cell.key for cell in cells), attempt])
    return f"{name}-{hashlib.sha256(keys.encode()).hexdigest()[:8]}"


def task_runner(engine: Engine) -> TaskRunner[Any]:
    """Return the Prefect task runner of an engine; it bounds nothing, `execute` does."""
    if engine == "threads":
        return ThreadPoolTaskRunner(max_workers=4 * n_cores())
    import dask
    from prefect_dask import DaskTaskRunner

    dask.config.set({"distributed.worker.daemon": False})  # its workers start children of their own
    return DaskTaskRunner(
        cluster_kwargs={"n_workers": n_cores(), "threads_per_worker": 1, "dashboard_address": None}
    )


def execute(
    cells: Sequence[AnyCell], store: Store, workers: int, finish: Callable[[AnyCell, str | None], None]
) -> None:
    """Run the stages of all cells as Prefect tasks, at most `workers` computing at once, first cells first.

    A stage that several cells share runs once. `finish(cell, error)` is called as each cell ends; a failed stage fails
    the cells that need it and no others.
    """
    ended: queue.Queue[str] = queue.Queue()
    running: dict[str, PrefectFuture[Any]] = {}
    computing: set[str] = set()
    outcome: dict[str, str | None] = {}
    waiting = list(cells)
    while waiting:
        for cell in list(waiting):
            step = _next(cell, outcome)
            if step is None or (error := outcome.get(step[1].key)):
                waiting.remove(cell)
                finish(cell, error if step else None)
                continue
            stage, reference = step
            if reference.key in running:
                continue
            stored = store.has(reference)
            if not stored and len(computing) >= workers:
                continue
            if not stored:
                computing.add(reference.key)
                log.info("%s: %s", cell.label, stage, extra={"cell": cell.key, "stage": stage})
            running[reference.key] = _submit(stage, reference, store, ended)
        if running:
            key = ended.get()
            computing.discard(key)
            outcome[key] = _error(running.pop(key))


def _next(cell: Square, outcome: dict[str, str | None]) -> tuple[str, Reference] | None:
    """Return the first stage of the cell that has not succeeded, or None when all have."""
    return next(
        ((stage, ref) for stage, ref in cell.references.items() if outcome.get(ref.key, "to do") is not None),
        None,
    )


def _submit(stage: str, reference: Reference, store: Store, ended: "queue.Queue[str]") -> PrefectFuture[Any]:
    future = STAGES[stage].submit(reference, store)
    future.add_done_callback(lambda _: ended.put(reference.key))
    return future


def _error(future: PrefectFuture[Any]) -> str | None:
    future.wait()
    state = future.state
    if state.is_completed():
        return None
    error = state.result(raise_on_failure=False)
    if isinstance(error, CellError | OSError):
        return describe(error)
    return f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else str(state.message)


def describe(error: CellError | OSError) -> str:
    """Say in one line why a computation failed, and for a full disk what to do."""
    if not isinstance(error, OSError) or not error.strerror:
        return " ".join(str(error).split())
    place = f" ({error.filename})" if error.filename else ""
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return f"{error.strerror}{place}" + (
        "; free space, or set TEXTBENCH_HOME to another disk" if is_full else ""
    )
