"""Locks on files that say which of our processes live: a lock dies with its holder, a pid in a file does not."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path, mode: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold a lock on a file, made if missing; it dies with the process."""
    with path.open("ab") as file:
        fcntl.flock(file, mode)
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
