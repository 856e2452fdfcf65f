"""Index of all k-grams of a corpus: which places hold the same k-gram, found level by level.

A k-gram of t words is the pair (k-gram of its first t - 1 words, k-gram of its last t - 1 words), so one pass
over the corpus a level, hashing pairs of numbers, finds all that are equal. A k-gram whose prefix or suffix
occurs once occurs once itself and is never looked up. Only repeated k-grams get a number; the others are
their own only copy and need none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from textbench.featurizers._kernels import in_parallel, kernel, n_cores

ONCE = -1  # this k-gram occurs nowhere else
OUTSIDE = -2  # it would run over the end of its document
LARGEST = 2**31 - 1  # places and k-grams are numbered in int32


@dataclass(frozen=True, eq=False)
class KgramIndex:
    """A corpus and its repeated k-grams. Documents stand one after another.

    words: int32 (n_words,). offsets: int64 (n_documents + 1,). room: uint8 (n_words,), words from here to the
    end of the document, at most max_length. kgram: int32 (n_words, max_length), the number of the k-gram of
    t + 1 words that starts here, or ONCE, or OUTSIDE. lengths: uint8 (n_kgrams,). first: int32 (n_kgrams,), where
    each occurs first. start: int64 (n_kgrams + 1,) and where: int32; k-gram g occurs at
    where[start[g]:start[g + 1]], ascending.
    """

    words: np.ndarray
    offsets: np.ndarray
    room: np.ndarray
    kgram: np.ndarray
    lengths: np.ndarray
    first: np.ndarray
    start: np.ndarray
    where: np.ndarray

    @property
    def max_length(self) -> int:
        """The longest k-gram looked for, in words."""
        return self.kgram.shape[1]

    @property
    def counts(self) -> np.ndarray:
        """How often each repeated k-gram occurs: int64 (n_kgrams,)."""
        return np.diff(self.start)


def canonical_order(documents: Sequence[np.ndarray]) -> np.ndarray:
    """Return the order of the documents, int arrays, by what they hold, int64 (n,): the order given has no say."""
    keys = [document.astype(">u4").tobytes() for document in documents]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def concatenate(documents: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the words of the documents, int32 (n_words,), and their offsets, int64 (n_documents + 1,)."""
    offsets = np.zeros(len(documents) + 1, dtype=np.int64)
    np.cumsum([len(document) for document in documents], out=offsets[1:])
    return np.concatenate([np.zeros(0, dtype=np.int32), *documents]).astype(np.int32, copy=False), offsets


def check_size(n_words: int, max_length: int) -> None:
    """Raise ValueError when there are more places for k-grams than int32 can number, before memory is asked for."""
    if n_words * max_length > LARGEST:
        raise ValueError(
            f"at most {LARGEST:,} k-grams can be indexed: got {n_words * max_length:,} ({n_words:,} words times "
            f"max_length {max_length}); lower max_length or take fewer documents"
        )


def build_index(words: np.ndarray, offsets: np.ndarray, max_length: int) -> KgramIndex:
    """Return an index of the k-grams of 1 to `max_length` words; words are numbers from 0. Uses both cores.

    words, offsets: as in `KgramIndex`, (n_words,), (n_documents + 1,). Raises ValueError when the corpus has more
    places for k-grams than int32 can number.
    """
    check_size(len(words), max_length)
    n_words = len(words)
    room = np.empty(n_words, dtype=np.uint8)
    _fill_room(offsets, max_length, room)
    kgram = np.empty((n_words, max_length), dtype=np.int32)
    same, previous = np.empty(n_words, dtype=np.int32), np.empty(n_words, dtype=np.int32)
    tally = np.empty(n_words, dtype=np.int32)
    first, lengths, counts = [], [], []
    numbered = 0
    for t in range(1, max_length + 1):
        if t == 1:
            _first_equal_words(words, int(words.max(initial=-1)) + 1, same)
        else:
            _first_equal_pairs(previous, room, t, same)
        n_new = _number(same, room, t, tally, previous)
        _write_level(previous, numbered, kgram[:, t - 1])
        lengths.append(np.full(n_new, t, dtype=np.uint8))
        first.append(tally[:n_new].copy())
        counts.append(_count(previous, n_new))
        numbered += n_new
    start = np.concatenate([[0], *counts]).cumsum()
    where = np.empty(start[-1], dtype=np.int32)
    levels = np.cumsum([0, *map(len, counts)])
    in_parallel(
        _fill_places,
        [(kgram[:, t], start[levels[t] : levels[t + 1]], levels[t], where) for t in range(max_length)],
    )
    return KgramIndex(
        words, offsets, room, kgram, np.concatenate(lengths), np.concatenate(first), start, where
    )


@kernel
def _fill_room(offsets: np.ndarray, max_length: int, room: np.ndarray) -> None:
    for d in range(len(offsets) - 1):
        for i in range(offsets[d], offsets[d + 1]):
            room[i] = min(max_length, offsets[d + 1] - i)


@kernel
def _first_equal_words(words: np.ndarray, n_terms: int, same: np.ndarray) -> None:
    seen = np.full(n_terms, -1, dtype=np.int32)
    for i in range(len(words)):
        if seen[words[i]] < 0:
            seen[words[i]] = i
        same[i] = seen[words[i]]


def _first_equal_pairs(previous: np.ndarray, room: np.ndarray, t: int, same: np.ndarray) -> None:
    """same[i] = the first place whose k-gram of t words equals the one at i, or -1 where it cannot be repeated."""
    n_parts = 1 << (n_cores() - 1).bit_length()
    in_parallel(_first_equal_share, [(previous, room, t, part, n_parts, same) for part in range(n_parts)])


@kernel
def _first_equal_share(
    previous: np.ndarray, room: np.ndarray, t: int, part: int, n_parts: int, same: np.ndarray
) -> None:
    """Do the pairs whose hash falls to this part, by open addressing; the table holds first places."""
    n_words = len(previous)
    capacity, used = 1 << 12, 0
    table = np.full(capacity, -1, dtype=np.int32)
    for i in range(n_words):
        if room[i] < t or previous[i] < 0 or previous[i + 1] < 0:
            if part == 0:
                same[i] = -1
            continue
        mixed = _mix(previous[i], previous[i + 1])
        if (mixed & np.uint64(n_parts - 1)) != part:
            continue
        slot = np.int64(mixed >> np.uint64(24)) & (capacity - 1)
        while True:
            j = table[slot]
            if j < 0:
                table[slot] = i
                same[i] = i
                used += 1
                break
            if previous[j] == previous[i] and previous[j + 1] == previous[i + 1]:
                same[i] = j
                break
            slot = (slot + 1) & (capacity - 1)
        if 2 * used > capacity:
            capacity *= 4
            table = _rehash(table, capacity, previous)


@kernel
def _rehash(table: np.ndarray, capacity: int, previous: np.ndarray) -> np.ndarray:
    larger = np.full(capacity, -1, dtype=np.int32)
    for j in table:
        if j >= 0:
            slot = np.int64(_mix(previous[j], previous[j + 1]) >> np.uint64(24)) & (capacity - 1)
            while larger[slot] >= 0:
                slot = (slot + 1) & (capacity - 1)
            larger[slot] = j
    return larger


@kernel
def _mix(a: int, b: int) -> np.uint64:
    """Return 64 well-mixed bits of a pair of numbers below 2**31 (the finaliser of SplitMix64)."""
    x = (np.uint64(a) << np.uint64(32)) | np.uint64(b)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def _number(same: np.ndarray, room: np.ndarray, t: int, tally: np.ndarray, number: np.ndarray) -> int:
    """Number the repeated k-grams of this level by first place; `tally` ends as these places."""
    tally[:] = 0
    for i in range(len(same)):
        if same[i] >= 0:
            tally[same[i]] += 1
    n_new = 0
    for i in range(len(same)):
        j = same[i]
        if j < 0:
            number[i] = ONCE if room[i] >= t else OUTSIDE
        elif j < i:
            number[i] = number[j]
        elif tally[i] > 1:
            number[i] = n_new
            n_new += 1
        else:
            number[i] = ONCE
    found = 0
    for i in range(len(same)):  # a place is read before it is overwritten, since found <= i
        if same[i] == i and number[i] == found:
            tally[found] = i
            found += 1
    return n_new


@kernel
def _write_level(number: np.ndarray, base: int, column: np.ndarray) -> None:
    for i in range(len(number)):
        column[i] = number[i] + base if number[i] >= 0 else number[i]


@kernel
def _count(number: np.ndarray, n_new: int) -> np.ndarray:
    counts = np.zeros(n_new, dtype=np.int64)
    for i in range(len(number)):
        if number[i] >= 0:
            counts[number[i]] += 1
    return counts


@kernel
def _fill_places(column: np.ndarray, start: np.ndarray, base: int, where: np.ndarray) -> None:
    cursor = start.copy()
    for i in range(len(column)):
        if column[i] >= 0:
            where[cursor[column[i] - base]] = i
            cursor[column[i] - base] += 1
