"""Doubt: the wider of both intervals in every format, where it comes from, run ids, and what is wrong with the data."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.made_runs import one_label
from textbench.evaluation.statistics.intervals import documents_half_width, mean_interval
from textbench.evaluation.statistics.sufficient_statistics import mean_tally
from textbench.flows.results import doubt
from textbench.flows.results.doubt import data_note, intervals, with_doubt
from textbench.flows.results.index import Index
from textbench.flows.results.leaderboard import FORMATS, caption, render_table
from textbench.flows.results.runs import Run, find_run
from textbench.flows.results.summary import summarise
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Job, Store

TARGET = [number % 3 for number in range(120)]


def answers(n_wrong: int) -> list[int]:
    return [(target + (place < n_wrong)) % 3 for place, target in enumerate(TARGET)]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """tfidf with one seed; lsi with three that err alike or nearly; nmf with three that differ widely."""
    for method, wrong in (("tfidf", [12]), ("lsi", [15, 15, 16]), ("nmf", [20, 50, 80])):
        for seed, n_wrong in enumerate(wrong):
            one_label(tmp_path, "r8", method, TARGET, answers(n_wrong), seed=seed, created=float(seed))
    return tmp_path


def printed(rows: list[Any], width: int = 100) -> str:
    stream = io.StringIO()
    render_table(rows, Console(file=stream, width=width, no_color=True))
    return stream.getvalue()


def test_the_wider_of_both_intervals_is_shown_and_which_is_said(home: Path) -> None:
    rows = with_doubt(home, Index(home).rows())
    tfidf, lsi, nmf = summarise(rows)
    over = {
        n: documents_half_width(mean_tally([i >= n for i in range(120)])) for n in (12, 15, 16, 20, 50, 80)
    }
    assert tfidf.over["accuracy"] == lsi.over["accuracy"] == "documents"
    assert tfidf.half_width["accuracy"] == pytest.approx(over[12])
    assert lsi.half_width["accuracy"] == pytest.approx((2 * over[15] + over[16]) / 3)
    seeds = mean_interval([1 - n / 120 for n in (20, 50, 80)])[1]
    assert nmf.over["accuracy"] == "seeds"
    assert nmf.half_width["accuracy"] == nmf.half_width_seeds["accuracy"] == pytest.approx(seeds)
    assert nmf.half_width_documents["accuracy"] == pytest.approx((over[20] + over[50] + over[80]) / 3)
    text = " ".join(printed(rows).split())
    assert f"90.00 ± {100 * over[12]:.2f} d" in text
    assert f"58.33 ± {100 * seeds:.2f} s" in text
    assert "the wider of d: over test documents, and s: over seeds (Student t)" in text
    for output in ("markdown", "latex"):
        assert f" {100 * over[12]:.2f} d" in FORMATS[output](rows)
    line = json.loads(FORMATS["json"](rows).splitlines()[-1])
    assert line["over"]["accuracy"] == "seeds"
    assert line["half_width"]["accuracy"] == pytest.approx(seeds)
    table = list(csv.DictReader(io.StringIO(FORMATS["csv"](rows))))
    assert [row["accuracy_95_over"] for row in table] == ["documents", "documents", "seeds"]


def test_without_predictions_seeds_alone_are_said(home: Path) -> None:
    rows = [row | {"key": "0" * 64} for row in Index(home).rows()]
    tfidf, lsi, _ = summarise(with_doubt(home, rows))
    assert math.isnan(tfidf.half_width["accuracy"])
    assert lsi.over["accuracy"] == "seeds"
    text = " ".join(printed(with_doubt(home, rows)).split())
    assert "over 1 to 3 seeds; intervals over seeds alone: the predictions are not here. > best" in text
    half = {"accuracy": 0.05}
    some = [row | {"documents_95": {} if row["method"] == "nmf" else half} for row in Index(home).rows()]
    assert "; intervals of nmf over seeds alone: the predictions are not here." in caption(
        summarise(some), ["accuracy"]
    )
    of_mlflow = [{name: value for name, value in row.items() if name != "key"} for row in rows]
    assert " ".join(printed(with_doubt(home, of_mlflow)).split()) == text


def test_a_row_that_knows_its_interval_is_not_read_back(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are the predictions of thousands: then nothing is said over documents."""
    rows = with_doubt(home, Index(home).rows())
    monkeypatch.setattr(doubt, "document_intervals", lambda *_: pytest.fail("read back"))
    assert with_doubt(home, rows) == rows
    monkeypatch.setattr(doubt, "MOST_READ", len(rows) - 1)
    assert not any(row["documents_95"] for row in with_doubt(home, Index(home).rows()))


def test_run_ids_lead_to_runs(home: Path) -> None:
    rows = Index(home).rows()
    first = min((row for row in rows if row["method"] == "lsi"), key=lambda row: row["seed"])
    lsi = summarise(rows)[1]
    assert lsi.runs[0] == first["run_id"]
    assert len(lsi.runs) == 3
    line = next(line for line in printed(rows).splitlines() if line.startswith("  lsi"))
    assert find_run(home, line.split()[-1])["key"] == first["key"]
    objects = [json.loads(line) for line in FORMATS["json"](rows).splitlines()]
    assert [len(found["runs"]) for found in objects] == [1, 3, 3]
    (ids,) = (r["runs"] for r in csv.DictReader(io.StringIO(FORMATS["csv"](rows))) if r["method"] == "lsi")
    assert ids.split() == list(lsi.runs)


def test_a_run_alone_has_both_intervals(home: Path) -> None:
    row = next(row for row in Index(home).rows() if row["method"] == "nmf" and row["seed"] == 1)
    found = intervals(home, row)
    of_documents = documents_half_width(mean_tally([i >= 50 for i in range(120)]))
    assert found["documents"]["accuracy"] == pytest.approx(of_documents)
    assert found["seeds"]["accuracy"] == pytest.approx(mean_interval([1 - n / 120 for n in (20, 50, 80)])[1])
    assert found["n_seeds"] == 3


def make_audit(job: Job) -> None:
    """Write the findings of the parameters."""
    job.save_json("audit", job.params["audit"])


def findings(test: int = 200, across: int = 0, twice: tuple[int, int] = (0, 0)) -> dict[str, Any]:
    return {
        "documents": {"train": 1000, "test": test},
        "duplicates": {"train": twice[0], "test": twice[1], "across": across, "across_other_label": 0},
    }


@pytest.mark.parametrize(
    ("audit", "note"),
    [
        (findings(), ""),
        (findings(80), "only 80 test documents"),
        (findings(2189, 13), "13 of 2,189 test documents are also training documents"),
        (findings(twice=(5, 2)), "2 test and 5 training documents repeat an earlier one of their part"),
        (findings(99, 1), "only 99 test documents; 1 of 99 test documents are also training documents"),
    ],
)
def test_what_is_wrong_with_the_data_is_a_line(audit: dict[str, Any], note: str) -> None:
    assert data_note(audit) == note


def test_the_line_stands_under_the_leaderboard(home: Path) -> None:
    rows = Index(home).rows()
    # The audit is not stored, and not made here.
    assert "also training" not in printed(with_doubt(home, rows))
    corpus = Run(home, rows[0]).reference.inputs["corpus"]
    params = {"audit": findings(60, 7)}
    Store(home / "store", isolated=False).ensure(
        Reference("audit", f"{__name__}:make_audit", params, {"corpus": corpus})
    )
    rows = with_doubt(home, rows)
    line = "r8: only 60 test documents; 7 of 60 test documents are also training documents."
    assert line in printed(rows).splitlines()
    assert line in FORMATS["markdown"](rows) and line in FORMATS["latex"](rows)
    assert json.loads(FORMATS["json"](rows).splitlines()[0])["data_note"] in line
