"""All k-grams (bag of 1- to 5-grams): how often each sequence of words of the training documents occurs.

Source: H. Paskov, R. West, J. Mitchell and T. Hastie, "Compressive feature learning", NIPS 2013, section 5 ("all
5-grams").
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._compressive.index import ONCE, KgramIndex, build_index
from textbench.featurizers._compressive.tokens import NOTHING, index_of, read_documents
from textbench.featurizers._kernels import in_parallel, kernel, shares
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters

INPUT = "tokens"
PAPER = "compressive-features-2013"
ACCEPTS = {"max_length": "[1, 255]"}
SEARCH_SPACE: dict[str, BaseDistribution] = {}
NEW = -1  # a k-gram that no training document has


class AllKGrams(LearnedArrays, TransformerMixin, BaseEstimator):
    """All k-grams: x_s = how often the k-gram s occurs in the document, for every s of 1 to `max_length` words.

    There are tens of millions of columns, so none is spelt out: a k-gram is known by the place it first occurs at in
    the training text, which is kept, and new documents are indexed together with that text. Columns are sorted by
    length, then by that place.

    X: a list of documents, each an int array of term numbers from 0, or a list of strings. Features: sparse csr
    float32, (n_documents, n_kgrams). `words_` int32 and `offsets_` int64 (n_documents + 1,): the training text;
    `first_` int32 (n_kgrams,), where each k-gram begins in it; `n_of_length_` int64 (max_length,), how many there are
    of each length. Raises ValueError on documents that are none and on more than 2**31 - 1 places for k-grams.

    Source: Paskov, West, Mitchell and Hastie (2013), section 5.
    """

    # The training text stays: k-grams are places in it.
    learned = ("words_", "offsets_", "first_", "n_of_length_", "terms_")

    def __init__(self, *, max_length: int = 5) -> None:
        self.max_length = max_length

    def fit(self, X: Sequence[Any], y: Any = None) -> Self:
        """Find the k-grams of X, a list of documents."""
        self._learn(X)
        return self

    def fit_transform(self, X: Sequence[Any], y: Any = None) -> sp.csr_matrix:
        """Find the k-grams of X, a list of documents, and return their counts."""
        return self._count(self._learn(X), 0)

    def transform(self, X: Sequence[Any]) -> sp.csr_matrix:
        """Count the known k-grams: csr float32, (n_documents, n_kgrams)."""
        check_is_fitted(self)
        documents, _ = read_documents(X, self.max_length, self.terms_)
        lengths = np.array([len(document) for document in documents], dtype=np.int64)
        words = np.concatenate([self.words_, *documents])
        offsets = np.concatenate([self.offsets_, self.offsets_[-1] + np.cumsum(lengths)])
        return self._count(build_index(words, offsets, self.max_length), len(self.offsets_) - 1)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Return the k-grams, words joined by spaces. There may be millions; input_features: the terms' names."""
        check_is_fitted(self)
        terms = self.terms_ if input_features is None else input_features
        words = [str(word) if terms is None else terms[word] for word in self.words_.tolist()]
        lengths = np.repeat(np.arange(1, self.max_length + 1), self.n_of_length_).tolist()
        places = zip(self.first_.tolist(), lengths, strict=True)
        return np.array([" ".join(words[i : i + t]) for i, t in places] or [NOTHING], dtype=object)

    def _learn(self, X: Sequence[Any]) -> KgramIndex:
        check_parameters(self, ACCEPTS)
        documents, self.terms_ = read_documents(X, self.max_length)
        index = index_of(documents, self.max_length)
        self.words_, self.offsets_ = index.words, index.offsets
        first = []
        for t in range(self.max_length):
            places = np.append(np.flatnonzero(index.kgram[:, t] == ONCE), index.first[index.lengths == t + 1])
            first.append(np.sort(places).astype(np.int32))
        self.first_ = np.concatenate(first)
        self.n_of_length_ = np.array([len(places) for places in first], dtype=np.int64)
        return index

    def _count(self, index: KgramIndex, first_document: int) -> sp.csr_matrix:
        """Count in the documents from this one on; those before it are the training text."""
        n_known, begin = len(self.words_), int(index.offsets[first_document])
        columns = np.empty((len(index.words) - begin, self.max_length), dtype=np.int32)
        base = 0
        column_at = np.empty(n_known, dtype=np.int32)
        for t, n_columns in enumerate(self.n_of_length_.tolist()):
            column_at[:] = NEW
            column_at[self.first_[base : base + n_columns]] = np.arange(
                base, base + n_columns, dtype=np.int32
            )
            _columns(index.kgram[:, t], index.first, begin, column_at, columns[:, t])
            base += n_columns
        offsets = index.offsets[first_document:] - begin
        known = np.concatenate([[0], np.cumsum((columns >= 0).sum(axis=1))])[offsets]
        indices = np.empty(known[-1], dtype=np.int32)
        given = (offsets, columns, known, indices)
        in_parallel(_gather, [(*part, *given) for part in shares(offsets)])
        shape = (len(offsets) - 1, max(base, 1))
        counts = sp.csr_matrix((np.ones(len(indices), dtype=np.float32), indices, known), shape=shape)
        counts.sum_duplicates()
        return counts


def build(**params: Any) -> AllKGrams:
    """Return the unfitted transformer with these parameters."""
    return AllKGrams(**params)


@kernel
def _columns(
    number: np.ndarray, first: np.ndarray, begin: int, column_at: np.ndarray, column: np.ndarray
) -> None:
    """The column of the k-gram at each place from `begin` on; NEW where it does not begin in the training text."""
    for i in range(begin, len(number)):
        place = first[number[i]] if number[i] >= 0 else i
        known = number[i] >= ONCE and place < len(column_at)
        column[i - begin] = column_at[place] if known else NEW


@kernel
def _gather(
    begin: int, end: int, offsets: np.ndarray, columns: np.ndarray, known: np.ndarray, indices: np.ndarray
) -> None:
    """Write the columns of the documents begin ... end - 1, sorted within each."""
    for d in range(begin, end):
        cursor = known[d]
        for i in range(offsets[d], offsets[d + 1]):
            for t in range(columns.shape[1]):
                if columns[i, t] >= 0:
                    indices[cursor] = columns[i, t]
                    cursor += 1
        indices[known[d] : cursor].sort()
