"""Tokens, vocabulary and counts of stored texts, block by block: as `tasks.tokens.vectorize`, for very many documents.

Texts come as blocks of Arrow's strings: only some blocks are in memory at once, and none but the texts beyond ASCII
become Python's. Threads read blocks as these come, each into a vocabulary of its own; since terms are sorted in the
end, no number depends on who read what, and the result is that of `tasks.tokens.vectorize` to the bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numba import njit

from textbench.tasks import ngrams
from textbench.tasks.token_bytes import Characters, Vocabulary
from textbench.tasks.tokens import TokenRule, Vectors, kept_terms, numbered, tables_of_ngrams

if TYPE_CHECKING:
    import pyarrow
    from scipy.sparse import csr_matrix

Given = TypeVar("Given")
Made = TypeVar("Made")


class _Block(NamedTuple):
    """Consecutive documents: ids int32 (n_tokens,) in reading order, numbers of a reader's vocabulary.

    offsets: int64 (n_documents + 1,), where documents begin in them.
    """

    ids: np.ndarray
    offsets: np.ndarray
    reader: int


def vectorize_blocks(
    train: Iterable[pyarrow.Array],
    test: Iterable[pyarrow.Array],
    rule: TokenRule,
    known: Characters,
    *,
    transductive: bool = False,
    n_threads: int = 1,
) -> Vectors:
    """Return what `tasks.tokens.vectorize` does of the texts in the blocks; known: `token_bytes.characters(rule)`.

    Raises InputError when no term is left.
    """
    with ThreadPoolExecutor(n_threads) as pool:
        vocabularies = [Vocabulary(rule, known) for _ in range(n_threads)]
        parts = [_read(pool, vocabularies, blocks) for blocks in (train, test)]
        seen, numbers = numbered([vocabulary.tokens() for vocabulary in vocabularies], rule)
        del vocabularies
        learned_from = parts[0] + parts[1] if transductive else parts[0]
        n_documents = sum(len(block.offsets) - 1 for block in learned_from)
        df = np.zeros(len(seen), dtype=np.int64)
        for some in _each(
            pool,
            lambda block: _document_frequency(*block[:2], numbers[block.reader], len(seen)),
            learned_from,
        ):
            df += some
        terms, final = kept_terms(seen, df, n_documents, rule)
        # The number -1 reads the last place: no term.
        of_token = [np.append(final, np.int32(-1))[number] for number in numbers]
        train_ids, train_offsets = _joined(pool, parts[0], of_token)
        test_ids, test_offsets = _joined(pool, parts[1], of_token)
        tables = tables_of_ngrams(
            (train_ids, train_offsets), (test_ids, test_offsets), terms, n_documents, rule, transductive
        )

        def count(ids: np.ndarray, offsets: np.ndarray) -> csr_matrix:
            if tables:
                return ngrams.count_all(ids, offsets, len(terms), tables)
            return _count(pool, n_threads, ids, offsets, len(terms))

        return Vectors(
            train_ids=train_ids,
            train_offsets=train_offsets,
            test_ids=test_ids,
            test_offsets=test_offsets,
            terms=terms + ngrams.names(terms, tables),
            train_counts=count(train_ids, train_offsets),
            test_counts=count(test_ids, test_offsets),
        )


def _read(
    pool: ThreadPoolExecutor, vocabularies: Sequence[Vocabulary], blocks: Iterable[pyarrow.Array]
) -> list[_Block]:
    """Return the blocks as numbers, in order, each read by the vocabulary that was free."""
    free: SimpleQueue[int] = SimpleQueue()
    for reader in range(len(vocabularies)):
        free.put(reader)

    def read(texts: pyarrow.Array) -> _Block:
        reader = free.get()
        try:
            return _Block(*vocabularies[reader].read(texts), reader)
        finally:
            free.put(reader)

    return list(_each(pool, read, (block for block in blocks if len(block))))


def _each(pool: ThreadPoolExecutor, make: Callable[[Given], Made], given: Iterable[Given]) -> Iterator[Made]:
    """Yield what is made of each, in order, only some of them at a time."""
    waiting: deque = deque()
    for one in given:
        waiting.append(pool.submit(make, one))
        if len(waiting) > 2 * pool._max_workers:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _joined(
    pool: ThreadPoolExecutor, blocks: list[_Block], of_token: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return `(ids, offsets)` of all blocks' known terms; the blocks are used up."""
    sizes = list(_each(pool, lambda block: _renumber(*block[:2], of_token[block.reader]), blocks))
    ids = np.empty(sum(sizes), dtype=np.int32)
    offsets = np.zeros(sum(len(block.offsets) - 1 for block in blocks) + 1, dtype=np.int64)
    n = at = 0
    blocks.reverse()
    for size in sizes:
        block = blocks.pop()
        ids[n : n + size] = block.ids[:size]
        n_documents = len(block.offsets) - 1
        offsets[at + 1 : at + 1 + n_documents] = block.offsets[1:] + n
        n, at = n + size, at + n_documents
    return ids, offsets


def _count(
    pool: ThreadPoolExecutor, n_parts: int, ids: np.ndarray, offsets: np.ndarray, n_terms: int
) -> csr_matrix:
    """Count the terms of each document, as `ngrams.count`: canonical csr int32 (n_documents, n_terms)."""
    from scipy.sparse import csr_matrix

    n_documents = len(offsets) - 1
    starts = np.linspace(0, n_documents, n_parts + 1).astype(np.int64).tolist()
    parts = list(pairwise(starts))
    rows = np.zeros(n_documents + 1, dtype=np.int64)
    list(_each(pool, lambda part: _count_different(ids, offsets, *part, n_terms, rows), parts))
    np.cumsum(rows, out=rows)
    indices, data = np.empty(rows[-1], dtype=np.int32), np.empty(rows[-1], dtype=np.int32)
    list(_each(pool, lambda part: _fill(ids, offsets, *part, n_terms, rows, indices, data), parts))
    counts = csr_matrix((data, indices, rows), shape=(n_documents, n_terms), copy=False)
    counts.has_canonical_format = True
    return counts


@njit(cache=True, nogil=True)
def _document_frequency(ids, offsets, number, n_terms):  # type: ignore[no-untyped-def]
    df = np.zeros(n_terms, dtype=np.int64)
    last = np.full(n_terms, -1, dtype=np.int64)
    for d in range(len(offsets) - 1):
        for i in range(offsets[d], offsets[d + 1]):
            term = number[ids[i]]
            if term >= 0 and last[term] != d:
                last[term] = d
                df[term] += 1
    return df


@njit(cache=True, nogil=True)
def _renumber(ids, offsets, of_token):  # type: ignore[no-untyped-def]
    """Put the terms' final numbers in the place of the tokens', without those that have none; return how many."""
    n = 0
    begun = offsets[0]
    for d in range(len(offsets) - 1):
        for i in range(begun, offsets[d + 1]):
            term = of_token[ids[i]]
            if term >= 0:
                ids[n] = term
                n += 1
        begun = offsets[d + 1]
        offsets[d + 1] = n
    return n


@njit(cache=True, nogil=True)
def _count_different(ids, offsets, start, stop, n_terms, rows):  # type: ignore[no-untyped-def]
    """Write to rows[d + 1] how many different terms document d has, of the documents start .. stop - 1."""
    last = np.full(n_terms, -1, dtype=np.int64)
    for d in range(start, stop):
        n = 0
        for i in range(offsets[d], offsets[d + 1]):
            if last[ids[i]] != d:
                last[ids[i]] = d
                n += 1
        rows[d + 1] = n


@njit(cache=True, nogil=True)
def _fill(ids, offsets, start, stop, n_terms, rows, indices, data):  # type: ignore[no-untyped-def]
    """Write each document's different terms, rising, and how often it has each."""
    often = np.zeros(n_terms, dtype=np.int32)
    for d in range(start, stop):
        n = rows[d]
        for i in range(offsets[d], offsets[d + 1]):
            if often[ids[i]] == 0:
                indices[n] = ids[i]
                n += 1
            often[ids[i]] += 1
        indices[rows[d] : n].sort()
        for i in range(rows[d], n):
            data[i] = often[indices[i]]
            often[indices[i]] = 0
