"""Running label-budget curves: every cell of a request is computed and recorded, whoever runs its stages."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from textbench.flows.plan.cell import Cell, plan
from textbench.flows.plan.request import LabelBudgetRequest
from textbench.flows.results.index import Index
from textbench.flows.results.learning_curves import Curve, summarise
from textbench.flows.results.rows import result_row, row
from textbench.flows.run.engine import Runner, execute
from textbench.flows.run.features import let_features_go
from textbench.flows.run.outbox import curve_entry
from textbench.flows.run.recorder import Recorder
from textbench.flows.run.workspace import home_folder
from textbench.tasks.storage.files import read_json, write_json
from textbench.tasks.storage.garbage import reading, remove_leftovers
from textbench.tasks.storage.store import Store
from textbench.tasks.tracking.tracker import ATTEMPT_TAG, CELL_TAG, KIND_TAG, Tracker, git_commit


def run_label_budgets(
    request: LabelBudgetRequest, runner: Runner, tracker: Tracker | None = None, home: Path | None = None
) -> list[dict[str, Any]]:
    """Run every cell of curves, record each in the index and a curve a method by the tracker, return the cells' rows.

    Without a tracker runs are tracked where mlflow.yaml says; without a `home` results go to `home_folder()`.
    """
    home, begun = home or home_folder(), time.time()
    cells = plan(request)
    store = Store(home / "store")
    remove_leftovers(store.root)
    recorder = CurveRecorder(home, store, tracker)
    with reading(store.root):
        recorder.begin(cells)
        execute(cells, store, runner, recorder.finish)
        recorder.record_curves(cells)
        rows = recorder.end()
    if not request.keep_features:
        let_features_go(store, cells, rows, begun)
    return rows


class CurveRecorder(Recorder[Cell]):
    """Writes finished cells to the store's index, and each method's curve to MLflow, once."""

    has_runs = False  # a cell is a point of its curve's

    def __init__(self, home: Path, store: Store, tracker: Tracker | None = None) -> None:
        super().__init__(home, store, Index(home), sweep="", tracker=tracker)

    def row(self, cell: Cell, error: str | None = None) -> dict[str, Any]:
        """Return a cell as a row with no result yet, or with the error that took its place; it tells its labels."""
        return row(cell, error) | {"labels": dict(cell.request.labels)}

    def result_row(self, cell: Cell) -> dict[str, Any]:
        """Return a finished cell as a row."""
        return result_row(cell, self.store)

    def kept(self, cell: Cell) -> dict[str, Any]:
        """Return what asks for the cell, and what its mean over draws may hold."""
        return super().kept(cell) | {"request": asdict(cell.request), "timed": False}

    def record_curves(self, cells: Sequence[Cell]) -> None:
        """Write each method's curve to MLflow as one run with step metrics and the figure; step is the labels."""
        if not self.tracker.settings.is_on:
            return
        for dataset in dict.fromkeys(cell.dataset for cell in cells):
            # A cell that failed is no part of its curve: once it is repaired, that is another one.
            own = [c for c in cells if c.dataset == dataset and self.rows[c.key]["error"] is None]
            curves = summarise([self.rows[cell.key] | {"key": cell.key} for cell in own])
            name = hashlib.sha256("".join(sorted(cell.key for cell in own)).encode()).hexdigest()
            path = self.home / "curves" / f"{name}.json"
            if curves and not self._is_recorded(path):
                runs = self._record_runs(dataset, curves, own[0], path.with_suffix(".svg"))
                record = {"runs": runs, "tracking_uri": self.tracker.settings.tracking_uri}
                if all(runs):  # what waits in the spool is no record yet
                    write_json(path, record)

    def _is_recorded(self, path: Path) -> bool:
        uri = self.tracker.settings.tracking_uri
        return read_json(path).get("tracking_uri") == uri and self.tracker.exists()

    def _record_runs(
        self, dataset: str, curves: Sequence[Curve], cell: Cell, picture: Path
    ) -> list[str | None]:
        from textbench.flows.plots.curves import draw

        picture.parent.mkdir(parents=True, exist_ok=True)
        draw(curves, picture)
        about = {"dataset": dataset, "protocol": cell.protocol, "seed": cell.seed, "trials": cell.trials}
        tags = {KIND_TAG: "label_budget", "git.commit": git_commit(), ATTEMPT_TAG: "first"}
        return [
            self.write(curve_entry(
                f"{dataset} {curve.method} by labels",
                about | {"method": curve.method, "draws": curve.n_draws},
                {
                    name: {point.budget: getattr(point, name) for point in curve.points}
                    for name in ("mean", "low", "high")
                },
                curve.metric,
                tags | {CELL_TAG: hashlib.sha256(f"{picture.stem} {curve.method}".encode()).hexdigest()},
                picture,
            ))
            for curve in curves
        ]  # fmt: skip
