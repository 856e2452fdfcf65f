"""Word n-grams of very many documents: as `tasks.ngrams`, by blocks of documents and tables looked up by hash.

An n-gram's code is as there. Those of a block are sorted, each once a document; those of all blocks are taken by ranges
of codes, so that only one range is sorted again at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numba import njit

N_RANGES = 64
NOTHING = np.zeros(0, dtype=np.int64)
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # Knuth's, 2**64 over the golden ratio


@dataclass(frozen=True, eq=False)
class NGrams:
    """The n-grams of one level that are counted: sorted codes int64 (n_ngrams,), and where each stands, by hash.

    slots: int64 (n_slots, 2), a power of two, a code and its place; place -1 is free.
    """

    codes: np.ndarray
    slots: np.ndarray

    @classmethod
    def of(cls, codes: np.ndarray) -> NGrams:
        """Return them with their hash table, a quarter to half full."""
        slots = np.full((1 << (2 * len(codes)).bit_length(), 2), -1, dtype=np.int64)
        _fill(codes, slots)
        return cls(codes, slots)

    def look_up(self, codes: np.ndarray) -> np.ndarray:
        """Return the place of each code among the n-grams, int64 (n_codes,), -1 where it is none."""
        return _look_up(codes, self.slots)


def learn_ngrams(
    pool: ThreadPoolExecutor,
    blocks: Iterable[tuple[np.ndarray, np.ndarray]],
    n_terms: int,
    shorter: Sequence[NGrams],
    min_df: int,
    max_documents: float,
) -> NGrams:
    """Return the n-grams, one word longer than the longest of `shorter`, in min_df .. max_documents documents.

    blocks: ids int32 (n_tokens,) and lengths int64 (n_documents,) of consecutive documents.
    """

    def codes_of(block: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        ids, lengths = block
        before = ids.astype(np.int64)
        for table in shorter:
            before = table.look_up(next_level(before, ids, lengths, n_terms))
        codes = next_level(before, ids, lengths, n_terms)
        return np.sort(codes[: _keep_different(codes, lengths)])

    found = [NOTHING, *pool.map(codes_of, blocks)]
    sample = np.sort(np.concatenate([codes[::N_RANGES] for codes in found]))
    inner = (
        sample[np.linspace(0, len(sample), N_RANGES + 1).astype(np.int64)[1:-1]] if len(sample) else NOTHING
    )
    cuts = [[0, *np.searchsorted(codes, inner).tolist(), len(codes)] for codes in found]

    def of_range(i: int) -> np.ndarray:
        codes = np.concatenate([codes[cut[i] : cut[i + 1]] for codes, cut in zip(found, cuts, strict=True)])
        different, df = np.unique(codes, return_counts=True)
        return different[(df >= min_df) & (df <= max_documents)]

    return NGrams.of(np.concatenate(list(pool.map(of_range, range(len(inner) + 1)))))


@njit(cache=True, nogil=True)
def next_level(before, ids, lengths, n_terms):  # type: ignore[no-untyped-def]
    """Return the code of the n-gram that ends at each position, int64 (n_tokens,), -1 where none does.

    before: int64 (n_tokens,), the number of the n-gram that is one word shorter, -1 where there is none.
    """
    codes = np.full(len(ids), -1, dtype=np.int64)
    start = 0
    for length in lengths:
        for i in range(start + 1, start + length):
            if before[i - 1] >= 0:
                codes[i] = before[i - 1] * n_terms + ids[i]
        start += length
    return codes


@njit(cache=True, nogil=True)
def _keep_different(codes, lengths):  # type: ignore[no-untyped-def]
    """Sort the codes of each document and keep each of its different ones once; return how many are kept."""
    n = start = 0
    for length in lengths:
        own = codes[start : start + length]
        own.sort()
        last = -1
        for code in own:
            if code != last:
                codes[n] = last = code
                n += 1
        start += length
    return n


@njit(cache=True, nogil=True)
def _fill(codes, slots):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(slots) - 1)
    for place in range(len(codes)):
        slot = _mixed(codes[place]) & mask
        while slots[slot, 1] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot, 0], slots[slot, 1] = codes[place], place


@njit(cache=True, nogil=True)
def _look_up(codes, slots):  # type: ignore[no-untyped-def]
    places = np.full(len(codes), -1, dtype=np.int64)
    mask = np.uint64(len(slots) - 1)
    for i in range(len(codes)):
        if codes[i] < 0:
            continue
        slot = _mixed(codes[i]) & mask
        while slots[slot, 1] >= 0:
            if slots[slot, 0] == codes[i]:
                places[i] = slots[slot, 1]
                break
            slot = (slot + np.uint64(1)) & mask
    return places


@njit(cache=True, nogil=True)
def _mixed(code):  # type: ignore[no-untyped-def]
    h = np.uint64(code) * FACTOR
    return h ^ (h >> np.uint64(32))
