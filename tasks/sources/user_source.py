"""The user's file or folder as bytes and as text: read once, digested on the way, in the encoding that was said."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias, cast

from textbench.tasks import InputError

SHOWN_CHARACTERS = 60
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
LINE_END = re.compile(r"\r\n|\r|\n")
# A file as young as that may be written again without its time of change showing it.
YOUNG_NS = 2_000_000_000
BUFFER_BYTES = 2**20
MAX_KNOWN = 8  # sources whose digests are remembered


class Columns(NamedTuple):
    """The names of the columns to read."""

    text: str
    label: str | None
    part: str | None


@dataclass
class Source:
    """Where the documents are and how they are to be read; `digests` has the sha256 of every file read so far.

    `separator` parts the columns of a CSV or TSV file (None: the kind's own), `encoding` is that of text (None: UTF-8,
    with or without a byte-order mark). Where the digest is known beforehand (`known_digest`), nothing need be
    `digested`.
    """

    path: Path
    columns: Columns
    separator: str | None = None
    encoding: str | None = None
    digests: dict[Path, str] = field(default_factory=dict)
    digested: bool = True

    def read(self, path: Path) -> bytes:
        """Return the bytes of a file and note their sha256."""
        with readable(path):
            content = path.read_bytes()
        if self.digested:
            self.digests[path] = hashlib.sha256(content).hexdigest()
        return content

    def digest(self) -> None:
        """Note the sha256 of a file that is not read from its beginning to its end."""
        if self.digested:
            with readable(self.path), self.path.open("rb") as stream:
                self.digests[self.path] = hashlib.file_digest(stream, "sha256").hexdigest()

    def lines(self) -> Iterator[str]:
        """Yield the lines of the file with their line ends, unpacked where it is gzipped, digested as they are read.

        Raises InputError for what is not text.
        """
        path = self.path
        try:
            with readable(path), _Digesting(path) as file, _unpacked(path, file) as stream:
                text = io.TextIOWrapper(stream, encoding=self.encoding or "utf-8", newline="")
                for number, line in enumerate(text, 1):
                    if "\0" in line:
                        raise InputError(
                            f"{named(path)}, line {number}: text must hold no NUL byte, got one; "
                            "of UTF-16 say so: --encoding utf-16-le"
                        )
                    yield line.removeprefix("\ufeff") if number == 1 else line
                if self.digested:
                    self.digests[path] = file.hexdigest()
        except UnicodeError as error:
            # The decoder works in blocks and knows neither line nor place, so they are looked up.
            with readable(path), path.open("rb") as whole, _unpacked(path, whole) as stream:
                content = stream.read()
            raise _undecodable(named(path), content, self.encoding, str(error), by_line=True) from error

    def text(self, path: Path, *, by_line: bool = True) -> str:
        """Return a whole file as text, as `decoded` does."""
        content = self.read(path)
        with readable(path), _unpacked(path, io.BytesIO(content)) as stream:
            content = stream.read()
        return decoded(named(path), content, self.encoding, by_line=by_line)


def decoded(place: str, content: bytes, encoding: str | None = None, *, by_line: bool = False) -> str:
    """Return bytes as text in an encoding, by default UTF-8, without a byte-order mark.

    Raises InputError, naming the place and if `by_line` its line, for what is not text.
    """
    try:
        return content.decode(encoding or "utf-8").removeprefix("\ufeff")
    except UnicodeError as error:
        raise _undecodable(place, content, encoding, str(error), by_line=by_line) from error


def _undecodable(place: str, content: bytes, said: str | None, fault: str, *, by_line: bool) -> InputError:
    """Return the error that names the first byte which is not of the encoding: its line, its offset in that."""
    encoding, rule, hint = said or "utf-8", said, "--encoding must be the one that the file was written in"
    if said is None:
        likely = "utf-16-le" if b"\0" in content else "latin-1"
        likely = "utf-16" if content.startswith(UTF_16_MARKS) else likely
        rule, hint = "UTF-8", f"say its own: --encoding {likely}"
    try:
        content.decode(encoding)
    except UnicodeDecodeError as error:
        before, offset = content[: error.start].decode(encoding, "replace"), error.start
        if by_line:
            *earlier, last = LINE_END.split(before)
            place = f"{place}, line {len(earlier) + 1}"
            # An encoding with a byte-order mark writes it before anything.
            offset = len(last.encode(encoding, "replace")) - len("".encode(encoding))
        byte = f"byte 0x{content[error.start]:02x} at byte offset {offset}"
        return InputError(f"{place}: text must be {rule}, got {byte}; {hint}")
    except UnicodeError:
        pass
    return InputError(f"{place}: text must be {rule}, got: {shown(fault)}; {hint}")


def check_encoding(encoding: str) -> None:
    """Raise InputError unless Python knows the encoding as one of text."""
    try:
        "text".encode(encoding)
    except (LookupError, ValueError) as error:
        raise InputError(
            f"--encoding must be an encoding that Python knows, such as utf-8, utf-16, latin-1 or cp1252, "
            f"got {shown(encoding)}"
        ) from error


_States: TypeAlias = tuple[tuple[Path, tuple[int, int, int, bool]], ...]
_known: dict[_States, dict[Path, str]] = {}  # what has been digested, by when it was changed


def digest(path: Path, files: list[Path] | None) -> str:
    """Return the sha256 (64 hexadecimal digits) of a file's bytes, or of a folder's file names and their sha256.

    `files` are those of a folder, sorted. What has not changed since it was last asked for is not read again.
    """
    with readable(path):
        states = tuple((file, _state(file)) for file in ([path] if files is None else files))
    is_old = all(is_old for _, (*_, is_old) in states)
    found = _known.get(states) if is_old else None
    if found is None:
        found = _digests(states)
        if is_old:
            _known[states] = found
            for other in [*_known][:-MAX_KNOWN]:
                _known.pop(other, None)
    return found[path] if files is None else of_folder(path, found)


def known_digest(path: Path) -> str | None:
    """Return the sha256 that `digest` gave of a file if that has not changed since; None where this is not sure."""
    with readable(path):
        return _known.get(((path, _state(path)),), {}).get(path)


def of_folder(path: Path, digests: Mapping[Path, str]) -> str:
    """Return the sha256 of a folder's file names and the sha256 of each."""
    total = hashlib.sha256()
    for file in sorted(digests):
        total.update(os.fsencode(file.relative_to(path)) + b"\0" + digests[file].encode())
    return total.hexdigest()


def _state(path: Path) -> tuple[int, int, int, bool]:
    """Return what changes with a file (time of change in ns, bytes, inode), and whether it can be relied on."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino, time.time_ns() - status.st_mtime_ns > YOUNG_NS


def _digests(states: _States) -> dict[Path, str]:
    found = {}
    for path, _ in states:
        with readable(path), path.open("rb") as stream:
            found[path] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def _unpacked(path: Path, stream: Any) -> BinaryIO:
    return cast(BinaryIO, gzip.open(stream)) if path.name.lower().endswith(".gz") else stream


class _Digesting(io.BufferedReader):
    """A file that is read once, from its beginning to its end, and digested on the way."""

    def __init__(self, path: Path) -> None:
        self._sha256 = hashlib.sha256()
        super().__init__(_Watched(path, self._sha256.update), BUFFER_BYTES)

    def hexdigest(self) -> str:
        """Return the sha256 of the file, of which the rest is read."""
        while self.read(BUFFER_BYTES):
            pass
        return self._sha256.hexdigest()


class _Watched(io.FileIO):
    """A file of whose bytes another is told as they are read."""

    def __init__(self, path: Path, tell: Callable[[memoryview], None]) -> None:
        super().__init__(path)
        self._tell = tell

    def readinto(self, buffer: Any) -> int:
        n = super().readinto(buffer)
        self._tell(memoryview(buffer)[:n])
        return n


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
