"""The flow `label_budget`: how good each method is when only some of the training documents have labels.

Features are learnt on all training texts, without labels; the probe and its C see the labels of the budget alone. The
draws are nested and the same for every method (`evaluation.budgets`).
"""

import hashlib
import json
import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.states import Completed, Failed, State

from flows.benchmark import Recorder, execute
from flows.cells import Cell, Index, Protocol, Request, result_row, row
from flows.curves import Curve, plan_curves, summarise
from flows.home import home_folder
from tasks.isolate import n_cores, warm
from tasks.store import Store, locked, remove_leftovers, write_json
from tasks.tracking import Tracker, git_commit, read_settings

log = logging.getLogger("textbench.run")


@flow(name="label_budget", flow_run_name="{name}", log_prints=False)
def label_budget(
    datasets: list[str],
    methods: list[str],
    budgets: list[int],
    draws: int = 5,
    seed: int = 0,
    protocol: Protocol = "honest",
    trials: int = 0,
    stratified: bool = False,
    name: str = "curve",
    probe: str | None = None,
    rule: str | None = None,
    own: dict[str, Any] | None = None,
    validation: dict[str, Any] | None = None,
    paper: str | None = None,
) -> State[Any]:
    """Run every method at every label budget of every draw, and record a curve a method in MLflow.

    `stratified` draws each class in proportion. The others are those of `flows.cells.Request`. Cells that are stored
    are not computed again. The run fails when a cell fails; the other cells are finished first.
    """
    home = home_folder()
    request = Request(
        datasets, methods, [seed], protocol, trials, name, probe, rule, own, None, validation or {}, paper
    )
    cells = plan_curves(request, budgets, draws, stratified=stratified)
    store = Store(home / "store")
    remove_leftovers(store.root)
    recorder = CurveRecorder(home, store)
    recorder.begin(cells)
    execute(cells, store, n_cores(), recorder.finish)
    recorder.record_curves(cells)
    n_failed = sum(result["error"] is not None for result in recorder.rows.values())
    if n_failed:
        return Failed(message=f"{n_failed} of {len(cells)} cells failed")
    return Completed(message=f"{len(cells)} cells")


class CurveRecorder:
    """Writes finished cells to the store's index, and each method's curve to MLflow, once."""

    def __init__(self, home: Path, store: Store) -> None:
        self.home, self.store = home, store
        self.rows: dict[str, dict[str, Any]] = {}
        self.index = Index(home)
        self.tracker = Tracker(read_settings(home))
        self._preparation: Future[None] | None = None
        self._stored: set[str] = set()

    def begin(self, cells: Sequence[Cell]) -> None:
        """Note which cells are stored; if one is to be computed, see that MLflow answers before."""
        self._stored = {cell.key for cell in cells if self.store.has(cell.references["evaluate"])}
        if len(self._stored) < len(cells):
            self.tracker.check()
            self._preparation = ThreadPoolExecutor(1).submit(self.tracker.prepare)
            warm()

    def finish(self, cell: Cell, error: str | None) -> None:
        """Keep the cell's row."""
        result = row(cell, error) if error else self._known(cell)
        result |= {"cached": cell.key in self._stored, "labels": dict(cell.request.labels)}
        self.rows[cell.key] = result
        Recorder.announce(cell, result)

    def _known(self, cell: Cell) -> dict[str, Any]:
        with locked(self.index.folder / f".{cell.key}.lock"):
            record = self.index.get(cell)
            if record is None or cell.key not in self._stored:
                record = result_row(cell, self.store) | {"attempt": "", "sweeps": [], "timed": False}
                record |= {"created": time.time(), "request": asdict(cell.request)}
                record |= {"tracking_uri": self.tracker.settings.tracking_uri}
                self.index.put(cell, record)
        return {name: record[name] for name in row(cell)}

    def record_curves(self, cells: Sequence[Cell]) -> None:
        """Write each method's curve to MLflow as one run with step metrics and the figure; step is the labels."""
        if self._preparation:
            self._preparation.result()
        for dataset in dict.fromkeys(cell.dataset for cell in cells):
            own = [cell for cell in cells if cell.dataset == dataset]
            curves = summarise([self.rows[cell.key] | {"key": cell.key} for cell in own])
            name = hashlib.sha256("".join(sorted(cell.key for cell in own)).encode()).hexdigest()
            path = self.home / "curves" / f"{name}.json"
            if curves and not self._is_recorded(path):
                runs = self._record(dataset, curves, own[0], path.with_suffix(".svg"))
                record = {"runs": runs, "tracking_uri": self.tracker.settings.tracking_uri}
                write_json(path, record)

    def _is_recorded(self, path: Path) -> bool:
        try:
            record = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            return False
        return record["tracking_uri"] == self.tracker.settings.tracking_uri and self.tracker.exists()

    def _record(self, dataset: str, curves: Sequence[Curve], cell: Cell, picture: Path) -> list[str]:
        from flows.curve_figure import draw

        picture.parent.mkdir(parents=True, exist_ok=True)
        draw(curves, picture)
        about = {"dataset": dataset, "protocol": cell.protocol, "seed": cell.seed, "trials": cell.trials}
        tags = {"kind": "label_budget", "git.commit": git_commit()}
        return [
            self.tracker.record_curve(
                f"{dataset} {curve.method} by labels",
                about | {"method": curve.method, "draws": curve.n_draws},
                {
                    name: {point.budget: getattr(point, name) for point in curve.points}
                    for name in ("mean", "low", "high")
                },
                curve.metric,
                tags,
                picture,
            )
            for curve in curves
        ]
