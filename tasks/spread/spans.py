"""Spans: parts of stored files that workers read, from their own store or the shared root, and check by a sha256."""

import contextlib
import hashlib
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib import format as npy

from textbench.tasks.storage.files import Damaged
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.remote import Remote

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Store


@dataclass(frozen=True)
class Span:
    """Bytes `start` to `stop` of a file of an artifact, and their sha256."""

    artifact: Reference
    name: str
    start: int
    stop: int
    sha256: str

    @classmethod
    def of(cls, artifact: Reference, path: Path, start: int, stop: int) -> "Span":
        """Return a span of a file that was verified, at `path`."""
        with path.open("rb") as file:
            file.seek(start)
            return cls(artifact, path.name, start, stop, hashlib.sha256(file.read(stop - start)).hexdigest())

    def read(self, store: "Store") -> bytes:
        """Return the bytes; an artifact of a store that does not have them as they were is obtained anew.

        Raises OSError where it has others even then.
        """
        for is_again in (False, True):
            if is_again:
                store.open(self.artifact)
            found = self._bytes(store)
            if hashlib.sha256(found).hexdigest() == self.sha256:
                return found
        raise OSError(
            f"bytes {self.start} to {self.stop} of {store.folder(self.artifact) / self.name} differ between machines"
        )

    def _bytes(self, store: "Store") -> bytes:
        """Return what is there, from the shared root if the artifact is not here; it is computed if it is nowhere."""
        path = store.folder(self.artifact) / self.name
        if not path.exists():
            if store.remote is not None:
                with contextlib.suppress(FileNotFoundError, Damaged):
                    return Remote(store.remote).read(self.artifact, self.name, self.start, self.stop)
            path = store.open(self.artifact).folder / self.name
        with path.open("rb") as file:
            file.seek(self.start)
            return file.read(self.stop - self.start)


def arrays_in(path: Path) -> dict[str, tuple[int, np.dtype]]:
    """Return where each array of an uncompressed `.npz` file begins, in bytes, and its dtype."""
    found = {}
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            file.seek(info.header_offset + 26)  # how long a member's name is, and what follows that
            file.seek(sum(struct.unpack("<HH", file.read(4))), 1)
            npy.read_magic(file)
            _, _, dtype = npy.read_array_header_1_0(file)
            found[info.filename.removesuffix(".npy")] = file.tell(), dtype
    return found
