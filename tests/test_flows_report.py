"""The report: its numbers are those of the index, nothing in it needs a network, and empty states say what to do."""

import base64
import csv
import io
import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests import made_runs
from textbench.flows.cli.report import report
from textbench.flows.plan.cell import plan
from textbench.flows.plan.request import LabelBudgetRequest
from textbench.flows.plots.costs import front
from textbench.flows.referee import recorded_audits, recorded_draws
from textbench.flows.referee.held import PLAIN
from textbench.flows.referee.ledger import choose, ledger
from textbench.flows.report import (
    audits,
    boards,
    charts,
    classes,
    curves,
    page,
    papers,
    probes,
    ranks,
    recorded,
    recorded_curves,
    topical,
)
from textbench.flows.report.chapters import Chapter, answer_of, chapters
from textbench.flows.report.evidence import Evidence, gather
from textbench.flows.results import learning_curves
from textbench.flows.results.placed import MIXED, PAIRED
from textbench.flows.results.runs import is_current
from textbench.flows.results.summary import summarise
from textbench.flows.tables.table import Table
from textbench.tasks import InputError, catalogue
from textbench.tasks.storage.files import write_json

TARGET = [0, 1, 2] * 40
RIGHT = {"good": 120, "twin": 119, "poor": 60}  # of 120 documents


def answers(n_right: int) -> list[int]:
    return [target if place < n_right else (target + 1) % 3 for place, target in enumerate(TARGET)]


def add_classes(home: Path, row: dict[str, Any], predicted: list[int]) -> None:
    import numpy as np

    from textbench.evaluation.metrics.single_label import per_class

    figures = per_class(np.array(TARGET), np.array(predicted), made_runs.CLASSES)
    write_json(home / "store" / "evaluate" / row["key"] / "per_class.json", figures)


@pytest.fixture(scope="module", autouse=True)
def figures() -> Iterator[None]:
    """A figure that is on several pages is drawn once."""
    with pytest.MonkeyPatch.context() as patch:
        made_runs.draw_once(patch)
        yield


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


def test_the_chapter_says_over_what_the_intervals_of_the_tables_are(tmp_path: Path) -> None:
    """One seed has an interval over test documents alone; the letters are those of the tables."""
    made_runs.one_label(tmp_path, "made", "a", TARGET, answers(100))
    made_runs.one_label(tmp_path, "made", "b", TARGET, answers(90))
    found = chapters(gather(tmp_path))
    sure = next(chapter for chapter in found if chapter.name == "sure")
    assert "Figures have 95 % intervals, d: over test documents." in sure.lines[0]
    assert "interval, d: over test documents" in tables(found)["leaderboard-made-honest"].note
    for n_wrong in (20, 60):  # two seeds far apart
        made_runs.one_label(tmp_path, "made", "a", TARGET, answers(120 - n_wrong), seed=n_wrong)
    sure = next(chapter for chapter in chapters(gather(tmp_path)) if chapter.name == "sure")
    assert "the wider of d: over test documents, and s: over seeds (Student t)." in sure.lines[0]


def test_ceilings_of_time_and_memory_are_a_pareto_front() -> None:
    points = [(1.0, 0.5), (2.0, 0.9), (2.0, 0.8), (3.0, 0.9), (9.0, 0.95), (1.0, 0.5)]
    assert front(points) == {(1.0, 0.5), (2.0, 0.9), (9.0, 0.95)}


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
    from textbench.flows.referee import ledger as claims

    id_ = next(
        c.id
        for c in choose("cfl-2013/table-1/20newsgroups")
        if c.metric == "accuracy" and c.method_here and c.dataset_here == "20ng"
    )
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
    baseline(tmp_path, monkeypatch)
    entries = ledger(tmp_path, choose("cfl-2013/table-1/20newsgroups"))
    empty = Evidence(tmp_path, [], [], [], ())
    found = chapters(empty, entries)
    board = tables(found)["leaderboard-20ng-faithful"]
    assert board.source == papers.RECORDED
    assert [cell.text for cell in board.rows[0][1:3]] == ["80.50", "0.40 s"]
    kept = tables(found)["made-recorded"]
    assert kept.rows[0][0].text == id_
    assert kept.source == papers.RECORDED
    sources = Counter(row[7].text for row in papers.ledger(entries).rows)
    assert sources[papers.RECORDED] == 1
    assert boards.LOCAL not in sources
    of_board = next(section for section in found[0].sections if section.name.startswith("board-"))
    assert "is best with 80.50 ± 0.40 % accuracy, as recorded in the repository" in of_board.lines[0]


def test_every_figure_measured_as_published_is_drawn(tmp_path: Path) -> None:
    entries = ledger(tmp_path, choose("scdv-2017/table-3"))
    measured = [e for e in entries if e.measured and e.claim.unit == "percent" and not e.claim.twin]
    found = chapters(Evidence(tmp_path, [], [], [], ()), entries)
    (section,) = [s for s in found[3].sections if s.name == "held"]
    drawn = "".join(figure.svg for figure in section.figures)
    assert len(measured) == 35
    # Once beside its line, once in the words for those who cannot see it.
    for entry in measured:
        assert (
            drawn.count(f"published {entry.claim.printed.value:g}, measured {entry.measured.value:.2f}") >= 1
        )
    assert sum(drawn.count(f">{kind}<") for kind in papers.KINDS) == len(measured)


HERE, KEPT = "measured here", "recorded in the repository"


def baseline(folder: Path, monkeypatch: pytest.MonkeyPatch, *lines: dict[str, str]) -> None:
    """Let the record of leaderboards be these lines."""
    usual = dict.fromkeys(recorded.COLUMNS, "") | {
        "dataset": "r8", "protocol": "honest", "trials": "0", "seeds": "0", "commit": "c" * 40,
    }  # fmt: skip
    with (folder / "leaderboards.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, recorded.COLUMNS)
        writer.writeheader()
        writer.writerows(usual | line for line in lines)
    monkeypatch.setattr(recorded, "FILE", folder / "leaderboards.csv")


def test_a_better_recorded_method_is_best_and_own_runs_are_best_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_runs.empty_record(monkeypatch, tmp_path)
    for method, n_right in (("a", 100), ("b", 60)):
        made_runs.one_label(tmp_path, "r8", method, TARGET, answers(n_right))
    known = {"c": 0.9, "d": 0.7, "a": 100 / 120}
    baseline(
        tmp_path, monkeypatch, *({"method": m, "metrics": f'{{"accuracy": {v}}}'} for m, v in known.items())
    )
    own = gather(tmp_path)
    found = chapters(own)
    table = tables(found)["leaderboard-r8-honest"]
    names = [name for name, _ in table.headings]
    lines = [dict(zip(names, row, strict=True)) for row in table.rows]
    # What was found again to the digit stands once.
    assert [(one["method"].text, one["method"].mark, one["source"].raw) for one in lines] == [
        ("c", "best", KEPT),
        ("a", "best here", HERE),
        ("d", "", KEPT),
        ("b", "", HERE),
    ]
    assert (
        "r8, honest protocol: c is best with 90.00 % accuracy, as recorded in the repository"
        in found[0].answer[0]
    )
    assert "of what was run here a is best with 83.33 ± 6.76 % accuracy" in found[0].answer[0]
    (board,) = boards.boards(own, recorded.summaries())
    svg = charts.leaderboard(board).svg
    assert svg.count("best<") == 1
    assert svg.count("best here<") == 1
    assert Page(page.render(own, found)).open == []


def test_recorded_figures_of_other_data_and_protocols_stay_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_runs.empty_record(monkeypatch, tmp_path)
    made_runs.one_label(tmp_path, "r8", "a", TARGET, answers(100))
    best = {"method": "c", "metrics": '{"accuracy": 0.99}'}
    baseline(tmp_path, monkeypatch, best | {"dataset": "r52"}, best | {"protocol": "transductive"})
    found = chapters(gather(tmp_path))
    assert "r8, honest protocol: a is best" in found[0].answer[0]
    assert "made-leaderboards" not in tables(found)


def test_topical_methods_are_held_against_plain_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Worth its seconds is what no plain method is as good as and no dearer; without any the section says so."""
    made_runs.empty_record(monkeypatch, tmp_path)
    baseline(tmp_path, monkeypatch)
    assert (topical.answers([]), topical.tables([])) == ([topical.NONE], [])
    figures = {
        "tfidf": (28, 5.0),
        "avgvec": (24, 9.0),
        "twe-1": (29, 90.0),
        "mvtm": (20, 40.0),
        "lf-lda": (28, 300.0),
    }
    for method, (n_right, seconds) in figures.items():
        costs = {"seconds": {"featurize": seconds}}
        made_runs.one_label(tmp_path, "r8", method, TARGET, answers(n_right), **costs)
    found = chapters(gather(tmp_path))
    (section,) = [s for chapter in found for s in chapter.sections if s.name == "topical"]
    (line,) = [line for line in section.lines if line.startswith("r8, honest")]
    assert "of 3 topical methods worth their seconds: twe-1 (" in line
    assert "the best plain method is tfidf (" in line
    (table,) = section.tables
    rows = {row[0].text: row for row in table.rows}
    assert rows["mvtm"][1].text == "topical" and rows["avgvec"][1].text == "plain"
    assert [name for name, row in rows.items() if row[4].mark] == ["twe-1", "tfidf"]


def test_best_is_the_best_of_all_that_is_recorded() -> None:
    """Of the real record: every figure is in its table, and the mark stands at the highest."""
    from textbench.evaluation.claims.published import read_claims
    from textbench.flows.referee.ledger import read_measured

    figures: dict[tuple[str, str, str, str], list[float]] = {}
    for row in recorded.read():
        for metric, value in json.loads(row["metrics"]).items():
            figures.setdefault((row["dataset"], row["protocol"], row["paper"], metric), []).append(value)
    measured = read_measured()
    for claim in read_claims():
        row, metric = measured.get(claim.id, {}), claim.metric_here
        if row and metric and claim.dataset_here and row["basis"] in PLAIN:
            place = (claim.dataset_here, row["protocol"], row["paper"], metric)
            figures.setdefault(place, []).append(float(row["value"]) / claim.scale)
    shown = boards.recorded_boards(recorded.summaries(), [])
    assert {(b.dataset, b.protocol) for b in shown} == {place[:2] for place in figures}
    for board in shown:
        (paper,) = {recorded.paper_of(summary) for summary in board.recorded}  # no two papers' are compared
        assert board.title == f"{board.dataset}, {board.protocol} protocol{board.paper and f' of {paper}'}"
        known = figures[board.dataset, board.protocol, paper, board.metric]
        held = [line.summary.mean[board.metric] for line in board.lines if board.metric in line.summary.mean]
        for value in known:
            assert min(abs(value - one) for one in held) < 1e-5
        best = [line.summary.mean[board.metric] for line in board.lines if line.mark == "best"]
        assert best == pytest.approx([max(known)] * len(best), abs=1e-5)
        assert best
    assert len({board.title for board in shown}) == len({board.name for board in shown}) == len(shown)
    by_title = {board.title: board for board in shown}
    newsgroups = by_title["20ng, faithful protocol of scdv-2017"]
    reuters = by_title["reuters-random70, faithful protocol"]
    accuracy = {line.summary.label: 100 * line.summary.mean["accuracy"] for line in newsgroups.lines}
    assert (round(accuracy["tfidf"], 1), round(accuracy["scdv"], 2)) == (86.0, 83.66)
    at_1 = {line.summary.label: 100 * line.summary.mean["precision_at_1"] for line in reuters.lines}
    assert (round(at_1["tfidf"], 2), round(at_1["scdv"], 2)) == (95.10, 94.91)


def test_the_record_of_leaderboards_is_sound() -> None:
    rows = recorded.read()
    assert len({tuple(row[name] for name in recorded.PLACE) for row in rows}) == len(rows)
    for row in rows:
        assert tuple(row) == recorded.COLUMNS
        assert row["dataset"] in catalogue.datasets()
        parts = (*catalogue.methods(), catalogue.JOIN, catalogue.ENSEMBLE)
        assert catalogue.parse_method(row["method"])[0] in parts
        metrics = json.loads(row["metrics"])
        labels_read = metrics.pop("coverage_error", None)  # counts labels; the others are fractions
        assert labels_read is None or labels_read >= 1
        assert all(0 < value < 1 for value in metrics.values())
        assert row["command"].startswith("textbench run ")
        assert row["commit"] and row["hardware"] and row["recorded"] and row["data_sha256"]


def test_ranks_of_what_is_recorded_rest_on_its_paired_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of the same runs here; a test counts no more where one of its lines was measured again."""
    made_runs.empty_record(monkeypatch, tmp_path)
    baseline(tmp_path, monkeypatch)
    for method, n_right in (("nb", 100), ("tfidf", 92), ("lsi", 91)):
        made_runs.one_label(tmp_path, "r8", method, TARGET, answers(n_right))
    own = gather(tmp_path)
    recorded.record(own)
    (here,) = boards.boards(own)

    def ranks(board: boards.Board) -> list[tuple[str, ...]]:
        table = boards.table(board)
        at = [[name for name, _ in table.headings].index(name) for name in ("method", "ranks", "ties")]
        return [tuple(row[i].text for i in at) for row in table.rows]

    found = recorded.summaries()
    (board,) = boards.recorded_boards(found, [])
    assert ranks(board) == ranks(here)
    assert PAIRED in boards.table(board).note
    assert [line.mark for line in board.lines] == ["best", "", ""]
    anew = {"cells": "f" * 12, "pairs": {}}
    again = [replace(one, **anew) if one.method == "lsi" else one for one in found]
    (board,) = boards.recorded_boards(again, [])
    assert MIXED in boards.table(board).note
    alone = replace(own, rows=[row for row in own.rows if row["method"] == "nb"])
    recorded.record(alone)  # the same runs: their tests stay
    assert recorded.summaries() == found
    (board,) = boards.boards(alone, recorded.summaries())  # found again here, and shown once
    assert ranks(board) == ranks(here)


def test_local_leaderboards_are_recorded_in_place_of_older_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_runs.empty_record(monkeypatch, tmp_path)
    old = {"dataset": "r8", "method": "nb", "metrics": '{"accuracy": 0.1}'}
    gone = '{"accuracy": {"eeeeeeeeeeee": 0.5}}'  # a test with runs that no line is of
    baseline(tmp_path, monkeypatch, old, {"method": "other", "metrics": '{"accuracy": 0.2}', "pairs": gone})
    for seed in (0, 1):
        made_runs.one_label(tmp_path, "r8", "nb", TARGET, answers(100 + seed), seed=seed)
    made_runs.one_label(tmp_path, "mine", "nb", TARGET, answers(100))  # nobody else has it
    made_runs.one_label(tmp_path, "r8", "join(tfidf, lsi)", TARGET, answers(120), on_border=["C", "weight"])
    assert recorded.record(gather(tmp_path)) == 2
    joined, nb, other = sorted(recorded.read(), key=lambda row: row["method"])
    assert (joined["method"], joined["seeds"]) == ("join(tfidf, lsi)", "0")
    assert [(row["on_border"]) for row in (joined, nb)] == ["C weight", ""]
    marked = {summary.method: list(summary.on_border) for summary in recorded.summaries()}
    assert marked["join(tfidf, lsi)"] == ["C", "weight"] and marked["nb"] == marked["other"] == []
    unpacked = [recorded.of_packed(line) for line in recorded.packed_lines()]
    assert {one.method: list(one.on_border) for one in unpacked} == marked
    assert (other["method"], other["metrics"], other["pairs"]) == ("other", '{"accuracy": 0.2}', "")
    assert json.loads(nb["metrics"])["accuracy"] == pytest.approx(201 / 240)
    assert json.loads(joined["pairs"])["accuracy"].keys() == {nb["cells"]}
    assert nb["seeds"] == "0 1"
    assert nb["data_sha256"] == f"made.tar={'0' * 64}"
    assert nb["command"].startswith("textbench run --dataset r8 --method nb --seed 0")


def test_runs_of_code_that_has_changed_are_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The record names the commit of today, which did not make them; they are counted."""
    made_runs.empty_record(monkeypatch, tmp_path)
    for number, method in enumerate(("nb", "tfidf")):
        labels = {"budget": 60, "draw": 0, "stratified": True}
        made_runs.one_label(tmp_path, "r8", method, TARGET, answers(100 + number))
        made_runs.one_label(tmp_path, "r8", method, TARGET, answers(90 + number), request={"labels": labels})
    made_runs.one_label(tmp_path, "mine", "nb", TARGET, answers(100))  # of nobody's data, whatever made it
    evidence = gather(tmp_path)
    monkeypatch.setattr(recorded, "is_current", is_current)  # no code makes any of these
    assert (recorded.record(evidence), recorded_curves.record(evidence)) == (0, 0)
    assert recorded.n_of_earlier_code(evidence) == 4
    monkeypatch.setattr(recorded, "is_current", lambda row: row["method"] == "nb")
    assert (recorded.record(evidence), recorded_curves.record(evidence)) == (1, 1)
    assert recorded.n_of_earlier_code(evidence) == 2
    assert {line["method"] for line in [*recorded.read(), *recorded_draws.read()]} == {"nb"}
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path))
    for other in (audits, probes):
        monkeypatch.setattr(other, "record", lambda evidence: 0)
    report(out=tmp_path / "report.html", record=True, publish=False)
    said = (
        "recorded 0 audits, 1 line of leaderboards, 1 of curves, 0 comparisons of probes; left out 2 runs of"
    )
    assert said in capsys.readouterr().err


def test_a_report_on_own_runs_has_nothing_that_was_not_asked_for(home: Path) -> None:
    own = gather(home)
    found = chapters(own)
    assert [chapter.name for chapter in found] == ["which", "sure", "costs", "made"]
    text = re.sub(r"base64,[^\"]+", "", page.render(own, found))
    for foreign in ("20ng", "imdb", "reuters", "scdv", "dcot", KEPT + "<"):
        assert foreign not in text.lower()
    assert Page(text).open == []
    named = {section.name for chapter in found for section in chapter.sections}
    assert not any(name.startswith("audit-20ng") for name in named)


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


def test_what_to_run_next_on_own_documents_reads_them_as_before(tmp_path: Path) -> None:
    """Also where another file of the name was run before, and where the path has to be quoted."""
    for created, path in enumerate(("/x/data.csv", "/my data/data.csv"), start=1):
        own = {"path": path, "text_column": "text", "label_column": "topic", "test_size": 0.5, "name": None}
        about = {"documents_sha256": str(created) * 8, "n_train": 30, "n_test": 120, "n_labels": 3}
        run = {"corpus": about, "edition": created, "created": float(created), "protocol": "transductive"}
        made_runs.one_label(tmp_path, "data", "tfidf", TARGET, answers(100), request={"own": own}, **run)
    first, second = chapters(gather(tmp_path))[0].answer
    assert "data (2)" in second
    command = "textbench run --data {} --label-column topic --test-size 0.5 -m lsi --protocol transductive"
    assert first.endswith(f"Run another: {command.format('/x/data.csv')}")
    assert second.endswith(f"Run another: {command.format(shlex.quote('/my data/data.csv'))}")


def test_the_command_of_a_line_makes_all_runs_of_a_curves_budget(tmp_path: Path) -> None:
    for seed, stratified, draws in ((0, False, (0, 1)), (0, True, (0, 2)), (3, False, (1,))):
        for labels in ({"budget": b, "draw": d, "stratified": stratified} for b in (30, 60) for d in draws):
            request = {"labels": labels}
            made_runs.one_label(tmp_path, "r8", "tfidf", TARGET, answers(60), seed=seed, request=request)
    rows = {row["key"]: row for row in gather(tmp_path).budgets}
    table = tables(chapters(gather(tmp_path)))["made-here"]
    told = []
    for line in (dict(zip([name for name, _ in table.headings], row, strict=True)) for row in table.rows):
        words = shlex.split(line["command"].text)
        stratified = "--stratified" in words
        plain = [word for word in words if word != "--stratified"]
        asked = dict(zip(plain[2::2], plain[3::2], strict=True))
        request = LabelBudgetRequest(
            [asked["--dataset"]], [asked["--method"]], [int(asked["--seed"])], stratified=stratified,
            budgets=[int(asked["--budgets"])], draws=int(asked["--draws"]),
        )  # fmt: skip
        planned = [(cell.seed, cell.request.labels) for cell in plan(request)]
        own = [rows[key] for key in line["keys"].value.split()]
        assert all((row["seed"], row["request"]["labels"]) in planned for row in own)
        told.append(line["labels"].text)
    assert told == [
        "30, draws 0 1", "30, draws 1", "30, stratified draws 0 2",
        "60, draws 0 1", "60, draws 1", "60, stratified draws 0 2",
    ]  # fmt: skip


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


def test_recorded_curves_are_those_that_were_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is recorded has the points, half widths and tests of the local rows; fewer draws replace nothing."""
    made_runs.empty_record(monkeypatch, tmp_path)

    def run(n_draws: int) -> Evidence:
        home = tmp_path / f"draws-{n_draws}"
        for method, n_right in (("tfidf", 90), ("lsi", 80)):
            for budget in (100, 1000):
                for draw in range(n_draws):
                    labels = {"budget": budget, "draw": draw, "stratified": False}
                    right = answers(n_right + budget // 100 - (draw * (7 if method == "lsi" else 3)) % 5)
                    made_runs.one_label(
                        home, "r8", method, TARGET, right, request={"labels": labels}, trials=4
                    )
        return gather(home)

    several = run(3)
    assert recorded_curves.record(several) == 4
    (local,), (kept,) = (curves.groups(rows).values() for rows in (several.budgets, recorded_draws.rows()))
    by_method = [sorted(learning_curves.summarise(rows), key=lambda c: c.method) for rows in (kept, local)]
    assert by_method[0] == by_method[1]
    assert learning_curves.verdicts(kept) == learning_curves.verdicts(local) != []
    assert [line["budget"] for line in recorded_draws.read()] == ["100", "1000"] * 2
    assert recorded_draws.read()[0]["command"].endswith("--draws 3")
    before = recorded_draws.read()
    assert recorded_curves.record(run(2)) == 0
    assert recorded_draws.read() == before
    entries = ledger(tmp_path / "none", choose("dcot-2012"))
    found = tables(chapters(gather(tmp_path / "none"), entries))
    assert [row[0].text for row in found["curve-r8-honest-recorded"].rows] == [
        "lsi (4 trials)",
        "tfidf (4 trials)",
    ]
    assert "curve-r8-honest" not in found


def test_recorded_draws_stand_beside_fresh_ones_of_the_same_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three results folders with draws of one curve; what would be made otherwise today is not added to."""
    made_runs.empty_record(monkeypatch, tmp_path)
    keys: dict[int, str] = {}

    def key_now(asked: Mapping[str, Any], labels: Mapping[str, Any] | None = None) -> str:
        return keys[(labels or asked["labels"])["draw"]]

    monkeypatch.setattr(recorded_draws, "key_now", key_now)

    def run(name: str, draws: dict[int, int]) -> Evidence:
        for draw, n_right in draws.items():
            labels = {"budget": 60, "draw": draw, "stratified": True}
            about: dict[str, Any] = {"request": {"labels": labels}, "seconds": {"evaluate": float(draw)}}
            row = made_runs.one_label(tmp_path / name, "r8", "tfidf", TARGET, answers(n_right), **about)
            keys[draw] = row["key"]
        return gather(tmp_path / name)

    assert recorded_curves.record(run("first", {0: 90, 1: 96})) == 1
    second = run("second", {1: 102, 2: 84})
    assert recorded_curves.record(second) == 1
    (line,) = recorded_draws.read()
    # The fresh second draw stands in place of the recorded one; the first took as long as its line had in the mean.
    assert (line["draws"], json.loads(line["metrics"])["accuracy"]) == ("0 1 2", [0.75, 0.85, 0.7])
    assert line["cells"] == " ".join(keys[draw][:12] for draw in range(3))
    assert float(line["seconds"]) == pytest.approx((0.5 + 1 + 2) / 3, abs=1e-3)
    assert line["command"].endswith("--stratified") and "--draws 3" in line["command"]
    # A draw that earlier code made has no others beside it, and a recorded one of other code is not beside fresh ones.
    third = run("third", {3: 90})
    made_now, keys[3] = keys[3], "of other code"
    assert recorded_curves.record(third) == 0
    keys[3], first, keys[0] = made_now, keys[0], "of other code"
    assert [row["labels"]["draw"] for row in recorded_draws.beside(third.budgets)] == [1, 2]
    assert recorded_curves.record(third) == 0  # for it would lack the first draw
    keys[0] = first
    assert recorded_curves.record(third) == 1
    assert [line["draws"] for line in recorded_draws.read()] == ["0 1 2 3"]


def test_who_wins_with_how_few_labels_is_said_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One panel a data set, every method alike in both; its sentences open the page."""
    made_runs.empty_record(monkeypatch, tmp_path)
    for dataset in ("r8", "r52"):
        for method, n_right in (("tfidf", 80), ("sentence", 90)):
            for budget in (100, 1000):
                for draw in range(4):
                    labels = {"budget": budget, "draw": draw, "stratified": True}
                    right = answers(n_right + draw % (3 if method == "tfidf" else 2))
                    made_runs.one_label(
                        tmp_path / "home", dataset, method, TARGET, right, request={"labels": labels}
                    )
    evidence = gather(tmp_path / "home")
    (which, *_) = chapters(evidence)
    said = "r52, beside tfidf: at all of 100 to 1,000 labels sentence° wins. 2 paired t tests"
    assert which.answer[0].startswith(said)
    first = which.sections[0]
    assert first.name == "crossover" and list(first.lines) == list(which.answer[:2])
    (figure,) = first.figures
    assert figure.svg.count("r8, accuracy") == figure.svg.count("r52, accuracy") == 1
    assert "over 4 draws" in figure.caption
    assert recorded_curves.record(evidence) == 8
    for method, n_right in (("tfidf", 80), ("sentence", 60)):  # the same draws under another protocol
        for draw in range(4):
            right = answers(n_right + draw % (3 if method == "tfidf" else 2))
            made_runs.one_label(
                tmp_path / "home", "r8", method, TARGET, right, protocol="transductive",
                request={"labels": {"budget": 100, "draw": draw, "stratified": True}},
            )  # fmt: skip
    said = [
        line.partition(",")[2].partition(":")[0] for line in chapters(gather(tmp_path / "home"))[0].answer[:3]
    ]
    assert said == [" beside tfidf", " honest protocol, beside tfidf", " transductive protocol, beside tfidf"]
    (which, *_) = chapters(gather(tmp_path / "none"), ledger(tmp_path / "none", choose("dcot-2012")))
    assert which.sections[0].name == "crossover-recorded"
    assert list(which.sections[0].lines) == list(first.lines)


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
    found = recorded_audits.recorded()
    assert found["reuters65"]["audit"]["untrained"]["documents"] == 13
    assert found["20ng-stripped"]["audit"]["empty_texts"]["test"] == 215
    several = found["reuters-random70"]["audit"]
    # A list of five cannot be filled by documents of 1.27 labels.
    assert 0.24 < several["ceilings"]["precision_at_5"] <= several["labels_per_document"]["test"] / 5
    assert found["r8"]["audit"]["documents"] == {"train": 5485, "test": 2189}


def test_an_audit_of_other_data_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    r8 = recorded_audits.recorded()["r8"]
    write_json(
        tmp_path / "audits.json",
        {"r8": r8 | {"sha256": {"train": "0" * 64}}, "r52": recorded_audits.recorded()["r52"]},
    )
    monkeypatch.setattr(recorded_audits, "FILE", tmp_path / "audits.json")
    assert list(recorded_audits.recorded()) == ["r52"]


def test_the_command_writes_page_tables_and_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import typer
    from typer.testing import CliRunner

    from textbench.flows.cli.report import report

    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path / "home"))
    app = typer.Typer()
    app.command()(report)
    out, folder, picture = tmp_path / "new" / "r.html", tmp_path / "tables", tmp_path / "p.svg"
    refused = CliRunner().invoke(app, ["-o", str(out)])
    assert "textbench run quick" in str(refused.exception)
    assert "textbench report --claims" in str(refused.exception)
    assert not out.exists()
    alone = CliRunner().invoke(app, ["--figure", str(picture)])
    assert "add --claims" in str(alone.exception)
    options = ["--claims", "-o", str(out), "--tables", str(folder), "--figure", str(picture)]
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 0, done.output
    assert "Not logged to MLflow" in done.output
    assert Page(out.read_text("utf-8")).open == []
    assert {path.suffix for path in folder.iterdir()} == {".csv", ".md", ".tex"}
    assert "scdv-2017" in picture.read_text("utf-8")
    assert [path.name for path in out.parent.iterdir()] == ["r.html"]
    wrong = CliRunner().invoke(app, ["-o", "r.pdf"])
    assert isinstance(wrong.exception, InputError)
    assert "--out must end in .html, .htm, got r.pdf" in str(wrong.exception)


def test_two_files_of_one_name_share_no_table_and_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the name is that of a data set of textbench's, whose record is then none of theirs."""
    made_runs.empty_record(monkeypatch, tmp_path)
    baseline(tmp_path, monkeypatch, {"dataset": "r8", "method": "c", "metrics": '{"accuracy": 0.999}'})
    right = {"first": {"a": 110, "b": 70}, "second": {"a": 50, "b": 90}}
    for created, (digit, methods) in enumerate(right.items(), start=1):
        about = {"documents_sha256": digit * 8, "n_train": 30 * created, "n_test": 120, "n_labels": 3}
        own = {"path": f"/{digit}/r8.csv", "text_column": "text"}
        for method, n_right in methods.items():
            run = {"corpus": about, "edition": digit, "created": float(created)}
            row = made_runs.one_label(
                tmp_path, "r8", method, TARGET, answers(n_right), request={"own": own}, **run
            )
            add_classes(tmp_path, row, answers(n_right))
            for budget in (10, 20):
                request = {"own": own, "labels": {"budget": budget, "draw": 0, "stratified": False}}
                made_runs.one_label(
                    tmp_path, "r8", method, TARGET, answers(n_right - budget), request=request, **run
                )
    own_data = gather(tmp_path)
    found = chapters(own_data)
    made_of = tables(found)
    for place, values in (("r8", (110, 70)), ("r8--2-", (90, 50))):
        table = made_of[f"leaderboard-{place}-honest"]
        assert [row[1].value for row in table.rows] == [pytest.approx(n / 120) for n in values]
        curve = made_of[f"curve-{place}-honest"]
        assert {round(120 * row[1].value) for row in curve.rows} == {n - 10 for n in values}
        assert f"classes-{place}-honest" in made_of
        assert f"costs-{place}-honest" in made_of
    assert [table.title for name, table in made_of.items() if name.startswith("leaderboard")] == [
        "r8, honest protocol",
        "r8 (2), honest protocol",
    ]
    assert "30 training and 120 test documents" in made_of["leaderboard-r8-honest"].note
    assert "60 training and 120 test documents" in made_of["leaderboard-r8--2--honest"].note
    figures = [figure for chapter in found for section in chapter.sections for figure in section.figures]
    for figure in figures:
        drawn = (
            set(re.findall(r"\b(?:91\.67|58\.33)\b", figure.svg)),
            set(re.findall(r"\b(?:75\.00|41\.67)\b", figure.svg)),
        )
        assert not all(drawn)
    assert len(figures) > 5
    assert {row[0].text for row in made_of["made-here"].rows} == {"r8", "r8 (2)"}
    assert KEPT not in {section.source for chapter in found for section in chapter.sections}
    assert Page(page.render(own_data, found)).open == []
