"""The engine: runs the stages of cells, whoever runs each of them, and says why one failed."""

import contextlib
import errno
import functools
import hashlib
import json
import logging
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Protocol

from textbench.evaluation.cores import n_cores
from textbench.flows.plan.base_cell import BaseCell, plain_stage
from textbench.flows.run.scheduler import AnyCell, Scheduler
from textbench.tasks import stages
from textbench.tasks.storage import tracebacks
from textbench.tasks.storage.isolate import CellError, n_jobs, stoppable
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Store

log = logging.getLogger("textbench.run")
steps = logging.getLogger("textbench.steps")  # too much for a log: what only a progress bar shows
# Stages under way for each that may compute: what is stored is only looked up, but Prefect keeps something of each.
AHEAD = 4
# Gives the error of a stage that ended, None where it has none.
Outcome = Callable[[], BaseException | str | None]


class Runner(Protocol):
    """Who runs stages, in threads of its own; how many at once, `execute` says."""

    @property
    def n_workers(self) -> int:
        """How many stages it can compute at once."""

    def start(
        self, stage: str, reference: Reference, store: Store, *, is_stored: bool, ended: Callable[[], None]
    ) -> Outcome:
        """Start a stage, whose artifact is stored or not, and call `ended` when it ends; return its outcome."""


class Threads:
    """Stages in threads of this process, computed in children of it: it takes no server.

    Used as a context: what still runs at its end, because an error or Ctrl-C ended it early, is stopped.
    """

    @property
    def n_workers(self) -> int:
        """How many stages it can compute at once: as many as TEXTBENCH_JOBS says, else as this machine has cores."""
        return n_jobs() or n_cores()

    def __enter__(self) -> "Threads":
        self._open = contextlib.ExitStack()
        self._pool = ThreadPoolExecutor(AHEAD * self.n_workers)
        self._open.callback(self._pool.shutdown, cancel_futures=True)
        self._open.enter_context(stoppable())  # before the pool is waited for
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def start(
        self, stage: str, reference: Reference, store: Store, *, is_stored: bool, ended: Callable[[], None]
    ) -> Outcome:
        """Start a stage and call `ended` when it ends; return its outcome."""
        future: Future[Any] = self._pool.submit(copy_context().run, stages.run, stage, reference, store)
        future.add_done_callback(lambda _: ended())
        return future.exception


def sweep_id(name: str, cells: Sequence[BaseCell], attempt: str = "") -> str:
    """Return the sweep's id: the same for the same cells, so that a resumed sweep keeps its tag."""
    keys = json.dumps([sorted(cell.key for cell in cells), attempt])
    return f"{name}-{hashlib.sha256(keys.encode()).hexdigest()[:8]}"


def execute(
    cells: Sequence[AnyCell],
    store: Store,
    runner: Runner,
    finish: Callable[[AnyCell, str | None], None],
    workers: int | None = None,
) -> None:
    """Run the stages of all cells, at most `workers` (by default those of the runner) computing at once.

    The first cells come first. A stage that several cells share runs once (`flows.run.scheduler`). `finish(cell,
    error)` is called as each cell ends; a failed stage fails the cells that need it and no others.
    """
    workers = workers or runner.n_workers
    ended: queue.Queue[str] = queue.Queue()
    running: dict[str, Outcome] = {}
    computing: dict[str, tuple[BaseCell, str]] = {}
    agenda = Scheduler(cells, store.has)
    while not agenda.is_done:
        while agenda.over:
            finish(*agenda.over.popleft())
        may = {"may_read": len(running) < AHEAD * workers, "may_compute": len(computing) < workers}
        if ended.empty() and (step := agenda.take(**may)):
            cell, stage, reference, is_stored = step
            key = reference.key
            if not is_stored:
                computing[key] = (cell, stage)
                log.info("%s: %s", cell.label, stage, extra={"cell": cell.key, "stage": stage})
            over = functools.partial(ended.put, key)
            running[key] = runner.start(plain_stage(stage), reference, store, is_stored=is_stored, ended=over)
        elif running:
            key = ended.get()
            _note_end(computing.pop(key, None))
            agenda.settle(key, _reason(running.pop(key)(), key, store))


def _note_end(computed: tuple[BaseCell, str] | None) -> None:
    """Tell that a cell's stage ended, if it was computed: the cell waits until its next one starts, or is recorded."""
    if computed:
        cell, stage = computed
        extra = {"cell": cell.key, "stage": stage, "waits": "waits"}
        steps.debug("%s: %s ended", cell.label, stage, extra=extra)


def _reason(error: BaseException | str | None, key: str, store: Store) -> str | None:
    """Say why the stage that makes the artifact `key` failed, None if it did not; its traceback is kept as a file."""
    home = store.root.parent
    if error is None:
        tracebacks.path_of(home, key).unlink(missing_ok=True)  # of an earlier attempt
        return None
    if isinstance(error, CellError) and error.details:
        with contextlib.suppress(OSError):  # a full disk hides no reason
            return f"{describe(error)} (traceback: {tracebacks.keep(home, key, error.details)})"
    if isinstance(error, CellError | OSError):
        return describe(error)
    return f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else error


def describe(error: CellError | OSError) -> str:
    """Say in one line why a computation failed, and for a full disk what to do."""
    if not isinstance(error, OSError) or not error.strerror:
        return " ".join(str(error).split())
    place = f" ({error.filename})" if error.filename else ""
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return f"{error.strerror}{place}" + (
        "; free space, or set TEXTBENCH_HOME to another disk" if is_full else ""
    )
