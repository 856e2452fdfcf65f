"""LZ77 phrases (Lempel-Ziv features): the phrases by which a sliding parse of the corpus points back to its past.

Source: J. Ziv and A. Lempel, "A universal algorithm for sequential data compression", IEEE Trans. Inf. Theory 23(3),
1977, as read by H. Paskov, R. West, J. Mitchell and T. Hastie, "Compressive feature learning", NIPS 2013, section 2.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._compressive.tokens import (
    count_entries,
    find_entries,
    index_of,
    names_of,
    read_documents,
    table_of,
)
from textbench.featurizers._kernels import kernel
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters

INPUT = "tokens"
PAPER = "compressive-features-2013"
# The orders with which `fit` reads the classes of its documents.
USES_LABELS = {"order": ("by_class", "by_class_reversed", "alternating")}
ACCEPTS = {
    "max_length": "[1, 255]",
    "order": ("given", "by_class", "by_class_reversed", "random", "alternating"),
}
SEARCH_SPACE: dict[str, BaseDistribution] = {}


class Lz77(LearnedArrays, TransformerMixin, BaseEstimator):
    """LZ77 phrases: counts of the phrases found by parsing the documents one after another.

    At each word the parse takes the longest sequence, of `max_length` words at most and within the document, that
    stands wholly in what has been read before; where there is none, the single word. These sequences, and all single
    words, are the dictionary. It depends on the `order` in which documents are read: "given", "random" (by
    `random_state`), and three that read the classes y of `fit`: "by_class" (classes ascending),
    "by_class_reversed" and "alternating" (a document of each class in turn). Documents, training ones too, are then
    read from left to right by the longest phrase of the dictionary, so that one document always has one set of
    features; a word outside it is passed over.

    X: a list of documents, each an int array of term numbers from 0, or a list of strings. Features: sparse csr
    float32, (n_documents, n_phrases). `table_`: int32 (n_phrases, max_length), sorted, rows filled up with -1. Raises
    ValueError on parameters or documents that are none, and where an order reads classes and there are none.

    Source: Paskov, West, Mitchell and Hastie (2013), sections 2 and 5.
    """

    learned = ("table_", "terms_")

    def __init__(self, *, max_length: int = 5, order: str = "given", random_state: int | None = None) -> None:
        self.max_length = max_length
        self.order = order
        self.random_state = random_state

    def fit(self, X: Sequence[Any], y: Any = None) -> Self:
        """Parse X, a list of documents; y: their classes (n_documents,), for the orders that read them."""
        check_parameters(self, ACCEPTS)
        documents, self.terms_ = read_documents(X, self.max_length)
        index = index_of([documents[d] for d in self._sequence(len(documents), y)], self.max_length)
        places, lengths = _parse(index.kgram, index.room, index.first)
        self.table_, _ = table_of(index.words, places, lengths, self.max_length)
        return self

    def transform(self, X: Sequence[Any]) -> sp.csr_matrix:
        """Read documents by the phrases: csr float32, (n_documents, n_phrases)."""
        check_is_fitted(self)
        documents, _ = read_documents(X, self.max_length, self.terms_)
        rows, offsets = find_entries(self.table_, documents)
        return count_entries(rows, offsets, _read(rows), len(self.table_))

    @property
    def dictionary_(self) -> list[tuple[int, ...]]:
        """The phrases as tuples of term numbers, sorted."""
        return [tuple(word for word in row if word >= 0) for row in self.table_.tolist()]

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Return the phrases, words joined by spaces; input_features: the terms' names, where fit saw numbers."""
        check_is_fitted(self)
        return names_of(self.table_, self.terms_ if input_features is None else input_features)

    def _sequence(self, n_documents: int, y: Any) -> np.ndarray:
        """Return the order in which documents are read."""
        if self.order == "given":
            return np.arange(n_documents)
        if self.order == "random":
            return np.random.default_rng(self.random_state).permutation(n_documents)
        classes = None if y is None else np.asarray(y)
        if classes is None or classes.shape != (n_documents,):
            found = "none" if classes is None else f"an array of shape {classes.shape}"
            raise ValueError(
                f"order {self.order!r} needs a class for each of {n_documents} documents: got {found}"
            )
        by_class = np.argsort(classes, kind="stable")
        if self.order == "alternating":
            ordered = classes[by_class]
            turn = np.arange(n_documents) - np.searchsorted(ordered, ordered)  # the how-manieth of its class
            return by_class[np.argsort(turn, kind="stable")]
        _, rank = np.unique(classes, return_inverse=True)
        return by_class if self.order == "by_class" else np.argsort(-rank, kind="stable")


def build(**params: Any) -> Lz77:
    """Return the unfitted transformer with these parameters."""
    return Lz77(**params)


@kernel
def _parse(kgram: np.ndarray, room: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return first place and length of each phrase of the parse, every single word among them."""
    n_words = len(kgram)
    seen = np.zeros(len(first), dtype=np.bool_)
    places, lengths = np.empty(2 * n_words, dtype=np.int64), np.empty(2 * n_words, dtype=np.int64)
    found = 0
    for i in range(n_words):
        g = kgram[i, 0]
        if g < 0 or first[g] == i:
            if g >= 0:
                seen[g] = True
            places[found], lengths[found] = i, 1
            found += 1
    i = 0
    while i < n_words:
        length = 1
        for t in range(room[i], 1, -1):
            g = kgram[i, t - 1]
            if g >= 0 and first[g] + t <= i:
                length = t
                if not seen[g]:
                    seen[g] = True
                    places[found], lengths[found] = first[g], t
                    found += 1
                break
        i += length
    return places[:found].copy(), lengths[:found].copy()


@kernel
def _read(rows: np.ndarray) -> np.ndarray:
    """Return the cover that takes the longest phrase at every word, `span` uint8 (n_words,)."""
    span = np.zeros(len(rows), dtype=np.uint8)
    i = 0
    while i < len(rows):
        step = 1
        for t in range(rows.shape[1], 0, -1):
            if rows[i, t - 1] >= 0:
                span[i] = step = t
                break
        i += step
    return span
