"""The flow `retrieval`: rank every collection by every ranker, cached, tracked and resumable."""

import json
import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.states import Completed, Failed, State

from flows.benchmark import execute, sweep_id
from flows.home import home_folder
from flows.rankings import TRIALS, Cell, Protocol, Request, plan, result_row, row
from tasks.isolate import n_cores, warm
from tasks.retrieve import N_FOLDS
from tasks.store import Store, locked, remove_leftovers, write_json
from tasks.tracking import ATTEMPT_TAG, CELL_TAG, DATA_TAG, Tracker, git_commit, read_settings

log = logging.getLogger("textbench.run")


@flow(name="retrieval", flow_run_name="{name}", log_prints=False)
def retrieval(
    collections: list[str],
    rankers: list[str],
    seeds: list[int],
    protocol: Protocol = "honest",
    trials: int = TRIALS,
    n_folds: int = N_FOLDS,
    judgments: str = "positive",
    rule: str | None = None,
    own: dict[str, Any] | None = None,
    name: str = "retrieval",
    fresh: bool = False,
) -> State[Any]:
    """Rank every collection by every ranker, once a seed, and record each result in MLflow.

    With `fresh` nothing stored before is used; the others are those of `flows.rankings.Request`. The run fails when a
    cell fails; the other cells are finished first.
    """
    home = home_folder()
    cells = plan(Request(collections, rankers, seeds, protocol, trials, n_folds, judgments, rule, own))
    attempt = f"{time.time():.3f}" if fresh else ""
    store = Store(home / "store", not_before=float(attempt or 0))
    remove_leftovers(store.root)
    recorder = Recorder(home, store, attempt, sweep_id(name, cells, attempt))  # type: ignore[arg-type]
    recorder.begin(cells)
    errors = []

    def finish(cell: Cell, error: str | None) -> None:
        try:
            recorder.finish(cell, error)
        except Exception as problem:  # whatever it is, the other cells go on
            error = f"the result could not be recorded: {' '.join(str(problem).split())}"
            recorder.announce(cell, row(cell, error))
        errors.extend([error] if error else [])

    execute(cells, store, n_cores(), finish)  # type: ignore[arg-type]
    if errors:
        return Failed(message=f"{len(errors)} of {len(cells)} cells failed")
    return Completed(message=f"{len(cells)} cells")


class Recorder:
    """Writes finished cells to MLflow, once each; what was recorded is kept in `<home>/retrieval/<key>.json`."""

    def __init__(self, home: Path, store: Store, attempt: str, sweep: str) -> None:
        self.store, self.attempt, self.sweep = store, attempt, sweep
        self.tracker = Tracker(read_settings(home))
        self._folder = home / "retrieval"
        self._had_runs = self.tracker.exists()
        self._begun = time.time()
        self._preparation: Future[None] | None = None
        self._stored: set[str] = set()

    def begin(self, cells: Sequence[Cell]) -> None:
        """Note which cells are stored; if one is to be recorded, see that MLflow answers before computing."""
        self._stored = {cell.key for cell in cells if self.store.has(cell.references["evaluate"])}
        if any(cell.key not in self._stored or self._recorded(cell) is None for cell in cells):
            self.tracker.check()
            self._preparation = ThreadPoolExecutor(1).submit(self.tracker.prepare)
        if len(self._stored) < len(cells):
            warm()

    def _recorded(self, cell: Cell) -> dict[str, Any] | None:
        try:
            record = json.loads((self._folder / f"{cell.key}.json").read_text("utf-8"))
            is_there = self._had_runs or record["created"] > self._begun
            is_wanted = record["attempt"] == self.attempt or not self.attempt
            same_place = record["uri"] == self.tracker.settings.tracking_uri
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
        ):  # none, or not what was written: the run is written again
            return None
        return record if is_there and is_wanted and same_place else None

    def finish(self, cell: Cell, error: str | None) -> dict[str, Any]:
        """Return the cell's row after recording it."""
        cached = cell.key in self._stored
        if self._preparation:
            self._preparation.result()
        with locked(self._folder / f".{cell.key}.lock"):
            result = row(cell, error) if error else result_row(cell, self.store)
            record = self._recorded(cell) if error is None else None
            if record is None or record["metrics"] != result["metrics"] or not self._tagged(cell, record):
                record = {"run_id": self.tracker.record(result, self._tags(cell), self._files(cell, error))}
                record |= {"created": time.time(), "attempt": self.attempt, "sweeps": [self.sweep]}
                record |= {"uri": self.tracker.settings.tracking_uri, "metrics": result["metrics"]}
                if error is None:
                    write_json(self._folder / f"{cell.key}.json", record)
        return self.announce(cell, result | {"run_id": record["run_id"], "cached": cached})

    def _tagged(self, cell: Cell, record: dict[str, Any]) -> bool:
        """See that the recorded run carries this sweep's tag; False when somebody deleted the run."""
        if self.sweep in record["sweeps"]:
            return True
        if not self.tracker.tag(record["run_id"], f"sweep.{self.sweep}", "1"):
            return False
        record["sweeps"].append(self.sweep)
        write_json(self._folder / f"{cell.key}.json", record)
        return True

    @staticmethod
    def announce(cell: Cell, result: dict[str, Any]) -> dict[str, Any]:
        """Log that a cell ended, with its row, and return the row."""
        extra = {"cell": cell.key, "row": result}
        if result["error"] is None:
            log.info("%s: %s", cell.label, "cached" if result["cached"] else "done", extra=extra)
        else:
            log.error("%s: %s", cell.label, result["error"], extra=extra)
        return result

    def _tags(self, cell: Cell) -> dict[str, str]:
        tags = {CELL_TAG: cell.key, ATTEMPT_TAG: self.attempt or "first", "git.commit": git_commit()}
        tags |= {f"sweep.{self.sweep}": "1", "kind": "retrieval"}
        corpus = cell.references["ingest"]
        if self.store.has(corpus):
            about = self.store.open(corpus).json("corpus")
            tags |= {f"{DATA_TAG}{name}": digest for name, digest in about["sha256"].items()}
        return tags

    def _files(self, cell: Cell, error: str | None) -> dict[str, Path]:
        if error or not self.tracker.settings.log_predictions:
            return {}
        folder = self.store.folder(cell.references["evaluate"])
        files = ("run.txt", "per_query.parquet", "choice.json")
        return {Path(name).stem: folder / name for name in files}
