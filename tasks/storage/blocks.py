"""Arrays and csr matrices that are written a block at a time, byte for byte as numpy and scipy write them whole."""

import shutil
import zipfile
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.lib import format as npy

COPIED = 2**20  # bytes at once


class ArrayFile:
    """A `.npy` file of one axis that grows; how long it is stands in its header once it is closed.

    numpy leaves room for that in the header of every file.
    """

    def __init__(self, path: Path, dtype: type) -> None:
        self._file = path.open("wb")
        self._dtype = np.dtype(dtype)
        self._length = 0
        self._write_header()

    def append(self, array: np.ndarray) -> None:
        """Write an array, (n,), behind what is there."""
        self._file.write(np.ascontiguousarray(array, dtype=self._dtype).data)
        self._length += len(array)

    def _write_header(self) -> None:
        about = {"descr": npy.dtype_to_descr(self._dtype), "fortran_order": False, "shape": (self._length,)}
        npy.write_array_header_1_0(self._file, about)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            self._file.seek(0)
            self._write_header()


def write_csr(path: Path, shape: tuple[int, int], indices: Path, indptr: np.ndarray, data: Path) -> None:
    """Write a csr matrix as `scipy.sparse.save_npz(..., compressed=False)` does, from `.npy` files, which go."""
    parts: dict[str, Path | np.ndarray] = {
        "indices": indices,
        "indptr": indptr,
        "format": np.asarray(b"csr"),
        "shape": np.asarray(shape),
        "data": data,
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, part in parts.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                if isinstance(part, Path):
                    with part.open("rb") as file:
                        shutil.copyfileobj(file, member, COPIED)
                    part.unlink()
                else:
                    npy.write_array(member, part, allow_pickle=False)
