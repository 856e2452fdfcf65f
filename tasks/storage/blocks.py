"""Arrays and csr matrices that are written a block at a time, byte for byte as numpy and scipy write them whole."""

import io
import shutil
import zipfile
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

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


class CsrPlaces:
    """A csr matrix of int32 in a `.npz` file, whose columns and values others `put` where they belong.

    `indices` and `data` say where in the file, in bytes, the first of each is. Byte for byte the file is that of
    `scipy.sparse.save_npz(..., compressed=False)`, once it is finished.
    """

    def __init__(self, path: Path, shape: tuple[int, int], n_entries: int, index: np.dtype) -> None:
        """Make the file. shape: (n_rows, n_columns). index: int32 or int64, of columns and of where rows begin."""
        self.path = path
        self._shape = shape
        self._index = index
        self._n_entries = n_entries
        small = {name: _size_of(value) for name, value in self._small(np.zeros(shape[0] + 1, index)).items()}
        self.indices = _local_header("indices") + len(_array_header(index, n_entries))
        between = sum(_local_header(name) + size for name, size in small.items())
        header = len(_array_header(np.dtype(np.int32), n_entries))
        self.data = self.indices + n_entries * index.itemsize + between + _local_header("data") + header
        with path.open("wb") as file:
            file.truncate(self.data + 4 * n_entries)

    def _small(self, indptr: np.ndarray) -> dict[str, np.ndarray]:
        return {"indptr": indptr, "format": np.asarray(b"csr"), "shape": np.asarray(self._shape)}

    def finish(self, indptr: np.ndarray) -> None:
        """Write what is not there yet; indptr: (n_rows + 1,), where each row begins among the entries."""
        with self.path.open("r+b") as file:
            given = _Given(file)
            with zipfile.ZipFile(given, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
                self._adopt(archive, given, "indices", self._index, self.indices)
                for name, part in self._small(indptr).items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        npy.write_array(member, part, allow_pickle=False)
                self._adopt(archive, given, "data", np.dtype(np.int32), self.data)

    def _adopt(
        self, archive: zipfile.ZipFile, given: "_Given", name: str, dtype: np.dtype, start: int
    ) -> None:
        """Make an array that is in the file from `start` on, but for its header, a member of the archive."""
        with archive.open(f"{name}.npy", "w", force_zip64=True) as member, self.path.open("rb") as file:
            member.write(_array_header(dtype, self._n_entries))
            if given.tell() != start:
                raise AssertionError(f"{name} begin at {given.tell()}, not at {start}")
            file.seek(start)
            given.is_there = True
            left = self._n_entries * dtype.itemsize
            while left:
                left -= member.write(file.read(min(COPIED, left)))
            given.is_there = False


class _Given:
    """A file that holds what is written to it already, while `is_there`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.is_there = False

    def write(self, content: bytes) -> int:
        if not self.is_there:
            return self._file.write(content)
        self._file.seek(len(content), 1)
        return len(content)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def put(path: Path, at: int, array: np.ndarray) -> None:
    """Write an array's bytes into a file that is there, from byte `at` on."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(np.ascontiguousarray(array).data)


def write_array_header(file: BinaryIO, dtype: np.dtype, *shape: int) -> int:
    """Write the header of a `.npy` file of this dtype and shape; return the number of its bytes."""
    return file.write(_array_header(dtype, *shape))


def _array_header(dtype: np.dtype, *shape: int) -> bytes:
    header = io.BytesIO()
    about = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(header, about)
    return header.getvalue()


def _size_of(array: np.ndarray) -> int:
    return len(_array_header(array.dtype, *array.shape)) + array.nbytes


def _local_header(name: str) -> int:
    """Return the bytes before a member of an archive: 30, its name, and 20 for sizes of 64 bits."""
    return 30 + len(f"{name}.npy") + 20
