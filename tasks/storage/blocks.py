"""Arrays and csr matrices that are written a block at a time, byte for byte as numpy and scipy write them whole.

Matrices of very many values are kept in files of their own, which are read where they lie.
"""

import contextlib
import io
import zipfile
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.lib import format as npy
from scipy.sparse import csr_matrix

COPIED = 2**20  # bytes at once


class ArrayFile:
    """A `.npy` file that grows by its first axis; how long it is stands in its header once it is closed.

    numpy leaves room for that in the header of every file. further: the lengths of its other axes.
    """

    def __init__(self, path: Path, dtype: Any, further: tuple[int, ...] = ()) -> None:
        self._file = path.open("wb")
        self._dtype = np.dtype(dtype)
        self._further = further
        self._length = 0
        self._write_header()

    def append(self, array: np.ndarray) -> None:
        """Write an array, (n, ...), behind what is there."""
        self._file.write(np.ascontiguousarray(array, dtype=self._dtype).data)
        self._length += len(array)

    def _write_header(self) -> None:
        shape = (self._length, *self._further)
        about = {"descr": npy.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
        npy.write_array_header_1_0(self._file, about)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            self._file.seek(0)
            self._write_header()


class CsrFile:
    """A csr matrix of counts in a `.npz` file that grows by its rows.

    Byte for byte the file is that of `scipy.sparse.save_npz(..., compressed=False)`, once it is finished. Columns are
    written where they stay. Values have their place behind the last of them, so these wait in memory, in as few bytes
    each as those of a block need.
    """

    def __init__(self, path: Path, index: Any) -> None:
        """Make the file. index: int32 or int64, of columns and of where rows begin."""
        self._path = path
        self._index = np.dtype(index)
        self._n_entries = 0
        self._waiting: deque[np.ndarray] = deque()
        self._file = path.open("wb")
        self._file.seek(_start_of_indices(self._index, 0))

    def append(self, indices: np.ndarray, data: np.ndarray) -> None:
        """Write columns behind those that are there, and keep their values, (n,) each, whole and positive."""
        self._file.write(np.ascontiguousarray(indices, dtype=self._index).data)
        self._waiting.append(data.astype(np.min_scalar_type(data.max(initial=0))))
        self._n_entries += len(indices)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def finish(self, shape: tuple[int, int], indptr: np.ndarray) -> None:
        """Write the rest, once it is closed.

        shape: (n_rows, n_columns). indptr: (n_rows + 1,), where each row begins among the entries.
        """
        places = CsrPlaces(self._path, shape, self._n_entries, self._index)
        with self._path.open("r+b") as file:
            file.seek(places.data)
            while self._waiting:
                file.write(self._waiting.popleft().astype(np.int32).data)
        places.finish(indptr)


class CsrPlaces:
    """A csr matrix of int32 in a `.npz` file, whose columns and values others `put` where they belong.

    `indices` and `data` say where in the file, in bytes, the first of each is. Byte for byte the file is that of
    `scipy.sparse.save_npz(..., compressed=False)`, once it is finished.
    """

    def __init__(self, path: Path, shape: tuple[int, int], n_entries: int, index: np.dtype) -> None:
        """Make the file, or take the one that is there.

        shape: (n_rows, n_columns). index: int32 or int64, of columns and of where rows begin.
        """
        self.path = path
        self._shape = shape
        self._index = index
        self._n_entries = n_entries
        small = {name: _size_of(value) for name, value in self._small(np.zeros(shape[0] + 1, index)).items()}
        self.indices = _start_of_indices(index, n_entries)
        between = sum(_local_header(name) + size for name, size in small.items())
        header = len(_array_header(np.dtype(np.int32), n_entries))
        self.data = self.indices + n_entries * index.itemsize + between + _local_header("data") + header
        with path.open("ab") as file:
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


def _start_of_indices(index: np.dtype, n_entries: int) -> int:
    """Return where the columns of a matrix begin in its archive, however many they are."""
    return _local_header("indices") + len(_array_header(index, n_entries))


def _local_header(name: str) -> int:
    """Return the bytes before a member of an archive: 30, its name, and 20 for sizes of 64 bits."""
    return 30 + len(f"{name}.npy") + 20


def write_blocks(folder: Path, name: str, blocks: Iterable[np.ndarray | csr_matrix]) -> int:
    """Write a matrix some rows at a time; return how many rows hold nothing but zeros.

    blocks: all dense, (n, n_features), which become `<name>.npy`, or all csr, whose indices and values become
    `<name>.indices.npy` and `<name>.data.npy`, beside `<name>.npz` with indptr and shape, for `mapped_csr`.
    """
    files: dict[str, ArrayFile] = {}
    n_zero, n_columns, lengths = 0, 0, [np.zeros(1, dtype=np.int64)]
    with contextlib.ExitStack() as opened:

        def append(ending: str, array: np.ndarray) -> None:
            if ending not in files:
                file = ArrayFile(folder / f"{name}{ending}", array.dtype, array.shape[1:])
                files[ending] = opened.enter_context(file)
            files[ending].append(array)

        for block in blocks:
            if isinstance(block, np.ndarray):
                append(".npy", block)
                n_zero += int((~block.any(axis=1)).sum())
                continue
            append(".indices.npy", block.indices)
            append(".data.npy", block.data)
            n_zero += int((block.count_nonzero(axis=1) == 0).sum())
            lengths.append(np.diff(block.indptr))
            n_columns = block.shape[1]
    if ".npy" not in files:
        indptr = np.cumsum(np.concatenate(lengths), dtype=np.int64)
        np.savez(folder / f"{name}.npz", indptr=indptr, shape=(len(indptr) - 1, n_columns))
    return n_zero


def mapped_csr(folder: Path, name: str) -> csr_matrix:
    """Return a csr matrix that `write_blocks` wrote.

    Its indices and values are mapped, not copied: read when they are used, and given back when memory is short. They
    cannot be written to.
    """
    files = [folder / f"{name}.{part}.npy" for part in ("data", "indices")]
    with np.load(folder / f"{name}.npz", allow_pickle=False) as about:
        indptr, shape = about["indptr"], tuple(about["shape"].tolist())
    data, indices = (np.asarray(np.load(file, mmap_mode="r", allow_pickle=False)) for file in files)
    return csr_matrix((data, indices, indptr), shape=shape)
