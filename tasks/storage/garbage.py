"""Keeping the store tidy: what is in it, what killed computations left, and what is old enough to go."""

import contextlib
import fcntl
import math
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Set
from contextlib import AbstractContextManager
from pathlib import Path

from textbench.tasks.storage.files import META, Damaged, put, read_meta
from textbench.tasks.storage.locks import locked
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import ASIDE

BULKY = frozenset({"vectorize", "featurize"})  # stages whose files are large beside what they were made from
EMBEDDINGS = (
    "embeddings"  # beside the store: vectors of texts, in chunks that runs share (`tasks.text_vectors`)
)


READERS = ".readers.lock"  # in a store: held by runs, together, while features may be read; alone by who removes some


def artifacts(root: Path, stages: str = "*") -> Iterator[tuple[str, Path, int]]:
    """Yield (stage, folder, bytes) of every artifact under `root`, or of those of `stages`, a pattern."""
    for stage in sorted(
        path for path in root.glob(stages) if path.is_dir() and path.name not in ("tmp", ASIDE)
    ):
        for folder in sorted(path for path in stage.iterdir() if path.is_dir()):
            yield stage.name, folder, sum(path.stat().st_size for path in folder.iterdir())


def chunks(root: Path) -> list[Path]:
    """Return the files of kept text vectors beside the store under `root`."""
    return sorted((root.parent / EMBEDDINGS).glob("*/*.npz"))


def remove_leftovers(root: Path) -> None:
    """Remove what killed computations left under `tmp`: whatever is of a key that nobody is making now."""
    for path in (root / "tmp").glob("*"):
        with contextlib.ExitStack() as locks, contextlib.suppress(BlockingIOError, FileNotFoundError):
            for lock in root.glob(f"*/.{path.name.partition('-')[0]}.lock"):
                fcntl.flock(locks.enter_context(lock.open("w")), fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)


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
    If artifacts then still take more than `at_most` bytes, the oldest go until they do not.
    What a run needs again is computed again. An artifact that is just being made is waited for. Chunks of text vectors
    that are as old count as artifacts; those of a model that is just embedding stay. The folders `keep` stay too.
    """
    count = freed = 0
    limit = time.time() - older_than
    for path in [*(root / ASIDE).glob("*"), *(root / "tmp").glob("*")]:
        with contextlib.ExitStack() as locks, contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < limit:
                for lock in root.glob(f"*/.{path.name.partition('-')[0]}.lock"):
                    locks.enter_context(locked(lock))
                count, freed = count + 1, freed + _remove(path)
    for stage, folder, size in [found for found in artifacts(root) if found[1] not in keep]:
        with locked(root / stage / f".{folder.name}.lock"):
            if _created(folder) < limit or (stage in BULKY and seconds_of(folder) < cheap * size / 1e6):
                count, freed = count + 1, freed + _remove(folder)
    left = list(artifacts(root)) if at_most < math.inf else []
    too_much = sum(size for *_, size in left) - at_most
    for stage, folder, _ in sorted(left, key=lambda found: _created(found[1])):
        if too_much > 0 and folder not in keep:
            with locked(root / stage / f".{folder.name}.lock"):
                size = _remove(folder)
            count, freed, too_much = count + 1, freed + size, too_much - size
    for folder in {path.parent for path in chunks(root)}:
        with contextlib.ExitStack() as locks, contextlib.suppress(BlockingIOError, FileNotFoundError):
            fcntl.flock(locks.enter_context((folder / ".lock").open("w")), fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in folder.glob("*.npz"):
                if path.stat().st_mtime < limit:
                    count, freed = count + 1, freed + _remove(path)
    return count, freed


def reading(root: Path) -> AbstractContextManager[None]:
    """Return a context in which nobody lets features go; runs that are in it do not wait for one another."""
    return locked(root / READERS, fcntl.LOCK_SH)


def let_go(root: Path, folder: Path) -> int:
    """Remove an artifact's files but for meta.json, which says what making it took; return the bytes that are free.

    It is there whole or without them, whenever this is killed, and whatever needs it has it made again.
    """
    with locked(root / folder.parent.name / f".{folder.name}.lock"):
        before = sum(path.stat().st_size for path in folder.iterdir())
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


def _remove(path: Path) -> int:
    """Remove a file or a folder; return its bytes. Raises FileNotFoundError when it has gone by itself."""
    if not path.is_dir():
        size = path.stat().st_size
        path.unlink()
        return size
    size = sum(inner.stat().st_size for inner in path.rglob("*") if inner.is_file())
    shutil.rmtree(path, ignore_errors=True)
    return size
