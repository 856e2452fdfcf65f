"""Moves of the local search: cover a window of a document again, count the change exactly, undo what does not pay.

A window begins and ends where a pointer does, so pointers outside it stay as they are. Inside, all are taken away and
the cheapest cover at the prices that now hold is put down: a k-gram that someone else still uses costs its pointer, any
other its entry too. `usage` follows every change: an entry is paid when its first pointer comes and repaid when its
last one goes.
"""

from typing import NamedTuple

import numpy as np

from textbench.featurizers._compressive.index import ONCE, OUTSIDE
from textbench.featurizers._kernels import kernel

LOG = 1 << 20  # places one move may change; one that would change more is not made
SMALL = 1e-7  # a fall of the cost below this is rounding
FAVOUR = 0.999  # of a pointer's price, for a k-gram that is tried: it is used where it is as good as another


class State(NamedTuple):
    """A cover that is being changed, and prices.

    kgram, offsets: as in `Index`. span: uint8 (n_words,). usage: int32 (n_kgrams,), pointers of the cover to each
    k-gram. costs: float64 (max_length,), of an entry of 1, 2, ... words in the dictionary. pointer: the price of a
    pointer.
    """

    kgram: np.ndarray
    offsets: np.ndarray
    span: np.ndarray
    usage: np.ndarray
    costs: np.ndarray
    pointer: float


class Places(NamedTuple):
    """Where k-grams occur: `start`, `where` and `lengths` of `Index`."""

    start: np.ndarray
    where: np.ndarray
    lengths: np.ndarray


@kernel
def cover_documents_again(state: State) -> float:
    """Cover each document again, whole, where that lowers the cost; return by how much it fell in all."""
    offsets = state.offsets
    longest = 0
    for d in range(len(offsets) - 1):
        longest = max(longest, offsets[d + 1] - offsets[d])
    scratch = _scratch(longest + 1)
    log = np.empty((2 * longest, 2), dtype=np.int64)
    fell = 0.0
    for d in range(len(offsets) - 1):
        low, high = offsets[d], offsets[d + 1]
        change, n_log = _cover_again(state, low, low, high, -1, 0.0, scratch, log, 0)
        if change < -SMALL:
            fell -= change
        else:
            _undo(state, log, n_log)
    return fell


@kernel
def try_each(state: State, places: Places, candidates: np.ndarray, add: bool, margin: int) -> float:
    """Drop (or add) each candidate k-gram wherever it is used (or occurs), if that lowers the cost; return the fall.

    Windows reach `margin` words beyond the k-gram on both sides. candidates: int (n,), numbers of k-grams.
    """
    room = 64 * state.kgram.shape[1]  # more than a window changes
    scratch = _scratch(room)
    log = np.empty((LOG, 2), dtype=np.int64)
    price = state.pointer * FAVOUR if add else np.inf
    fell = 0.0
    for g in candidates:
        if (state.usage[g] > 0) == add:
            continue
        change, n_log = 0.0, 0
        for o in range(places.start[g], places.start[g + 1]):
            i = places.where[o]
            if not add and state.span[i] != places.lengths[g]:
                continue
            d = np.searchsorted(state.offsets, i, side="right") - 1
            first, last = state.offsets[d], state.offsets[d + 1]
            low, high = _window(state.span, first, last, i, places.lengths[g], margin)
            step, n_log = _cover_again(state, first, low, high, g, price, scratch, log, n_log)
            change += step
            # What is left of a drop can save the entry at most.
            if n_log > LOG - room or (not add and change > state.costs[places.lengths[g] - 1]):
                change = np.inf
                break
        if change < -SMALL:
            fell -= change
        else:
            _undo(state, log, n_log)
    return fell


@kernel
def _scratch(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.empty(size), np.empty(size, dtype=np.uint8), np.empty(size, dtype=np.uint8)


@kernel
def _window(span: np.ndarray, first: int, last: int, place: int, length: int, margin: int) -> tuple[int, int]:
    """Return the window around a k-gram: at least `margin` words on both sides, and whole pointers."""
    low = max(first, place - margin)
    while span[low] == 0:
        low -= 1
    high = min(last, place + length + margin)
    while high < last and span[high] == 0:
        high += 1
    return low, high


@kernel
def _cover_again(
    state: State,
    first: int,
    low: int,
    high: int,
    special: int,
    price: float,
    scratch: tuple[np.ndarray, np.ndarray, np.ndarray],
    log: np.ndarray,
    n_log: int,
) -> tuple[float, int]:
    """Replace the pointers that start in low ... high - 1, in a document that begins at `first`.

    `special` is a k-gram with a price of its own. Returns the change of the cost and the new length of the log, which
    gets what stood at each place before.
    """
    span = state.span
    reach = low  # words before it are covered by the pointer before the window
    for s in range(low - 1, max(first, low - state.kgram.shape[1]) - 1, -1):
        if span[s] > 0:
            reach = s + span[s]
            break
    change = 0.0
    for s in range(low, high):
        if span[s] > 0:
            change -= state.pointer + _release(state, s)
            log[n_log, 0], log[n_log, 1] = s, span[s]
            n_log += 1
            span[s] = 0
    if not _plan(state, low, high, reach, special, price, scratch):
        return np.inf, n_log
    _, back, length = scratch
    j = high - low
    while back[j] > 0:
        s = low + j - back[j]
        span[s] = length[j]
        change += state.pointer + _claim(state, s)
        log[n_log, 0], log[n_log, 1] = s, 0
        n_log += 1
        j -= back[j]
    return change, n_log


@kernel
def _plan(
    state: State,
    low: int,
    high: int,
    reach: int,
    special: int,
    price: float,
    scratch: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> bool:
    """Find the cheapest cover of the words from `reach` to high - 1 into `scratch`; return whether there is one.

    best[j]: the least that covers the window's first j words; back[j], length[j]: how far before j its last pointer
    starts, and how long that is. As in `_compressive_cover`, but a pointer may run over the end of the window.
    """
    best, back, length = scratch
    n = high - low
    for j in range(n + 1):
        best[j] = 0.0 if low + j <= reach else np.inf
        back[j] = 0
    for s in range(n):
        cheapest, longest = np.inf, 0
        for t in range(state.kgram.shape[1], 0, -1):
            g = state.kgram[low + s, t - 1]
            if g == OUTSIDE:
                continue
            if g == ONCE or (g != special and state.usage[g] == 0):
                cost = state.pointer + state.costs[t - 1]
            else:
                cost = price if g == special else state.pointer
            if cost < cheapest:
                cheapest, longest = cost, t
            j = min(s + t, n)
            if best[s] + cheapest < best[j]:
                best[j], back[j], length[j] = best[s] + cheapest, j - s, longest
    return best[n] < np.inf


@kernel
def _release(state: State, s: int) -> float:
    """Count one user less of the k-gram that the pointer at s uses; return what that saves of the dictionary."""
    t = state.span[s]
    g = state.kgram[s, t - 1]
    if g >= 0:
        state.usage[g] -= 1
    return state.costs[t - 1] if g < 0 or state.usage[g] == 0 else 0.0


@kernel
def _claim(state: State, s: int) -> float:
    """Count one user more of the k-gram that the pointer at s uses; return what the dictionary grows by."""
    t = state.span[s]
    g = state.kgram[s, t - 1]
    if g >= 0:
        state.usage[g] += 1
    return state.costs[t - 1] if g < 0 or state.usage[g] == 1 else 0.0


@kernel
def _undo(state: State, log: np.ndarray, n_log: int) -> None:
    for e in range(n_log - 1, -1, -1):
        s = log[e, 0]
        if state.span[s] > 0:
            _release(state, s)
        state.span[s] = log[e, 1]
        if state.span[s] > 0:
            _claim(state, s)
