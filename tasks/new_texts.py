"""New texts: documents without labels, from the user's files or standard input, for a model that was exported."""

import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tasks import InputError
from tasks.own_data import checked_text
from tasks.own_files import READERS, Row, extension_of, reader_of
from tasks.own_source import Columns, Source, decoded, named, readable

STDIN = "-"
PLAIN = ".txt"


class Text(NamedTuple):
    """A text and where it stands: its file, and in that its line or row."""

    place: str
    text: str


def read_texts(sources: Sequence[str], column: str, *, whole: bool = False) -> tuple[list[Text], int]:
    """Return the texts of files (`-`: standard input) in order, and how many blank ones were left out.

    Of files with columns the one named `column` is read; of plain text each line is a text, or the file if `whole`.
    Raises InputError, naming file and line, for what cannot be read, and where no text is left.
    """
    found = []
    for source in dict.fromkeys(sources):
        found += list(_rows(source, column, whole=whole))
    texts = [Text(row.place, checked_text(row)) for row in found]
    kept = [text for text in texts if text.text.strip()]
    if not kept:
        blank = f", {len(texts)} of them blank" if texts else ""
        raise InputError(f"{', '.join(map(_said, sources))} held no documents{blank}")
    return kept, len(texts) - len(kept)


def _said(source: str) -> str:
    return "standard input" if source == STDIN else named(source)


def _rows(source: str, column: str, *, whole: bool) -> Iterator[Row]:
    path = Path(source)
    if source != STDIN and path.suffix.lower() != PLAIN:
        if extension_of(path) is None or path.is_dir():
            endings = ", ".join([PLAIN, *READERS])
            raise InputError(
                f"texts are read from files ending in {endings}, or from standard input (-), got {named(path)}"
            )
        if whole:
            raise InputError(f"--whole is for plain text; {named(path)} has a document a row")
        yield from reader_of(path)(Source(path, Columns(column, None, None)))
        return
    content = decoded(_said(source), sys.stdin.buffer.read() if source == STDIN else _read_bytes(path))
    if whole:
        yield Row(_said(source), "1", content, None, None)
        return
    file = "" if source == STDIN else f"{named(path)}, "
    for number, line in enumerate(io.StringIO(content, newline=None), 1):
        yield Row(f"{file}line {number}", str(number), line.removesuffix("\n"), None, None)


def _read_bytes(path: Path) -> bytes:
    with readable(path):
        return path.read_bytes()
