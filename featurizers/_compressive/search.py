"""Covers of a whole corpus at its true, binary cost: an amortised start and a local search.

The cost of a k-gram is shared by its pointers, so no document can be covered alone. The start spreads it evenly
(`amortised_cover`): a pointer costs its own plus the entry's divided by its users, and covering and counting users
alternate. The search (`improve`) then changes the cover a window at a time and counts every change exactly; what does
not lower the cost is taken back. Its moves: cover a document again, drop a k-gram, add one.
"""

import numpy as np

from textbench.featurizers._compressive.cover import FREE, cheapest_cover, usage_of
from textbench.featurizers._compressive.index import KgramIndex
from textbench.featurizers._compressive.moves import Places, State, cover_documents_again, try_each
from textbench.featurizers._kernels import in_parallel, kernel, shares

PASSES = 12  # of the amortised start; more change little
WORTH = 0.8  # share of its entry's cost that an unused k-gram must seem to save before it is tried
ENOUGH = 2e-5  # a round that lowers the cost by less than this share of it is the last


def amortised_cover(index: KgramIndex, pointer_cost: float, costs: np.ndarray) -> np.ndarray:
    """Return a cover, uint8 (n_words,), in which a pointer pays its entry's cost divided by the entry's users.

    costs: float64 (max_length,), of an entry of 1, 2, ... words.
    """
    users: np.ndarray = index.counts.astype(np.float32)  # all occurrences, to begin with
    entry = costs[index.lengths - 1].astype(np.float32)
    once = (pointer_cost + costs + FREE).astype(np.float32)
    for _ in range(PASSES):
        price = np.float32(pointer_cost + FREE) + entry / np.maximum(users, 1)
        span = cheapest_cover(index.kgram, index.offsets, price, once)
        users = (users + usage_of(index, span).astype(np.float32)) / 2
    return span


def improve(
    index: KgramIndex, span: np.ndarray, pointer_cost: float, costs: np.ndarray, rounds: int = 10
) -> float:
    """Lower the cost of the cover `span` in place, until a round changes next to nothing; return the fall.

    span: uint8 (n_words,); costs: float64 (max_length,), of an entry of 1, 2, ... words.
    """
    usage = usage_of(index, span)
    entry = costs[index.lengths - 1]
    state = State(index.kgram, index.offsets, span, usage, costs, pointer_cost + FREE)
    places = Places(index.start, index.where, index.lengths)
    scale = pointer_cost * np.count_nonzero(span) + entry[usage > 0].sum()
    total = 0.0
    for r in range(rounds):
        # In wide windows neighbours change too; in narrow ones they hold their entries open. Both find moves.
        margin = index.max_length if r % 2 == 0 else 0
        fell = cover_documents_again(state)
        fell += try_each(state, places, _worth_dropping(usage, entry, pointer_cost), False, margin)
        fell += try_each(state, places, _worth_adding(index, usage, entry, costs, pointer_cost), True, margin)
        total += fell
        if r > 0 and fell <= ENOUGH * scale:
            break
    return total


def _worth_dropping(usage: np.ndarray, entry: np.ndarray, pointer_cost: float) -> np.ndarray:
    """Return the k-grams in use whose pointers cost less than a few entries, rarest first."""
    few = np.flatnonzero((usage > 0) & (usage * pointer_cost <= 4 * entry))
    return few[np.argsort(usage[few], kind="stable")]


def _worth_adding(
    index: KgramIndex, usage: np.ndarray, entry: np.ndarray, costs: np.ndarray, pointer_cost: float
) -> np.ndarray:
    """Return unused k-grams that may pay, best first, judged at amortised prices of those in use."""
    price = (pointer_cost + FREE + entry / np.maximum(usage, 1)).astype(np.float32)
    once = (pointer_cost + costs + FREE).astype(np.float32)
    before, after = (np.empty(len(index.words), dtype=np.float32) for _ in range(2))
    distances = (price, once, before, after)
    in_parallel(
        _distances, [(index.kgram, index.offsets, *part, *distances) for part in shares(index.offsets)]
    )
    gain = np.zeros(len(usage), dtype=np.float32)
    places = (usage, index.lengths, index.room, index.start, index.where)
    gains = (before, after, np.float32(pointer_cost), gain)
    in_parallel(_gains, [(*part, *places, *gains) for part in shares(index.start)])
    worth = np.flatnonzero(gain > WORTH * entry)
    return worth[np.argsort((entry - gain)[worth], kind="stable")]


@kernel
def _distances(
    kgram: np.ndarray,
    offsets: np.ndarray,
    begin: int,
    end: int,
    price: np.ndarray,
    once: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
) -> None:
    """before[i]: cost of all words before i less that of the whole document; after[i]: cost of i and what follows."""
    k = kgram.shape[1]
    for d in range(begin, end):
        low, high = offsets[d], offsets[d + 1]
        before[low:high] = np.inf
        after[low:high] = np.inf
        for e in range(high, low, -1):
            rest = after[e] if e < high else 0.0
            cheapest = np.inf
            for t in range(min(k, e - low), 0, -1):
                g = kgram[e - t, t - 1]
                cheapest = min(cheapest, price[g] if g >= 0 else once[t - 1])
                after[e - t] = min(after[e - t], rest + cheapest)
        for s in range(low, high):
            so_far = before[s] if s > low else -after[low]
            before[s] = so_far
            cheapest = np.inf
            for t in range(min(k, high - s), 0, -1):
                g = kgram[s, t - 1]
                cheapest = min(cheapest, price[g] if g >= 0 else once[t - 1])
                if s + t < high:
                    before[s + t] = min(before[s + t], so_far + cheapest)


@kernel
def _gains(
    begin: int,
    end: int,
    usage: np.ndarray,
    lengths: np.ndarray,
    room: np.ndarray,
    start: np.ndarray,
    where: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
    pointer_cost: float,
    gain: np.ndarray,
) -> None:
    """What the covers would save if an unused k-gram were free but for its pointers, each place by itself."""
    for g in range(begin, end):
        if usage[g] > 0:
            continue
        total = 0.0
        for o in range(start[g], start[g + 1]):
            i = where[o]
            j = i + lengths[g]
            rest = after[j] if room[j - 1] > 1 else 0.0
            total += max(0.0, -(before[i] + pointer_cost + rest))
        gain[g] = total
