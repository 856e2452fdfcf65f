"""Leading right singular vectors of many documents: a randomised block Krylov method of three passes.

With A = X'X a pass multiplies a block Q_j of vectors by A, and what is new in Y_j = A Q_j gives the next block. After p
passes A is known on K = [Q_0, ..., Q_(p-1)] as Y = [Y_0, ..., Y_(p-1)], and Nystrom's approximation, Y (K'Y)^-1 Y',
stands for it. It is the same for every basis of K, so blocks need not be orthonormal to the last digit: all that is
asked of them are inner products, K'K, K'Y and Y'Y, and sums of blocks times small matrices. The first block is that of
two such steps on a sample of the rows, from random numbers.

Documents are cut into SHARES, and so are terms: a call multiplies a share of documents, another has the inner products
of a share of terms. Shares are the same and are added in the same order whoever computes them, this process' threads or
the workers of a cluster (`Calls`), to the same bits.

Source: N. Halko, P.-G. Martinsson, Y. Shkolnisky and M. Tygert, "An algorithm for the principal component analysis of
large data sets", SIAM Journal on Scientific Computing 33(5), 2011; its products with A as in C. Musco and C. Musco,
"Randomized block Krylov methods for stronger and faster approximate singular value decomposition", NIPS 2015; the
approximation: N. Halko, P.-G. Martinsson and J. Tropp, "Finding structure with randomness", SIAM Review 53(2), 2011,
section 5.5.
"""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from textbench.featurizers._kernels import kernel, n_cores, one_blas_thread

N_PASSES = 3
OVERSAMPLES = 20  # vectors of a block beyond those that are wanted
SHARES = 8  # of documents and of terms
ROWS = 50_000  # documents whose products are added in float32
PIECE = 10_000  # documents that are multiplied before the next are looked at
VECTORS = 160  # of a block that are multiplied at once, at most: more rows of them are in the core's cache
SAMPLE = 20_000  # documents that the first block is found on, in two halves
SAMPLE_STEPS = 2
EPSILON = 1e-14  # a direction with a smaller share of the squares is rounding
ROUNDING = (
    1e-7  # so is one on which A is smaller than this share of its largest value, for products are float32
)


class Calls(Protocol):
    """Who computes the method's calls. What a call gives may be an argument of later ones, also within a list."""

    def hold(self, fn: Callable[..., Any], /, *args: Any, at: float | None = None) -> Any:
        """Return what stands for a call's result, and has `result()`. at: where in the line of workers, in [0, 1)."""

    def everywhere(self, fn: Callable[..., Any], /, *args: Any) -> list[Any]:
        """Return what stands for the results of a call by each worker, in their line."""

    def spread(self, value: Any) -> Any:
        """Return what stands for a value that many calls are given."""


class ThreadCalls:
    """Calls that the threads of a pool compute, begun in the order they are asked for."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def hold(self, fn: Callable[..., Any], /, *args: Any, at: float | None = None) -> Future[Any]:
        """Return what becomes of a call; it waits for those whose results it is given, asked for before it."""
        return self._pool.submit(lambda: fn(*map(_given, args)))

    def everywhere(self, fn: Callable[..., Any], /, *args: Any) -> list[Any]:
        """Return what becomes of a call, once, for threads share what they have."""
        return [self.hold(fn, *args)]

    def spread(self, value: Any) -> Any:
        """Return the value."""
        return value


def _given(argument: Any) -> Any:
    if isinstance(argument, list):
        return [_given(one) for one in argument]
    return argument.result() if isinstance(argument, Future) else argument


def n_basis(n_components: int) -> int:
    """Return how many vectors are multiplied in all, and a block more: documents and terms must be more."""
    return (N_PASSES + 1) * (n_components + OVERSAMPLES)


def cuts(n: int) -> list[tuple[int, int]]:
    """Return where the shares of n documents or terms begin and end."""
    return list(itertools.pairwise(n * i // SHARES for i in range(SHARES + 1)))


def blocks_of_rows(n: int) -> list[list[tuple[int, int]]]:
    """Return where the blocks of documents begin and end, of each share of n."""
    return [[(i, min(i + ROWS, stop)) for i in range(start, stop, ROWS)] for start, stop in cuts(n)]


def leading_singular_vectors(
    X: sp.csr_matrix, n_components: int, random_state: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return singular values, float64 (n_components,), descending, and right singular vectors, float32 (n_terms, .).

    The entry of largest magnitude of each vector is positive.
    X: csr float32 (n_documents, n_terms), not all zero, read N_PASSES times, both sides above `n_basis`. Memory: 2 *
    N_PASSES blocks, float32 (n_terms, n_components + OVERSAMPLES), and a few more for each core. The same seed gives
    the same bits, on any number of cores. Singular values are never too large, but for rounding.
    """
    rows = [[_rows(X, *block) for block in blocks] for blocks in blocks_of_rows(X.shape[0])]
    with one_blas_thread(), ThreadPoolExecutor(n_cores()) as pool:
        try:
            s, V = decompose(ThreadCalls(pool), rows, samples(X), X.shape[1], n_components, random_state)
            return s, np.concatenate([share.result() for share in V])
        except BaseException:  # such as Ctrl-C, which does not wait for calls that have not begun
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _rows(X: sp.csr_matrix, start: int, stop: int) -> sp.csr_matrix:
    """Return some rows, which share what they hold with the rest."""
    own = slice(X.indptr[start], X.indptr[stop])
    indptr = X.indptr[start : stop + 1] - X.indptr[start]
    return sp.csr_matrix((X.data[own], X.indices[own], indptr), (stop - start, X.shape[1]), copy=False)


def samples(X: sp.csr_matrix) -> list[sp.csr_matrix]:
    """Return the rows of X, csr (n_documents, n_terms), that the first block is found on: at least SAMPLE, or all."""
    step = max(1, X.shape[0] // SAMPLE)
    return [X[:: 2 * step], X[step :: 2 * step]]


def decompose(
    calls: Calls,
    rows: Sequence[list[Any]],
    sampled: Sequence[Any],
    n_terms: int,
    n_components: int,
    random_state: int | None,
) -> tuple[np.ndarray, list[Any]]:
    """Return what `leading_singular_vectors` does, computed by calls; of vectors what stands for shares of the terms.

    rows: of each share of the documents the csr matrices of `blocks_of_rows`, and sampled: those of `samples`, or what
    calls gave for them.
    """
    m = n_components + OVERSAMPLES
    block = [calls.hold(_random, random_state, (n_terms, m))]
    for _ in range(SAMPLE_STEPS):
        product = _times_gram(calls, [[half] for half in sampled], block, n_terms)
        squares = _inner(calls, [], [product])
        block = _combined(calls, [product], _lengthened(squares, squares))
    Q, Y = [block], []
    QQ, QY, YY = np.zeros((3, N_PASSES * m, N_PASSES * m))
    for step in range(N_PASSES):
        Y.append(_times_gram(calls, rows, Q[-1], n_terms))
        known, own = slice((step + 1) * m), slice(step * m, (step + 1) * m)
        found = np.hsplit(_inner(calls, Q, Y), 3)
        for matrix, columns in zip((QQ, QY, YY), found, strict=True):
            matrix[known, own], matrix[own, known] = columns, columns.T
        if step + 1 < N_PASSES:
            inverse = np.linalg.pinv(QQ[known, known], rcond=ROUNDING, hermitian=True)
            old = inverse @ QY[known, own]
            new = _lengthened(YY[own, own] - QY[known, own].T @ old, YY[own, own])
            Q.append(_combined(calls, [*Q, Y[-1]], np.vstack([-old @ new, new])))
    values, turn = _nystrom(QY, YY)
    wanted = _combined(calls, Y, turn[:, :n_components])
    places = [i / SHARES for i in range(SHARES)]
    extents = [calls.hold(_extent, share, at=at) for share, at in zip(wanted, places, strict=True)]
    squares, largest = np.stack([one.result() for one in extents], axis=1)
    signs = np.where(largest[np.abs(largest).argmax(axis=0), np.arange(largest.shape[1])] < 0, -1, 1)
    lengths = calls.spread((signs * np.maximum(np.sqrt(squares.sum(axis=0)), EPSILON)).astype(np.float32))
    V = [calls.hold(_over, share, lengths, at=at) for share, at in zip(wanted, places, strict=True)]
    return np.sqrt(values[:n_components]), V


def _times_gram(calls: Calls, rows: Sequence[list[Any]], block: list[Any], n_terms: int) -> list[Any]:
    """Return X'X block, of shares of the terms; rows of X, of shares of the documents."""
    slices = calls.everywhere(slices_of, block)
    places = [i / len(rows) for i in range(len(rows))]
    products = [
        calls.hold(product, blocks, slices[int(at * len(slices))], at=at)
        for at, blocks in zip(places, rows, strict=True)
    ]
    while len(products) > 2:
        products, places = _in_pairs(calls, products, places), places[::2]
    found = []
    for i, cut in enumerate(cuts(n_terms)):
        own = i * len(products) // SHARES  # where the sum is made there is the whole of this one
        parts = [
            one if j == own else calls.hold(_rows_of, one, *cut, at=at)
            for j, (one, at) in enumerate(zip(products, places, strict=True))
        ]
        found.append(calls.hold(_sum_of_rows, own, *cut, *parts, at=i / SHARES))
    return found


def _inner(calls: Calls, Q: list[list[Any]], Y: list[list[Any]]) -> np.ndarray:
    """Return the inner products that the last of some blocks bring, as `_inner_of` does, of all terms."""
    places = [i / SHARES for i in range(SHARES)]
    found = [
        calls.hold(_inner_of, [block[i] for block in Q], [block[i] for block in Y], at=at)
        for i, at in enumerate(places)
    ]
    while len(found) > 1:
        found, places = _in_pairs(calls, found, places), places[::2]
    return found[0].result()


def _in_pairs(calls: Calls, given: list[Any], places: list[float]) -> list[Any]:
    """Return the sums of neighbours, made where the first of both is; what has none is taken as it is."""
    return [
        calls.hold(_added, *given[i : i + 2], at=places[i]) if i + 1 < len(given) else given[i]
        for i in range(0, len(given), 2)
    ]


def _combined(calls: Calls, blocks: list[list[Any]], coefficients: np.ndarray) -> list[Any]:
    """Return blocks side by side times coefficients, float64 (n_vectors of all, n), of shares of the terms."""
    shared = calls.spread(coefficients)
    return [
        calls.hold(_combination, [block[i] for block in blocks], shared, at=i / SHARES) for i in range(SHARES)
    ]


def _random(random_state: int | None, shape: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(random_state).standard_normal(shape, dtype=np.float32)


def slices_of(block: list[np.ndarray]) -> list[np.ndarray]:
    """Return at most VECTORS of a block at a time, of all terms: float32 (n_terms, .) each.

    block: shares of the terms, float32 (., n_vectors).
    """
    width = block[0].shape[1]
    n = -(-width // VECTORS)
    ends = itertools.pairwise(width * i // n for i in range(n + 1))
    return [np.concatenate([share[:, start:end] for share in block]) for start, end in ends]


def pieces_of(X: sp.csr_matrix) -> list[sp.csr_matrix]:
    """Return PIECE rows of X, csr (n_documents, n_terms), at a time, which share what they hold with it."""
    return [_rows(X, i, min(i + PIECE, X.shape[0])) for i in range(0, X.shape[0], PIECE)]


def times(X: sp.csr_matrix, slices: list[np.ndarray]) -> np.ndarray:
    """Return X vectors, float32 (n_documents, n_vectors), to the bits of scipy's product.

    X: csr float32 (n_documents, n_terms), best a piece. slices: `slices_of` the vectors.
    """
    found = []
    for vectors in slices:
        found.append(np.zeros((X.shape[0], vectors.shape[1]), dtype=np.float32))
        _add_product(X.indptr, X.indices, X.data, vectors, found[-1])
    return np.hstack(found) if len(found) > 1 else found[0]


def product(rows: list[sp.csr_matrix], slices: list[np.ndarray]) -> np.ndarray:
    """Return X'X block, float32 (n_terms, n_vectors).

    rows: X, csr float32 (., n_terms), a block of documents after another. slices: `slices_of` the block. A piece of
    documents times vectors stays in the cache, which its transpose reads: a fourth less time than to add a document
    after another to the product, and two cores are less in each other's way.
    """
    widths = [vectors.shape[1] for vectors in slices]
    found, ends = np.empty((len(slices[0]), sum(widths)), dtype=np.float32), np.cumsum(widths)
    pieces = [[(piece, piece.T.tocsr()) for piece in pieces_of(block)] for block in rows]
    total = part = np.empty((0, 0))
    for vectors, end in zip(slices, ends, strict=True):
        if part.shape != vectors.shape:  # memory that is used again is warm
            total, part = np.empty(vectors.shape), np.empty_like(vectors)
        total[:] = 0
        for block in pieces:
            part[:] = 0
            for X, transposed in block:
                _add_product(
                    transposed.indptr, transposed.indices, transposed.data, times(X, [vectors]), part
                )
            total += part
        found[:, end - vectors.shape[1] : end] = total
    return found


@kernel
def _add_product(indptr, indices, data, vectors, product):  # type: ignore[no-untyped-def]
    """Add A vectors to the product, a row of A, csr, after another."""
    n = vectors.shape[1]
    for row in range(len(indptr) - 1):
        own = product[row]
        for i in range(indptr[row], indptr[row + 1]):
            weight, other = data[i], vectors[indices[i]]
            for v in range(n):
                own[v] += weight * other[v]


def _rows_of(product: np.ndarray, start: int, stop: int) -> np.ndarray:
    return product[start:stop].copy()  # what is sent, and kept while the rest goes


def _sum_of_rows(own: int, start: int, stop: int, *parts: np.ndarray) -> np.ndarray:
    """Return the sum of rows of one product or two; of all but one's own the rows are given."""
    rows = [part[start:stop] if i == own else part for i, part in enumerate(parts)]
    return rows[0] + rows[1] if len(rows) > 1 else rows[0].copy()


def _added(*given: np.ndarray) -> np.ndarray:
    """Return the sum of one array or two."""
    return given[0] + given[1] if len(given) > 1 else given[0]


def _inner_of(Q: list[np.ndarray], Y: list[np.ndarray]) -> np.ndarray:
    """Return the inner products of blocks, float32 (n_terms, n_vectors) each, that the last of Q and of Y bring.

    [Q_0 ... Q_j]'Q_j, [Q_0 ... Q_j]'Y_j and [Y_0 ... Y_j]'Y_j side by side, float64; of no Q the last alone.
    """
    right = [blocks[-1].astype(np.float64) for blocks in (Q, Y) if blocks]
    found = [np.vstack([block.astype(np.float64).T @ last for block in Q]) for last in right if Q]
    return np.hstack([*found, np.vstack([block.astype(np.float64).T @ right[-1] for block in Y])])


def _combination(blocks: list[np.ndarray], coefficients: np.ndarray) -> np.ndarray:
    """Return blocks, float32 (n_terms, n_vectors) each, side by side, times coefficients, as float32."""
    parts = np.vsplit(coefficients, len(blocks))
    total = blocks[0].astype(np.float64) @ parts[0]
    for block, part in zip(blocks[1:], parts[1:], strict=True):
        total += block.astype(np.float64) @ part
    return total.astype(np.float32)


def _extent(vectors: np.ndarray) -> np.ndarray:
    """Return the sum of squares of each vector, float32 (n_terms, n), and its entry of largest magnitude: (2, n)."""
    # Sums of many terms as float32 were 1e-4 off.
    squares = np.einsum("ij,ij->j", vectors, vectors, dtype=np.float64)
    return np.stack([squares, vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]])


def _over(vectors: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    return vectors / lengths


def _lengthened(inner: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return what makes vectors of these inner products orthonormal, but for what is rounding beside the whole's."""
    squares, axes = np.linalg.eigh((inner + inner.T) / 2)
    return axes / np.sqrt(np.maximum(squares, EPSILON * np.trace(whole)))


def _nystrom(QY: np.ndarray, YY: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues, descending, of Nystrom's approximation to A, and what Y times gives its eigenvectors."""
    inner, axes = np.linalg.eigh((QY + QY.T) / 2)
    kept = inner > ROUNDING * inner[-1]
    root = axes[:, kept] / np.sqrt(inner[kept])
    values, turn = np.linalg.eigh(root.T @ YY @ root)
    values = np.maximum(values[::-1], np.finfo(np.float64).tiny)
    return values, root @ turn[:, ::-1] / np.sqrt(values)
