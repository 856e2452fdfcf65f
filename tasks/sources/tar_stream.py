"""Reading .tar.gz archives that nobody vouches for: as a stream, within limits, nothing written to disk."""

import gzip
import io
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from textbench.tasks import InputError

# Texts shrink to a third or a fifth; a hundredth is a bomb. Small files are let off: tar pads with zeros.
MAX_RATIO = 100
NEVER_TOO_MUCH = 1 << 20
# What tarfile and gzip raise on altered input, arithmetic on header fields and nested headers included.
BROKEN = (tarfile.TarError, OSError, EOFError, zlib.error, ValueError, ArithmeticError, RecursionError)


def members(path: Path, wanted: str, *, max_bytes: int, max_members: int) -> Iterator[tuple[str, bytes]]:
    """Yield (name, bytes) of the wanted files in a .tar.gz, sorted by name, whatever their order there.

    `wanted` is a regular expression with one group, looked for in each member's name; the group is the name
    yielded. The archive is read once, wholly, into memory. Raises InputError, in one line, for an archive
    that cannot be read or is truncated or altered, unpacks to more than `max_bytes` or `MAX_RATIO` times its
    size, has more than `max_members` members, has two wanted files of one name, or holds anything but plain
    files and folders with relative names that stay inside (no links, devices, absolute names or `..`).
    """
    pattern = re.compile(wanted)
    found: dict[str, bytes] = {}
    try:
        for name, content in _files(path, pattern, max_bytes, max_members):
            if name in found:
                raise InputError(f"{path}: every file must occur once, got {name!r} twice")
            found[name] = content
    except InputError:
        raise
    except BROKEN as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path} is not a whole .tar.gz archive: {reason}") from error
    for name in sorted(found):
        yield name, found.pop(name)


def _files(
    path: Path, pattern: re.Pattern[str], max_bytes: int, max_members: int
) -> Iterator[tuple[str, bytes]]:
    with path.open("rb") as packed, gzip.GzipFile(fileobj=packed) as unpacked:
        by_ratio = max(MAX_RATIO * path.stat().st_size, NEVER_TOO_MUCH)
        stream = _Limited(unpacked, path, min(max_bytes, by_ratio))
        # "r|" never seeks: a header with a negative size cannot send the reader round in circles.
        with tarfile.open(fileobj=stream, mode="r|", encoding="utf-8", errors="surrogateescape") as tar:
            for number, member in enumerate(tar, start=1):
                if number > max_members:
                    raise InputError(f"{path}: an archive of {max_members:,} members at most is accepted")
                _check_member(path, member)
                name = pattern.search(member.name) if member.isreg() else None
                content = tar.extractfile(member) if name else None
                if name and content:
                    yield name[1], content.read()
        stream.drain()


def _check_member(path: Path, member: tarfile.TarInfo) -> None:
    shown = ascii(member.name[:80])
    if member.name.startswith("/") or ".." in member.name.split("/"):
        raise InputError(f"{path}: names must be relative and stay inside the archive, got {shown}")
    # A sparse file claims zeros that are not in the archive, as many as it likes.
    if not (member.isfile() or member.isdir()) or member.issparse():
        raise InputError(f"{path}: only plain files and folders are accepted, {shown} is neither")
    if member.size < 0:
        raise InputError(f"{path}: {shown} says that it has {member.size} bytes")


class _Limited(io.RawIOBase):
    """A stream that gives `limit` bytes at most and raises InputError when there are more."""

    def __init__(self, stream: gzip.GzipFile, path: Path, limit: int) -> None:
        self._stream = stream
        self._path = path
        self._limit = limit
        self._given = 0

    def read(self, size: int = -1) -> bytes:
        left = self._limit - self._given
        content = self._stream.read(left + 1 if size < 0 else min(size, left + 1))
        self._given += len(content)
        if self._given > self._limit:
            raise InputError(f"{self._path}: it unpacks to more than the {self._limit:,} bytes accepted")
        return content

    def drain(self) -> None:
        """Read what follows the archive's last member, so that gzip compares its checksum."""
        while self.read(1 << 16):
            pass
