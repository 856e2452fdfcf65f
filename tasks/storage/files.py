"""Files that are there whole or not at all, and artifacts' metas, whose checksum tells when one was altered."""

import contextlib
import hashlib
import json
import os
import shutil
import struct
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.tasks.storage.recipe import canonical_json

if TYPE_CHECKING:
    import numpy as np

META = "meta.json"
OLD = "-old"  # ends the name of what is replaced, until what replaces it is in its place
NAME_LENGTHS = 26  # where a member's own header in a zip file says how long its name and its extra field are


class Damaged(Exception):
    """An artifact's files are not what its meta.json promises."""


def put(folder: Path, place: Path) -> None:
    """Rename `folder` to `place`, replacing what is there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    flush(folder)
    if place.exists():
        old = folder.with_name(f"{folder.name}{OLD}")
        place.rename(old)
        folder.rename(place)
        shutil.rmtree(old, ignore_errors=True)
    else:
        folder.rename(place)
    flush(place.parent)


def is_let_go(folder: Path) -> bool:
    """Tell whether of an artifact nothing but its meta.json was kept (`tasks.storage.garbage.let_go`)."""
    return [path.name for path in folder.iterdir()] == [META]


def flush(path: Path) -> None:
    """Have the system write a file or folder to its disk before it goes on."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def describe(path: Path) -> dict[str, Any]:
    """Return the sha256 and the size in bytes of a file, once it is on its disk."""
    flush(path)
    return {"sha256": sha256_of(path), "bytes": path.stat().st_size}


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_npz(path: Path) -> "dict[str, np.ndarray]":
    """Return the arrays of an `.npz` file that is not compressed, each by one read, without the zip's checksums.

    For files whose sha256 has been checked: a third of numpy's seconds. Raises ValueError for a compressed one.
    """
    from numpy.lib import format as npy

    found = {}
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{path} must not be compressed, and {member.filename} is")
            file.seek(member.header_offset + NAME_LENGTHS)
            file.seek(sum(struct.unpack("<HH", file.read(4))), os.SEEK_CUR)
            found[member.filename.removesuffix(".npy")] = npy.read_array(file, allow_pickle=False)
    return found


def _checksum(meta: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_json(meta).encode()).hexdigest()


def read_meta(path: Path) -> dict[str, Any]:
    """Return the meta.json at `path`. Raises OSError when it is missing and Damaged when it is not what was written."""
    try:
        meta = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise Damaged(f"{path} cannot be read") from error
    return intact(meta, str(path))


def sealed(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return a meta with the checksum that it is written with."""
    return dict(meta) | {"checksum": _checksum(meta)}


def intact(value: Any, name: str) -> dict[str, Any]:
    """Return the meta that was sealed to `value`. Raises Damaged, with the file's name, when it is not what it was."""
    try:
        meta = dict(value)
        checksum = meta.pop("checksum")
        is_intact = _checksum(meta) == checksum
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{name} cannot be read") from error
    if not is_intact:
        raise Damaged(f"{name} was altered")
    return meta


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, empty where there is none or it is damaged."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_json(path: Path, value: Any) -> None:
    """Write `value` to `path` so that the file is there whole or not at all, even after a crash."""
    with whole(path) as part:
        part.write_text(json.dumps(value, ensure_ascii=False, indent=1), "utf-8")


@contextlib.contextmanager
def whole(path: Path, *, is_new: bool = False, ending: str = ".part") -> Iterator[Path]:
    """Give a path beside `path`, with this ending; what is written there takes the place of `path` at the end.

    So the file is there whole or not at all, even after a crash. Raises FileExistsError where it is to be new and is
    not.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}{ending}")
    try:
        yield part
        flush(part)
        if is_new:
            os.link(part, path)
        else:
            part.rename(path)
    finally:
        part.unlink(missing_ok=True)
