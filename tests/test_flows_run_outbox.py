"""The spool: runs wait in it while MLflow is down, and are sent once, whoever sends them."""

import json
from pathlib import Path

import pytest

from tests.test_flows_run_recorder import Flow, made, metrics_file
from textbench.flows.cli.status import status
from textbench.flows.run import outbox
from textbench.flows.run.prefect_tasks import state_of
from textbench.tasks.storage.files import write_json
from textbench.tasks.storage.locks import locked
from textbench.tasks.tracking.tracker import CELL_TAG, Settings, TrackingError


def send(flow: Flow) -> tuple[int, dict[str, str]]:
    return outbox.send(flow.home, flow.runs)  # type: ignore[arg-type]


@pytest.fixture
def down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Flow:
    """A sweep whose runs may wait, and whose tracking server does not answer."""
    sweep = made("benchmark", tmp_path, monkeypatch)
    sweep.runs.settings = Settings(when_down="spool")
    sweep.runs.problem = TrackingError("the MLflow server does not answer")
    return sweep


def test_runs_wait_in_the_spool_while_the_server_is_down_and_are_sent_once(
    down: Flow, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = down.finish([None, "it ran out of memory", None])
    assert [found["error"] for found in recorder.rows.values()] == [None, "it ran out of memory", None]
    assert state_of(recorder.end()).message == "1 of 3 cells failed"
    assert "3 runs wait" in caplog.text
    assert {found["run_id"] for found in recorder.rows.values()} == {None}
    assert len(down.records()) == 2
    names = outbox.waiting(down.home)
    assert sorted(names) == sorted(f"{cell.key}-first" for cell in down.cells)
    # The store may be pruned meanwhile: what is attached is kept.
    metrics_file(recorder, down.cells[0]).unlink()
    down.runs.problem = None
    assert send(down) == (3, {})
    assert send(down) == (0, {})
    assert not list(outbox.folder(down.home).iterdir())
    by_cell = {run["tags"][CELL_TAG]: (name, run) for name, run in down.runs.runs.items()}
    assert len(by_cell) == len(down.runs.runs) == 3
    assert json.loads(by_cell[down.cells[0].key][1]["files"]["metrics"]) == {"accuracy": 0.5}
    assert by_cell[down.cells[1].key][1]["row"]["error"] == "it ran out of memory"
    for key, record in down.records().items():
        assert record["run_id"] == by_cell[key][0]


def test_what_an_earlier_version_left_waiting_is_sent(down: Flow) -> None:
    """Its rows named what waits, and its entries had the tags of all sweeps."""
    down.finish()
    rows = down.records()
    for key, record in rows.items():
        write_json(down.home / "index" / f"{key}.json", record | {"waiting": f"{key}-first"})
    down.runs.problem = None
    assert send(down) == (3, {})
    assert len(down.runs.runs) == 3
    for key, record in down.records().items():
        assert record == rows[key] | {"run_id": record["run_id"]}
        assert down.runs.runs[record["run_id"]]["tags"][CELL_TAG] == key


def test_what_is_down_and_what_is_refused() -> None:
    from mlflow.exceptions import MlflowException
    from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE, TEMPORARILY_UNAVAILABLE
    from requests.exceptions import ReadTimeout

    down: list[Exception] = [
        MlflowException("API request to http://x failed with exception y"), ConnectionRefusedError(111, "refused"),
        MlflowException("server closed the connection", TEMPORARILY_UNAVAILABLE), TrackingError("no answer"),
        ReadTimeout("20 s"), OSError(28, "No space left on device"),
    ]  # fmt: skip
    refused: list[Exception] = [
        MlflowException("too long", INVALID_PARAMETER_VALUE), FileNotFoundError(2, "gone"), KeyError("metrics"),
        ValueError("not a number"),
    ]  # fmt: skip
    assert [outbox.is_down(error) for error in down] == [True] * len(down)
    assert [outbox.is_down(error) for error in refused] == [False] * len(refused)


def test_the_next_run_sends_what_waits_and_writes_nothing_twice(down: Flow) -> None:
    down.finish()
    down.runs.problem = None
    recorder = down.finish()
    assert len(down.runs.runs) == 3
    assert state_of(recorder.end()).name == "Completed"
    assert [found["error"] for found in recorder.rows.values()] == [None] * 3
    assert None not in {record["run_id"] for record in down.records().values()}
    assert outbox.waiting(down.home) == []


def test_a_cell_that_is_being_recorded_is_not_waited_for(down: Flow) -> None:
    """Whoever records it may wait for what is being sent: both would wait for ever."""
    down.finish()
    down.runs.problem = None
    with locked(down.home / "index" / f".{down.cells[0].key}.lock"):
        assert send(down) == (2, {})
    assert outbox.waiting(down.home) == [f"{down.cells[0].key}-first"]
    assert send(down) == (1, {})


def test_a_server_that_comes_back_gets_what_waits_at_the_end(
    down: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("textbench.flows.run.recorder.PAUSE_SECONDS", 0.0)
    recorder = down.finish()
    down.runs.problem = None
    assert state_of(recorder.end()).name == "Completed"
    assert len(down.runs.runs) == 3
    assert outbox.waiting(down.home) == []


def test_cells_that_wait_are_cached_and_take_the_tags_of_other_sweeps(down: Flow) -> None:
    down.finish()
    records = down.records()
    again = down.finish(sweep="s-2")
    assert all(found["cached"] and not found["error"] for found in again.rows.values())
    assert {key: record["created"] for key, record in down.records().items()} == {
        key: record["created"] for key, record in records.items()
    }
    down.runs.problem = None
    send(down)
    for run in down.runs.runs.values():
        assert {"sweep.s-1", "sweep.s-2"} <= run["tags"].keys()
        assert run["tags"]["sweep"] == "s-2"


def test_recorded_cells_of_another_sweep_wait_too_and_keep_their_run(down: Flow) -> None:
    down.runs.problem = None
    runs = [found["run_id"] for found in down.finish().rows.values()]
    down.runs.problem = TrackingError("the MLflow server does not answer")
    recorder = down.finish(sweep="s-2")
    assert [found["error"] for found in recorder.rows.values()] == [None] * 3
    down.runs.problem = None
    assert [found["run_id"] for found in down.finish(sweep="s-2").rows.values()] == runs
    assert len(down.runs.runs) == 3
    assert all("sweep.s-2" in run["tags"] for run in down.runs.runs.values())


def test_a_failure_that_waited_does_not_overwrite_the_success_after_it(down: Flow) -> None:
    down.finish(["it ran out of memory", None, None])
    down.runs.problem = None
    down.finish()
    send(down)
    assert [run["row"]["error"] for run in down.runs.runs.values()] == [None] * 3


def test_what_waits_for_another_server_is_left_waiting(down: Flow) -> None:
    down.finish()
    down.runs.problem = None
    down.runs.settings = Settings(tracking_uri="http://elsewhere:5000", when_down="spool")
    assert send(down) == (0, {})
    assert len(outbox.waiting(down.home)) == 3


def test_a_run_that_is_refused_keeps_no_others_waiting(down: Flow) -> None:
    down.finish()
    down.runs.problem = None
    name = outbox.waiting(down.home)[0]
    path = outbox.folder(down.home) / f"{name}.json"
    write_json(path, json.loads(path.read_text()) | {"files": {"metrics": "/gone"}})
    n_sent, refused = send(down)
    assert (n_sent, list(refused)) == (2, [name])
    assert "FileNotFoundError" in refused[name]
    assert outbox.waiting(down.home) == [name]


def test_a_server_that_goes_away_while_runs_are_sent_ends_it(
    down: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    down.finish()
    with pytest.raises(TrackingError):
        send(down)
    assert len(outbox.waiting(down.home)) == 3


def test_a_spool_file_that_was_removed_is_a_run_to_be_written(down: Flow) -> None:
    down.finish()
    for path in outbox.folder(down.home).glob("*.json"):
        path.unlink()
    down.runs.problem = None
    assert None not in {found["run_id"] for found in down.finish().rows.values()}
    assert len(down.runs.runs) == 3


def test_curves_wait_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = made("label_budget", tmp_path, monkeypatch)
    flow.runs.settings = Settings(when_down="spool")
    flow.runs.problem = TrackingError("the MLflow server does not answer")
    flow.finish().record_curves(flow.cells)
    assert len(outbox.waiting(tmp_path)) == 1
    assert not list((tmp_path / "curves").glob("*.json"))
    flow.runs.problem = None
    assert send(flow) == (1, {})
    assert flow.runs.curves == [[10, 20, 30]]


def test_status_says_how_many_runs_wait(
    down: Flow, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEXTBENCH_HOME", str(down.home))
    status(json=False)
    assert "spool" not in capsys.readouterr().out
    down.finish()
    status(json=False)
    assert "spool    3 runs wait in" in capsys.readouterr().out
    status(json=True)
    assert json.loads(capsys.readouterr().out)["spool"]["waiting"] == 3
