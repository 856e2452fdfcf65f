"""Tables of the report: one description, and from it HTML's rows, CSV, Markdown and LaTeX."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from flows.leaderboard import escape_latex

LOCAL, RECORDED = "measured here", "recorded in the repository"  # whose figures they are
LONG = 40  # rows from which on a LaTeX table may break over pages
SYMBOLS = {"±": r"$\pm$", "≤": r"$\leq$", "−": r"$-$", "–": "--", "×": r"$\times$", "“": "``", "”": "''"}


@dataclass(frozen=True)
class Cell:
    """What stands in one place: `text` for people; `value`, at full precision, for CSV and sorting (None: the text).

    `mark` is a word that is shown beside the text ("best"), so that nothing is said by colour alone; `link` is the id
    of a place in the page; `is_code` marks commands and digests.
    """

    text: str
    value: Any = None
    mark: str = ""
    link: str = ""
    is_strong: bool = False
    is_code: bool = False

    @property
    def raw(self) -> Any:
        """What CSV gets and sorting goes by."""
        return self.text if self.value is None else self.value


NOTHING = Cell("-", "")


def slug(text: str) -> str:
    """Return a text as an id in the page and a file's name: what is no letter or digit becomes a hyphen."""
    return "".join(character if character.isalnum() else "-" for character in text)


@dataclass(frozen=True)
class Table:
    """A table: `name` is its id in the page and its file's name; headings are (name in CSV, name for people).

    `filters` are the columns, by name in CSV, that readers may choose values of. `source` says whose figures these are.
    """

    name: str
    title: str
    headings: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    source: str = ""
    filters: Sequence[str] = ()
    is_folded: bool = False
    numeric: Sequence[bool] = field(init=False, default=())

    def __post_init__(self) -> None:
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.headings)
        object.__setattr__(self, "numeric", tuple(_is_numeric(column) for column in columns))

    def values(self, name: str) -> list[str]:
        """Return the different texts of a column, in order."""
        place = [column for column, _ in self.headings].index(name)
        return list(dict.fromkeys(row[place].text for row in self.rows))


def _is_numeric(column: Sequence[Cell]) -> bool:
    values = [cell.raw for cell in column if cell.raw != ""]
    return bool(values) and all(isinstance(value, int | float) for value in values)


def number(value: float | None, places: int = 2, scale: float = 1, mark: str = "") -> Cell:
    """Return a number's cell; None and nan are shown as a dash."""
    if value is None or value != value:
        return NOTHING
    return Cell(f"{scale * value:,.{places}f}", value, mark, is_strong=bool(mark))


def code(text: str, link: str = "") -> Cell:
    """Return the cell of a command, a digest or a key."""
    return Cell(text, link=link, is_code=True)


def to_csv(table: Table) -> str:
    """Return CSV with a heading: figures at full precision, rates as fractions, marks in a last column."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    marked = any(cell.mark for row in table.rows for cell in row)
    writer.writerow([*(name for name, _ in table.headings), *(["mark"] if marked else [])])
    for row in table.rows:
        marks = [" ".join(cell.mark for cell in row if cell.mark)] if marked else []
        writer.writerow([*(cell.raw for cell in row), *marks])
    return stream.getvalue()


def to_markdown(table: Table) -> str:
    """Return a Markdown table with its title and note."""

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    def shown(cell: Cell) -> str:
        text = " ".join(f"{cell.text} {cell.mark}".split()).replace("|", r"\|").replace("*", r"\*")
        text = f"`{cell.text}`" if cell.is_code and "`" not in cell.text and "|" not in cell.text else text
        return f"**{text}**" if cell.is_strong else text

    lines = [f"**{table.title}**", "", line([heading for _, heading in table.headings])]
    lines.append(
        line(["---:" if numeric else "---" for numeric in table.numeric or [False] * len(table.headings)])
    )
    lines += [line([shown(cell) for cell in row]) for row in table.rows]
    return "\n".join([*lines, "", *([table.note, ""] if table.note else [])])


def to_latex(table: Table) -> str:
    r"""Return a LaTeX table of package booktabs, of longtable too where it has more than 40 rows."""
    is_long = len(table.rows) > LONG
    columns = "".join("r" if numeric else "l" for numeric in table.numeric or [False] * len(table.headings))
    head = " & ".join(_latex(heading) for _, heading in table.headings) + r" \\"
    body = [" & ".join(map(_latex_cell, row)) + r" \\" for row in table.rows]
    caption = rf"\caption{{{_latex(' '.join([f'{table.title}.', table.note]).strip())}}}"
    label = rf"\label{{tab:{table.name}}}"
    if is_long:
        return "\n".join([
            r"% needs \usepackage{booktabs,longtable}", rf"\begin{{longtable}}{{{columns}}}", rf"{caption}{label}\\",
            r"\toprule", head, r"\midrule", r"\endhead", r"\bottomrule", r"\endlastfoot", *body, r"\end{longtable}", "",
        ])  # fmt: skip
    return "\n".join([
        r"% needs \usepackage{booktabs}", r"\begin{table}", r"\centering", caption, label,
        rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}",
        r"\end{table}", "",
    ])  # fmt: skip


def _latex(text: str) -> str:
    return "".join(SYMBOLS.get(character) or escape_latex(character) for character in text)


def _latex_cell(cell: Cell) -> str:
    text = _latex(" ".join(f"{cell.text} {cell.mark}".split()))
    text = rf"\texttt{{{text}}}" if cell.is_code else text
    return rf"\textbf{{{text}}}" if cell.is_strong else text


FORMATS: dict[str, Callable[[Table], str]] = {"csv": to_csv, "md": to_markdown, "tex": to_latex}
FORMAT_NAMES = {"csv": "CSV", "md": "Markdown", "tex": "LaTeX"}
