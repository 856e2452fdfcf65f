"""Tables on a terminal of any width, in which every name, heading and figure stands whole.

Where a table is too wide, a name that leaves no room gets a line of its own, with its figures below; columns that may
go do; and where even that is too wide a row is a block, its name and then each figure beside its heading.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

INDENT = "    "  # of what stands below its name
BETWEEN = 2  # spaces between columns


@dataclass(frozen=True)
class Line:
    """A row: the parts of its name, parted only where they do not fit, its figures, none for a heading in between.

    `style` is rich's, of the whole row; `last_style` of its last figure.
    """

    name: Sequence[str]
    figures: Sequence[str] = ()
    style: str = ""
    last_style: str = ""


def print_table(
    console: "Console",
    heading: str,
    columns: Sequence[str],
    lines: Sequence[Line],
    may_go: Sequence[str] = (),
    left: Sequence[str] = (),
) -> None:
    """Print a table under its headings: that of the names, and those of the figures.

    Columns of `may_go` are left out where there is no room, the first of them first, and said to be below the table.
    Those of `left` are set flush left.
    """
    widths = {name: max(_width(name), *_widths(lines, place)) for place, name in enumerate(columns)}
    least, gone = _width(heading), []
    for name in may_go:
        if least + _total(widths) > console.width:
            del widths[name]
            gone.append(name)
    if least + _total(widths) > console.width:
        _print_blocks(console, columns, lines)
        return
    widest = max([least, *(_width(" ".join(line.name)) for line in lines)])
    room = min(widest, console.width - _total(widths))
    _print(console, heading.ljust(room), _set(dict(zip(columns, columns, strict=True)), widths, left), "bold")
    rule = "-" if console.options.ascii_only else "─"
    _print(console, rule * (room + _total(widths)))
    for line in lines:
        *above, last = _wrapped(line.name, room, console.width)
        if _width(last) > room and line.figures:
            above, last = [*above, last], ""
        for part in above:
            _print(console, part, style=line.style)
        figures = dict(zip(columns, line.figures, strict=True)) if line.figures else {}
        cells = _set(figures, widths, left) if figures else []
        _print(console, last.ljust(room) if cells else last, cells, line.style, line.last_style)
    if gone:
        note = f"Left out for want of room: {', '.join(gone)}."
        console.print(note, style="dim", markup=False, highlight=False)


def _print_blocks(console: "Console", columns: Sequence[str], lines: Sequence[Line]) -> None:
    """Print each row as a block: its name, then its figures beside their headings."""
    for line in lines:
        for part in _wrapped(line.name, console.width, console.width):
            _print(console, part, style=line.style)
        pairs = [
            f"{name} {figure.strip()}" for name, figure in zip(columns, line.figures, strict=False) if figure
        ]
        ended = [f"{pair}," for pair in pairs[:-1]] + pairs[-1:]
        for part in _packed(ended, console.width - len(INDENT)):
            _print(console, INDENT + part, style=line.style)


def _wrapped(parts: Sequence[str], room: int, width: int) -> list[str]:
    """Return a name's lines: one if it fits the room, else its parts packed into lines of the whole width."""
    whole = " ".join(parts)
    return [whole] if _width(whole) <= room else _packed(parts, width)


def _packed(parts: Sequence[str], width: int) -> list[str]:
    """Return parts packed into lines of at most this width; only one that is wider than a line is broken."""
    lines: list[str] = []
    for part in parts:
        if lines and _width(lines[-1]) + 1 + _width(part) <= width:
            lines[-1] += f" {part}"
        else:
            lines += [part[start : start + width] for start in range(0, len(part), width)]
    return lines


def _set(figures: dict[str, str], widths: dict[str, int], left: Sequence[str]) -> list[str]:
    """Return the figures of the columns that are shown, as wide as these are, with the space before them."""
    found = []
    for name, width in widths.items():
        figure = figures[name]
        pad = " " * (width - _width(figure))
        found.append(" " * BETWEEN + (figure + pad if name in left else pad + figure))
    return found


def _print(
    console: "Console", name: str, cells: Sequence[str] = (), style: str = "", last_style: str = ""
) -> None:
    from rich.text import Text

    *others, last = cells or [""]
    text = Text.assemble("".join([name, *others]), (last, last_style), style=style)
    text.rstrip()
    console.print(text, soft_wrap=True)


def _width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _widths(lines: Sequence[Line], place: int) -> list[int]:
    return [_width(line.figures[place]) for line in lines if line.figures]


def _total(widths: dict[str, int]) -> int:
    return sum(width + BETWEEN for width in widths.values())
