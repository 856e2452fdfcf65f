"""Arrays and csr matrices that are written a block at a time: the bytes that numpy writes whole, read in place."""

import itertools
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.lib import format as npy
from scipy.sparse import csr_matrix


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
        _write_header(self._file, self._dtype, (self._length, *self._further))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: Any) -> None:
        with self._file:
            self._file.seek(0)
            self._write_header()


class CsrFiles:
    """A csr matrix that grows by its rows, for `mapped_csr`.

    Columns and values are in files of their own, `<name>.indices.npy` and `<name>.data.npy`: they are written where
    they stay, and read where they lie. Once it is closed, `<name>.npz` says where rows begin, and the shape.
    """

    def __init__(self, folder: Path, name: str, index: Any, values: Any, n_columns: int) -> None:
        """Begin the files. index: int32 or int64, of columns. values: the dtype of values."""
        self._place, self._n_columns = (folder, name), n_columns
        self._indices = ArrayFile(folder / f"{name}.indices.npy", index)
        self._data = ArrayFile(folder / f"{name}.data.npy", values)
        self._sizes = [np.zeros(0, dtype=np.int64)]

    def append(self, indices: np.ndarray, data: np.ndarray, sizes: np.ndarray) -> None:
        """Write rows behind those that are there: columns and values, (n,) each; how many each row has, (n_rows,)."""
        self._indices.append(indices)
        self._data.append(data)
        self._sizes.append(sizes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: Any) -> None:
        with self._indices, self._data:
            save_rows(*self._place, np.concatenate(self._sizes), self._n_columns)


def save_rows(folder: Path, name: str, sizes: np.ndarray, n_columns: int) -> None:
    """Write where rows begin and the shape of a matrix whose rows have so many entries: sizes, int64 (n_rows,)."""
    indptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
    np.savez(folder / f"{name}.npz", indptr=indptr, shape=(len(sizes), n_columns))


def begin_array(path: Path, dtype: Any, *shape: int) -> int:
    """Make a `.npy` file whose values others `put`; return where they begin in it, in bytes."""
    with path.open("wb") as file:
        _write_header(file, np.dtype(dtype), shape)
        start = file.tell()
        file.truncate(start + math.prod(shape) * np.dtype(dtype).itemsize)
    return start


def _write_header(file: BinaryIO, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    about = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(file, about)


def put(path: Path, at: int, array: np.ndarray) -> None:
    """Write an array's bytes into a file that is there, from byte `at` on."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(np.ascontiguousarray(array).data)


def write_blocks(folder: Path, name: str, blocks: Iterable[np.ndarray | csr_matrix]) -> int:
    """Write a matrix some rows at a time; return how many rows hold nothing but zeros.

    blocks: all dense, (n, n_features), which become `<name>.npy`, or all csr, which become the files of `CsrFiles`.
    """
    blocks = iter(blocks)
    first, n_zero = next(blocks), 0
    if isinstance(first, np.ndarray):
        with ArrayFile(folder / f"{name}.npy", first.dtype, first.shape[1:]) as file:
            for block in itertools.chain([first], blocks):
                file.append(block)
                n_zero += int((~block.any(axis=1)).sum())
        return n_zero
    with CsrFiles(folder, name, first.indices.dtype, first.dtype, first.shape[1]) as files:
        for block in itertools.chain([first], blocks):
            files.append(block.indices, block.data, np.diff(block.indptr))
            n_zero += int((block.count_nonzero(axis=1) == 0).sum())
    return n_zero


def mapped_csr(folder: Path, name: str) -> csr_matrix:
    """Return a csr matrix that `write_blocks` or `CsrFiles` wrote.

    Its indices and values are mapped, not copied: read when they are used, and given back when memory is short. They
    cannot be written to.
    """
    files = [folder / f"{name}.{part}.npy" for part in ("data", "indices")]
    with np.load(folder / f"{name}.npz", allow_pickle=False) as about:
        indptr, shape = about["indptr"], tuple(about["shape"].tolist())
    data, indices = (np.asarray(np.load(file, mmap_mode="r", allow_pickle=False)) for file in files)
    return csr_matrix((data, indices, indptr), shape=shape)
