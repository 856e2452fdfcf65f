"""`textbench forget`: which runs are meant, that they go from everywhere, and that nothing else does."""

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tests.made_runs import one_label
from textbench.flows.cli.forget import forget
from textbench.flows.results.index import Index
from textbench.flows.run import outbox
from textbench.tasks import InputError
from textbench.tasks.tracking.tracker import ATTEMPT_TAG, CELL_TAG, Tracker, read_settings

TARGET = [0, 1] * 5


def run(home: Path, dataset: str, method: str, digit: str = "1", **row: Any) -> dict[str, Any]:
    corpus = {"documents_sha256": digit * 64, "n_train": 10, "n_test": 10, "n_labels": 2}
    return one_label(home, dataset, method, TARGET, TARGET, corpus=corpus, **row)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two data sets called `data` with two methods each, and a third one."""
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mlflow.yaml").write_text("tracking_uri: none\n")
    for place, (dataset, method, digit) in enumerate(
        [
            ("data", "tfidf", "1"),
            ("data", "lsi", "1"),
            ("data", "tfidf", "2"),
            ("data", "nmf", "2"),
            ("r8", "lsi", "3"),
        ]
    ):
        run(tmp_path, dataset, method, digit, created=float(place))
    return tmp_path


def left(home: Path) -> list[tuple[str, str]]:
    return sorted(
        (row["named"] + row["corpus"]["documents_sha256"][0], row["method"]) for row in Index(home).rows()
    )


def told(*arguments: str) -> str:
    app = typer.Typer()
    app.command()(forget)
    result = CliRunner().invoke(app, list(arguments))
    if isinstance(result.exception, InputError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


ALL = [("data1", "lsi"), ("data1", "tfidf"), ("data2", "nmf"), ("data2", "tfidf"), ("r83", "lsi")]


@pytest.mark.parametrize(
    ("arguments", "gone"),
    [
        (("-d", "data (2)"), {("data2", "nmf"), ("data2", "tfidf")}),
        (("-d", "data"), {("data1", "lsi"), ("data1", "tfidf")}),
        (("-m", "lsi"), {("data1", "lsi"), ("r83", "lsi")}),
        (("-d", "data (2)", "-m", "tfidf"), {("data2", "tfidf")}),
        (("last",), {("r83", "lsi")}),
    ],
)
def test_what_is_meant_goes_and_nothing_else(
    home: Path, arguments: tuple[str, ...], gone: set[tuple[str, str]]
) -> None:
    said = told(*arguments, "--dry-run")
    assert "Nothing was taken away" in said
    assert left(home) == ALL
    n = len(gone)
    assert f"To go: {n} run{'s' if n > 1 else ''} from the index." in said
    assert all(name in said for _, name in gone)
    told(*arguments, "--yes")
    assert left(home) == [one for one in ALL if one not in gone]


def test_each_run_goes_by_the_id_that_leaderboards_show_and_tells_its_labels(home: Path) -> None:
    labels = {"budget": 60, "draw": 1, "stratified": True}
    point = run(home, "r8", "nmf", "3", created=9.0, run_id=None, request={"labels": labels})
    first, *_ = [row for row in Index(home).rows() if row["dataset"] == "r8" and row["method"] == "lsi"]
    lines = told("-d", "r8", "--dry-run").splitlines()
    assert f"{first['run_id'][:8]}  r8 lsi seed 0, honest, linear-svm" in lines
    assert f"{point['key'][:8]}  r8 nmf seed 0, honest, linear-svm, 60 labels, draw 1, stratified" in lines


def test_runs_by_key(home: Path) -> None:
    rows = Index(home).rows()
    told(rows[0]["key"][:12], rows[1]["key"], rows[0]["key"], "-y")
    assert {row["key"] for row in Index(home).rows()} == {row["key"] for row in rows[2:]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "say what to forget: runs by id, key or `last`, data sets with -d, methods with -m"),
        (("last", "-d", "data"), "name either runs, or data sets and methods"),
        (("-d", "data (3)"), "there is no data set 'data (3)'; did you mean data (2)"),
        (("-m", "tfdif"), "there is no method 'tfdif'; did you mean tfidf"),
        (("-d", "r52"), "there are no finished runs on r52"),
        (("-d", "r8", "-m", "nmf"), "there are no finished runs of nmf on r8"),
        (("0" * 12,), "there is no finished run '000000000000'"),
        (("last",), "forget takes runs away and cannot ask here; add --yes"),
    ],
)
def test_bad_input_is_one_line_and_takes_nothing(
    home: Path, arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        told(*arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert left(home) == ALL


def test_what_waits_in_the_spool_goes_too(home: Path) -> None:
    rows = Index(home).rows()
    for row in rows[:2]:
        tags = {CELL_TAG: row["key"], ATTEMPT_TAG: "first"}
        outbox.keep(home, outbox.cell_entry(home / "index", row, tags, {}), "sqlite:///elsewhere.db")
    assert "1 from the spool" in told(rows[0]["key"], "--yes")
    assert outbox.waiting(home) == [f"{rows[1]['key']}-first"]


def test_runs_in_mlflow_are_marked_deleted(home: Path) -> None:
    (home / "mlflow.yaml").unlink()
    tracker = Tracker(read_settings(home))
    ids = {}
    for row in Index(home).rows():
        tags = {CELL_TAG: row["key"], ATTEMPT_TAG: "first"}
        ids[row["key"]] = tracker.record(row, tags, {})
    gone = {row["key"] for row in Index(home).rows() if row["dataset"] == "data (2)"}
    assert "2 from MLflow (marked deleted)" in told("-d", "data (2)", "--yes")
    stages = {key: tracker.client.get_run(run_id).info.lifecycle_stage for key, run_id in ids.items()}
    assert {key for key, stage in stages.items() if stage == "deleted"} == gone
    assert {row["run_id"] for row in tracker.runs()} == {ids[key] for key in ids.keys() - gone}


def test_numbers_of_data_sets_stay_when_one_is_forgotten(home: Path) -> None:
    run(home, "data", "nb", "4", created=9.0)
    assert {row["dataset"] for row in Index(home).rows()} == {"data", "data (2)", "data (3)", "r8"}
    said = told("-d", "data (2)", "--yes")
    assert (
        "data (2): 10 training and 10 test documents, 2 labels, documents' sha256 22222222, first run" in said
    )
    rows = Index(home).rows()
    assert {(row["dataset"], row["corpus"]["documents_sha256"][0]) for row in rows} == {
        ("data", "1"), ("data (3)", "4"), ("r8", "3"),
    }  # fmt: skip
    run(home, "data", "nb", "5", created=10.0)
    run(home, "data", "nb", "2", created=11.0)
    told("-d", "data", "--yes")
    rows = Index(home).rows()
    assert {(row["dataset"], row["corpus"]["documents_sha256"][0]) for row in rows} == {
        ("data (2)", "2"), ("data (3)", "4"), ("data (4)", "5"), ("r8", "3"),
    }  # fmt: skip


def test_a_data_set_by_its_sha256(home: Path) -> None:
    told("-d", "data@2222", "--yes")
    assert left(home) == [one for one in ALL if not one[0].startswith("data2")]
    with pytest.raises(
        InputError, match=r"no data set called data has documents .* '7'; choose from data@1111"
    ):
        told("-d", "data@7", "--yes")
