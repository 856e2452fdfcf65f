"""Reader of the SMART format: documents and queries as `.I` records with `.T` and `.W` fields; judgments as columns.

A record begins with `.I NAME`; a line that is a dot and one capital letter begins a field. The text of a record is
its title (`.T`) and its words (`.W`); authors, sources and citations are left out.

SMART's own judgments have four columns, of which the first two name a query and a document that answers it; the third
and the fourth are `0 0`, `0 0.000000` or what else the edition left there, and say nothing. Cranfield's have three
columns, the third a code.
"""

import re
from collections.abc import Iterator, Sequence

from textbench.tasks import InputError
from textbench.tasks.collections import Judgment

RECORD = re.compile(r"\.I[ \t]+(\S+)")
FIELD = re.compile(r"\.([A-Z])")
TEXT_FIELDS = ("T", "W")
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,9}")  # of a judgment; longer ones do not fit what they are stored in


def decoded(content: bytes) -> str:
    """Return the text of bytes that are UTF-8, else ISO-8859-1."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("iso-8859-1")


def records(content: bytes, place: str) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of every record, in order. Raises InputError naming the line that cannot be read."""
    return ((name, text) for _, name, text in placed_records(content, place))


def placed_records(content: bytes, place: str) -> Iterator[tuple[str, str, str]]:
    """Yield (file and line, name, text) of every record, in order, as `records` does.

    Raises InputError naming the line.
    """
    begun: tuple[str, str] | None = None
    field = ""
    fields: dict[str, list[str]] = {}
    for number, line in enumerate(decoded(content).splitlines(), start=1):
        bare = line.rstrip()
        if bare == ".I" or bare.startswith((".I ", ".I\t")):
            match = RECORD.fullmatch(bare)
            if not match:
                raise InputError(f"{place}, line {number}: a record begins with `.I NAME`, got {bare[:60]!r}")
            if begun is not None:
                yield *begun, _text(fields)
            begun, field, fields = (f"{place}, line {number}", match[1]), "", {}
        elif match := FIELD.fullmatch(bare):
            field = match[1]
            fields.setdefault(field, [])
        elif field:
            fields[field].append(line)
        elif bare:
            raise InputError(
                f"{place}, line {number}: text belongs to a field such as `.W`, got {bare[:60]!r}"
            )
    if begun is None:
        raise InputError(f"{place}: SMART records begin with `.I NAME`, got none")
    yield *begun, _text(fields)


def _text(fields: dict[str, list[str]]) -> str:
    return "\n".join("\n".join(fields[field]) for field in TEXT_FIELDS if field in fields).strip()


def judgments(content: bytes, place: str) -> list[Judgment]:
    """Return the judgments: three columns (query, document, code), or four, whose first two mean relevant (code 1).

    Numbers lose their leading zeros. Raises InputError naming the line.
    """
    found = []
    for number, line in enumerate(decoded(content).splitlines(), start=1):
        columns = line.split()
        if not columns:
            continue
        if len(columns) == 4:
            columns = [*columns[:2], "1"]
        if len(columns) != 3 or not WHOLE_NUMBER.fullmatch(columns[2]):
            raise InputError(
                f"{place}, line {number}: a judgment is `query document code`, or `query document` and two more "
                f"columns, got {line.strip()[:60]!r}"
            )
        found.append(Judgment(plain(columns[0]), plain(columns[1]), int(columns[2])))
    return found


def plain(name: str) -> str:
    """Return a name without leading zeros: `01` of one file is `1` of another."""
    return name.lstrip("0") or name[:1]


def by_position(judged: Sequence[Judgment], query_ids: Sequence[str]) -> bool:
    """Tell whether judgments number the queries 1, 2, ... in the order of their file, whatever they are called there.

    They do if a number among them is no query's name and all of them are positions.
    """
    names = set(query_ids)
    numbers = {judgment.query for judgment in judged}
    positions = {str(i) for i in range(1, len(query_ids) + 1)}
    return not numbers <= names and numbers <= positions
