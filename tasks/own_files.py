"""Readers of the user's files: every kind of file as rows, each with the place where it stands.

CSV and TSV (a header line, quoting as in RFC 4180), JSONL (one JSON object a line), each of them also gzipped; Parquet;
and a folder of one folder a class. All text is UTF-8, with or without a byte-order mark. Nothing is written.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from tasks import InputError

if TYPE_CHECKING:
    import pyarrow as pa

PARTS = ("train", "test")
# csv's own limit of 131,072 characters is below a long report; without any limit, a quote that is never closed
# would swallow the rest of a file of any size as one document.
FIELD_LIMIT = 100_000_000
SHOWN_NAMES = 20
SHOWN_CHARACTERS = 60


class Columns(NamedTuple):
    """The names of the columns to read."""

    text: str
    label: str | None
    part: str | None


class Row(NamedTuple):
    """A document as it was read, not yet checked: where it stands, and what its columns hold."""

    place: str
    text: Any
    label: Any
    part: Any


def reader_of(path: Path) -> Callable[[Path, Columns], Iterator[Row]]:
    """Return what reads a path into rows. Raises InputError where nothing is there or its kind is unknown."""
    with readable(path):
        if path.is_dir():
            return read_folder
        if not path.exists():
            raise InputError(f"there is no file or folder {named(path)}")
        is_file = path.is_file()
    extension = extension_of(path)
    if extension is None or not is_file:
        raise InputError(
            f"data must be a folder of class folders or a file ending in {', '.join(READERS)}, got {named(path)}"
        )
    return READERS[extension]


def extension_of(path: Path) -> str | None:
    """Return the ending that tells a file's kind, in lower case, or None."""
    return next((extension for extension in READERS if path.name.lower().endswith(extension)), None)


def _read_csv(path: Path, columns: Columns, delimiter: str) -> Iterator[Row]:
    csv.field_size_limit(FIELD_LIMIT)  # of the whole process, and left so: another thread may be reading
    with readable(path), _binary(path) as stream:
        reader = csv.reader(_lines(path, stream), delimiter=delimiter, strict=True)
        start = 1
        try:
            header = next(reader, [])
            _check_columns(named(path), columns, header)
            positions = [None if name is None else header.index(name) for name in columns]
            start = reader.line_num + 1
            for fields in reader:
                place = f"{named(path)}, line {start}"
                if fields and len(fields) != len(header):
                    raise InputError(
                        f"{place}: a row must have {len(header)} columns like the header, got {len(fields)}"
                    )
                if fields:
                    yield Row(place, *(None if at is None else fields[at] for at in positions))
                start = reader.line_num + 1
        except csv.Error as error:
            raise InputError(_csv_message(f"{named(path)}, line {start}", str(error))) from error


def _csv_message(place: str, error: str) -> str:
    if "field limit" in error:
        limit = csv.field_size_limit()
        return f"{place}: a field must have at most {limit} characters, got more; is a quote left open?"
    if "unexpected end" in error:
        return f"{place}: a quoted field must end with a quote, got the end of the file"
    return f"{place}: a quoted field must double the quotes inside it, got text after a single one"


def _read_jsonl(path: Path, columns: Columns) -> Iterator[Row]:
    with readable(path), _binary(path) as stream:
        for number, line in enumerate(_lines(path, stream), 1):
            if not line.strip():
                continue
            place = f"{named(path)}, line {number}"
            try:
                row = json.loads(line, object_pairs_hook=_pairs, parse_constant=_no_constant)
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"{place}: a line must be one JSON object, got {_json_fault(error)}"
                ) from error
            if not isinstance(row, dict):
                raise InputError(f"{place}: a line must be one JSON object, got {shown(row)}")
            _check_columns(place, columns, list(row))
            yield Row(place, *(None if name is None else row[name] for name in columns))


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) < len(pairs):
        name, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the name {shown(name)} twice in an object")
    return names


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name}, which is not JSON")


def _json_fault(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos + 1}"
    return "objects nested too deeply" if isinstance(error, RecursionError) else str(error)


def _read_parquet(path: Path, columns: Columns) -> Iterator[Row]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with readable(path), parquet.ParquetFile(path) as file:
            _check_columns(named(path), columns, file.schema_arrow.names)
            _check_types(path, columns, file.schema_arrow)
            table = file.read([name for name in columns if name is not None])
            absent = [None] * table.num_rows
            values = [absent if name is None else table[name].to_pylist() for name in columns]
    except (pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
        raise InputError(f"{named(path)} must be a sound Parquet file, got: {shown(str(error))}") from error
    for number, row in enumerate(zip(*values, strict=True), 1):
        yield Row(f"{named(path)}, row {number}", *row)


def _check_types(path: Path, columns: Columns, schema: pa.Schema) -> None:
    from pyarrow import types

    def is_string(kind: pa.DataType) -> bool:
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)

    def is_label(kind: pa.DataType) -> bool:
        is_list = types.is_list(kind) or types.is_large_list(kind)
        is_whole = types.is_integer(kind) or types.is_boolean(kind)
        return is_string(kind.value_type) if is_list else is_whole or is_string(kind)

    wanted: list[tuple[str | None, Callable[[pa.DataType], bool], str]] = [
        (columns.text, is_string, "strings"),
        (columns.label, is_label, "strings, integers or lists of strings"),
        (columns.part, is_string, "strings"),
    ]
    for column, is_fit, accepted in wanted:
        if column is not None and not is_fit(schema.field(column).type):
            kind = shown(str(schema.field(column).type))
            raise InputError(f"{named(path)}: column {shown(column)} must hold {accepted}, got type {kind}")


def read_folder(path: Path, _columns: Columns) -> Iterator[Row]:
    """Yield the files of a folder of class folders, or of one whose `train` and `test` hold the class folders."""
    files, folders = walk(path)
    inside: dict[Path, list[Path]] = {folder: [] for folder in [path, *folders]}
    for entry in files + folders:
        inside[entry.parent].append(entry)
    is_folder = set(folders)
    is_split = {entry.name for entry in inside[path] if entry in is_folder} == set(PARTS)
    for root in [path / part for part in PARTS] if is_split else [path]:
        classes = [entry for entry in inside[root] if entry in is_folder]
        if not classes:
            count = len(inside[root])
            raise InputError(f"{named(root)} must hold one folder a class, got {count} files and no folder")
        for folder in classes:
            if not inside[folder]:
                raise InputError(f"{named(folder)}: a class folder must hold at least one file, got none")
            for file in inside[folder]:
                if file in is_folder:
                    raise InputError(
                        f"{named(folder)}: a class folder must hold files only, got {named(file)}"
                    )
                yield Row(named(file), _read_text(file), folder.name, root.name if is_split else None)


def _read_text(path: Path) -> str:
    with readable(path):
        content = path.read_bytes()
    return decoded(named(path), content)


def decoded(place: str, content: bytes) -> str:
    """Return bytes as text. Raises InputError, naming the place, for what is not UTF-8."""
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise InputError(_not_utf8(place, content[error.start], error.start)) from error


def walk(path: Path) -> tuple[list[Path], list[Path]]:
    """Return the files and the folders below a folder, sorted. Raises InputError for links that lead out of it."""
    files: list[Path] = []
    folders: list[Path] = []
    waiting = [path]
    while waiting:
        folder = waiting.pop()
        with readable(folder):
            for entry in folder.iterdir():
                if entry.name.startswith("."):
                    continue
                if entry.is_symlink():
                    _check_link(path, entry)
                if entry.is_dir():
                    folders.append(entry)
                    waiting.append(entry)
                elif entry.is_file():
                    files.append(entry)
                else:
                    raise InputError(f"{named(entry)} must be a file or a folder, got something else")
    return sorted(files), sorted(folders)


def _check_link(folder: Path, link: Path) -> None:
    # A link to a folder inside could only repeat documents, or lead in a circle.
    target = Path(os.path.realpath(link))
    if not target.is_relative_to(folder.resolve()) or not target.is_file():
        raise InputError(f"{named(link)}: a link must lead to a file in the same data, got {named(target)}")


READERS: dict[str, Callable[[Path, Columns], Iterator[Row]]] = {
    ".csv": partial(_read_csv, delimiter=","),
    ".csv.gz": partial(_read_csv, delimiter=","),
    ".tsv": partial(_read_csv, delimiter="\t"),
    ".tsv.gz": partial(_read_csv, delimiter="\t"),
    ".jsonl": _read_jsonl,
    ".jsonl.gz": _read_jsonl,
    ".parquet": _read_parquet,
}


def _check_columns(place: str, columns: Columns, names: list[str]) -> None:
    """Raise InputError unless every column wanted is there and no two have one name; unnamed ones do not count."""
    repeated = [name for name, count in Counter(names).items() if count > 1 and name]
    if repeated:
        raise InputError(f"{place}: column names must differ, got {shown(repeated[0])} twice")
    for kind, name in zip(("text", "label", "split"), columns, strict=True):
        if name is None or name in names:
            continue
        if not names:
            raise InputError(f"{place}: there must be a {kind} column {shown(name)}, got no columns")
        listed = [shown(other) for other in names[:SHOWN_NAMES]]
        rest = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
        close = difflib.get_close_matches(shown(name), listed, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise InputError(
            f"{place}: there must be a {kind} column {shown(name)}, got the columns {', '.join(listed)}{rest}{hint}"
        )


def _lines(path: Path, stream: BinaryIO) -> Iterator[str]:
    """Yield the lines of a stream of bytes with their line ends. Raises InputError for what is not text."""
    try:
        for number, line in enumerate(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""), 1):
            if "\0" in line:
                raise InputError(
                    f"{named(path)}, line {number}: text must hold no NUL byte, got one; is it UTF-8?"
                )
            yield line
    except UnicodeDecodeError as error:
        # The decoder works in blocks and knows neither line nor place, so they are looked up.
        raise _first_not_utf8(path) from error


def _first_not_utf8(path: Path) -> InputError:
    number = 1
    with readable(path), _binary(path) as stream:
        for line in stream:
            try:
                line.decode()
            except UnicodeDecodeError as error:
                lines = (line[: error.start] + b".").splitlines()
                place = f"{named(path)}, line {number + len(lines) - 1}"
                return _not_utf8(place, line[error.start], len(lines[-1]) - 1)
            number += len(line.splitlines())
    return InputError(f"{named(path)} must not change while it is read, and it did")


def _not_utf8(place: str, byte: int, offset: int) -> InputError:
    return InputError(f"{place}: text must be UTF-8, got byte 0x{byte:02x} at byte offset {offset}")


def _binary(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if path.name.lower().endswith(".gz") else path.open("rb")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn the errors of the system while a path is read into InputErrors."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or shown(str(error))
        raise InputError(f"{named(path)} must be readable, got: {reason}") from error


def named(path: Path | str) -> str:
    """Return a path for a message of one line."""
    return str(path) if str(path).isprintable() else ascii(str(path))


def shown(value: Any) -> str:
    """Return a value for a message of one line: quoted and cut when long."""
    if isinstance(value, str):
        return repr(value) if len(value) <= SHOWN_CHARACTERS else f"{value[:SHOWN_CHARACTERS]!r}..."
    if isinstance(value, list | dict):
        # A value nested deeply enough cannot be printed.
        return "a list" if isinstance(value, list) else "an object"
    return "null" if value is None else shown(str(value)).replace("'", "")
