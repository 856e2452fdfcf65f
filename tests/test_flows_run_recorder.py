"""What becomes of cells that ended, in all three flows: rows, the index, MLflow runs, and problems in recording."""

import contextvars
import json
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from textbench.flows.plan.base_cell import BaseCell
from textbench.flows.plan.cell import Cell
from textbench.flows.plan.request import Request
from textbench.flows.results.index import Index
from textbench.flows.results.rankings import RankingCell as Ranking
from textbench.flows.results.rankings import row as ranking_row
from textbench.flows.results.rows import row
from textbench.flows.results.summary import made_alike
from textbench.flows.run import outbox
from textbench.flows.run.label_budgets import CurveRecorder
from textbench.flows.run.prefect_tasks import state_of
from textbench.flows.run.rankings import RankingRecorder
from textbench.flows.run.recorder import Recorder
from textbench.flows.run.sweep import SweepRecorder
from textbench.tasks.storage.files import write_json
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Job, Store
from textbench.tasks.tracking.tracker import ATTEMPT_TAG, CELL_TAG, Settings

# By flow: the module that runs its cells.
RUN_BY = {"benchmark": "sweep", "retrieval": "rankings", "label_budget": "label_budgets"}
LABELS = {"budget": 10, "draw": 0, "stratified": False}


def make_corpus(job: Job) -> None:
    """Write what a corpus says of its files."""
    job.save_json("corpus", {"sha256": {"made.tar": "0" * 64}})


def make_metrics(job: Job) -> None:
    """Write an accuracy that depends on the seed alone."""
    job.save_json("metrics", {"accuracy": 0.5 + job.params["seed"] / 10})


@dataclass
class Runs:
    """MLflow's place: what was written, by run id; `gone` runs were deleted, and its database can be missing."""

    settings: Settings = field(default_factory=Settings)
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    curves: list[list[int]] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    is_there: bool = True
    n_prepared: int = 0
    n_asked: int = 0
    problem: Exception | None = None
    is_slow: threading.Event | None = None

    def require(self) -> None:
        """Find nothing wrong."""

    def exists(self) -> bool:
        return self.is_there

    def prepare(self) -> None:
        self.n_prepared += 1
        if self.problem:
            raise self.problem

    def record(self, result: dict[str, Any], tags: dict[str, str], files: dict[str, Path]) -> str:
        self._answer()
        known = {(run["tags"][CELL_TAG], run["tags"][ATTEMPT_TAG]): name for name, run in self.runs.items()}
        is_known = (tags[CELL_TAG], tags[ATTEMPT_TAG]) in known and not self.gone and self.is_there
        run_id = known[tags[CELL_TAG], tags[ATTEMPT_TAG]] if is_known else f"run-{len(self.runs)}"
        contents = {name: path.read_bytes() for name, path in files.items()}
        self.runs[run_id] = {"row": result, "tags": dict(tags), "files": contents}
        return run_id

    def tag(self, run_id: str, tags: dict[str, str]) -> bool:
        self._answer()
        if run_id not in self.gone:
            self.runs[run_id]["tags"] |= tags
        return run_id not in self.gone

    def record_curve(self, *, name: str, curves: dict[str, dict[int, float]], **_: Any) -> str:
        self._answer()
        self.curves.append(sorted(map(int, curves["mean"])))
        return name

    def _answer(self) -> None:
        self.n_asked += 1
        if self.is_slow:
            assert self.is_slow.wait(60)
        if self.problem:
            raise self.problem


@dataclass
class Flow:
    """A flow's recorder, made on one results folder and one tracker as often as its command is given."""

    name: str
    home: Path
    runs: Runs
    cells: Sequence[Any]

    def again(self, sweep: str = "s-1", attempt: str = "") -> Any:
        store = Store(self.home / "store", isolated=False)
        if self.name == "benchmark":
            return SweepRecorder(self.home, store, sweep, attempt, timed=False)
        if self.name == "retrieval":
            return RankingRecorder(self.home, store, sweep, attempt)
        return CurveRecorder(self.home, store)

    def finish(self, errors: Sequence[str | None] = (None, None, None), **how: str) -> Any:
        """Compute every cell that has no error, and record all."""
        recorder = self.again(**how)
        recorder.begin(self.cells)
        for cell, error in zip(self.cells, errors, strict=True):
            if error is None:
                recorder.store.ensure(cell.references["evaluate"])
            recorder.finish(cell, error)
        assert len(recorder.rows) == len(self.cells)
        return recorder

    def records(self) -> dict[str, dict[str, Any]]:
        folder = "retrieval" if self.name == "retrieval" else "index"
        return {path.stem: json.loads(path.read_text()) for path in (self.home / folder).glob("*.json")}


def metrics_file(recorder: Recorder[Any], cell: BaseCell) -> Path:
    return recorder.store.folder(cell.references["evaluate"]) / "metrics.json"


def references(number: int, code: str = "") -> dict[str, Reference]:
    corpus = Reference("ingest", "tests.test_flows_run_recorder:make_corpus", {})
    function = "tests.test_flows_run_recorder:make_metrics"
    result = Reference("evaluate", function, {"seed": number}, {"corpus": corpus}, code)
    return {"ingest": corpus, "evaluate": result}


def cells_of(name: str, code: str = "") -> list[BaseCell]:
    if name == "retrieval":
        return [Ranking("c", f"m{i}", "honest", 0, 0, references(i), {"rule": "words"}) for i in range(3)]
    asked = [
        Request(["d"], ["m"], labels=LABELS | {"budget": 10 * i} if name == "label_budget" else {})
        for i in (1, 2, 3)
    ]
    return [
        Cell("d", "m", "honest", i, 0, references(i, code), "linear-svm", request)
        for i, request in enumerate(asked)
    ]


@pytest.fixture(params=["benchmark", "retrieval", "label_budget"])
def flow(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Flow:
    """Each flow in turn, with made results and without MLflow."""
    return made(request.param, tmp_path, monkeypatch)


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Flow:
    return made("benchmark", tmp_path, monkeypatch)


def made(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Flow:
    runs = Runs()
    empty: Callable[..., dict[str, Any]] = ranking_row if name == "retrieval" else row

    def result_row(cell: Any, store: Store) -> dict[str, Any]:
        return empty(cell) | {"metrics": store.open(cell.references["evaluate"]).json("metrics")}

    monkeypatch.setattr("textbench.flows.run.recorder.Tracker", lambda settings: runs)
    monkeypatch.setattr("textbench.flows.run.recorder.warm", lambda: None)
    monkeypatch.setattr(
        Recorder, "is_scored", lambda _, record, result: record["metrics"] == result.json("metrics")
    )
    monkeypatch.setattr(f"textbench.flows.run.{RUN_BY[name]}.result_row", result_row)
    monkeypatch.setattr(SweepRecorder, "search", lambda *_: None)
    for kind in (SweepRecorder, RankingRecorder):
        monkeypatch.setattr(kind, "files", lambda self, cell: {"metrics": metrics_file(self, cell)})
    monkeypatch.setattr("textbench.flows.plots.curves.draw", lambda curves, path: path.write_text(""))
    return Flow(name, home, runs, cells_of(name))


def test_every_cell_that_ended_has_its_row_and_its_record(flow: Flow) -> None:
    recorder = flow.finish()
    assert list(recorder.rows) == [cell.key for cell in flow.cells]
    assert [found["metrics"]["accuracy"] for found in recorder.rows.values()] == [0.5, 0.6, 0.7]
    assert not any(found["cached"] or found["error"] for found in recorder.rows.values())
    assert (state_of(recorder.end()).name, state_of(recorder.end()).message) == ("Completed", "3 cells")
    records = flow.records()
    assert records.keys() == recorder.rows.keys()
    for key, record in records.items():
        assert record["metrics"] == recorder.rows[key]["metrics"]
        assert record["run_id"] == recorder.rows[key]["run_id"]
        assert record["created"] > 0
    assert len(flow.runs.runs) == (0 if flow.name == "label_budget" else 3)


def test_what_goes_wrong_in_recording_fails_that_cell_alone(
    flow: Flow, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A result that cannot be read: the cells before and after it are recorded, and the flow says that one failed."""
    whole = flow.again().result_row

    def broken(self: Recorder[Any], cell: BaseCell) -> dict[str, Any]:
        if cell.key == flow.cells[1].key:
            raise KeyError("choice\nof two lines")
        return whole(cell)

    with monkeypatch.context() as patch:
        patch.setattr(type(flow.again()), "result_row", broken)
        recorder = flow.finish()
    errors = [found["error"] for found in recorder.rows.values()]
    assert errors[0] is None and errors[2] is None
    assert errors[1] == r"the result could not be recorded: KeyError: 'choice\nof two lines'"
    assert flow.records().keys() == {flow.cells[0].key, flow.cells[2].key}
    assert (state_of(recorder.end()).name, state_of(recorder.end()).message) == (
        "Failed",
        "1 of 3 cells failed",
    )
    assert [record.levelname for record in caplog.records if hasattr(record, "row")].count("ERROR") == 1
    # Once it can be read, it is recorded, and the others are not again.
    n_runs = len(flow.runs.runs)
    recorder = flow.finish()
    assert [found["error"] for found in recorder.rows.values()] == [None, None, None]
    assert len(flow.runs.runs) == n_runs + (flow.name != "label_budget")


def test_mlflow_that_cannot_be_prepared_fails_every_cell_and_not_the_flow(sweep: Flow) -> None:
    sweep.runs.problem = OSError(28, "No space left on device")
    recorder = sweep.finish([None, "it ran out of memory", None])
    reason = "the result could not be recorded: OSError: [Errno 28] No space left on device"
    kept = f"{reason}; it is kept, and the same command records it"
    assert [found["error"] for found in recorder.rows.values()] == [
        kept, f"it ran out of memory; {reason}", kept,
    ]  # fmt: skip
    assert state_of(recorder.end()).message == "3 of 3 cells failed"


def test_a_failed_cell_is_a_failed_run_and_has_no_record(flow: Flow) -> None:
    recorder = flow.finish([None, "it ran out of memory", None])
    assert [found["error"] for found in recorder.rows.values()] == [None, "it ran out of memory", None]
    assert flow.cells[1].key not in flow.records()
    failed = [run for run in flow.runs.runs.values() if run["row"]["error"]]
    assert [run["files"] for run in failed] == ([] if flow.name == "label_budget" else [{}])


def test_what_is_recorded_is_neither_written_nor_mlflow_imported_again(flow: Flow) -> None:
    first = flow.finish()
    flow.runs.n_prepared = 0
    records = flow.records()
    again = flow.finish()
    assert flow.runs.n_prepared == 0
    assert flow.records() == records
    assert [found | {"cached": False} for found in again.rows.values()] == list(first.rows.values())
    assert all(found["cached"] for found in again.rows.values())


@pytest.mark.parametrize("name", ["benchmark", "label_budget"])
def test_cells_of_code_that_was_brought_back_are_the_newest_again(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = made(name, tmp_path, monkeypatch)
    flow.finish()
    first, records = flow.cells, flow.records()
    flow.cells = edited = cells_of(name, "edited")
    flow.finish()
    assert kept_of(tmp_path) == {cell.key for cell in edited}
    flow.cells = first[:1]  # with one seed all those of its code are back
    assert all(found["cached"] for found in flow.finish([None]).rows.values())
    assert kept_of(tmp_path) == {cell.key for cell in first}
    again = flow.records()
    record = dict(again[first[0].key])
    assert record.pop("asked") > record["created"]
    assert {key: (again | {first[0].key: record})[key] for key in records} == records
    flow.finish([None])
    assert flow.records() == again


def kept_of(home: Path) -> set[str]:
    return {found["key"] for found in made_alike(Index(home).rows())}


def test_rankings_of_code_that_was_brought_back_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = made("retrieval", tmp_path, monkeypatch)
    flow.finish()
    first = flow.cells
    flow.cells = [replace(cell, references=references(i, "edited")) for i, cell in enumerate(first)]
    flow.finish()
    assert not any("asked" in record for record in flow.records().values())
    flow.cells = first
    flow.finish()
    assert {key for key, record in flow.records().items() if "asked" in record} == {c.key for c in first}


def test_records_of_an_earlier_version_are_told_what_made_them(sweep: Flow) -> None:
    """By their recipes; those that are asked for again keep it, and count no more than their like."""
    sweep.finish()
    records = sweep.records()
    for key, record in records.items():
        old = {name: value for name, value in record.items() if name != "made_by"}
        write_json(sweep.home / "index" / f"{key}.json", old)
    cell = sweep.cells[0]
    assert {found["made_by"] for found in Index(sweep.home).rows()} == {cell.made_by}
    every, sweep.cells = sweep.cells, sweep.cells[:1]
    sweep.finish([None])
    assert sweep.records()[cell.key] == records[cell.key]
    assert (
        records[cell.key]["made_by"] == sweep.runs.runs["run-0"]["tags"]["textbench.made_by"] == cell.made_by
    )
    assert kept_of(sweep.home) == {one.key for one in every}


def test_another_sweep_tags_the_runs_it_uses(flow: Flow) -> None:
    flow.finish()
    flow.finish(sweep="s-2")
    tags = [{n for n in run["tags"] if n.startswith("sweep.")} for run in flow.runs.runs.values()]
    assert {run["tags"]["sweep"] for run in flow.runs.runs.values()} <= {"s-2"}  # the last one that used it
    sweeps = [] if flow.name == "label_budget" else ["s-1", "s-2"]
    assert tags == [{f"sweep.{name}" for name in sweeps}] * len(tags)
    assert [record["sweeps"] for record in flow.records().values()] == [sweeps] * 3


def test_tags_say_what_a_run_is_of(flow: Flow) -> None:
    flow.finish()
    for cell, run in zip(flow.cells, flow.runs.runs.values(), strict=False):
        assert run["tags"]["textbench.cell"] == cell.key
        assert run["tags"]["textbench.attempt"] == "first"
        assert run["tags"].get("kind") == ("retrieval" if flow.name == "retrieval" else None)


def test_a_deleted_run_is_written_again(sweep: Flow) -> None:
    sweep.finish()
    sweep.runs.gone = {"run-1"}
    recorder = sweep.finish(sweep="s-2")
    assert [found["run_id"] for found in recorder.rows.values()] == ["run-0", "run-3", "run-2"]


def test_all_runs_are_written_again_when_the_database_is_gone(sweep: Flow) -> None:
    sweep.finish()
    sweep.runs.is_there = False
    recorder = sweep.finish()
    assert [found["run_id"] for found in recorder.rows.values()] == ["run-3", "run-4", "run-5"]
    assert all(found["cached"] for found in recorder.rows.values())


def test_a_record_that_does_not_say_what_the_result_says_is_replaced(sweep: Flow) -> None:
    sweep.finish()
    key = sweep.cells[0].key
    write_json(sweep.home / "index" / f"{key}.json", sweep.records()[key] | {"metrics": {"accuracy": 1.0}})
    recorder = sweep.finish()
    assert recorder.rows[key]["metrics"] == sweep.records()[key]["metrics"] == {"accuracy": 0.5}
    assert [found["run_id"] for found in recorder.rows.values()] == ["run-0", "run-1", "run-2"]  # adopted


def test_an_attempt_of_its_own_uses_no_record_of_another(sweep: Flow) -> None:
    sweep.finish()
    recorder = sweep.finish(attempt="17.000")
    assert [found["run_id"] for found in recorder.rows.values()] == ["run-3", "run-4", "run-5"]
    assert {run["tags"]["textbench.attempt"] for run in sweep.runs.runs.values()} == {"first", "17.000"}


def test_records_of_rankings_as_they_were_once_written_are_made_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = made("retrieval", tmp_path, monkeypatch)
    old = {"run_id": "old", "created": 1.0, "attempt": "", "sweeps": [], "uri": "sqlite:///mlflow.db"}
    for cell in flow.cells:
        write_json(tmp_path / "retrieval" / f"{cell.key}.json", old | {"metrics": {"accuracy": 0.5}})
    recorder = flow.finish()
    assert [record["metrics"] for record in flow.records().values()] != [{"accuracy": 0.5}] * 3
    assert {key: record["run_id"] for key, record in flow.records().items()} == {
        key: found["run_id"] for key, found in recorder.rows.items()
    }


def test_cells_of_curves_are_in_the_index_with_the_request_that_asks_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = made("label_budget", tmp_path, monkeypatch)
    recorder = flow.finish()
    assert [found["labels"]["budget"] for found in recorder.rows.values()] == [10, 20, 30]
    asked = {record["key"]: record["request"]["labels"] for record in Index(tmp_path).rows()}
    assert asked == {key: found["labels"] for key, found in recorder.rows.items()}


def test_a_curve_is_written_once_and_anew_when_a_failed_cell_is_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = made("label_budget", tmp_path, monkeypatch)
    for errors in ([None, "it failed", None], [None, None, None], [None, None, None]):
        flow.finish(errors).record_curves(flow.cells)
    assert flow.runs.curves == [[10, 30], [10, 20, 30]]


def test_curves_of_cells_that_all_failed_are_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = made("label_budget", tmp_path, monkeypatch)
    recorder = flow.finish(["no", "no", "no"])
    recorder.record_curves(flow.cells)
    assert flow.runs.curves == []
    assert state_of(recorder.end()).message == "3 of 3 cells failed"


def test_without_tracking_cells_are_kept_in_the_index_alone_and_recorded_once_it_is_wanted(
    flow: Flow,
) -> None:
    tracked = flow.runs.settings
    flow.runs.settings, flow.runs.is_there = Settings(tracking_uri="none"), False
    for sweep, is_cached in (("s-1", False), ("s-1", True), ("s-2", True)):
        recorder = flow.finish(sweep=sweep)
        if flow.name == "label_budget":
            recorder.record_curves(flow.cells)
        found = [(row["error"], row["run_id"], row["cached"]) for row in recorder.rows.values()]
        assert found == [(None, None, is_cached)] * 3
    assert (flow.runs.n_prepared, flow.runs.n_asked, flow.runs.curves) == (0, 0, [])
    assert [record["tracking_uri"] for record in flow.records().values()] == ["none"] * 3
    made = {record["created"] for record in flow.records().values()}
    flow.runs.settings, flow.runs.is_there = tracked, True
    recorder = flow.finish(sweep="s-2")
    assert [row["cached"] for row in recorder.rows.values()] == [True] * 3
    assert len(flow.runs.runs) == (0 if flow.name == "label_budget" else 3)
    assert made.isdisjoint(record["created"] for record in flow.records().values())


def test_a_server_that_is_slow_keeps_nothing_waiting(sweep: Flow) -> None:
    """`finish` returns while the server has not answered; the rows are there once it has."""
    sweep.runs.is_slow = threading.Event()
    recorder = sweep.again()
    recorder.begin(sweep.cells)
    for cell in sweep.cells:
        recorder.store.ensure(cell.references["evaluate"])
        recorder.finish(cell, None)
    assert sweep.runs.runs == {}
    sweep.runs.is_slow.set()
    assert [found["run_id"] for found in recorder.rows.values()] == ["run-0", "run-1", "run-2"]


def test_a_server_that_has_just_failed_is_not_asked_for_every_cell(sweep: Flow) -> None:
    sweep.finish()
    sweep.runs.problem, sweep.runs.n_asked = ConnectionError("refused"), 0
    recorder = sweep.finish(sweep="s-2")
    assert sweep.runs.n_asked == 1
    assert all("ConnectionError: refused" in found["error"] for found in recorder.rows.values())


def test_what_the_server_refuses_is_that_cells_error_alone(
    sweep: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer, if a bad one, is no reason to leave the server alone, nor to keep the run for later."""
    record = sweep.runs.record

    def refuse_one(result: dict[str, Any], tags: dict[str, str], files: dict[str, Path]) -> str:
        if tags[CELL_TAG] == sweep.cells[0].key:
            raise ValueError("a metric must be a number")
        return record(result, tags, files)

    monkeypatch.setattr(sweep.runs, "record", refuse_one)
    sweep.runs.settings = Settings(when_down="spool")
    errors = [found["error"] for found in sweep.finish().rows.values()]
    assert errors == ["the result could not be recorded: ValueError: a metric must be a number", None, None]
    assert outbox.waiting(sweep.home) == []


def test_a_timed_cell_is_recorded_before_the_next_is_computed(sweep: Flow) -> None:
    store = Store(sweep.home / "store", isolated=False)
    recorder = SweepRecorder(sweep.home, store, "s-1", "1.000", timed=True)
    recorder.begin(sweep.cells)
    store.ensure(sweep.cells[0].references["evaluate"])
    recorder.finish(sweep.cells[0], None)
    assert len(sweep.runs.runs) == 1


def test_lines_of_the_log_belong_to_the_flow_run_that_asked(sweep: Flow) -> None:
    """The recording thread sees the context of the thread that schedules."""
    mark: contextvars.ContextVar[str] = contextvars.ContextVar("mark", default="none")
    seen: list[str] = []
    handler = logging.Handler(logging.INFO)
    handler.emit = lambda record: seen.append(mark.get())  # type: ignore[method-assign]
    logger = logging.getLogger("textbench.run")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    mark.set("this flow run")
    try:
        sweep.finish()
    finally:
        logger.removeHandler(handler)
    assert set(seen) == {"this flow run"}
