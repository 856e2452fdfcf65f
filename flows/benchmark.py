"""The flow `benchmark`: run every cell of a sweep, cached, tracked and resumable, and write its rows."""

import errno
import hashlib
import json
import logging
import queue
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from prefect import flow
from prefect.futures import PrefectFuture
from prefect.states import Completed, Failed, State
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.cells import Cell, Index, Protocol, Request, plan, result_row, row
from flows.home import home_folder
from tasks.isolate import CellError, n_cores, warm
from tasks.recipe import Reference
from tasks.stages import STAGES
from tasks.store import Store, locked, remove_leftovers
from tasks.tracking import ATTEMPT_TAG, CELL_TAG, DATA_TAG, Tracker, git_commit, read_settings

log = logging.getLogger("textbench.run")
Engine = Literal["threads", "dask"]


@flow(name="benchmark", flow_run_name="{name}", log_prints=False)
def benchmark(
    datasets: list[str],
    methods: list[str],
    seeds: list[int],
    protocol: Protocol = "honest",
    trials: int = 0,
    name: str = "custom",
    timed: bool = False,
    fresh: bool = False,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    probe: str | None = None,
    rule: str | None = None,
    own: dict[str, Any] | None = None,
    search_seconds: float | None = None,
    validation: dict[str, Any] | None = None,
    paper: str | None = None,
    labels: dict[str, Any] | None = None,
) -> State[Any]:
    """Run every method on every data set, once a seed, and record each cell in the store's index and in MLflow.

    With `timed` cells run one at a time with all cores, and like with `fresh` nothing stored before is used.
    `time_limit` (seconds) and `memory_limit` (megabytes) hold for each computation. The others are those of
    `flows.cells.Request`. The run fails when a cell fails; the other cells are finished first.
    """
    home = home_folder()
    cells = plan(Request(
        datasets, methods, seeds, protocol, trials, name, probe, rule, own,
        search_seconds, validation or {}, paper, labels or {},
    ))  # fmt: skip
    attempt = f"{time.time():.3f}" if timed or fresh else ""
    store = Store(
        home / "store",
        not_before=float(attempt or 0),
        time_limit=time_limit,
        memory_limit=memory_limit,
        threads=n_cores() if timed else 1,
    )
    n_missing = len({cell.key for cell in cells if not store.has(cell.references["evaluate"])})
    if not timed and n_missing:
        store = replace(store, workers=max(1, n_cores() // n_missing))
    remove_leftovers(store.root)
    recorder = Recorder(home, store, sweep_id(name, cells, attempt), attempt, timed=timed)
    recorder.begin(cells)
    rows: dict[str, dict[str, Any]] = {}

    def finish(cell: Cell, error: str | None) -> None:
        try:
            rows[cell.key] = recorder.finish(cell, error)
        except Exception as problem:  # whatever it is, the other cells go on
            reason = f"the result could not be recorded: {type(problem).__name__}: {problem}"
            rows[cell.key] = recorder.announce(cell, row(cell, " ".join(reason.split())))

    execute(cells, store, 1 if timed else n_cores(), finish)
    n_failed = sum(result["error"] is not None for result in rows.values())
    if n_failed:
        return Failed(message=f"{n_failed} of {len(cells)} cells failed")
    return Completed(message=f"{len(cells)} cells")


def sweep_id(name: str, cells: Sequence[Cell], attempt: str = "") -> str:
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
    cells: Sequence[Cell], store: Store, workers: int, finish: Callable[[Cell, str | None], None]
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


def _next(cell: Cell, outcome: dict[str, str | None]) -> tuple[str, Reference] | None:
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


class Recorder:
    """Writes finished cells to MLflow and to the store's index, once each, however often a sweep is started."""

    def __init__(self, home: Path, store: Store, sweep: str, attempt: str, *, timed: bool = False) -> None:
        self.store = store
        self.sweep = sweep
        self.attempt = attempt
        self.timed = timed
        self.index = Index(home)
        self.tracker = Tracker(read_settings(home))
        self._begun = time.time()
        self._had_runs = self.tracker.exists()
        self._preparation: Future[None] | None = None
        self._stored: set[str] = set()
        self._commit = ""

    def begin(self, cells: Sequence[Cell]) -> None:
        """Note which cells are stored; if one is to be recorded, see that MLflow answers before computing."""
        self._stored = {cell.key for cell in cells if self.store.has(cell.references["evaluate"])}
        if any(cell.key not in self._stored or self._recorded(cell) is None for cell in cells):
            self.tracker.check()
            # MLflow takes seconds to import, which the first stages need not wait for.
            self._preparation = ThreadPoolExecutor(1).submit(self.tracker.prepare)
        if len(self._stored) < len(cells):
            warm()

    def _recorded(self, cell: Cell) -> dict[str, Any] | None:
        record = self.index.get(cell)
        address = self.tracker.settings.tracking_uri
        if record and self.attempt in ("", record["attempt"]) and record["tracking_uri"] == address:
            # If the database was gone when this run began, so are the runs that were recorded before.
            return record if self._had_runs or record["created"] > self._begun else None
        return None

    def _agrees(self, cell: Cell, record: dict[str, Any]) -> bool:
        # Opening the result verifies it: one that was damaged since is computed again here.
        return record["metrics"] == self.store.open(cell.references["evaluate"]).json("metrics")

    def finish(self, cell: Cell, error: str | None) -> dict[str, Any]:
        """Return the cell's row after recording it."""
        cached = cell.key in self._stored
        if self._preparation:
            self._preparation.result()
        with locked(self.index.folder / f".{cell.key}.lock"):
            record = self._recorded(cell) if error is None else None
            if record is None or not cached or not self._agrees(cell, record):
                record = self._record(cell, error, record)
            elif self.sweep not in record["sweeps"]:
                if self.tracker.tag(record["run_id"], f"sweep.{self.sweep}", "1"):
                    record["sweeps"].append(self.sweep)
                    self.index.put(cell, record)
                else:  # somebody deleted the run
                    record = self._record(cell, error, None)
        return self.announce(cell, {name: record[name] for name in row(cell)} | {"cached": cached})

    @staticmethod
    def announce(cell: Cell, result: dict[str, Any]) -> dict[str, Any]:
        """Log that a cell ended, with its row, and return the row."""
        extra = {"cell": cell.key, "row": result}
        if result["error"] is None:
            log.info("%s: %s", cell.label, "cached" if result["cached"] else "done", extra=extra)
        else:
            log.error("%s: %s", cell.label, result["error"], extra=extra)
        return result

    def _record(self, cell: Cell, error: str | None, known: dict[str, Any] | None) -> dict[str, Any]:
        result = row(cell, error) if error else result_row(cell, self.store)
        address = self.tracker.settings.tracking_uri
        record = result | {"attempt": self.attempt, "tracking_uri": address, "sweeps": [self.sweep]}
        record |= {"created": time.time(), "request": asdict(cell.request), "timed": self.timed}
        if known and known["metrics"] == result["metrics"]:
            record |= {"run_id": known["run_id"], "sweeps": sorted({*known["sweeps"], self.sweep})}
        else:
            record["run_id"] = self.tracker.record(result, self._tags(cell), self._files(cell, error))
            if error is None:
                self._record_search(cell, record["run_id"])
        if error is None:
            self.index.put(cell, record)
        return record

    def _record_search(self, cell: Cell, run_id: str) -> None:
        """Write the trials behind a run's settings, and the pictures of them."""
        choice = self.store.open(cell.references["tune"]).json("choice")
        if len(choice["trials"]) < 2:
            return
        from flows import study_plots

        self.tracker.record_trials(run_id, cell.label, choice["trials"])
        with tempfile.TemporaryDirectory() as folder:
            for picture in study_plots.draw(choice["space"], choice["trials"], Path(folder)):
                self.tracker.client.log_artifact(run_id, str(picture), artifact_path="search")

    def _tags(self, cell: Cell) -> dict[str, str]:
        self._commit = self._commit or git_commit()
        tags = {
            CELL_TAG: cell.key,
            ATTEMPT_TAG: self.attempt or "first",
            "git.commit": self._commit,
            f"sweep.{self.sweep}": "1",
        }
        corpus = cell.references["ingest"]
        if self.store.has(corpus):
            about = self.store.open(corpus).json("corpus")
            tags |= {f"{DATA_TAG}{name}": digest for name, digest in about["sha256"].items()}
        return tags

    def _files(self, cell: Cell, error: str | None) -> dict[str, Path]:
        if error or not self.tracker.settings.log_predictions:
            return {}
        folder = self.store.folder(cell.references["evaluate"])
        return {"predictions": folder / "predictions.parquet", "per_class": folder / "per_class.json"}
