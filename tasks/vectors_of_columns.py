"""Tokens, vocabulary and counts of stored texts, block by block: as `tasks.tokens.vectorize`, for very many documents.

Texts come as blocks of Arrow's strings and are read twice over, as it were: the first pass turns them into numbers of
tokens, which are kept packed in two bytes each, and learns the vocabulary; the second gives ids and counts, a block
at a time, to be written where they belong. So neither texts nor counts are ever in memory together. Threads take blocks
as these come, each with a vocabulary of its own; since terms are sorted in the end, no number depends on who read what,
and the result is that of `tasks.tokens.vectorize` to the bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numba import njit
from numba.cpython.unsafe.numbers import trailing_zeros

from textbench.tasks import ngrams
from textbench.tasks.ngrams_of_columns import NGrams, learn_ngrams, next_level
from textbench.tasks.token_bytes import Characters, Vocabulary
from textbench.tasks.tokens import TokenRule, kept_terms, numbered

if TYPE_CHECKING:
    import pyarrow

Given = TypeVar("Given")
Made = TypeVar("Made")
Tool = TypeVar("Tool")

WIDE = 2**16 - 1  # where a number is packed: it is this one or larger, and follows whole
ONE, SIX, SIXTEEN, LAST = (np.uint64(n) for n in (1, 6, 16, 63))


class Block(NamedTuple):
    """Consecutive documents as numbers of a reader's vocabulary.

    packed: uint16 (n,), the numbers in reading order; one of WIDE or more is WIDE and then its lower and its upper 16
    bits. offsets: int64 (n_documents + 1,), where documents begin, in numbers.
    """

    packed: np.ndarray
    offsets: np.ndarray
    reader: int


class CountedBlock(NamedTuple):
    """Consecutive documents as terms.

    ids: int32 (n_tokens,) in reading order; lengths: int64 (n_documents,), how many of these each document has.
    indices, data: int32 (n_entries,), each document's different terms, rising, and how often it has each;
    sizes: int64 (n_documents,), how many of these.
    """

    ids: np.ndarray
    lengths: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    sizes: np.ndarray


class Tally(NamedTuple):
    """What a thread counts the columns of one document in, all zero before and after; there are `n_columns`.

    often: int32 (n_columns,). columns: uint64, a bit for each column; words: one for each number of `columns` that has
    bits; groups: the same of `words`. So what occurs is found in rising order without a look at all that does not.
    """

    often: np.ndarray
    columns: np.ndarray
    words: np.ndarray
    groups: np.ndarray

    @classmethod
    def of(cls, n_columns: int) -> Tally:
        """Return one for so many columns."""
        bits = (np.zeros(-(-n_columns // 64**level), dtype=np.uint64) for level in (1, 2, 3))
        return cls(np.zeros(n_columns, dtype=np.int32), *bits)


@dataclass(frozen=True, eq=False)
class LearnedBlocks:
    """A vocabulary (`terms`), and both parts that it was found in, to be counted; `n_threads` do so."""

    terms: list[str]
    n_threads: int
    _parts: dict[str, list[Block]]
    _of_token: list[np.ndarray]
    _ngrams: list[NGrams]

    def n_entries(self, part: str) -> int:
        """Return what the entries of the counts of the "train" or "test" documents are at most, without counting."""
        return (1 + len(self._ngrams)) * sum(int(block.offsets[-1]) for block in self._parts[part])

    def counted(self, part: str) -> Iterator[CountedBlock]:
        """Yield the documents of a part in order, once; what is yielded is used up."""
        blocks = self._parts.pop(part)
        blocks.reverse()
        given = (blocks.pop() for _ in range(len(blocks)))
        tallies = [Tally.of(len(self.terms)) for _ in range(self.n_threads)]
        with ThreadPoolExecutor(self.n_threads) as pool:
            yield from each_with(pool, tallies, self._count, given)

    def _count(self, tally: Tally, block: Block) -> CountedBlock:
        ids, lengths = terms_of(block, self._of_token)
        levels = np.empty((1 + len(self._ngrams), len(ids)), dtype=np.int32)
        levels[0], before, first = ids, ids.astype(np.int64) if self._ngrams else ids, 0
        n_terms = len(self.terms) - sum(len(table.codes) for table in self._ngrams)
        for level, table in enumerate(self._ngrams, 1):
            before = table.look_up(next_level(before, ids, lengths, n_terms))
            first += n_terms if level == 1 else len(self._ngrams[level - 2].codes)
            levels[level] = np.where(before >= 0, before + first, -1)
        return CountedBlock(ids, lengths, *count_columns(levels, lengths, tally))


def learn_blocks(
    train: Iterable[pyarrow.Array],
    test: Iterable[pyarrow.Array],
    rule: TokenRule,
    known: Characters,
    *,
    transductive: bool = False,
    n_threads: int = 1,
) -> LearnedBlocks:
    """Return what `tasks.tokens.vectorize` does of the texts in the blocks; known: `token_bytes.characters(rule)`.

    Raises InputError when no term is left.
    """
    with ThreadPoolExecutor(n_threads) as pool:
        vocabularies = [Vocabulary(rule, known) for _ in range(n_threads)]
        parts = {
            part: list(each_with(pool, list(enumerate(vocabularies)), _read, filter(len, blocks)))
            for part, blocks in (("train", train), ("test", test))
        }
        seen, numbers = numbered([vocabulary.tokens() for vocabulary in vocabularies], rule)
        del vocabularies
        learned_from = parts["train"] + parts["test"] if transductive else parts["train"]
        n_documents = sum(len(block.offsets) - 1 for block in learned_from)
        found = [np.zeros((len(seen) + 1, 2), dtype=np.int64) for _ in range(n_threads)]
        for _ in each_with(
            pool, found, lambda df, block: _add_documents(*terms_of(block, numbers), df), learned_from
        ):
            pass
        df = np.sum([one[:-1, 0] for one in found], axis=0)
        terms, final = kept_terms(seen, df, n_documents, rule)
        del seen, found
        # The number -1 reads the last place: no term.
        of_token = [np.append(final, np.int32(-1))[number] for number in numbers]
        tables: list[NGrams] = []
        for _ in range(2, rule.max_n + 1):
            given = (terms_of(block, of_token) for block in learned_from)
            tables.append(
                learn_ngrams(pool, given, len(terms), tables, rule.min_df, rule.max_df * n_documents)
            )
        names = ngrams.names(terms, [table.codes for table in tables])
    return LearnedBlocks(terms + names, n_threads, parts, of_token, tables)


def each_with(
    pool: ThreadPoolExecutor,
    tools: Sequence[Tool],
    make: Callable[[Tool, Given], Made],
    given: Iterable[Given],
) -> Iterator[Made]:
    """Yield what is made of each, in order, only some of them at a time, each with a tool that is free."""
    free: SimpleQueue[Tool] = SimpleQueue()
    for tool in tools:
        free.put(tool)

    def made(one: Given) -> Made:
        tool = free.get()
        try:
            return make(tool, one)
        finally:
            free.put(tool)

    waiting: deque = deque()
    for one in given:
        waiting.append(pool.submit(made, one))
        if len(waiting) > 2 * len(tools):
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def terms_of(block: Block, of_token: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return a block's known terms in reading order, int32 (n_tokens,), and how many each document has, int64."""
    ids, lengths = (
        np.empty(block.offsets[-1], dtype=np.int32),
        np.zeros(len(block.offsets) - 1, dtype=np.int64),
    )
    n = _unpack(block.packed, block.offsets, of_token[block.reader], ids, lengths)
    return ids[:n], lengths


def _read(reader: tuple[int, Vocabulary], texts: pyarrow.Array) -> Block:
    ids, offsets = reader[1].read(texts)
    packed = np.empty(len(ids) + 2 * np.count_nonzero(ids >= WIDE), dtype=np.uint16)
    _pack(ids, packed)
    return Block(packed, offsets, reader[0])


@njit(cache=True, nogil=True)
def _pack(ids, packed):  # type: ignore[no-untyped-def]
    at = np.uint64(0)
    for number in ids:
        packed[at] = min(number, WIDE)
        if number >= WIDE:
            packed[at + ONE], packed[at + ONE + ONE] = number & WIDE, number >> 16
            at += ONE + ONE
        at += ONE


@njit(cache=True, nogil=True)
def _unpack(packed, offsets, of_token, ids, lengths):  # type: ignore[no-untyped-def]
    """Write the terms of the numbers to ids, without those that have none; return how many."""
    n = at = np.uint64(0)
    for d in range(len(lengths)):
        begun = n
        for _ in range(offsets[d], offsets[d + 1]):
            number = np.uint64(packed[at])
            if number == WIDE:
                number = np.uint64(packed[at + ONE]) | (np.uint64(packed[at + ONE + ONE]) << SIXTEEN)
                at += ONE + ONE
            at += ONE
            term = of_token[number]
            if term >= 0:
                ids[n] = term
                n += ONE
        lengths[d] = n - begun
    return n


@njit(cache=True, nogil=True)
def _add_documents(ids, lengths, found):  # type: ignore[no-untyped-def]
    """Add to found[term, 0] the documents that have it.

    found[term, 1] is the last of these, by the number that found[-1, 0] counts through all blocks.
    """
    start = 0
    for length in lengths:
        found[-1, 0] += 1
        document = found[-1, 0]
        for i in range(start, start + length):
            if found[ids[i], 1] != document:
                found[ids[i], 1] = document
                found[ids[i], 0] += 1
        start += length


@njit(cache=True, nogil=True)
def count_columns(levels, lengths, tally):  # type: ignore[no-untyped-def]
    """Return each document's different columns, rising, how often it has each, and how many they are.

    levels: int32 (n_levels, n_tokens), the columns of its terms, then of its n-grams, -1 for none. tally: a `Tally`.
    """
    often, columns, words, groups = tally
    room = levels.size
    indices, data = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
    sizes = np.zeros(len(lengths), dtype=np.int64)
    n, start = np.uint64(0), 0
    for d in range(len(lengths)):
        begun = n
        for level in range(len(levels)):
            for i in range(start, start + lengths[d]):
                if levels[level, i] >= 0:
                    column = np.uint64(levels[level, i])
                    often[column] += 1
                    word = column >> SIX
                    columns[word] |= ONE << (column & LAST)
                    words[word >> SIX] |= ONE << (word & LAST)
                    groups[word >> SIX >> SIX] |= ONE << ((word >> SIX) & LAST)
        start += lengths[d]
        for k in range(len(groups)):
            n = _take_group(np.uint64(k), often, columns, words, groups, indices, data, n)
        sizes[d] = n - begun
    return indices[:n], data[:n], sizes


@njit(cache=True, nogil=True)
def _take_group(k, often, columns, words, groups, indices, data, n):  # type: ignore[no-untyped-def]
    """Move a group's columns and how often each occurs to indices and data, from n on; return where they end."""
    group, groups[k] = groups[k], 0
    while group:
        j = (k << SIX) | trailing_zeros(group)
        group &= group - ONE
        bits, words[j] = words[j], 0
        while bits:
            i = (j << SIX) | trailing_zeros(bits)
            bits &= bits - ONE
            word, columns[i] = columns[i], 0
            while word:
                column = (i << SIX) | trailing_zeros(word)
                word &= word - ONE
                indices[n], data[n] = column, often[column]
                often[column] = 0
                n += ONE
    return n
