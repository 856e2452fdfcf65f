"""Find tokens in the bytes of texts: what a token rule's regular expression finds, at the speed of a scan.

A rule whose pattern is in `PATTERNS` finds runs of characters of one class, and maybe single characters of another.
Which characters these are is asked of the regular expression itself, once. A text of ASCII is read as it stands, its
letters lower-cased on the way; any other is read by its code points, after those with a lower case of as many bytes
were given it; where that is more than one letter for another (or is folded), it is lower-cased as a string first. Every
token gets the number of its first occurrence, from an open-addressing table that compares whole tokens.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    import pyarrow

    from textbench.tasks.tokens import TokenRule

# Pattern -> class of the characters whose runs are tokens, the shortest run, class of single characters that are.
PATTERNS: dict[str, tuple[str, int, str | None]] = {
    r"[a-z]+": (r"[a-z]", 1, None),
    r"\w+": (r"\w", 1, None),
    r"\w\w+": (r"\w", 2, None),
    r"(?u)\b\w\w+\b": (r"\w", 2, None),
    r"\w+|[^\w\s]": (r"\w", 1, r"[^\w\s]"),
}
NONE, RUN, SINGLE = 0, 1, 2
PLAIN, BEYOND, CHANGED, AWKWARD = 0, 1, 2, 3  # texts; 3 is no letter's lower case either
ASCII = 128
_LEADS = (0, 0, 0xE0, 0xF0, 0xF8)  # the bits of a first byte that say how many bytes a code point has
FIRST_ROOM = 1 << 13  # tokens that there is room for at first
ONE, TWO, SEVEN, EIGHT, HALF, LOW = (np.uint64(n) for n in (1, 2, 7, 8, 32, 2**32 - 1))
# Of a hash like FNV-1a with 64 bits, in steps of 8 bytes; the factor is Knuth's, the golden ratio.
OFFSET, PRIME = np.uint64(14695981039346656037), np.uint64(0x9E3779B97F4A7C15)


class Characters(NamedTuple):
    """What the kernel needs of a rule.

    kinds: uint8 (n_code_points,), RUN, SINGLE or NONE of each, of an ASCII letter as it is read.
    lower: uint8 (256,), what a byte is read as. runs: uint8 (256,), the same of the ASCII bytes of runs, 0 of others.
    singles: bool (256,), the ASCII bytes that are tokens alone. min_run: the shortest run that is a token, in
    characters. lowered: int32 (n_code_points,), what a code point beyond ASCII is read as, AWKWARD where only a
    string's own methods tell.
    """

    kinds: np.ndarray
    lower: np.ndarray
    runs: np.ndarray
    singles: np.ndarray
    min_run: int
    lowered: np.ndarray


def characters(rule: TokenRule) -> Characters | None:
    """Return what the kernel needs of a rule, None for a rule that it cannot follow."""
    if rule.pattern not in PATTERNS:
        return None
    return _characters(rule.pattern, rule.lowercase, rule.ascii_fold)


@functools.cache
def _characters(pattern: str, lowercase: bool, ascii_fold: bool) -> Characters:
    run, min_run, single = PATTERNS[pattern]
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    kinds = np.full(len(everything), NONE, dtype=np.uint8)
    for kind, of in ((RUN, run), (SINGLE, single)):
        for found in re.finditer(f"{of}+", everything) if of else ():
            kinds[found.start() : found.end()] = kind
    lower = np.arange(256, dtype=np.uint8)
    lowered = np.arange(len(everything), dtype=np.int32)
    if lowercase:
        lower[:ASCII] = [ord(chr(byte).lower()) for byte in range(ASCII)]
        kinds[:ASCII] = kinds[lower[:ASCII]]
        for letter in filter(lambda letter: letter.lower() != letter, everything[ASCII:]):
            lowered[ord(letter)] = _lowered(letter)
    if ascii_fold:
        lowered[ASCII:] = AWKWARD
    is_run, is_single = (
        np.where(np.arange(256) < ASCII, kinds[:256] == kind, False) for kind in (RUN, SINGLE)
    )
    return Characters(kinds, lower, np.where(is_run, lower, 0).astype(np.uint8), is_single, min_run, lowered)


def _lowered(letter: str) -> int:
    """Return the code point of a letter's lower case where that takes its place byte for byte, whatever is around."""
    small = letter.lower()
    is_plain = len(small) == 1 and len(small.encode()) == len(letter.encode()) and letter != "\u03a3"
    return ord(small) if is_plain else AWKWARD


class Vocabulary:
    """Tokens numbered in the order of their first occurrence, and the texts read into them; for one thread."""

    def __init__(self, rule: TokenRule, known: Characters) -> None:
        self._rule = rule
        self._known = known
        self._size = np.zeros(2, dtype=np.int64)  # tokens, bytes in the pool
        self._slots = np.zeros(4 * FIRST_ROOM, dtype=np.uint64)  # two numbers each, half of them free
        self._ends = np.zeros(FIRST_ROOM + 1, dtype=np.int64)
        self._pool = np.zeros(8 * FIRST_ROOM, dtype=np.uint8)

    def tokens(self) -> list[str]:
        """Return the tokens in the order of their numbers."""
        n, n_bytes = self._size.tolist()
        pool, ends = self._pool[:n_bytes].tobytes(), self._ends[: n + 1].tolist()
        return [pool[a:b].decode() for a, b in pairwise(ends)]

    def read(self, texts: pyarrow.Array) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the tokens of texts (strings, none missing) in reading order.

        `ids` int32 (n_tokens,), `offsets` int64 (n_texts + 1,).
        """
        data, bounds, plain = self._prepared(texts)
        ids = np.empty(len(data), dtype=np.int32)
        offsets = np.zeros(len(bounds) + 1, dtype=np.int64)
        known, done = self._known[:5], 0
        while True:
            table = self._slots, self._ends, self._pool, self._size
            done = _read(data, bounds, plain, done, known, table, ids, offsets)
            if done == len(bounds):
                return ids[: offsets[-1]], offsets
            self._grow(int(bounds[done, 1] - bounds[done, 0]))

    def _prepared(self, texts: pyarrow.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the bytes of the texts as the kernel reads them, where each begins and ends, and which are of ASCII.

        uint8 (n_bytes,), int64 (n_texts, 2) and bool (n_texts,).
        """
        data, starts = _bytes_of(texts)
        bounds = np.column_stack([starts[:-1], starts[1:]])
        kinds = _kinds_of(data, bounds, self._known.lowered)
        plain = kinds == PLAIN
        pieces = []
        for d in np.flatnonzero(kinds == AWKWARD).tolist():
            pieces.append(self._normal(bytes(data[bounds[d, 0] : bounds[d, 1]]).decode()))
            plain[d] = pieces[-1].isascii()
        if (kinds > BEYOND).any() or pieces:
            ends = len(data) + np.cumsum([0, *map(len, pieces)])
            data = np.frombuffer(bytearray(b"".join([data.data, *pieces])), dtype=np.uint8)
            _lower_points(data, bounds[kinds == CHANGED], self._known.lowered)
            bounds[kinds == AWKWARD] = np.column_stack([ends[:-1], ends[1:]])
        return data, bounds, plain

    def _normal(self, text: str) -> bytes:
        if self._rule.ascii_fold:
            text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
        return (text.lower() if self._rule.lowercase else text).encode()

    def _grow(self, n_bytes: int) -> None:
        """Make room: twice what there is, and for the text of so many bytes that did not fit."""
        n, n_pool = self._size.tolist()
        if n_pool + n_bytes > len(self._pool):
            self._pool = _longer(self._pool, 2 * len(self._pool) + n_bytes)
        if n + 1 == len(self._ends):
            self._ends = _longer(self._ends, 2 * n + 1)
            old, self._slots = self._slots, np.zeros(2 * len(self._slots), dtype=np.uint64)
            _place(old, self._slots)


def _bytes_of(texts: pyarrow.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of texts, not copied, and where each starts in them."""
    import pyarrow as pa

    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    _, starts, data = texts.buffers()
    place = np.frombuffer(starts, dtype=width)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return np.frombuffer(data or b"", dtype=np.uint8)[place[0] : place[-1]], place - place[0]


def _longer(array: np.ndarray, n: int) -> np.ndarray:
    longer = np.zeros(n, dtype=array.dtype)
    longer[: len(array)] = array
    return longer


@njit(cache=True, nogil=True)
def _kinds_of(data, bounds, lowered):  # type: ignore[no-untyped-def]
    """Return of each text: PLAIN, BEYOND ASCII as it stands, CHANGED by lower-casing that, or AWKWARD to change."""
    kinds = np.zeros(len(bounds), dtype=np.uint8)
    for d in range(len(bounds)):
        every = np.uint8(0)
        for i in range(bounds[d, 0], bounds[d, 1]):
            every |= data[i]
        if every < ASCII:
            continue
        i, kinds[d] = bounds[d, 0], BEYOND
        while i < bounds[d, 1]:
            if data[i] < ASCII:
                i += 1
                continue
            point, width = _code_point(data, i)
            i += width
            if lowered[point] == AWKWARD:
                kinds[d] = AWKWARD
                break
            if lowered[point] != point:
                kinds[d] = CHANGED
    return kinds


@njit(cache=True, nogil=True)
def _lower_points(data, bounds, lowered):  # type: ignore[no-untyped-def]
    """Put the lower case of code points beyond ASCII in their place, in texts where that has as many bytes."""
    for d in range(len(bounds)):
        i = bounds[d, 0]
        while i < bounds[d, 1]:
            if data[i] < ASCII:
                i += 1
                continue
            point, width = _code_point(data, i)
            small = lowered[point]
            if small != point:
                for j in range(width - 1, 0, -1):
                    data[i + j] = 0x80 | (small & 0x3F)
                    small >>= 6
                data[i] = (data[i] & _LEADS[width]) | small
            i += width


@njit(cache=True, nogil=True)
def _place(old, slots):  # type: ignore[no-untyped-def]
    """Put what stands in the old slots into new, empty ones."""
    mask = len(slots) // 2 - 1
    for place in range(0, len(old), 2):
        if old[place + 1]:
            slot = np.int64(old[place] & np.uint64(mask))
            while slots[2 * slot + 1]:
                slot = (slot + 1) & mask
            slots[2 * slot], slots[2 * slot + 1] = old[place], old[place + 1]


@njit(cache=True, nogil=True)
def _read(data, bounds, plain, done, known, table, ids, offsets):  # type: ignore[no-untyped-def]
    """Read the texts from number `done` on; return how many are read, fewer than there are where the table is full."""
    kinds, lower, runs, singles, min_run = known
    slots, ends, pool, size = table
    for d in range(done, len(bounds)):
        i, end, n = np.uint64(bounds[d, 0]), np.uint64(bounds[d, 1]), offsets[d]
        if plain[d]:
            n = _read_plain(data, i, end, lower, runs, singles, min_run, slots, ends, pool, size, ids, n)
        else:
            n = _read_points(data, i, end, kinds, lower, min_run, slots, ends, pool, size, ids, n)
        if n < 0:
            return d
        offsets[d + 1] = n
    return len(bounds)


# Below, places are unsigned, which spares asking whether they count from the end; and a token of ASCII is looked up
# without a call, for which numba would count references to every array: together twice the speed.


@njit(cache=True, nogil=True)
def _read_plain(data, i, end, lower, runs, singles, min_run, slots, ends, pool, size, ids, n):  # type: ignore[no-untyped-def]
    """Write the numbers of the tokens of a text of ASCII to ids[n:]; return where they end, -1 without room."""
    mask = np.uint64(len(slots) // 2 - 1)
    while i < end:
        begun, h, word = i, OFFSET, np.uint64(0)
        while i < end and runs[data[i]]:
            word = (word << EIGHT) | np.uint64(runs[data[i]])
            i += ONE
            if (i - begun) & SEVEN == 0:
                h, word = _mixed(h, word), np.uint64(0)
        if i == begun:
            i += ONE
            if not singles[data[begun]]:
                continue
            word = np.uint64(lower[data[begun]])
        elif i - begun < np.uint64(min_run):
            continue
        h = _mixed(h, word)
        length, slot, token = i - begun, h & mask, -1
        while slots[TWO * slot + ONE]:
            value = slots[TWO * slot + ONE]
            if slots[TWO * slot] == h and value >> HALF == length:
                token = np.int64(value & LOW) - 1
                if length <= SEVEN or _is_same(pool, np.uint64(ends[token]), data, begun, i, lower):
                    break
                token = -1
            slot = (slot + ONE) & mask
        if token < 0:
            token = _number(h, data, begun, i, lower, slots, ends, pool, size)
            if token < 0:
                return -1
        ids[n] = token
        n += 1
    return n


@njit(cache=True, nogil=True)
def _read_points(data, i, end, kinds, lower, min_run, slots, ends, pool, size, ids, n):  # type: ignore[no-untyped-def]
    """As `_read_plain`, of any text, by its code points."""
    while i < end:
        begun, h, word, n_characters, found, width = i, OFFSET, np.uint64(0), 0, NONE, 1
        while i < end and found != SINGLE:
            kind, width = kinds[data[i]], 1
            if data[i] >= ASCII:
                point, width = _code_point(data, i)
                kind = kinds[point]
            if kind == NONE or (found == RUN and kind == SINGLE):
                break
            for _ in range(width):
                word = (word << EIGHT) | np.uint64(lower[data[i]])
                i += ONE
                if (i - begun) & SEVEN == 0:
                    h, word = _mixed(h, word), np.uint64(0)
            found = kind
            n_characters += 1
        if found == NONE:
            i += np.uint64(width)
        elif found == SINGLE or n_characters >= min_run:
            token = _number(_mixed(h, word), data, begun, i, lower, slots, ends, pool, size)
            if token < 0:
                return -1
            ids[n] = token
            n += 1
    return n


@njit(cache=True, nogil=True)
def _mixed(h, word):  # type: ignore[no-untyped-def]
    h = (h ^ word) * PRIME
    return h ^ (h >> HALF)


@njit(cache=True, nogil=True)
def _number(h, data, begun, end, lower, slots, ends, pool, size):  # type: ignore[no-untyped-def]
    """Return the number of a token, the next one if it is new, -1 where there is no room for that.

    A slot holds a token's hash, and its length above its number + 1; 0 is free. No byte of a token is 0 but in the
    token of that byte alone, so that fewer than 8 bytes are told by their hash, which is one to one with them.
    """
    mask, length = np.uint64(len(slots) // 2 - 1), end - begun
    slot = h & mask
    while slots[TWO * slot + ONE]:
        value = slots[TWO * slot + ONE]
        if slots[TWO * slot] == h and value >> HALF == length:
            token = np.int64(value & LOW) - 1
            if length <= SEVEN or _is_same(pool, np.uint64(ends[token]), data, begun, end, lower):
                return token
        slot = (slot + ONE) & mask
    n_known, n_pool, n_bytes = size[0], size[1], np.int64(length)
    if n_known + 1 >= len(ends) or n_pool + n_bytes > len(pool):
        return -1
    slots[TWO * slot], slots[TWO * slot + ONE] = h, (length << HALF) | np.uint64(n_known + 1)
    for j in range(n_bytes):
        pool[n_pool + j] = lower[data[begun + np.uint64(j)]]
    size[0], size[1] = n_known + 1, n_pool + n_bytes
    ends[n_known + 1] = n_pool + n_bytes
    return n_known


@njit(cache=True, nogil=True)
def _is_same(pool, place, data, begun, end, lower):  # type: ignore[no-untyped-def]
    while begun < end:
        if pool[place] != lower[data[begun]]:
            return False
        begun, place = begun + ONE, place + ONE
    return True


@njit(cache=True, nogil=True)
def _code_point(data, i):  # type: ignore[no-untyped-def]
    """Return the code point that begins with a byte beyond ASCII at i, and how many bytes it has."""
    byte, i = data[i], np.uint64(i)
    if byte < 0xE0:
        return ((byte & 0x1F) << 6) | (data[i + ONE] & 0x3F), 2
    if byte < 0xF0:
        return ((byte & 0x0F) << 12) | ((data[i + ONE] & 0x3F) << 6) | (data[i + TWO] & 0x3F), 3
    point = ((byte & 0x07) << 18) | ((data[i + ONE] & 0x3F) << 12) | ((data[i + TWO] & 0x3F) << 6)
    return point | (data[i + TWO + ONE] & 0x3F), 4
