"""The user's own collection: files of documents, queries and judgments, SMART, TREC or JSON Lines, plain or gzip."""

import gzip
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from textbench.tasks import InputError
from textbench.tasks.collections import Collection, Judgment, _jsonl, _smart, _trec

KINDS = ("auto", "smart", "trec", "jsonl")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")  # it becomes a part of file names


# A record of a file: file and line, name, text.
Record = tuple[str, str, str]


@dataclass(frozen=True)
class OwnCollection:
    """Where the user's collection is: `documents` (a file, or a folder read through), `queries`, `qrels`.

    `kind` is how documents and queries are written, recognised by their first character if "auto"; judgments are
    recognised by their columns and the documents' names. `fields` are the parts of a TREC topic that make the query.
    `name` is the collection's, that of the documents' folder if "". Paths become absolute.
    """

    documents: str
    queries: str
    qrels: str
    kind: str = "auto"
    fields: tuple[str, ...] = ("title",)
    name: str = ""

    def __post_init__(self) -> None:
        for name in ("documents", "queries", "qrels"):
            path = Path(getattr(self, name)).expanduser().resolve()
            if not path.exists():
                raise InputError(f"--{name} {getattr(self, name)}: there is no such file or folder")
            if path.is_dir() and name != "documents":
                raise InputError(f"--{name} must be a file, got the folder {path}")
            object.__setattr__(self, name, str(path))
        if self.kind not in KINDS:
            raise InputError(f"--format must be one of {', '.join(KINDS)}, got {self.kind!r}")
        object.__setattr__(self, "fields", tuple(self.fields))
        unknown = [field for field in self.fields if field not in _trec.TOPIC_FIELDS]
        if unknown or not self.fields:
            raise InputError(
                f"--fields takes {', '.join(_trec.TOPIC_FIELDS)}, got {', '.join(unknown) or 'none'}"
            )
        object.__setattr__(self, "name", self.name or _folder_name(Path(self.documents)))
        if not NAME.fullmatch(self.name):
            raise InputError(
                "--name is 1 to 60 letters, digits, dots, hyphens and underscores, and begins with a letter or digit; "
                f"got {self.name[:80]!r}"
            )

    def digest(self) -> str:
        """Return the sha256 (64 hexadecimal digits) over the files' names and bytes."""
        total = hashlib.sha256()
        for path in (*_files(Path(self.documents)), Path(self.queries), Path(self.qrels)):
            with path.open("rb") as stream:
                total.update(f"{path.name} {hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
        return total.hexdigest()


def _folder_name(documents: Path) -> str:
    """Return the name of a folder of documents, or of the folder that a file of documents is in."""
    folder = documents if documents.is_dir() else documents.parent
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder.name).strip("._-")[:60] or "collection"


def load(own: OwnCollection) -> Collection:
    """Return the collection. Raises InputError naming file, line or byte, and what was expected there."""
    document_ids, documents = _named("document", lambda: _documents(own))
    kind = _kind_of(own, _read(Path(own.queries)), Path(own.queries))
    names = [name for _, name, _ in _queries(own, kind)]
    judged = _judgments(Path(own.qrels), {_smart.plain(name) for name in document_ids})
    notes = [f"Documents of {Path(own.documents).name}."]
    is_numbered = kind != "jsonl" and _smart.by_position(judged, names)
    if is_numbered:
        notes.append("The judgments number the queries by position.")
    query_ids, queries = _named("query", lambda: _queries(own, kind, is_numbered=is_numbered))
    judged = _as_named(judged, query_ids, document_ids)
    return Collection(
        document_ids=document_ids,
        documents=documents,
        query_ids=query_ids,
        queries=queries,
        judgments=judged,
        name=own.name,
        notes=" ".join(notes),
        graded=kind != "smart",
    )


def _as_named(
    judged: Sequence[Judgment], query_ids: Sequence[str], document_ids: Sequence[str]
) -> list[Judgment]:
    """Return judgments by the names that queries and documents have: `1` may be `01` there, if no other is.

    Kinds of files differ in whether they keep the zeros that a number begins with.
    """
    query, document = _spelling(query_ids), _spelling(document_ids)
    return [one._replace(query=query(one.query), document=document(one.document)) for one in judged]


def _spelling(names: Sequence[str]) -> Callable[[str], str]:
    """Return what spells a name as one of these: a name of theirs stays, and so does what several of them may be."""
    known, plain = set(names), [_smart.plain(name) for name in names]
    counts = Counter(plain)
    spelled = {short: name for short, name in zip(plain, names, strict=True) if counts[short] == 1}
    return lambda name: name if name in known else spelled.get(_smart.plain(name), name)


def _named(what: str, read: Callable[[], Iterator[Record]]) -> tuple[list[str], list[str]]:
    """Return names and texts of what is read. InputError for a name that occurs twice, with the lines it begins on."""
    found = [(name, text) for _, name, text in read()]
    names = [name for name, _ in found]
    if len(set(names)) < len(names):
        name = next(name for name, n in Counter(names).items() if n > 1)
        first, second, *more = (place for place, other, _ in read() if other == name)
        raise InputError(
            f"{second}: {what} names must differ, got {name!r} {2 + len(more)} times, before in {first}"
        )
    return names, [text for _, text in found]


def _documents(own: OwnCollection) -> Iterator[Record]:
    folder = Path(own.documents)
    found = False
    for path in _files(folder):
        content = _read(path)
        # Folders of TREC disks hold notes and lists beside the documents.
        if folder.is_dir() and own.kind == "auto" and _kind(content) is None:
            continue
        kind = _kind_of(own, content, path)
        found = True
        if kind == "smart":
            yield from _smart_records(content, path)
        else:
            read = _trec.placed_documents if kind == "trec" else _jsonl.placed_records
            yield from read(content, path.name)
    if not found:
        raise InputError(f"--documents {folder}: none of its files is SMART, TREC or JSON Lines")


def _queries(own: OwnCollection, kind: str, *, is_numbered: bool = False) -> Iterator[Record]:
    """Yield the queries, under their position from 1 instead of their name if `is_numbered`."""
    path = Path(own.queries)
    content = _read(path)
    if kind == "trec":
        found = _trec.placed_topics(content, path.name, own.fields)
    else:
        found = (
            _smart_records(content, path) if kind == "smart" else _jsonl.placed_records(content, path.name)
        )
    for position, (place, name, text) in enumerate(found, start=1):
        yield place, str(position) if is_numbered else name, text


def _smart_records(content: bytes, path: Path) -> Iterator[Record]:
    for place, name, text in _smart.placed_records(content, path.name):
        yield place, _smart.plain(name), text


def _judgments(path: Path, documents: Set[str]) -> list[Judgment]:
    content = _read(path)
    lines = _smart.decoded(content).splitlines()
    rows = [line.split() for line in lines if line.strip()]
    if not rows:
        raise InputError(f"{path.name}: it needs at least one judgment, got none")
    if rows[0][0].startswith("{") or ("\t" in lines[0] and not any(map(_is_number, rows[0]))):
        return _jsonl.judgments(content, path.name)
    return (_trec if _are_trec(rows, documents) else _smart).judgments(content, path.name)


def _are_trec(rows: Sequence[Sequence[str]], documents: Set[str]) -> bool:
    """Tell TREC's `query iteration document code` from SMART's `query document` and two columns that say nothing.

    The documents' column is the one that names more of the documents. If both name as many, only codes are whole
    numbers, and `0 0` in every line are none.
    """
    four = [row for row in rows if len(row) == 4]
    second, third = (len({_smart.plain(row[i]) for row in four} & documents) for i in (1, 2))
    if len(rows[0]) != 4 or second != third:
        return len(rows[0]) == 4 and third > second
    codes = all(_smart.WHOLE_NUMBER.fullmatch(row[3]) for row in four)
    return codes and any(list(row[2:]) != ["0", "0"] for row in four)


def _is_number(text: str) -> bool:
    return text.lstrip("+-").replace(".", "", 1).isdecimal()


def _kind_of(own: OwnCollection, content: bytes, path: Path) -> str:
    kind = _kind(content) if own.kind == "auto" else own.kind
    if kind is None:
        raise InputError(
            f"{path.name}: SMART begins with `.I`, TREC with `<`, JSON Lines with `{{`; "
            f"got {content.lstrip()[:40]!r}; name the kind with --format"
        )
    return kind


def _kind(content: bytes) -> str | None:
    start = content.removeprefix(b"\xef\xbb\xbf").lstrip()[:2]
    if start == b".I":
        return "smart"
    return {b"<": "trec", b"{": "jsonl"}.get(start[:1])


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    inside = sorted(p for p in path.rglob("*") if p.is_file())
    return [p for p in inside if not any(part.startswith(".") for part in p.relative_to(path).parts)]


def _read(path: Path) -> bytes:
    if path.suffix == ".Z":
        raise InputError(
            f"{path.name}: unpack it first (uncompress {path.name}); plain files and .gz are read"
        )
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
