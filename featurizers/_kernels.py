"""How the loops of methods are compiled and spread over the cores.

Kernels hold no lock, so threads run them side by side; each thread writes to places of its own, and results do not
depend on how many there are. Machine code is kept between runs where the folder (or the user's cache) can be written.
"""

import functools
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import njit
from threadpoolctl import ThreadpoolController


def kernel(function: Callable[..., Any]) -> Any:
    """Return it compiled, at its first call. It may call kernels of its own file only: the cache sees no others."""
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no folder to keep machine code in
        return njit(nogil=True)(function)


def in_parallel(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Call a kernel once for each tuple of arguments, on all cores, and return the results in order."""
    with ThreadPoolExecutor(n_cores()) as pool:
        return list(pool.map(lambda given: function(*given), arguments))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let one thread multiply matrices, for more of them add up in another order: a context, or around a function."""
    with _blas().limit(limits=1):
        yield


@functools.cache
def _blas() -> ThreadpoolController:
    """Return the libraries that multiply matrices. They are looked for once, for that reads all that is loaded."""
    return ThreadpoolController().select(user_api="blas")


def n_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def shares(offsets: np.ndarray) -> list[tuple[int, int]]:
    """Cut items into a few ranges a core of about equal work; item i is `offsets[i + 1] - offsets[i]` of it.

    Returns the (begin, end) of each range; offsets: int64 (n_items + 1,).
    """
    marks = np.linspace(offsets[0], offsets[-1], 8 * n_cores() + 1)[1:-1]
    cuts = [0, *np.searchsorted(offsets, marks).tolist(), len(offsets) - 1]
    return [(begin, end) for begin, end in itertools.pairwise(cuts) if begin < end]
