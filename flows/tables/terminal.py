"""Tables on a terminal of any width, in which every name, heading and figure stands whole.

Where a table is too wide, a name that leaves no room gets a line of its own, with its figures below; columns that may
go do; and where even that is too wide a row is a block, its name and then each figure beside its heading.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textbench.flows.tables.table import Datum, Table

if TYPE_CHECKING:
    from rich.console import Console

BEST = ">"  # stands before the name of the best
MARKS = (BEST, "*")  # are explained in notes
INDENT = "    "  # of what stands below its name
BETWEEN = 2  # spaces between columns


@dataclass(frozen=True)
class _Line:
    """A row: the parts of its name, and its figures by column, none for a heading in between; `style` is the row's."""

    name: Sequence[str]
    figures: Mapping[str, Datum]
    style: str


def print_table(console: "Console", table: Table) -> None:
    """Print a table under its title and its note below it; of one without rows what failed alone."""
    if table.rows:
        if table.title:
            _say(console, table.title, "italic")
        _print_rows(console, table)
        if table.note:
            _say(console, _filled(table.note, console.width), "dim")
        if table.warning:
            _say(console, table.warning, "yellow")
    for line in table.failures:
        _say(console, line, "red")


def _say(console: "Console", text: str, style: str) -> None:
    console.print(_plain(console, text), style=style, markup=False, highlight=False)


def _filled(text: str, width: int) -> str:
    """Return a note in lines of a width, none of which ends with a mark that the next explains."""
    bound = text
    for mark in MARKS:
        bound = bound.replace(f" {mark} ", f" {mark}\xa0")
    return textwrap.fill(bound, width, break_on_hyphens=False).replace("\xa0", " ")


def _print_rows(console: "Console", table: Table) -> None:
    """Print the rows under their headings: that of the names, which is the first, and those of the figures."""
    (_, heading), *columns = table.headings
    headings = {name: Datum(_plain(console, text)) for name, text in columns}
    lines = _lines(console, table)
    widths = {
        name: max(
            _width(line.figures[name].text) for line in [_Line([], headings, ""), *lines] if line.figures
        )
        for name in headings
    }
    is_right = dict(zip(headings, table.is_right[1:], strict=True))
    indented = heading if not any(row[0].is_strong for row in table.rows) else f"  {heading}"
    least, gone = _width(indented), []
    for name in table.may_go:
        if name in widths and least + _total(widths) > console.width:
            del widths[name]
            gone.append(headings[name].text)
    if least + _total(widths) > console.width:
        _print_blocks(console, headings, lines)
        return
    widest = max([least, *(_width(" ".join(line.name)) for line in lines)])
    room = min(widest, console.width - _total(widths))
    _print(console, indented.ljust(room), _set(headings, widths, is_right), "bold")
    _print(console, ("-" if console.options.ascii_only else "─") * (room + _total(widths)))
    for line in lines:
        *above, last = _wrapped(line.name, room, console.width)
        if _width(last) > room and line.figures:
            above, last = [*above, last], ""
        for part in above:
            _print(console, part, style=line.style)
        cells = _set(line.figures, widths, is_right) if line.figures else []
        _print(console, last.ljust(room) if cells else last, cells, line.style)
    if gone:
        _say(console, f"Left out for want of room: {', '.join(gone)}.", "dim")


def _lines(console: "Console", table: Table) -> list[_Line]:
    """Return the rows as lines; where one is the best, its name has a mark and the others room for it."""
    is_pointed, lines = any(row[0].is_strong for row in table.rows), []
    starts = {id(rows[0]): title for title, rows in table.grouped if title}
    for row in table.rows:
        name, *others = row
        if id(row) in starts:
            lines.append(_Line([starts[id(row)]], {}, "italic"))
        first, *parts = name.parts or [name.text]
        mark = f"{BEST if name.is_strong else ' '} " if is_pointed else ""
        texts = [f"{datum.text} {datum.mark}" if datum.mark else datum.text for datum in others]
        figures = {
            column: Datum(_plain(console, text), style=datum.style)
            for (column, _), text, datum in zip(table.headings[1:], texts, others, strict=True)
        }
        style = name.style or ("bold" if name.is_strong else "")
        lines.append(_Line([mark + first, *parts], figures if any(texts) else {}, style))
    return lines


def _plain(console: "Console", text: str) -> str:
    return text.replace("±", "+-") if console.options.ascii_only else text


def _print_blocks(console: "Console", headings: Mapping[str, Datum], lines: Sequence[_Line]) -> None:
    """Print each row as a block: its name, then its figures beside their headings."""
    for line in lines:
        for part in _wrapped(line.name, console.width, console.width):
            _print(console, part, style=line.style)
        pairs = [
            f"{headings[name].text} {datum.text.strip()}"
            for name, datum in line.figures.items()
            if datum.text
        ]
        ended = [f"{pair}," for pair in pairs[:-1]] + pairs[-1:]
        for part in _packed(ended, console.width - len(INDENT)):
            _print(console, INDENT + part, style=line.style)


def _wrapped(parts: Sequence[str], room: int, width: int) -> list[str]:
    """Return a name's lines: one if it fits the room, else its parts packed into lines of the whole width."""
    whole = " ".join(parts)
    return [whole] if _width(whole) <= room else _packed(parts, width)


def _packed(parts: Sequence[str], width: int) -> list[str]:
    """Return parts packed into lines of at most this width; only one that is wider than a line is broken, at spaces."""
    lines: list[str] = []
    for part in parts:
        if lines and _width(lines[-1]) + 1 + _width(part) <= width:
            lines[-1] += f" {part}"
        else:
            lines += textwrap.wrap(part, width, subsequent_indent=INDENT, break_on_hyphens=False)
    return lines


def _set(
    figures: Mapping[str, Datum], widths: Mapping[str, int], is_right: Mapping[str, bool]
) -> list[tuple[str, str]]:
    """Return the figures of the columns shown, as wide as these are, with the space before them, and their styles."""
    found = []
    for name, width in widths.items():
        figure = figures[name]
        pad = " " * (width - _width(figure.text))
        text = pad + figure.text if is_right[name] else figure.text + pad
        found.append((" " * BETWEEN + text, figure.style))
    return found


def _print(console: "Console", name: str, cells: Sequence[tuple[str, str]] = (), style: str = "") -> None:
    from rich.text import Text

    text = Text.assemble(name, *cells, style=style)
    text.rstrip()
    console.print(text, soft_wrap=True)


def _width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _total(widths: Mapping[str, int]) -> int:
    return sum(width + BETWEEN for width in widths.values())
