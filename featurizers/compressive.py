"""Compressive features: counts of the phrases that compress the corpus best (minimum description length).

Source: H. Paskov, R. West, J. Mitchell and T. Hastie, "Compressive feature learning", NIPS 2013, equation (1), solved
as in section 4; `_compressive_admm` has the derivations.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._compressive.cover import FREE, cheapest_cover
from textbench.featurizers._compressive.index import ONCE, KgramIndex, canonical_order
from textbench.featurizers._compressive.solver import CostSolution, solve
from textbench.featurizers._compressive.tokens import (
    count_entries,
    find_entries,
    index_of,
    names_of,
    read_documents,
    rows_at,
    table_of,
)
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers.tfidf import TfIdf

INPUT = "tokens"
PAPER = "compressive-features-2013"
ACCEPTS = {
    "max_length": "[1, 255]",
    "pointer_cost": "[0, inf)",
    "dictionary_cost": ("words", "entries"),
    "max_iter": "[0, inf)",
    "tol": "[0, inf)",
    "weighting": ("counts", "tfidf"),
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "pointer_cost": FloatDistribution(0.01, 5, log=True),
    "weighting": CategoricalDistribution(["counts", "tfidf"]),
}
UNSEARCHED = {"weighting": "counts"}  # what a search under the paper's protocol leaves as the paper had it


class CompressiveKGrams(LearnedArrays, TransformerMixin, BaseEstimator):
    """Compressive features: a dictionary of k-grams and pointers to them that rewrite the corpus at the least cost.

    Minimises pointer_cost * (number of pointers) + sum over k-grams used of c(k-gram), every word of every document
    covered by a pointer (they may overlap), none across documents (equation (1)). `max_length`: the longest k-gram, in
    words. `dictionary_cost`: c, "words" (as many as the k-gram has words) or "entries" (1 each). `max_iter`: iterations
    of ADMM, half at most for the relaxation, the rest for reweighting; 0 is a fast mode without them. `tol`: the
    relaxation ends when an iteration moves the prices of words by less than this share. `weighting` of the features:
    "counts" as in the paper, or "tfidf" (the defaults of `TfIdf`).

    X: a list of documents, each an int array of term numbers from 0, or a list of strings. Features: sparse csr
    float32, (n_documents, n_entries), how many pointers of the document use each entry, weighted. A new document is
    covered optimally with the dictionary as it is (dynamic programming); a word outside it costs its own entry each
    time and is not counted. The order of the documents never matters: they are solved in an order of their own.

    Learned: `table_` int32 (n_entries, max_length), sorted, rows filled up with -1; `usage_` int64 (n_entries,),
    pointers to each; `pointers_` int64 (n_pointers, 3), document, start and length of each (not exported);
    `objective_`, the cost; `lower_bound_`, which no solution can go below; `n_iter_`; `idf_` float64 (n_entries,), ones
    for counts. Raises ValueError on parameters or documents that are none, and where more than 2**31 - 1 k-grams would
    have to be indexed.

    Source: Paskov, West, Mitchell and Hastie (2013), sections 3 and 4.
    """

    # The pointers stay behind: new documents are covered without them.
    learned = ("table_", "usage_", "terms_", "objective_", "lower_bound_", "n_iter_", "idf_")

    def __init__(
        self,
        *,
        max_length: int = 5,
        pointer_cost: float = 0.03,
        dictionary_cost: str = "words",
        max_iter: int = 80,
        tol: float = 1e-4,
        weighting: str = "counts",
    ) -> None:
        self.max_length = max_length
        self.pointer_cost = pointer_cost
        self.dictionary_cost = dictionary_cost
        self.max_iter = max_iter
        self.tol = tol
        self.weighting = weighting

    def fit(self, X: Sequence[Any], y: Any = None) -> Self:
        """Compress X, a list of documents."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Sequence[Any], y: Any = None) -> sp.csr_matrix:
        """Compress X, a list of documents, and return its features."""
        check_parameters(self, ACCEPTS)
        documents, self.terms_ = read_documents(X, self.max_length)
        order = canonical_order(documents)
        index = index_of([documents[d] for d in order], self.max_length)
        return self._weighted(self._learn(index, order, self._solve(index)))

    def transform(self, X: Sequence[Any]) -> sp.csr_matrix:
        """Cover documents with the dictionary: csr float32, (n_documents, n_entries)."""
        check_is_fitted(self)
        documents, _ = read_documents(X, self.max_length, self.terms_)
        rows, offsets = find_entries(self.table_, documents)
        once = np.full(self.max_length, np.inf, dtype=np.float32)
        once[0] = self.pointer_cost + FREE + self._costs()[0]
        return self._weighted(
            count_entries(rows, offsets, self._cover(rows, offsets, once), len(self.table_))
        )

    @property
    def dictionary_(self) -> list[tuple[int, ...]]:
        """The k-grams as tuples of term numbers, sorted."""
        return [tuple(word for word in row if word >= 0) for row in self.table_.tolist()]

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Return the phrases, words joined by spaces; input_features: the terms' names, where fit saw numbers."""
        check_is_fitted(self)
        return names_of(self.table_, self.terms_ if input_features is None else input_features)

    def term_columns(
        self, terms: Sequence[str], words: Sequence[str], n_shown: int
    ) -> list[tuple[str, list[tuple[str, float]]]]:
        """Return what the corpus repeats: most used phrases of several words, longest ones, those with each of `words`.

        terms: the names of the term numbers. Each column is (heading, [(phrase, pointers to it), ...]), `n_shown` long
        at most.
        """
        check_is_fitted(self)
        lengths = (self.table_ >= 0).sum(axis=1)
        several = np.flatnonzero(lengths > 1)
        used = several[np.argsort(-self.usage_[several], kind="stable")]
        columns = [("most used", used), ("longest", used[np.argsort(-lengths[used], kind="stable")])]
        number = {term: i for i, term in enumerate(terms)}
        for word in words:
            columns.append((word, used[(self.table_[used] == number[word]).any(axis=1)]))
        return [
            (
                heading,
                [(self._phrase(entry, terms), float(self.usage_[entry])) for entry in entries[:n_shown]],
            )
            for heading, entries in columns
        ]

    def _phrase(self, entry: int, terms: Sequence[str]) -> str:
        return str(names_of(self.table_[[entry]], terms)[0])

    def _costs(self) -> np.ndarray:
        lengths = np.arange(1.0, self.max_length + 1)
        return lengths if self.dictionary_cost == "words" else np.ones_like(lengths)

    def _solve(self, index: KgramIndex, warm: CostSolution | None = None) -> CostSolution:
        return solve(index, float(self.pointer_cost), self._costs(), int(self.max_iter), self.tol, warm)

    def _cover(self, rows: np.ndarray, offsets: np.ndarray, once: np.ndarray) -> np.ndarray:
        price = np.full(len(self.table_), self.pointer_cost + FREE, dtype=np.float32)
        return cheapest_cover(rows, offsets, price, once)

    def _learn(self, index: KgramIndex, order: np.ndarray, solution: CostSolution) -> sp.csr_matrix:
        """Set what is learned and return the counts of the documents, in the order they were given.

        Documents are covered once more by the dictionary alone, as `transform` does it. An entry that falls out of use
        falls out of the dictionary, and no cover changes by that: the choices that were taken are all still there.
        """
        self.table_, rows = self._tabulate(index, solution.span)
        span = self._cover(rows, index.offsets, np.full(self.max_length, np.inf, dtype=np.float32))
        at = np.flatnonzero(span)
        used, entries = np.unique(rows[at, span[at] - 1], return_inverse=True)
        self.table_ = self.table_[used]
        rows[at, span[at] - 1] = entries
        features = count_entries(rows, index.offsets, span, len(used))
        self.usage_ = np.bincount(entries, minlength=len(used)).astype(np.int64)
        document = np.searchsorted(index.offsets, at, side="right") - 1
        self.pointers_ = np.column_stack([order[document], at - index.offsets[document], span[at]]).astype(
            np.int64
        )
        back = np.argsort(order)
        self.pointers_ = self.pointers_[np.argsort(self.pointers_[:, 0], kind="stable")]
        self.objective_ = float(
            self.pointer_cost * len(at) + self._costs()[(self.table_ >= 0).sum(axis=1) - 1].sum()
        )
        self.lower_bound_, self.n_iter_ = float(solution.lower_bound), solution.n_iter
        self.idf_ = TfIdf().fit(features).idf_ if self.weighting == "tfidf" else np.ones(features.shape[1])
        return features[back]

    def _weighted(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        if self.weighting == "counts":
            return counts
        weighter = TfIdf()
        weighter.idf_, weighter.n_features_in_ = self.idf_, len(self.idf_)
        return weighter.transform(counts)

    def _tabulate(self, index: KgramIndex, span: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the table of the k-grams a cover uses, and the rows of each place's k-grams as `find_entries`."""
        at = np.flatnonzero(span)
        number = index.kgram[at, span[at] - 1]
        repeated = np.unique(number[number >= 0])
        alone = at[number == ONCE]
        places = np.concatenate([index.first[repeated], alone])
        lengths = np.concatenate([index.lengths[repeated], span[alone]])
        table, row = table_of(index.words, places, lengths, self.max_length)
        row_of = np.full(len(index.lengths), ONCE, dtype=np.int32)
        row_of[repeated] = row[: len(repeated)]
        rows = rows_at(index.kgram, row_of)
        rows[alone, span[alone] - 1] = row[len(repeated) :]
        return table, rows


def compression_path(
    X: Sequence[Any], pointer_costs: Sequence[float], **params: Any
) -> list[CompressiveKGrams]:
    """Compress X at each pointer cost: one index, and each solution begins from the one before it.

    Returns a fitted `CompressiveKGrams(pointer_cost=..., **params)` for each, in the order given.
    """
    models = [CompressiveKGrams(pointer_cost=pointer_cost, **params) for pointer_cost in pointer_costs]
    if not models:
        return models
    for model in models:
        check_parameters(model, ACCEPTS)
    documents, terms = read_documents(X, models[0].max_length)
    order = canonical_order(documents)
    index = index_of([documents[d] for d in order], models[0].max_length)
    solution = None
    for model in models:
        solution = model._solve(index, solution)
        model.terms_ = terms
        model._learn(index, order, solution)
    return models


def build(**params: Any) -> CompressiveKGrams:
    """Return the unfitted transformer with these parameters."""
    return CompressiveKGrams(**params)
