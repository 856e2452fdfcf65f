"""Tables as files: CSV, Markdown and LaTeX; and as HTML for a notebook."""

import csv
import html
import io
from collections.abc import Callable, Sequence

from textbench.flows.tables.table import Datum, Table

LONG = 40  # rows from which on a LaTeX table may break over pages
LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{"±": r"$\pm$", "≤": r"$\leq$", "−": r"$-$", "–": "--", "×": r"$\times$", "“": "``", "”": "''"},
}


def to_csv(table: Table) -> str:
    """Return CSV with a heading: figures at full precision, rates as fractions, marks and groups in last columns."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    marked = any(datum.mark for row in table.rows for datum in row)
    last = [*(["mark"] if marked else []), *(["group"] if table.groups else [])]
    writer.writerow([*(name for name, _ in table.headings), *last])
    for title, rows in table.grouped:
        for row in rows:
            marks = [" ".join(datum.mark for datum in row if datum.mark)] if marked else []
            writer.writerow([*(datum.raw for datum in row), *marks, *([title] if title else [])])
    return stream.getvalue()


def to_markdown(*tables: Table) -> str:
    """Return Markdown tables, each with its title, its note and what failed."""
    return "\n".join(line for table in tables for line in [*_markdown(table), ""])


def rows_in_markdown(table: Table) -> list[str]:
    """Return the lines of a table alone: its headings, and its rows."""
    lines = [_pipes([heading for _, heading in table.headings])]
    lines.append(_pipes(["---:" if is_right else "---" for is_right in table.is_right]))
    for title, rows in table.grouped:
        if title:
            lines.append(_pipes([f"*{title}*", *[""] * (len(table.headings) - 1)]))
        lines += [_pipes([_markdown_datum(datum) for datum in row]) for row in rows]
    return lines


def _markdown(table: Table) -> list[str]:
    lines = [f"**{table.title}**", "", *rows_in_markdown(table)]
    if note := _note(table):
        lines += ["", note.replace("*", r"\*")]
    return lines + (["", *(f"- {line}" for line in table.failures)] if table.failures else [])


def _markdown_datum(datum: Datum) -> str:
    if datum.is_code and "`" not in datum.text and "|" not in datum.text:
        text = f"`{datum.text}`"
    else:
        text = datum.marked.replace("|", r"\|").replace("*", r"\*")
    return f"**{text}**" if datum.is_strong else text


def _pipes(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _note(table: Table) -> str:
    return " ".join(filter(None, [table.note, table.warning]))


def to_latex(*tables: Table) -> str:
    r"""Return LaTeX tables of package booktabs, of longtable too where one has more than 40 rows."""
    packages = "booktabs,longtable" if any(len(table.rows) > LONG for table in tables) else "booktabs"
    lines = [line for table in tables for line in _latex(table)]
    return "\n".join([rf"% needs \usepackage{{{packages}}}", *lines, ""])


def _latex(table: Table) -> list[str]:
    columns = "".join("r" if is_right else "l" for is_right in table.is_right)
    head = _ampersands([escape_latex(heading) for _, heading in table.headings])
    body = []
    for number, (title, rows) in enumerate(table.grouped):
        if title:
            body += [r"\midrule"] * bool(number)
            body.append(rf"\multicolumn{{{len(table.headings)}}}{{l}}{{\emph{{{escape_latex(title)}}}}} \\")
        body += [_ampersands([_latex_datum(datum) for datum in row]) for row in rows]
    caption = rf"\caption{{{escape_latex(f'{table.title}. {_note(table)}'.strip())}}}"
    label = rf"\label{{tab:{table.name}}}"
    if len(table.rows) > LONG:
        lines = [rf"\begin{{longtable}}{{{columns}}}", rf"{caption}{label}\\", r"\toprule", head, r"\midrule"]
        lines += [r"\endhead", r"\bottomrule", r"\endlastfoot", *body, r"\end{longtable}"]
    else:
        lines = [
            r"\begin{table}",
            r"\centering",
            caption,
            label,
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
        ]
        lines += [head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return lines + [f"% {line}" for line in table.failures]


def _ampersands(texts: Sequence[str]) -> str:
    return rf"{' & '.join(texts)} \\"


def escape_latex(text: str) -> str:
    """Return `text` so that LaTeX prints it as it stands."""
    return "".join(LATEX.get(character, character) for character in text)


def _latex_datum(datum: Datum) -> str:
    text = escape_latex(datum.marked)
    text = rf"\texttt{{{text}}}" if datum.is_code else text
    return rf"\textbf{{{text}}}" if datum.is_strong else text


def to_html(table: Table) -> str:
    """Return a table as HTML, every text escaped, its note, its warning and what failed below it."""
    # A notebook sets flush right what does not say otherwise.
    aligned = [f' style="text-align: {"right" if is_right else "left"}"' for is_right in table.is_right]
    heads = zip(table.headings, aligned, strict=True)
    head = "".join(f"<th{style}>{html.escape(heading)}</th>" for (_, heading), style in heads)
    rows = []
    for group, members in table.grouped:
        if group:
            style = 'style="text-align: left"'
            rows.append(f'<th colspan="{len(table.headings)}" {style}>{html.escape(group)}</th>')
        for row in members:
            data = zip(row, aligned, strict=True)
            rows.append("".join(f"<td{style}>{_html_datum(datum)}</td>" for datum, style in data))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    title = html.escape(table.title)
    caption = f'<caption style="text-align: left; white-space: nowrap">{title}</caption>' if title else ""
    below = [*filter(None, [table.note, table.warning]), *table.failures]
    grid = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
    return grid + "".join(f"<p>{html.escape(line)}</p>" for line in below)


def _html_datum(datum: Datum) -> str:
    text = html.escape(datum.marked)
    text = f"<code>{text}</code>" if datum.is_code else text
    return f"<strong>{text}</strong>" if datum.is_strong or datum.style == "bold" else text


FORMATS: dict[str, Callable[[Table], str]] = {"csv": to_csv, "md": to_markdown, "tex": to_latex}
FORMAT_NAMES = {"csv": "CSV", "md": "Markdown", "tex": "LaTeX"}
