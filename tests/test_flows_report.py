"""The report: its numbers are those of the index, nothing in it needs a network, and empty states say what to do."""

import base64
import csv
import io
import math
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from flows.claims import choose, ledger
from flows.leaderboard import summarise
from flows.report import audits, boards, charts, classes, page, papers, ranks
from flows.report.chapters import Chapter, answer_of, chapters
from flows.report.evidence import Evidence, gather
from flows.report.tables import Table
from tasks import InputError
from tasks.files import write_json
from tests import made_runs

TARGET = [0, 1, 2] * 40
RIGHT = {"good": 120, "twin": 119, "poor": 60}  # of 120 documents


def answers(n_right: int) -> list[int]:
    return [target if place < n_right else (target + 1) % 3 for place, target in enumerate(TARGET)]


def add_classes(home: Path, row: dict[str, Any], predicted: list[int]) -> None:
    import numpy as np

    from evaluation.metrics import per_class

    figures = per_class(np.array(TARGET), np.array(predicted), made_runs.CLASSES)
    write_json(home / "store" / "evaluate" / row["key"] / "per_class.json", figures)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two data sets, three methods, two seeds each; a curve of two methods on one of them."""
    folder = tmp_path_factory.mktemp("home")
    for shift, dataset in enumerate(("made-a", "made-b")):
        for place, (method, n_right) in enumerate(RIGHT.items()):
            for seed in (0, 1):
                predicted = answers(n_right - shift - seed)
                costs = {"seconds": {"featurize": 1.0 + place, "evaluate": 0.5}, "peak_mb": 300.0 - place}
                sweeps = [f"{dataset}-0a1b2c3d"]
                row = made_runs.one_label(
                    folder, dataset, method, TARGET, predicted, seed=seed, sweeps=sweeps, **costs
                )
                add_classes(folder, row, predicted)
    for method in ("good", "poor"):
        for budget in (100, 200):
            for draw in (0, 1):
                request = {"labels": {"budget": budget, "draw": draw, "stratified": False}}
                n_right = RIGHT[method] - 100 // budget - draw
                made_runs.one_label(folder, "made-a", method, TARGET, answers(n_right), request=request)
    return folder


@pytest.fixture(scope="module")
def evidence(home: Path) -> Evidence:
    return gather(home)


@pytest.fixture(scope="module")
def made(evidence: Evidence) -> list[Chapter]:
    return chapters(evidence, ledger(evidence.home, choose("dcot-2012")))


@pytest.fixture(scope="module")
def html(evidence: Evidence, made: list[Chapter]) -> str:
    return page.render(evidence, made)


class Page(HTMLParser):
    """Collects ids, addresses, tags without an end, and the figures of every table."""

    EMPTY = frozenset({"meta", "link", "br", "input", "path", "use", "rect"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.open: list[str] = []
        self.figures: dict[str, list[float]] = {}
        self.table = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids += [found["id"]] if "id" in found else []
        self.addresses += [found[name] for name in ("href", "src", "xlink:href") if name in found]
        if tag == "table":
            self.table = found["id"]
        if found.get("data-value"):
            self.figures.setdefault(self.table, []).append(float(found["data-value"]))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.EMPTY:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.EMPTY:
            assert self.open.pop() == tag


def tables(found: list[Chapter]) -> dict[str, Table]:
    return {
        table.name: table for chapter in found for section in chapter.sections for table in section.tables
    }


def test_the_page_needs_nothing_but_itself(html: str) -> None:
    parsed = Page(html)
    assert parsed.open == []
    assert [name for name, count in Counter(parsed.ids).items() if count > 1] == []
    outside = [a for a in parsed.addresses if not a.startswith(("#", "data:"))]
    assert outside == []
    assert {address[1:] for address in parsed.addresses if address.startswith("#")} <= set(parsed.ids)
    assert set(re.findall(r"url\(([^)])", html)) <= {"#"}
    assert "@import" not in html


def test_chapters_answer_in_order_and_the_contents_lead_to_them(html: str, made: list[Chapter]) -> None:
    assert [chapter.title for chapter in made] == [
        "Which representation should I use?",
        "How sure is that?",
        "What does it cost?",
        "What did the papers claim?",
        "How was each number made?",
    ]
    contents = html[html.index("<nav") : html.index("</nav>")]
    for chapter in made:
        assert chapter.answer
        for name in (chapter.name, *(section.name for section in chapter.sections)):
            assert f'href="#{name}"' in contents
            assert f'id="{name}"' in html
    assert "<script" not in html[: html.index("</main>")]


def test_leaderboards_hold_the_figures_of_the_index(html: str, evidence: Evidence) -> None:
    shown = Page(html).figures
    for dataset in ("made-a", "made-b"):
        summaries = [s for s in summarise(evidence.rows) if s.dataset == dataset]
        figures = shown[f"leaderboard-{dataset}-honest"]
        for summary in summaries:
            for value in (
                summary.mean["accuracy"],
                summary.half_width["accuracy"],
                summary.seconds,
                summary.peak_mb,
            ):
                assert value in figures
    rows = [row for row in evidence.rows if row["dataset"] == "made-a"]
    accuracy = {(row["method"], row["seed"]): row["metrics"]["accuracy"] for row in rows}
    assert accuracy["good", 0] == 1.0
    assert f"{50 * (accuracy['poor', 0] + accuracy['poor', 1]):.2f}" in html


def test_what_is_tied_is_said_and_what_is_behind_is_not_called_tied(evidence: Evidence) -> None:
    board = boards.boards(evidence)[0]
    assert [(s.label, board.standing(s)) for s in board.summaries] == [
        ("good", "best"),
        ("twin", "tied"),
        ("poor", "behind"),
    ]
    rows = boards.table(board).rows
    assert [row[0].mark for row in rows] == ["best", "tied", ""]
    svg = charts.leaderboard(board).svg
    assert "best<" in svg
    assert "tied<" in svg


def test_what_equals_the_best_is_tied_with_it_and_hundredths_do_not_look_large(evidence: Evidence) -> None:
    board = boards.boards(evidence)[0]
    best = replace(board.best, mean={"accuracy": 0.9}, half_width={"accuracy": math.nan})
    equal = replace(best, method="equal", mean={"accuracy": 0.89999})
    two = replace(board, summaries=[best, equal], tests=replace(board.tests, p_values={equal.label: 1.0}))
    assert two.tied == [equal]
    assert "tied with it: equal" in answer_of(two)
    svg = charts.leaderboard(two).svg
    assert svg.count("best<") == 2
    ticks = [float(text) for text in re.findall(r">(\d+\.\d+)<", svg)]
    assert 0.5 <= max(ticks) - min(ticks) <= 1


def test_ceilings_of_time_and_memory_are_a_pareto_front() -> None:
    points = [(1.0, 0.5), (2.0, 0.9), (2.0, 0.8), (3.0, 0.9), (9.0, 0.95), (1.0, 0.5)]
    assert charts.front(points) == {(1.0, 0.5), (2.0, 0.9), (9.0, 0.95)}


def test_average_ranks_over_data_sets(evidence: Evidence) -> None:
    ranking = ranks.rankings(boards.boards(evidence))["honest"]
    assert ranking.datasets == ["made-a", "made-b"]
    assert dict(zip(ranking.methods, ranking.average_ranks, strict=True)) == {"good": 1, "twin": 2, "poor": 3}
    marks = {row[0].text: row[0].mark for row in ranks.rank_table("honest", ranking).rows}
    # Nemenyi, three methods, two data sets: 2.343 * sqrt(3 * 4 / 12) = 2.343 ranks.
    assert ranking.critical_difference == pytest.approx(2.3437, abs=1e-3)
    assert marks == {
        "good": "",
        "twin": "not told apart from the first",
        "poor": "not told apart from the first",
    }


def test_classes_count_who_found_what_alone(home: Path) -> None:
    predicted = {"good": answers(120), "poor": answers(60)}
    rows = [
        row
        for row in gather(home).rows
        if row["dataset"] == "made-a" and row["method"] in predicted and not row["seed"]
    ]
    alone = Evidence(home, rows, [], [], ())
    (board,) = boards.boards(alone)
    table = classes.table(alone, board)
    assert table is not None
    names = [name for name, _ in table.headings]
    for label, row in enumerate(table.rows):
        found = dict(zip(names, row, strict=True))
        members = [place for place, target in enumerate(TARGET) if target == label]
        first_only = sum(predicted["poor"][place] != label for place in members)
        assert found["class"].text == made_runs.CLASSES[label]
        assert found["only"].text == f"{first_only} : 0"
        assert found["p"].mark == "better"  # 20 of 40 documents, 2 ** -19 each way
        assert found["recall_first"].value == 1.0
        assert found["recall_second"].value == 0.5


def test_curves_are_tabled_by_budget(made: list[Chapter]) -> None:
    table = tables(made)["curve-made-a-honest"]
    assert [name for name, _ in table.headings][1::2] == ["labels_100", "labels_200"]
    good = next(row for row in table.rows if row[0].text == "good")
    # Of draws 0 and 1 at 100 labels 119 and 118 documents are right.
    assert good[1].value == pytest.approx((119 + 118) / 240)


def test_provenance_has_protocol_seeds_data_and_command(made: list[Chapter]) -> None:
    table = tables(made)["made-here"]
    names = [name for name, _ in table.headings]
    lines = [dict(zip(names, row, strict=True)) for row in table.rows]
    good = next(
        one
        for one in lines
        if (one["dataset"].text, one["method"].text, one["labels"].text) == ("made-a", "good", "all")
    )
    assert good["seeds"].text == "0 1"
    assert good["sha256"].value == f"made.tar={'0' * 64}"
    assert good["command"].text.startswith("textbench run --dataset made-a --method good --seed 0")
    assert len(good["keys"].value.split()) == 2


def test_every_table_can_be_taken_along(html: str, made: list[Chapter]) -> None:
    for name, table in tables(made).items():
        pattern = rf'download="{re.escape(name)}\.csv" href="data:text/csv;charset=utf-8;base64,([^"]+)"'
        (data,) = re.findall(pattern, html)
        lines = list(csv.reader(io.StringIO(base64.b64decode(data).decode())))
        assert lines[0][: len(table.headings)] == [heading for heading, _ in table.headings]
        assert len(lines) == len(table.rows) + 1
        assert f'download="{name}.md"' in html
        assert f'download="{name}.tex"' in html


def test_recorded_figures_are_told_apart_from_local_ones(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows import claims

    id_ = next(c.id for c in choose("cfl-2013/table-1/20newsgroups") if c.metric == "accuracy")
    row = dict.fromkeys(claims.COLUMNS, "") | {
        "id": id_, "value": "80.5", "compared": "80.5", "low": "80.1", "high": "80.9", "basis": "seeds", "seeds": "0 1",
        "protocol": "faithful", "paper": "compressive-features-2013", "data_sha256": f"a={'1' * 64}",
        "commit": "c" * 40, "command": f"textbench claims {id_} --run --record", "recorded": "2020-01-01",
        "hardware": "a machine",
    }  # fmt: skip
    file = tmp_path / "measured.csv"
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, claims.COLUMNS)
        writer.writeheader()
        writer.writerow(row)
    monkeypatch.setattr(claims, "MEASURED", file)
    entries = ledger(tmp_path, choose("cfl-2013/table-1/20newsgroups"))
    empty = Evidence(tmp_path, [], [], [], ())
    found = chapters(empty, entries)
    (board,) = papers.recorded_boards(entries)
    assert board.source == papers.RECORDED
    assert [cell.text for cell in board.rows[0][1:4]] == ["80.50", "80.10", "80.90"]
    recorded = tables(found)["made-recorded"]
    assert recorded.rows[0][0].text == id_
    assert recorded.source == papers.RECORDED
    sources = Counter(row[7].text for row in papers.ledger(entries).rows)
    assert sources[papers.RECORDED] == 1
    assert boards.LOCAL not in sources
    assert "80.50 % [80.10, 80.90]" in found[0].answer[0]


def test_every_figure_measured_as_published_is_drawn(tmp_path: Path) -> None:
    entries = ledger(tmp_path, choose("scdv-2017/table-3"))
    measured = [e for e in entries if e.measured and e.claim.unit == "percent"]
    found = chapters(Evidence(tmp_path, [], [], [], ()), entries)
    (section,) = [s for s in found[3].sections if s.name == "held"]
    drawn = "".join(figure.svg for figure in section.figures)
    assert len(measured) > 30
    # Once beside its line, once in the words for those who cannot see it.
    for entry in measured:
        assert (
            drawn.count(f"published {entry.claim.printed.value:g}, measured {entry.measured.value:.2f}") >= 1
        )
    assert sum(drawn.count(f">{kind}<") for kind in papers.KINDS) == len(measured)


def test_nothing_run_yet_says_what_to_do(tmp_path: Path) -> None:
    empty = gather(tmp_path)
    assert empty.is_empty
    found = chapters(empty, ledger(tmp_path, choose("dcot-2012")))
    text = page.render(empty, found)
    assert "Nothing has been run here yet" in text
    assert "textbench run quick" in text
    assert all(chapter.answer for chapter in found)
    assert Page(text).open == []


def test_one_run_alone_says_what_to_run_next(tmp_path: Path) -> None:
    made_runs.one_label(tmp_path, "made", "tfidf", TARGET, answers(100))
    alone = gather(tmp_path)
    found = chapters(alone, ledger(tmp_path, choose("dcot-2012")))
    assert "nothing else was run to compare it with" in found[0].answer[0]
    assert "textbench run -d made -m lsi" in found[0].answer[0]
    assert "Nothing has been compared here yet" in found[1].answer[0]
    assert Page(page.render(alone, found)).open == []


def test_all_cells_failed_says_why_and_what_to_do(tmp_path: Path) -> None:
    failed = [
        {
            "dataset": "r8",
            "method": "mine",
            "protocol": "honest",
            "seed": "0",
            "error": "ValueError: <no> & never",
        }
    ]
    nothing = Evidence(tmp_path, [], [], failed, ())
    text = page.render(nothing, chapters(nothing, ledger(tmp_path, choose("dcot-2012"))))
    assert "Everything that was run here failed (1 cell)" in text
    assert "ValueError: &lt;no&gt; &amp; never" in text
    assert "<no>" not in text
    assert "run the same command again" in text


def test_what_is_gone_from_the_store_is_said(tmp_path: Path) -> None:
    import shutil

    made_runs.one_label(tmp_path, "made", "a", TARGET, answers(100))
    made_runs.one_label(tmp_path, "made", "b", TARGET, answers(90))
    shutil.rmtree(tmp_path / "store")
    left = gather(tmp_path)
    found = chapters(left, ledger(tmp_path, choose("dcot-2012")))
    assert "no longer in the store" in tables(found)["made-here"].rows[0][8].text
    assert tables(found)["leaderboard-made-honest"].rows[1][0].mark == "not tested"
    assert Page(page.render(left, found)).open == []


def test_sweeps_choose_runs(home: Path) -> None:
    rows = gather(home, ["made-a"]).rows
    assert {row["dataset"] for row in rows} == {"made-a"}
    assert len(rows) == 6
    assert len(gather(home, ["made-a-0a1b2c3d", "made-b"]).rows) == 12
    with pytest.raises(InputError, match="no run belongs to the sweep 'made-c'; did you mean"):
        gather(home, ["made-c"])


def test_recorded_audits_say_what_is_known_of_the_data() -> None:
    found = audits.recorded()
    assert found["reuters65"]["audit"]["untrained"]["documents"] == 13
    assert found["20ng-stripped"]["audit"]["empty_texts"]["test"] == 215
    several = found["reuters-random70"]["audit"]
    # A list of five cannot be filled by documents of 1.27 labels.
    assert 0.24 < several["ceilings"]["precision_at_5"] <= several["labels_per_document"]["test"] / 5
    assert found["r8"]["audit"]["documents"] == {"train": 5485, "test": 2189}


def test_an_audit_of_other_data_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    r8 = audits.recorded()["r8"]
    write_json(
        tmp_path / "audits.json",
        {"r8": r8 | {"sha256": {"train": "0" * 64}}, "r52": audits.recorded()["r52"]},
    )
    monkeypatch.setattr(audits, "FILE", tmp_path / "audits.json")
    assert list(audits.recorded()) == ["r52"]


def test_the_command_writes_page_tables_and_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import typer
    from typer.testing import CliRunner

    from flows.cli.report import report

    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path / "home"))
    app = typer.Typer()
    app.command()(report)
    out, folder, picture = tmp_path / "new" / "r.html", tmp_path / "tables", tmp_path / "p.svg"
    done = CliRunner().invoke(app, ["-o", str(out), "--tables", str(folder), "--figure", str(picture)])
    assert done.exit_code == 0, done.output
    assert "Not logged to MLflow" in done.output
    assert Page(out.read_text("utf-8")).open == []
    assert {path.suffix for path in folder.iterdir()} == {".csv", ".md", ".tex"}
    assert "scdv-2017" in picture.read_text("utf-8")
    assert [path.name for path in out.parent.iterdir()] == ["r.html"]
    wrong = CliRunner().invoke(app, ["-o", "r.pdf"])
    assert isinstance(wrong.exception, InputError)
    assert "--output must end in .html, .htm, got r.pdf" in str(wrong.exception)
