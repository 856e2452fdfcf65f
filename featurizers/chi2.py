"""Chi-squared feature selection (CHI): TF-IDF weights of the terms that depend most on the classes.

Source: Y. Yang and J. Pedersen, "A comparative study on feature selection in text categorization", ICML 1997,
section 2.4.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers.counts import validated_counts
from textbench.featurizers.tfidf import TfIdf

INPUT = "counts"
USES_LABELS = True
ACCEPTS = {"n_terms": "[1, inf)", "average": ("max", "mean")}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "n_terms": IntDistribution(100, 30_000, log=True),
    "average": CategoricalDistribution(["max", "mean"]),
}


class ChiSquared(LearnedArrays, TransformerMixin, BaseEstimator):
    """Chi-squared feature selection: the `n_terms` terms of the highest score, by TF-IDF (the defaults of `TfIdf`).

    A term's score combines its chi-squared statistics with each class, or each label, against the rest: by `average`
    their "max", or their "mean", weighted by the classes' shares of the documents. Of equal scores the term of more
    documents goes first. Norms are of the selected terms, as if there were no others.

    X: sparse csr, (n_documents, n_terms), non-negative counts. y: (n_documents,) ints, or an indicator (n_documents,
    n_labels), csr or dense. Features: sparse csr float32, (n_documents, n_selected). `selected_`: columns of X,
    ascending, (n_selected,) ints; `scores_`: theirs, float64; `idf_`: theirs, float64. Raises ValueError on parameters
    outside their range, negative or non-finite counts, labels that are none, and in `transform` on another number of
    terms than in `fit`.

    Source: Yang and Pedersen (1997), section 2.4.
    """

    learned = ("selected_", "scores_", "idf_", "n_features_in_")

    def __init__(self, *, n_terms: int = 2000, average: str = "max") -> None:
        self.n_terms = n_terms
        self.average = average

    def fit(self, X: sp.csr_matrix, y: "np.ndarray | sp.csr_matrix | None" = None) -> Self:
        """Score the terms of X, csr (n_documents, n_terms), by y, classes or an indicator, and keep the best.

        ValueError without a label for each document.
        """
        check_parameters(self, ACCEPTS)
        counts = validated_counts(self, X, reset=True)
        n_documents = counts.shape[0]
        if y is None or y.shape[0] != n_documents:
            given = "none" if y is None else f"those of {y.shape[0]}"
            raise ValueError(f"a label is needed for each of {n_documents} documents: got {given}")
        with_term = np.bincount(counts.indices, minlength=counts.shape[1])
        scores = np.zeros(counts.shape[1])
        for members in _classes(y):
            both = np.bincount(counts[members].indices, minlength=counts.shape[1])
            found = chi_squared(both, with_term, len(members), n_documents)
            is_max, share = self.average == "max", len(members) / n_documents
            scores = np.maximum(scores, found) if is_max else scores + share * found
        best = np.lexsort((-with_term, -scores))[: self.n_terms]
        self.selected_ = np.sort(best)
        self.scores_ = scores[self.selected_]
        self.idf_ = TfIdf().fit(counts[:, self.selected_]).idf_
        return self

    def transform(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Return the weights of the selected terms: csr float32, (n_documents, n_selected)."""
        counts = validated_counts(self, X, reset=False)[:, self.selected_]
        learned = {"idf_": self.idf_, "n_features_in_": len(self.idf_)}
        return TfIdf.from_arrays(TfIdf().get_params() | learned).transform(counts)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Return the selected terms; input_features: the names of all."""
        check_is_fitted(self)
        return _check_feature_names_in(self, input_features)[self.selected_]


def chi_squared(n_both: np.ndarray, n_with_term: np.ndarray, n_of_class: int, n_documents: int) -> np.ndarray:
    """Return the statistic of terms and a class: N (AD - CB)^2 / ((A + C) (B + D) (A + B) (C + D)), float64 (n_terms,).

    Of N documents A are of the class with the term, B of others with it, C of the class and D of others without it. 0
    where term or class tell no two documents apart. n_both: A, (n_terms,); n_with_term: A + B; n_of_class: A + C.
    """
    A = n_both.astype(np.float64)
    B, C = n_with_term - A, n_of_class - A
    D = n_documents - A - B - C
    margins = (A + C) * (B + D) * (A + B) * (C + D)
    return np.divide(n_documents * (A * D - C * B) ** 2, margins, out=np.zeros(len(A)), where=margins > 0)


def _classes(y: "np.ndarray | sp.csr_matrix") -> Iterator[np.ndarray]:
    """Yield the rows of the documents of each class, or label."""
    if y.ndim == 1:
        yield from (np.flatnonzero(y == one) for one in np.unique(y))
        return
    columns = sp.csc_matrix(y, copy=True)
    columns.eliminate_zeros()
    yield from np.split(columns.indices, columns.indptr[1:-1])


def build(**params: Any) -> ChiSquared:
    """Return the unfitted transformer with these parameters."""
    return ChiSquared(**params)
