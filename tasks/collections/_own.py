"""The user's own collection: files of documents, queries and judgments, SMART, TREC or JSON Lines, plain or gzip."""

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tasks import InputError
from tasks.collections import Collection, Judgment, _jsonl, _smart, _trec

KINDS = ("auto", "smart", "trec", "jsonl")


@dataclass(frozen=True)
class OwnCollection:
    """Where the user's collection is: `documents` (a file, or a folder read through), `queries`, `qrels`.

    `kind` is how documents and queries are written, recognised by their first character if "auto"; judgments are
    recognised by their columns. `fields` are the parts of a TREC topic that make the query. Paths become absolute.
    """

    documents: str
    queries: str
    qrels: str
    kind: str = "auto"
    fields: tuple[str, ...] = ("title",)

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

    @property
    def name(self) -> str:
        """A name for the collection: that of the documents' file or folder."""
        return Path(self.documents).name.partition(".")[0] or "own"

    def digest(self) -> str:
        """Return the sha256 (64 hexadecimal digits) over the files' names and bytes."""
        total = hashlib.sha256()
        for path in (*_files(Path(self.documents)), Path(self.queries), Path(self.qrels)):
            with path.open("rb") as stream:
                total.update(f"{path.name} {hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
        return total.hexdigest()


def load(own: OwnCollection) -> Collection:
    """Read the collection. Raises InputError naming file, line or byte, and what was expected there."""
    documents = list(_documents(own))
    queries, kind = _queries(own)
    judged = _judgments(Path(own.qrels))
    query_ids = [name for name, _ in queries]
    notes = [f"Documents of {Path(own.documents).name}."]
    if kind != "jsonl" and _smart.by_position(judged, query_ids):
        query_ids = [str(position) for position in range(1, len(queries) + 1)]
        notes.append("The judgments number the queries by position.")
    return Collection(
        document_ids=[name for name, _ in documents],
        documents=[text for _, text in documents],
        query_ids=query_ids,
        queries=[text for _, text in queries],
        judgments=judged,
        name=own.name,
        notes=" ".join(notes),
        graded=kind != "smart",
    )


def _documents(own: OwnCollection) -> Iterator[tuple[str, str]]:
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
            yield from ((_smart.plain(name), text) for name, text in _smart.records(content, path.name))
        else:
            read = _trec.documents if kind == "trec" else _jsonl.records
            yield from read(content, path.name)
    if not found:
        raise InputError(f"--documents {folder}: none of its files is SMART, TREC or JSON Lines")


def _queries(own: OwnCollection) -> tuple[list[tuple[str, str]], str]:
    path = Path(own.queries)
    content = _read(path)
    kind = _kind_of(own, content, path)
    if kind == "trec":
        return list(_trec.topics(content, path.name, own.fields)), kind
    if kind == "smart":
        return [(_smart.plain(name), text) for name, text in _smart.records(content, path.name)], kind
    return list(_jsonl.records(content, path.name)), kind


def _judgments(path: Path) -> list[Judgment]:
    content = _read(path)
    first = content.lstrip().partition(b"\n")[0]
    if first.startswith(b"{") or (b"\t" in first and not first.split()[-1].lstrip(b"+-").isdigit()):
        return _jsonl.judgments(content, path.name)
    columns = first.split()
    is_trec = len(columns) == 4 and columns[2:] != [b"0", b"0"]
    found = (_trec if is_trec else _smart).judgments(content, path.name)
    if not found:
        raise InputError(f"{path.name}: it needs at least one judgment, got none")
    return found


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
