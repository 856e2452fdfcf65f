"""A reader under fire: of damaged bytes it reads what it can or refuses them in a line, soon, and writes nothing."""

from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import TypeVar

from hypothesis import strategies as st

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
