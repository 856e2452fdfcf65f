"""`textbench leaderboard --from-mlflow`: MLflow's runs give the table that the results folder's index gives."""

import importlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from textbench.flows.plan.cell import Cell
from textbench.flows.plan.request import Request
from textbench.flows.results import winner
from textbench.flows.results.index import Index
from textbench.flows.results.placed import PAIRED
from textbench.flows.results.rows import row
from textbench.flows.run.sweep import SweepRecorder
from textbench.tasks import InputError
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Job, Store

METRICS = ("accuracy", "macro_f1", "micro_f1", "map")
FORMATS = ("table", "csv", "markdown", "latex")


def make_corpus(job: Job) -> None:
    """Write what a corpus says of its files."""
    job.save_json("corpus", {"sha256": {"made.tar": "0" * 64}})


def make_metrics(job: Job) -> None:
    """Write the parameters as the metrics, and predictions of as many right."""
    job.save_json("metrics", job.params["metrics"])
    n_right = round(50 * job.params["metrics"]["accuracy"])
    predicted = [int(place >= n_right) for place in range(50)]
    job.save_table("predictions", {"document": list(range(50)), "target": [0] * 50, "predicted": predicted})


def cell(method: str, seed: int, first: float, dataset: str = "r8", **asked: Any) -> Cell:
    """A cell whose metrics are known beforehand, asked for in some way."""
    corpus = Reference("ingest", f"{__name__}:make_corpus", {"dataset": dataset})
    metrics = {name: first / (1 + i) + seed / 97 for i, name in enumerate(METRICS)}
    params = {"method": method, "metrics": metrics, "asked": asked}
    result = Reference("evaluate", f"{__name__}:make_metrics", params, {"corpus": corpus})
    request = Request([dataset], [method], [seed], **asked)
    references = {"ingest": corpus, "evaluate": result}
    return Cell(dataset, method, "honest", seed, request.trials, references, "linear-svm", request)


def record(home: Path, cells: Sequence[Cell], monkeypatch: pytest.MonkeyPatch) -> None:
    """Record cells in the index and in MLflow, as the flow does."""

    def result_row(asked: Cell, store: Store) -> dict[str, Any]:
        metrics = store.open(asked.references["evaluate"]).json("metrics")
        found = {"metrics": metrics, "seconds": {"tune": 1.5, "evaluate": 0.25}, "peak_mb": 120.5}
        return row(asked) | found | {"params": {"C": 0.1}}

    monkeypatch.setattr("textbench.flows.run.sweep.result_row", result_row)
    monkeypatch.setattr("textbench.flows.run.recorder.warm", lambda: None)
    monkeypatch.setattr(SweepRecorder, "search", lambda *_: None)
    monkeypatch.setattr(SweepRecorder, "files", lambda *_: {})
    recorder = SweepRecorder(home, Store(home / "store", isolated=False), "s-1", "", timed=False)
    recorder.begin(cells)
    for one in cells:
        recorder.store.ensure(one.references["evaluate"])
        recorder.finish(one, None)
    assert [found["error"] for found in recorder.rows.values()] == [None] * len(cells)


def test_the_table_of_mlflow_is_that_of_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path))
    monkeypatch.setattr("textbench.flows.results.winner.verdicts", lambda *_: [])
    cells = [
        cell(method, seed, first, dataset)
        for dataset in ("r8", "r52")
        for method, first in (("lsi(n_components=5)", 0.8), ("tfidf", 0.9), ("a_b", 0.7))
        for seed in range(2)
    ]
    record(tmp_path, cells, monkeypatch)
    for number, row_here in enumerate(Index(tmp_path).rows()):
        found = {"documents_95": {"accuracy": 0.3 + number / 1000}, "on_border": ["C"]}
        Index(tmp_path).amend(row_here["key"], found)
    show = importlib.import_module("textbench.flows.cli.leaderboard").leaderboard
    printed = {}
    for from_mlflow in (False, True):
        for output in FORMATS:
            show(None, None, None, None, output, False, None, from_mlflow)
        printed[from_mlflow] = capsys.readouterr().out
    assert printed[True] == printed[False]
    assert "d: over test documents" in printed[True]
    assert PAIRED in " ".join(printed[True].split()) and "independent" not in printed[True]
    assert "* the best C was the largest or the smallest that was tried." in printed[True].replace(
        "\xa0", " "
    )
    assert all(name in printed[True] for name in ("r8", "r52", "tfidf", "lsi(n_components=5)"))


def test_a_result_that_is_gone_is_compared_by_its_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path))
    cells = [cell("tfidf", 0, 0.9), cell("nb", 0, 0.8)]
    record(tmp_path, cells, monkeypatch)
    for one in cells:
        shutil.rmtree(tmp_path / "store" / "evaluate" / one.key)
    show = importlib.import_module("textbench.flows.cli.leaderboard").leaderboard
    for from_mlflow in (False, True):
        show(None, None, None, None, "table", False, None, from_mlflow)
        assert "tfidf" in capsys.readouterr().out
        with pytest.raises(
            InputError, match="none of these runs has out-of-fold scores, which log_loss needs"
        ):
            show(None, None, None, "log_loss", "table", False, None, from_mlflow)


def test_thousands_of_runs_are_not_read_back_for_a_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested: list[int] = []
    monkeypatch.setattr(winner, "_sentence", lambda _, rows, *__: str(tested.append(len(rows))))
    made = {"protocol": "honest", "trials": 0, "metrics": {"accuracy": 0.5}, "seconds": {}, "peak_mb": None}
    made |= {"error": None, "params": {}, "created": 0.0, "dataset": "r8", "method": "lsi", "key": "k"}
    rows = [made | {"seed": seed} for seed in range(winner.MOST_TESTED + 1)]
    assert len(winner.verdicts(tmp_path, rows[1:])) == 1
    (line,) = winner.verdicts(tmp_path, rows)
    assert line.startswith(f"No verdict: {len(rows)} runs are more than")
    assert tested == [winner.MOST_TESTED]
