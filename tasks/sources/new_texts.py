"""New texts: documents without labels, from the user's files or standard input, for a model that was exported."""

import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from textbench.tasks import InputError
from textbench.tasks.sources.user_data import checked_text, column_separator
from textbench.tasks.sources.user_files import READERS, Row, extension_of, reader_of
from textbench.tasks.sources.user_source import Columns, Source, check_encoding, decoded, named, readable

STDIN = "-"
PLAIN = ".txt"


class Text(NamedTuple):
    """A text and where it stands: its file, and in that its line or row."""

    place: str
    text: str


class Reading(NamedTuple):
    """How texts are read: their column, what parts columns and the encoding, as commands take them, None by default.

    With `whole` a file of plain text is one text, without it each of its lines.
    """

    column: str = "text"
    separator: str | None = None
    encoding: str | None = None
    whole: bool = False


def read_texts(sources: Sequence[str], reading: Reading) -> tuple[list[Text], int]:
    """Return the texts of files (`-`: standard input) in order, and how many blank ones were left out.

    Raises InputError, naming file and line, for what cannot be read, and where no text is left.
    """
    if reading.encoding is not None:
        check_encoding(reading.encoding)
    found = []
    for source in dict.fromkeys(sources):
        found += list(_rows(source, reading))
    texts = [Text(row.place, checked_text(row)) for row in found]
    kept = [text for text in texts if text.text.strip()]
    if not kept:
        held = f"nothing but blank texts, {len(texts):,} of them" if texts else "no documents"
        raise InputError(f"{', '.join(map(_said, sources))} held {held}")
    return kept, len(texts) - len(kept)


def _said(source: str) -> str:
    return "standard input" if source == STDIN else named(source)


def _rows(source: str, reading: Reading) -> Iterator[Row]:
    path = Path(source)
    if source != STDIN and path.suffix.lower() != PLAIN:
        if extension_of(path) is None or path.is_dir():
            endings = ", ".join([PLAIN, *READERS])
            raise InputError(
                f"texts are read from files ending in {endings}, or from standard input (-), got {named(path)}"
            )
        if reading.whole:
            raise InputError(f"--whole is for plain text; {named(path)} has a document a row")
        yield from reader_of(path)(
            Source(
                path,
                Columns(reading.column, None, None),
                column_separator(reading.separator),
                reading.encoding,
            )
        )
        return
    given = sys.stdin.buffer.read() if source == STDIN else _read_bytes(path)
    content = decoded(_said(source), given, reading.encoding)
    if reading.whole:
        yield Row(_said(source), "1", content, None, None)
        return
    file = "" if source == STDIN else f"{named(path)}, "
    for number, line in enumerate(lines_of(content), 1):
        yield Row(f"{file}line {number}", str(number), line, None, None)


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines of a text without their ends. Within a line may stand U+2028 and the like, which end none."""
    return (line.removesuffix("\n") for line in io.StringIO(text, newline=None))


def _read_bytes(path: Path) -> bytes:
    with readable(path):
        return path.read_bytes()
