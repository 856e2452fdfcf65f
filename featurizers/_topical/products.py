"""Small matrix products of rows that stand anywhere in two tables: what training and inference by windows consist of.

Two rows meet four at a time, so that eight sums stay in registers and each number is read once for several of them; a
general matrix product would spend more time on its packing. All rows are float32, `at_a` and `at_b` name n and m of
them.
"""

import math

import numpy as np
from numba import njit

# Bytes of a cache line and of the widest register: a read that lies across two takes twice as long.
ALIGNMENT = 64


def aligned(array: np.ndarray) -> np.ndarray:
    """Return a copy of `array` (rows, columns) in C order that begins where a cache line does."""
    copy = aligned_zeros(array.shape, array.dtype)
    copy[...] = array
    return copy


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype | type = np.float32) -> np.ndarray:
    """Return zeros in C order that begin where a cache line does."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(size + ALIGNMENT, dtype=np.uint8)
    first = -room.ctypes.data % ALIGNMENT
    return room[first : first + size].view(dtype).reshape(shape)


@njit(cache=True, fastmath=True)
def dot_products(a, at_a, n, b, at_b, m, out):  # type: ignore[no-untyped-def]
    """Fill in out[i, j] = a[at_a[i]] . b[at_b[j]], i < n, j < m; `out` has room up to the next multiple of four."""
    width = a.shape[1]
    for i in range(0, n, 2):
        other = min(i + 1, n - 1)
        x, y = at_a[i], at_a[other]
        for j in range(0, m, 4):
            p, q, r, s = at_b[j], at_b[min(j + 1, m - 1)], at_b[min(j + 2, m - 1)], at_b[min(j + 3, m - 1)]
            x_p = x_q = x_r = x_s = y_p = y_q = y_r = y_s = np.float32(0.0)
            for k in range(width):
                x_p += a[x, k] * b[p, k]
                x_q += a[x, k] * b[q, k]
                x_r += a[x, k] * b[r, k]
                x_s += a[x, k] * b[s, k]
                y_p += a[y, k] * b[p, k]
                y_q += a[y, k] * b[q, k]
                y_r += a[y, k] * b[r, k]
                y_s += a[y, k] * b[s, k]
            out[i, j], out[i, j + 1], out[i, j + 2], out[i, j + 3] = x_p, x_q, x_r, x_s
            out[other, j], out[other, j + 1], out[other, j + 2], out[other, j + 3] = y_p, y_q, y_r, y_s


@njit(cache=True, fastmath=True)
def add_products(a, at_a, n, weights, b, at_b, m):  # type: ignore[no-untyped-def]
    """Add sum_j weights[i, j] b[at_b[j]], j < m, to a[at_a[i]], i < n; no row of b is one of those of a."""
    width = a.shape[1]
    for i in range(n):
        x = at_a[i]
        for j in range(0, m - 3, 4):
            p, q, r, s = at_b[j], at_b[j + 1], at_b[j + 2], at_b[j + 3]
            for_p, for_q, for_r, for_s = (
                weights[i, j],
                weights[i, j + 1],
                weights[i, j + 2],
                weights[i, j + 3],
            )
            for k in range(width):
                a[x, k] += for_p * b[p, k] + for_q * b[q, k] + for_r * b[r, k] + for_s * b[s, k]
        for j in range(m & ~3, m, 2):
            p, q = at_b[j], at_b[min(j + 1, m - 1)]
            for_p, for_q = weights[i, j], weights[i, j + 1] if j + 1 < m else np.float32(0.0)
            for k in range(width):
                a[x, k] += for_p * b[p, k] + for_q * b[q, k]
