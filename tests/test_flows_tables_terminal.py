"""Tables on narrow terminals: every name, heading and figure of every command stands whole."""

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.made_runs import empty_record, one_label
from textbench.flows.explain.frames import Verdicts
from textbench.flows.referee.ledger import choose, ledger
from textbench.flows.results import ranking_tables
from textbench.flows.results.comparison import pairs, pairs_table, runs_of_methods
from textbench.flows.results.leaderboard import render_table
from textbench.flows.tables.table import EMPTY, Datum, Table, of_texts
from textbench.flows.tables.terminal import print_table

LONG = "scdv(n_clusters=10, word_vectors__min_count=2)"
WIDTHS = (60, 80)


def console(width: int) -> Console:
    return Console(width=width, no_color=True, file=io.StringIO())


def text_of(made: Console) -> str:
    """What was printed; every line fits the terminal."""
    text: str = made.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= made.width, text
    return text


def made_of(*headings: str, rows: list[list[str]], **more: Any) -> Table:
    """A table whose names may be broken at their spaces, its figures flush right."""
    names = [[Datum(name, parts=name.split()), *figures] for name, *figures in rows]
    return replace(of_texts("", headings, names), **more)


def whole(text: str, *words: str) -> None:
    """Assert that each of these stands in one line."""
    for word in words:
        assert any(word in line for line in text.splitlines()), f"{word!r} is cut in:\n{text}"


def test_a_table_that_fits_is_one_line_a_row() -> None:
    made = console(40)
    print_table(made, made_of("method", "map", "s", rows=[["lsi", "1.50", "10"], ["b (x)", "-", "2"]]))
    assert text_of(made).splitlines() == [
        "method   map   s",
        "────────────────",
        "lsi     1.50  10",
        "b (x)      -   2",
    ]


def test_a_long_name_gets_a_line_of_its_own_and_others_do_not() -> None:
    made = console(30)
    rows = [["lsi", "1.50", "10"], ["a" * 25 + " (tuned)", "2.50", "5"]]
    print_table(made, made_of("method", "accuracy", "s", rows=rows))
    assert text_of(made).splitlines() == [
        "method            accuracy   s",
        "──────────────────────────────",
        "lsi                   1.50  10",
        "a" * 25,
        "(tuned)               2.50   5",
    ]


def test_a_name_wider_than_the_terminal_is_broken_at_its_spaces() -> None:
    made = console(40)
    name = "ensemble(tfidf, nb-svm@words-punctuation, lsi, lda)"
    print_table(
        made, Table("t", "", [("method", "method"), ("map", "map")], [[Datum(name), Datum("1.5", 1.5)]])
    )
    *_, first, second, figure = text_of(made).splitlines()
    assert (first, second) == ("ensemble(tfidf,", "    nb-svm@words-punctuation, lsi, lda)")
    assert figure.split() == ["1.5"]


def test_columns_that_may_go_go_in_their_order_and_that_is_said() -> None:
    made = console(30)
    headings = ("method", "accuracy", "seconds", "megabytes")
    rows = [["lsi", "1.5", "2", "3"]]
    print_table(made, made_of(*headings, rows=rows, may_go=["megabytes", "seconds"]))
    assert [line.rstrip() for line in text_of(made).splitlines()] == [
        "method  accuracy  seconds",
        "─────────────────────────",
        "lsi          1.5        2",
        "Left out for want of room:",
        "megabytes.",
    ]


def test_what_is_too_wide_for_a_table_is_blocks() -> None:
    made = console(24)
    print_table(made, made_of("method", "accuracy", "macro-F1", rows=[["lsi", "91.50", "2.50"]]))
    assert text_of(made).splitlines() == ["lsi", "    accuracy 91.50,", "    macro-F1 2.50"]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_leaderboard(width: int) -> None:
    row = {"dataset": "r8", "protocol": "honest", "trials": 0, "params": {}, "error": None, "peak_mb": 3200.0}
    row |= {"on_border": [], "created": 1.0, "seconds": {"tune": 1234.5}}
    metrics = {"accuracy": 0.9751, "macro_f1": 0.9431, "map": 0.6831}
    made = console(width)
    render_table(
        [
            row | {"method": method, "seed": seed, "probe": probe, "metrics": metrics}
            for method, probe in ((LONG, "elastic-net"), ("tfidf", "linear-svm"), ("lsi", "linear-svm"))
            for seed in (0, 1)
        ],
        made,
    )
    text = text_of(made)
    whole(text, LONG, "(elastic-net)", "> tfidf", "accuracy", "macro-F1", "MAP", "seeds", "97.51")
    if width == 80:
        whole(text, "seconds", "peak MB", "1234.5")
    else:
        assert "Left out for want of room: peak MB" in text


@pytest.mark.parametrize("width", WIDTHS)
def test_comparisons_mark_what_is_significant(width: int, tmp_path: Path) -> None:
    target = [number % 3 for number in range(90)]
    for method, n_wrong in ((LONG, 3), ("tfidf", 4), (LONG.replace("10", "20"), 60)):
        predicted = [(t + (i < n_wrong)) % 3 for i, t in enumerate(target)]
        one_label(tmp_path, "r8", method, target, predicted)
    methods = [LONG, "tfidf", LONG.replace("10", "20")]
    found = runs_of_methods(tmp_path, ["r8"], methods, "honest")["r8"]
    made = console(width)
    print_table(made, pairs_table("r8", pairs(tmp_path, "r8", found)))
    text = text_of(made)
    whole(text, *methods, "difference", "95 % interval", "only one right", "McNemar p")
    assert re.search(r"\+63\.33\*", text)  # 3 against 60 wrong of 90
    assert re.search(r"[+-]1\.11(?!\*)", text)
    assert "* p below 0.05" in " ".join(text.split())


@pytest.mark.parametrize("width", WIDTHS)
def test_claims_never_cut_a_verdict(width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty_record(monkeypatch, tmp_path)
    entries = ledger(tmp_path, choose(None))
    made = console(width)
    Verdicts(entries).print(made)
    table = text_of(made).partition("\n\n")[0]
    whole(table, "published", "measured", "recorded", "verdict")
    lines = table.splitlines()
    for entry in entries:
        rest = entry.claim.id.split("/", 2)[-1]
        assert any(line.strip().startswith(rest) for line in lines) or len(rest) > width - 2
    for kind, n in [
        (k, sum(e.verdict.kind == k for e in entries)) for k in {e.verdict.kind for e in entries}
    ]:
        assert sum(line.endswith(f"  {kind}") for line in lines) == n


@pytest.mark.parametrize("width", WIDTHS)
def test_retrieval(width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.test_flows_retrieval import computed

    monkeypatch.setenv("COLUMNS", str(width))
    cells, store = computed(tmp_path, ["bm25", "lm"], [0])
    from textbench.flows.results.rankings import result_row

    rows: list[dict[str, Any]] = [result_row(cell, store) for cell in cells]
    longer = [cells[0], replace(cells[1], method=f"lm+{LONG}")]
    others = [replace(cell, dataset="irds:beir/nfcorpus/test") for cell in longer]
    made = console(width)
    monkeypatch.setattr("rich.console.Console", lambda: made)
    ranking_tables.render([*longer, *others], [*rows, *rows], [], store)
    text = text_of(made)
    whole(text, f"lm+{LONG}", "bm25", "MAP", "P@5", "nDCG@10", "irds:beir/nfcorpus/test", "own-documents")
    overview = text.partition("Mean average precision")[2]
    whole(overview, f"lm+{LONG}", "irds:beir/nfcorpus/test", f"{rows[1]['metrics']['map']:.4f}")


def test_blocks_have_no_space_before_their_commas() -> None:
    made = console(24)
    print_table(made, made_of("pair", "difference", "interval", rows=[["a against b", "+2.78 ", "+1 .. +3"]]))
    assert text_of(made).splitlines()[1:] == ["    difference +2.78,", "    interval +1 .. +3"]


def test_a_table_with_a_best_marks_it_and_says_what_is_wrong() -> None:
    made = console(40)
    rows = [
        [Datum("of a paper", style="bold"), EMPTY],
        [Datum("lsi", is_strong=True), Datum("0.5 ± 0.1", 0.5)],
        [Datum("nb"), Datum("0.4", 0.4)],
    ]
    more: Any = {"note": "A note.", "warning": "Copies.", "failures": ["nmf failed"], "right": ["map"]}
    print_table(made, Table("t", "r8", [("method", "method"), ("map", "MAP ±")], rows, **more))
    assert text_of(made).splitlines() == [
        "r8",
        "  method          MAP ±",
        "───────────────────────",
        "  of a paper",
        "> lsi         0.5 ± 0.1",
        "  nb                0.4",
        "A note.",
        "Copies.",
        "nmf failed",
    ]


def test_an_ascii_terminal_gets_ascii() -> None:
    made = Console(width=40, no_color=True, file=io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    print_table(made, made_of("method", "MAP ±", rows=[["lsi", "0.5 ± 0.1"]], note="± half an interval"))
    made.file.seek(0)
    assert "0.5 +- 0.1" in made.file.read()
