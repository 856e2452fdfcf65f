"""Starting a flow from a command: the data it reads, a server, progress, the rows of its cells, and Ctrl-C."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.flows.tables.words import counted
from textbench.tasks import InputError

if TYPE_CHECKING:
    from textbench.flows.plan.base_cell import BaseCell
    from textbench.flows.results.index import Index
    from textbench.flows.servers.prefect_server import ServerInfo


def use_data_dir(folder: Path | None) -> None:
    """Take data archives from this folder, if one is given. Raises InputError where it is none."""
    if folder is not None:
        if not folder.is_dir():
            raise InputError(f"--data-dir {folder} is not a folder")
        os.environ["TEXTBENCH_DATA_DIR"] = str(folder.resolve())


@contextlib.contextmanager
def stopped_by_hand() -> Iterator[None]:
    """Let Ctrl-C end this process at once: an ordinary exit would wait for threads that wait for computations.

    What it computed in children ends with it. A KeyboardInterrupt could be lost in a library's clean-up.
    """

    from textbench.tasks.storage import isolate

    def stop(*_: object) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h\n")  # the progress bar has hidden the cursor
        print("textbench: stopped; the same command goes on where this one was", file=sys.stderr, flush=True)
        isolate.unlink_semaphores()
        os._exit(130)

    previous = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def run_flow(
    home: Path,
    flow: str,
    arguments: Mapping[str, Any],
    cells: "Sequence[BaseCell]",
    *,
    engine: str = "threads",
    as_json: bool = False,
    is_new: bool = True,
    index: "Index | None" = None,
) -> "tuple[list[dict[str, Any]], ServerInfo]":
    """Run a flow ("module:name") with these arguments, show its progress, and return a row a cell, and the server.

    `engine` is one of `flows.run.prefect_tasks.task_runner`. `as_json` prints each row as it comes, as JSON. `is_new`
    says that there is something to compute; how long, progress tells from what `index` has recorded of such cells.
    Raises ServerError when the Prefect server goes away, cells are left, or standard output is closed, and
    TrackingError when MLflow, which something new is to be written to, does not answer.
    """
    from textbench.flows.cli.progress import Progress
    from textbench.flows.servers import prefect_server
    from textbench.flows.servers.service import ServerError
    from textbench.tasks.storage import isolate
    from textbench.tasks.tracking.tracker import Tracker, read_settings

    expected: dict[str, float | None] = {}
    if is_new:
        Tracker(read_settings(home)).require()
        _check_shared()
        if index is not None and sys.stderr.isatty():
            is_afresh = arguments.get("timed") or arguments.get("fresh")
            expected = _expected(home, cells, index, not_before=time.time() if is_afresh else 0.0)
    with prefect_server.opened(home) as info, Progress(list(cells), as_json, expected) as progress:
        if is_new:
            isolate.warm()
        progress.say("loading Prefect")
        from prefect import tags

        from textbench.flows.run.prefect_tasks import task_runner
        from textbench.flows.run.workspace import folder_tag
        from textbench.flows.servers.orphaned_runs import crash_abandoned_runs, owner_tag

        function = _load(flow)
        progress.say("waiting for the Prefect server")
        prefect_server.wait(info)
        crash_abandoned_runs()
        progress.say("")
        try:
            with contextlib.redirect_stdout(sys.stderr), tags(owner_tag(), folder_tag(home)):
                state = function.with_options(task_runner=task_runner(engine))(**arguments, return_state=True)
        except Exception as error:  # whatever Prefect raises when its server goes away
            reason = str(error).partition("\n")[0]
            raise ServerError(
                f"stopped by {type(error).__name__}: {reason}; the same command goes on"
            ) from error
        rows = progress.rows()
    if len(rows) < len(cells):
        raise ServerError(
            f"{len(cells) - len(rows)} of {counted(len(cells), 'cell')} not finished: {state.message}"
        )
    if state.is_failed() and not any(row["error"] for row in rows):  # a curve could not be recorded
        raise ServerError(f"{str(state.message).partition(chr(10))[0]}; the same command goes on")
    if progress.is_closed:
        raise ServerError("standard output was closed; the results are kept (textbench leaderboard)")
    return rows, info


def _expected(
    home: Path, cells: "Sequence[BaseCell]", index: "Index", not_before: float
) -> dict[str, float | None]:
    from textbench.flows.plan.cell import estimate
    from textbench.tasks.storage.store import Store

    seconds = estimate(cells, Store(home / "store", not_before=not_before), index.rows())
    return dict(zip((cell.key for cell in cells), seconds, strict=True))


def _check_shared() -> None:
    """See that what machines share can be used."""
    from textbench.tasks.storage.remote import check_databases
    from textbench.tasks.storage.store import STORE

    check_databases()

    if url := os.environ.get(STORE):
        from textbench.tasks.storage.remote import Remote

        Remote(url).check()


def _load(flow: str) -> Any:
    import importlib

    module, _, name = flow.partition(":")
    return getattr(importlib.import_module(module), name)
