"""A method that is fitted to labels is marked wherever results are named, and the mark is explained there."""

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.made_runs import CLASSES, empty_record, one_label
from textbench.evaluation.metrics.single_label import per_class
from textbench.flows.cli import app
from textbench.flows.cli.curve import print_curves
from textbench.flows.cli.summary import print_summary
from textbench.flows.report import page
from textbench.flows.report.chapters import chapters
from textbench.flows.report.evidence import gather
from textbench.flows.results.index import Index
from textbench.flows.results.method_names import (
    MEANING,
    MEANINGS,
    PRETRAINED,
    explained,
    in_groups,
    marked,
    marked_ranker,
    uses_labels,
)
from textbench.flows.results.regressions import Change, report
from textbench.flows.tables.formats import to_csv, to_html
from textbench.flows.tables.table import of_texts
from textbench.tasks.storage.files import write_json

SAID = f"+ {MEANING}."
TARGET = [0, 1, 2] * 20
N_RIGHT = {"chi2": 60, "tfidf": 57, "counts": 40}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three methods on two data sets, chi2 the best; a curve of two on one of them."""
    home = tmp_path_factory.mktemp("marked")
    for method, n_right in N_RIGHT.items():
        predicted = [(target + (place >= n_right)) % 3 for place, target in enumerate(TARGET)]
        for dataset in ("r8", "r52"):
            row = one_label(home, dataset, method, TARGET, predicted)
            figures = per_class(np.array(TARGET), np.array(predicted), CLASSES)
            write_json(home / "store" / "evaluate" / row["key"] / "per_class.json", figures)
        for budget in (100, 200) if method != "counts" else ():
            request = {"labels": {"budget": budget, "draw": 0, "stratified": False}}
            one_label(home, "r8", method, TARGET, predicted, request=request)
    return home


@pytest.fixture
def home(finished: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TEXTBENCH_HOME", str(finished))
    monkeypatch.setenv("COLUMNS", "200")
    return finished


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def curve_rows(home: Path) -> list[dict[str, Any]]:
    rows = [row | {"labels": row["request"]["labels"]} for row in Index(home).rows()]
    return [row for row in rows if row["labels"]]


def is_marked(text: str) -> bool:
    """Whether chi2 is marked and no other, and the mark explained."""
    words = " ".join(text.split())
    assert "tfidf" in words
    assert not any(f"{other}+" in words for other in N_RIGHT if other != "chi2")
    return "chi2+" in words and SAID.removesuffix(".") in words


def test_a_row_says_whether_labels_were_used_and_else_its_methods_file() -> None:
    assert uses_labels({"method": "chi2"}) and uses_labels({"method": "lz77(order='by_class')"})
    for method in ("lz77", "nb", "one-of-mine", "one of mine("):
        assert not uses_labels({"method": method})
    assert uses_labels({"method": "one-of-mine", "uses_labels": True})
    assert marked({"method": "lz77", "uses_labels": True}) == "lz77+"
    assert marked({"method": "chi2", "uses_labels": False}) == "chi2"


def test_what_stands_on_a_pretrained_model_is_marked_by_its_name() -> None:
    given = "avgvec(word_vectors__path='glove.txt', word_vectors__trainer='file')"
    for method in ("sentence", "static(weights='idf')", given):
        assert marked({"method": method}) == f"{method}{PRETRAINED}"
        assert MEANINGS[PRETRAINED] in explained([f"{method}{PRETRAINED} (3 trials)"])
    for method in ("avgvec", "tfidf", "mpnet.npy, from file 1234abcd"):
        assert marked({"method": method}) == method
    assert explained(["chi2+", "sentence°"]) == f" {SAID}{explained(['sentence°'])}"


BEHIND, UNREAD = f"Methods on a pretrained model ({PRETRAINED})", {"documents": 0.1, "tokens": 0.25}


@pytest.fixture(scope="module")
def with_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """sentence is the best, tfidf next, static last."""
    home = tmp_path_factory.mktemp("models")
    for method, n_right in {"sentence": 60, "tfidf": 57, "static": 40}.items():
        predicted = [(target + (place >= n_right)) % 3 for place, target in enumerate(TARGET)]
        unread = {"unread": UNREAD if method == "sentence" else {}}
        one_label(home, "r8", method, TARGET, predicted, seconds={"featurize": 1.0}, **unread)
    return home


def test_methods_on_a_model_are_a_group_of_their_own_in_every_form(
    with_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEXTBENCH_HOME", str(with_models))
    monkeypatch.setenv("COLUMNS", "200")
    wanted = ["Methods", "tfidf", BEHIND, "sentence°", "static°"]

    def are_in_order(text: str, names: list[str] = wanted) -> bool:
        places = [text.index(name) for name in names]
        return places == sorted(places)

    text = run("leaderboard")
    assert are_in_order(text) and "> sentence°" in text  # the best is the best of all
    assert "Documents cut, and tokens not read: sentence 10 % and 25 %." in " ".join(text.split())
    markdown = run("leaderboard", "--format", "markdown").splitlines()
    assert are_in_order("".join(line for line in markdown if line.startswith("| ")))
    assert markdown[2].endswith("| documents cut, % | tokens cut, % |")
    assert any(line.startswith("| **sentence°**") and line.endswith("| 10.0 | 25.0 |") for line in markdown)
    assert any(line.startswith("| tfidf") and line.endswith("| - | - |") for line in markdown)
    latex = run("leaderboard", "--format", "latex")
    assert rf"\midrule{chr(10)}\multicolumn{{10}}{{l}}{{\emph{{{BEHIND}}}}} \\" in latex
    rows = list(csv.DictReader(io.StringIO(run("leaderboard", "--format", "csv"))))
    assert {row["method"]: row["is_pretrained"] for row in rows} == {
        "sentence": "1",
        "tfidf": "0",
        "static": "1",
    }
    assert [row["documents_cut"] for row in rows] == ["0.1", "", ""]
    compared = run("compare", "sentence", "tfidf", "-d", "r8")
    assert are_in_order(compared, [BEHIND, "sentence°"])


def test_groups_in_the_report_its_files_and_a_notebook(
    with_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_record(monkeypatch, tmp_path)
    evidence = gather(with_models)
    found = chapters(evidence)
    tables = {t.name: t for chapter in found for part in chapter.sections for t in part.tables}
    for name in ("leaderboard-r8-honest", "costs-r8-honest"):
        assert [title for title, _ in tables[name].groups] == ["Methods", BEHIND], name
        assert tables[name].groups[1][1] == 2, name
    board = tables["leaderboard-r8-honest"]
    lines = {line["method"]: line for line in csv.DictReader(io.StringIO(to_csv(board)))}
    assert list(lines)[-2:] == ["sentence°", "static°"]
    assert (lines["tfidf"]["group"], lines["static°"]["group"]) == ("Methods", BEHIND)
    assert [lines[name]["documents_cut"] for name in ("tfidf", "sentence°", "static°")] == ["", "0.1", ""]
    html = page.render(evidence, found)
    head = f'<tr class="group"><th scope="rowgroup" colspan="{len(board.headings)}">{BEHIND}</th></tr>'
    assert head in html and "documents cut, %" in html
    assert f'style="text-align: left">{BEHIND}</th>' in to_html(board)


def test_a_group_is_known_by_the_marks_of_a_label() -> None:
    names = ["tfidf*", "sentence°*", "join(tfidf, sentence)° (5 trials)*", "chi2+"]
    table = in_groups(of_texts("", ("method",), [[name] for name in names]))
    assert table.groups == [("Methods", 2), (BEHIND, 2)]
    assert [row[0].text for row in table.rows] == [names[0], names[3], names[1], names[2]]
    plain = of_texts("", ("method",), [["tfidf"]])
    assert in_groups(plain) is plain and plain.grouped == [("", plain.rows)]


def test_a_ranker_on_a_model_is_marked() -> None:
    for name in ("dense", "dense(model='org/name')", "sentence", "lm+static"):
        assert marked_ranker(name) == f"{name}{PRETRAINED}"
    for name in ("bm25", "lsi(n_components=9)", "lm+scdv", "lm+pv", "a run.txt"):
        assert marked_ranker(name) == name


def test_a_mark_is_explained_where_there_is_one() -> None:
    assert explained(["tfidf", "lm+tfidf (3 trials)"]) == ""
    for label in ("chi2+", "chi2(n_terms=100)+", "chi2+ (3 trials)"):
        assert explained(["tfidf", label]) == f" {SAID}"


@pytest.mark.parametrize("form", ["table", "markdown", "latex"])
def test_the_leaderboard(home: Path, form: str) -> None:
    assert is_marked(run("leaderboard", "--format", form))
    assert SAID not in run("leaderboard", "--format", form, "-m", "tfidf")


def test_the_leaderboard_as_csv_and_json(home: Path) -> None:
    table = list(csv.DictReader(io.StringIO(run("leaderboard", "--format", "csv"))))
    expected = {method: str(int(method == "chi2")) for method in N_RIGHT}
    assert {row["method"]: row["uses_labels"] for row in table} == expected
    lines = map(json.loads, run("leaderboard", "--format", "json").splitlines())
    assert {row["method"] for row in lines if row["uses_labels"]} == {"chi2"}


def test_the_figure_of_the_leaderboard(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "board.svg"
    run("leaderboard", "--figure", path)
    assert is_marked(path.read_text())


def test_the_summary_of_a_run(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(home, [row for row in Index(home).rows() if not row["request"]["labels"]], "")
    text = capsys.readouterr().out
    assert is_marked(text)
    assert "chi2+ is best" in text


def test_curves_and_their_figure(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_curves(home, curve_rows(home), figure=tmp_path / "curve.svg")
    assert is_marked(capsys.readouterr().out)
    assert is_marked((tmp_path / "curve.svg").read_text())


def test_comparisons_and_ranks(home: Path, tmp_path: Path) -> None:
    which = [word for method in N_RIGHT for word in ("-m", method)]
    assert is_marked(run("compare", "-d", "r8", "-d", "r52", *which, "--figure", tmp_path / "ranks.svg"))
    assert is_marked((tmp_path / "ranks.svg").read_text())
    assert is_marked(run("compare", "chi2", "tfidf", "-d", "r8"))


def test_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path))
    for method in ("chi2", "tfidf"):
        one_label(tmp_path, "r8", method, TARGET, TARGET)
    shutil.rmtree(tmp_path / "store" / "evaluate")  # what the index says of a run is shown all the same
    shown = run("show", "chi2", "-d", "r8").splitlines()
    assert shown[0].strip() == "r8 chi2+"
    assert ["+", *MEANING.split()] in [line.split() for line in shown]
    assert MEANING not in run("show", "tfidf", "-d", "r8")


def test_the_list_of_methods() -> None:
    text = run("list", "methods")
    heading = text.index("Representations fitted to labels too, + in tables")
    assert heading < text.index("\nchi2 ") < text.index("Classifiers")
    assert text.index("\ntfidf ") < heading
    found = map(json.loads, run("list", "methods", "--json").splitlines())
    assert "chi2" in {entry["name"] for entry in found if entry["uses_labels"]}


def test_the_nights() -> None:
    changes = [Change("r8", method, "accuracy", 0.9, 0.9, 0, 0, 1, 1, 1, 1) for method in ("chi2+", "tfidf")]
    night = {"begun": 1.0, "commit": "c", "hardware": "here", "rows": []}
    assert is_marked(report(night, night, changes, 1.5))


def test_every_table_and_figure_of_the_report(home: Path) -> None:
    found = chapters(gather(home))
    named = []
    for section in (section for chapter in found for section in chapter.sections):
        for table in section.tables:
            texts = [datum.text for line in table.rows for datum in line] + [table.title]
            if any("chi2" in text.split("(")[0] for text in texts):
                named.append(table.name)
                assert is_marked(" ".join([*texts, table.note])), table.name
        for figure in section.figures:
            named.append(figure.name)
            assert is_marked(f"{figure.svg} {figure.caption}"), figure.name
    for part in (
        "leaderboard",
        "curve",
        "ranks",
        "classes",
        "costs",
        "made-here",
        "fig-leaderboard",
        "fig-ranks",
    ):
        assert any(name.startswith(part) for name in named), part
    assert is_marked(page.render(gather(home), found))
