"""The user's own documents in every command that reads some: the same options, read once, refused before all."""

import inspect
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from textbench.flows.cli import app
from textbench.flows.cli.curve import curve
from textbench.flows.cli.options import own_options
from textbench.flows.cli.query import query
from textbench.flows.cli.run import run
from textbench.flows.cli.terms import terms
from textbench.flows.explain.lsa_query import Question, ask
from textbench.flows.explain.terms import TermsQuestion
from textbench.flows.explain.terms import ask as ask_terms
from textbench.flows.plan.cell import plan
from textbench.flows.plan.request import BUDGETS, LabelBudgetRequest, Request
from textbench.flows.results.runs import changed, is_current
from textbench.flows.run.preflight import checked_curves, require_data
from textbench.tasks import InputError
from textbench.tasks.storage import isolate
from textbench.tasks.storage.store import Store

opened: Counter[str] = Counter()
watched: list[str] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and watched and str(arguments[0]).startswith(watched[0]):
        opened[str(arguments[0])] += 1


sys.addaudithook(_watch)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have stages computed in this process, where what they open is seen."""
    monkeypatch.setattr(isolate, "run", _in_this_process)


def _in_this_process(function: str, payload: dict[str, Any], **limits: Any) -> dict[str, Any]:
    from textbench.tasks.storage.store import make

    assert function == "textbench.tasks.storage.store:make"
    try:
        return make(payload)
    except Exception as error:
        raise isolate.CellError(isolate._failure(error)["error"]) from error


@pytest.fixture
def documents(tmp_path: Path) -> Iterator[Path]:
    """A file of two classes with validation documents, as a spreadsheet in Western Europe writes it."""
    parts = ("train", "val", "test")
    rows = [f"sun rain café{i % 3} {'xy'[i % 2]}word;{'xy'[i % 2]};{parts[i % 3]}" for i in range(30)]
    path = tmp_path / "my data (v2).csv"
    path.write_text("\n".join(["text;label;part", *rows]), "latin-1")
    opened.clear()
    watched[:] = [str(path)]
    yield path
    watched.clear()


def options(path: Path, **changes: Any) -> dict[str, Any]:
    return {"path": str(path), "separator": ";", "encoding": "latin-1", "split_column": "part"} | changes


@pytest.mark.parametrize("command", [run, curve, query, terms])
def test_commands_share_the_options_of_own_documents(command: Any) -> None:
    shared = inspect.signature(own_options).parameters
    found = inspect.signature(command).parameters
    assert {name: found[name] for name in shared} == dict(shared)
    assert "own" not in found


@pytest.mark.parametrize("command", ["run", "curve", "query sun", "terms"])
def test_options_of_own_documents_need_them(command: str) -> None:
    result = CliRunner().invoke(app, [*command.split(), "--encoding", "latin-1"])
    assert isinstance(result.exception, InputError)
    assert str(result.exception) == "--encoding describes your own documents and needs --data"


def test_a_file_is_read_once_to_digest_and_once_to_ingest(
    here: None, documents: Path, tmp_path: Path
) -> None:
    request = Request([], ["tfidf", "lsi"], own=options(documents))
    require_data(tmp_path, plan(request))
    store = Store(tmp_path / "store")
    for cell in plan(request):  # as the flow does
        store.ensure(cell.references["audit"])
    assert opened == {str(documents): 2}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("text;label\na;x\nb;\n", "line 3: column 'label' must hold a label"),
        ("text;label\na;x\nb;x\n", "two classes"),
    ],
)
def test_bad_documents_stop_every_command_before_anything(
    here: None, tmp_path: Path, content: str, words: str
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content)
    own, home = {"path": str(path), "separator": ";"}, tmp_path / "home"
    asked = LabelBudgetRequest([], ["tfidf"], own=own, budgets=[2], draws=1)
    for command in (
        lambda: require_data(home, plan(Request([], ["tfidf"], own=own))),
        lambda: checked_curves(home, asked),
        lambda: ask(Question("", "a", own=own), Store(home / "store")),
        lambda: ask_terms(TermsQuestion(["a"], "", "compressive", own=own), Store(home / "store")),
    ):
        with pytest.raises(InputError, match=words):
            command()
    made = {path.parent.name for path in home.glob("store/*/*") if not path.name.startswith(".")}
    assert made <= {"tmp"}


def test_folds_are_not_taken_beside_validation_documents(here: None, documents: Path, tmp_path: Path) -> None:
    for name, option in (("n_folds", "--folds"), ("held_out", "--held-out")):
        request = Request(
            [], ["tfidf"], own=options(documents), validation={name: 2 if name == "n_folds" else 0.5}
        )
        with pytest.raises(InputError, match=f"{option}: my-data-v2 has 10 validation documents of its own"):
            require_data(tmp_path, plan(request))


def test_a_run_knows_its_documents_from_any_folder_and_tells_their_change_from_that_of_code(
    here: None, documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(documents.parent)
    (cell,) = plan(Request([], ["majority"], own=options(documents) | {"path": documents.name}))
    assert cell.request.own is not None and cell.request.own["path"] == str(documents)
    row = {"key": cell.key, "request": asdict(cell.request)}
    Store(tmp_path / "store").ensure(cell.reference)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert is_current(row)
    content = documents.read_text("latin-1")
    documents.write_text(content + "\nsun rain;x;train", "latin-1")
    assert (is_current(row), changed(tmp_path, row)) == (False, "its documents have changed since")
    documents.unlink()
    assert changed(tmp_path, row).startswith("it cannot be asked for any more (there is no file")
    documents.write_text(content, "latin-1")
    assert is_current(row)
    edited = dict(row["request"]) | {"probe": "perceptron", "methods": ["tfidf"]}  # it stands for other code
    assert changed(tmp_path, row | {"request": edited}) == "its code, or a library, has changed since"


def test_a_column_split_that_nobody_reads_is_told(here: None, tmp_path: Path) -> None:
    def said(content: str, name: str = "data.csv", **how: Any) -> list[str]:
        path, lines = tmp_path / name, list[str]()
        path.write_text(content)
        asked = Request([], ["majority"], own={"path": str(path)} | how)
        require_data(tmp_path, plan(asked), say=lines.append)
        return lines

    rows = "".join(f"word{i % 4} sun,{'xy'[i % 2]},{('train', 'Val', 'test')[i % 3]}\n" for i in range(24))
    (line,) = said(f"text,label,split\n{rows}")
    assert line.startswith("the column split is not read") and line.endswith("--split-column split")
    assert said(f"text,label,split\n{rows}", split_column="split") == []
    assert said(f"text,label,split\n{rows}", test_size=0.5) == []
    assert said(f"text,label,kind\n{rows}") == []
    assert said("text,label,split\n" + rows.replace("train", "upper")) == []


def test_own_documents_are_asked(here: None, documents: Path, tmp_path: Path) -> None:
    answer = ask(Question("", "xword", threshold=0.1, own=options(documents)), Store(tmp_path / "store"))
    assert answer.dataset == "my-data-v2"
    assert {int(match.name) % 2 for match in answer.matches} == {0}  # the lines of class x
    shown = ask_terms(
        TermsQuestion(["rain"], "", "dcot(n_layers=1)", own=options(documents)), Store(tmp_path / "store")
    )
    assert (shown.dataset, shown.columns[1].heading) == ("my-data-v2", "rain")


def test_curves_of_own_documents_are_planned(here: None, documents: Path, tmp_path: Path) -> None:
    asked = LabelBudgetRequest([], ["tfidf"], own=options(documents), budgets=[4, 8], draws=2)
    assert [
        (cell.dataset, cell.request.labels["budget"]) for cell in plan(checked_curves(tmp_path, asked))
    ] == [("my-data-v2", b) for b in (4, 8) * 2]
    whole = checked_curves(tmp_path, replace(asked, budgets=[4, 20], draws=3))
    assert [(cell.request.labels["budget"], cell.request.labels["draw"]) for cell in plan(whole)] == [
        (4, 0), (20, 0), (4, 1), (4, 2),
    ]  # fmt: skip
    with pytest.raises(
        InputError, match="has no 'mapp' on my-data-v2, where a document has one label; did you mean"
    ):
        checked_curves(tmp_path, asked, "mapp")
    with pytest.raises(InputError, match="my-data-v2 has 20 training documents, got 21"):
        checked_curves(tmp_path, replace(asked, budgets=[21]))


def test_budgets_that_nobody_asked_for_are_cut_to_the_documents(
    here: None, documents: Path, tmp_path: Path
) -> None:
    request = LabelBudgetRequest([], ["tfidf"], own=options(documents), draws=1)
    for budgets, expected in (
        (BUDGETS, [20]),
        ([4, 8], [4, 8]),
        ([4, 20], [4, 20]),
        ([4, 19, 30, 40], [4, 19, 20]),
    ):
        asked = checked_curves(tmp_path, replace(request, budgets=budgets), may_cut=True)
        assert asked.budgets == expected
        assert len(plan(checked_curves(tmp_path, asked))) == len(expected)


def test_a_curve_refuses_its_metric_before_its_budgets(here: None, documents: Path, tmp_path: Path) -> None:
    asked = LabelBudgetRequest([], ["tfidf"], own=options(documents), budgets=[21])
    with pytest.raises(InputError, match="has no 'mapp' on my-data-v2"):
        checked_curves(tmp_path, asked, "mapp")


def test_a_query_needs_one_library(documents: Path) -> None:
    both = ["query", "sun", "-d", "r8", "--data", str(documents)]
    for arguments, words in ((both, "exclude each other"), (["query", "sun"], "it needs --dataset, ")):
        result = CliRunner().invoke(app, arguments)
        assert isinstance(result.exception, InputError) and words in str(result.exception)


def test_a_query_of_own_documents_is_printed(
    here: None, documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path / "home"))
    given = ["--data", str(documents), "--separator", ";", "--encoding", "latin-1", "--split-column", "part"]
    result = CliRunner().invoke(app, ["query", "xword", *given, "--json"])
    assert json.loads(result.output)["dataset"] == "my-data-v2"
