"""Cheapest covers of documents by k-grams at given prices: dynamic programming, exact and linear in the words.

Let f[j] be the least that covers the first j words of a document. A pointer of L words at s gives f[j] <= f[s] +
price for every j in s + 1 ... s + L, because what covers a longer prefix covers a shorter one: it is a cover, not a
partition, and pointers may overlap. So f[s + L] takes the cheapest pointer at s of at least L words, found by running
L downwards.

A cover is an array `span`, uint8 (n_words,): the length of the pointer that starts at each word, 0 where none does.
Every pointer starts at or before the end of the one before it, so no word is missed.
"""

import numpy as np

from textbench.featurizers._compressive.index import ONCE, OUTSIDE, KgramIndex
from textbench.featurizers._kernels import in_parallel, kernel, shares

# Added to the price of every pointer: where pointers cost nothing, fewer of them still win among equals.
FREE = 2.0**-30


def cheapest_cover(kgram: np.ndarray, offsets: np.ndarray, price: np.ndarray, once: np.ndarray) -> np.ndarray:
    """Return the cheapest cover of every document, `span` uint8 (n_words,); ties fall by place and length alone.

    kgram, offsets: as in `KgramIndex`. price: float32 (n_kgrams,), of a pointer to each numbered k-gram. once: float32
    (max_length,), of one to an unnumbered k-gram of 1, 2, ... words; infinite where it may not be used.
    """
    span = np.zeros(len(kgram), dtype=np.uint8)
    in_parallel(_cover_share, [(kgram, offsets, *part, price, once, span) for part in shares(offsets)])
    return span


def cover_with(index: KgramIndex, opened: np.ndarray, pointer_cost: float, costs: np.ndarray) -> np.ndarray:
    """Return the cheapest cover when entries `opened`, bool (n_kgrams,), are paid for; other k-grams pay at each use.

    costs: float64 (max_length,), of a dictionary entry of 1, 2, ... words.
    """
    price = pointer_cost + FREE + np.where(opened, 0.0, costs[index.lengths - 1])
    once = pointer_cost + FREE + costs
    return cheapest_cover(index.kgram, index.offsets, price.astype(np.float32), once.astype(np.float32))


def usage_of(index: KgramIndex, span: np.ndarray) -> np.ndarray:
    """Return how many pointers of the cover use each repeated k-gram, int32 (n_kgrams,)."""
    return _usage(index.kgram, span, len(index.lengths))


def cost_of(index: KgramIndex, span: np.ndarray, pointer_cost: float, costs: np.ndarray) -> float:
    """Return the binary cost of a cover, counted from scratch: its pointers, and every k-gram it uses, once.

    costs: float64 (max_length,), of an entry of 1, 2, ... words.
    """
    at = np.flatnonzero(span)
    used = index.kgram[at, span[at] - 1]
    repeated = np.unique(used[used >= 0])
    own = costs[span[at][used == ONCE] - 1].sum()
    return float(pointer_cost * len(at) + costs[index.lengths[repeated] - 1].sum() + own)


@kernel
def _cover_share(
    kgram: np.ndarray,
    offsets: np.ndarray,
    begin: int,
    end: int,
    price: np.ndarray,
    once: np.ndarray,
    span: np.ndarray,
) -> None:
    """Cover the documents begin ... end - 1."""
    longest = 0
    for d in range(begin, end):
        longest = max(longest, offsets[d + 1] - offsets[d])
    best = np.empty(longest + 1, dtype=np.float64)
    # Words back to the pointer that reached here, and its length.
    back = np.empty(longest + 1, dtype=np.uint8)
    length = np.empty(longest + 1, dtype=np.uint8)
    for d in range(begin, end):
        origin = offsets[d]
        n = offsets[d + 1] - origin
        best[1 : n + 1] = np.inf
        best[0] = 0.0
        for s in range(n):
            cheapest, longer = np.inf, 0
            for t in range(min(kgram.shape[1], n - s), 0, -1):
                g = kgram[origin + s, t - 1]
                cost = price[g] if g >= 0 else once[t - 1] if g != OUTSIDE else np.inf
                if cost < cheapest:
                    cheapest, longer = cost, t
                if best[s] + cheapest < best[s + t]:
                    best[s + t], back[s + t], length[s + t] = best[s] + cheapest, t, longer
        j = n
        while j > 0:
            s = j - back[j]
            span[origin + s] = length[j]
            j = s


@kernel
def _usage(kgram: np.ndarray, span: np.ndarray, n_kgrams: int) -> np.ndarray:
    usage = np.zeros(n_kgrams, dtype=np.int32)
    for i in range(len(span)):
        if span[i] > 0 and kgram[i, span[i] - 1] >= 0:
            usage[kgram[i, span[i] - 1]] += 1
    return usage
