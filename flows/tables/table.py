"""A table: one description, from which `flows.tables.terminal` and `flows.tables.formats` write."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Datum:
    """What stands in one place: `text` for people; `value`, at full precision, for CSV and sorting (None: the text).

    `mark` is a word that is shown beside the text ("best"), so that nothing is said by colour alone; `link` is the id
    of a place in the page; `is_code` marks commands and digests. A row is of the best where its first place
    `is_strong`. `parts` are the text's where a narrow terminal may break it, `style` is rich's, of the first place that
    of the whole row.
    """

    text: str
    value: Any = None
    mark: str = ""
    link: str = ""
    is_strong: bool = False
    is_code: bool = False
    parts: Sequence[str] = ()
    style: str = ""

    @property
    def raw(self) -> Any:
        """What CSV gets and sorting goes by."""
        return self.text if self.value is None else self.value

    @property
    def marked(self) -> str:
        """The text with its mark, on one line."""
        return " ".join(f"{self.text} {self.mark}".split())


NOTHING, EMPTY = Datum("-", ""), Datum("")
LOCAL, RECORDED = "measured here", "recorded in the repository"  # whose figures a table has


def slug(text: str) -> str:
    """Return a text as an id in the page and a file's name: what is no letter or digit becomes a hyphen."""
    return "".join(character if character.isalnum() else "-" for character in text)


@dataclass(frozen=True)
class Table:
    """A table: `name` is its id in the page and its file's name; headings are (name in CSV, name for people).

    `note` explains the figures, `warning` says what is wrong with the data, `failures` are lines on what has no row,
    `source` says whose figures these are. Of the columns, by name in CSV: those of `filters` readers may choose values
    of, those of `may_go` are left out of a terminal that is too narrow, the first of them first, and those of `right`
    are set flush right though not all that stands there is a number. `groups`, if there are some, are titles that part
    the rows, each with the number of rows below it.
    """

    name: str
    title: str
    headings: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Datum]]
    note: str = ""
    source: str = ""
    filters: Sequence[str] = ()
    is_folded: bool = False
    warning: str = ""
    failures: Sequence[str] = ()
    may_go: Sequence[str] = ()
    right: Sequence[str] = ()
    groups: Sequence[tuple[str, int]] = ()
    numeric: Sequence[bool] = field(init=False, default=())

    def __post_init__(self) -> None:
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.headings)
        object.__setattr__(self, "numeric", tuple(_is_numeric(column) for column in columns))

    @property
    def is_right(self) -> list[bool]:
        """Which columns are set flush right."""
        return [n or name in self.right for n, (name, _) in zip(self.numeric, self.headings, strict=True)]

    @property
    def grouped(self) -> list[tuple[str, Sequence[Sequence[Datum]]]]:
        """The rows below each title; all of them below none where they are not parted."""
        found, start = [], 0
        for title, n_rows in self.groups or [("", len(self.rows))]:
            found.append((title, self.rows[start : start + n_rows]))
            start += n_rows
        return found

    def values(self, name: str) -> list[str]:
        """Return the different texts of a column, in order."""
        place = [column for column, _ in self.headings].index(name)
        return list(dict.fromkeys(row[place].text for row in self.rows))


def _is_numeric(column: Sequence[Datum]) -> bool:
    values = [datum.raw for datum in column if datum.raw != ""]
    return bool(values) and all(isinstance(value, int | float) for value in values)


def of_texts(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str | Datum]],
    note: str = "",
    left: Sequence[str] = (),
) -> Table:
    """Return a table for a terminal: names and figures as texts, the figures flush right but for columns of `left`."""
    data = [[place if isinstance(place, Datum) else Datum(place) for place in row] for row in rows]
    right = [heading for heading in headings[1:] if heading not in left]
    return Table("table", title, [(heading, heading) for heading in headings], data, note, right=right)


def datum(value: Any) -> Datum:
    """Return a value as it is shown; None and nan are shown as a dash."""
    if value is None or value != value:
        return NOTHING
    if isinstance(value, float):
        return Datum(f"{value:,.2f}" if abs(value) >= 1 else f"{value:.3g}", value)
    return Datum(f"{value:,}", value) if isinstance(value, int) else Datum(str(value))


def number(value: float | None, places: int = 2, scale: float = 1, mark: str = "") -> Datum:
    """Return a number as a datum; None and nan are shown as a dash."""
    if value is None or value != value:
        return NOTHING
    return Datum(f"{scale * value:,.{places}f}", value, mark, is_strong=bool(mark))


def code(text: str, link: str = "") -> Datum:
    """Return a command, a digest or a key as a datum."""
    return Datum(text, link=link, is_code=True)
