"""Reader of collections as JSON Lines: documents, queries and judgments, one JSON object a line.

A document or query has a name (`id`, `_id`, `doc_id` or `query_id`) and `text`, and may have a `title` before it. A
judgment has the names of both and a code: `query`, `document`, `relevance`, or the same as `query_id` or `query-id`,
`doc_id` or `corpus-id`, `score`. Judgments may also be a table parted by tabs whose first line names these columns.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from textbench.tasks import InputError
from textbench.tasks.collections import Judgment
from textbench.tasks.collections._smart import WHOLE_NUMBER, decoded
from textbench.tasks.sources.new_texts import lines_of

NAMES = ("id", "_id", "doc_id", "query_id")
QUERY = ("query", "query_id", "query-id")
DOCUMENT = ("document", "doc_id", "corpus-id")
CODE = ("relevance", "score")


def records(content: bytes, place: str) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of every line. Raises InputError naming the line."""
    return ((name, text) for _, name, text in placed_records(content, place))


def placed_records(content: bytes, place: str) -> Iterator[tuple[str, str, str]]:
    """Yield (file and line, name, text) of every line, as `records` does."""
    for line, record in _objects(content, place):
        name = _name(_pick(record, NAMES, line), line)
        text = _string(_pick(record, ("text",), line), "text", line)
        title = _string(record.get("title") or "", "title", line)
        yield line, name, f"{title}\n{text}".strip()


def _name(value: Any, line: str) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise InputError(f"{line}: a name is a string or a whole number, got {str(value)[:60]!r}")
    return _string(str(value), "a name", line)


def _string(value: Any, what: str, line: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{line}: {what} must be a string, got {str(value)[:60]!r}")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InputError(f"{line}: {what} must be Unicode, got half of a surrogate pair in {value[:60]!r}")
    return value


def judgments(content: bytes, place: str) -> list[Judgment]:
    """Return the judgments, JSON Lines or a table with a header. Raises InputError naming the line."""
    is_json = content.lstrip().startswith(b"{")
    rows = _objects(content, place) if is_json else _table(content, place)
    found = []
    for line, row in rows:
        code = _pick(row, CODE, line)
        if not WHOLE_NUMBER.fullmatch(str(code)):
            raise InputError(f"{line}: a relevance is a whole number, got {str(code)[:60]!r}")
        query, document = (_name(_pick(row, names, line), line) for names in (QUERY, DOCUMENT))
        found.append(Judgment(query, document, int(code)))
    return found


def _objects(content: bytes, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, text in enumerate(lines_of(decoded(content)), start=1):
        if not text.strip():
            continue
        line = f"{place}, line {number}"
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{line}: it must be a JSON object, got {text.strip()[:60]!r}") from error
        if not isinstance(value, dict):
            raise InputError(f"{line}: it must be a JSON object, got {text.strip()[:60]!r}")
        yield line, value


def _table(content: bytes, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    lines = list(lines_of(decoded(content)))
    header = lines[0].split("\t") if lines else []
    for number, text in enumerate(lines[1:], start=2):
        if not text.strip():
            continue
        values = text.split("\t")
        if len(values) != len(header):
            raise InputError(
                f"{place}, line {number}: it must have the {len(header)} columns of the first line, got {len(values)}"
            )
        yield f"{place}, line {number}", dict(zip(header, values, strict=True))


def _pick(record: Mapping[str, Any], names: Sequence[str], line: str) -> Any:
    for name in names:
        if name in record:
            return record[name]
    found = ", ".join(name if name.isprintable() else repr(name) for name in record)[:200]
    raise InputError(f"{line}: it needs {' or '.join(names)}, got {found or 'nothing'}")
