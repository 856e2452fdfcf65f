"""Reading arrays of files whose sha256 was checked: what numpy and scipy read, by other means."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from textbench.tasks.storage.files import read_npz
from textbench.tasks.storage.store import Artifact


def test_arrays_are_those_that_numpy_reads(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    saved = {
        "empty": np.zeros((0, 3)),
        "none": np.asarray(7),
        "words": np.array(["é", "text"]),
        "bytes": np.asarray(b"csr"),
        "columns first": np.asfortranarray(rng.random((4, 5))),
        "odd": rng.integers(0, 99, 1001).astype(np.uint8),
        "Länge": rng.random(70_000, dtype=np.float32),
        "bools": rng.random((3, 2, 2)) > 0.5,
    }
    path = tmp_path / "arrays.npz"
    np.savez(path, allow_pickle=False, **saved)
    found = read_npz(path)
    with np.load(path) as theirs:
        assert list(found) == list(theirs)
        for name, array in theirs.items():
            assert found[name].dtype == array.dtype and found[name].shape == array.shape
            assert np.array_equal(found[name], array) and np.array_equal(found[name], saved[name])
            assert found[name].flags.aligned and found[name].flags.writeable
            assert found[name].flags.f_contiguous == array.flags.f_contiguous


def test_a_compressed_file_is_refused(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "small.npz", zeros=np.zeros(100))
    with pytest.raises(ValueError, match=r"small.npz must not be compressed, and zeros.npy is"):
        read_npz(tmp_path / "small.npz")


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("shape", [(30, 20), (0, 4), (3, 0)])
def test_matrices_are_those_that_scipy_reads(kind: type, shape: tuple[int, int], tmp_path: Path) -> None:
    matrix = kind(sp.random(*shape, density=0.2, random_state=0, dtype=np.float32))
    sp.save_npz(tmp_path / "matrix.npz", matrix, compressed=False)
    found, theirs = Artifact(tmp_path, {}).matrix("matrix"), sp.load_npz(tmp_path / "matrix.npz")
    assert type(found) is type(theirs) is kind and found.shape == shape
    for name in ("data", "indices", "indptr"):
        one, other = getattr(found, name), getattr(theirs, name)
        assert one.dtype == other.dtype and np.array_equal(one, other)
