"""How much commands say on standard error: `textbench --quiet` and `--verbose`."""

import sys
from contextvars import ContextVar
from pathlib import Path
from typing import Literal

Voice = Literal["quiet", "normal", "verbose"]

VOICE: ContextVar[Voice] = ContextVar("VOICE", default="normal")


def wrote(path: Path, *, as_json: bool = False) -> None:
    """Say on standard error which file or folder was written; nothing if quiet, or beside JSON."""
    if VOICE.get() != "quiet" and not as_json:
        print(f"Wrote {path}", file=sys.stderr)


def note(text: str) -> None:
    """Say in a line what a reader may want to know and what is no error; nothing if quiet."""
    if VOICE.get() != "quiet":
        print(f"textbench: {text}", file=sys.stderr)
