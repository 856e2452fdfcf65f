"""Arrays and matrices that are written by blocks: the bytes of those that are written whole."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from textbench.tasks.storage.blocks import ArrayFile, CsrFiles, begin_array, mapped_csr, put, write_blocks
from textbench.tasks.storage.store import Artifact


@pytest.mark.parametrize("sizes", [(), (0,), (3, 0, 1_000_000)])
def test_an_array_has_the_bytes_that_numpy_writes(sizes: tuple[int, ...], tmp_path: Path) -> None:
    blocks = [np.arange(size, dtype=np.int32) for size in sizes]
    with ArrayFile(tmp_path / "mine.npy", np.int32) as file:
        for block in blocks:
            file.append(block)
    np.save(tmp_path / "theirs.npy", np.concatenate([np.zeros(0, dtype=np.int32), *blocks]))
    assert (tmp_path / "mine.npy").read_bytes() == (tmp_path / "theirs.npy").read_bytes()


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [(1, 1), (50, 7), (3000, 900)])
def test_a_matrix_that_grows_has_the_arrays_of_the_whole_one(
    shape: tuple[int, int], index: type, tmp_path: Path
) -> None:
    matrix = sp.random(*shape, density=0.1, rng=np.random.default_rng(0), format="csr", dtype=np.int32)
    with CsrFiles(tmp_path, "counts", index, np.int32, shape[1]) as file:
        for rows in (slice(0, 1), slice(1, 1), slice(1, None)):
            file.append(matrix[rows].indices, matrix[rows].data, np.diff(matrix[rows].indptr))
    assert np.load(tmp_path / "counts.indices.npy").dtype == index
    found = mapped_csr(tmp_path, "counts")
    assert found.shape == shape and found.dtype == np.int32 and found.has_canonical_format
    assert not found.indices.flags.owndata and not found.data.flags.writeable
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, name), getattr(matrix, name))


def test_values_put_in_any_order_make_the_file_that_numpy_writes(tmp_path: Path) -> None:
    values = np.arange(21, dtype=np.int64).reshape(7, 3)
    start = begin_array(tmp_path / "mine.npy", np.int64, 7, 3)
    for i in reversed(range(7)):
        put(tmp_path / "mine.npy", start + values[:i].nbytes, values[i])
    np.save(tmp_path / "theirs.npy", values)
    assert (tmp_path / "mine.npy").read_bytes() == (tmp_path / "theirs.npy").read_bytes()


@pytest.mark.parametrize("kind", ["csr", "array"])
def test_a_matrix_by_blocks_is_the_whole_one(kind: str, tmp_path: Path) -> None:
    """An empty row, a block without values and one of a single row among them."""
    rng = np.random.default_rng(0)
    whole = (rng.integers(0, 3, (20, 7)) * (rng.random((20, 1)) < 0.7)).astype(np.float32)
    whole[4:9] = 0
    made = sp.csr_matrix(whole) if kind == "csr" else whole
    artifact = Artifact(tmp_path, {})
    n_zero = write_blocks(
        tmp_path, "train", (made[low:high] for low, high in [(0, 4), (4, 9), (9, 10), (10, 20)])
    )
    assert n_zero == (~whole.any(axis=1)).sum()
    found = artifact.matrix("train")
    assert found.shape == whole.shape and found.dtype == whole.dtype
    np.testing.assert_array_equal(found if kind == "array" else found.toarray(), whole)
    if kind == "csr":
        assert not found.data.flags.writeable and not found.data.flags.owndata
        np.testing.assert_array_equal(found[[9, 2, 2]].toarray(), whole[[9, 2, 2]])
