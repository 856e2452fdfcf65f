"""Find tokens in the bytes of texts: what a token rule's regular expression finds, at the speed of a scan.

A rule whose pattern is in `PATTERNS` finds runs of characters of one class, and maybe single characters of another.
Which characters these are is asked of the regular expression itself, once. A text of ASCII is read as it stands, its
letters lower-cased on the way; any other is lower-cased (or folded) as a string first, for there that is more than one
letter for another, and then read by its code points. Every token gets the number of its first occurrence, from an
open-addressing table that compares whole tokens.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

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
ASCII = 128
FIRST_ROOM = 1 << 13  # tokens that there is room for at first
LOW = 2**32 - 1
# Of the hash FNV-1a with 64 bits; here its steps are of 8 bytes.
OFFSET, PRIME = 14695981039346656037, 1099511628211


@dataclass(frozen=True, eq=False)
class Characters:
    """What the kernel needs of a rule.

    kinds: uint8 (n_code_points,), RUN, SINGLE or NONE of each, of an ASCII letter as it is read.
    lower: uint8 (256,), what a byte is read as. min_run: the shortest run that is a token, in characters.
    """

    kinds: np.ndarray
    lower: np.ndarray
    min_run: int


def characters(rule: TokenRule) -> Characters | None:
    """Return what the kernel needs of a rule, None for a rule that it cannot follow."""
    return _characters(rule.pattern, rule.lowercase) if rule.pattern in PATTERNS else None


@functools.cache
def _characters(pattern: str, lowercase: bool) -> Characters:
    run, min_run, single = PATTERNS[pattern]
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    kinds = np.full(len(everything), NONE, dtype=np.uint8)
    for kind, of in ((RUN, run), (SINGLE, single)):
        for found in re.finditer(f"{of}+", everything) if of else ():
            kinds[found.start() : found.end()] = kind
    lower = np.arange(256, dtype=np.uint8)
    if lowercase:
        lower[:ASCII] = [ord(chr(byte).lower()) for byte in range(ASCII)]
        kinds[:ASCII] = kinds[lower[:ASCII]]
    return Characters(kinds, lower, min_run)


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
        data, starts = self._prepared(texts)
        ids = np.empty(int(starts[-1] - starts[0]), dtype=np.int32)
        offsets = np.zeros(len(starts), dtype=np.int64)
        known, done = self._known, 0
        while True:
            table = self._slots, self._ends, self._pool, self._size
            done = _read(data, starts, done, known.kinds, known.lower, known.min_run, table, ids, offsets)
            if done == len(starts) - 1:
                return ids[: offsets[-1]].copy(), offsets
            self._grow(int(starts[done + 1] - starts[done]))

    def _prepared(self, texts: pyarrow.Array) -> tuple[np.ndarray, np.ndarray]:
        """Return the bytes of the texts and where each starts, int64 (n_texts + 1,), as the kernel reads them."""
        data, starts = _bytes_of(texts)
        plain = _are_ascii(data, starts)
        if plain.all():
            return data, starts
        pieces = [
            bytes(data[a:b]) if is_plain else self._normal(bytes(data[a:b]).decode())
            for a, b, is_plain in zip(starts[:-1].tolist(), starts[1:].tolist(), plain.tolist(), strict=True)
        ]
        starts = np.zeros(len(pieces) + 1, dtype=np.int64)
        np.cumsum([len(piece) for piece in pieces], out=starts[1:])
        return np.frombuffer(b"".join(pieces), dtype=np.uint8), starts

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
    """Return the buffer of texts, not copied, and where each starts in it."""
    import pyarrow as pa

    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    _, starts, data = texts.buffers()
    place = np.frombuffer(starts, dtype=width)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data or b"", dtype=np.uint8), place.astype(np.int64)


def _longer(array: np.ndarray, n: int) -> np.ndarray:
    longer = np.zeros(n, dtype=array.dtype)
    longer[: len(array)] = array
    return longer


@njit(cache=True, nogil=True)
def _are_ascii(data, starts):  # type: ignore[no-untyped-def]
    plain = np.ones(len(starts) - 1, dtype=np.bool_)
    for d in range(len(plain)):
        every = np.uint8(0)
        for i in range(starts[d], starts[d + 1]):
            every |= data[i]
        plain[d] = every < ASCII
    return plain


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
def _read(data, starts, done, kinds, lower, min_run, table, ids, offsets):  # type: ignore[no-untyped-def]
    """Read the texts from number `done` on; return how many are read, fewer than there are where the table is full.

    A slot holds a token's hash, and its length above its number + 1; 0 is free. No byte of a token is 0 but in the
    token of that byte alone, so that fewer than 8 bytes are told by their hash, which is one to one with them.
    """
    slots, ends, pool, size = table
    n_known, n_pool = size[0], size[1]
    mask = len(slots) // 2 - 1
    n = offsets[done]
    for d in range(done, len(starts) - 1):
        i, end = starts[d], starts[d + 1]
        if n_pool + (end - i) > len(pool):
            size[0], size[1] = n_known, n_pool
            return d
        while i < end:
            begun, n_characters, found, width = i, 0, NONE, 1
            h, word = np.uint64(OFFSET), np.uint64(0)
            while i < end and found != SINGLE:
                kind = kinds[data[i]]
                if data[i] >= ASCII:
                    point, width = _code_point(data, i)
                    kind = kinds[point]
                else:
                    width = 1
                if kind == NONE or (found == RUN and kind == SINGLE):
                    break
                for _ in range(width):
                    word = (word << np.uint64(8)) | np.uint64(lower[data[i]])
                    i += 1
                    if (i - begun) & 7 == 0:
                        h, word = (h ^ word) * np.uint64(PRIME), np.uint64(0)
                        h ^= h >> np.uint64(32)
                found = kind
                n_characters += 1
            if found == NONE:
                i += width
                continue
            if found == RUN and n_characters < min_run:
                continue
            h = (h ^ word) * np.uint64(PRIME)
            h ^= h >> np.uint64(32)
            length = i - begun
            slot = np.int64(h & np.uint64(mask))
            token = -1
            while slots[2 * slot + 1]:
                if slots[2 * slot] == h and np.int64(slots[2 * slot + 1] >> np.uint64(32)) == length:
                    token = np.int64(slots[2 * slot + 1] & np.uint64(LOW)) - 1
                    if length < 8 or _is_same(pool, ends[token], data, begun, i, lower):
                        break
                    token = -1
                slot = (slot + 1) & mask
            if token < 0:
                if n_known + 1 >= len(ends):
                    size[0], size[1] = n_known, n_pool
                    return d
                token = n_known
                n_known += 1
                slots[2 * slot] = h
                slots[2 * slot + 1] = (np.uint64(length) << np.uint64(32)) | np.uint64(n_known)
                for j in range(begun, i):
                    pool[n_pool] = lower[data[j]]
                    n_pool += 1
                ends[n_known] = n_pool
            ids[n] = token
            n += 1
        offsets[d + 1] = n
    size[0], size[1] = n_known, n_pool
    return len(starts) - 1


@njit(cache=True, nogil=True)
def _is_same(pool, place, data, begun, end, lower):  # type: ignore[no-untyped-def]
    for j in range(begun, end):
        if pool[place] != lower[data[j]]:
            return False
        place += 1
    return True


@njit(cache=True, nogil=True)
def _code_point(data, i):  # type: ignore[no-untyped-def]
    """Return the code point that begins with a byte beyond ASCII at i, and how many bytes it has."""
    byte = data[i]
    if byte < 0xE0:
        return ((byte & 0x1F) << 6) | (data[i + 1] & 0x3F), 2
    if byte < 0xF0:
        return ((byte & 0x0F) << 12) | ((data[i + 1] & 0x3F) << 6) | (data[i + 2] & 0x3F), 3
    point = ((byte & 0x07) << 18) | ((data[i + 1] & 0x3F) << 12) | ((data[i + 2] & 0x3F) << 6)
    return point | (data[i + 3] & 0x3F), 4
