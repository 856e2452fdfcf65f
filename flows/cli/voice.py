"""How much commands say on standard error: `textbench --quiet` and `--verbose`."""

import sys
from contextvars import ContextVar
from typing import Literal

Voice = Literal["quiet", "normal", "verbose"]

VOICE: ContextVar[Voice] = ContextVar("VOICE", default="normal")


def note(text: str) -> None:
    """Say in a line what a reader may want to know and what is no error; nothing if quiet."""
    if VOICE.get() != "quiet":
        print(f"textbench: {text}", file=sys.stderr)
