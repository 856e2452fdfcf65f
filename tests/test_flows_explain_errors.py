"""Errors to look at: which documents are chosen, what is said of each, and that no text leaves unless asked for."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import textbench as tb
from tests.made_runs import CLASSES, one_label, several_labels
from textbench.flows.cli.errors import errors as command
from textbench.flows.explain.errors import COMMON, MANY, ErrorList, errors
from textbench.flows.explain.frames import ErrorResults
from textbench.flows.report import errors_page
from textbench.tasks import InputError

# Of eight documents the first run is wrong on 1, 3 and 6, the second on 2, 3 and 7; on 3 they differ besides.
TARGET = [0, 0, 0, 1, 1, 2, 2, 2]
FIRST = [0, 1, 0, 0, 1, 2, 0, 2]
SECOND = [0, 0, 2, 2, 1, 2, 2, 1]
WORDS = ["alder", "birch", "cedar", "elder", "hazel", "holly", "larch", "maple", "rowan", "willow"]


def _duplicates() -> tuple[list[str], list[str], list[str]]:
    """Return documents of two classes: test document 0 is a training document, with the other label."""
    pairs = [(a, b) for a in WORDS for b in WORDS if a < b]
    texts = [f"{('wheat harvest', 'oil tanker')[n % 2]} {a}{b} <b>&" for n, (a, b) in enumerate(pairs)]
    labels = [("grain", "ship")[n % 2] for n in range(len(pairs))]
    parts = ["train"] * len(pairs) + ["test"] * 4
    texts += [texts[6], "oil tanker oak", "wheat harvest oak", "harvest tanker tanker"]
    return texts, [*labels, "ship", "ship", "grain", "grain"], parts


DUPLICATES = _duplicates()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two runs on the same documents, one on others and one of several labels, as rows; `home` is their folder."""
    home = tmp_path_factory.mktemp("errors")
    return {
        "home": home,
        "first": one_label(home, "r8", "tfidf", TARGET, FIRST),
        "second": one_label(home, "r8", "lsi", TARGET, SECOND),
        "other": one_label(home, "r52", "lsi", TARGET, SECOND, edition=2),
        "several": several_labels(home, "reuters", "tfidf", [[0], [1]], [[0], [0]]),
    }


def found(made: dict[str, Any], *names: str, **asked: Any) -> ErrorList:
    return errors(made["home"], [made[name] for name in names], **asked)


def test_which_documents_are_chosen(made: dict[str, Any]) -> None:
    chosen = {
        only: found(made, "first", "second", only=only).rows.tolist()
        for only in ("different", "first-wrong", "second-wrong", "both-wrong", "wrong")
    }
    assert chosen == {
        "different": [1, 2, 6, 7],
        "first-wrong": [1, 6],
        "second-wrong": [2, 7],
        "both-wrong": [3],
        "wrong": [1, 2, 3, 6, 7],
    }
    assert found(made, "first", "second").rows.tolist() == chosen["different"]
    assert found(made, "first").rows.tolist() == [1, 3, 6]
    # The label, or an answer of either run.
    of_med = found(made, "first", "second", only="wrong", classes=["sci.med"])
    assert of_med.rows.tolist() == [1, 3, 7]
    both = found(made, "first", "second", only="wrong", classes=["sci.med", "sci.space"])
    assert both.rows.tolist() == [1, 2, 3, 6, 7]


def test_records_and_confusion_by_hand(made: dict[str, Any]) -> None:
    two = found(made, "first", "second", only="wrong")
    assert [record["right"] for record in two.records()] == ["lsi", "tfidf", "neither", "lsi", "tfidf"]
    first = two.records()[0]
    assert (first["document"], first["label"], first["tfidf"]) == (1, "alt.atheism", "sci.med")
    assert (first["nearest_cosine"], first["terms of tfidf"]) == (None, "")  # these runs keep no counts
    assert two.confusions[0].tolist() == [[2, 1, 0], [1, 1, 0], [1, 0, 2]]
    assert two.confusions[1].tolist() == [[2, 0, 1], [0, 1, 1], [0, 1, 2]]
    matrix = ErrorResults(two, 20).confusion(1)
    assert matrix.loc["alt.atheism", "sci.space"] == 1 and [*matrix.columns] == CLASSES
    assert np.trace(matrix) == sum(a == b for a, b in zip(TARGET, SECOND, strict=True))
    assert [row[2].value for row in two.confused(0).rows] == [1, 1, 1]
    assert two.answer == (
        "r8: of 8 test documents, tfidf gets 3 wrong and lsi gets 3 wrong, 2 and 2 of them alone; 1 both."
    )
    assert two.chosen(3).tolist() == [1, 3, 7] and two.chosen(9).tolist() == [1, 2, 3, 6, 7]


def test_refusals(made: dict[str, Any]) -> None:
    for names, asked, reason in (
        (["first", "other"], {}, "tested on different documents"),
        (["first", "first"], {}, "one run twice"),
        (["several"], {}, "several labels each"),
        (["first"], {"only": "different"}, "there is no choice of documents 'different'"),
        (["first", "second"], {"only": "wrnog"}, "did you mean wrong"),
        (["first"], {"classes": ["sci.mad"]}, "did you mean sci.med"),
    ):
        with pytest.raises(InputError, match=reason):
            found(made, *names, **asked)
    with pytest.raises(InputError, match="of one run or of two, got 3"):
        tb.errors("tfidf", "lsi", "nb", home=made["home"])
    with pytest.raises(InputError, match="of one run or of two, got 0"):
        tb.errors(home=made["home"])


def test_methods_of_one_name_are_told_apart(made: dict[str, Any]) -> None:
    row = one_label(made["home"], "r8", "tfidf", TARGET, SECOND, seed=1)
    two = errors(made["home"], [made["first"], row])
    assert two.names == [f"tfidf {one['key'][:8]}" for one in (made["first"], row)]
    table = two.documents(None)
    assert all(" " not in name for name in table.filters)  # the page parts them by spaces
    assert {*table.filters} <= {name for name, _ in table.headings}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs on DUPLICATES."""
    home = tmp_path_factory.mktemp("real")
    return tb.run(DUPLICATES, ["tfidf", "majority"], home=home, trials=0, progress=False)


def test_near_duplicates_terms_and_texts(results: Any) -> None:
    errors_found = tb.errors(results, only="wrong", texts=True)
    rows = errors_found.table().set_index("document")
    assert rows.loc[0, "nearest_train"] == 6 and rows.loc[0, "nearest_cosine"] == 1
    assert rows.loc[0, "text"].startswith("wheat harvest") and rows.loc[0, "label"] == "ship"
    # What spoke for grain, which the text is of.
    assert {"wheat", "harvest"} <= {*rows.loc[0, "terms of tfidf"].split(", ")}
    assert "tanker" in rows.loc[3, "terms of tfidf"]
    assert [*rows["terms of majority"]] == [""] * len(rows)


def test_methods_that_read_texts_alone_have_no_nearest_by_terms(results: Any, tmp_path: Path) -> None:
    """What has counts beside them gives it."""
    alone = tb.run(DUPLICATES, "hashing", home=tmp_path, trials=0, progress=False)
    assert tb.errors(alone, only="wrong").found.near(np.array([0])) is None
    tb.run(DUPLICATES, "tfidf", home=tmp_path, trials=0, progress=False)
    both = tb.errors("hashing", "tfidf", dataset="data", home=tmp_path).found
    ((cosine, nearest),) = both.near(np.array([0])) or []
    assert (cosine, nearest) == (pytest.approx(1.0), 6)


def test_the_nearest_is_that_of_a_dense_computation(results: Any) -> None:
    made_of = tb.errors(results).found
    vectors = made_of.runs[0].open("vectors")
    train, test = (vectors.matrix(f"{part}_counts").toarray() for part in ("train", "test"))
    rare = (train > 0).sum(axis=0) <= max(COMMON * len(train), MANY)
    rows = np.arange(len(test))
    lengths = [np.linalg.norm(part[:, rare], axis=1) for part in (test, train)]
    cosines = (test[:, rare] @ train[:, rare].T) / np.maximum(np.outer(*lengths), 1e-9)
    near = made_of.near(rows)
    assert near is not None
    assert [cosine for cosine, _ in near] == pytest.approx(cosines.max(axis=1), abs=1e-6)
    assert [n for _, n in near] == [int(row.argmax()) if row.any() else -1 for row in cosines]


def test_no_text_is_written_unless_asked_for(results: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("TEXTBENCH_HOME", str(results.home))
    monkeypatch.setenv("COLUMNS", "200")
    app = typer.Typer()
    app.command()(command)

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["tfidf", "majority", "--only", "wrong", *arguments])
        assert done.exit_code == 0, done.output
        return done.stdout

    text = "oil tanker oak"
    shown = tb.errors(results, only="wrong")
    assert "text" not in shown.table() and text not in repr(shown) + shown._repr_html_()
    plain, pages = tmp_path / "plain.html", tmp_path / "texts.html"
    assert text not in run() + run("--json") + run("-o", str(plain)) + plain.read_text("utf-8")
    assert text in run("--texts") and text in run("--json", "--texts")
    run("--texts", "-o", str(pages))
    page = pages.read_text("utf-8")
    # Texts are text there, not markup.
    assert text in page and "&lt;b&gt;&amp;" in page and "<b>&" not in page
    assert "Confusion matrix of tfidf" in page and "http" not in page
    first = json.loads(run("--json", "--top", "1").splitlines()[0])
    assert first["document"] == 0 and len(run("--json", "--top", "2").splitlines()) == 2


def test_a_page_of_no_errors_says_so(made: dict[str, Any], tmp_path: Path) -> None:
    row = one_label(made["home"], "r8", "nb", TARGET, TARGET)
    none = errors(made["home"], [row])
    page = errors_page.page(none, 20)
    assert "nb gets 0 wrong" in page and "nb takes most often nothing for another." in page
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        errors_page.write(tmp_path / "file" / "page.html", none, 20, with_texts=False)
