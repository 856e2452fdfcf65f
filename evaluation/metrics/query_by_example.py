"""Retrieval by example: a test document queries the training documents, its own class is what it looks for.

Source: Manning, Raghavan, Schuetze, Introduction to Information Retrieval (2008), section 8.4; ties after
McSherry, Najork, Computing Information Retrieval Performance Measures Efficiently in the Presence of Tied
Scores, ECIR (2008).
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from textbench.evaluation.columns import column_counts, row_blocks
from textbench.evaluation.cores import in_threads
from textbench.evaluation.metrics.query_scores import QueryScores

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Columns that more of the documents have are multiplied dense, where they hold most pairs of values: the sparse product
# has the square of this share of a column's pairs, and takes 40 to 60 times as long for each.
DENSE = 0.1
DEEPEST = 10  # precision is reported down to rank 10
BLOCK_BYTES = 2**24  # of scores at a time; the product they come from takes up to three times as much
# Unit vectors of the training documents that take more are not kept: they are made again, so many bytes at a time, for
# each of fewer and larger blocks of scores.
KEPT_BYTES, MADE_BYTES, MANY_SCORES = 2**32, 2**28, 2**32
# Unit vectors on a grid of 2^-26 have products on a grid of 2^-52 and partial sums below 2: float64 adds
# them without rounding, hence in any order, and equal documents get equal scores wherever they stand.
FIXED_POINT = 2.0**26
# Each pair of a test and a training document costs the same. With more than FEW training documents N_ASKED test
# documents are asked for all: the 95 % interval of a mean is then at most 1.6 points wide to each side, and 0.8 where
# the values' standard deviation is 0.25, as on 20 Newsgroups.
FEW = 20_000
N_ASKED = 4_000
NDCG_DISCOUNTS = 1 / np.log2(np.arange(2, 7))


def asked(n_train: int, n_test: int) -> np.ndarray:
    """Return the test documents that are queries, rising ints: all, or a sample that the numbers alone decide.

    So every method and seed on the same documents asks the same ones.
    """
    if n_train <= FEW or n_test <= N_ASKED:
        return np.arange(n_test)
    return np.sort(np.random.default_rng(n_test).choice(n_test, N_ASKED, replace=False))


def search_by_example(
    train: "np.ndarray | csr_matrix",
    train_targets: np.ndarray,
    test: "np.ndarray | csr_matrix",
    test_targets: np.ndarray,
) -> QueryScores:
    """Retrieval by example (query by document): rank the training documents by cosine to each test document.

    train, test: csr or dense, (n_train, n_features) and (n_test, n_features), both of one kind, not modified.
    train_targets, test_targets: (n_train,) and (n_test,) ints; a training document is relevant to a query of
    its class. Cosines are compared as float32; a zero vector has cosine 0 to all. Memory: a float64 copy
    or two of the features, those that are multiplied dense as arrays, and 64 MB; where one takes more than 4 GB, 6 GB.

    Equal scores are averaged over their orders, so that no measure depends on the order of the documents.
    Average precision sums (R_n - R_(n-1)) P_n over the distinct scores; precision at k is the expected number
    of relevant documents in the first k, over k also when there are fewer than k; nDCG has gains 0 and 1.
    ValueError for no documents, shapes that differ or values that are not finite.
    """
    _check(train, train_targets, test, test_targets)
    n_train, n_test = len(train_targets), len(test_targets)
    average_precision = np.zeros(n_test)
    hits = np.zeros((n_test, DEEPEST))
    ndcg = np.zeros(n_test)
    keys = np.empty((2, n_train), dtype=np.uint64)
    shares = np.empty(n_train)
    for start, block in _cosines(train, test):
        for row, scores in enumerate(block, start):
            n_relevant = _rank(scores, train_targets, test_targets[row], keys, shares, hits[row])
            if n_relevant:
                average_precision[row] = shares[:n_relevant].mean()
                ndcg[row] = _ndcg(hits[row], n_relevant)
    precision = hits / np.arange(1, DEEPEST + 1)
    return QueryScores(
        average_precision=average_precision,
        precision_at_1=precision[:, 0],
        precision_at_3=precision[:, 2],
        precision_at_5=precision[:, 4],
        precision_at_10=precision[:, 9],
        ndcg_at_5=ndcg,
        n_without_relevant=int(np.isin(test_targets, train_targets, invert=True).sum()),
    )


@njit(nogil=True, cache=True)
def _rank(
    scores: np.ndarray,
    targets: np.ndarray,
    wanted: int,
    keys: np.ndarray,
    shares: np.ndarray,
    hits: np.ndarray,
) -> int:
    """Judge one ranking, and return how many documents are relevant: those with the target `wanted`.

    scores: float32 (n,), finite. targets: (n,) ints. keys: uint64 (2, n), overwritten. shares: float64 (n,), its
    beginning is overwritten: of each relevant document, from the lowest score to the highest, P_n, the share of
    relevant ones among all that score as high as itself or higher, ties included. Their mean is the average
    precision: the sum over distinct scores of (R_n - R_(n-1)) P_n. hits: float64 (DEEPEST,), overwritten where a
    document is relevant: the expected number of relevant ones among the first j = 1..DEEPEST, ties in random order.
    """
    # Sorted by three digits of 11 bits: a float's bits rise as the float does, once those of negatives are turned.
    n, counts = len(scores), np.zeros((3, 2048), dtype=np.int64)
    bits, n_relevant = (scores + np.float32(0)).view(np.uint32), 0  # -0 becomes 0
    for i in range(n):
        key = bits[i] ^ (np.uint32(0xFFFFFFFF) if bits[i] >> 31 else np.uint32(0x80000000))
        is_relevant = targets[i] == wanted
        n_relevant += is_relevant
        keys[0, i] = np.uint64(key) << np.uint64(1) | np.uint64(is_relevant)
        for digit in range(3):
            counts[digit, key >> np.uint32(11 * digit) & np.uint32(2047)] += 1
    if not n_relevant:
        return 0
    for digit in range(3):
        n_before = 0
        for value in range(2048):
            counts[digit, value], n_before = n_before, n_before + counts[digit, value]
        source, sorted_keys = keys[digit % 2], keys[1 - digit % 2]
        for i in range(n):
            value = source[i] >> np.uint64(1 + 11 * digit) & np.uint64(2047)
            sorted_keys[counts[digit, value]] = source[i]
            counts[digit, value] += 1
    found = keys[1]  # after three passes
    n_above, relevant_above, end = 0, np.int64(0), n
    while end:
        start, relevant_tied = end, np.int64(0)
        while start and found[start - 1] >> np.uint64(1) == found[end - 1] >> np.uint64(1):
            start -= 1
            relevant_tied += np.int64(found[start] & np.uint64(1))
        n_tied = end - start
        for rank in range(n_above + 1, min(n_above + n_tied, len(hits)) + 1):
            hits[rank - 1] = relevant_above + (rank - n_above) * relevant_tied / n_tied
        n_above, end = n_above + n_tied, start
        first = n_relevant - relevant_above - relevant_tied
        relevant_above += relevant_tied
        shares[first : first + relevant_tied] = relevant_above / n_above
    hits[n:] = n_relevant  # past the last document everything is found
    return n_relevant


def _ndcg(hits: np.ndarray, n_relevant: int) -> float:
    """Discounted gain of the first 5 over the best ranking's; a rank's expected gain is its step in hits."""
    gains = np.diff(hits[:5], prepend=0.0)
    return float(gains @ NDCG_DISCOUNTS / NDCG_DISCOUNTS[:n_relevant].sum())


def _cosines(
    train: "np.ndarray | csr_matrix", test: "np.ndarray | csr_matrix"
) -> Iterator[tuple[int, np.ndarray]]:
    """Blocks of the cosine matrix: (first test row, float32 array (rows of the block, n_train))."""
    n_train = train.shape[0]
    full = _dense_columns(train)
    n_sparse = 0 if isinstance(train, np.ndarray) else train.nnz
    n_bytes = 8 * n_train * np.count_nonzero(full) + 12 * n_sparse
    is_kept = n_bytes <= KEPT_BYTES
    parts = row_blocks(n_train, n_train if is_kept else max(1, MADE_BYTES * n_train // n_bytes))
    kept = _unit_columns(train, full) if is_kept else None
    n_rows = max(1, (BLOCK_BYTES if is_kept else MANY_SCORES) // (4 * n_train))
    for start in range(0, test.shape[0], n_rows):
        rows = _unit_rows(test[start : start + n_rows], full)
        if kept:
            yield start, _products(*rows, *kept)
            continue
        block = np.empty((len(rows[0]), n_train), dtype=np.float32)
        in_threads(partial(_fill, block, rows, train, full), parts)
        yield start, block


def _fill(
    block: np.ndarray,
    rows: "tuple[np.ndarray, csr_matrix]",
    train: "np.ndarray | csr_matrix",
    full: np.ndarray,
    part: slice,
) -> None:
    """Fill a part of the columns of a block of cosines."""
    block[:, part] = _products(*rows, *_unit_columns(train[part], full))


def _unit_columns(X: "np.ndarray | csr_matrix", full: np.ndarray) -> "tuple[np.ndarray, csr_matrix]":
    """What `_unit_rows` returns, transposed."""
    dense, sparse = _unit_rows(X, full)
    return dense.T, sparse.T.tocsr()


def _products(
    dense_rows: np.ndarray, sparse_rows: "csr_matrix", dense: np.ndarray, sparse: "csr_matrix"
) -> np.ndarray:
    """The products of rows with columns, the dense parts and the sparse ones: float32 (n_rows, n_columns)."""
    # Without full columns float32 sums run in the order of the features: equal documents get equal scores.
    is_dense = dense.shape[0] > 0
    block = dense_rows @ dense if is_dense else np.zeros((len(dense_rows), sparse.shape[1]), np.float32)
    if sparse.nnz:
        _add_product(block, *_parts(sparse_rows), *_parts(sparse))
    return block.astype(np.float32, copy=False)


def _parts(X: "csr_matrix") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return X.indptr, X.indices, X.data


@njit(nogil=True, cache=True)
def _add_product(
    block: np.ndarray, left_starts: np.ndarray, left_columns: np.ndarray, left: np.ndarray,
    right_starts: np.ndarray, right_columns: np.ndarray, right: np.ndarray,
) -> None:  # fmt: skip
    """Add the product of two csr matrices, given by indptr, indices and data, to an array of their shape and type."""
    for row in range(len(block)):
        sums = block[row]
        for i in range(left_starts[row], left_starts[row + 1]):
            value, inner = left[i], left_columns[i]
            for j in range(right_starts[inner], right_starts[inner + 1]):
                sums[right_columns[j]] += value * right[j]


def _dense_columns(X: "np.ndarray | csr_matrix") -> np.ndarray:
    """Which columns are multiplied as a dense block, bools (n_features,): all of an array.

    Of a csr matrix the full ones, if most pairs of values lie in them, else none.
    """
    if isinstance(X, np.ndarray):
        return np.ones(X.shape[1], dtype=bool)
    counts = column_counts(X)
    full, pairs = counts > DENSE * X.shape[0], np.square(counts, dtype=np.float64)
    return full if 2 * pairs[full].sum() > pairs.sum() else np.zeros_like(full)


def _unit_rows(X: "np.ndarray | csr_matrix", full: np.ndarray) -> "tuple[np.ndarray, csr_matrix]":
    """Rows over their Euclidean norms, the full columns dense and the others csr; zero rows stay zero.

    They are float64 on the grid of FIXED_POINT; without full columns csr float32 with sorted indices.
    """
    from scipy.sparse import csr_matrix

    if isinstance(X, np.ndarray):
        dense, sparse = X.astype(np.float64), csr_matrix((len(X), 0))
        norms = _nonzero(np.sqrt(np.einsum("ij,ij->i", dense, dense)))
    else:
        unit = X.astype(np.float64)
        unit.sum_duplicates()
        norms = _nonzero(np.sqrt(np.asarray(unit.multiply(unit).sum(axis=1)).ravel()))
        dense, sparse = unit[:, full].toarray(), unit[:, ~full] if full.any() else unit
    sparse.data /= np.repeat(norms, np.diff(sparse.indptr))
    if not full.any():
        return dense, sparse.astype(np.float32)
    dense /= norms[:, None]
    for values in (dense, sparse.data):
        values *= FIXED_POINT
        np.rint(values, out=values)
        values /= FIXED_POINT
    return dense, sparse


def _nonzero(norms: np.ndarray) -> np.ndarray:
    return np.where(norms > 0, norms, 1.0)


def _check(
    train: "np.ndarray | csr_matrix",
    train_targets: np.ndarray,
    test: "np.ndarray | csr_matrix",
    test_targets: np.ndarray,
) -> None:
    if isinstance(train, np.ndarray) != isinstance(test, np.ndarray):
        raise ValueError(
            "train and test must both be dense or both be csr; "
            f"received {type(train).__name__} and {type(test).__name__}"
        )
    if train.shape[1] != test.shape[1]:
        raise ValueError(
            f"train and test must have the same features; received {train.shape[1]} and {test.shape[1]}"
        )
    for name, X, targets in (("train", train, train_targets), ("test", test, test_targets)):
        if X.shape[0] == 0 or X.shape[0] != len(targets):
            raise ValueError(
                f"{name} must have one row a target, at least one; received {X.shape[0]} and {len(targets)}"
            )
        values = X if isinstance(X, np.ndarray) else X.data
        if not all(np.isfinite(values[rows]).all() for rows in row_blocks(len(values), MADE_BYTES)):
            raise ValueError(f"{name} features must be finite; received nan or inf")
