"""Leading right singular vectors of many documents: a randomised block Krylov method of three passes.

With A = X'X a pass multiplies a block Q_j of vectors by A, and what is new in Y_j = A Q_j gives the next block. After p
passes A is known on K = [Q_0, ..., Q_(p-1)] as Y = [Y_0, ..., Y_(p-1)], and Nystrom's approximation, Y (K'Y)^-1 Y',
stands for it. It is the same for every basis of K, so blocks need not be orthonormal to the last digit: all that is
asked of them are inner products, K'K, K'Y and Y'Y, and sums of blocks times small matrices. The first block is that of
two such steps on a sample of the rows, from random numbers.

Documents are cut into SHARES, and so are terms: a call multiplies some shares of documents, another has the inner
products of some shares of terms. Shares are the same and are added in the same order whoever computes them, this
process' threads one at a time or each worker of a cluster its group of them (`Calls`), to the same bits.

Source: N. Halko, P.-G. Martinsson, Y. Shkolnisky and M. Tygert, "An algorithm for the principal component analysis of
large data sets", SIAM Journal on Scientific Computing 33(5), 2011; its products with A as in C. Musco and C. Musco,
"Randomized block Krylov methods for stronger and faster approximate singular value decomposition", NIPS 2015; the
approximation: N. Halko, P.-G. Martinsson and J. Tropp, "Finding structure with randomness", SIAM Review 53(2), 2011,
section 5.5.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
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

    @property
    def n_groups(self) -> int:
        """How many groups of shares there are, a power of two up to SHARES: a call computes one group's."""

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

    @property
    def n_groups(self) -> int:
        """As many as there are shares: what is stopped ends with the share that is under way."""
        return SHARES

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
            return s, joined(V)
        except BaseException:  # such as Ctrl-C, which does not wait for calls that have not begun
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def joined(V: list[Any]) -> np.ndarray:
    """Return vectors of all terms, float32 (n_terms, .), of what stands for groups of shares of them."""
    return np.concatenate([share for group in V for share in group.result()])


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
    """Return what `leading_singular_vectors` does, computed by calls; of vectors what stands for groups of shares.

    rows: of each share of the documents the csr matrices of `blocks_of_rows`, and sampled: those of `samples`, or what
    calls gave for them. What stands for a group of shares of the terms gives a list of them.
    """
    m = n_components + OVERSAMPLES
    # All workers draw the same numbers.
    seed = np.random.SeedSequence().entropy if random_state is None else random_state
    slices, block = calls.everywhere(_random_slices, seed, (n_terms, m)), []
    for _ in range(SAMPLE_STEPS):
        product = _times_gram(calls, [[half] for half in sampled], slices, n_terms)
        squares = _inner(calls, [], [product])
        block = _combined(calls, [product], _lengthened(squares, squares))
        slices = calls.everywhere(slices_of, block)
    Q, Y = [block], []
    QQ, QY, YY = np.zeros((3, N_PASSES * m, N_PASSES * m))
    for step in range(N_PASSES):
        Y.append(_times_gram(calls, rows, slices, n_terms))
        known, own = slice((step + 1) * m), slice(step * m, (step + 1) * m)
        found = np.hsplit(_inner(calls, Q, Y), 3)
        for matrix, columns in zip((QQ, QY, YY), found, strict=True):
            matrix[known, own], matrix[own, known] = columns, columns.T
        if step + 1 < N_PASSES:
            inverse = np.linalg.pinv(QQ[known, known], rcond=ROUNDING, hermitian=True)
            old = inverse @ QY[known, own]
            new = _lengthened(YY[own, own] - QY[known, own].T @ old, YY[own, own])
            Q.append(_combined(calls, [*Q, Y[-1]], np.vstack([-old @ new, new])))
            slices = calls.everywhere(slices_of, Q[-1])
    values, turn = _nystrom(QY, YY)
    wanted = _combined(calls, Y, turn[:, :n_components])
    extents = [one for group in _of_each(calls, _extents, wanted) for one in group.result()]
    squares, largest = np.stack(extents, axis=1)
    signs = np.where(largest[np.abs(largest).argmax(axis=0), np.arange(largest.shape[1])] < 0, -1, 1)
    lengths = calls.spread((signs * np.maximum(np.sqrt(squares.sum(axis=0)), EPSILON)).astype(np.float32))
    return np.sqrt(values[:n_components]), _of_each(calls, _over, wanted, [lengths] * len(wanted))


def _grouped(shares: Sequence[Any], n_groups: int) -> list[list[Any]]:
    """Return shares in so many groups of neighbours, or each by itself where they are fewer."""
    n = len(shares) // min(n_groups, len(shares))
    return [list(shares[i : i + n]) for i in range(0, len(shares), n)]


def _of_each(calls: Calls, fn: Callable[..., Any], *given: list[Any]) -> list[Any]:
    """Return what stands for a call of each group, at its place; given: lists of what the groups are given."""
    n = len(given[0])
    return [calls.hold(fn, *own, at=i / n) for i, own in enumerate(zip(*given, strict=True))]


def _times_gram(calls: Calls, rows: Sequence[list[Any]], slices: list[Any], n_terms: int) -> list[Any]:
    """Return X'X block, of groups of shares of the terms; rows of X, of shares of the documents.

    slices: what stands for `slices_of` the block, of each worker.
    """
    groups, terms = _grouped(rows, calls.n_groups), _grouped(cuts(n_terms), calls.n_groups)
    here = [slices[i * len(slices) // len(groups)] for i in range(len(groups))]
    products, places = _of_each(calls, product, groups, here), [i / len(groups) for i in range(len(groups))]
    while len(products) > 2:
        products, places = _in_pairs(calls, products, places), places[::2]
    found = []
    for i, group in enumerate(terms):
        own = i * len(products) // len(terms)  # where the sum is made there is the whole of this one
        parts = [
            one if j == own else calls.hold(_rows_of, one, group[0][0], group[-1][1], at=at)
            for j, (one, at) in enumerate(zip(products, places, strict=True))
        ]
        found.append(calls.hold(_sums_of_rows, own, group, *parts, at=i / len(terms)))
    return found


def _inner(calls: Calls, Q: list[list[Any]], Y: list[list[Any]]) -> np.ndarray:
    """Return the inner products that the last of some blocks bring, as `_inner_of` does, of all terms."""
    n = len(Y[0])
    found = _of_each(
        calls, _inner_of, *([[block[i] for block in blocks] for i in range(n)] for blocks in (Q, Y))
    )
    places = [i / n for i in range(n)]
    while len(found) > 1:
        found, places = _in_pairs(calls, found, places), places[::2]
    return found[0].result()


def _in_pairs(calls: Calls, given: list[Any], places: list[float]) -> list[Any]:
    """Return the sums of neighbours, made where the first of both is."""
    return [calls.hold(np.add, *given[i : i + 2], at=places[i]) for i in range(0, len(given), 2)]


def _combined(calls: Calls, blocks: list[list[Any]], coefficients: np.ndarray) -> list[Any]:
    """Return blocks side by side times coefficients, float64 (n_vectors of all, n), of groups of shares."""
    n = len(blocks[0])
    own = [[block[i] for block in blocks] for i in range(n)]
    return _of_each(calls, _combinations, own, [calls.spread(coefficients)] * n)


def _random_slices(seed: int, shape: tuple[int, int]) -> list[np.ndarray]:
    """Return `slices_of` random numbers; each worker draws them itself, which takes less than sending them."""
    return slices_of([[np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)]])


def slices_of(block: list[list[np.ndarray]]) -> list[np.ndarray]:
    """Return at most VECTORS of a block at a time, of all terms: float32 (n_terms, .) each.

    block: groups of shares of the terms, float32 (., n_vectors) each.
    """
    shares = list(itertools.chain.from_iterable(block))
    width = shares[0].shape[1]
    n = -(-width // VECTORS)
    ends = itertools.pairwise(width * i // n for i in range(n + 1))
    return [np.concatenate([share[:, start:end] for share in shares]) for start, end in ends]


def pieces_of(X: sp.csr_matrix) -> list[sp.csr_matrix]:
    """Return PIECE rows of X, csr (n_documents, n_terms), at a time, which share what they hold with it."""
    return [_rows(X, i, min(i + PIECE, X.shape[0])) for i in range(0, X.shape[0], PIECE)]


def multiplied(X: sp.csr_matrix, slices: list[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield X vectors, float32 (., n_vectors), of a piece of X after another, in memory that the next one is given too.

    X: csr float32 (n_documents, n_terms). slices: `slices_of` the vectors. The bits are those of scipy's product.
    """
    n, widths = min(PIECE, X.shape[0]), [vectors.shape[1] for vectors in slices]
    rooms = [np.empty((n, width), dtype=np.float32) for width in widths]
    found = np.empty((n, sum(widths)), dtype=np.float32) if len(slices) > 1 else rooms[0]
    for piece in pieces_of(X):
        n = piece.shape[0]
        for vectors, room, end in zip(slices, rooms, np.cumsum(widths), strict=True):
            room[:n] = 0
            _add_product(piece.indptr, piece.indices, piece.data, vectors, room)
            if room is not found:
                found[:n, end - vectors.shape[1] : end] = room[:n]
        yield found[:n]


def product(shares: list[list[sp.csr_matrix]], slices: list[np.ndarray]) -> np.ndarray:
    """Return X'X block, float32 (n_terms, n_vectors).

    shares: X, csr float32 (., n_terms), of each share, a power of two of them, a block of documents after another.
    slices: `slices_of` the block. Products of shares are added in pairs.
    """
    n_rooms = len(shares).bit_length() + 1  # memory that is used again is warm
    rooms = [[np.empty_like(vectors) for vectors in slices] for _ in range(n_rooms)]
    _sum_products(shares, slices, rooms)
    return np.hstack(rooms[0]) if len(slices) > 1 else rooms[0][0]


def _sum_products(
    shares: list[list[sp.csr_matrix]], slices: list[np.ndarray], rooms: list[list[np.ndarray]]
) -> None:
    """Give the first of some rooms, float32 (n_terms, .) of each slice, the products of shares added in pairs."""
    if len(shares) == 1:
        _multiply(shares[0], slices, *rooms[:2])
        return
    half = len(shares) // 2
    _sum_products(shares[:half], slices, rooms)
    _sum_products(shares[half:], slices, rooms[1:])
    for total, other in zip(*rooms[:2], strict=True):
        total += other


def _multiply(
    rows: list[sp.csr_matrix], slices: list[np.ndarray], found: list[np.ndarray], room: list[np.ndarray]
) -> None:
    """Give found, float32 (n_terms, .) of each slice, the product of blocks of documents; room is as large.

    A piece of documents times vectors stays in the cache, which its transpose reads: a fourth less time than to add a
    document after another to the product, and two cores are less in each other's way.
    """
    # The sum of two float32 is the same whether it is rounded to float64 before.
    sums = found if len(rows) < 3 else [np.zeros(one.shape) for one in found]
    for i, block in enumerate(rows):
        transposed = [piece.T.tocsr() for piece in pieces_of(block)]
        for vectors, total, own in zip(slices, sums, found if i == 0 else room, strict=True):
            own[:] = 0
            for X, few in zip(transposed, multiplied(block, [vectors]), strict=True):
                _add_product(X.indptr, X.indices, X.data, few, own)
            if own is not total:
                total += own
    if sums is not found:
        for one, total in zip(found, sums, strict=True):
            one[:] = total


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


def _sums_of_rows(own: int, group: list[tuple[int, int]], *parts: np.ndarray) -> list[np.ndarray]:
    """Return the sum of one product or two, cut into shares; of all but one's own the group's rows are given."""
    (first, _), (_, last) = group[0], group[-1]
    rows = [part[first:last] if i == own else part for i, part in enumerate(parts)]
    total = rows[0] + rows[1] if len(rows) > 1 else rows[0]
    return [total[start - first : stop - first] for start, stop in group]


def _inner_of(Q: list[list[np.ndarray]], Y: list[list[np.ndarray]]) -> np.ndarray:
    """Return the inner products of blocks that the last of Q and of Y bring, of shares added in pairs.

    [Q_0 ... Q_j]'Q_j, [Q_0 ... Q_j]'Y_j and [Y_0 ... Y_j]'Y_j side by side, float64; of no Q the last alone. Of each
    block a group of shares, float32 (., n_vectors) each.
    """
    found = [_inner_of_share([block[i] for block in Q], [block[i] for block in Y]) for i in range(len(Y[0]))]
    while len(found) > 1:
        found = [one + other for one, other in zip(found[::2], found[1::2], strict=True)]
    return found[0]


def _inner_of_share(Q: list[np.ndarray], Y: list[np.ndarray]) -> np.ndarray:
    right = [blocks[-1].astype(np.float64) for blocks in (Q, Y) if blocks]
    found = [np.vstack([block.astype(np.float64).T @ last for block in Q]) for last in right if Q]
    return np.hstack([*found, np.vstack([block.astype(np.float64).T @ right[-1] for block in Y])])


def _combinations(blocks: list[list[np.ndarray]], coefficients: np.ndarray) -> list[np.ndarray]:
    """Return shares of blocks, float32 (., n_vectors) each, side by side, times coefficients, as float32."""
    parts, found = np.vsplit(coefficients, len(blocks)), []
    for first, *rest in zip(*blocks, strict=True):
        total = first.astype(np.float64) @ parts[0]
        for share, part in zip(rest, parts[1:], strict=True):
            total += share.astype(np.float64) @ part
        found.append(total.astype(np.float32))
    return found


def _extents(shares: list[np.ndarray]) -> list[np.ndarray]:
    """Return of each share, float32 (., n), the sum of squares of each vector and its entry of largest magnitude."""
    # Sums of many terms as float32 were 1e-4 off.
    squares = [np.einsum("ij,ij->j", share, share, dtype=np.float64) for share in shares]
    largest = [share[np.abs(share).argmax(axis=0), np.arange(share.shape[1])] for share in shares]
    return [np.stack(pair) for pair in zip(squares, largest, strict=True)]


def _over(shares: list[np.ndarray], lengths: np.ndarray) -> list[np.ndarray]:
    return [share / lengths for share in shares]


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
