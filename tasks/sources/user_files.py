"""Readers of the user's files: every kind of file as rows, each with the place where it stands.

CSV and TSV (a header line, quoting as in RFC 4180), JSONL (one JSON object a line) and JSON (a list of objects), each
of them also gzipped; Parquet; an Excel workbook's first sheet, where openpyxl is installed; and a folder of one folder
a class. Nothing is written.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from textbench.tasks import InputError
from textbench.tasks.sources.user_source import Columns, Source, named, readable, shown

if TYPE_CHECKING:
    import pyarrow as pa

PARTS = ("train", "test")
VALIDATION = ("validation", "valid", "val", "dev")  # names of the part on which tuning is done
# csv's own limit of 131,072 characters is below a long report; without any limit, a quote that is never closed
# would swallow the rest of a file of any size as one document.
FIELD_LIMIT = 100_000_000
SHOWN_NAMES = 20
BATCH_ROWS = 4096  # of Parquet, read at once
SEPARATORS = (";", "\t", "|", ",")  # that a file with a single column may have


class Row(NamedTuple):
    """A document as it was read, not yet checked: where it stands, and what its columns hold.

    `id` names it inside the data: its line, row or record, counted from 1, or its file inside the folder.
    """

    place: str
    id: str
    text: Any
    label: Any
    part: Any


Reader = Callable[[Source], Iterator[Row]]


def reader_of(path: Path) -> Reader:
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
            f"data must be a folder of class folders or a file ending in {', '.join(READERS)}, got {named(path)}; "
            "of another kind, save it as CSV"
        )
    return READERS[extension]


def extension_of(path: Path) -> str | None:
    """Return the ending that tells a file's kind, in lower case, or None."""
    return next((extension for extension in READERS if path.name.lower().endswith(extension)), None)


def _read_csv(source: Source, delimiter: str) -> Iterator[Row]:
    # By Python's reader: Arrow's knows no lines, and joins what stands behind a closing quote to it without a word.
    csv.field_size_limit(FIELD_LIMIT)  # of the whole process, and left so: another thread may be reading
    path, columns = source.path, source.columns
    reader = csv.reader(source.lines(), delimiter=source.separator or delimiter, strict=True)
    start = 1
    try:
        header = next(reader, [])
        _check_separator(path, columns, header)
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
                yield Row(place, str(start), *(None if at is None else fields[at] for at in positions))
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError(_csv_message(f"{named(path)}, line {start}", str(error))) from error


def _check_separator(path: Path, columns: Columns, header: list[str]) -> None:
    """Raise InputError for a header of one column in which another separator would find the columns that are wanted."""
    wanted = {columns.text, columns.label} - {None}
    if len(header) != 1 or wanted <= set(header):
        return
    for separator in SEPARATORS:
        if wanted <= {name.strip(' "') for name in header[0].split(separator)}:
            said = "tab" if separator == "\t" else repr(separator)
            raise InputError(
                f"{named(path)}: the header must hold several columns, got only {shown(header[0])}; "
                f"say what parts them: --separator {said}"
            )


def _csv_message(place: str, error: str) -> str:
    if "field limit" in error:
        limit = csv.field_size_limit()
        return f"{place}: a field must have at most {limit} characters, got more; is a quote left open?"
    if "unexpected end" in error:
        return f"{place}: a quoted field must end with a quote, got the end of the file"
    return f"{place}: a quoted field must double the quotes inside it, got text after a single one"


def _read_jsonl(source: Source) -> Iterator[Row]:
    path = source.path
    for number, line in enumerate(source.lines(), 1):
        if not line.strip():
            continue
        place = f"{named(path)}, line {number}"
        try:
            row = json.loads(line, object_pairs_hook=_pairs, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{place}: a line must be one JSON object, got {_json_fault(error)}") from error
        yield _json_row(place, number, row, source.columns, "a line must be one JSON object")


def _read_json(source: Source) -> Iterator[Row]:
    path, rule = source.path, "JSON must be a list of objects, one a document"
    try:
        rows = json.loads(source.text(path), object_pairs_hook=_pairs, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        hint = "; with one object a line, its name must end in .jsonl" if error.msg == "Extra data" else ""
        fault = f"{error.msg} at character {error.colno}"
        raise InputError(f"{named(path)}, line {error.lineno}: {rule}, got {fault}{hint}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{named(path)}: {rule}, got {_json_fault(error)}") from error
    if not isinstance(rows, list):
        hint = "; pandas writes one by to_json(orient='records')" if isinstance(rows, dict) else ""
        raise InputError(f"{named(path)}: {rule}, got {shown(rows)}{hint}")
    for number, row in enumerate(rows, 1):
        yield _json_row(f"{named(path)}, record {number}", number, row, source.columns, rule)


def _json_row(place: str, number: int, row: Any, columns: Columns, rule: str) -> Row:
    if not isinstance(row, dict):
        raise InputError(f"{place}: {rule}, got {shown(row)}")
    _check_columns(place, columns, list(row))
    return Row(place, str(number), *(None if name is None else row[name] for name in columns))


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


def _read_parquet(source: Source) -> Iterator[Row]:
    import pyarrow as pa
    from pyarrow import parquet

    path, columns = source.path, source.columns
    source.digest()
    n_read = 0
    try:
        with readable(path), parquet.ParquetFile(path) as file:
            _check_columns(named(path), columns, file.schema_arrow.names)
            _check_types(path, columns, file.schema_arrow)
            wanted = [name for name in columns if name is not None]
            for batch in file.iter_batches(BATCH_ROWS, columns=wanted):
                absent = [None] * batch.num_rows
                values = [absent if name is None else batch[name].to_pylist() for name in columns]
                for number, row in enumerate(zip(*values, strict=True), n_read + 1):
                    yield Row(f"{named(path)}, row {number}", str(number), *row)
                n_read += batch.num_rows
    except (pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
        raise InputError(f"{named(path)} must be a sound Parquet file, got: {shown(str(error))}") from error


def _read_excel(source: Source) -> Iterator[Row]:
    """Yield the rows of a workbook's first sheet, whose first row has the names of the columns."""
    path, columns = source.path, source.columns
    try:
        import openpyxl
    except ImportError as error:
        raise InputError(
            f"{named(path)}: to read an Excel workbook, install openpyxl (pip install openpyxl), or save it as CSV"
        ) from error
    content = io.BytesIO(source.read(path))
    try:
        book = openpyxl.load_workbook(content, read_only=True, data_only=True)
        header, *rows = list(book.worksheets[0].iter_rows(values_only=True)) or [()]
    except Exception as error:  # whatever a damaged workbook makes of openpyxl
        raise InputError(f"{named(path)} must be a sound Excel workbook, got: {shown(str(error))}") from error
    names = ["" if name is None else str(name) for name in header]
    _check_columns(named(path), columns, names)
    positions = [None if name is None else names.index(name) for name in columns]
    for number, row in enumerate(rows, 2):
        if any(value is not None for value in row):
            values = (None if at is None or at >= len(row) else row[at] for at in positions)
            yield Row(f"{named(path)}, row {number}", str(number), *values)


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


def read_folder(source: Source) -> Iterator[Row]:
    """Yield the files of a folder of class folders, or of one whose `train` and `test` hold the class folders.

    Beside these there may be folders of validation documents. Raises InputError for files and folders that stand
    elsewhere, and for empty classes.
    """
    path = source.path
    files, folders = walk(path)
    inside: dict[Path, list[Path]] = {folder: [] for folder in [path, *folders]}
    for entry in files + folders:
        inside[entry.parent].append(entry)
    is_folder = set(folders)
    parts = {entry.name for entry in inside[path] if entry in is_folder}
    is_split = set(PARTS) <= parts <= {*PARTS, *VALIDATION}
    for root in [path / part for part in (*PARTS, *VALIDATION) if part in parts] if is_split else [path]:
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
                text = source.text(file, by_line=False)
                place = os.fsencode(file.relative_to(path)).decode("utf-8", "backslashreplace")
                yield Row(named(file), place, text, folder.name, root.name if is_split else None)


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


READERS: dict[str, Reader] = {
    ".csv": partial(_read_csv, delimiter=","),
    ".csv.gz": partial(_read_csv, delimiter=","),
    ".tsv": partial(_read_csv, delimiter="\t"),
    ".tsv.gz": partial(_read_csv, delimiter="\t"),
    ".json": _read_json,
    ".json.gz": _read_json,
    ".jsonl": _read_jsonl,
    ".jsonl.gz": _read_jsonl,
    ".parquet": _read_parquet,
    ".xlsx": _read_excel,
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
