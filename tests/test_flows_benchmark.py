"""The flow `benchmark` from end to end, on real documents: caching, resuming, failing, and two runs at once."""

import csv
import json
import os
import random
import shutil
import signal
import sqlite3
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from tests.commands import copied, eventually, rows_of, start, start_cold, textbench
from tests.faults import documents
from textbench.flows.plan.request import BenchmarkRequest
from textbench.flows.run import sweep
from textbench.flows.run.engine import Threads
from textbench.flows.servers import prefect_server
from textbench.flows.servers.prefect_server import folder
from textbench.tasks import catalogue
from textbench.tasks.storage.store import Store

FIELDS = {
    "dataset", "method", "protocol", "seed", "params", "metrics", "seconds", "peak_mb", "run_id", "cached", "error",
}  # fmt: skip
# What is recorded of a cell beside its row.
KEPT = {"attempt", "created", "made_by", "request", "sweeps", "timed", "tracking_uri"}
OVER = ("COMPLETED", "FAILED", "CANCELLED", "CRASHED")  # what Prefect calls states that are final
LSI = "lsi(n_components=20)"
TWO = ("--method", "binary", "--method", LSI, "--seed", "0", "--json")
# The first documents of R8: enough to learn, and a run costs no more than its processes.
N_TRAIN, N_TEST = 400, 200


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
def few(home: Path) -> tuple[str, ...]:
    """The beginning of a run on few documents."""
    corpus = catalogue.dataset("r8").load().load()
    path = home / "few.csv"
    with path.open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(("text", "label", "part"))
        for part, n in (("train", N_TRAIN), ("test", N_TEST)):
            texts, targets = getattr(corpus, f"{part}_texts"), getattr(corpus, f"{part}_targets")
            rows.writerows(
                (text, corpus.target_names[target], part)
                for text, target in zip(texts[:n], targets[:n], strict=True)
            )
    return ("run", "--data", str(path), "--split-column", "part")


@pytest.fixture(scope="module")
def two(few: tuple[str, ...]) -> tuple[str, ...]:
    """A run of two methods on few documents."""
    return (*few, *TWO)


@pytest.fixture(scope="module")
def first(home: Path, server: dict[str, str], two: tuple[str, ...]) -> list[dict[str, Any]]:
    """The rows of a first run of two methods."""
    return rows_of(textbench(*two, home=home)[0])


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


@pytest.fixture
def same_home(home: Path, first: list[dict[str, Any]], tmp_path: Path) -> Path:
    """A results folder with the same results."""
    return Path(shutil.copytree(home, tmp_path / "same", ignore=shutil.ignore_patterns("prefect")))


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


def test_a_row_has_every_field_and_honest_figures(home: Path, first: list[dict[str, Any]]) -> None:
    binary, lsi = first
    assert set(binary) >= FIELDS
    recorded = json.loads((home / "index" / f"{binary['key']}.json").read_text())
    assert recorded.keys() - binary.keys() == KEPT
    assert (binary["uses_labels"], binary["unread"]) == (False, {})
    assert (binary["method"], lsi["method"]) == ("binary", LSI)
    assert not binary["cached"]
    assert 0.86 < binary["metrics"]["accuracy"] < lsi["metrics"]["accuracy"] < 1
    assert set(binary["seconds"]) == {"ingest", "vectorize", "featurize", "tune", "evaluate"}
    assert binary["peak_mb"] > 50
    assert binary["params"]["C"] > 0


def test_a_cached_run_gives_the_same_rows_and_imports_no_slow_library(
    home: Path, first: list[dict[str, Any]], two: tuple[str, ...]
) -> None:
    output, errors = start_cold(two, home, {"PYTHONPROFILEIMPORTTIME": "1"}).communicate()
    again = rows_of(output)
    assert all(row["cached"] for row in again)
    assert [row | {"cached": False} for row in again] == first
    imported = {
        line.rpartition("|")[2].strip() for line in errors.splitlines() if line.startswith("import time:")
    }
    assert "textbench.flows.run.recorder" in imported  # by the flow itself
    assert not imported & {"mlflow", "sklearn", "gensim", "optuna"}


def test_fresh_computes_again_and_keeps_the_older_run(
    home: Path, first: list[dict[str, Any]], few: tuple[str, ...]
) -> None:
    before = tracked(home)
    rows = rows_of(textbench(*few, "--method", "binary", "--seed", "0", "--fresh", "--json", home=home)[0])
    assert metrics_of(rows) == metrics_of(first[:1])
    assert not rows[0]["cached"]
    assert len(tracked(home)) == len(before) + 1


def test_changed_code_recomputes_its_method_alone_and_a_docstring_nothing(
    same_home: Path, tmp_path: Path, server: dict[str, str], two: tuple[str, ...]
) -> None:
    project = copied(tmp_path)

    def cached() -> dict[str, bool]:
        rows = rows_of(textbench(*two, home=same_home, project=project, variables=server)[0])
        return {row["method"]: row["cached"] for row in rows}

    method = project / "featurizers" / "lsi.py"
    source = method.read_text()
    comments = source.replace('"""', '"""Said differently: ', 1) + "\n# A comment.\n"
    method.write_text(f"{comments}\nNOBODYS = 1\n")
    assert cached() == {"binary": True, LSI: True}
    shared = created(same_home, "ingest") | created(same_home, "vectorize")
    changed = source.replace("    return Lsi(", "    assert True\n    return Lsi(", 1)
    assert changed != source
    method.write_text(changed)
    assert cached() == {"binary": True, LSI: False}
    assert created(same_home, "ingest") | created(same_home, "vectorize") == shared


@pytest.mark.dear
def test_killed_at_ten_random_moments_it_goes_on_where_it_stopped(
    new_home: Path, server: dict[str, str], tmp_path: Path
) -> None:
    """A moment is when so many more files are there."""
    (tmp_path / "small.csv").write_text(documents(60))
    methods = [
        word for name in ("binary", "counts", "frequency", "lsi(n_components=5)") for word in ("-m", name)
    ]
    command = ("run", "--data", str(tmp_path / "small.csv"), *methods, "--seed", "0", "--json")
    whole = Path(shutil.copytree(new_home, tmp_path / "whole"))
    known = metrics_of(rows_of(textbench(*command, home=whole, variables=server)[0]))
    moments = random.Random(20)
    finished: dict[str, float] = {}
    for _ in range(10):
        wanted = n_files(new_home) + moments.randint(1, n_files(whole) // 5)
        process = start(command, new_home, variables=server)
        while n_files(new_home) < wanted and process.poll() is None:
            time.sleep(0.005)
        process.kill()
        process.communicate()
        now = created(new_home, "evaluate")
        assert {key: now[key] for key in finished} == finished, "a finished cell was computed again"
        finished = now
    rows = rows_of(textbench(*command, home=new_home, variables=server)[0])
    now = created(new_home, "evaluate")
    assert {key: now[key] for key in finished} == finished
    assert metrics_of(rows) == known
    assert tracked(new_home) == [(key, "FINISHED") for key in sorted(now)]
    assert len(now) == 4
    assert not list((new_home / "store" / "tmp").glob("*"))
    assert unfinished(server["PREFECT_API_URL"]) == []


def n_files(home: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(home / "store"))


def unfinished(api_url: str) -> list[str]:
    """Return the states of flow and task runs that are not over, given the server a moment to hear of their end."""
    found: list[str] = []
    for _ in range(20):
        found = [
            f"{run['name']} {run['state_name']}"
            for kind in ("flow_runs", "task_runs")
            for run in runs_of(f"{api_url}/{kind}/filter")
            if run["state_type"] not in OVER
        ]
        if not found:
            return []
        time.sleep(0.5)
    return found


def runs_of(address: str) -> Iterator[dict[str, Any]]:
    """Yield all that an address of Prefect's API lists."""
    offset = 0
    while True:
        page = json.dumps({"limit": 200, "offset": offset}).encode()
        request = urllib.request.Request(address, page, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as response:
            runs = json.load(response)
        yield from runs
        offset += len(runs)
        if not runs:
            return


def test_an_interrupted_run_stops_soon_and_says_how_to_go_on(
    first: list[dict[str, Any]], new_home: Path, server: dict[str, str], few: tuple[str, ...]
) -> None:
    process = start((*few, "-m", LSI, "--seeds", "3"), new_home, variables=server)
    assert eventually(lambda: bool(created(new_home, "vectorize")))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "same command" in errors
    assert "Traceback" not in errors


def test_two_runs_at_once_compute_everything_once(
    first: list[dict[str, Any]], new_home: Path, server: dict[str, str], two: tuple[str, ...]
) -> None:
    both = [start(two, new_home, variables=server) for _ in range(2)]
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
    home: Path, first: list[dict[str, Any]], tmp_path: Path, two: tuple[str, ...]
) -> None:
    arguments = []
    for name, body in METHODS.items():
        (tmp_path / f"{name}.py").write_text(METHOD.replace("BODY", body))
        arguments += ["--method", str(tmp_path / f"{name}.py")]
    limits = ("--time-limit", "25", "--memory-limit", "1500")
    output, _ = textbench(*two, *arguments, *limits, home=home, code=1)
    errors = {row["method"]: row["error"] for row in rows_of(output)}
    assert errors["binary"] is None
    assert errors[LSI] is None
    assert "RuntimeError: no luck \\udc80 today" in errors["raising"]
    assert f"training features hold {2 * N_TRAIN} values that are NaN or infinite" in errors["undefined"]
    assert f"must have shape ({N_TRAIN}, 'any number'), got (3, 2)" in errors["misshapen"]
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


def test_a_run_deleted_in_mlflow_is_written_again(
    home: Path, first: list[dict[str, Any]], few: tuple[str, ...]
) -> None:
    run_id = first[0]["run_id"]
    with sqlite3.connect(home / "mlflow.db") as database:
        database.execute("UPDATE runs SET lifecycle_stage = 'deleted' WHERE run_uuid = ?", (run_id,))
    # Another sweep, which would put its tag on the recorded run.
    rows = rows_of(textbench(*few, "-m", "binary", "--seed", "0", "--json", home=home)[0])
    assert metrics_of(rows) == metrics_of(first[:1])
    assert rows[0]["run_id"] != run_id


def test_runs_are_written_again_when_the_database_is_gone(
    first: list[dict[str, Any]], same_home: Path, server: dict[str, str], few: tuple[str, ...]
) -> None:
    (same_home / "mlflow.db").unlink()
    (row,) = rows_of(
        textbench(*few, "-m", "binary", "--seed", "0", "--json", home=same_home, variables=server)[0]
    )
    assert row["cached"]
    assert row["metrics"] == first[0]["metrics"]
    assert row["run_id"] != first[0]["run_id"]
    assert [status for _, status in tracked(same_home)] == ["FINISHED"]


def test_output_that_nobody_reads_is_an_error_and_nothing_is_lost(
    home: Path, first: list[dict[str, Any]], two: tuple[str, ...]
) -> None:
    process = start_cold(two, home)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    assert process.wait(timeout=120) == 1
    assert "standard output was closed" in errors
    assert all(row["cached"] for row in rows_of(textbench(*two, home=home)[0]))


@pytest.mark.parametrize(
    "harms", [("altered", "missing"), ("truncated", "without meta"), ("", "index lost")], ids=", ".join
)
def test_damaged_results_are_noticed_and_made_again(
    home: Path, first: list[dict[str, Any]], two: tuple[str, ...], harms: tuple[str, str]
) -> None:
    runs = tracked(home)
    cells = {json.loads(path.read_text())["method"]: path for path in (home / "index").glob("*.json")}
    paths = [cells[row["method"]] for row in first]
    run_ids = [json.loads(path.read_text())["run_id"] for path in paths]
    for path, harm in zip(paths, harms, strict=True):
        do_harm(home, path, harm)
    output, errors = textbench(*two, home=home)
    assert metrics_of(rows_of(output)) == metrics_of(first)
    assert [row["run_id"] for row in rows_of(output)] == run_ids
    assert tracked(home) == runs
    assert errors.count("damaged or incomplete") == (0 if "index lost" in harms else 2)


def do_harm(home: Path, path: Path, harm: str) -> None:
    """Damage what is stored of the cell with this row in the index."""
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
    elif harm == "index lost":
        path.write_text("{")


def test_an_upstream_artifact_that_is_gone_is_made_again(
    home: Path, first: list[dict[str, Any]], few: tuple[str, ...]
) -> None:
    shutil.rmtree(home / "store" / "vectorize")
    shutil.rmtree(home / "store" / "featurize")
    command = (*few, "--method", "tfidf", "--trials", "2", "--seed", "0", "--json")
    (row,) = rows_of(textbench(*command, home=home)[0])
    assert row["error"] is None
    assert row["trials"] == 2
    assert row["metrics"]["accuracy"] > 0.88


def test_an_unreachable_tracking_server_stops_the_run_before_it_computes(
    new_home: Path, server: dict[str, str], two: tuple[str, ...]
) -> None:
    variables = server | {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9"}
    _, errors = textbench(*two, home=new_home, code=2, variables=variables)
    assert "http://127.0.0.1:9 does not answer" in errors
    assert "Traceback" not in errors
    assert not (new_home / "store").exists()


def test_a_dry_run_lists_the_cells_and_computes_nothing(
    home: Path, first: list[dict[str, Any]], few: tuple[str, ...]
) -> None:
    command = (*few, "-m", "binary", "-m", "tfidf-log2", "--seeds", "2", "--dry-run", "--json")
    cells = rows_of(textbench(*command, home=home)[0])
    assert [(cell["method"], cell["seed"]) for cell in cells] == [
        ("binary", 0), ("binary", 1), ("tfidf-log2", 0), ("tfidf-log2", 1),
    ]  # fmt: skip
    assert cells[0]["estimated_seconds"] == 0
    assert cells[1]["estimated_seconds"] > 0
    assert cells[2]["estimated_seconds"] is None


def test_a_timed_run_computes_as_an_ordinary_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same store, so the same threads of linear algebra and the same bits, but one cell at a time, warmed up."""
    ran: list[tuple[Store, int | None]] = []

    def execute(cells: Any, store: Store, runner: Any, finish: Any, workers: int | None) -> None:
        ran.append((store, workers))

    monkeypatch.setattr(sweep, "execute", execute)
    monkeypatch.setattr(sweep, "SweepRecorder", MagicMock())
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path))
    with Threads() as runner:
        for timed in (False, True):
            sweep.run_sweep(BenchmarkRequest(["r8"], ["lsi"], timed=timed), runner)
    (ordinary, _), (one_by_one, workers) = ran
    assert workers == 1 and one_by_one.not_before > 0 and one_by_one.warm
    assert replace(one_by_one, not_before=0.0, workers=1, warm=False) == replace(ordinary, workers=1)
