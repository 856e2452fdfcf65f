"""Sparse products and conjugate gradients of dCoT's first layer, compiled, one block of columns a thread.

The kernels read csr arrays (indptr, indices, data) and C-contiguous blocks, 64 columns wide, that stay in the
second-level cache. Every number is added up in an order that does not depend on the number of threads.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_info

BLOCK = 64
PIECE = 8192  # documents whose rows of a block fit there too
# Only the fusing of a product and a sum into one instruction is allowed; sums keep their order.
CONTRACT = {"contract"}


def in_threads(work: Callable[[int], None], items: Iterable[int]) -> None:
    """Call `work(item)` for every item, on as many threads as linear algebra may use here."""
    n_threads = max(
        (pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=1
    )
    with ThreadPoolExecutor(n_threads) as executor:
        for _ in executor.map(work, items):
            pass


def multiply(A: sp.csr_matrix, B: np.ndarray) -> np.ndarray:
    """Return A B: sparse csr (m, n) times dense (n, r), both of one dtype; dense (m, r), C-contiguous."""
    out = np.empty((A.shape[0], B.shape[1]), dtype=B.dtype)
    bounds = np.linspace(0, A.shape[0], min(A.shape[0], 64) + 1).astype(int)

    def rows(i: int) -> None:
        low, high = bounds[i], bounds[i + 1]
        _multiply(A.indptr[low : high + 1], A.indices, A.data, B, out[low:high])

    in_threads(rows, range(len(bounds) - 1))
    return out


def beside(A: sp.csr_matrix, blocks: Sequence[np.ndarray]) -> sp.csr_matrix:
    """Return the columns of A, csr (n, d), and of dense blocks (n, r) side by side, as csr."""
    n, d = A.shape
    width = sum(block.shape[1] for block in blocks)
    indptr = A.indptr.astype(np.int64) + width * np.arange(n + 1)
    indices = np.empty(indptr[-1], dtype=np.int32)
    data = np.empty(indptr[-1], dtype=A.dtype)
    _place_sparse(A.indptr, A.indices, A.data, indptr, indices, data)
    before = 0
    for block in blocks:
        _place_dense(block, d + before, indptr[1:] - width + before, indices, data)
        before += block.shape[1]
    return sp.csr_matrix((data, indices, indptr), shape=(n, d + width))


def gram(A: sp.csr_matrix, At: sp.csr_matrix) -> np.ndarray:
    """Return A A^T as a dense (n, n) array whose lower triangle is filled; the rest is zero.

    `At` is A^T as csr with sorted indices. Work: half the sum of the squared document frequencies.
    """
    out = np.zeros((A.shape[0], A.shape[0]), dtype=A.dtype)
    step = min(A.shape[0], 64)

    def rows(first: int) -> None:
        _gram_rows(A.indptr, A.indices, A.data, At.indptr, At.indices, At.data, first, step, out)

    in_threads(rows, range(step))
    return out


def conjugate_gradients(
    A: sp.csr_matrix,
    p: float,
    diagonal: np.ndarray,
    preconditioner: np.ndarray,
    T: np.ndarray,
    tol: float,
    max_iter: int,
) -> tuple[int, float]:
    """Solve C (p A A^T + diag(diagonal)) M = T, C = I - 11^T/n, for columns that sum to 0; M takes T's place.

    A: csr (n, m); diagonal and preconditioner: (n,), positive; T: dense (n, r), C-contiguous, each column summing to
    0. A block of columns stops when |residual| <= tol |column| in each of them. Returns the most steps a block took
    and the largest relative residual, |T - C (...) M| / |T| computed anew at the end.
    """
    starts = range(0, T.shape[1], BLOCK)
    steps = np.zeros(len(starts), dtype=int)
    residuals = np.zeros(len(starts))
    At = _transposed_by_pieces(A)
    system = (A.indptr, A.indices, A.data, At.indptr, At.indices, At.data, A.shape[1], A.dtype.type(p))

    def block(i: int) -> None:
        columns = slice(starts[i], starts[i] + BLOCK)
        own = np.ascontiguousarray(T[:, columns])
        T[:, columns], steps[i], residuals[i] = _conjugate_gradients(
            *system, diagonal, preconditioner, own, tol, max_iter
        )

    in_threads(block, range(len(starts)))
    return int(steps.max()), float(residuals.max())


def _transposed_by_pieces(A: sp.csr_matrix) -> sp.csr_matrix:
    """Return A^T in pieces of `PIECE` columns, one below the other: (n_pieces * m, n).

    The rows of a dense block that a piece reads stay in the cache, however many documents there are.
    """
    n, m = A.shape
    rows = np.repeat(np.arange(n), np.diff(A.indptr))
    shape = ((n - 1) // PIECE + 1) * m, n
    return sp.csr_matrix((A.data, (rows // PIECE * m + A.indices, rows)), shape=shape)


@numba.njit(nogil=True, cache=True, fastmath=CONTRACT)
def _multiply(indptr, indices, data, B, out):  # type: ignore[no-untyped-def]
    """out <- A B, or, where A has several times as many rows as `out`, the sum over its pieces of piece B."""
    width, m = B.shape[1], len(out)
    out[:] = 0
    for i in range(len(indptr) - 1):
        row = out[i % m]
        k, end = indptr[i], indptr[i + 1]
        while k + 4 <= end:  # four at a time: the row is read and written a quarter as often
            a0, a1, a2, a3 = data[k], data[k + 1], data[k + 2], data[k + 3]
            b0, b1, b2, b3 = B[indices[k]], B[indices[k + 1]], B[indices[k + 2]], B[indices[k + 3]]
            for j in range(width):
                row[j] += a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j]
            k += 4
        while k < end:
            a, b = data[k], B[indices[k]]
            for j in range(width):
                row[j] += a * b[j]
            k += 1


@numba.njit(nogil=True, cache=True, fastmath=CONTRACT)
def _gram_rows(indptr, indices, data, t_indptr, t_indices, t_data, first, step, out):  # type: ignore[no-untyped-def]
    for i in range(first, len(indptr) - 1, step):
        row = out[i]
        for k in range(indptr[i], indptr[i + 1]):
            t, a = indices[k], data[k]
            for m in range(t_indptr[t], t_indptr[t + 1]):
                if t_indices[m] > i:
                    break
                row[t_indices[m]] += a * t_data[m]


@numba.njit(nogil=True, cache=True, fastmath=CONTRACT)
def _conjugate_gradients(  # type: ignore[no-untyped-def]
    indptr, indices, data, t_indptr, t_indices, t_data, m, p, diagonal, preconditioner, T, tol, max_iter
):
    n, width = T.shape
    _centre(T)  # to the last digit, or the system has no solution
    M, R, Z = np.zeros_like(T), T.copy(), np.empty_like(T)
    V = np.empty((m, width), T.dtype)
    _precondition(preconditioner, R, Z)
    P, Q = Z.copy(), np.empty_like(T)
    wanted = tol * np.sqrt(_dots(T, T))
    rz = _dots(R, Z)
    steps = 0
    while steps < max_iter and np.any(np.sqrt(_dots(R, R)) > wanted):
        _multiply(t_indptr, t_indices, t_data, P, V)
        _multiply(indptr, indices, data, V, Q)
        _add_diagonal(p, diagonal, P, Q)
        alpha = _ratios(rz, _dots(P, Q)).astype(T.dtype)
        for i in range(n):
            for j in range(width):
                M[i, j] += alpha[j] * P[i, j]
                R[i, j] -= alpha[j] * Q[i, j]
        _precondition(preconditioner, R, Z)
        rz_next = _dots(R, Z)
        beta = _ratios(rz_next, rz).astype(T.dtype)
        for i in range(n):
            for j in range(width):
                P[i, j] = Z[i, j] + beta[j] * P[i, j]
        rz = rz_next
        steps += 1
    _multiply(t_indptr, t_indices, t_data, M, V)
    _multiply(indptr, indices, data, V, Q)
    _add_diagonal(p, diagonal, M, Q)
    for i in range(n):
        for j in range(width):
            R[i, j] = T[i, j] - Q[i, j]
    residual = np.sqrt(_ratios(_dots(R, R), _dots(T, T)))
    return M, steps, residual.max()


@numba.njit(nogil=True, cache=True, fastmath=CONTRACT)
def _add_diagonal(p, diagonal, P, Q):  # type: ignore[no-untyped-def]
    """Q <- C (p Q + diag(diagonal) P)."""
    n, width = P.shape
    for i in range(n):
        for j in range(width):
            Q[i, j] = p * Q[i, j] + diagonal[i] * P[i, j]
    _centre(Q)


@numba.njit(nogil=True, cache=True, fastmath=CONTRACT)
def _centre(Q):  # type: ignore[no-untyped-def]
    """Q <- C Q."""
    n, width = Q.shape
    sums = np.zeros(width)
    for i in range(n):
        for j in range(width):
            sums[j] += Q[i, j]
    means = (sums / n).astype(Q.dtype)
    for i in range(n):
        for j in range(width):
            Q[i, j] -= means[j]


@numba.njit(nogil=True, cache=True, fastmath=CONTRACT)
def _precondition(preconditioner, R, Z):  # type: ignore[no-untyped-def]
    """Z <- R / preconditioner, moved along 1 / preconditioner back into the zero-mean vectors."""
    n, width = R.shape
    sums = np.zeros(width)
    for i in range(n):
        for j in range(width):
            Z[i, j] = R[i, j] / preconditioner[i]
            sums[j] += Z[i, j]
    shares = (sums / np.sum(1.0 / preconditioner)).astype(R.dtype)
    for i in range(n):
        for j in range(width):
            Z[i, j] -= shares[j] / preconditioner[i]


@numba.njit(nogil=True, cache=True, fastmath=CONTRACT)
def _dots(A, B):  # type: ignore[no-untyped-def]
    """The inner products of the columns, added up in double precision."""
    n, width = A.shape
    sums = np.zeros(width)
    for i in range(n):
        for j in range(width):
            sums[j] += np.float64(A[i, j]) * B[i, j]
    return sums


@numba.njit(nogil=True, cache=True)
def _ratios(numerators, denominators):  # type: ignore[no-untyped-def]
    """Quotients; a column without a denominator has been solved exactly, and 0 leaves it as it is."""
    return np.where(denominators > 0, numerators / np.where(denominators > 0, denominators, 1.0), 0.0)


@numba.njit(nogil=True, cache=True)
def _place_sparse(indptr, indices, data, new_indptr, new_indices, new_data):  # type: ignore[no-untyped-def]
    for i in range(len(indptr) - 1):
        for k in range(indptr[i], indptr[i + 1]):
            new_indices[new_indptr[i] + k - indptr[i]] = indices[k]
            new_data[new_indptr[i] + k - indptr[i]] = data[k]


@numba.njit(nogil=True, cache=True)
def _place_dense(block, first_column, starts, new_indices, new_data):  # type: ignore[no-untyped-def]
    n, width = block.shape
    for i in range(n):
        for j in range(width):
            new_indices[starts[i] + j] = first_column + j
            new_data[starts[i] + j] = block[i, j]
