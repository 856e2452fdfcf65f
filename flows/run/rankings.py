"""Running rankings: every cell of a request of retrieval is computed and recorded, whoever runs its stages."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textbench.flows.plan.request import RetrievalRequest
from textbench.flows.results.rankings import RankingCell, index, plan, result_row, row
from textbench.flows.run.engine import Runner, execute, sweep_id
from textbench.flows.run.features import let_features_go
from textbench.flows.run.recorder import Recorder
from textbench.flows.run.workspace import home_folder
from textbench.tasks.storage.garbage import reading, remove_leftovers
from textbench.tasks.storage.store import Artifact, Store
from textbench.tasks.tracking.tracker import KIND_TAG, RETRIEVAL, Tracker


def run_rankings(
    request: RetrievalRequest, runner: Runner, tracker: Tracker | None = None, home: Path | None = None
) -> list[dict[str, Any]]:
    """Run every cell of a request, record each in the index and by the tracker, and return their rows.

    Without a tracker runs are tracked where mlflow.yaml says; without a `home` results go to `home_folder()`.
    """
    home, begun = home or home_folder(), time.time()
    cells = plan(request)
    attempt = f"{time.time():.3f}" if request.fresh else ""
    store = Store(home / "store", not_before=float(attempt or 0))
    remove_leftovers(store.root)
    recorder = RankingRecorder(home, store, sweep_id(request.name, cells, attempt), attempt, tracker)
    with reading(store.root):
        recorder.begin(cells)
        execute(cells, store, runner, recorder.finish)
        rows = recorder.end()
    if not request.keep_features:
        let_features_go(store, cells, rows, begun)
    return rows


class RankingRecorder(Recorder[RankingCell]):
    """Writes the cells of a retrieval: a run each, and what was recorded in `<home>/retrieval/<key>.json`."""

    def __init__(
        self, home: Path, store: Store, sweep: str, attempt: str, tracker: Tracker | None = None
    ) -> None:
        super().__init__(home, store, index(home), sweep, attempt, tracker)

    def row(self, cell: RankingCell, error: str | None = None) -> dict[str, Any]:
        """Return a cell as a row with no result yet, or with the error that took its place."""
        return row(cell, error)

    def result_row(self, cell: RankingCell) -> dict[str, Any]:
        """Return a finished cell as a row."""
        return result_row(cell, self.store)

    def tags(self, cell: RankingCell) -> dict[str, str]:
        """Return the tags of a cell's run; its kind keeps it apart from those of sweeps."""
        return super().tags(cell) | {KIND_TAG: RETRIEVAL}

    def likes(self, row: Mapping[str, Any]) -> Any:
        """Return what a recorded row shares with those that stand in one mean over seeds."""
        asked = [row["params"].get(name) for name in ("judgments", "rule", "n_folds")]
        return row["dataset"], row["method"], row["protocol"], int(row["trials"]), *asked

    def is_scored(self, record: Mapping[str, Any], result: Artifact) -> bool:
        """Tell whether a record has the metrics that its stored result has."""
        return bool(record["metrics"] == result.json("metrics"))

    def files(self, cell: RankingCell) -> dict[str, Path]:
        """Return the ranking in TREC's format, the measures of each query, and what was chosen."""
        folder = self.store.folder(cell.references["evaluate"])
        names = ("run.txt", "per_query.parquet", "choice.json")
        return {Path(name).stem: folder / name for name in names}
