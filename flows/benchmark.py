"""The flow `benchmark`: run every cell of a sweep, cached, tracked and resumable, and write its rows."""

import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.states import State

from flows.cells import Cell, Index, Protocol, Request, plan, result_row, row
from flows.engine import execute, sweep_id
from flows.home import home_folder
from flows.recording import Recorder
from tasks.isolate import n_cores
from tasks.store import Store, remove_leftovers


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
    recorder = SweepRecorder(home, store, sweep_id(name, cells, attempt), attempt, timed=timed)
    recorder.begin(cells)
    execute(cells, store, 1 if timed else n_cores(), recorder.finish)
    return recorder.state()


class SweepRecorder(Recorder[Cell]):
    """Writes the cells of a sweep: a run each, with its predictions and the trials behind its settings."""

    def __init__(self, home: Path, store: Store, sweep: str, attempt: str, *, timed: bool) -> None:
        super().__init__(home, store, Index(home), sweep, attempt)
        self._timed = timed

    def row(self, cell: Cell, error: str | None = None) -> dict[str, Any]:
        """Return a cell as a row with no result yet, or with the error that took its place."""
        return row(cell, error)

    def result_row(self, cell: Cell) -> dict[str, Any]:
        """Return a finished cell as a row."""
        return result_row(cell, self.store)

    def kept(self, cell: Cell) -> dict[str, Any]:
        """Return what asks for the cell, and whether it was timed."""
        return {"request": asdict(cell.request), "timed": self._timed}

    def files(self, cell: Cell) -> dict[str, Path]:
        """Return the predictions, document by document, and the figures of each class."""
        folder = self.store.folder(cell.references["evaluate"])
        return {"predictions": folder / "predictions.parquet", "per_class": folder / "per_class.json"}

    def publish(self, cell: Cell, result: dict[str, Any]) -> str | None:
        """Write a cell that ended to MLflow, with the trials behind its settings, and return the run's id."""
        run_id = super().publish(cell, result)
        if run_id is not None and result["error"] is None:
            self._publish_search(cell, run_id)
        return run_id

    def _publish_search(self, cell: Cell, run_id: str) -> None:
        """Write the trials, and the pictures of them."""
        choice = self.store.open(cell.references["tune"]).json("choice")
        if len(choice["trials"]) < 2:
            return
        from flows import study_plots

        self.mlflow.record_trials(run_id, cell.label, choice["trials"])
        with tempfile.TemporaryDirectory() as folder:
            for picture in study_plots.draw(choice["space"], choice["trials"], Path(folder)):
                self.mlflow.client.log_artifact(run_id, str(picture), artifact_path="search")
