"""Recording: what becomes of a cell that ended, whichever flow it is of: its row, its record, its MLflow run."""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Generic

from prefect.states import Completed, Failed, State

from flows.cells import Index
from flows.engine import AnyCell
from flows.squares import Square
from tasks.isolate import warm
from tasks.store import Store, locked
from tasks.tracking import ATTEMPT_TAG, CELL_TAG, DATA_TAG, Tracker, git_commit, read_settings

log = logging.getLogger("textbench.run")


class Recorder(ABC, Generic[AnyCell]):
    """Writes finished cells to MLflow and to an index, once each, however often a sweep is started.

    `rows` holds the row of every cell that ended, by its key. A flow's own recorder says what its rows and runs are.
    """

    def __init__(self, home: Path, store: Store, index: Index, sweep: str, attempt: str = "") -> None:
        self.home, self.store, self.index = home, store, index
        self.attempt = attempt
        self._sweeps = [sweep] if sweep else []
        self.rows: dict[str, dict[str, Any]] = {}
        self.tracker = Tracker(read_settings(home))
        self._begun = time.time()
        self._had_runs = self.tracker.exists()
        self._preparation: Future[None] | None = None
        self._stored: set[str] = set()
        self._n_cells = 0
        self._commit = ""

    @abstractmethod
    def row(self, cell: AnyCell, error: str | None = None) -> dict[str, Any]:
        """Return a cell as a row with no result yet, or with the error that took its place."""

    @abstractmethod
    def result_row(self, cell: AnyCell) -> dict[str, Any]:
        """Return a finished cell as a row."""

    def kept(self, cell: AnyCell) -> dict[str, Any]:
        """Return what the index keeps of a cell beside its row."""
        return {}

    def files(self, cell: AnyCell) -> dict[str, Path]:
        """Return what is attached to a finished cell's run, by name."""
        return {}

    def tags(self, cell: AnyCell) -> dict[str, str]:
        """Return the tags of a cell's run."""
        self._commit = self._commit or git_commit()
        tags = {
            CELL_TAG: cell.key,
            ATTEMPT_TAG: self.attempt or "first",
            "git.commit": self._commit,
            **{f"sweep.{sweep}": "1" for sweep in self._sweeps},
        }
        corpus = cell.references["ingest"]
        if self.store.has(corpus):
            about = self.store.open(corpus).json("corpus")
            tags |= {f"{DATA_TAG}{name}": digest for name, digest in about["sha256"].items()}
        return tags

    def publish(self, cell: AnyCell, result: dict[str, Any]) -> str | None:
        """Write a cell that ended to MLflow and return the run's id, None where it has no run of its own."""
        is_whole = result["error"] is None and self.tracker.settings.log_predictions
        return self.mlflow.record(result, self.tags(cell), self.files(cell) if is_whole else {})

    def begin(self, cells: Sequence[AnyCell]) -> None:
        """Note which cells are stored; if one is to be recorded, see that MLflow answers before computing."""
        self._n_cells = len(cells)
        self._stored = {cell.key for cell in cells if self.store.has(cell.references["evaluate"])}
        if any(cell.key not in self._stored or self._recorded(cell) is None for cell in cells):
            self.tracker.check()
            # MLflow takes seconds to import, which the first stages need not wait for.
            self._preparation = ThreadPoolExecutor(1).submit(self.tracker.prepare)
        if len(self._stored) < len(cells):
            warm()

    @property
    def mlflow(self) -> Tracker:
        """The tracker, once it is prepared."""
        if self._preparation:
            self._preparation.result()
        return self.tracker

    def finish(self, cell: AnyCell, error: str | None) -> None:
        """Record a cell that ended and keep its row; what goes wrong in that becomes its error, and nobody else's."""
        try:
            result = self._finished(cell, error)
        except Exception as problem:  # whatever it is, the other cells go on
            reason = f"the result could not be recorded: {type(problem).__name__}: {problem}"
            result = self.row(cell, " ".join([*([f"{error};"] if error else []), *reason.split()]))
        self.rows[cell.key] = result
        announce(cell, result)

    def state(self) -> State[Any]:
        """Return the flow's state: it failed when a cell did."""
        n_failed = sum(result["error"] is not None for result in self.rows.values())
        if n_failed:
            return Failed(message=f"{n_failed} of {self._n_cells} cells failed")
        return Completed(message=f"{self._n_cells} cells")

    def _finished(self, cell: AnyCell, error: str | None) -> dict[str, Any]:
        cached = cell.key in self._stored
        with locked(self.index.folder / f".{cell.key}.lock"):
            record = self._recorded(cell) if error is None else None
            if record is None or not cached or not self._agrees(cell, record):
                record = self._record(cell, error, record)
            elif not self._is_tagged(cell, record):  # somebody deleted the run
                record = self._record(cell, None, None)
        empty = self.row(cell)
        return empty | {name: record[name] for name in empty if name in record} | {"cached": cached}

    def _recorded(self, cell: AnyCell) -> dict[str, Any] | None:
        record = self.index.get(cell)
        address = self.tracker.settings.tracking_uri
        if record and self.attempt in ("", record["attempt"]) and record["tracking_uri"] == address:
            # If the database was gone when this run began, so are the runs that were recorded before.
            return record if self._had_runs or record["created"] > self._begun else None
        return None

    def _agrees(self, cell: AnyCell, record: dict[str, Any]) -> bool:
        # Opening the result verifies it: one that was damaged since is computed again here.
        return record["metrics"] == self.store.open(cell.references["evaluate"]).json("metrics")

    def _is_tagged(self, cell: AnyCell, record: dict[str, Any]) -> bool:
        """See that the recorded run carries this sweep's tag; False when somebody deleted the run."""
        for sweep in set(self._sweeps) - set(record["sweeps"]):
            if not self.mlflow.tag(record["run_id"], f"sweep.{sweep}", "1"):
                return False
            record["sweeps"].append(sweep)
            self.index.put(cell, record)
        return True

    def _record(self, cell: AnyCell, error: str | None, known: dict[str, Any] | None) -> dict[str, Any]:
        result = self.row(cell, error) if error else self.result_row(cell)
        record = result | self.kept(cell) | {"attempt": self.attempt, "sweeps": list(self._sweeps)}
        record |= {"tracking_uri": self.tracker.settings.tracking_uri, "created": time.time()}
        if known and known["metrics"] == result["metrics"]:
            record |= {"run_id": known["run_id"], "sweeps": sorted({*known["sweeps"], *self._sweeps})}
        else:
            record["run_id"] = self.publish(cell, result)
        if error is None:
            self.index.put(cell, record)
        return record


def announce(cell: Square, result: dict[str, Any]) -> None:
    """Log that a cell ended, with its row."""
    extra = {"cell": cell.key, "row": result}
    if result["error"] is None:
        log.info("%s: %s", cell.label, "cached" if result["cached"] else "done", extra=extra)
    else:
        log.error("%s: %s", cell.label, result["error"], extra=extra)
