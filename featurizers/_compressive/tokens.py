"""What the methods on k-grams share: documents as they come in, tables of k-grams, counts of those found in documents.

A table of k-grams is int32 (n_entries, max_length), a row a k-gram, filled up with -1, rows in lexicographic order (a
k-gram before those that go on from it).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from textbench.featurizers._compressive.index import ONCE, KgramIndex, build_index, check_size, concatenate

NOTHING = "(no words)"  # name of the one column, all zero, of a corpus without words


def read_documents(
    X: Sequence[Any], max_length: int, terms: list[str] | None = None
) -> tuple[list[np.ndarray], list[str] | None]:
    """Return the documents as int32 arrays and, where words came as strings, the sorted vocabulary.

    X: a sequence of documents, each a sequence of term numbers from 0 or of strings. terms: the vocabulary learnt; a
    string outside it gets the number after the last. Raises ValueError for anything else, and for more places than
    can be indexed.
    """
    if isinstance(X, str) or not isinstance(X, Sequence | np.ndarray):
        raise ValueError(f"documents must be a list of sequences of words: got {type(X).__name__}")
    check_size(sum(map(_length, X)), max_length)
    first = next((document[0] for document in X if len(document)), None)
    if not isinstance(first, str):
        if terms is not None and first is not None:
            raise ValueError(f"words must be strings, as they were in fit: got {first!r}")
        return [_numbers(document) for document in X], terms
    known = sorted({str(word) for document in X for word in document}) if terms is None else terms
    number = {term: i for i, term in enumerate(known)}
    return [
        np.fromiter((number.get(word, len(known)) for word in document), dtype=np.int32, count=len(document))
        for document in X
    ], known


def _length(document: Any) -> int:
    if isinstance(document, str) or not isinstance(document, Sequence | np.ndarray):
        raise ValueError(f"a document must be a sequence of words: got {document!r:.60}")
    return len(document)


def _numbers(document: Any) -> np.ndarray:
    if len(document) == 0:
        return np.zeros(0, dtype=np.int32)
    words = np.asarray(document)
    if words.ndim != 1 or words.dtype.kind not in "iu":
        raise ValueError(f"words must be all strings or all term numbers from 0: got {document!r:.60}")
    if words.min() < 0 or words.max() >= 2**31 - 1:
        wrong = words.min() if words.min() < 0 else words.max()
        raise ValueError(f"term numbers must be from 0 to {2**31 - 2}: got {wrong}")
    return words.astype(np.int32, copy=False)


def table_of(
    words: np.ndarray, places: np.ndarray, lengths: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the table of the k-grams at these places, all different, and each one's row in it.

    words: int32 (n_words,). places, lengths: int (n_kgrams,), where each begins and how many words it has.
    """
    table = np.full((len(places), width), -1, dtype=np.int32)
    for t in range(width):
        longer = lengths > t
        table[longer, t] = words[places[longer] + t]
    order = np.lexsort(table.T[::-1])
    row = np.empty(len(order), dtype=np.int32)
    row[order] = np.arange(len(order), dtype=np.int32)
    return table[order], row


def find_entries(table: np.ndarray, documents: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return where k-grams of the table stand in documents: rows, int32 (n_words, max_length), and offsets.

    Rows are those of the table, ONCE where the k-gram is not in it, OUTSIDE beyond the document. Table and documents
    are indexed together: a k-gram of the table and its equals in the documents share a number.
    """
    lengths = (table >= 0).sum(axis=1)
    words, offsets = concatenate(documents)
    index = build_index(
        np.concatenate([table[table >= 0], words]),
        np.concatenate([[0], np.cumsum(lengths), lengths.sum() + offsets[1:]]),
        table.shape[1],
    )
    own = np.cumsum(lengths) - lengths
    number = index.kgram[own, lengths - 1]
    row = np.full(len(index.lengths), ONCE, dtype=np.int32)
    row[number[number >= 0]] = np.flatnonzero(number >= 0)
    return rows_at(index.kgram[lengths.sum() :], row), offsets


def rows_at(kgram: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Return `kgram` with its numbers replaced by `row[number]`, int32; ONCE and OUTSIDE stay."""
    # Padded so that OUTSIDE and ONCE, as indices, find themselves.
    padded = np.append(row, [-2, -1]).astype(np.int32)
    return padded[kgram]


def count_entries(rows: np.ndarray, offsets: np.ndarray, span: np.ndarray, n_entries: int) -> sp.csr_matrix:
    """Count a cover's pointers by document and entry: csr float32 (n_documents, n_entries), one column at least.

    rows, offsets: what `find_entries` returns; span: uint8 (n_words,), the cover.
    """
    at = np.flatnonzero(span)
    entry = rows[at, span[at] - 1]
    document = np.searchsorted(offsets, at, side="right") - 1
    shape = (len(offsets) - 1, max(n_entries, 1))
    ones = np.ones(np.count_nonzero(entry >= 0), dtype=np.float32)
    return sp.csr_matrix((ones, (document[entry >= 0], entry[entry >= 0])), shape=shape)


def names_of(table: np.ndarray, terms: Sequence[str] | None) -> np.ndarray:
    """Return a name for each k-gram, its words with spaces between; words without a name go by number."""
    names = [" ".join(str(w) if terms is None else terms[w] for w in row if w >= 0) for row in table.tolist()]
    return np.array(names or [NOTHING], dtype=object)


def index_of(documents: Sequence[np.ndarray], max_length: int) -> KgramIndex:
    """Return an index of documents in the order given."""
    return build_index(*concatenate(documents), max_length)
