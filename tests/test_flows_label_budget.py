"""Label-budget curves from end to end on real documents, suites of several parts, and their points."""

import itertools
import json
import math
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import ttest_rel

from tests.commands import rows_of, textbench
from textbench.evaluation.probes.budgets import labelled_documents
from textbench.evaluation.statistics.intervals import mean_interval
from textbench.flows.plan.cell import plan
from textbench.flows.plan.request import LabelBudgetRequest
from textbench.flows.plan.suites import parts, read_suite, suites
from textbench.flows.report import curves
from textbench.flows.results.index import Index
from textbench.flows.results.learning_curves import (
    BudgetPoint,
    Curve,
    crossovers,
    draws_of,
    summarise,
    verdicts,
)
from textbench.flows.tables.table import LOCAL
from textbench.tasks import InputError, score
from textbench.tasks.corpus import read_targets
from textbench.tasks.storage.store import Store

CURVE = ("curve", "-d", "r8", "-m", "tfidf", "-m", "counts", "--budgets", "40,80", "--draws", "2")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A results folder whose server is stopped at the end."""
    folder = tmp_path_factory.mktemp("curves")
    yield folder
    textbench("down", home=folder)


@pytest.fixture(scope="module")
def rows(home: Path) -> list[dict[str, Any]]:
    """The cells of two small curves."""
    return rows_of(textbench(*CURVE, "--figure", str(home / "curve.svg"), "--json", home=home)[0])


def test_cells_are_every_method_at_every_budget_of_every_draw(rows: list[dict[str, Any]]) -> None:
    asked = [(row["method"], row["labels"]["budget"], row["labels"]["draw"]) for row in rows]
    assert sorted(asked) == [(m, b, d) for m in ("counts", "tfidf") for b in (40, 80) for d in (0, 1)]
    assert all(0.3 < row["metrics"]["accuracy"] < 0.97 for row in rows)


def test_features_are_shared_by_all_budgets_and_draws(home: Path, rows: list[dict[str, Any]]) -> None:
    assert len(list((home / "store" / "featurize").glob("*/meta.json"))) == 2
    assert len(list((home / "store" / "evaluate").glob("*/meta.json"))) == 8


def test_only_the_labels_of_the_budget_are_used(home: Path, rows: list[dict[str, Any]]) -> None:
    """The probe's accuracy follows from the budget's documents alone."""
    from textbench.evaluation.probes.catalogue import build_probe
    from textbench.tasks.predict import features_of

    store = Store(home / "store")
    (cell,) = [
        cell
        for cell in plan(LabelBudgetRequest(["r8"], ["tfidf"], budgets=[40], draws=1))
        if cell.request.labels == {"budget": 40, "draw": 0, "stratified": False}
    ]
    choice = store.open(cell.references["tune"])
    features = store.open(features_of(cell.references["vectorize"], choice))  # type: ignore[arg-type]
    corpus = store.open(cell.references["ingest"])
    targets = read_targets(corpus, "train")
    chosen = labelled_documents(targets, 40, 0)
    probe = build_probe("linear-svm", choice.json("choice")["C"], 0)
    probe.fit(features.matrix("train")[chosen], targets[chosen])
    accuracy = (probe.predict(features.matrix("test")) == read_targets(corpus, "test")).mean()
    assert score.metrics(store.open(cell.references["evaluate"]))["accuracy"] == pytest.approx(accuracy)


def test_each_curve_is_one_mlflow_run_with_steps(home: Path, rows: list[dict[str, Any]]) -> None:
    query = (
        "SELECT runs.name, metrics.step, metrics.value FROM runs JOIN metrics USING (run_uuid) "
        "WHERE metrics.key = 'accuracy' ORDER BY 1, 2"
    )
    with sqlite3.connect(home / "mlflow.db") as database:
        found = database.execute(query).fetchall()
    points = {(c.method, p.budget): p.mean for c in summarise(rows) for p in c.points}
    assert found == [
        (f"r8 {method} by labels", budget, pytest.approx(points[method, budget]))
        for method in ("counts", "tfidf")
        for budget in (40, 80)
    ]
    assert "tfidf" in (home / "curve.svg").read_text()


def test_a_second_run_computes_nothing_and_makes_no_run(home: Path, rows: list[dict[str, Any]]) -> None:
    again = rows_of(textbench(*CURVE, "--json", home=home)[0])
    assert all(row["cached"] for row in again)
    # Rows come as cells end.
    assert {str((row["method"], row["labels"], row["metrics"])) for row in again} == {
        str((row["method"], row["labels"], row["metrics"])) for row in rows
    }
    with sqlite3.connect(home / "mlflow.db") as database:
        assert database.execute("SELECT count(*) FROM runs").fetchone() == (2,)


def test_the_leaderboard_leaves_budgets_out(home: Path, rows: list[dict[str, Any]]) -> None:
    assert len(Index(home).rows()) == 8
    assert textbench("leaderboard", "--json", home=home)[0].strip() == ""


def test_points_are_means_with_students_interval() -> None:
    rows = [
        {
            "dataset": "d", "method": "m", "error": None, "labels": {"budget": 10, "draw": draw},
            "metrics": {"accuracy": a},
        }
        for draw, a in enumerate((0.5, 0.6, 0.8))
    ]  # fmt: skip
    ((point,),) = [curve.points for curve in summarise(rows)]
    mean, half = mean_interval([0.5, 0.6, 0.8])
    assert (point.mean, point.low, point.high) == (mean, mean - half, mean + half)
    assert math.isclose(half, 4.302652729749 * 0.1527525231652 / math.sqrt(3))
    alike = [row | {"metrics": {"accuracy": 0.9730470534490635}} for row in rows * 4]
    (curve,) = summarise(alike)
    assert curve.points[0].low == curve.points[0].high
    # Two seeds of a draw are one draw, with their mean.
    seeds = [
        row | {"metrics": {"accuracy": row["metrics"]["accuracy"] + gap}}
        for row in rows
        for gap in (-0.1, 0.1)
    ]
    (curve,) = summarise(seeds)
    assert curve.n_draws == 3 and curve.points[0].mean == pytest.approx(mean)
    assert curve.points[0].high == pytest.approx(mean + half)


@pytest.mark.parametrize(
    ("gains", "said"),
    [
        ((9, 9, 0, -9), "up to 20 labels sentence° wins, from 80 labels on tfidf wins, between them neither"),
        ((9, 9, 9, 9), "at all of 10 to 80 labels sentence° wins"),
        ((9, 0, 0, 0), "up to 10 labels sentence° wins, above neither"),
        ((0, 0, -9, -9), "from 40 labels on tfidf wins over sentence°, below neither"),
        ((-9, -9, -9, -9), "at all of 10 to 80 labels tfidf wins over sentence°"),
        ((0, 0, 0, 0), "neither sentence° nor tfidf wins at any budget"),
        ((0, -9, 0, -9), "tfidf wins over sentence° at 20 labels, 80 labels, neither elsewhere"),
        ((0, 9, -9, 0), "sentence° wins at 20 labels, tfidf wins at 40 labels, neither elsewhere"),
    ],
)
def test_up_to_how_many_labels_an_encoder_wins(gains: tuple[int, ...], said: str) -> None:
    """At every budget a method is ahead of TF-IDF by so many points, give or take half a point a draw; of all labels
    there is one draw, which tests nothing."""
    rows = [
        {
            "dataset": "d", "method": method, "error": None, "labels": {"budget": budget, "draw": draw},
            "metrics": {"accuracy": 0.5 + (gain + (-1) ** draw / 2 if method == "sentence" else 0) / 100 + draw / 50},
        }
        for method in ("tfidf", "sentence", "nb")
        for budget, gain in zip((10, 20, 40, 80), gains, strict=True)
        for draw in range(6)
    ]  # fmt: skip
    rows += [
        row | {"labels": {"budget": 99, "draw": 0}}
        for row in rows
        if row["labels"] == {"budget": 80, "draw": 0}
    ]
    rows += [
        row | {"labels": row["labels"] | {"draw": 6}}  # a draw that TF-IDF alone has is not compared
        for row in rows
        if row["method"] == "tfidf" and row["labels"]["draw"] == 0 and row["labels"]["budget"] < 99
    ]
    (line,) = crossovers(rows)
    assert line == (
        f"d, beside tfidf: {said}. 8 paired t tests at 10 to 80 labels over 6 draws, of all methods, Holm-corrected "
        "together."
    )
    assert verdicts(rows)[-1] == line
    fewer = [row for row in rows if row["labels"] != {"budget": 80, "draw": 5}]
    (line,) = crossovers(fewer)
    assert ". 8 paired t tests at 10 to 80 labels over 5 to 6 draws, of all methods" in line
    alone = [row for row in rows if row["labels"]["draw"] == 0 or row["labels"]["budget"] == 10]
    if gains[0]:  # budgets of one draw are not tested, and nothing is said of them
        winner = "sentence° wins" if gains[0] > 0 else "tfidf wins over sentence°"
        (line,) = crossovers(alone)
        assert line.startswith(
            f"d, beside tfidf: at 10 labels {winner}. 2 paired t tests at 10 labels over 6 draws,"
        )
    assert crossovers([row for row in rows if row["method"] != "tfidf"]) == []


def test_the_verdict_is_of_paired_tests_over_the_draws() -> None:
    better = {"a": (0.50, 0.60, 0.80), "b": (0.40, 0.51, 0.69), "c": (0.51, 0.55, 0.81)}
    rows = [
        {
            "dataset": "d", "method": method, "error": None, "labels": {"budget": budget, "draw": draw},
            "metrics": {"accuracy": value, "coverage_error": value},
        }
        for budget in (10, 20, 1000)
        for method, values in better.items()
        for draw, value in enumerate(values if budget < 1000 else values[::-1] if method == "b" else values)
    ]  # fmt: skip
    p = [ttest_rel(better["a"], better[other]).pvalue for other in "bc"]
    assert 2 * p[0] < 0.05 < p[1]  # Holm: the smaller of two p values counts twice
    note = "Paired t tests over draws, Holm-corrected."
    tied_with_all = "1,000 labels: a is best, tied with b, c"
    assert verdicts(rows) == [f"d: 10 to 20 labels: a is best, tied with c; {tied_with_all}. {note}"]
    (line,) = verdicts(rows, "coverage_error")  # less is better
    assert line.startswith("d: 10 to 20 labels: b is best")
    assert verdicts([row for row in rows if row["labels"]["draw"] == 0]) == []
    of_all = {"a": 0.8, "b": 0.7}  # all documents, drawn three times or once
    for draws, why in ((range(3), "draws do not differ"), (range(1), "there is one draw")):
        whole = [
            rows[0]
            | {
                "method": method, "labels": {"budget": 5000, "draw": draw},
                "metrics": {"accuracy": value, "coverage_error": value},
            }
            for method, value in of_all.items()
            for draw in draws
        ]  # fmt: skip
        (line,) = verdicts([row for row in rows if row["labels"]["budget"] < 1000] + whole)
        assert f"; 5,000 labels: a is highest, untested, for {why}. Paired" in line


def test_what_shares_too_few_draws_is_not_tested() -> None:
    def row(method: str, draw: int, value: float) -> dict[str, Any]:
        labels = {"budget": 10, "draw": draw}
        return {
            "dataset": "d", "method": method, "error": None, "labels": labels, "metrics": {"accuracy": value}
        }  # fmt: skip

    easy = (0.50, 0.51, 0.52, 0.53, 0.90, 0.91, 0.92, 0.93)  # the last four draws are easy
    rows = [row("tfidf", draw, value) for draw, value in enumerate(easy)]
    ahead = [row("lsi", draw, value + 0.1 + draw / 1000) for draw, value in enumerate(easy[:4])]
    one = row("counts", 0, 0.99)
    assert verdicts([*rows, *ahead, one]) == [
        "d: 10 labels: lsi is best (untested: counts). Paired t tests over draws, Holm-corrected.",
        "d, beside tfidf, ahead: lsi (10 labels). 1 paired t test over draws, Holm-corrected together.",
    ]
    (line,) = verdicts([*rows, one])
    assert line.startswith("d: 10 labels: counts is highest, untested, for too few draws are shared.")
    # Two that never differ are not tested because a third one does.
    still = [
        row(method, draw, value) for method, value in (("tfidf", 0.5), ("lsi", 0.6)) for draw in range(4)
    ]
    jitters = [row("counts", draw, 0.4 + draw / 1000) for draw in range(4)]
    assert verdicts([*still, *jitters]) == [
        "d: 10 labels: lsi is best (untested: tfidf). Paired t tests over draws, Holm-corrected.",
        "d, beside tfidf, behind: counts (10 labels). 1 paired t test over draws, Holm-corrected together.",
    ]


def test_a_gap_that_is_the_same_in_all_draws_is_not_tested() -> None:
    def rows(*values: tuple[str, float, float]) -> list[dict[str, Any]]:
        return [
            {
                "dataset": "d", "method": method, "error": None, "labels": {"budget": 20, "draw": draw},
                "metrics": {"accuracy": value},
            }
            for method, *own in values
            for draw, value in enumerate(own)
        ]  # fmt: skip

    encoder, base, equal = ("sentence", 1.0, 0.75), ("tfidf", 0.75, 0.5), ("lsi", 0.75, 0.5)
    assert verdicts(rows(encoder, base)) == [
        "d: 20 labels: sentence° is highest, untested, for gaps are the same in all draws. Paired t tests over draws, "
        "Holm-corrected."
    ]
    # Methods that are equal in every draw are ties all the same.
    (line, *_) = verdicts(rows(encoder, base, equal))
    assert line.startswith(
        "d: 20 labels: sentence° is highest, untested, for gaps are the same in all draws."
    )
    (line, *_) = verdicts(rows(base, equal))
    assert line.startswith("d: 20 labels: tfidf is best, tied with lsi.")


def test_marks_of_a_curve_table_are_explained_alone() -> None:
    def note(**marks: bool) -> str:
        own = Curve("d", "scdv" if marks else "sentence", "accuracy", 1, points, **marks)
        (table,) = curves.tables("d", "honest", [own], LOCAL)
        return table.note

    points = [BudgetPoint(budget, 0.5, 0.4, 0.6) for budget in (10, 20)]
    assert "marked + on the labelled ones alone. + fitted to the labels" in note(uses_labels=True)
    assert "labelled ones" not in note()


def test_lines_of_one_method_run_in_several_ways_are_apart() -> None:
    def row(probe: str, seed: int, value: float, method: str = "tfidf") -> dict[str, Any]:
        return {
            "dataset": "d", "protocol": "honest", "method": method, "trials": 0, "seed": seed, "probe": probe,
            "error": None, "created": value, "metrics": {"accuracy": value},
            "request": {"labels": {"budget": 10, "stratified": True}},
        }  # fmt: skip

    rows = [row("linear-svm", 0, 0.5), row("linear-svm", 1, 0.7), row("neighbours", 0, 0.9)]
    others = [row("linear-svm", 0, 0.8, "lsi"), row("neighbours", 0, 0.6, "sentence") | {"trials": 4}]
    found = curves.groups([*rows, *others])
    (own,) = found.values()
    points = {curve.label: (curve.n_draws, curve.points[0].mean) for curve in summarise(own)}
    assert points == {
        "tfidf (linear-svm)": (1, pytest.approx(0.6)),
        "tfidf (neighbours)": (1, 0.9),
        "lsi": (1, 0.8),
        "sentence° (4 trials)": (1, 0.6),
    }


def test_a_sentence_says_who_beats_tfidf_at_which_budgets() -> None:
    base = (0.50, 0.60, 0.55, 0.52)
    apart = {  # at four budgets, from the baseline; a little noise keeps tests finite
        "early": (0.2, 0.2, 0.0, -0.2),
        "never": (-0.2, -0.2, -0.2, -0.2),
        "now and then": (0.2, 0.0, 0.2, 0.0),
        "tfidf": (0.0, 0.0, 0.0, 0.0),
    }
    noise = (0.001, -0.001, 0.0015, -0.0015)
    rows = [
        {
            "dataset": "d", "method": method, "error": None, "labels": {"budget": budget, "draw": draw},
            "metrics": {"accuracy": base[draw] + gap + (noise[draw] if method != "tfidf" else 0)},
        }
        for method, gaps in apart.items()
        for budget, gap in zip((10, 20, 1000, 2000), gaps, strict=True)
        for draw in range(4)
    ]  # fmt: skip
    p = {  # of each of twelve tests by scipy, and Holm's correction by its definition
        (method, budget): ttest_rel(*(
            [row["metrics"]["accuracy"] for row in rows
             if row["method"] == one and row["labels"]["budget"] == budget]
            for one in (method, "tfidf")
        )).pvalue
        for method in apart if method != "tfidf" for budget in (10, 20, 1000, 2000)
    }  # fmt: skip
    ordered = sorted(p, key=p.__getitem__)
    clear = set(itertools.takewhile(lambda one: (12 - ordered.index(one)) * p[one] < 0.05, ordered))
    expected = {
        (m, b) for m, gaps in apart.items() for b, gap in zip((10, 20, 1000, 2000), gaps, strict=True) if gap
    }
    assert clear == expected
    assert verdicts(rows)[1] == (
        "d, beside tfidf, ahead: early (10 to 20 labels), now and then (10 labels, 1,000 labels); behind: early (2,000 "
        "labels), never (10 to 2,000 labels). 12 paired t tests over draws, Holm-corrected together."
    )
    alike = [row | {"metrics": {"accuracy": base[row["labels"]["draw"]]}} for row in rows]
    assert "beside tfidf, no method is ahead or behind at any budget. 12 paired" in verdicts(alike)[1]


def test_draws_that_begin_later_are_those_of_more_draws() -> None:
    asked = LabelBudgetRequest(["r8"], ["tfidf"], budgets=[40, 80], draws=4)
    later = replace(asked, draws=2, first_draw=2)
    assert [cell.key for cell in plan(later)] == [cell.key for cell in plan(asked)][-4:]
    # All documents are drawn once, first.
    whole = replace(later, budgets=[40, 5485], n_documents={"r8": 5485})
    assert [cell.request.labels["budget"] for cell in plan(whole)] == [40, 40]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--budgets", "5486"), "r8 has 5485 training documents, got 5486"),
        (("--budgets", "10,x"), "numbers parted by commas, got '10,x'"),
        (("--draws", "0"), "--draws must be at least 1, got 0"),
        (("--first-draw", "1000"), "--first-draw must be at most 999, got 1000"),
        (("--first-draw", "996"), "--first-draw and --draws must be at most 1000 together, got 996 and 5"),
        (("--first-draw", "1", "--budgets", "5485"), "--first-draw: all documents are drawn once, by draw 0"),
        (("--data-dir", "nowhere"), "--data-dir nowhere is not a folder"),
        (("-m", "tf-idf"), "did you mean tfidf"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], said: str, home: Path) -> None:
    _, errors = textbench("curve", "-d", "r8", "-m", "tfidf", *arguments, home=home, code=2)
    assert said in errors


def test_every_suite_can_be_read_and_a_grid_is_every_combination() -> None:
    for name in suites():
        assert read_suite(name)["description"]
        assert parts(name)
    grid = parts("dcot")[1].request
    assert len(grid.methods) == 45
    assert "dcot(n_layers=5, noise=0.1)" in grid.methods
    assert isinstance(grid, LabelBudgetRequest) and grid.budgets == [1000]
    with pytest.raises(InputError, match="no suite 'dcott'; did you mean dcot"):
        read_suite("dcott")


def test_rows_are_json(rows: list[dict[str, Any]]) -> None:
    assert json.loads(json.dumps(rows)) == rows


def test_draws_by_class_stand_apart_from_others() -> None:
    def of(method: str, stratified: bool) -> list[dict[str, Any]]:
        return [
            {
                "dataset": "d", "protocol": "honest", "method": method, "seed": 0, "trials": 0, "created": 0.0,
                "error": None, "metrics": {"accuracy": 0.5}, "labels": labels, "request": {"labels": labels},
            }
            for labels in ({"budget": budget, "draw": 0, "stratified": stratified} for budget in (10, 20))
        ]  # fmt: skip

    def shown(rows: list[dict[str, Any]]) -> list[tuple[str, str, set[str]]]:
        told = []
        for group, own in curves.groups(rows).items():
            (table,) = curves.tables("d", "honest", summarise(own))
            assert (curves.BY_CLASS in table.note) == (curves.BY_CLASS in table.title) == bool(group[2])
            told.append((curves.headed(*group), table.name, {row["method"] for row in own}))
        return told

    in_proportion = "d with few labels, honest protocol, each class in proportion", "curve-d-honest-by-class"
    from_all = "d with few labels, honest protocol", "curve-d-honest"
    assert shown([*of("a", True), *of("b", True)]) == [(*in_proportion, {"a", "b"})]
    assert shown([*of("a", True), *of("a", False)]) == [(*in_proportion, {"a"}), (*from_all, {"a"})]
    assert shown([*of("a", False), *of("b", False)]) == [(*from_all, {"a", "b"})]


def test_draws_are_counted_by_budget_and_method() -> None:
    def curve(method: str, *n_draws: int) -> Curve:
        points = [BudgetPoint(100 * place, 0.5, 0.4, 0.6, n) for place, n in enumerate(n_draws, start=1)]
        return Curve("d", method, "accuracy", max(n_draws), points)

    assert draws_of([curve("a", 5, 5), curve("b", 5, 5)]) == "5 draws"
    assert draws_of([curve("a", 1)]) == "1 draw"
    assert draws_of([curve("a", 20, 20, 1), curve("b", 3, 1, 1), curve("c", 2, 2, 1)]) == (
        "20 draws (1 at 300 labels, b 1 to 3, c 2)"
    )
