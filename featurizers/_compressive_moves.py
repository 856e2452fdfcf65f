"""Moves of the local search: cover a window of a document again, count the change exactly, take back what does not pay.

A window begins and ends where a pointer does, so pointers outside it stay as they are. Inside, all are taken away and
the cheapest cover at the prices that now hold is put down: a k-gram that someone else still uses costs its pointer,
any other its entry too. `usage` follows every change, and an entry is paid when its first pointer comes and repaid
when its last goes.
"""

import numpy as np

from featurizers._compressive_kernels import kernel

LOG = 1 << 20  # places one move may change; one that would change more is not made
SMALL = 1e-7  # a fall of the cost below this is rounding


@kernel
def cover_documents_again(
    kgram: np.ndarray,
    offsets: np.ndarray,
    span: np.ndarray,
    usage: np.ndarray,
    entry: np.ndarray,
    costs: np.ndarray,
    pointer: float,
) -> float:
    """Cover each document again, whole, where that lowers the cost; return by how much it fell in all."""
    longest = 0
    for d in range(len(offsets) - 1):
        longest = max(longest, offsets[d + 1] - offsets[d])
    scratch = _scratch(longest + 1)
    log = np.empty((2 * longest, 2), dtype=np.int64)
    fell = 0.0
    for d in range(len(offsets) - 1):
        low, high = offsets[d], offsets[d + 1]
        change, n_log = _cover_again(
            kgram, low, low, high, span, usage, entry, costs, pointer, -1, 0.0, scratch, log, 0
        )
        if change < -SMALL:
            fell -= change
        else:
            _take_back(kgram, span, usage, log, n_log)
    return fell


@kernel
def try_each(
    kgram: np.ndarray,
    offsets: np.ndarray,
    span: np.ndarray,
    usage: np.ndarray,
    entry: np.ndarray,
    costs: np.ndarray,
    pointer: float,
    start: np.ndarray,
    where: np.ndarray,
    lengths: np.ndarray,
    candidates: np.ndarray,
    add: bool,
    margin: int,
) -> float:
    """Drop (or add) each candidate k-gram wherever it is used (or occurs), if that lowers the cost; return the fall."""
    k = kgram.shape[1]
    scratch = _scratch(16 * k)
    log = np.empty((LOG, 2), dtype=np.int64)
    fell = 0.0
    for g in candidates:
        if (usage[g] > 0) == add:
            continue
        change, n_log = 0.0, 0
        favour = pointer * 0.999 if add else np.inf
        for o in range(start[g], start[g + 1]):
            i = where[o]
            if not add and span[i] != lengths[g]:
                continue
            d = np.searchsorted(offsets, i, side="right") - 1
            low, high = _window(span, offsets[d], offsets[d + 1], i, lengths[g], margin)
            step, n_log = _cover_again(
                kgram,
                offsets[d],
                low,
                high,
                span,
                usage,
                entry,
                costs,
                pointer,
                g,
                favour,
                scratch,
                log,
                n_log,
            )
            change += step
            if n_log > LOG - 64 * k or (not add and change > entry[g]):
                change = np.inf
                break
        if change < -SMALL:
            fell -= change
        else:
            _take_back(kgram, span, usage, log, n_log)
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
    kgram: np.ndarray,
    first: int,
    low: int,
    high: int,
    span: np.ndarray,
    usage: np.ndarray,
    entry: np.ndarray,
    costs: np.ndarray,
    pointer: float,
    special: int,
    special_price: float,
    scratch: tuple[np.ndarray, np.ndarray, np.ndarray],
    log: np.ndarray,
    n_log: int,
) -> tuple[float, int]:
    """Replace the pointers that start in low ... high - 1; return the change of the cost and the length of the log.

    `special` is a k-gram with a price of its own. Old lengths go to the log, so that the change can be taken back.
    """
    k = kgram.shape[1]
    reach = low  # words before it are covered by the pointer before the window
    for s in range(low - 1, max(first, low - k) - 1, -1):
        if span[s] > 0:
            reach = s + span[s]
            break
    change = 0.0
    for s in range(low, high):
        if span[s] > 0:
            change -= pointer + _release(kgram, span, usage, entry, costs, s)
            log[n_log, 0], log[n_log, 1] = s, span[s]
            n_log += 1
            span[s] = 0
    best, back, length = scratch
    n = high - low
    for j in range(n + 1):
        best[j] = 0.0 if low + j <= reach else np.inf
        back[j] = 0
    for s in range(n):
        cheapest, longest = np.inf, 0
        # A pointer may run over the end of the window, whose words are covered anyway.
        for t in range(k, 0, -1):
            g = kgram[low + s, t - 1]
            if g == special and g >= 0:
                cost = special_price
            elif g >= 0:
                cost = pointer if usage[g] > 0 else pointer + entry[g]
            elif g == -1:
                cost = pointer + costs[t - 1]
            else:
                continue
            if cost < cheapest:
                cheapest, longest = cost, t
            j = min(s + t, n)
            if best[s] + cheapest < best[j]:
                best[j], back[j], length[j] = best[s] + cheapest, j - s, longest
    if best[n] == np.inf:
        return np.inf, n_log
    j = n
    while back[j] > 0:
        s = low + j - back[j]
        span[s] = length[j]
        log[n_log, 0], log[n_log, 1] = s, 0
        n_log += 1
        change += pointer + _claim(kgram, span, usage, entry, costs, s)
        j -= back[j]
    return change, n_log


@kernel
def _release(
    kgram: np.ndarray, span: np.ndarray, usage: np.ndarray, entry: np.ndarray, costs: np.ndarray, s: int
) -> float:
    """Count one user less of the k-gram that the pointer at s uses; return what that saves of the dictionary."""
    g = kgram[s, span[s] - 1]
    if g < 0:
        return costs[span[s] - 1]
    usage[g] -= 1
    return entry[g] if usage[g] == 0 else 0.0


@kernel
def _claim(
    kgram: np.ndarray, span: np.ndarray, usage: np.ndarray, entry: np.ndarray, costs: np.ndarray, s: int
) -> float:
    """Count one user more of the k-gram that the pointer at s uses; return what the dictionary grows by."""
    g = kgram[s, span[s] - 1]
    if g < 0:
        return costs[span[s] - 1]
    usage[g] += 1
    return entry[g] if usage[g] == 1 else 0.0


@kernel
def _take_back(kgram: np.ndarray, span: np.ndarray, usage: np.ndarray, log: np.ndarray, n_log: int) -> None:
    for e in range(n_log - 1, -1, -1):
        s = log[e, 0]
        if span[s] > 0 and kgram[s, span[s] - 1] >= 0:
            usage[kgram[s, span[s] - 1]] -= 1
        span[s] = log[e, 1]
        if span[s] > 0 and kgram[s, span[s] - 1] >= 0:
            usage[kgram[s, span[s] - 1]] += 1
