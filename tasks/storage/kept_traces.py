"""Traces that are kept between commands, in the user's cache folder: following definitions takes most of a plan's time.

A kept trace holds for the very content (sha256) of every file that was looked at, the absent ones included, and for the
code that follows definitions. Where the folder cannot be written to, or a file in it is damaged, definitions are
followed again.
"""

import contextlib
import functools
import hashlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textbench.tasks.storage import definitions
from textbench.tasks.storage.definitions import Entry, Trace, stamp

# A file that was changed so shortly ago may change again without its stamp showing it.
SETTLED_NS = 2_000_000_000


def kept(entries: Sequence[Entry]) -> Trace | None:
    """Return the trace of the entries that an earlier command kept, None if there is none for these files."""
    try:
        checksum, text = _place(entries).read_text("utf-8").split("\n", 1)
    except (OSError, ValueError):  # UnicodeDecodeError is one
        return None
    if checksum != definitions.digest(text):
        return None
    found = json.loads(text)
    seen = {}
    for name, content in found["seen"].items():
        path = definitions.PROJECT / name
        seen[path] = stamp(path)
        if _content(path, seen[path]) != content:
            return None
    return Trace(found["code"], frozenset(found["definitions"]), frozenset(found["libraries"]), seen)


def keep(entries: Sequence[Entry], trace: Trace) -> None:
    """Keep a trace for later commands, unless a file has changed since it was looked at, or only just before."""
    seen = {}
    for path, known in trace.seen.items():
        if stamp(path) != known or (known and time.time_ns() - known[0] < SETTLED_NS):
            return
        inside = path.is_relative_to(definitions.PROJECT)
        seen[str(path.relative_to(definitions.PROJECT) if inside else path)] = _content(path, known)
    value: dict[str, Any] = {"code": trace.code, "seen": seen}
    value |= {"definitions": sorted(trace.definitions), "libraries": sorted(trace.libraries)}
    text = json.dumps(value)
    place = _place(entries)
    part = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(f"{definitions.digest(text)}\n{text}", "utf-8")
        part.replace(place)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()


def _place(entries: Sequence[Entry]) -> Path:
    from platformdirs import user_cache_path

    name = definitions.digest(json.dumps(entries), _followers())[:32]
    return user_cache_path("textbench", appauthor=False) / "traces" / f"{name}.json"


@functools.cache
def _followers() -> str:
    """Return the digest of the code that follows definitions, and of what parses them."""
    here = Path(__file__).parent
    files = [(here / name).read_text("utf-8") for name in ("definitions.py", "shapes.py")]
    return definitions.digest(*files, sys.version)


@functools.lru_cache(maxsize=4096)
def _content(path: Path, known: tuple[int, int] | None) -> str | None:
    """Return the sha256 of a file with this stamp, None of one that is not there."""
    if known is None:
        return None
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
