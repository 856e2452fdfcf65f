"""Running a sweep: every cell of a request is computed and recorded, whoever runs its stages."""

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from textbench.flows.plan.base_cell import plain_stage
from textbench.flows.plan.cell import Cell, plan
from textbench.flows.plan.request import BenchmarkRequest
from textbench.flows.results import calibrated
from textbench.flows.results.doubt import documents_95
from textbench.flows.results.index import Index
from textbench.flows.results.rows import result_row, row
from textbench.flows.run.engine import Runner, execute, sweep_id
from textbench.flows.run.features import let_features_go
from textbench.flows.run.outbox import Entry
from textbench.flows.run.recorder import Recorder
from textbench.flows.run.workspace import home_folder
from textbench.tasks.storage.garbage import reading, remove_leftovers
from textbench.tasks.storage.store import Store
from textbench.tasks.tracking.tracker import Tracker


def run_sweep(
    request: BenchmarkRequest, runner: Runner, tracker: Tracker | None = None, home: Path | None = None
) -> list[dict[str, Any]]:
    """Run every cell of a request, record each in the index and by the tracker, and return their rows.

    Without a tracker runs are tracked where mlflow.yaml says; without a `home` results go to `home_folder()`.
    """
    home, begun = home or home_folder(), time.time()
    cells = plan(request)
    attempt = f"{time.time():.3f}" if request.timed or request.fresh else ""
    store = Store(
        home / "store",
        not_before=float(attempt or 0),
        time_limit=request.time_limit,
        memory_limit=request.memory_limit,
        warm=request.timed,
    )
    # An ensemble's members are made side by side, as cells are.
    results = {
        reference.key: reference
        for cell in cells
        for stage, reference in cell.references.items()
        if plain_stage(stage) == "evaluate"
    }
    n_missing = sum(not store.has(reference) for reference in results.values())
    if not request.timed and n_missing:
        store = replace(store, workers=max(1, runner.n_workers // n_missing))
    remove_leftovers(store.root)
    sweep = sweep_id(request.name, cells, attempt)
    recorder = SweepRecorder(home, store, sweep, attempt, timed=request.timed, tracker=tracker)
    with reading(store.root):
        recorder.begin(cells)
        execute(cells, store, runner, recorder.finish, 1 if request.timed else None)
        rows = recorder.end()
    if not request.keep_features:
        let_features_go(store, cells, rows, begun)
    return rows


class SweepRecorder(Recorder[Cell]):
    """Writes the cells of a sweep: a run each, with its predictions and the trials behind its settings."""

    def __init__(
        self,
        home: Path,
        store: Store,
        sweep: str,
        attempt: str,
        *,
        timed: bool,
        tracker: Tracker | None = None,
    ) -> None:
        super().__init__(home, store, Index(home), sweep, attempt, tracker)
        self._timed = timed

    def row(self, cell: Cell, error: str | None = None) -> dict[str, Any]:
        """Return a cell as a row with no result yet, or with the error that took its place."""
        return row(cell, error) | {"documents_95": {}}

    def result_row(self, cell: Cell) -> dict[str, Any]:
        """Return a finished cell as a row, with half the interval of its metrics over test documents."""
        found = result_row(cell, self.store)
        halves = documents_95(self.store, cell.references["evaluate"], found["metrics"])
        return found | {"documents_95": halves}

    def kept(self, cell: Cell) -> dict[str, Any]:
        """Return what asks for the cell, what its mean over seeds may hold, and whether it was timed."""
        return super().kept(cell) | {"request": asdict(cell.request), "timed": self._timed}

    def files(self, cell: Cell) -> dict[str, Path]:
        """Return the predictions, document by document, and the figures of each class."""
        folder = self.store.folder(cell.references["evaluate"])
        return {"predictions": folder / "predictions.parquet", "per_class": folder / "per_class.json"}

    def entry(self, cell: Cell, result: dict[str, Any]) -> Entry | None:
        """Return what MLflow is to hold of a cell that ended, with what its probabilities are worth and its trials."""
        entry = super().entry(cell, result)
        if entry is not None and result["error"] is None:
            entry["row"]["metrics"] = result["metrics"] | self._probabilities(cell)
        if entry is not None and result["error"] is None:
            entry["search"] = self.search(cell)
        return entry

    def _probabilities(self, cell: Cell) -> dict[str, float]:
        """Return log loss, Brier score and calibration error of a cell that kept out-of-fold scores."""
        return calibrated.of_result(self.store, cell.references["evaluate"]) or {}

    def search(self, cell: Cell) -> dict[str, Any] | None:
        """Return the trials behind a cell's settings and what they were chosen from; None where none were tried."""
        choice = self.store.open(cell.references["tune"]).json("choice")
        if len(choice["trials"]) < 2:
            return None
        return {"label": cell.label, "space": choice["space"], "trials": choice["trials"]}

    def finish(self, cell: Cell, error: str | None) -> None:
        """Have a cell that ended recorded; where it is timed the next one waits for that."""
        super().finish(cell, error)
        if self._timed:
            self.wait()
