"""A metric that is added or mended is scored on stored predictions: nothing is computed again."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import made_runs
from tests.made_runs import finish
from textbench.flows.results import rescore
from textbench.flows.results.index import Index
from textbench.flows.results.rescore import rescored
from textbench.tasks import score
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Job, Store

TARGET = [0, 1, 2, 0, 1, 2]


def make_result(job: Job) -> None:
    """Write predictions with decision values: the second document's class comes second."""
    made_runs.make_result(job)
    scores = np.eye(3)[TARGET]
    scores[1] = [2.0, 1.0, 0.0]
    job.save_array("scores", scores)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run that an earlier table of metrics scored."""

    class WithScores(Reference):
        def __init__(self, stage: str, function: str, *others: Any) -> None:
            super().__init__(
                stage,
                function.replace("made_runs:make_result", "test_flows_results_rescore:make_result"),
                *others,
            )

    monkeypatch.setattr(made_runs, "Reference", WithScores)
    columns = {"document": list(range(6)), "target": TARGET, "predicted": [0, 0, 2, 0, 1, 2]}
    finish(tmp_path, "d", "m", columns, metrics={"accuracy": 0.25}, scored_by="of old")
    return tmp_path


def test_a_row_of_an_earlier_table_gets_all_metrics_and_keeps_them(home: Path) -> None:
    (row,) = rescored(home, Index(home).rows())
    assert row["metrics"]["accuracy"] == 5 / 6
    assert row["metrics"]["lraps"] == pytest.approx((5 + 1 / 2) / 6)
    assert row["metrics"]["coverage_error"] == pytest.approx((5 + 2) / 6)
    assert "map" not in row["metrics"]  # no neighbours were stored
    assert Index(home).rows() == [row]


def test_a_row_of_today_is_not_read_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rescored(home, Index(home).rows())
    monkeypatch.setattr(rescore.score, "metrics", lambda result: pytest.fail("scored again"))
    assert rescored(home, Index(home).rows()) == rows


def test_a_row_whose_predictions_are_gone_stays_as_it_is(home: Path) -> None:
    (before,) = Index(home).rows()
    store = Store(home / "store")
    for path in sorted(store.root.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    assert rescored(home, [before]) == [before]


def test_another_table_of_metrics_has_another_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = score.digest()
    monkeypatch.setattr(score, "TABLES", score.TABLES[:1])
    assert score.digest() != before
