"""Folds: every document once, every class its share, repeatable, and the corners of few documents."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from tests.test_evaluation_probes_catalogue import blobs, several_blobs
from textbench.evaluation.probes.folds import folds_of, rows


def test_folds_of_several_labels_share_out_every_label_and_are_repeatable() -> None:
    X, Y = several_blobs(6)
    folds = folds_of(X, csr_matrix(Y), 3, 0)
    np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), np.arange(90))
    shares = np.array([Y[test].sum(axis=0) for _, test in folds])
    assert (np.abs(shares - Y.sum(axis=0) / 3) <= 2).all()
    again = folds_of(X, Y, 3, 0)
    assert all((a == b).all() for (_, a), (_, b) in zip(folds, again, strict=True))
    other = folds_of(X, Y, 3, 1)
    assert any(len(a) != len(b) or (a != b).any() for (_, a), (_, b) in zip(folds, other, strict=True))


@pytest.mark.parametrize("share", [0.1, 1 / 3, 0.5])
def test_a_part_held_out_has_its_share_of_every_class(share: float) -> None:
    y = np.random.default_rng(0).permutation(np.repeat([0, 1, 2, 5], [1, 7, 40, 152]))
    ((train, test),) = folds_of(y, y, 3, 0, held_out=share)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(200))
    assert len(test) == round(200 * share)
    for c, n in zip(*np.unique(y, return_counts=True), strict=True):
        assert abs((y[test] == c).sum() - n * share) <= 1
    ((_, again),), ((_, other),) = (folds_of(y, y, 3, seed, held_out=share) for seed in (0, 1))
    np.testing.assert_array_equal(test, again)
    assert (test != other).any()


def test_every_document_is_held_out_as_often() -> None:
    y = np.repeat([0, 1, 2], [2, 30, 8])
    held = np.zeros(40)
    for seed in range(2000):
        held[folds_of(y, y, 3, seed, held_out=0.25)[0][1]] += 1
    # A binomial count of 2,000 draws at 1/4 has standard deviation 19.4.
    assert abs(held - 500).max() < 4 * 19.4


def test_a_part_held_out_has_its_share_of_every_label() -> None:
    X, Y = several_blobs(6)
    ((train, test),) = folds_of(X, csr_matrix(Y), 3, 0, held_out=0.2)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(90))
    assert (np.abs(Y[test].sum(axis=0) - 0.2 * Y.sum(axis=0)) <= 2).all()
    ((_, again),) = folds_of(X, Y, 3, 0, held_out=0.2)
    np.testing.assert_array_equal(test, again)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("share", [0.01, 0.99])
def test_both_sides_of_a_part_held_out_have_a_document(n: int, share: float) -> None:
    for y in (np.arange(n), np.zeros(n, dtype=int), np.ones((n, 1)), np.eye(n), np.zeros((n, 2))):
        ((train, test),) = folds_of(y, y, 3, 0, held_out=share)
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(n))
        assert len(train)
        assert len(test)
    assert folds_of(np.zeros(1), np.zeros(1, dtype=int), 3, 0, held_out=share) == []


def test_rows_of_a_matrix_and_of_a_list() -> None:
    documents = np.array([2, 0])
    X = csr_matrix(np.arange(6).reshape(3, 2))
    np.testing.assert_array_equal(rows(X, documents).toarray(), [[4, 5], [0, 1]])
    assert rows(["a", "b", "c"], documents) == ["c", "a"]


def test_bad_input_is_named() -> None:
    X, y = blobs(0)
    for share in (0.0, 1.0, -0.5):
        with pytest.raises(ValueError, match=rf"held_out must lie between 0 and 1.*received {share}"):
            folds_of(X, y, 3, 0, held_out=share)
    with pytest.raises(ValueError, match="n_folds must be at least 2; received 1"):
        folds_of(X, y, 1, 0)
    with pytest.raises(ValueError, match="received 89 rows, 90 classes"):
        folds_of(X[1:], y, 3, 0)


def test_documents_that_are_given_are_held_out_and_no_others() -> None:
    y = np.arange(10) % 2
    ((train, test),) = folds_of(y, y, 3, 0, held_out=[7, 2, 3])
    assert (train.tolist(), test.tolist()) == ([0, 1, 4, 5, 6, 8, 9], [2, 3, 7])
    for wrong in ([], list(range(10)), [10], [-1]):
        with pytest.raises(ValueError, match="held_out must be positions of some of the 10 documents"):
            folds_of(y, y, 3, 0, held_out=wrong)
