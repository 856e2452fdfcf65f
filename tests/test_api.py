"""The Python API: it computes what the commands compute, starts nothing, and speaks in arguments and frames."""

import doctest
import inspect
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import textbench as tb
from tests.commands import PROJECT, rows_of, textbench
from textbench.flows.cli import api
from textbench.flows.explain.export import Model
from textbench.flows.explain.frames import Curves, Results
from textbench.flows.plan.request import BenchmarkRequest, LabelBudgetRequest, RetrievalRequest, fields_of
from textbench.flows.results.runs import Run, find_run
from textbench.flows.run import sweep
from textbench.flows.run.engine import Threads
from textbench.tasks.storage.isolate import CellError
from textbench.tasks.tracking.tracker import NONE, Tracker

WORDS = [f"{letter}{number}" for letter in "abcd" for number in range(12)]
CLASSES = ["earn", "grain", "ship"]
METHODS = ["tfidf", "majority"]
# What two runs of one cell have in common, whoever ran them.
SAME = (
    "dataset",
    "method",
    "protocol",
    "seed",
    "trials",
    "metrics",
    "params",
    "error",
    "probe",
    "documents_95",
)
# A program as people write it: it computes at its top, with nothing to tell whether it is imported.
PROGRAM = """
import json, sys
import pandas as pd
import textbench as tb
found = tb.run(pd.read_csv("toy.csv"), ["tfidf", "majority"], home="results", name="toy", progress=False)
heavy = sorted({"prefect", "mlflow"} & {*sys.modules})
print(json.dumps({"rows": list(found.rows), "heavy": heavy}))
"""


def documents() -> pd.DataFrame:
    """Sixty documents of three classes, which differ in how often their words occur."""
    rng = np.random.default_rng(8)
    topics = rng.dirichlet(np.full(len(WORDS), 0.3), size=len(CLASSES))
    labels = [CLASSES[number % 3] for number in range(60)]
    texts = [" ".join(rng.choice(WORDS, size=12, p=topics[CLASSES.index(label)])) for label in labels]
    return pd.DataFrame({"text": texts, "label": labels})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with the documents as a file."""
    folder = tmp_path_factory.mktemp("api")
    documents().to_csv(folder / "toy.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def program(folder: Path) -> dict[str, Any]:
    """What the program printed; its results are in the folder `results`."""
    environment = os.environ | {"PYTHONPATH": str(PROJECT.parent), "TEXTBENCH_JOBS": "1"}
    (folder / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture
def found(program: dict[str, Any], folder: Path) -> Results:
    """What the program found, in this process; nothing is computed."""
    return tb.run(documents(), METHODS, home=folder / "results", name="toy", progress=False)


def test_it_is_imported_when_it_is_used() -> None:
    assert {*tb.__all__} <= {*dir(tb)}
    assert [getattr(tb, name) for name in tb.__all__] == [getattr(api, name) for name in tb.__all__]
    with pytest.raises(AttributeError, match="textbench has no 'rum'"):
        tb.rum  # noqa: B018


@pytest.mark.parametrize(
    ("function", "asked"),
    [(tb.run, BenchmarkRequest), (tb.curve, LabelBudgetRequest), (tb.retrieve, RetrievalRequest)],
)
def test_every_field_of_a_request_is_an_argument(function: Callable[..., Any], asked: type) -> None:
    shown = inspect.signature(function).parameters
    assert {api._keyword(one) for one in fields_of(asked)} <= shown.keys()
    assert "options" not in shown


def test_a_table_gives_what_the_command_gives_for_the_file_and_starts_nothing(
    program: dict[str, Any], folder: Path
) -> None:
    command = ("run", "--data", str(folder / "toy.csv"), "-m", METHODS[0], "-m", METHODS[1], "--seed", "0")
    by_command = rows_of(textbench(*command, "--json", home=folder / "home")[0])
    by_program = sorted(program["rows"], key=lambda row: row["method"])
    assert [[row[name] for name in SAME] for row in by_program] == [
        [row[name] for name in SAME] for row in by_command
    ]
    assert [row["corpus"] for row in by_program if row["corpus"]] == [row["corpus"] for row in by_command]
    assert all(row["metrics"]["accuracy"] > 0 and row["run_id"] is None for row in by_program)
    assert program["heavy"] == []
    # Nobody made a server's folder or a database either.
    names = {path.name for path in (folder / "results").iterdir()}
    assert names == {"store", "index", "frames"}


def test_what_a_command_stored_is_not_computed_again(folder: Path, program: dict[str, Any]) -> None:
    """The cells of a file are those of the command, key by key."""
    again = tb.run(folder / "toy.csv", METHODS, home=folder / "home", progress=False)
    assert [row["cached"] for row in again.rows] == [True, True]


def test_results_are_frames_and_words(found: Results) -> None:
    table = found.table()
    assert table["method"].tolist() == METHODS and table["is_best"].tolist() == [True, False]
    accuracies = {row["method"]: row["metrics"]["accuracy"] for row in found.rows}
    assert table.set_index("method")["accuracy"].to_dict() == accuracies
    assert found.best == {"toy": "tfidf"}
    assert found.verdict.startswith("toy, honest protocol: tfidf is best")
    assert found.errors().empty
    test = tb.compare(found).table().iloc[0]
    assert (test["first"], test["second"]) == ("tfidf", "majority")
    assert test["difference"] == pytest.approx(accuracies["tfidf"] - accuracies["majority"])
    by_name = tb.compare(datasets="toy", methods=METHODS, home=found.home)
    assert by_name.table().equals(tb.compare(found).table())


def test_a_run_is_tracked_where_it_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, program: dict[str, Any]
) -> None:
    trackers: list[Tracker] = []

    def run_sweep(request: Any, runner: Threads, tracker: Tracker, home: Path) -> list[dict[str, Any]]:
        trackers.append(tracker)
        return []

    monkeypatch.setattr(sweep, "run_sweep", run_sweep)
    home = folder / "results"
    for tracking in (None, True, "sqlite:///own.db", "http://127.0.0.1:9"):
        tb.run(documents(), METHODS, home=home, name="toy", progress=False, tracking=tracking)
    uris = [NONE, f"sqlite:///{home}/mlflow.db", f"sqlite:///{home}/own.db", "http://127.0.0.1:9"]
    assert [tracker.settings.tracking_uri for tracker in trackers] == uris


def test_progress_is_shown_on_standard_error_or_not(
    folder: Path, program: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    tb.run(documents(), "tfidf", home=folder / "results", name="toy")
    assert capsys.readouterr() == ("", "[1/1] toy tfidf seed 0: cached\n")
    tb.run(documents(), "tfidf", home=folder / "results", name="toy", progress=False)
    assert capsys.readouterr() == ("", "")


class Page(HTMLParser):
    """A page: the texts of its elements, and whether each that was opened was closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.seen: set[str] = set()
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_notebook_shows_tables_in_which_names_are_text(found: Results) -> None:
    bad = "<img src=x onerror=alert(1)> & co"
    rows = [dict(row) | {"method": bad} for row in found.rows[:1]]
    rows += [dict(row) | {"method": "<b>", "error": "1 < 2 & 3", "metrics": {}} for row in found.rows[1:]]
    shown = Results(found.home, rows)
    page = Page(shown._repr_html_())
    assert page.open == [] and page.seen <= {
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "p",
        "strong",
    }
    assert bad in page.texts and "<b> failed: 1 < 2 & 3" in page.texts
    assert shown.errors()[["method", "error"]].values.tolist() == [["<b>", "1 < 2 & 3"]]
    assert "failed: 1 < 2 & 3" in repr(shown) and "\x1b" not in repr(shown)
    out = io.StringIO()
    Console(file=out, force_terminal=True, width=200).print(shown)
    assert "\x1b[" in out.getvalue() and bad in out.getvalue()


def test_what_failed_is_shown_where_nothing_else_is(found: Results) -> None:
    rows = [dict(row) | {"error": "<no> & no", "metrics": {}, "labels": {"budget": 3}} for row in found.rows]
    curves = Curves(found.home, rows)
    assert curves.table().empty and len(curves.errors()) == 2
    page = Page(curves._repr_html_())
    assert page.open == [] and sum("<no> & no" in text for text in page.texts) == 2


def test_a_model_is_loaded(found: Results, tmp_path: Path) -> None:
    run = Run(found.home, find_run(found.home, "tfidf"))
    Model.from_run(run).save(tmp_path / "model.npz")
    model = tb.load_model(tmp_path / "model.npz")
    names = run.open("corpus").json("corpus")["target_names"]
    test = run.open("corpus").table("test")["text"].to_pylist()
    predicted = run.open("result").table("predictions")["predicted"].to_pylist()
    assert model.predict(test) == [names[target] for target in predicted]
    assert (model.transform(test) != run.open("features").matrix("test")).nnz == 0


def test_a_method_is_an_estimator_that_makes_its_own_word_vectors() -> None:
    table = documents()
    sizes = {"word_vectors__vector_size": 4, "word_vectors__min_count": 1, "word_vectors__epochs": 1}
    pipeline = make_pipeline(tb.method("scdv", n_clusters=3, **sizes), LinearSVC())
    grid = {"textfeatures__n_clusters": [2, 3]}
    search = GridSearchCV(clone(pipeline), grid, cv=2, error_score="raise").fit(table["text"], table["label"])
    best = clone(pipeline).set_params(**search.best_params_).fit(table["text"], table["label"])
    assert search.predict(table["text"]).tolist() == best.predict(table["text"]).tolist()
    assert set(search.predict(["a1 b2"])) <= set(CLASSES)


def test_lists_tuples_paths_and_names_are_told_apart(folder: Path, tmp_path: Path) -> None:
    table, place = documents(), tmp_path

    def about(data: Any, **options: Any) -> dict[str, Any]:
        return api._about(data, "tfidf", 1, place, options, BenchmarkRequest)

    assert (about("r8")["datasets"], about("r8")["own"]) == (["r8"], None)
    assert about(("r8", "r52"))["datasets"] == ["r8", "r52"]
    by_path = [about(data)["own"]["path"] for data in (folder / "toy.csv", str(folder / "toy.csv"))]
    assert by_path == [str(folder / "toy.csv")] * 2
    # A table and what it is made of are the same documents, which are kept once.
    pair = (table["text"].tolist(), table["label"].to_numpy())
    kept = [about(data)["own"] for data in (table, pair, [pair])]
    assert kept[0] == kept[1] == kept[2] and kept[0]["name"] == "data"
    assert len([*(place / "frames").iterdir()]) == 1
    both = about(["r8", table.rename(columns={"text": "body"})], text_column="body")
    assert both["datasets"] == ["r8"] and both["own"] == kept[0]
    parts = ["train"] * 40 + ["test"] * 20
    assert about((*pair, parts))["own"]["split_column"] == "split"
    assert about(table.assign(part=parts), split_column="part")["own"] == about((*pair, parts))["own"]


REFUSED: dict[str, Callable[[], Any]] = {
    "there is no argument 'trails'; did you mean trials?": lambda: tb.run("r8", "tfidf", trails=3),
    "there is no argument 'collection'; did you mean": lambda: tb.retrieve(collection="cacm"),
    "there is no method 'tfdif'; did you mean tfidf": lambda: tb.run("r8", "tfdif"),
    "there is no data set 'r9'; did you mean r8": lambda: tb.run("r9", "tfidf"),
    "trials must be at least 0, got -1": lambda: tb.run("r8", "tfidf", trials=-1),
    "folds must be at least 2, got 1": lambda: tb.run("r8", "tfidf", folds=1),
    "folds and held_out are two ways to validate": lambda: tb.run("r8", "tfidf", folds=3, held_out=0.2),
    "seeds must lie in 1 .. 1000, got 0": lambda: tb.run("r8", "tfidf", seeds=0),
    "seeds must be at least 0, got -2": lambda: tb.run("r8", "tfidf", seeds=[-2]),
    "test_size must lie between 0 and 1, got 3": lambda: tb.run(documents(), "tfidf", test_size=3),
    "test_size describes your own documents and needs datasets": lambda: tb.run("r8", "tfidf", test_size=0.5),
    "the table must have a column 'text', got none; did you mean": lambda: tb.run(
        documents().rename(columns={"text": "texts"}), "tfidf"
    ),
    "every text must have a label, got 2 texts and 1 labels": lambda: tb.run((["a", "b"], ["x"]), "tfidf"),
    "texts must be strings, got 3 at position 1": lambda: tb.run((["a", 3], ["x", "y"]), "tfidf"),
    "must be of at least two classes, got only 'x'": lambda: tb.run((["a", "b"], ["x", "x"]), "tfidf"),
    "datasets must be names, a file, a table, or a tuple of texts and labels, got int": lambda: tb.run(
        3, "tfidf"
    ),
    "of texts, labels and parts, got list": lambda: tb.run([["a", "b"], ["x", "y"]], "tfidf"),
    "one file, table or tuple of your own documents, got several": lambda: tb.run([documents()] * 2, "tfidf"),
    "there is no file or folder": lambda: tb.run("nowhere/data.csv", "tfidf"),
    "a run needs at least one data set, one method and one seed": lambda: tb.run("r8", []),
    "tracking must be True, None, or the address": lambda: tb.run("r8", "tfidf", tracking=3),
    "tracking_uri 'ftp://x' is not supported": lambda: tb.run("r8", "tfidf", tracking="ftp://x"),
    "has no 'mapp' on r8": lambda: tb.curve("r8", "tfidf", metric="mapp"),
    "budgets: data has 42 training documents, got 50": lambda: tb.curve(documents(), "tfidf", budgets=[50]),
    "documents nowhere: there is no such file": lambda: tb.retrieve(
        documents="nowhere", queries="nowhere", qrels="nowhere"
    ),
    "there is no collection 'cranfeld'; did you mean cranfield": lambda: tb.retrieve("cranfeld", "bm25"),
    "name at least two runs, or data sets": lambda: tb.compare(),
    "there is no metric 'acuracy'; did you mean accuracy": lambda: tb.compare(
        "last", "best", metric="acuracy"
    ),
    "no claim's id begins with 'scdv-2018'": lambda: tb.claims("scdv-2018"),
    "there is no paper 'scdv'; did you mean scdv-2017": lambda: tb.claims(paper="scdv"),
    "path must end in .html, .htm, got report.pdf": lambda: tb.report("report.pdf"),
    "nothing has been run in": lambda: tb.report("report.html"),
    "figure draws the verdicts on the papers' claims": lambda: tb.report("report.html", figure="x.svg"),
    "nowhere.npz cannot be read: No such file": lambda: tb.load_model("nowhere.npz"),
    "path must be a file's name, got 3": lambda: tb.load_model(3),  # type: ignore[arg-type]
    "there is no method 'scvd'; did you mean scdv": lambda: tb.method("scvd"),
    "lsi has no parameter 'n_topics'": lambda: tb.method("lsi", n_topics=3),
    "there is no data set 'r9'; did you mean": lambda: tb.load_dataset("r9"),
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_input_gets_one_clear_line_in_the_words_of_the_arguments(
    message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(tb.InputError) as caught:
        REFUSED[message]()
    said = str(caught.value)
    assert message in said and said.isprintable() and "--" not in said
    assert isinstance(caught.value, ValueError) and caught.value.__suppress_context__


def test_a_command_in_a_message_can_be_typed_as_it_stands(tmp_path: Path) -> None:
    with pytest.raises(tb.InputError, match=r"textbench run -d r8 -m tfidf --protocol honest$"):
        tb.ensemble("r8", "tfidf", home=tmp_path)


def test_a_cell_that_fails_is_told_and_the_others_are_finished(
    found: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stage that fails is one that is not stored; no child is needed for it to fail."""
    from textbench.tasks import stages

    def fail(stage: str, *_: Any) -> None:
        raise CellError(f"{stage} failed")

    monkeypatch.setattr(stages, "run", fail)
    mixed = tb.run(documents(), ["tfidf", "binary"], home=found.home, name="toy", progress=False)
    assert [row["error"] is None for row in mixed.rows][1] is False
    assert mixed.errors()["method"].tolist()[-1] == "binary"


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all examples work in: what one computes is stored for the others."""
    return tmp_path_factory.mktemp("examples")


@pytest.mark.parametrize("name", [name for name in tb.__all__ if name != "InputError"])
def test_examples_run(name: str, examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(examples)
    monkeypatch.setenv("TEXTBENCH_HOME", str(examples / "home"))
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(tb, name), name, globs={})
    assert example.examples
    said = io.StringIO()
    assert doctest.DocTestRunner().run(example, out=said.write).failed == 0, said.getvalue()
