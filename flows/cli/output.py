"""What a command writes: JSON Lines, and files and folders, checked by one rule before anything is computed."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from textbench.tasks import InputError

FIGURES = (".svg", ".png", ".pdf")


def print_json(row: Mapping[str, Any]) -> None:
    """Print a row as a line of JSON."""
    print(json.dumps(row, ensure_ascii=False), flush=True)


def check_file(option: str, path: Path | None, endings: Sequence[str] = ()) -> None:
    """See that an option's file can be written; folders that are missing are made. Without a path all is well.

    endings: what its name may end in, whatever the case; anything if empty. Raises InputError for another ending, for a
    folder, and for a place that cannot be written to.
    """
    if path is None:
        return
    if endings and path.suffix.lower() not in endings:
        raise InputError(f"{option} must end in {', '.join(endings)}, got {path.name}")
    if path.is_dir():
        raise InputError(f"{option} names a file to write, got the folder {path}")
    check_folder(option, path.parent, path)
    try:
        if path.exists():
            path.open("ab").close()
    except OSError as error:
        raise InputError(f"{option} {path} cannot be written: {error.strerror}") from error


def check_figure(path: Path | None) -> None:
    """See that the picture that --figure asks for can be written. Raises InputError where it cannot."""
    check_file("--figure", path, FIGURES)


def check_folder(option: str, folder: Path | None, path: Path | None = None) -> None:
    """See that files can be written to a folder, which is made if it is missing; `path` is what messages name.

    Raises InputError where they cannot be.
    """
    if folder is None:
        return
    named = path or folder
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise InputError(f"{option} {named} cannot be written: {place} is a file, not a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Permissions do not tell of every file system; writing does.
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise InputError(f"{option} {named} cannot be written: {error.strerror}") from error
