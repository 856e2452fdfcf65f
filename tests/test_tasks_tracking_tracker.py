"""Tracking: what mlflow.yaml may say, and that one cell is one run however often it is tried."""

import contextlib
import json
import re
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands import free_port
from textbench.tasks import InputError
from textbench.tasks.storage.definitions import PROJECT
from textbench.tasks.tracking.tracker import (
    ATTEMPT_TAG,
    CELL_TAG,
    KIND_TAG,
    RETRIEVAL,
    RUN_TAG,
    Settings,
    Tracker,
    TrackingError,
    committed,
    data_tag,
    git_commit,
    read_settings,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder for an mlflow.yaml."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def settings_from(text: str | bytes, home: Path = Path("/home/x")) -> Settings:
    Path("mlflow.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_settings(home)


def test_the_projects_own_file_says_the_defaults(folder: Path) -> None:
    default = Settings()
    expected = Settings(
        tracking_uri=f"sqlite:///{folder}/mlflow.db",
        experiment=default.experiment,
        trials_experiment=default.trials_experiment,
        artifact_root=f"{folder}/{default.artifact_root}",
        log_predictions=default.log_predictions,
    )
    assert read_settings(folder) == expected
    assert settings_from("", folder) == expected
    assert settings_from("# nothing\n", folder) == expected


def test_a_database_whose_making_was_cut_short_is_made_anew(folder: Path) -> None:
    """MLflow would stumble over its own tables for ever."""
    with contextlib.closing(sqlite3.connect(folder / "mlflow.db")) as connection, connection:
        connection.executescript(
            "CREATE TABLE experiments (name TEXT); CREATE TABLE alembic_version (x TEXT);"
        )
    (folder / ".mlflow.db.new").write_bytes(b"SQLite format 3")
    (folder / ".mlflow.db.new-journal").write_bytes(b"half a page")
    tracker = Tracker(read_settings(folder))
    assert tracker.client.get_experiment_by_name("textbench") is not None
    assert [path.name for path in folder.glob(".mlflow.db*")] == [".mlflow.db.lock"]


def test_a_database_of_something_else_is_left_alone(folder: Path) -> None:
    with contextlib.closing(sqlite3.connect(folder / "mlflow.db")) as connection, connection:
        connection.executescript("CREATE TABLE birds (name TEXT); INSERT INTO birds VALUES ('wren');")
    Tracker(read_settings(folder)).prepare()
    with contextlib.closing(sqlite3.connect(folder / "mlflow.db")) as connection:
        assert connection.execute("SELECT name FROM birds").fetchall() == [("wren",)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("experimnt: x", r"unknown key 'experimnt'; did you mean experiment"),
        ("1: x", r"unknown key 1; choose from artifact_root, curves_experiment, experiment"),
        ("experiment: 5", r"experiment must be a str, got 5"),
        ("experiment: ''", r"experiment must be a str, got ''"),
        ("experiment:", r"experiment must be a str, got None"),
        ("log_predictions: maybe", r"log_predictions must be a bool, got 'maybe'"),
        ("log_predictions: 1", r"log_predictions must be a bool, got 1"),
        ("when_down: wait", r"when_down must be stop or spool, got 'wait'"),
        ("- a\n- b", r"must hold `key: value` lines, got list"),
        ("just words", r"must hold `key: value` lines, got str"),
        ("a: [1", r"is not YAML: .*line 1"),
        ("!!python/object:os.system {}", r"is not YAML"),
        (b"\xff\xfe\x00", r"is not YAML"),
        ("tracking_uri: ftp://x", r"tracking_uri 'ftp://x' is not supported; use sqlite:///FILE"),
        ("tracking_uri: ./mlruns", r"tracking_uri './mlruns' is not supported"),
        ("tracking_uri: sqlite:mlflow.db", r"tracking_uri 'sqlite:mlflow.db' is not supported"),
        ("tracking_uri: file:///tmp/mlruns", r"is not supported"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(folder: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        settings_from(text)
    assert "\n" not in str(caught.value)
    assert "mlflow.yaml" in str(caught.value) or "tracking_uri" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "uri"),
    [
        ("sqlite:///mlflow.db", "sqlite:////home/x/mlflow.db"),
        ("sqlite:///sub/other.db", "sqlite:////home/x/sub/other.db"),
        ("sqlite:////data/mlflow.db", "sqlite:////data/mlflow.db"),
        ("http://127.0.0.1:5000", "http://127.0.0.1:5000"),
        ("postgresql://user@host/db", "postgresql://user@host/db"),
    ],
)
def test_relative_databases_are_in_the_results_folder(folder: Path, given: str, uri: str) -> None:
    assert settings_from(f"tracking_uri: {given}").tracking_uri == uri


@pytest.mark.parametrize(
    ("given", "root"),
    [("art", "/home/x/art"), ("/data/art", "/data/art"), ("s3://bucket/art", "s3://bucket/art")],
)
def test_relative_artifact_roots_are_in_the_results_folder(folder: Path, given: str, root: str) -> None:
    assert settings_from(f"artifact_root: {given}").artifact_root == root


def test_the_environments_address_wins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://somewhere:5000")
    assert settings_from("tracking_uri: sqlite:///x.db").tracking_uri == "http://somewhere:5000"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///env.db")
    assert settings_from("tracking_uri: sqlite:///x.db").tracking_uri == "sqlite:////home/x/env.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "")
    assert settings_from("tracking_uri: sqlite:///x.db").tracking_uri == "sqlite:////home/x/x.db"


def refuses(uri: str) -> str:
    with pytest.raises(TrackingError) as caught:
        Tracker(Settings(tracking_uri=uri)).prepare()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_server_that_is_not_there_is_named() -> None:
    uri = f"http://127.0.0.1:{free_port()}"
    assert re.match(
        f"the MLflow server at {uri} does not answer .*refused.*start it, or change", refuses(uri)
    )


@pytest.mark.parametrize("uri", ["http://127.0.0.1:none", "http://", "https:///x", "http://[::1"])
def test_an_address_that_is_none_is_named(uri: str) -> None:
    assert f"the MLflow server at {uri} does not answer" in refuses(uri)


@pytest.mark.parametrize(
    "answer",
    [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.0 503 Busy\r\n\r\n", b"HTTP/1.0 404 No\r\n\r\n", b"", None],
)
def test_a_server_of_another_kind_is_named_and_asked_once(answer: bytes | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection = listener.accept()[0]
            with connection:
                connection.recv(1000)
                if answer is None:
                    connection.recv(1)  # never a word
                connection.sendall(answer or b"")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        uri = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert f"the MLflow server at {uri} does not answer (" in refuses(uri)
        thread.join(60)
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody came again: MLflow's client would, for minutes
            listener.accept()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("a home")  # with a space in its name


@pytest.fixture(scope="module")
def others(home: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Two more processes that want the database of `tracker` while it is being made."""
    source = (
        "from pathlib import Path\nfrom textbench.tasks.tracking.tracker import Tracker, read_settings\n"
        f"tracker = Tracker(read_settings(Path({str(home)!r})))\ntracker.prepare()\n"
        "print(sorted(tracker._experiments.items()))"
    )
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([sys.executable, "-c", source], cwd=home, **pipes) for _ in range(2)]
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def tracker(home: Path, others: list[subprocess.Popen[str]]) -> Tracker:
    """A tracker on a database of its own, which takes seconds to make and is therefore shared."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        made = Tracker(read_settings(home))
    made.prepare()
    return made


def test_processes_may_make_one_database_at_once(
    tracker: Tracker, others: list[subprocess.Popen[str]]
) -> None:
    outputs = [process.communicate(timeout=100) for process in others]
    assert [process.returncode for process in others] == [0, 0], outputs
    assert {out.strip() for out, _ in outputs} == {str(sorted(tracker._experiments.items()))}


def test_a_database_that_is_gone_is_noticed(tracker: Tracker, tmp_path: Path) -> None:
    assert tracker.exists()
    assert not Tracker(Settings(tracking_uri=f"sqlite:///{tmp_path}/gone.db")).exists()
    assert Tracker(Settings(tracking_uri="http://127.0.0.1:1")).exists()


def test_a_database_that_is_none_is_named(tracker: Tracker, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("not a database, and long enough to be read as one" * 100)
    (tmp_path / "folder.db").mkdir()
    for name in ("text.db", "folder.db", "text.db/inside.db"):
        with pytest.raises(TrackingError, match="cannot be used") as caught:
            Tracker(Settings(tracking_uri=f"sqlite:///{tmp_path / name}")).prepare()
        assert "\n" not in str(caught.value)


def row(**changes: Any) -> dict[str, Any]:
    return {
        "dataset": "r8",
        "method": "lsi",
        "protocol": "honest",
        "seed": 3,
        "trials": 0,
        "probe": "linear-svm",
        "params": {"n_components": 100, "C": 0.1, "whiten": None},
        "metrics": {"accuracy": 0.9, "macro_f1": 0.8},
        "seconds": {"featurize": 1.5, "tune": 2.0},
        "peak_mb": 321.0,
        "error": None,
    } | changes


def failed(error: str = "ValueError: k must be >= 1, got 0") -> dict[str, Any]:
    return row(params={}, metrics={}, seconds={}, peak_mb=None, error=error)


def tags(cell: str, attempt: str = "first") -> dict[str, str]:
    return {CELL_TAG: cell, ATTEMPT_TAG: attempt, "git.commit": "abc"}


def n_runs(tracker: Tracker, cell: str) -> int:
    experiment = tracker.client.get_experiment_by_name(tracker.settings.experiment)
    return len(tracker.client.search_runs([experiment.experiment_id], f"tags.`{CELL_TAG}` = '{cell}'"))


def test_a_cell_is_written_whole(tracker: Tracker, home: Path, tmp_path: Path) -> None:
    predictions, figure = tmp_path / "predictions.parquet", tmp_path / "per_class.json"
    predictions.write_bytes(b"PAR1")
    figure.write_text("{}")
    run_id = tracker.record(row(), tags("whole"), {"predictions": predictions, "": figure})
    run = tracker.client.get_run(run_id)
    assert run.info.status == "FINISHED"
    assert run.data.params == {
        "dataset": "r8",
        "method": "lsi",
        "protocol": "honest",
        "seed": "3",
        "trials": "0",
        "probe": "linear-svm",
        "n_components": "100",
        "C": "0.1",
        "whiten": "None",
    }
    assert run.data.metrics == {
        "accuracy": 0.9,
        "macro_f1": 0.8,
        "seconds_featurize": 1.5,
        "seconds_tune": 2.0,
        "seconds": 3.5,
        "peak_mb": 321.0,
    }
    assert tags("whole").items() <= run.data.tags.items()
    assert "error" not in run.data.tags
    files = {path.name: path.read_bytes() for path in (home / "mlartifacts").rglob("*") if path.is_file()}
    assert files == {"predictions.parquet": b"PAR1", "per_class.json": b"{}"}
    listed = {item.path for item in tracker.client.list_artifacts(run_id)}
    assert listed == {"predictions", "per_class.json"}


def test_the_same_cell_and_attempt_are_one_run(tracker: Tracker) -> None:
    first = tracker.record(row(), tags("twice"), {})
    assert tracker.record(row(), tags("twice"), {}) == first
    assert n_runs(tracker, "twice") == 1
    assert tracker.record(row(), tags("twice", "later"), {}) != first
    assert tracker.record(row(), tags("thrice"), {}) != first
    assert n_runs(tracker, "twice") == 2


def test_a_run_left_by_a_killed_process_is_adopted(tracker: Tracker) -> None:
    left = tracker._create("r8 lsi seed 3", 0, tags("killed"), tracker.settings.experiment)
    assert tracker.client.get_run(left).info.status == "RUNNING"
    assert tracker.record(row(), tags("killed"), {}) == left
    run = tracker.client.get_run(left)
    assert (run.info.status, run.data.metrics["accuracy"]) == ("FINISHED", 0.9)
    assert n_runs(tracker, "killed") == 1


def test_a_failed_cell_succeeds_later_in_the_same_run(tracker: Tracker) -> None:
    run_id = tracker.record(failed(), tags("flaky"), {})
    run = tracker.client.get_run(run_id)
    assert run.info.status == "FAILED"
    assert run.data.tags["error"] == "ValueError: k must be >= 1, got 0"
    assert run.data.metrics == {}
    assert run_id not in {row["run_id"] for row in tracker.runs()}
    assert tracker.record(row(), tags("flaky"), {}) == run_id
    run = tracker.client.get_run(run_id)
    assert run.info.status == "FINISHED"
    assert "error" not in run.data.tags
    assert run.data.metrics["accuracy"] == 0.9


def test_rankings_and_curves_have_experiments_of_their_own(tracker: Tracker, tmp_path: Path) -> None:
    picture = tmp_path / "curve.svg"
    picture.write_text("<svg/>")
    ranking = tracker.record(row(), tags("ranked") | {KIND_TAG: RETRIEVAL}, {})
    curves = {name: {10: 0.5} for name in ("mean", "low", "high")}
    curve = tracker.record_curve("r8 by labels", {}, curves, "accuracy", tags("drawn"), picture)
    places = {
        run: tracker.client.get_experiment(tracker.client.get_run(run).info.experiment_id).name
        for run in (ranking, curve)
    }
    assert places == {ranking: "textbench-retrieval", curve: "textbench-curves"}
    assert n_runs(tracker, "ranked") == n_runs(tracker, "drawn") == 0  # among the cells


def test_rankings_and_curves_of_earlier_versions_are_adopted(tracker: Tracker, tmp_path: Path) -> None:
    """They were kept in the experiment of cells."""
    picture = tmp_path / "curve.svg"
    picture.write_text("<svg/>")
    cells = tracker.settings.experiment
    ranking = tracker._create("ranking", 0, tags("old-ranking"), cells)
    assert tracker.record(row(), tags("old-ranking") | {KIND_TAG: RETRIEVAL}, {}) == ranking
    curve = tracker._create("curve", 0, tags("old-curve"), cells)
    curves = {name: {10: 0.5} for name in ("mean", "low", "high")}
    assert tracker.record_curve("r8 by labels", {}, curves, "accuracy", tags("old-curve"), picture) == curve
    assert ranking not in {found["run_id"] for found in tracker.runs()}


def test_long_errors_and_parameters_are_recorded(tracker: Tracker) -> None:
    run_id = tracker.record(failed("x" * 20_000), tags("long error"), {})
    assert tracker.client.get_run(run_id).data.tags["error"].startswith("xxx")
    run_id = tracker.record(row(params={"stop_words": "y" * 20_000}), tags("long parameter"), {})
    assert tracker.client.get_run(run_id).data.params["stop_words"].startswith("yyy")


def test_parameters_of_any_name_are_recorded(tracker: Tracker) -> None:
    """Those of an ensemble are called like its members."""
    weights = {
        "lsi@letters": 0.5,
        "avgvec(word_vectors__path='glove.txt')": 0.25,
        "z" * 300: 0.25,
        "api(url='http://a/v1')": 0,
    }
    run_id = tracker.record(row(params=weights), tags("members"), {})
    found = tracker.client.get_run(run_id).data.params
    assert found["lsi_letters"] == "0.5"
    assert found["avgvec_word_vectors__path__glove.txt__"] == "0.25"
    assert found["z" * 250] == "0.25"
    assert found["api_url__http:__a_v1__"] == "0"


def test_a_result_that_came_out_otherwise_does_not_stop_the_sweep(tracker: Tracker) -> None:
    tracker.record(row(), tags("changed"), {})
    run_id = tracker.record(row(params={"n_components": 200}), tags("changed"), {})
    assert tracker.client.get_run(run_id).data.params["n_components"] == "200"
    assert n_runs(tracker, "changed") == 1


def test_a_metric_that_is_not_finite_is_recorded(tracker: Tracker) -> None:
    run_id = tracker.record(row(metrics={"npmi_coherence": float("nan")}), tags("nan"), {})
    value = tracker.client.get_run(run_id).data.metrics["npmi_coherence"]
    assert value != value


TRIALS: list[dict[str, Any]] = [
    {
        "number": 0,
        "state": "complete",
        "score": 0.5,
        "values": {"k": 1},
        "C": 1.0,
        "seconds": 0.1,
        "error": None,
    },
    {"number": 1, "state": "failed", "values": {"k": 2}, "seconds": 0.2, "error": "ValueError: no"},
    {
        "number": 2,
        "state": "complete",
        "score": 0.7,
        "values": {"k": 3},
        "C": 3.0,
        "seconds": 0.3,
        "error": None,
    },
]


def trials_of(tracker: Tracker, run_id: str) -> dict[str, tuple[str, dict[str, str], dict[str, float]]]:
    """Return the trials of a run by name: status, parameters, metrics."""
    found = list(tracker._search(tracker.settings.trials_experiment, f"tags.`{RUN_TAG}` = '{run_id}'"))
    trials = {run.info.run_name: (run.info.status, run.data.params, run.data.metrics) for run in found}
    assert len(trials) == len(found)
    return trials


def test_trials_are_written_once_and_what_was_begun_is_finished(
    tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the process had been killed at every request of the writing, one after the other."""
    run_id = tracker.record(row(), tags("searched"), {})

    class Killed(BaseException):
        """The process dies here."""

    for n_requests in range(1, 9):  # three a trial
        left = [n_requests]

        def request(function: Any, left: list[int] = left) -> Any:
            def counted(*arguments: Any, **others: Any) -> Any:
                if not left[0]:
                    raise Killed
                left[0] -= 1
                return function(*arguments, **others)

            return counted

        with monkeypatch.context() as patch:
            for name in ("create_run", "log_batch", "set_terminated"):
                patch.setattr(tracker.client, name, request(getattr(tracker.client, name)))
            with contextlib.suppress(Killed):
                tracker.record_trials(run_id, "r8 lsi seed 3", TRIALS)
    tracker.record_trials(run_id, "r8 lsi seed 3", TRIALS)
    assert trials_of(tracker, run_id) == {
        "r8 lsi seed 3 trial 0": ("FINISHED", {"k": "1", "C": "1.0"}, {"score": 0.5, "seconds": 0.1}),
        "r8 lsi seed 3 trial 1": ("FAILED", {"k": "2"}, {"seconds": 0.2}),
        "r8 lsi seed 3 trial 2": ("FINISHED", {"k": "3", "C": "3.0"}, {"score": 0.7, "seconds": 0.3}),
    }


def test_a_curve_is_one_run_however_often_it_is_written(tracker: Tracker, tmp_path: Path) -> None:
    picture = tmp_path / "curve.svg"
    picture.write_text("<svg/>")
    ends = {"mean": {10: 0.5, 20: 0.7}, "low": {10: 0.4, 20: 0.6}, "high": {10: 0.6, 20: 0.8}}
    as_json = json.loads(json.dumps(ends))  # as the spool keeps it: steps are text
    ids = [
        tracker.record_curve("r8 lsi by labels", {"draws": 3}, curves, "accuracy", tags("curve"), picture)
        for curves in (ends, as_json)
    ]
    assert ids[0] == ids[1]
    assert tracker.client.get_run(ids[0]).info.status == "FINISHED"
    course = tracker.client.get_metric_history(ids[0], "accuracy")
    assert [(point.step, point.value) for point in course] == [(10, 0.5), (20, 0.7)]


def test_runs_need_not_be_tracked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "none")
    settings = read_settings(folder)
    assert (settings.tracking_uri, settings.is_on) == ("none", False)
    tracker = Tracker(settings)
    tracker.require()
    assert not tracker.exists()
    with pytest.raises(TrackingError, match="runs are not tracked: tracking_uri is none"):
        _ = tracker.client


def test_runs_may_begin_without_a_server_where_they_may_wait() -> None:
    uri = f"http://127.0.0.1:{free_port()}"
    Tracker(Settings(tracking_uri=uri, when_down="spool")).require()
    with pytest.raises(TrackingError, match="does not answer"):
        Tracker(Settings(tracking_uri=uri)).require()


def test_tags_are_added(tracker: Tracker) -> None:
    run_id = tracker.record(row(), tags("tagged"), {})
    added = {"sweep.quick-1234": "1", "sweep": "quick-1234"}
    assert tracker.tag(run_id, added)
    assert added.items() <= tracker.client.get_run(run_id).data.tags.items()
    tracker.client.delete_run(run_id)
    assert not tracker.tag(run_id, added)
    assert not tracker.tag("0" * 32, added)


def test_runs_come_back_as_rows(tracker: Tracker) -> None:
    run_id = tracker.record(row(seed=7), tags("row"), {})
    found = next(row for row in tracker.runs() if row["run_id"] == run_id)
    expected = row(seed=7)
    assert found["seed"] == 7
    for name in ("dataset", "method", "protocol", "probe", "metrics", "seconds", "peak_mb", "error"):
        assert found[name] == expected[name], name
    assert found["params"] == {"n_components": "100", "C": "0.1", "whiten": "None"}
    json.dumps(found)


def test_runs_of_others_are_passed_over_and_counted(tracker: Tracker) -> None:
    """A run of somebody else's in the experiment has no seed, or none that is a number."""
    own = {row["run_id"] for row in tracker.runs()}
    n_before, experiment = tracker.n_foreign, tracker._experiments[tracker.settings.experiment]
    for params in ({}, {"dataset": "r8", "method": "lsi", "protocol": "honest", "seed": "", "trials": "?"}):
        run_id = tracker.client.create_run(experiment).info.run_id
        for name, value in params.items():
            tracker.client.log_param(run_id, name, value)
        tracker.client.set_terminated(run_id)
    assert {row["run_id"] for row in tracker.runs()} == own
    assert tracker.n_foreign == n_before + 2


def test_rows_tell_their_documents(tracker: Tracker) -> None:
    about = {"documents_sha256": "ab" * 32, "n_train": 3, "n_test": 2, "n_labels": 2}
    own = {f"corpus.{name}": str(value) for name, value in about.items()}
    run_id = tracker.record(row(), tags("documents") | own | {"sha256.data.csv": "cd" * 32}, {})
    (found,) = [one for one in tracker.runs() if one["run_id"] == run_id]
    assert found["corpus"] == about
    assert found["sha256"] == {"data.csv": "cd" * 32}


def test_a_forgotten_cell_is_marked_deleted_with_its_trials(tracker: Tracker) -> None:
    run_id = tracker.record(row(), tags("forgotten"), {})
    again = tracker.record(row(), tags("forgotten", "later"), {})
    kept = tracker.record(row(), tags("kept"), {})
    trial = {
        "number": 0,
        "values": {"k": 1},
        "score": 0.5,
        "seconds": 1.0,
        "state": "COMPLETE",
        "error": None,
    }
    tracker.record_trials(run_id, "r8 lsi seed 3", [trial])
    assert len(trials_of(tracker, run_id)) == 1
    assert tracker.forget("forgotten") == 2
    stages = [tracker.client.get_run(one).info.lifecycle_stage for one in (run_id, again, kept)]
    assert stages == ["deleted", "deleted", "active"]
    assert trials_of(tracker, run_id) == {}
    assert tracker.forget("forgotten") == 0


def test_a_deleted_experiment_is_restored(tracker: Tracker) -> None:
    run_id = tracker.record(row(), tags("deleted"), {})
    experiment = tracker.client.get_experiment_by_name(tracker.settings.experiment)
    tracker.client.delete_experiment(experiment.experiment_id)
    again = Tracker(tracker.settings)
    assert run_id in {row["run_id"] for row in again.runs()}
    assert again.record(row(), tags("deleted"), {}) == run_id


def test_the_commit_is_forty_digits_or_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if (PROJECT / ".git").exists():
        assert re.fullmatch(r"[0-9a-f]{40}(\+changes)?", git_commit())
    monkeypatch.setattr("textbench.tasks.tracking.tracker.PROJECT", tmp_path)
    assert git_commit() == "unknown"
    monkeypatch.setenv("PATH", "")
    assert git_commit() == "unknown"


def test_a_record_is_of_a_commit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Code that no commit has is refused, new files too; the record itself may differ."""
    monkeypatch.setattr("textbench.tasks.tracking.tracker.PROJECT", tmp_path)
    with pytest.raises(InputError, match="no checkout of git"):
        committed()
    record, code = tmp_path / "measured.csv", tmp_path / "code.py"

    def git(*words: str) -> str:
        own = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
        return subprocess.run(own, check=True, capture_output=True, text=True).stdout.strip()

    git("init")
    record.write_text("id\n")
    code.write_text("a = 1\n")
    git("add", ".")
    git("commit", "-m", "first")
    record.write_text("id\nx\n")
    assert committed(record) == git("rev-parse", "HEAD")
    with pytest.raises(InputError, match=r"commit what differs first: 1 file, such as measured\.csv"):
        committed()
    code.write_text("a = 2\n")
    with pytest.raises(InputError, match=r"such as code\.py"):
        committed(record)
    git("commit", "-a", "-m", "second")
    (tmp_path / "new.py").write_text("")
    with pytest.raises(InputError, match=r"such as new\.py"):
        committed(record)


@pytest.mark.parametrize(
    ("file", "tag"),
    [
        ("20news-bydate.tar.gz", "sha256.20news-bydate.tar.gz"),
        ("my data (v2).csv", "sha256.my data :28v2:29.csv"),
        ("a:b/c\n.csv", "sha256.a:3ab:2fc:0a.csv"),
        ("отзывы 🙂.csv", "sha256.отзывы :f0:9f:99:82.csv"),
    ],
)
def test_a_file_of_any_name_has_a_tag_that_mlflow_takes(file: str, tag: str) -> None:
    from mlflow.utils.validation import _validate_tag_name

    assert data_tag(file) == tag
    _validate_tag_name(tag)


def test_long_names_have_tags_of_their_own() -> None:
    tags = {data_tag("(" * 250 + end) for end in "ab"}
    assert len(tags) == 2
    assert max(map(len, tags)) <= 250
