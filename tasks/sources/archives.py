"""Archives of documents: found in a data folder or the user's cache, else downloaded once; always checked.

`find` gives the path of an archive, in this order: `$TEXTBENCH_DATA_DIR/<folder>/<file>`, the user's cache
folder, the archive's public home. `TEXTBENCH_OFFLINE=1` forbids the last. `members` reads a .tar.gz without
writing anything to disk. Nothing is used unchecked: an archive is accepted if the sha256 of its bytes is a
known one, or else, since the same files can be packed in many ways, if `content_digest` of its members is.
"""

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from textbench.tasks import InputError
from textbench.tasks.sources import download
from textbench.tasks.sources.tar_stream import members
from textbench.tasks.storage.locks import locked

__all__ = ["Archive", "content_digest", "find", "members", "read"]

DATA_DIR = "TEXTBENCH_DATA_DIR"
SUFFIX = ".tar.gz"  # by which an archive is told from a file of a package
OFFLINE = "TEXTBENCH_OFFLINE"
NO = ("", "0", "false", "no", "off")


@dataclass(frozen=True)
class Archive:
    """A .tar.gz of documents: where it lives, what it must contain, and on which terms.

    folder, file: its place in a data folder and in the cache. urls: public homes, asked in order. sha256: of
    the packings known, all accepted. size: bytes of the public packing. wanted: regular expression for the
    members that are read, looked for in their names; its group is the name used. content_sha256:
    `content_digest` of these. max_bytes, max_members: what it may unpack to at most, everything counted.
    terms, citation: printed before a download.
    """

    title: str
    folder: str
    file: str
    urls: tuple[str, ...]
    sha256: tuple[str, ...]
    size: int
    wanted: str
    content_sha256: str
    max_bytes: int
    max_members: int
    terms: str
    citation: str


def read(archive: Archive) -> list[tuple[str, bytes]]:
    """Find an archive and return its wanted members, (name, bytes) sorted by name. InputError as `find`."""
    return list(_members(archive, find(archive)))


def find(archive: Archive) -> Path:
    """Return the path of an archive that has been checked, downloading it first if need be.

    Raises InputError, in one line with the remedy, when the archive is not what it should be or cannot be
    had.
    """
    own = _in_data_folder(archive)
    if own is not None:
        _check(archive, own, f"put the original there or unset {DATA_DIR}")
        return own
    path = _cache_folder() / archive.folder / archive.file
    with _held(path):
        damage = _damage(archive, path)
        if damage is None:
            return path
        if os.environ.get(OFFLINE, "").strip().lower() not in NO:
            raise InputError(
                f"{archive.title}: {damage}, and {OFFLINE} is set; {_by_hand(archive)}, or unset {OFFLINE}"
            )
        _download(archive, path)
    return path


def are_here(files: Iterable[str]) -> bool:
    """Tell whether the archives among these files are in the data folder or the cache; `find` checks what they hold."""
    own = os.environ.get(DATA_DIR)
    folders = [_cache_folder(), *([Path(own).expanduser()] if own else [])]
    wanted = [file for file in files if file.endswith(SUFFIX)]
    return all(
        any(path.is_file() for folder in folders for path in folder.glob(f"*/{file}")) for file in wanted
    )


def content_digest(contents: Iterable[tuple[str, bytes]]) -> str:
    """Return the sha256 over the lines "<name> <sha256 of the bytes>" of the members, sorted by name."""
    lines = sorted(f"{name} {hashlib.sha256(content).hexdigest()}\n" for name, content in contents)
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _in_data_folder(archive: Archive) -> Path | None:
    """Return the archive's path in the data folder, or None if no folder is named or it lacks the file."""
    setting = os.environ.get(DATA_DIR)
    if not setting:
        return None
    folder = Path(setting).expanduser()
    if not folder.is_dir():
        raise InputError(f"{DATA_DIR} must be a folder of data files, got {setting!r}; correct or unset it")
    path = folder / archive.folder / archive.file
    return path if path.exists() else None


def _cache_folder() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("textbench", appauthor=False) / "data"


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold the lock of a file in the cache: of two processes one downloads, the other finds it done."""
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(path.with_name(f".{path.name}.lock")))
        except OSError as error:
            raise InputError(
                f"the cache folder {path.parent} cannot be written to ({error.strerror}); "
                f"set XDG_CACHE_HOME to a folder that can, or {DATA_DIR} to a folder of data files"
            ) from error
        yield


def _damage(archive: Archive, path: Path) -> str | None:
    """Say why the file in the cache cannot be used, or return None if it can."""
    if not path.exists():
        return f"{archive.file} is in neither ${DATA_DIR} nor the cache"
    try:
        _check(archive, path, "")
    except InputError:
        return f"{path} is not the original archive"
    return None


def _check(archive: Archive, path: Path, remedy: str) -> None:
    """Raise InputError unless the file's bytes or its members are the known ones."""
    try:
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{archive.title}: {path} cannot be read ({error.strerror}); {remedy}") from error
    if found in archive.sha256:
        return
    try:
        content = content_digest(_members(archive, path))
    except InputError as error:
        raise InputError(
            f"{archive.title}: {path} has sha256 {found}, expected {archive.sha256[0]} ({error}); {remedy}"
        ) from error
    if content != archive.content_sha256:
        raise InputError(
            f"{archive.title}: {path} has sha256 {found}, expected {archive.sha256[0]}, and its documents "
            f"are not the original ones; {remedy}"
        )


def _members(archive: Archive, path: Path) -> Iterator[tuple[str, bytes]]:
    return members(path, archive.wanted, max_bytes=archive.max_bytes, max_members=archive.max_members)


def _download(archive: Archive, path: Path) -> None:
    """Fetch the archive from the first public home that gives the right file, and put it at `path`."""
    print(
        f"Downloading {archive.title} ({archive.size / 1e6:.0f} MB)\nTerms of use: {archive.terms}\n"
        f"Please cite: {archive.citation}",
        file=sys.stderr,
    )
    failures = []
    for url in archive.urls:
        try:
            _download_from(archive, url, path)
            return
        except InputError as error:
            failures.append(str(error))
    raise InputError(f"{archive.title}: {'; '.join(failures)}; {_by_hand(archive)}")


def _download_from(archive: Archive, url: str, path: Path) -> None:
    part = path.with_name(f"{path.name}.part")
    begun = part.exists()
    while True:
        download.fetch(url, part, size=archive.size)
        try:
            _check(archive, part, "it was removed")
            part.replace(path)
            return
        except InputError as error:
            part.unlink()
            # What an earlier run left may have been another file's beginning: once more, from the start.
            if not begun:
                raise InputError(f"{url} gave a wrong file ({error})") from error
            begun = False


def _by_hand(archive: Archive) -> str:
    place = f"{archive.folder}/{archive.file}"
    return (
        f"get {' or '.join(archive.urls)} by hand (sha256 {' or '.join(archive.sha256)}) and put it at "
        f"{_cache_folder() / place}, or at {place} in a folder named by {DATA_DIR}"
    )
