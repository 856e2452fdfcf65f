"""Pictures: every metric is drawn in its own unit, and no mark is cut at the end of an axis."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.made_runs import one_label
from textbench.flows.plots import curves as curves_plot
from textbench.flows.plots import leaderboard, style
from textbench.flows.report import charts
from textbench.flows.report.boards import Board
from textbench.flows.report.curves import tables
from textbench.flows.results.learning_curves import BudgetPoint, Curve, curve_tables
from textbench.flows.results.summary import summarise as summaries
from textbench.flows.results.winner import Standing

NOTHING = Standing(None, [], {}, [])  # nothing was tested
COVERAGE = {"good": 3.25, "poor": 9.5}  # labels down to the last true one


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The axes of every picture that a test draws, with the values of their marks."""
    axes: list[Any] = []

    def keep(picture: Any, *_: Any) -> str:
        axes.extend(picture.axes)
        return "<svg></svg>"

    for way in ("save", "inline"):
        monkeypatch.setattr(style, way, keep)
    return axes


def rows(metric: str, values: dict[str, float], **more: Any) -> list[dict[str, Any]]:
    made = {"dataset": "made", "protocol": "honest", "trials": 0, "params": {}, "error": None, "peak_mb": 1.0}
    made |= {"seconds": {"evaluate": 1.0}} | more
    return [
        made | {"method": method, "seed": seed, "metrics": {metric: value}}
        for method, value in values.items()
        for seed in (0, 1)
    ]


def curves(metric: str, values: Sequence[float]) -> list[Curve]:
    points = [BudgetPoint(100 * (1 + i), value, value - 0.1, value + 0.1) for i, value in enumerate(values)]
    return [Curve("made", "lsi", metric, 2, points)]


def marks(axis: Any, way: str) -> list[float]:
    """The values along x or y at which an axis has marks."""
    lines = [line for line in axis.lines if line.get_marker() not in ("None", "|", "", None)]
    return [float(value) for line in lines for value in np.atleast_1d(getattr(line, f"get_{way}data")())]


def test_a_leaderboard_of_coverage_error_counts_labels(drawn: list[Any], tmp_path: Path) -> None:
    leaderboard.draw(rows("coverage_error", COVERAGE), tmp_path / "x.png", "coverage_error")
    assert marks(drawn[0], "x") == [3.25, 9.5]
    assert drawn[0].get_xlabel().startswith("coverage error, labels")
    leaderboard.draw(rows("accuracy", {"good": 0.75}), tmp_path / "x.png")
    assert marks(drawn[1], "x") == [75]
    assert drawn[1].get_xlabel().startswith("accuracy, percent")


def test_curves_of_coverage_error_count_labels(drawn: list[Any], tmp_path: Path) -> None:
    made = curves("coverage_error", [120.5, 4.25])
    curves_plot.draw(made, tmp_path / "x.png")
    charts.curves(made, "fig-x", "made")
    for axis in drawn:
        assert marks(axis, "y") == [120.5, 4.25]
        assert axis.get_ylim()[1] > 120.5
        assert axis.get_ylabel().startswith("coverage error, labels")
    (table,) = tables("made", "honest", made)
    assert "coverage error in labels" in table.note


def test_the_table_of_curves_counts_labels(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = rows("coverage_error", {"lsi": 3.25}, labels={"budget": 100, "draw": 0})
    command = importlib.import_module("textbench.flows.cli.curve")
    command.print_curves(tmp_path, found, "coverage_error", None, as_json=False)
    printed = capsys.readouterr().out
    assert "made: coverage error in labels by labelled documents" in printed
    # Equal draws have no interval, as in the report.
    assert "3.2" in printed and "±" not in printed
    (table,) = curve_tables([Curve("made", "lsi", "accuracy", 2, [BudgetPoint(100, 0.5, 0.4, 0.6)])])
    assert [datum.text for datum in table.rows[0]] == ["100", "50.0 ±10.0"]


def test_curves_of_one_name_are_told_apart_in_tables_and_figures(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Curves of another `data` are called what leaderboards call it, and each figure is named where it is written."""
    earlier = {"documents_sha256": "1" * 64, "n_train": 10, "n_test": 10, "n_labels": 2}
    one_label(tmp_path, "data", "nb", [0, 1], [0, 1], corpus=earlier, created=1.0)
    found = [
        row | {"dataset": "data", "corpus": earlier | {"documents_sha256": "2" * 64}}
        for row in rows("accuracy", {"lsi": 0.5, "nb": 0.75}, labels={"budget": 100, "draw": 0})
    ]
    command = importlib.import_module("textbench.flows.cli.curve")
    picture = tmp_path / "x.svg"
    command.print_curves(tmp_path, found, None, picture, as_json=False)
    printed = capsys.readouterr()
    assert "data (2): accuracy" in printed.out
    assert printed.err == f"Wrote {picture}\n"
    assert "data (2)" in picture.read_text("utf-8")
    command.print_curves(tmp_path, found, None, picture, as_json=True)
    assert capsys.readouterr() == ("", "")


def test_a_board_of_coverage_error_counts_labels(drawn: list[Any]) -> None:
    found = summaries(rows("coverage_error", COVERAGE), "coverage_error")
    board = Board("made", "honest", "coverage_error", found, NOTHING, [])
    charts.leaderboard(board)
    charts.cost(board, "seconds")
    assert drawn[0].get_xlabel() == "coverage error, labels"
    assert drawn[1].get_ylabel() == "coverage error, labels"


def test_no_mark_is_cut_at_an_end_of_the_axes(drawn: list[Any], tmp_path: Path) -> None:
    """A mark at 100 percent, at the first or the last line, is drawn whole: not clipped, half a line from the edge."""
    found = rows("accuracy", {"perfect": 1.0, "bad": 0.3})
    leaderboard.draw(found, tmp_path / "x.png")
    curves_plot.draw(curves("accuracy", [0.95, 1.0]), tmp_path / "x.png")
    charts.leaderboard(Board("made", "honest", "accuracy", summaries(found), NOTHING, []))
    for axis in drawn:
        assert not [
            line for line in axis.lines if line.get_marker() in tuple("oDs<^v") and line.get_clip_on()
        ]
    for axis in (drawn[0], drawn[2]):
        assert axis.get_ylim() == (1.5, -0.5)


def test_names_of_curves_stand_within_the_picture(drawn: list[Any]) -> None:
    """Ten that end in one place: at the ends of lines, apart and not above the axes; a long one moves all below."""

    def ending_together(names: Sequence[str]) -> list[Curve]:
        points = [BudgetPoint(budget, mean, mean, mean) for budget, mean in ((10, 0.5), (100, 0.99))]
        return [Curve("d", name, "accuracy", 5, points) for name in names]

    names = [f"m{number}" for number in range(10)]
    charts.curves(ending_together(names), "fig-x", "made")
    axis = drawn.pop()
    heights = sorted(text.xyann[1] for text in axis.texts)
    low, high = axis.get_ylim()
    assert [text.get_text() for text in axis.texts] == names[::-1]
    assert heights[-1] <= high
    assert np.diff(heights).min() >= 0.99 * curves_plot.GAP * (high - low)
    assert axis.get_xscale() == "linear"
    charts.curves(ending_together([*names, "ensemble(tfidf, nb-svm, lsi)"]), "fig-x", "made")
    axis = drawn.pop()
    (legend,) = axis.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [*names, "ensemble(tfidf, nb-svm, lsi)"]
    assert list(axis.texts) == []
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in axis.lines}
    assert len(looks) == 11


def test_budgets_that_grow_far_are_on_a_logarithmic_scale(drawn: list[Any]) -> None:
    points = [BudgetPoint(budget, 0.5, 0.4, 0.6) for budget in (16, 130, 25_000)]
    charts.curves([Curve("d", "a", "accuracy", 5, points)], "fig-x", "made")
    axis = drawn.pop()
    assert axis.get_xscale() == "log"
    assert [text.get_text() for text in axis.get_xticklabels()] == ["16", "130", "25,000"]


def test_titles_of_panels_do_not_meet(drawn: list[Any]) -> None:
    points = [BudgetPoint(budget, 0.5, 0.4, 0.6) for budget in (16, 130, 25_000)]
    named = ("r52, each class in proportion", "r8", "reuters65, each class in proportion", "imdb")
    charts.multiples([[Curve(name, "a", "accuracy", 5, points)] for name in named], "fig-x", "made")
    figure = drawn[0].figure
    figure.draw_without_rendering()
    boxes = [axis._left_title.get_window_extent() for axis in drawn]
    assert [axis.get_title(loc="left").split(",")[0] for axis in drawn] == ["r52", "r8", "reuters65", "imdb"]
    assert all(one.xmax < other.xmin for one, other in zip(boxes[::2], boxes[1::2], strict=True))
    assert all(box.ymin > 0 and box.xmax < figure.bbox.xmax for box in boxes)
