"""What a flow run shows on Prefect's page: its progress, its results as a table and a picture, its MLflow runs.

A flow speaks through the logger `textbench.run`; `watched` listens, so that the flow itself need know nothing of it.
"""

import base64
import logging
import math
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prefect.artifacts import (
    create_image_artifact,
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.concurrency.sync import concurrency

from textbench.flows.plan.base_cell import BaseCell
from textbench.flows.plots import curves, leaderboard
from textbench.flows.results import learning_curves
from textbench.flows.results.metric_names import heading, scale
from textbench.flows.run import mlflow_views
from textbench.flows.run.mlflow_views import page_of, runs_page
from textbench.tasks import InputError
from textbench.tasks.predict import features_of
from textbench.tasks.storage.store import Store
from textbench.tasks.tracking.tracker import Tracker, read_settings
from textbench.tasks.words import counted

LIMIT = "textbench"  # global concurrency limit of runs by form and of nights, made by `prefect gcl create`
SECONDS_APART = 1.0  # between two updates of the progress, each of which is a request
SHOWN = ("accuracy", "macro_f1", "micro_f1", "map")


class Watch(logging.Handler):
    """Listens to a flow, and shows the share of its cells that ended as progress."""

    def __init__(self, n_cells: int) -> None:
        super().__init__(logging.INFO)
        self._n_cells, self._n_ended = n_cells, 0
        self._shown = time.monotonic()
        self._artifact: Any = create_progress_artifact(
            progress=0.0, key="progress", description=f"of {counted(n_cells, 'cell')}"
        )

    def emit(self, record: logging.LogRecord) -> None:
        """Take one event of the flow; a page that cannot be told is no reason to stop."""
        if not hasattr(record, "row"):
            return
        self._n_ended += 1
        if time.monotonic() - self._shown > SECONDS_APART or self._n_ended == self._n_cells:
            self._shown = time.monotonic()
            try:
                update_progress_artifact(self._artifact, 100 * self._n_ended / self._n_cells)
            except Exception:
                self.handleError(record)


@contextmanager
def watched(n_cells: int) -> Iterator[None]:
    """Show the progress of the flow that runs inside, once the server's limit `LIMIT`, if there is one, has room."""
    watch, logger = Watch(n_cells), logging.getLogger("textbench")
    logger.setLevel(logging.INFO)
    logger.addHandler(watch)
    try:
        with concurrency(LIMIT, strict=False):
            yield
    finally:
        logger.removeHandler(watch)


def publish(home: Path, rows: Sequence[Mapping[str, Any]], title: str, sweep: str) -> None:
    """Show finished cells: a table, a picture (curves where labels were limited), and a link to their MLflow runs.

    `sweep` is the name the sweep was given, which its tag in MLflow begins with.
    """
    if not rows:
        return
    create_table_artifact(table(rows), key="results", description=f"{title}: a row a cell, in percent")
    for name, picture in pictures(rows):
        create_image_artifact(picture, key="leaderboard", description=name)
    if address := runs_address(home, rows, sweep):
        create_link_artifact(
            address, "the runs in MLflow", key="mlflow", description="Metrics, parameters, predictions"
        )
    else:
        text = "MLflow's page is not up: start it with `textbench up`, then open the experiment `textbench`."
        create_markdown_artifact(text, key="mlflow", description="Where the runs are")


def show_lineage(home: Path, cells: Sequence[BaseCell]) -> None:
    """Show what each result was made from; nothing where no cell that classifies has ended."""
    if lines := lineage(home, cells):
        said = "What each result was made from: the folder under store/ is the stage's name and this key"
        create_table_artifact(lines, key="lineage", description=said)


def lineage(home: Path, cells: Sequence[BaseCell]) -> list[dict[str, Any]]:
    """Return a row a finished cell: data set, vectors, features, model and result, each `stage/key` of the store.

    Features are those that tuning chose; a classifier of its own has none.
    """
    store, lines = Store(home / "store"), []
    for cell in cells:
        known = cell.references
        if "tune" not in known or not all(store.has(known[stage]) for stage in ("tune", "evaluate")):
            continue
        features = features_of(known["vectorize"], store.open(known["tune"]))
        behind = {
            "data set": known["ingest"],
            "vectors": known["vectorize"],
            "features": features,
            "model": known["tune"],
            "result": known["evaluate"],
        }
        line = {"data": cell.dataset, "method": cell.method, "seed": cell.seed}
        lines.append(
            line | {name: f"{ref.stage}/{ref.key[:12]}" if ref else "-" for name, ref in behind.items()}
        )
    return lines


def table(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row of plain text a cell: what it is, its metrics in percent, its costs, and why it failed if it did."""
    metrics = [name for name in SHOWN if any(name in row["metrics"] for row in rows)]
    budgets = any(row.get("labels") for row in rows)
    failed = any(row["error"] for row in rows)
    return [_line(row, metrics, budgets, failed) for row in rows]


def _line(row: Mapping[str, Any], metrics: Sequence[str], budgets: bool, failed: bool) -> dict[str, Any]:
    line = {"data": row["dataset"], "method": row["method"], "seed": row["seed"]}
    if budgets:
        line |= {"labels": row["labels"]["budget"], "draw": row["labels"]["draw"]}
    for name in metrics:
        value = row["metrics"].get(name)
        line[heading(name)] = "-" if value is None else f"{scale(name) * value:.2f}"
    line["seconds"] = f"{math.fsum(row['seconds'].values()):.1f}" if row["seconds"] else "-"
    line["cached"] = "yes" if row["cached"] else "no"
    return line | ({"error": row["error"] or ""} if failed else {})


def pictures(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return the pictures of the rows, (title, `data:` address of a PNG) each; none where nothing was measured."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picture.png"
        if any(row.get("labels") for row in rows):
            drawn = learning_curves.summarise(rows)
            by_data = {name: [curve for curve in drawn if curve.dataset == name] for name in _datasets(rows)}
            found = []
            for name, own in by_data.items():
                if own:
                    curves.draw(own, path)
                    found.append((f"{name} by labelled documents", _address(path)))
            return found
        ranks = any("accuracy" in row["metrics"] or "micro_f1" in row["metrics"] for row in rows)
        try:
            leaderboard.draw(rows, path, None if ranks else "map")
        except InputError:  # nothing was measured
            return []
        return [("Leaderboard: 95 % intervals, seconds at the right", _address(path))]


def _datasets(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["dataset"] for row in rows))


def _address(path: Path) -> str:
    # The picture travels inside the artifact: Prefect's server keeps no files, and its page must not need ours.
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def runs_address(home: Path, rows: Sequence[Mapping[str, Any]], sweep: str) -> str | None:
    """Return the address of MLflow's page with the runs of these rows alone, None when the page is not up."""
    state = mlflow_views.status(home)
    if not state["healthy"]:
        return None
    tracker = Tracker(read_settings(home))
    runs = [tracker.client.get_run(row["run_id"]) for row in (rows[0], rows[-1]) if row["run_id"]]
    shared = set.intersection(*(set(run.data.tags) for run in runs)) if runs else set()
    tags = sorted(name for name in shared if name.startswith(f"sweep.{sweep}-"))
    if not tags:  # cells on a label budget have no runs of their own, their curves have
        return runs_page(tracker, state["address"], tracker.settings.curves_experiment)
    name, wanted = tags[-1].removeprefix("sweep."), f"tags.`{tags[-1]}` = '1'"
    place = tracker.client.get_experiment(runs[0].info.experiment_id).name
    return page_of(tracker, state["address"], place, name, wanted)
