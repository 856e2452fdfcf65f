"""Static embeddings: the mean of a text's piece vectors, from a table distilled from a sentence model or given.

Source: model2vec (Minish, 2024) for the table; S. Arora, Y. Liang and T. Ma, "A simple but tough-to-beat baseline for
sentence embeddings", ICLR 2017, algorithm 1, for the weights "sif" (without its removal of a component).
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, CategoricalDistribution
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._encoders.table import source_of, table_of
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers._texts import checked_texts

INPUT = "texts"
NEEDS = ("piece_vectors",)
PRETRAINED = True
ACCEPTS = {"weights": ("mean", "idf", "sif")}
SEARCH_SPACE: dict[str, BaseDistribution] = {"weights": CategoricalDistribution(["mean", "idf", "sif"])}
MINILM = "distil:sentence-transformers/all-MiniLM-L6-v2"
SIF = 1e-3  # the paper's a


def source(model: str = MINILM) -> dict[str, Any]:
    """Return what shapes a model's table, as JSON values. Raises ValueError for one that is not on this machine."""
    return source_of(model)


def table(model: str = MINILM) -> tuple[np.ndarray, str]:
    """Return a model's table, float32 (n_pieces, n_dimensions), and its tokenizer as JSON.

    Raises ValueError for a model that is not on this machine.
    """
    found = table_of(model)
    return found.vectors, found.tokenizer


class StaticVectors(LearnedArrays, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Static embeddings: (sum_w N_w a_w v(w)) / (sum_w N_w a_w) over the pieces w of a text.

    `model`: `distil:` before a sentence model, of which each piece alone was embedded, or a model2vec folder.
    `weights`: a_w is 1 ("mean"), 1 + ln((1 + N) / (1 + n_w)) with N training texts of which n_w have the piece ("idf"),
    or 0.001 / (0.001 + p(w)), p its share of the training texts' pieces ("sif"). Special pieces and unknown ones count
    for nothing.

    X: a list of strings. Features: dense float32, (n_documents, n_dimensions); a text without a piece is a row of
    zeros. `table_`: float32 (n_pieces, n_dimensions); `weights_`: float64 (n_pieces,); `tokenizer_`: JSON. Raises
    ValueError for a model that is not on this machine, unknown weights, and on what is no list of strings.

    Source: model2vec (2024); Arora et al. (2017), algorithm 1.
    """

    learned = ("table_", "weights_", "tokenizer_")

    def __init__(self, *, model: str = MINILM, weights: str = "mean") -> None:
        self.model = model
        self.weights = weights

    def fit(
        self, X: Sequence[str], y: Any = None, *, piece_vectors: "tuple[np.ndarray, str] | None" = None
    ) -> Self:
        """Learn weights; piece_vectors: the model's table (n_pieces, n_dimensions) and tokenizer, if known."""
        check_parameters(self, ACCEPTS)
        texts = checked_texts(X)
        vectors, self.tokenizer_ = piece_vectors or table(self.model)
        self.table_ = np.ascontiguousarray(vectors, dtype=np.float32)
        self.__dict__.pop("_pieces", None)
        counts = self._counts(texts)
        self.weights_ = np.ones(len(self.table_))
        if self.weights == "idf":
            with_piece = np.bincount(counts.indices, minlength=len(self.table_))
            self.weights_ = 1 + np.log((1 + len(texts)) / (1 + with_piece))
        elif self.weights == "sif":
            share = np.asarray(counts.sum(axis=0)).ravel() / max(1, counts.sum())
            self.weights_ = SIF / (SIF + share)
        return self

    def fit_transform(
        self, X: Sequence[str], y: Any = None, *, piece_vectors: "tuple[np.ndarray, str] | None" = None
    ) -> np.ndarray:
        """Return the vectors of X after `fit` with these piece_vectors: dense float32, (n_documents, n_dimensions)."""
        return self.fit(X, y, piece_vectors=piece_vectors).transform(X)

    def transform(self, X: Sequence[str]) -> np.ndarray:
        """Return the vectors: dense float32, (n_documents, n_dimensions)."""
        check_is_fitted(self)
        weighted = self._counts(checked_texts(X)).multiply(self.weights_).tocsr()
        total = np.asarray(weighted.sum(axis=1)).reshape(-1, 1)
        summed = weighted.astype(np.float32) @ self.table_
        return np.ascontiguousarray(summed / np.where(total > 0, total, 1), dtype=np.float32)

    def _counts(self, texts: Sequence[str]) -> sp.csr_matrix:
        """Return how often each text has each piece that has a vector: csr float64 (n_texts, n_pieces)."""
        ids = [
            np.array(one.ids, dtype=np.int64)
            for one in self._pieces.encode_batch(texts, add_special_tokens=False)
        ]
        ends = np.concatenate([[0], np.cumsum([len(one) for one in ids])]).astype(np.int64)
        columns = np.concatenate([*ids, np.zeros(0, dtype=np.int64)])
        known = np.asarray(self.table_.any(axis=1))
        shape = (len(texts), len(self.table_))
        counts = sp.csr_matrix((known[columns].astype(np.float64), columns, ends), shape=shape)
        counts.sum_duplicates()
        counts.eliminate_zeros()
        return counts

    @cached_property
    def _pieces(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(self.tokenizer_)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.table_.shape[1]


def build(**params: Any) -> StaticVectors:
    """Return the unfitted transformer with these parameters."""
    return StaticVectors(**params)
