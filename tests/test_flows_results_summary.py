"""The leaderboard: what it computes from rows, and that every rendering says the same."""

import csv
import io
import json
import math
import re
import statistics
from typing import Any

import pytest
from rich.console import Console

from textbench.evaluation.metrics.single_label import METRICS, Metric
from textbench.flows.results import ranking_tables
from textbench.flows.results.leaderboard import FORMATS, render_table
from textbench.flows.results.metric_names import HEADINGS, KNOWN
from textbench.flows.results.summary import latest, summarise
from textbench.flows.tables.formats import escape_latex


def row(method: str, accuracy: float | None, seed: int = 0, **other: Any) -> dict[str, Any]:
    metrics = {} if accuracy is None else {"accuracy": accuracy, "macro_f1": 1 - accuracy, "map": 0.5}
    return {
        "dataset": "r8",
        "method": method,
        "protocol": "honest",
        "seed": seed,
        "trials": 0,
        "params": {"C": 1.0},
        "on_border": [],
        "metrics": metrics,
        "seconds": {"tune": 1.0, "evaluate": 2.0 + seed} if metrics else {},
        "peak_mb": 100.0 + seed if metrics else None,
        "error": None if metrics else "ValueError: no",
        "created": 1.0,
        **other,
    }


# lsi: three seeds; tfidf: two, and one that failed; nmf: failed; a_b: one seed, on a border.
ROWS = [
    row("tfidf", 0.9, 0),
    row("tfidf", 0.8, 1),
    row("tfidf", None, 2),
    row("nmf", None),
    row("lsi", 0.92, 0),
    row("lsi", 0.90, 1),
    row("lsi", 0.94, 2),
    row("a_b", 0.5, 0, on_border=["C"]),
]


def printed(rows: list[dict[str, Any]], width: int = 80, **options: Any) -> str:
    stream = io.StringIO()
    render_table(rows, Console(file=stream, width=width, no_color=True), **options)
    return stream.getvalue()


def test_every_metric_has_one_heading() -> None:
    assert HEADINGS.keys() >= KNOWN.keys() | ranking_tables.HEADINGS.keys()
    assert len(set(HEADINGS.values())) == len(HEADINGS)
    assert not [heading for heading in HEADINGS.values() if "_" in heading]
    assert ranking_tables.HEADINGS["ndcg_at_5"] == HEADINGS["ndcg_at_5"] == "nDCG@5"


def test_mean_and_interval_over_seeds() -> None:
    lsi = summarise(ROWS)[0]
    assert (lsi.method, lsi.n_seeds, lsi.is_best) == ("lsi", 3, True)
    assert lsi.mean["accuracy"] == pytest.approx(0.92)
    # Student's t at 97.5 % with 2 degrees of freedom, from a table.
    expected = 4.302653 * statistics.stdev([0.90, 0.92, 0.94]) / math.sqrt(3)
    assert lsi.half_width["accuracy"] == pytest.approx(expected, rel=1e-6)
    assert lsi.seconds == pytest.approx(4.0)
    assert lsi.peak_mb == 102.0


def test_seeds_that_change_nothing_give_no_interval() -> None:
    rows = [row("tfidf", 0.1, seed) for seed in range(3)]
    (tfidf,) = summarise(rows)
    assert (tfidf.n_seeds, tfidf.mean["accuracy"]) == (3, pytest.approx(0.1))
    assert math.isnan(tfidf.half_width["accuracy"])
    assert re.search(r"> tfidf +10\.00 +\d", printed(rows))


def test_runs_that_were_asked_for_differently_are_never_averaged() -> None:
    asked = [
        {"probe": "linear-svm", "request": {"rule": None, "validation": {}}},
        {"probe": "linear-svm", "request": {"rule": "words", "validation": {}}},
        {"probe": "linear-svm", "request": {"rule": None, "validation": {"n_folds": 5}}},
        {"probe": "elastic-net", "request": {"rule": None, "validation": {}}},
        {"probe": "linear-svm", "paper": "dcot-2012", "request": {}},
        {"probe": "linear-svm", "request": {"search_seconds": 2.5}},
    ]
    rows = [row("lsi", 0.9 - 0.1 * i, 0, **settings) for i, settings in enumerate(asked)]
    assert len(latest(rows)) == 6
    labels = [summary.label for summary in summarise([*rows, row("tfidf", 0.1, probe="elastic-net")])]
    probe = "linear-svm"
    assert labels == [
        f"lsi ({probe})",
        f"lsi ({probe}, rule words)",
        f"lsi ({probe}, n_folds 5)",
        "lsi (elastic-net)",
        f"lsi ({probe}, dcot-2012)",
        f"lsi ({probe}, 2.5 s of search)",
        "tfidf (elastic-net)",
    ]


def test_a_timed_search_is_tuning() -> None:
    rows = [row("lsi", 0.9, 0, probe="p", request={"search_seconds": 60.0}), row("tfidf", 0.8, probe="p")]
    found = {
        summary.label: summary.kind for summary in summarise([*rows, row("nb", 0.7, trials=5, probe="p")])
    }
    assert found == {"lsi (60 s of search)": "tuned", "tfidf": "default", "nb (5 trials)": "tuned"}


def test_order_does_not_depend_on_the_order_of_rows() -> None:
    assert [s.method for s in summarise(ROWS)] == ["lsi", "tfidf", "a_b", "nmf"]
    assert summarise(ROWS[::-1])[0] == summarise(ROWS)[0]


def test_the_metric_ranks_and_its_direction_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [s.method for s in summarise(ROWS, "macro_f1")] == ["a_b", "tfidf", "lsi", "nmf"]
    lower = Metric("accuracy", "", METRICS["accuracy"].function, "labels", higher_is_better=False)
    monkeypatch.setitem(KNOWN, "accuracy", lower)
    assert [(s.method, s.is_best) for s in summarise(ROWS)] == [
        ("a_b", True),
        ("tfidf", False),
        ("lsi", False),
        ("nmf", False),
    ]


def test_equal_means_are_all_best() -> None:
    best = [s.method for s in summarise([row("a", 0.5), row("b", 0.5), row("c", 0.4)]) if s.is_best]
    assert best == ["a", "b"]


def test_data_sets_protocols_and_trials_are_kept_apart() -> None:
    rows = [row("a", 0.5), row("a", 0.6, dataset="r52"), row("a", 0.7, protocol="transductive")]
    rows.append(row("a", 0.4, trials=20))
    summaries = summarise(rows)
    assert len(summaries) == 4
    assert sum(s.is_best for s in summaries) == 3
    assert printed(rows).count(" protocol") == 3
    assert "a (20 trials)" in printed(rows)


def test_a_classifier_that_is_not_the_tables_commonest_is_told() -> None:
    rows = [row(name, 0.5, probe="linear-svm") for name in "ab"] + [row("nb", 0.4, probe=None)]
    assert [s.label for s in summarise(rows)] == ["a", "b", "nb"]
    rows += [row("c", 0.7, probe="elastic-net"), row("c", 0.6, probe="elastic-net", dataset="r52")]
    assert [s.label for s in summarise(rows)] == ["c", "c (elastic-net)", "a", "b", "nb"]


def test_nothing_succeeded() -> None:
    assert [s.is_best for s in summarise([row("nmf", None)])] == [False]
    assert printed([row("nmf", None)]) == "nmf failed: ValueError: no\n"
    assert summarise([]) == []
    assert printed([]) == ""


def test_table_fits_80_columns_and_reads_without_colour() -> None:
    lines = printed(ROWS).splitlines()
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    assert re.search(r"> lsi +92\.00 ± 4\.97 ", text)
    assert len(re.findall(r"(?:^| )> ", text, re.MULTILINE)) == 2  # the mark, and its explanation
    assert "a_b*" in text
    assert "* the best C was the largest or the smallest that was tried." in " ".join(text.split())
    assert "nmf failed: ValueError: no" in text
    assert "tfidf failed for 1 of 3 seeds: ValueError: no" in text
    assert "interval (Student t) over 1 to 3 seeds" in " ".join(text.split())
    assert "one seed: no interval" in printed([row("a", 0.5)])


def test_a_name_with_brackets_is_printed_as_it_is() -> None:
    assert "my[red]" in printed([row("my[red]", 0.5)])


def test_latest_keeps_the_newest_of_each_cell() -> None:
    rows = [
        row("a", 0.1, created=1.0),
        row("a", 0.2, created=3.0),
        row("a", 0.3, created=2.0),
        row("a", 0.4, 1),
    ]
    assert sorted(r["metrics"]["accuracy"] for r in latest(rows)) == [0.2, 0.4]


def test_seeds_that_other_code_made_are_no_part_of_a_mean() -> None:
    rows = [row("a", 0.9, seed, created=float(seed), made_by="first") for seed in range(3)]
    rows += [row("b", 0.5, seed, made_by="other") for seed in range(2)]
    assert [(s.method, s.n_seeds, s.n_otherwise) for s in summarise(latest(rows))] == [
        ("a", 3, 0),
        ("b", 2, 0),
    ]
    rows.append(row("a", 0.8, 0, created=9.0, made_by="edited"))
    found = latest(rows)
    (edited, b) = summarise(latest(found))  # of what is left nothing is left out, nor is the number lost
    assert (edited.method, edited.by_seed["accuracy"], edited.n_otherwise) == ("a", {0: 0.8}, 2)
    assert (b.method, b.n_seeds, b.n_otherwise) == ("b", 2, 0)
    assert "Left out: 2 runs of a, not known to be of the code" in " ".join(printed(found).split())
    # What was asked for again, after it was brought back, is the newest with all its seeds.
    again = [one | {"asked": 10.0} if (one["method"], one["seed"]) == ("a", 1) else one for one in rows]
    (whole, _) = summarise(latest(again))
    assert (whole.by_seed["accuracy"], whole.n_otherwise) == ({0: 0.9, 1: 0.9, 2: 0.9}, 0)
    assert json.loads(FORMATS["json"](found).splitlines()[0])["n_otherwise"] == 2
    # What does not say how it was made may have been made by any code.
    old = [row("a", 0.9, seed, created=float(seed)) for seed in range(3)]
    assert summarise(latest(old))[0].n_seeds == 3
    (one,) = summarise(latest([*old, row("a", 0.8, 5, created=9.0, made_by="edited")]))
    assert (one.by_seed["accuracy"], one.n_otherwise) == ({5: 0.8}, 3)


def test_where_all_answers_are_right_no_interval_is_printed() -> None:
    rows = [row("a", 1.0, documents_95={"accuracy": 0.0}), row("b", 0.9, documents_95={"accuracy": 0.05})]
    text = printed(rows)
    assert re.search(r"> a +100\.00 +\d", text) and re.search(r"  b +90\.00 ± 5\.00 d", text)


def test_json_lines_keep_every_digit() -> None:
    rows = [row("a", 0.1 + 0.2)]
    (summary,) = (json.loads(line) for line in FORMATS["json"](rows).splitlines())
    assert summary["mean"]["accuracy"] == 0.1 + 0.2
    assert summary["half_width"]["accuracy"] is None
    assert FORMATS["json"]([]) == ""


def test_csv_reads_back() -> None:
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](ROWS, "macro_f1"))))
    assert [r["method"] for r in rows] == [s.method for s in summarise(ROWS, "macro_f1")]
    by_method = {r["method"]: r for r in rows}
    assert float(by_method["lsi"]["accuracy"]) == summarise(ROWS)[0].mean["accuracy"]
    assert float(by_method["lsi"]["accuracy_95"]) == summarise(ROWS)[0].half_width["accuracy"]
    assert by_method["a_b"]["accuracy_95"] == ""
    assert by_method["nmf"]["accuracy"] == ""
    assert by_method["nmf"]["errors"] == "ValueError: no"


def test_markdown_has_as_many_cells_in_every_line() -> None:
    lines = [line for line in FORMATS["markdown"](ROWS).splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 3
    assert {line.count("|") for line in lines} == {lines[0].count("|")}
    assert "| **lsi** | **92.00 ± 4.97** |" in "\n".join(lines)


def test_latex_is_balanced_and_escaped() -> None:
    text = FORMATS["latex"](ROWS)
    for name in ("table", "tabular"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") == 1
    lines = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.count("&") for line in lines} == {7}
    assert r"a\_b* & 50.00 &" in text
    assert r"\textbf{92.00 $\pm$ 4.97}" in text
    assert all(re.search(r"(?<!\\)[_#]", line) is None for line in text.splitlines() if line[0] != "%")


def test_latex_escapes_every_special_character() -> None:
    assert escape_latex("a_b & 5% {x} $#~^\\") == (
        r"a\_b \& 5\% \{x\} \$\#\textasciitilde{}\textasciicircum{}\textbackslash{}"
    )


def test_a_run_is_that_of_the_lowest_seed_whatever_was_run_last() -> None:
    """`run` knows no dates of what it has just made: both tables show the same run of a method."""
    rows = [row("a", 0.5, seed) | {"run_id": f"{seed}" * 32, "created": float(-seed)} for seed in (2, 0, 1)]
    undated = [{name: value for name, value in one.items() if name != "created"} for one in rows]
    newer = [one | {"created": float(one["seed"])} for one in rows]
    assert [summarise(some)[0].runs[0][:1] for some in (rows, undated, newer)] == ["0", "0", "0"]


def test_a_mark_stands_on_the_line_that_explains_it() -> None:
    rows = [row("a", 0.5, 0) | {"on_border": ["C"]}]
    for width in range(40, 120):
        lines = [line.rstrip() for line in printed(rows, width).splitlines()]
        assert not [line for line in lines if line.endswith((" *", " >"))]
        assert "* the best C was" in " ".join(lines)
