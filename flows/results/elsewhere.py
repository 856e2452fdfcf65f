"""Results from elsewhere: packed boards that were added to a results folder, kept apart from its own.

`<home>/elsewhere/<first digits of its sha256>.parquet` is a board as it came, and beside it `.json` says from where
and when. What was run here too, by the same key, is shown as run here alone.
"""

import os
import tempfile
import time
import urllib.parse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from textbench.flows.results import packed
from textbench.tasks import InputError
from textbench.tasks.sources.download import fetch
from textbench.tasks.storage.files import read_json, sha256_of, whole, write_json

FOLDER = "elsewhere"
DIGITS = 12


class Added(NamedTuple):
    """A board that was added: its sha256, from where, the day, and its lines."""

    sha256: str
    origin: str
    added: str
    lines: list[packed.Line]

    @property
    def name(self) -> str:
        """What tables call it: the file's name, and the beginning of its sha256."""
        return f"{Path(urllib.parse.urlsplit(self.origin).path).name} ({self.sha256[:8]})"


def add(home: Path, origin: str) -> Added:
    """Check a packed board, a file or a URL, keep it in a results folder, and return it; twice changes nothing.

    Raises InputError for what cannot be had, is no packed board, or was altered.
    """
    folder = home / FOLDER
    if origin.startswith(("http://", "https://")):
        if os.environ.get("TEXTBENCH_OFFLINE"):
            raise InputError(f"TEXTBENCH_OFFLINE is set: {origin} is not fetched; give a file")
        with tempfile.TemporaryDirectory() as temporary:
            part = Path(temporary) / "board.parquet"
            fetch(origin, part, size=packed.MOST_BYTES // 2)
            lines = _named(part, origin)
            return _kept(folder, part, origin, lines)
    path = Path(origin)
    return _kept(folder, path, path.name, packed.read(path))


def _named(part: Path, origin: str) -> list[packed.Line]:
    """Return the lines of what was downloaded; a message is about where it came from."""
    try:
        return packed.read(part)
    except InputError as error:
        raise InputError(str(error).replace(str(part), origin)) from error


def _kept(folder: Path, path: Path, origin: str, lines: list[packed.Line]) -> Added:
    sha256 = sha256_of(path)
    place = folder / f"{sha256[:DIGITS]}.parquet"
    about = place.with_suffix(".json")
    known = read_json(about)
    if not place.exists() or sha256_of(place) != sha256 or not {"origin", "added"} <= known.keys():
        with whole(place) as part:
            part.write_bytes(path.read_bytes())
        day = time.strftime("%Y-%m-%d", time.gmtime())
        known = {"sha256": sha256, "origin": origin, "added": day}
        write_json(about, known)
    return Added(sha256, known["origin"], known["added"], lines)


def boards(home: Path) -> tuple[list[Added], list[str]]:
    """Return the boards that were added to a results folder, by the day and their sha256, and why others are not read.

    One that is damaged keeps none of the others from being read.
    """
    found, damaged = [], []
    for board in _known(home):
        try:
            found.append(board._replace(lines=packed.read(_place(home, board))))
        except InputError as error:
            damaged.append(
                f"{error}; add it again, or take it away with: textbench results forget {board.sha256[:DIGITS]}"
            )
    return found, damaged


def _known(home: Path) -> list[Added]:
    """Return the boards that were added, without their lines."""
    told = [(about.stem, read_json(about)) for about in sorted((home / FOLDER).glob("*.json"))]
    found = [
        Added(_sha256(about, stem), str(about.get("origin", stem)), str(about.get("added", "")), [])
        for stem, about in told
    ]
    return sorted(found, key=lambda board: (board.added, board.sha256))


def _sha256(about: Mapping[str, Any], stem: str) -> str:
    """Return the sha256 that is said of a board, its file's name where that is another."""
    said = str(about.get("sha256"))
    return said if said.startswith(stem) else stem


def _place(home: Path, board: Added) -> Path:
    return home / FOLDER / f"{board.sha256[:DIGITS]}.parquet"


def forget(home: Path, name: str) -> Added:
    """Take an added board away, by its file's name or the beginning of its sha256, and return it without its lines.

    Raises InputError for another name.
    """
    known = _known(home)
    meant = [b for b in known if name == b.name or name == b.name.split(" (")[0] or b.sha256.startswith(name)]
    if len(meant) != 1:
        names = ", ".join(board.name for board in known) or "none"
        raise InputError(
            f"{name!r} is {'more than one' if meant else 'no'} board that was added; there are: {names}"
        )
    place = _place(home, meant[0])
    place.with_suffix(".json").unlink()
    place.unlink(missing_ok=True)
    return meant[0]


def without_own(lines: Iterable[packed.Line], rows: Iterable[Mapping[str, Any]]) -> list[packed.Line]:
    """Return the lines that have a cell that was not run here: of what was, the own run counts."""
    here = {row["key"] for row in rows if row.get("key")}
    return [line for line in lines if not set(line["cells"]) & here]
