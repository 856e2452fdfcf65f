"""Arrays and matrices that are written by blocks: the bytes of those that are written whole."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from textbench.tasks.storage.blocks import ArrayFile, write_csr


@pytest.mark.parametrize("sizes", [(), (0,), (3, 0, 1_000_000)])
def test_an_array_has_the_bytes_that_numpy_writes(sizes: tuple[int, ...], tmp_path: Path) -> None:
    blocks = [np.arange(size, dtype=np.int32) for size in sizes]
    with ArrayFile(tmp_path / "mine.npy", np.int32) as file:
        for block in blocks:
            file.append(block)
    np.save(tmp_path / "theirs.npy", np.concatenate([np.zeros(0, dtype=np.int32), *blocks]))
    assert (tmp_path / "mine.npy").read_bytes() == (tmp_path / "theirs.npy").read_bytes()


@pytest.mark.parametrize("shape", [(1, 1), (50, 7), (3000, 900)])
def test_a_matrix_has_the_bytes_that_scipy_writes(shape: tuple[int, int], tmp_path: Path) -> None:
    matrix = sp.csr_matrix(sp.random(*shape, density=0.1, random_state=0, format="csr"))
    for name in ("indices", "data"):
        with ArrayFile(tmp_path / name, getattr(matrix, name).dtype.type) as file:
            for block in np.array_split(getattr(matrix, name), 3):
                file.append(block)
    write_csr(tmp_path / "mine.npz", shape, tmp_path / "indices", matrix.indptr, tmp_path / "data")
    sp.save_npz(tmp_path / "theirs.npz", matrix, compressed=False)
    assert (tmp_path / "mine.npz").read_bytes() == (tmp_path / "theirs.npz").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.npz", "theirs.npz"]
