"""Locks on files, which say who lives and who is at work: a lock dies with its holder, a pid in a file does not."""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

START = "start.lock"  # of a folder: held while a process of it is started or stopped, and while one asks which live


@contextlib.contextmanager
def locked(
    path: Path, mode: int = fcntl.LOCK_EX, *, say: Callable[[str], None] = lambda _: None
) -> Iterator[None]:
    """Hold the lock file at `path`, made if missing; it is given back when the holder dies, however it dies.

    `say` is told what this waits for where another holds the lock, and then "" when it goes on.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as stream:
        try:
            fcntl.flock(stream, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waits for another run")
            fcntl.flock(stream, mode)
            say("")
        yield


def take(path: Path) -> int | None:
    """Return a descriptor holding the exclusive lock on `path`, or None when somebody else holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def is_free(path: Path, seconds: float = 0.0) -> bool:
    """Say whether nobody holds the lock on `path`, waiting for that at most `seconds`.

    Two who ask at once mislead each other: call it under another lock.
    """
    deadline = time.monotonic() + seconds
    while True:
        lock = take(path)
        if lock is not None:
            os.close(lock)
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)


def is_held(path: Path) -> bool:
    """Say whether somebody holds the lock on `path`, asked under the start lock of its folder."""
    if not path.parent.exists():
        return False
    with locked(path.with_name(START)):
        return not is_free(path)
