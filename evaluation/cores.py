"""How many cores there are, and calls that are spread over them."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def n_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(function: Callable[[Any], Any], arguments: Iterable[Any]) -> list[Any]:
    """Call a function that holds no lock once for each argument, on all cores, and return the results in order."""
    with ThreadPoolExecutor(n_cores()) as pool:
        return list(pool.map(function, arguments))
