"""Keeping the store tidy: what is in it, what killed computations left, and what is old enough to go."""

import contextlib
import fcntl
import math
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Set
from contextlib import AbstractContextManager
from pathlib import Path

from textbench.tasks import InputError
from textbench.tasks.storage.files import META, OLD, Damaged, put, read_meta
from textbench.tasks.storage.locks import locked, take
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import ASIDE

BULKY = frozenset({"vectorize", "featurize"})  # stages whose files are large beside what they were made from
EMBEDDINGS = (
    "embeddings"  # beside the store: vectors of texts, in chunks that runs share (`tasks.text_vectors`)
)


READERS = ".readers.lock"  # in a store: held by runs, together, while features may be read; alone by who removes some


def artifacts(root: Path, stages: str = "*") -> Iterator[tuple[str, Path, int]]:
    """Yield (stage, folder, bytes) of every artifact under `root`, or of those of `stages`, a pattern.

    Of a file that n artifacts share each has an nth. What another process removes meanwhile is passed over.
    """
    for stage in sorted(
        path for path in root.glob(stages) if path.is_dir() and path.name not in ("tmp", ASIDE)
    ):
        for folder in sorted(path for path in stage.iterdir() if path.is_dir()):
            try:
                size = sum(map(_own_size, folder.iterdir()))
            except FileNotFoundError:
                continue
            yield stage.name, folder, size


def chunks(root: Path) -> list[Path]:
    """Return the files of kept text vectors beside the store under `root`."""
    return sorted((root.parent / EMBEDDINGS).glob("*/*.npz"))


def remove_leftovers(root: Path) -> None:
    """Remove what killed computations left under `tmp`: whatever is of a key that nobody is making now.

    An artifact that was on its way out when what replaces it had not come yet is put back.
    """
    for path in (root / "tmp").glob("*"):
        with contextlib.ExitStack() as locks, contextlib.suppress(BlockingIOError, FileNotFoundError):
            for lock in root.glob(f"*/.{path.name.partition('-')[0]}.lock"):
                fcntl.flock(locks.enter_context(lock.open("w")), fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _put_back(root, path):
                shutil.rmtree(path, ignore_errors=True)


def _put_back(root: Path, path: Path) -> bool:
    """Put an artifact back in its place that `put` moved away; False where it is none, or another is there."""
    if not path.name.endswith(OLD):
        return False
    try:
        meta = read_meta(path / META)
        place = root / meta["recipe"]["stage"] / meta["key"]
    except (OSError, Damaged):
        return False
    if place.exists():
        return False
    path.rename(place)
    return True


def behind(references: Iterable[Reference]) -> dict[str, Reference]:
    """Return artifacts and all that they were made from, by key."""
    found: dict[str, Reference] = {}
    upstream = list(references)
    while upstream:
        reference = upstream.pop()
        if reference.key not in found:
            found[reference.key] = reference
            upstream += reference.inputs.values()
    return found


def prune(
    root: Path,
    *,
    older_than: float,
    keep: Set[Path] = frozenset(),
    cheap: float = 0.0,
    at_most: float = math.inf,
) -> tuple[int, int]:
    """Remove artifacts made more than `older_than` seconds ago, damaged ones and leftovers; return (count, bytes).

    With `cheap` vectors and features go too, however new, where making them took fewer seconds a megabyte than that.
    If what is there then still takes more than `at_most` bytes, the oldest goes until it does not. What a run needs
    again is computed again. An artifact that is just being made is waited for. While a run is at work, vectors and
    features stay, which it may be reading. Chunks of text vectors that are as old count as artifacts; those of a model
    that is just embedding stay. The folders `keep` stay too. Raises InputError where the oldest is to go while a run is
    at work.
    """
    if not root.exists():
        return 0, 0
    count = freed = 0
    limit = time.time() - older_than
    for path in [*(root / ASIDE).glob("*"), *(root / "tmp").glob("*")]:
        with contextlib.ExitStack() as locks, contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < limit:
                for lock in root.glob(f"*/.{path.name.partition('-')[0]}.lock"):
                    locks.enter_context(locked(lock))
                if not _put_back(root, path):
                    count, freed = count + 1, freed + _remove(path)
    alone = take(root / READERS)
    with contextlib.nullcontext() if alone is None else os.fdopen(alone):  # held until then
        for stage, folder, size in [found for found in artifacts(root) if found[1] not in keep]:
            if stage in BULKY and alone is None:
                continue
            with locked(root / stage / f".{folder.name}.lock"), contextlib.suppress(FileNotFoundError):
                if _created(folder) < limit or (stage in BULKY and seconds_of(folder) < cheap * size / 1e6):
                    count, freed = count + 1, freed + _remove(folder, root)
    for folder in {path.parent for path in chunks(root)}:
        with contextlib.ExitStack() as locks, contextlib.suppress(BlockingIOError, FileNotFoundError):
            fcntl.flock(locks.enter_context((folder / ".lock").open("w")), fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in folder.glob("*.npz"):
                if path.stat().st_mtime < limit:
                    count, freed = count + 1, freed + _remove(path)
    if at_most < math.inf:
        n, n_bytes = _prune_oldest(root, keep, at_most)
        count, freed = count + n, freed + n_bytes
    return count, freed


def _prune_oldest(root: Path, keep: Set[Path], at_most: float) -> tuple[int, int]:
    """Remove what is damaged and then the oldest until the rest takes `at_most` bytes; return (count, bytes).

    Nothing is removed while a run is at work, which may be about to read it.
    """
    found: list[tuple[float, Path, Path | None, int]] = [
        (-math.inf, path, None, _size(path)) for path in (root / ASIDE).glob("*")
    ]
    found += [(path.stat().st_mtime, path, path.parent / ".lock", _size(path)) for path in chunks(root)]
    found += [
        (_created(folder), folder, root / stage / f".{folder.name}.lock", size)
        for stage, folder, size in artifacts(root)
    ]
    too_much = sum(size for *_, size in found) - at_most
    if too_much <= 0:
        return 0, 0
    alone = take(root / READERS)
    if alone is None:
        raise InputError(
            f"a run is at work in {root}; what it needs may be among the oldest: wait for its end"
        )
    count = freed = 0
    with os.fdopen(alone):  # held until then
        for _, path, lock, _ in sorted(found):
            if freed >= too_much:
                break
            if path not in keep:
                with (
                    contextlib.suppress(FileNotFoundError),
                    locked(lock) if lock else contextlib.nullcontext(),
                ):
                    count, freed = count + 1, freed + _remove(path, root)
    return count, freed


def reading(root: Path) -> AbstractContextManager[None]:
    """Return a context in which nobody lets features go; runs that are in it do not wait for one another."""
    return locked(root / READERS, fcntl.LOCK_SH)


def let_go(root: Path, folder: Path) -> int:
    """Remove an artifact's files but for meta.json, which says what making it took; return the bytes that are free.

    It is there whole or without them, whenever this is killed, and whatever needs it has it made again.
    """
    with locked(root / folder.parent.name / f".{folder.name}.lock"):
        before = sum(map(_own_size, folder.iterdir()))
        (root / "tmp").mkdir(exist_ok=True)
        rest = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=root / "tmp"))
        shutil.copyfile(folder / META, rest / META)
        left = (rest / META).stat().st_size
        put(rest, folder)
    return before - left


def seconds_of(folder: Path) -> float:
    """Return the seconds that making an artifact took, 0 for a damaged one."""
    try:
        return float(read_meta(folder / META)["seconds"])
    except (OSError, Damaged):
        return 0.0


def _created(folder: Path) -> float:
    """Return when an artifact was made, minus infinity for a damaged one."""
    try:
        return float(read_meta(folder / META)["created"])
    except (OSError, Damaged):
        return -math.inf


def _remove(path: Path, root: Path | None = None) -> int:
    """Remove a file or a folder; return its bytes. Raises FileNotFoundError when it has gone by itself.

    An artifact of the store under `root` leaves its place at once, so that none is there in part when this is killed.
    """
    size = _size(path)
    if path.is_dir():
        if root is not None:
            (root / "tmp").mkdir(exist_ok=True)
            path = path.rename(tempfile.mkdtemp(prefix=f"{path.name}-", dir=root / "tmp"))
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()
    return size


def _size(path: Path) -> int:
    """Return the bytes of a file, or of all in a folder. Raises FileNotFoundError when it has gone."""
    if not path.is_dir():
        return path.stat().st_size
    return sum(_own_size(inner) for inner in path.rglob("*") if inner.is_file())


def _own_size(path: Path) -> int:
    """Return a file's bytes, of a file with several hard links the share of one."""
    about = path.stat()
    return about.st_size // about.st_nlink
