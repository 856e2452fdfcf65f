"""Starting a flow from a command: the data it reads, a server, progress, the rows of its cells, and Ctrl-C."""

import contextlib
import gc
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.flows.plan.request import (
    BenchmarkRequest,
    DerivedRequest,
    LabelBudgetRequest,
    RetrievalRequest,
)
from textbench.tasks import InputError
from textbench.tasks.words import counted

if TYPE_CHECKING:
    from textbench.flows.cli.progress import Progress
    from textbench.flows.plan.base_cell import BaseCell
    from textbench.flows.servers.prefect_server import ServerInfo

ENDING = (signal.SIGINT, signal.SIGTERM)
# By what is asked for: the flow that does it, imported when it is run.
FLOWS: dict[type, str] = {
    BenchmarkRequest: "textbench.flows.benchmark:benchmark",
    LabelBudgetRequest: "textbench.flows.label_budget:label_budget",
    DerivedRequest: "textbench.flows.derived:pieces",
    RetrievalRequest: "textbench.flows.retrieval:retrieval",
}


def use_data_dir(folder: Path | None) -> None:
    """Take data archives from this folder, if one is given. Raises InputError where it is none."""
    if folder is not None:
        if not folder.is_dir():
            raise InputError(f"--data-dir {folder} is not a folder")
        os.environ["TEXTBENCH_DATA_DIR"] = str(folder.resolve())


@contextlib.contextmanager
def stopped_by_hand() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end this process at once: an ordinary exit would wait for what its threads wait for.

    What it computed in children ends with it. A KeyboardInterrupt could be lost in a library's clean-up. A handler runs
    only where the main thread comes to it, and Prefect replaces that of SIGTERM: so a thread looks out for both too.
    """

    from textbench.tasks.storage import isolate

    once = threading.Lock()

    def stop(number: int, _: object = None) -> None:
        if not once.acquire(blocking=False):
            return
        isolate.end_children()
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h\n")  # the progress bar has hidden the cursor
        print("textbench: stopped; the same command goes on where this one was", file=sys.stderr, flush=True)
        isolate.unlink_semaphores()
        os._exit(128 + number)

    def look_out() -> None:
        while said := os.read(heard, 1)[0]:
            if said in previous:
                stop(said)

    heard, told = os.pipe()
    os.set_blocking(told, False)
    previous: dict[int, Any] = {number: signal.signal(number, stop) for number in ENDING}
    wakened = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    watch = threading.Thread(target=look_out, name="signals", daemon=True)
    watch.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakened)
        for number, handler in previous.items():
            signal.signal(number, handler)
        os.write(told, b"\0")
        watch.join()
        os.close(heard)
        os.close(told)


def cells_of(request: Any) -> "Sequence[BaseCell]":
    """Return what a request of any kind asks for, nothing computed. Raises InputError for bad names."""
    from textbench.flows.plan.cell import plan
    from textbench.flows.plan.derived import plan_derived
    from textbench.flows.results import rankings

    if isinstance(request, RetrievalRequest):
        return rankings.plan(request)
    return plan_derived(request) if isinstance(request, DerivedRequest) else plan(request)


def run_flow(
    home: Path, request: Any, *, engine: str = "threads", as_json: bool = False
) -> "tuple[list[dict[str, Any]], ServerInfo]":
    """Run the flow of a request, show its progress, and return a row a cell, and the server.

    `engine` is one of `flows.run.prefect_tasks.task_runner`. `as_json` prints each row as it comes, as JSON. Raises
    ServerError when the Prefect server goes away, cells are left, or standard output is closed, and TrackingError when
    MLflow, which something new is to be written to, does not answer.
    """
    from textbench.flows.cli.progress import Progress
    from textbench.flows.run.preflight import check_shared
    from textbench.flows.servers import prefect_server
    from textbench.flows.servers.service import ServerError
    from textbench.tasks.storage import isolate
    from textbench.tasks.storage.store import Store
    from textbench.tasks.tracking.tracker import Tracker, read_settings

    cells, store = cells_of(request), Store(home / "store")
    is_afresh = getattr(request, "timed", False) or getattr(request, "fresh", False)
    is_new = is_afresh or not all(store.has(cell.reference) for cell in cells)
    expected: dict[str, float | None] = {}
    if is_new:
        Tracker(read_settings(home)).require()
        check_shared()
        if sys.stderr.isatty():
            expected = expected_seconds(home, request, not_before=time.time() if is_afresh else 0.0)
    with prefect_server.opened(home) as info, Progress(cells, as_json, expected) as progress:
        if is_new:
            isolate.warm()
        progress.say("loading Prefect")
        with _loading():
            from prefect import tags

            from textbench.flows.run.prefect_tasks import task_runner, without_heartbeat
            from textbench.flows.run.workspace import folder_tag
            from textbench.flows.servers.orphaned_runs import crash_abandoned_runs, owner_tag

            flow = _flow_of(request).with_options(task_runner=task_runner(engine))
        progress.say("waiting for the Prefect server")
        prefect_server.wait(info)
        crash_abandoned_runs()
        progress.say("")
        try:
            with (
                contextlib.redirect_stdout(sys.stderr),
                tags(owner_tag(), folder_tag(home)),
                contextlib.nullcontext() if is_new else without_heartbeat(),
            ):
                state = flow(request, return_state=True)
        except Exception as error:  # whatever Prefect raises when its server goes away
            reason = str(error).partition("\n")[0]
            raise ServerError(
                f"stopped by {type(error).__name__}: {reason}; the same command goes on"
            ) from error
    return _rows_of(state, len(cells), progress), info


def _rows_of(state: Any, n_cells: int, progress: "Progress") -> list[dict[str, Any]]:
    """Return the rows of a flow that has ended. Raises ServerError where there are none, or they cannot be printed."""
    from textbench.flows.servers.service import ServerError

    rows = state.result(raise_on_failure=False)
    if not isinstance(rows, list):  # the flow itself failed
        left = n_cells - progress.n_ended
        raise ServerError(f"{left} of {counted(n_cells, 'cell')} not finished: {state.message}")
    if state.is_failed() and not any(row["error"] for row in rows):  # a curve could not be recorded
        raise ServerError(f"{str(state.message).partition(chr(10))[0]}; the same command goes on")
    if progress.is_closed:
        raise ServerError("standard output was closed; the results are kept (textbench leaderboard)")
    return rows


@contextlib.contextmanager
def _loading() -> Iterator[None]:
    """Look for garbage neither while much is imported nor, ever after, in what was: a fifth of a short command."""
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # once; what later flows of this command leave can be garbage
            gc.freeze()
        gc.enable()


def _flow_of(request: Any) -> Any:
    module, _, name = FLOWS[type(request)].partition(":")
    return getattr(importlib.import_module(module), name)


def expected_seconds(home: Path, request: Any, not_before: float) -> dict[str, float | None]:
    """Return the seconds that each cell of a request is expected to take, by what its like took; {} for pieces."""
    from textbench.flows.plan.cell import estimate
    from textbench.flows.results import rankings
    from textbench.flows.results.index import Index
    from textbench.tasks.storage.store import Store

    if isinstance(request, DerivedRequest):
        return {}
    cells = cells_of(request)
    index = rankings.index(home) if isinstance(request, RetrievalRequest) else Index(home)
    seconds = estimate(cells, Store(home / "store", not_before=not_before), index.rows())
    return dict(zip((cell.key for cell in cells), seconds, strict=True))
