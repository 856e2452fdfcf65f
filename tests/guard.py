"""A reader under watch: it gives what it reads or one line that refuses it, soon, and writes nothing."""

from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import TypeVar

from tasks import InputError

MAX_SECONDS = 2
MAX_CHARACTERS = 3000
Found = TypeVar("Found")


def guarded(read: Callable[[], Found], folder: Path) -> Found | None:
    """Return what `read` returns, None where it raises InputError; any other error is the test's.

    Fails for a message that is not one printable line, for more than two seconds of CPU, and for a file that came or
    went in `folder`.
    """
    before = sorted(folder.rglob("*"))
    begun = process_time()
    found = None
    try:
        found = read()
    except InputError as error:
        message = str(error)
        assert message.isprintable(), message
        assert len(message) < MAX_CHARACTERS, message
    seconds = process_time() - begun
    assert seconds < MAX_SECONDS, f"it took {seconds:.1f} s"
    assert sorted(folder.rglob("*")) == before
    return found
