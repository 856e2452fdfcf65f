"""A reader under fire: of damaged bytes it reads what it can or refuses them in a line, ends, and writes nothing."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import strategies as st

from textbench.tasks import InputError

HANG_SECONDS = 60  # of CPU, where a reader takes milliseconds
MAX_CHARACTERS = 3000
Found = TypeVar("Found")


class Hang(BaseException):
    """Something that does not end. Neither a reader catches this nor Hypothesis, which would run the example again."""


@contextlib.contextmanager
def no_hang() -> Iterator[None]:
    """Raise Hang in what uses a minute of CPU, so never for a busy machine; who waits without computing is not seen."""

    def stop(*_: Any) -> None:
        raise Hang(f"it did not end within {HANG_SECONDS} s of CPU")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def guarded(read: Callable[[], Found], folder: Path) -> Found | None:
    """Return what `read` returns, None where it raises InputError; any other error is the test's.

    Fails for a message that is not one printable line, for a reader that does not end (`no_hang`), and for a file that
    came or went in `folder`. How fast it reads is not judged; tests of pieces half a million times over make what is
    quadratic a hang.
    """
    before = sorted(folder.rglob("*"))
    found = None
    try:
        with no_hang():
            found = read()
    except InputError as error:
        message = str(error)
        assert message.isprintable(), message
        assert len(message) < MAX_CHARACTERS, message
    assert sorted(folder.rglob("*")) == before
    return found


def damaged(
    content: bytes, fragments: st.SearchStrategy[bytes], longest: int = 12
) -> st.SearchStrategy[bytes]:
    """Draw `content` with some of its stretches of up to `longest` bytes replaced by fragments or bytes."""
    place = st.integers(0, len(content))
    edit = st.tuples(place, st.integers(0, longest), fragments | st.binary(max_size=6))

    def apply(edits: list[tuple[int, int, bytes]]) -> bytes:
        changed = content
        for start, length, new in edits:
            changed = changed[:start] + new + changed[start + length :]
        return changed

    return st.lists(edit, min_size=1, max_size=4).map(apply)


def mutated(
    content: bytes, fragments: st.SearchStrategy[bytes], longest: int = 12
) -> st.SearchStrategy[bytes]:
    """Draw `content` damaged, or bytes that have nothing to do with it."""
    pieces = st.lists(fragments, max_size=30).map(b"".join)
    return damaged(content, fragments, longest) | pieces | st.binary(max_size=200)
