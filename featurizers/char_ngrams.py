"""Character n-grams: TF-IDF of the letter sequences within words, read from raw texts without a token rule.

Source: P. McNamee and J. Mayfield, "Character n-gram tokenization for European language text retrieval", Information
Retrieval 7, 2004, section 2; W. Cavnar and J. Trenkle, "N-gram-based text categorization", SDAIR 1994, for n-grams of
several lengths.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers import _characters
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers._texts import checked_texts

INPUT = "texts"
ACCEPTS = {"min_n": "[1, inf)", "max_n": "[1, inf)", "min_df": "[1, inf)"}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "min_n": IntDistribution(2, 4),
    "max_n": IntDistribution(4, 6),
    "lowercase": CategoricalDistribution([True, False]),
}


class CharNgrams(LearnedArrays, TransformerMixin, BaseEstimator):
    """Character n-grams: TF-IDF weights (sublinear, rows of unit length) of `min_n` to `max_n` neighbouring characters.

    They lie within words, whatever stands between blanks, with a blank at either end. Those of fewer than `min_df`
    training documents are left out. `lowercase`: whether texts are.

    X: a list of strings. Features: sparse csr float32, (n_documents, n_grams); a text without a known n-gram is zero.
    `terms_`: the n-grams, sorted; `idf_`: theirs, float64. Raises ValueError on parameters outside their range, on what
    is no list of strings, and in `fit` where no n-gram is left.

    Source: McNamee and Mayfield (2004), section 2; Cavnar and Trenkle (1994).
    """

    learned = ("terms_", "idf_")

    def __init__(self, *, min_n: int = 3, max_n: int = 5, min_df: int = 2, lowercase: bool = True) -> None:
        self.min_n = min_n
        self.max_n = max_n
        self.min_df = min_df
        self.lowercase = lowercase

    def fit(self, X: Sequence[str], y: Any = None) -> Self:
        """Learn n-grams and their idf from X, a list of strings."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Sequence[str], y: Any = None) -> sp.csr_matrix:
        """Learn n-grams and their idf from X, and return its weights; texts are cut up once."""
        check_parameters(self, ACCEPTS)
        self.terms_, counts = _characters.learn(
            checked_texts(X), (self.min_n, self.max_n), self.min_df, lowercase=self.lowercase
        )
        weigher = _characters.weigher().fit(counts)
        self.idf_ = weigher.idf_
        return weigher.transform(counts).astype(np.float32)

    def transform(self, X: Sequence[str]) -> sp.csr_matrix:
        """Return the weights: csr float32, (n_documents, n_grams)."""
        check_is_fitted(self)
        counts = _characters.count(
            checked_texts(X), self.terms_, (self.min_n, self.max_n), lowercase=self.lowercase
        )
        return _characters.weigher(self.idf_).transform(counts).astype(np.float32)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the n-grams."""
        check_is_fitted(self)
        return np.array(self.terms_, dtype=object)


def build(**params: Any) -> CharNgrams:
    """Return the unfitted transformer with these parameters."""
    return CharNgrams(**params)
