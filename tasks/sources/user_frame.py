"""Documents that a program holds, in a table or in lists: kept as a Parquet file that is named by its content."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from textbench.tasks import InputError
from textbench.tasks.sources.user_source import shown
from textbench.tasks.storage.files import whole

DIGITS = 16  # of the content's sha256, in the file's name


def keep(
    folder: Path, texts: Iterable[Any], labels: Iterable[Any], parts: Iterable[Any] | None = None
) -> Path:
    """Write documents to a file of `folder` unless it is there, and return its path: the same ones have the same.

    `labels` are one a text, or lists of several; `parts` say train, test or validation. Its columns are text, label
    and, with `parts`, split; what they may hold, `tasks.sources.user_data` says when it reads them. Raises InputError
    for columns of different length, texts that are no strings, and a folder that cannot be written to.
    """
    columns = {"text": checked_texts(texts), "label": _labels(labels)}
    if parts is not None:
        columns["split"] = [None if is_missing(part) else str(part) for part in parts]
    for name, column in columns.items():
        if len(column) != len(columns["text"]):
            raise InputError(
                f"every text must have a {name}, got {len(columns['text'])} texts and {len(column)} {name}s"
            )
    content = json.dumps(columns).encode()
    path = folder / f"data-{hashlib.sha256(content).hexdigest()[:DIGITS]}.parquet"
    if not path.exists():
        _write(path, columns)
    return path


def _write(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    import pyarrow
    from pyarrow import parquet

    try:
        table = pyarrow.table(columns)
    except UnicodeEncodeError as error:
        raise InputError(
            f"texts and labels must be Unicode, got half a surrogate pair at {error.start}"
        ) from error
    try:
        with whole(path) as part:
            parquet.write_table(table, part)
    except OSError as error:
        raise InputError(
            f"the documents cannot be kept in {path.parent}: {error.strerror or error}"
        ) from error


def checked_texts(texts: Iterable[Any]) -> list[str]:
    """Return texts as a list. Raises InputError, naming the first that is none, for what is no list of texts."""
    found = _listed("texts", texts)
    for position, text in enumerate(found):
        if not isinstance(text, str):
            raise InputError(f"texts must be strings, got {shown(text)} at position {position}")
    return found


def _listed(what: str, values: Any) -> list[Any]:
    if hasattr(values, "columns"):
        raise InputError(f'{what} must be a list, got a table; give its column, such as table["text"]')
    if isinstance(values, str | bytes | dict) or not isinstance(values, Iterable):
        raise InputError(f"{what} must be a list, got {shown(values)}")
    if (n_dimensions := getattr(values, "ndim", 1)) != 1:
        raise InputError(f"{what} must be a list, got an array of {n_dimensions} dimensions")
    return list(values)


def _labels(labels: Any) -> list[Any]:
    """Return labels as a Parquet column can hold them: strings, lists of them where any is a list, None for none."""
    found = [
        _label(label) if (own := _several(label)) is None else own for label in _listed("labels", labels)
    ]
    if any(isinstance(label, list) for label in found):
        return [label if label is None or isinstance(label, list) else [label] for label in found]
    return found


def _several(label: Any) -> list[str | None] | None:
    """Return the labels of a list, or of an array as pandas reads one from Parquet; a set's in order. Else None."""
    if isinstance(label, set | frozenset):  # whose own order is another one in each process
        return sorted((_label(one) for one in label), key=str)
    is_list = isinstance(label, list | tuple) or getattr(label, "ndim", 0) == 1
    return [_label(one) for one in label] if is_list else None


def _label(value: Any) -> str | None:
    value = value.item() if getattr(value, "ndim", None) == 0 else value  # numpy's
    if not getattr(value, "ndim", 0) and is_missing(value):
        return None
    if not isinstance(value, str | int | float):
        raise InputError(f"a label must be a string or a number, or a list of them, got {shown(value)}")
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_missing(value: Any) -> bool:
    """Tell whether a value is None, nan or the missing value of pandas, none of which equals itself for sure."""
    return value is None or (not isinstance(value, str) and (value != value) is not False)
