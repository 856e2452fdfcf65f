"""Tables as files: CSV reads back with every digit, Markdown and LaTeX are whole and escaped."""

import csv
import io
import re

from textbench.flows.tables.formats import to_csv, to_html, to_latex, to_markdown
from textbench.flows.tables.table import NOTHING, Datum, Table, code, number

HEADINGS = [("method", "method"), ("accuracy", "accuracy, %"), ("command", "command")]


def table(n: int = 1) -> Table:
    row = [
        Datum("a_b & c|d", mark="best", is_strong=True),
        number(0.123456789, scale=100),
        code("run --x_y 'z'"),
    ]
    return Table("t", "Title 5 %", HEADINGS, [row, [Datum("other"), NOTHING, NOTHING]] * n, "Note ± 1.")


def test_csv_keeps_every_digit_and_the_marks() -> None:
    lines = list(csv.DictReader(io.StringIO(to_csv(table()))))
    assert lines[0] == {
        "method": "a_b & c|d",
        "accuracy": "0.123456789",
        "command": "run --x_y 'z'",
        "mark": "best",
    }
    assert (lines[1]["accuracy"], lines[1]["mark"]) == ("", "")


def test_markdown_has_as_many_cells_in_every_line() -> None:
    lines = [line for line in to_markdown(table()).splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {4}
    assert lines[1] == "| --- | ---: | --- |"
    assert r"**a_b & c\|d best**" in lines[2]
    assert "12.35" in lines[2]


def test_latex_is_booktabs_and_escaped() -> None:
    text = to_latex(table())
    for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
        assert text.count(rule) == 1
    assert r"\textbf{a\_b \& c|d best} & 12.35 & \texttt{run --x\_y 'z'} \\" in text
    assert r"\begin{tabular}{lrl}" in text
    assert r"\caption{Title 5 \%. Note $\pm$ 1.}" in text
    assert {text.count(rf"\begin{{{e}}}") - text.count(rf"\end{{{e}}}") for e in ("table", "tabular")} == {0}


def test_a_long_latex_table_runs_over_pages() -> None:
    text = to_latex(table(30))
    assert r"\begin{longtable}{lrl}" in text
    assert r"\begin{table}" not in text
    assert text.count(r"\\") == 60 + 2


def test_a_column_is_numeric_where_all_that_is_there_is_a_number() -> None:
    assert table().numeric == (False, True, False)
    assert Table("t", "t", HEADINGS, []).numeric == (False, False, False)


def test_several_tables_are_parted_and_need_their_packages_once() -> None:
    failing = Table("u", "Other", HEADINGS, [], warning="Copies.", failures=["nmf failed"])
    text = to_markdown(table(), failing)
    assert "Note ± 1.\n\n**Other**" in text
    assert text.endswith("Copies.\n\n- nmf failed\n")
    latex = to_latex(table(), failing)
    assert latex.count("usepackage") == 1
    assert "% nmf failed" in latex


def test_html_is_whole_and_escaped() -> None:
    page = to_html(Table("t", "<b> & co", HEADINGS, table().rows, "1 < 2", failures=["a > b"]))
    assert "<table><caption" in page and "&lt;b&gt; &amp; co</caption>" in page
    assert "<strong>a_b &amp; c|d best</strong>" in page
    assert '<td style="text-align: right">12.35</td>' in page
    assert "<code>run --x_y &#x27;z&#x27;</code>" in page
    assert page.endswith("</table><p>1 &lt; 2</p><p>a &gt; b</p>")
    assert to_html(Table("t", "t", HEADINGS, [], failures=["a"])) == "<p>a</p>"
