"""Word n-grams over token ids: which n-grams occur, and how often in each document.

An n-gram is n neighbours in a document's sequence of known terms, so that what a rule leaves out (stop words, terms
under `min_df`, words that training texts lack) does not part its neighbours. Level n names its n-grams by a sorted
table of codes, (number of the (n-1)-gram) * n_terms + (number of the last term), which needs no strings.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def count(ids: np.ndarray, offsets: np.ndarray, n_terms: int) -> "csr_matrix":
    """Count the terms of each document: canonical csr int32 `(n_documents, n_terms)`; inputs untouched."""
    from scipy.sparse import csr_matrix

    ones = np.ones(len(ids), dtype=np.int32)
    counts = csr_matrix((ones, ids.copy(), offsets), shape=(len(offsets) - 1, n_terms))
    counts.sum_duplicates()
    return counts


def learn(
    ids: np.ndarray, offsets: np.ndarray, n_terms: int, max_n: int, min_df: int, max_documents: float
) -> list[np.ndarray]:
    """Return the tables of levels 2 .. max_n: sorted int64 codes of n-grams in min_df .. max_documents documents."""
    tables: list[np.ndarray] = []
    before = ids.astype(np.int64)
    for _ in range(2, max_n + 1):
        codes = _codes(before, ids, offsets, n_terms)
        there = codes >= 0
        table, number = np.unique(codes[there], return_inverse=True)
        kept_before = _kept_before(there)
        df = np.bincount(
            count(number.astype(np.int32), kept_before[offsets], len(table)).indices, minlength=len(table)
        )
        tables.append(table[(df >= min_df) & (df <= max_documents)])
        before = _look_up(codes, tables[-1])
    return tables


def count_all(
    ids: np.ndarray, offsets: np.ndarray, n_terms: int, tables: Sequence[np.ndarray]
) -> "csr_matrix":
    """Count terms and n-grams: canonical csr int32, the terms' columns first, then each level's in table order."""
    from scipy.sparse import hstack

    blocks = [count(ids, offsets, n_terms)]
    for level, table in zip(_levels(ids, offsets, n_terms, tables), tables, strict=True):
        there = level >= 0
        blocks.append(count(level[there].astype(np.int32), _kept_before(there)[offsets], len(table)))
    return hstack(blocks, format="csr", dtype=np.int32) if tables else blocks[0]


def names(terms: Sequence[str], tables: Sequence[np.ndarray]) -> list[str]:
    """Return the n-grams of all levels as text, words joined by spaces, in column order after the terms."""
    found: list[str] = []
    shorter: Sequence[str] = terms
    for table in tables:
        first, last = np.divmod(table, len(terms))
        shorter = [f"{shorter[i]} {terms[j]}" for i, j in zip(first.tolist(), last.tolist(), strict=True)]
        found += shorter
    return found


def tables_of(terms: Sequence[str]) -> tuple[int, list[np.ndarray]]:
    """Return (number of single terms, tables) of a vocabulary made of terms and `names`."""
    levels: dict[int, list[str]] = {}
    for term in terms:
        levels.setdefault(term.count(" "), []).append(term)
    single = {term: i for i, term in enumerate(levels.get(0, ()))}
    tables: list[np.ndarray] = []
    shorter = single
    for n in range(1, len(levels)):
        pairs = (term.rpartition(" ") for term in levels[n])
        codes = [shorter[first] * len(single) + single[last] for first, _, last in pairs]
        tables.append(np.array(codes, dtype=np.int64))
        shorter = {term: i for i, term in enumerate(levels[n])}
    return len(single), tables


def _levels(
    ids: np.ndarray, offsets: np.ndarray, n_terms: int, tables: Sequence[np.ndarray]
) -> Iterator[np.ndarray]:
    before = ids.astype(np.int64)
    for table in tables:
        before = _look_up(_codes(before, ids, offsets, n_terms), table)
        yield before


def _codes(before: np.ndarray, ids: np.ndarray, offsets: np.ndarray, n_terms: int) -> np.ndarray:
    """Return the code of the n-gram that ends at each position, -1 where none does."""
    codes = np.full(len(ids), -1, dtype=np.int64)
    codes[1:] = np.where(before[:-1] >= 0, before[:-1] * n_terms + ids[1:], -1)
    starts = offsets[:-1]
    codes[starts[starts < len(ids)]] = -1
    return codes


def _look_up(codes: np.ndarray, table: np.ndarray) -> np.ndarray:
    if not len(table):
        return np.full(len(codes), -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(table, codes), len(table) - 1)
    return np.where(table[place] == codes, place, -1)


def _kept_before(keep: np.ndarray) -> np.ndarray:
    before = np.zeros(len(keep) + 1, dtype=np.int64)
    np.cumsum(keep, out=before[1:])
    return before
