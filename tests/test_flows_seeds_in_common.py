"""Whatever calls a method the best says on which seeds it is, and which better figure other seeds gave."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.made_runs import one_label
from textbench.flows.cli import app
from textbench.flows.plots import leaderboard
from textbench.flows.report.chapters import chapters
from textbench.flows.report.evidence import gather
from textbench.flows.results.doubt import with_doubt
from textbench.flows.results.index import Index
from textbench.flows.results.leaderboard import caption
from textbench.flows.results.summary import higher, summarise

N = 50
TARGET = [0, 1] * (N // 2)
RIGHT = {"counts": {0: 34, 1: 34}, "tfidf": {0: 33, 1: 33, 2: 32, 3: 32}, "nb": {7: 35}}
NB = "nb has 70.00 on seed 7, not compared"
IN_COMMON = "on the seeds in common, 0 and 1"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reported case: nb has the best figure, on a seed that no other method ran."""
    folder = tmp_path_factory.mktemp("home")
    for method, seeds in RIGHT.items():
        for seed, n in seeds.items():
            predicted = TARGET[:n] + [1 - label for label in TARGET[n:]]
            one_label(
                folder, "data", method, TARGET, predicted, seed=seed, seconds={"evaluate": 1.0}, peak_mb=5.0
            )
    return folder


def test_the_caption_names_the_better_figure(home: Path) -> None:
    summaries = summarise(with_doubt(home, Index(home).rows()))
    said = caption(summaries, ["accuracy"])
    assert f"> best {IN_COMMON}." in said
    assert NB in said
    assert higher([s for s in summaries if s.method != "nb"], "accuracy") == ""


def test_a_better_mean_of_more_seeds_is_named_too() -> None:
    rows = [
        {"dataset": "data", "method": method, "protocol": "honest", "seed": seed, "trials": 0, "params": {},
         "metrics": {"accuracy": value}, "seconds": {}, "peak_mb": None, "error": None}
        for method, seed, value in (("lsi", 0, 0.25), ("lsi", 1, 1.0), ("tfidf", 0, 0.5))
    ]  # fmt: skip
    assert higher(summarise(rows), "accuracy") == "lsi has 62.50 on seeds 0 and 1, compared on seed 0 alone"


def test_the_report_says_it_wherever_it_names_the_best(home: Path) -> None:
    evidence = gather(home)
    which, _, costs, _ = chapters(evidence)
    assert f"counts is best {IN_COMMON}, with 68.00" in which.answer[0]
    assert which.answer[0].endswith(f"{NB}.")
    assert "the best on the seeds in common, counts, took 1.0 s" in costs.answer[0]
    assert NB in costs.answer[0]
    (shown,) = costs.sections[0].tables
    assert f"Best {IN_COMMON}; {NB}." in shown.note
    behind = {row[0].text: row[3].text for row in shown.rows}
    assert behind == {"counts": "0.00", "tfidf": "-2.00", "nb": "-"}
    (drawn,) = which.sections[0].figures
    assert NB in drawn.caption


def test_the_figure_says_what_its_diamond_is(home: Path, tmp_path: Path) -> None:
    leaderboard.draw(Index(home).rows(), tmp_path / "x.svg")
    said = " ".join((tmp_path / "x.svg").read_text("utf-8").split())
    assert "Diamond: best on the seeds in common, 0 and 1; nb has 70.00" in said


def test_commands_that_take_the_best_say_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTBENCH_HOME", str(home))
    said = CliRunner().invoke(app, ["show", "best", "--json"])
    assert f": best {IN_COMMON}; {NB}" in said.stderr
