"""Tokens, vocabulary and counts of stored texts, block by block: as `tasks.tokens.vectorize`, for very many documents.

Texts come as blocks of Arrow's strings and are read twice over, as it were: the first pass turns them into numbers of
tokens, which are kept packed in a byte or two each, and learns the vocabulary; the second gives ids and counts, a block
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

from textbench.tasks import ngrams
from textbench.tasks.ngrams_of_columns import NGrams, learn_ngrams, next_level
from textbench.tasks.token_bytes import Characters, Vocabulary
from textbench.tasks.tokens import TokenRule, kept_terms, numbered

if TYPE_CHECKING:
    import pyarrow

Given = TypeVar("Given")
Made = TypeVar("Made")
Tool = TypeVar("Tool")


class Block(NamedTuple):
    """Consecutive documents as numbers of a reader's vocabulary.

    packed: uint8 (n_bytes,), the numbers in reading order, seven bits a byte, the lowest first; the eighth says that
    the number goes on. offsets: int64 (n_documents + 1,), where documents begin, in numbers.
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
        scratches = [np.zeros(len(self.terms), dtype=np.int32) for _ in range(self.n_threads)]
        with ThreadPoolExecutor(self.n_threads) as pool:
            yield from each_with(pool, scratches, self._count, given)

    def _count(self, often: np.ndarray, block: Block) -> CountedBlock:
        ids, lengths = terms_of(block, self._of_token)
        levels = np.empty((1 + len(self._ngrams), len(ids)), dtype=np.int32)
        levels[0], before, first = ids, ids.astype(np.int64) if self._ngrams else ids, 0
        n_terms = len(self.terms) - sum(len(table.codes) for table in self._ngrams)
        for level, table in enumerate(self._ngrams, 1):
            before = table.look_up(next_level(before, ids, lengths, n_terms))
            first += n_terms if level == 1 else len(self._ngrams[level - 2].codes)
            levels[level] = np.where(before >= 0, before + first, -1)
        return CountedBlock(ids, lengths, *_count(levels, lengths, often))


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
    packed = np.empty(5 * len(ids), dtype=np.uint8)
    return Block(packed[: _pack(ids, packed)].copy(), offsets, reader[0])


@njit(cache=True, nogil=True)
def _pack(ids, packed):  # type: ignore[no-untyped-def]
    """Write each number seven bits a byte; return how many bytes that are."""
    n = 0
    for number in ids:
        while number >= 128:
            packed[n] = (number & 127) | 128
            number >>= 7
            n += 1
        packed[n] = number
        n += 1
    return n


@njit(cache=True, nogil=True)
def _unpack(packed, offsets, of_token, ids, lengths):  # type: ignore[no-untyped-def]
    """Write the terms of the numbers to ids, without those that have none; return how many."""
    n = at = 0
    for d in range(len(lengths)):
        begun = n
        for _ in range(offsets[d], offsets[d + 1]):
            number, shift = np.int64(packed[at] & 127), 0
            while packed[at] >= 128:
                at += 1
                shift += 7
                number |= np.int64(packed[at] & 127) << shift
            at += 1
            term = of_token[number]
            if term >= 0:
                ids[n] = term
                n += 1
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
def _count(levels, lengths, often):  # type: ignore[no-untyped-def]
    """Return each document's different columns, rising, how often it has each, and how many they are.

    levels: int32 (n_levels, n_tokens), the columns of its terms, then of its n-grams, -1 for none. often: all zero.
    """
    room = levels.size
    indices, data = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
    sizes = np.zeros(len(lengths), dtype=np.int64)
    n = start = 0
    for d in range(len(lengths)):
        begun = n
        for level in range(len(levels)):
            for i in range(start, start + lengths[d]):
                column = levels[level, i]
                if column >= 0:
                    if often[column] == 0:
                        indices[n] = column
                        n += 1
                    often[column] += 1
        start += lengths[d]
        indices[begun:n].sort()
        for i in range(begun, n):
            data[i] = often[indices[i]]
            often[indices[i]] = 0
        sizes[d] = n - begun
    return indices[:n], data[:n], sizes
