"""Tracebacks of what failed in a child process: begun where a method's own code begins, and kept as files."""

import traceback
from pathlib import Path
from types import TracebackType

from textbench.tasks import InputError
from textbench.tasks.storage.definitions import OWN, PACKAGE

FOLDER = "tracebacks"  # of the results folder
MAX_CHARACTERS = 20_000


def of(error: BaseException) -> str:
    """Return an error's traceback from the first frame of a method's file on, whole where none is of one.

    It is empty for what is the user's to mend, whose message says all. What failed in a child of a child brings its
    own. Of a long one the middle is left out.
    """
    if isinstance(error, InputError):
        return ""
    text = getattr(error, "details", "")
    if not text:
        chained: BaseException | None = error
        while chained is not None:
            chained.__traceback__ = _from_method(chained.__traceback__)
            chained = chained.__cause__ or chained.__context__
        text = "".join(traceback.format_exception(error))
    half = MAX_CHARACTERS // 2
    return text if len(text) <= MAX_CHARACTERS else f"{text[:half]}\n...\n{text[-half:]}"


def _from_method(begin: TracebackType | None) -> TracebackType | None:
    frames = begin
    while frames is not None:
        if str(frames.tb_frame.f_globals.get("__name__")).startswith((f"{PACKAGE}.featurizers.", OWN)):
            return frames
        frames = frames.tb_next
    return begin


def path_of(home: Path, key: str) -> Path:
    """Return the file of the results folder that holds the traceback of an artifact that could not be made."""
    return home / FOLDER / f"{key[:16]}.txt"


def keep(home: Path, key: str, text: str) -> str:
    """Write the traceback behind an artifact's failure; return where it is, for a message."""
    path = path_of(home, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8", errors="backslashreplace")
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
