"""The flow `benchmark` from end to end, on real documents: caching, resuming, failing, and two runs at once."""

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from tests.commands import copied, rows_of, start, start_cold, textbench
from tests.warm import PROJECT
from textbench.flows import benchmark as flow_module
from textbench.flows.servers import prefect_server
from textbench.flows.servers.prefect_server import folder
from textbench.tasks.storage.store import Store

FIELDS = {
    "dataset", "method", "protocol", "seed", "params", "metrics", "seconds", "peak_mb", "run_id", "cached", "error",
}  # fmt: skip
TWO = ("run", "--method", "binary", "--method", "lsi", "--seed", "0", "--json")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A results folder whose server is stopped at the end."""
    folder = tmp_path_factory.mktemp("benchmark")
    yield folder
    textbench("down", home=folder)


@pytest.fixture(scope="module")
def server(home: Path) -> dict[str, str]:
    """The variables that make other results folders use the server of `home`."""
    return {"PREFECT_API_URL": prefect_server.wait(prefect_server.start(home)).api_url}


@pytest.fixture(scope="module")
def first(home: Path, server: dict[str, str]) -> list[dict[str, Any]]:
    """The rows of a first run of two methods."""
    return rows_of(textbench(*TWO, home=home)[0])


@pytest.fixture
def new_home(home: Path, first: list[dict[str, Any]], tmp_path: Path) -> Path:
    """An empty results folder but for MLflow's empty tables, which take seconds to make."""
    folder = tmp_path / "new"
    folder.mkdir()
    shutil.copy(home / "mlflow.db", folder)
    with sqlite3.connect(folder / "mlflow.db") as database:
        for table in ("latest_metrics", "metrics", "params", "tags", "runs", "experiment_tags"):
            database.execute(f"DELETE FROM {table}")
        database.execute("DELETE FROM experiments WHERE experiment_id > 0")
    return folder


def tracked(home: Path) -> list[tuple[str, str]]:
    """Return (cell, status) of every run in the tracking database."""
    with sqlite3.connect(home / "mlflow.db") as database:
        query = (
            "SELECT tags.value, runs.status FROM runs JOIN tags USING (run_uuid) "
            "WHERE tags.key = 'textbench.cell' ORDER BY 1"
        )
        return database.execute(query).fetchall()


def metrics_of(rows: list[dict[str, Any]]) -> list[tuple[str, int, dict[str, float]]]:
    return [(row["method"], row["seed"], row["metrics"]) for row in rows]


def created(home: Path, stage: str) -> dict[str, float]:
    """Return when each artifact of a stage was made."""
    metas = (home / "store" / stage).glob("*/meta.json")
    return {meta.parent.name: json.loads(meta.read_text())["created"] for meta in metas}


def test_a_row_has_every_field_and_honest_figures(first: list[dict[str, Any]]) -> None:
    binary, lsi = first
    assert set(binary) >= FIELDS
    assert (binary["method"], lsi["method"]) == ("binary", "lsi")
    assert not binary["cached"]
    assert 0.95 < binary["metrics"]["accuracy"] < lsi["metrics"]["accuracy"] < 1
    assert set(binary["seconds"]) == {"ingest", "vectorize", "featurize", "tune", "evaluate"}
    assert binary["peak_mb"] > 50
    assert binary["params"]["C"] > 0


def test_a_cached_run_gives_the_same_rows_and_imports_no_slow_library(
    home: Path, first: list[dict[str, Any]]
) -> None:
    output, errors = start_cold(TWO, home, {"PYTHONPROFILEIMPORTTIME": "1"}).communicate()
    again = rows_of(output)
    assert all(row["cached"] for row in again)
    assert [row | {"cached": False} for row in again] == first
    imported = {
        line.rpartition("|")[2].strip() for line in errors.splitlines() if line.startswith("import time:")
    }
    assert "textbench.flows.run.recorder" in imported  # by the flow itself
    assert not imported & {"mlflow", "sklearn", "gensim", "optuna"}


def test_two_clean_folders_give_identical_metrics(
    first: list[dict[str, Any]], new_home: Path, server: dict[str, str]
) -> None:
    rows = rows_of(textbench(*TWO, home=new_home, variables=server)[0])
    assert metrics_of(rows) == metrics_of(first)
    assert not any(row["cached"] for row in rows)


def test_fresh_computes_again_and_keeps_the_older_run(home: Path, first: list[dict[str, Any]]) -> None:
    before = tracked(home)
    rows = rows_of(textbench("run", "--method", "binary", "--seed", "0", "--fresh", "--json", home=home)[0])
    assert metrics_of(rows) == metrics_of(first[:1])
    assert not rows[0]["cached"]
    assert len(tracked(home)) == len(before) + 1


def test_trials_begin_with_the_defaults_and_repeat_nothing(home: Path, first: list[dict[str, Any]]) -> None:
    command = ("run", "--method", "tfidf", "--seed", "0", "--json", "--trials")
    two = rows_of(textbench(*command, "2", home=home)[0])
    trials = created(home, "trial")
    three = rows_of(textbench(*command, "3", home=home)[0])
    assert {key: when for key, when in created(home, "trial").items() if key in trials} == trials
    for row, n_trials in ((two[0], 2), (three[0], 3)):
        assert row["trials"] == n_trials
        assert row["metrics"]["accuracy"] > 0.96


def test_changed_code_recomputes_its_method_alone_and_a_docstring_nothing(
    tmp_path: Path, new_home: Path, server: dict[str, str]
) -> None:
    copy = copied(tmp_path)

    def cached() -> dict[str, bool]:
        rows = rows_of(textbench(*TWO, home=new_home, project=copy, variables=server)[0])
        return {row["method"]: row["cached"] for row in rows}

    assert cached() == {"binary": False, "lsi": False}
    method = copy / "featurizers" / "lsi.py"
    method.write_text(method.read_text().replace('"""', '"""Said differently: ', 1) + "\n# A comment.\n")
    assert cached() == {"binary": True, "lsi": True}
    shared = created(new_home, "ingest") | created(new_home, "vectorize")
    source = method.read_text()
    method.write_text(source + "\nEXTRA = 1\n")
    assert cached() == {"binary": True, "lsi": True}
    changed = source.replace("    return Lsi(", "    assert True\n    return Lsi(", 1)
    assert changed != source
    method.write_text(changed)
    assert cached() == {"binary": True, "lsi": False}
    assert created(new_home, "ingest") | created(new_home, "vectorize") == shared


def test_killed_at_ten_random_moments_it_goes_on_where_it_stopped(
    home: Path, first: list[dict[str, Any]], new_home: Path, server: dict[str, str]
) -> None:
    command = ("run", "-m", "binary", "-m", "counts", "-m", "frequency", "-m", "lsi", "--seed", "0", "--json")
    moments = random.Random(20)
    finished: dict[str, float] = {}
    for _ in range(10):
        process = start(command, new_home, variables=server)
        time.sleep(moments.uniform(1, 9))
        process.kill()
        process.communicate()
        now = created(new_home, "evaluate")
        assert {key: now[key] for key in finished} == finished, "a finished cell was computed again"
        finished = now
    rows = rows_of(textbench(*command, home=new_home, variables=server)[0])
    now = created(new_home, "evaluate")
    assert {key: now[key] for key in finished} == finished
    known = {row["method"]: row["metrics"] for row in first}
    assert {row["method"]: row["metrics"] for row in rows if row["method"] in known} == known
    assert tracked(new_home) == [(key, "FINISHED") for key in sorted(now)]
    assert len(now) == 4
    assert not list((new_home / "store" / "tmp").glob("*"))
    assert unfinished(server["PREFECT_API_URL"]) == []


def unfinished(api_url: str) -> list[str]:
    """Return the states of flow and task runs that are not over, given the server a moment to hear of their end."""
    script = """
import asyncio, json
from prefect.client.orchestration import get_client
async def main():
    async with get_client() as client:
        runs = []
        for read in (client.read_flow_runs, client.read_task_runs):
            offset = 0
            while page := await read(limit=200, offset=offset):
                runs += page
                offset += len(page)
        print(json.dumps([f"{run.name} {run.state_name}" for run in runs if not (run.state and run.state.is_final())]))
asyncio.run(main())
"""
    found: list[str] = []
    for _ in range(10):
        command = [sys.executable, "-c", script]
        environment = os.environ | {"PREFECT_API_URL": api_url}
        printed = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, cwd=PROJECT
        )
        found = json.loads(printed.stdout)
        if not found:
            return []
        time.sleep(1)
    return found


def test_an_interrupted_run_stops_soon_and_says_how_to_go_on(
    first: list[dict[str, Any]], new_home: Path, server: dict[str, str]
) -> None:
    process = start(("run", "--seeds", "3"), new_home, variables=server)
    time.sleep(9)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "same command" in errors
    assert "Traceback" not in errors


def test_two_runs_at_once_compute_everything_once(
    first: list[dict[str, Any]], new_home: Path, server: dict[str, str]
) -> None:
    both = [start(TWO, new_home, variables=server) for _ in range(2)]
    rows = [rows_of(process.communicate(timeout=300)[0]) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert metrics_of(rows[0]) == metrics_of(rows[1]) == metrics_of(first)
    assert [row["run_id"] for row in rows[0]] == [row["run_id"] for row in rows[1]]
    assert [status for _, status in tracked(new_home)] == ["FINISHED", "FINISHED"]
    assert len(created(new_home, "trial")) == 2


METHODS = {
    "raising": "print('x' * 1_000_000); raise RuntimeError('no luck \\udc80 today')",
    "undefined": "return np.full((X.shape[0], 2), np.nan, dtype=np.float32)",
    "misshapen": "return np.zeros((3, 2), dtype=np.float32)",
    "slow": "time.sleep(600)",
    "greedy": "hoard = np.ones(250_000_000); time.sleep(600)",
}
METHOD = '''"""A method that fails."""

import time

import numpy as np

INPUT = "counts"
SEARCH_SPACE = {}


class Failing:
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        BODY

    def fit_transform(self, X, y=None):
        return self.transform(X)

    def to_arrays(self):
        return {}


def build():
    return Failing()
'''


def test_a_method_that_fails_fails_alone_and_says_why(
    home: Path, first: list[dict[str, Any]], tmp_path: Path
) -> None:
    arguments = []
    for name, body in METHODS.items():
        (tmp_path / f"{name}.py").write_text(METHOD.replace("BODY", body))
        arguments += ["--method", str(tmp_path / f"{name}.py")]
    limits = ("--time-limit", "25", "--memory-limit", "1500")
    output, _ = textbench(*TWO, *arguments, *limits, home=home, code=1)
    errors = {row["method"]: row["error"] for row in rows_of(output)}
    assert errors["binary"] is None
    assert errors["lsi"] is None
    assert "RuntimeError: no luck \\udc80 today" in errors["raising"]
    assert "training features hold 10970 values that are NaN or infinite" in errors["undefined"]
    assert "must have shape (5485, 'any number'), got (3, 2)" in errors["misshapen"]
    assert "time limit of 25 s" in errors["slow"]
    assert "memory limit of 1500 MB" in errors["greedy"]
    statuses = [status for _, status in tracked(home)]
    assert statuses.count("FAILED") == len(METHODS)
    assert_traceback_is_told(home, errors["raising"], tmp_path / "raising.py")


def assert_traceback_is_told(home: Path, error: str, method: Path) -> None:
    """See that a method's traceback, from its first frame on, is in a file, in MLflow and in Prefect's log."""
    path = Path(error.partition("(traceback: ")[2].removesuffix(")"))
    assert path.parent == home / "tracebacks"
    lines = path.read_text().splitlines()
    frames = [line for line in lines if line.startswith("  File ")]
    assert lines[0].startswith("Traceback ") and lines[1] == frames[0]
    assert [(str(method), name) for name in ("in fit_transform", "in transform")] == [
        (frame.split('"')[1], frame.split(", ")[-1]) for frame in frames
    ]
    assert lines[-1] == "RuntimeError: no luck \\udc80 today"
    (kept,) = (home / "mlartifacts").rglob(f"traceback/{path.name}")
    assert kept.read_bytes() == path.read_bytes()
    with sqlite3.connect(folder(home) / "prefect.db") as database:
        assert database.execute("SELECT 1 FROM log WHERE message LIKE ?", (f"%{lines[1]}%",)).fetchall()


def test_a_run_deleted_in_mlflow_is_written_again(home: Path, first: list[dict[str, Any]]) -> None:
    run_id = first[0]["run_id"]
    with sqlite3.connect(home / "mlflow.db") as database:
        database.execute("UPDATE runs SET lifecycle_stage = 'deleted' WHERE run_uuid = ?", (run_id,))
    # Another sweep, which would put its tag on the recorded run.
    rows = rows_of(textbench("run", "-m", "binary", "--seed", "0", "--json", home=home)[0])
    assert metrics_of(rows) == metrics_of(first[:1])
    assert rows[0]["run_id"] != run_id


def test_runs_are_written_again_when_the_database_is_gone(
    first: list[dict[str, Any]], new_home: Path, server: dict[str, str]
) -> None:
    command = ("run", "-m", "binary", "--seed", "0", "--json")
    before = rows_of(textbench(*command, home=new_home, variables=server)[0])[0]
    (new_home / "mlflow.db").unlink()
    after = rows_of(textbench(*command, home=new_home, variables=server)[0])[0]
    assert after["cached"]
    assert after["metrics"] == before["metrics"]
    assert after["run_id"] != before["run_id"]
    assert [status for _, status in tracked(new_home)] == ["FINISHED"]


def test_output_that_nobody_reads_is_an_error_and_nothing_is_lost(
    home: Path, first: list[dict[str, Any]]
) -> None:
    process = start_cold(TWO, home)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    assert process.wait(timeout=120) == 1
    assert "standard output was closed" in errors
    assert all(row["cached"] for row in rows_of(textbench(*TWO, home=home)[0]))


@pytest.mark.parametrize("harm", ["altered", "truncated", "missing", "without meta", "index lost"])
def test_a_damaged_result_is_noticed_and_made_again(
    home: Path, first: list[dict[str, Any]], harm: str
) -> None:
    runs = tracked(home)
    row = first[1]
    for path in (home / "index").glob("*.json"):
        if json.loads(path.read_text())["run_id"] == row["run_id"]:
            break
    scores = home / "store" / "evaluate" / path.stem / "scores.npy"
    if harm == "altered":
        content = scores.read_bytes()
        scores.write_bytes(content[:-8] + bytes(8))
    elif harm == "truncated":
        scores.write_bytes(scores.read_bytes()[:20])
    elif harm == "missing":
        scores.unlink()
    elif harm == "without meta":
        (scores.parent / "meta.json").unlink()
    else:
        path.write_text("{")
    output, errors = textbench(*TWO, home=home)
    assert metrics_of(rows_of(output)) == metrics_of(first)
    assert [row["run_id"] for row in rows_of(output)][1] == row["run_id"]
    assert tracked(home) == runs
    if harm != "index lost":
        assert errors.count("damaged or incomplete") == 1


def test_an_upstream_artifact_that_is_gone_is_made_again(home: Path, first: list[dict[str, Any]]) -> None:
    shutil.rmtree(home / "store" / "vectorize")
    shutil.rmtree(home / "store" / "featurize")
    command = ("run", "--method", "frequency", "--seed", "0", "--json")
    rows = rows_of(textbench(*command, home=home)[0])
    assert rows[0]["error"] is None


def test_a_full_disk_fails_the_cell_with_a_clear_line(
    first: list[dict[str, Any]], new_home: Path, server: dict[str, str]
) -> None:
    store = new_home / "store"
    store.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", store], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        command = ("run", "--method", "binary", "--seed", "0", "--json")
        output, _ = textbench(*command, home=new_home, code=1, variables=server)
        left = [path for path in store.rglob("*") if path.is_file() and "vectorize" in str(path)]
    finally:
        subprocess.run(["umount", store], check=True)
    assert "No space left on device" in rows_of(output)[0]["error"]
    assert "TEXTBENCH_HOME" in rows_of(output)[0]["error"]
    assert not [path for path in left if path.suffix != ".lock"]


def test_an_unreachable_tracking_server_stops_the_run_before_it_computes(
    new_home: Path, server: dict[str, str]
) -> None:
    variables = server | {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9"}
    _, errors = textbench(*TWO, home=new_home, code=2, variables=variables)
    assert "http://127.0.0.1:9 does not answer" in errors
    assert "Traceback" not in errors
    assert not (new_home / "store").exists()


def test_a_dry_run_lists_the_cells_and_computes_nothing(home: Path, first: list[dict[str, Any]]) -> None:
    command = ("run", "-m", "binary", "-m", "tfidf-log2", "--seeds", "2", "--dry-run", "--json")
    cells = rows_of(textbench(*command, home=home)[0])
    assert [(cell["method"], cell["seed"]) for cell in cells] == [
        ("binary", 0), ("binary", 1), ("tfidf-log2", 0), ("tfidf-log2", 1),
    ]  # fmt: skip
    assert cells[0]["estimated_seconds"] == 0
    assert cells[1]["estimated_seconds"] > 1
    assert cells[2]["estimated_seconds"] is None


def test_a_timed_run_computes_as_an_ordinary_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same store, so the same threads of linear algebra and the same bits, but one cell at a time."""
    ran: list[tuple[Store, int]] = []
    monkeypatch.setattr(
        flow_module, "execute", lambda cells, store, workers, finish: ran.append((store, workers))
    )
    monkeypatch.setattr(flow_module, "SweepRecorder", MagicMock())
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path))
    for timed in (False, True):
        flow_module.benchmark.fn(["r8"], ["lsi"], [0], timed=timed)
    (ordinary, _), (one_by_one, workers) = ran
    assert workers == 1 and one_by_one.not_before > 0
    assert replace(one_by_one, not_before=0.0, workers=1) == replace(ordinary, workers=1)
