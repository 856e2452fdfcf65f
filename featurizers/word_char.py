"""Words and characters: TF-IDF of word n-grams beside that of character n-grams, both of raw texts.

Source: C. Coltekin and T. Rama, "Tubingen-Oslo at SemEval-2018 task 2: SVMs perform better than RNNs in emoji
prediction", SemEval 2018, section 3.1 (both kinds in one vector, for a linear SVM).
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers import _characters
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers._texts import checked_texts

INPUT = "texts"
ACCEPTS = {"max_words": "[1, inf)", "max_characters": "[1, inf)", "min_df": "[1, inf)"}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "max_words": IntDistribution(1, 3),
    "max_characters": IntDistribution(3, 6),
    "lowercase": CategoricalDistribution([True, False]),
}
WORD = r"\w+|[^\w\s]+"  # runs of punctuation are words too


class WordsAndCharacters(LearnedArrays, TransformerMixin, BaseEstimator):
    """Words and characters: TF-IDF (sublinear) of 1 to `max_words` words and of 1 to `max_characters` characters.

    Neighbouring ones: character n-grams lie within what stands between blanks, with a blank at either end, and runs of
    punctuation are words. N-grams of fewer than `min_df` training documents are left out. `lowercase`: whether texts
    are. Each kind is of unit length by itself, then both together.

    X: a list of strings. Features: sparse csr float32, (n_documents, n_grams), words first; a text without a known
    n-gram is zero. `words_`, `characters_`: the n-grams, sorted; `word_idf_`, `character_idf_`: theirs, float64. Raises
    ValueError on parameters outside their range, on what is no list of strings, and in `fit` where no n-gram is left.

    Source: Coltekin and Rama (2018), section 3.1.
    """

    learned = ("words_", "word_idf_", "characters_", "character_idf_")

    def __init__(
        self, *, max_words: int = 2, max_characters: int = 5, min_df: int = 2, lowercase: bool = True
    ) -> None:
        self.max_words = max_words
        self.max_characters = max_characters
        self.min_df = min_df
        self.lowercase = lowercase

    def fit(self, X: Sequence[str], y: Any = None) -> Self:
        """Learn n-grams of both kinds and their idf from X, a list of strings."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Sequence[str], y: Any = None) -> sp.csr_matrix:
        """Learn n-grams and their idf from X, and return its weights; texts are cut up once a kind."""
        check_parameters(self, ACCEPTS)
        texts = checked_texts(X)
        words = self._words(min_df=self.min_df)
        of_words = words.fit_transform(texts)
        self.words_, self.word_idf_ = words.get_feature_names_out().tolist(), words.idf_
        self.characters_, counts = _characters.learn(
            texts, (1, self.max_characters), self.min_df, lowercase=self.lowercase
        )
        weigher = _characters.weigher().fit(counts)
        self.character_idf_ = weigher.idf_
        return _beside([of_words, weigher.transform(counts)])

    def transform(self, X: Sequence[str]) -> sp.csr_matrix:
        """Return the weights: csr float32, (n_documents, n_grams)."""
        check_is_fitted(self)
        texts = checked_texts(X)
        words = self._words(vocabulary=self.words_)
        words.idf_ = self.word_idf_
        counts = _characters.count(
            texts, self.characters_, (1, self.max_characters), lowercase=self.lowercase
        )
        return _beside([words.transform(texts), _characters.weigher(self.character_idf_).transform(counts)])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the n-grams, with the kind before each."""
        check_is_fitted(self)
        kinds = {"word": self.words_, "characters": self.characters_}
        return np.array([f"{kind}: {gram}" for kind, grams in kinds.items() for gram in grams], dtype=object)

    def _words(self, **params: Any) -> TfidfVectorizer:
        lengths = (1, self.max_words)
        return TfidfVectorizer(
            token_pattern=WORD, ngram_range=lengths, lowercase=self.lowercase, sublinear_tf=True, **params
        )


def _beside(blocks: list[sp.csr_matrix]) -> sp.csr_matrix:
    """Return blocks whose rows are of unit length side by side, rows of unit length again."""
    joined = sp.hstack(blocks, format="csr")
    lengths = np.sqrt(joined.multiply(joined).sum(axis=1))
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return sp.csr_matrix(joined.multiply(scale), dtype=np.float32)


def build(**params: Any) -> WordsAndCharacters:
    """Return the unfitted transformer with these parameters."""
    return WordsAndCharacters(**params)
