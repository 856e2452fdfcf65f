"""`textbench terms`: columns of terms, as a table, as JSON and as a picture."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from textbench.flows.cli.terms import _render as render
from textbench.flows.cli.terms import terms
from textbench.flows.explain.terms import Column, TermColumns, TermsQuestion, _has_terms, ask
from textbench.flows.plots.terms import Terms, draw
from textbench.tasks import InputError, catalogue
from textbench.tasks.storage.store import Store

R8 = {"dataset": "r8", "method": "dcot(n_layers=1)"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("terms")


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.setenv("TEXTBENCH_HOME", str(home))
    app = typer.Typer()
    app.command()(terms)

    def invoke(*arguments: str, code: int = 0) -> str:
        options = ["--dataset", R8["dataset"], "--method", R8["method"]]
        result = CliRunner().invoke(app, [*options, *arguments])
        if isinstance(result.exception, InputError):
            raise result.exception
        assert result.exit_code == code, result.output
        return result.output

    return invoke


def test_words_are_shown_with_what_they_are_taken_to_mean(run: Callable[..., str], tmp_path: Path) -> None:
    picture = tmp_path / "terms.svg"
    asked = ("wheat", "reagan", "--rule", "letters-stop-stem", "--top", "8")
    answer = json.loads(run(*asked, "--figure", str(picture), "--json"))
    empty, wheat, reagan = answer["columns"]
    assert [column["heading"] for column in (empty, wheat, reagan)] == ["(empty document)", "wheat", "reagan"]
    assert all(len(column["terms"]) == 8 for column in answer["columns"])
    for column in answer["columns"]:
        values = [entry["value"] for entry in column["terms"]]
        assert values == sorted(values, reverse=True) and values[0] > 0
    # What a news wire says beside these words.
    assert {"grain", "agricultur", "tonn", "depart"} & {entry["term"] for entry in wheat["terms"]}
    assert {"presid", "hous", "administr", "white"} & {entry["term"] for entry in reagan["terms"]}
    drawn = picture.read_text("utf-8")
    assert all(f">{entry['term']}<" in drawn for column in answer["columns"] for entry in column["terms"])
    table = run(*asked)
    assert all(entry["term"] in table for entry in reagan["terms"])


def test_the_token_rule_is_applied_to_words(home: Path) -> None:
    question = TermsQuestion(
        ["Wheat", "agricultural"], R8["dataset"], R8["method"], 3, rule="letters-stop-stem"
    )
    answer = ask(question, Store(home / "store"))
    assert [c.heading for c in answer.columns] == [
        "(empty document)",
        "Wheat (wheat)",
        "agricultural (agricultur)",
    ]


def test_topic_models_show_topics(home: Path) -> None:
    """Those of the words asked about, else the most coherent, best term first; of clusters of terms too."""
    store, method = Store(home / "store"), "lda(n_topics=8, n_iter=10)"
    (column,) = ask(TermsQuestion(["wheat"], "r8", method, 10**6), store).columns
    every = ask(TermsQuestion([], "r8", method, 10**6), store).columns
    assert len(every) == 8
    values = {one.heading: dict(one.terms) for one in every}
    best = max(values, key=lambda heading: values[heading].get("wheat", 0.0))
    assert column.heading == f"wheat: {best}"
    assert list(values[best].values()) == sorted(values[best].values(), reverse=True)
    assert [len(one.terms) for one in ask(TermsQuestion([], "r8", method, 4), store).columns] == [4] * 8


def test_every_topic_model_has_terms_and_others_have_none() -> None:
    able = {name for name, entry in catalogue.methods().items() if _has_terms(entry)}
    of_topics = {
        "lda",
        "nmf",
        "twe-1",
        "ntsg",
        "ltsg",
        "wtm",
        "lf-lda",
        "topicvec",
        "mvtm",
        "lda2vec",
        "gaussian-lda",
    }
    assert of_topics | {"scdv", "dcot", "compressive"} == able


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["presidnet"], "'presidnet' is no term of the training documents; did you mean .*president"),
        (["white house"], "'white house' is 2 terms"),
        (["--method", "tfidf"], "tfidf has no terms to show; .*dcot"),
        (["--method", "dcto"], "did you mean dcot"),
        (["--method", "dcot(noise=2)"], "noise must be a number above 0 and below 1, got 2"),
        (["--dataset", "r9"], "did you mean r8"),
        (["--top", "0"], "--top must be at least 1, got 0"),
        (["--figure", "columns.gif"], "--figure must end in .svg, .png, .pdf, got columns.gif"),
        (["--rule", "lettres"], "did you mean letters"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    run: Callable[..., str], arguments: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        run(*arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_pictures(tmp_path: Path, kind: str) -> None:
    columns: list[tuple[str, Terms]] = [
        ("first", [("a", 3.0), ("b", 0.5)]),
        ("below", [("c", -0.1)]),
        ("nothing", []),
    ]
    path = tmp_path / f"columns.{kind}"
    draw(columns, path)
    first = path.read_bytes()
    draw(columns, path)
    assert path.read_bytes() == first
    with pytest.raises(InputError, match="cannot be written"):
        draw(columns, tmp_path / "no folder" / path.name)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n_terms", [0, 2])
def test_an_empty_column_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str], n_terms: int) -> None:
    """Such as a word that is in no phrase; or all columns, where nothing is repeated."""
    full = Column("most used", [("oil price", 12.0), ("per cent", 7.0)][:n_terms])
    answer = TermColumns("r8", "compressive", [full, Column("wheat", [])])
    n_empty = 1 + (n_terms == 0)
    render(answer)
    table = capsys.readouterr().out
    assert table.count("(nothing)") == n_empty
    assert "most used" in table and "wheat" in table
    draw([(column.heading, column.terms) for column in answer.columns], tmp_path / "columns.svg")
    assert (tmp_path / "columns.svg").read_text("utf-8").count(">(nothing)<") == n_empty
    assert answer.to_json()["columns"][1] == {"heading": "wheat", "terms": []}


def test_columns_of_a_method_without_words(tmp_path: Path) -> None:
    answer: dict[str, Any] = TermColumns(
        "r8", "compressive", [Column("most used phrases", [("a b", 12)])]
    ).to_json()
    assert answer["columns"] == [{"heading": "most used phrases", "terms": [{"term": "a b", "value": 12}]}]
