"""Sentence embeddings: vectors of a pretrained transformer (all-MiniLM-L6-v2, or any sentence-transformers model).

Source: N. Reimers and I. Gurevych, "Sentence-BERT: sentence embeddings using Siamese BERT-networks", EMNLP 2019,
section 3; W. Wang et al., "MiniLM: deep self-attention distillation for task-agnostic compression of pre-trained
transformers", NeurIPS 2020.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._encoders.encoder import Encoder, encoder_of
from textbench.featurizers._encoders.rows import rows_of
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers._texts import checked_texts

INPUT = "texts"
NEEDS = ("text_vectors",)
PRETRAINED = True
ACCEPTS = {
    "max_tokens": "[3, inf)",
    "pooling": ("auto", "mean", "cls", "max", "lasttoken"),
    "long": ("truncate", "chunks"),
    "backend": ("onnx", "numpy", "torch"),
    "dimensions": "[1, inf)",
}
SEARCH_SPACE: dict[str, BaseDistribution] = {"normalize": CategoricalDistribution([True, False])}
MINILM = "sentence-transformers/all-MiniLM-L6-v2"


def encoder(
    model: str = MINILM,
    max_tokens: int | None = None,
    prompt: str | None = None,
    pooling: str = "auto",
    long: str = "truncate",
    backend: str = "onnx",
) -> Encoder:
    """Return what gives texts their vectors (`SentenceVectors` says the parameters); it is read from the model's files.

    Raises ValueError for a model or a library that is not on this machine.
    """
    return encoder_of(
        model, max_tokens=max_tokens, prompt=prompt, pooling=pooling, long=long, backend=backend
    )


class SentenceVectors(LearnedArrays, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Sentence embeddings: the pooled last layer of a pretrained transformer; a text's bits depend on itself alone.

    `model`: a folder, `package:NAME`, or a name on the Hugging Face hub that is on this machine. `max_tokens`: pieces
    of a text that are read, special ones included, by default as many as the model was made for; of longer texts the
    rest is left out, or with `long="chunks"` embedded apart and averaged by length. `prompt`: what goes before a text,
    or the name of a prompt of the model's. `pooling`: mean, cls, max or lasttoken over the pieces; "auto" is the
    model's own. `backend`: "onnx" (onnxruntime), "numpy" (BERT alone, slow) or "torch" (sentence-transformers).
    `dimensions`: the first so many alone. `normalize`: whether rows are then of unit length.

    X: a list of strings. Features: dense float32, (n_documents, n_dimensions); an empty text is a row of zeros.
    `fingerprint_`: the sha256 of the model's files; another model in their place is refused. Nothing else is learned.
    Raises ValueError for a model or a library that is not here, parameters outside their range, and on what is no list
    of strings.

    Source: Reimers and Gurevych (2019), section 3.
    """

    learned = ("fingerprint_", "n_dimensions_")

    def __init__(
        self,
        *,
        model: str = MINILM,
        max_tokens: int | None = None,
        prompt: str | None = None,
        pooling: str = "auto",
        long: str = "truncate",
        backend: str = "onnx",
        dimensions: int | None = None,
        normalize: bool = True,
    ) -> None:
        self.model = model
        self.max_tokens = max_tokens
        self.prompt = prompt
        self.pooling = pooling
        self.long = long
        self.backend = backend
        self.dimensions = dimensions
        self.normalize = normalize

    def fit(
        self, X: Sequence[str], y: Any = None, *, text_vectors: Mapping[str, np.ndarray] | None = None
    ) -> Self:
        """See that the model is there. text_vectors: vectors (n_dimensions,) of texts that have theirs already."""
        check_parameters(self, ACCEPTS)
        checked_texts(X)
        self._known = text_vectors or {}
        found = self._encoder()
        self.fingerprint_ = found.folder.fingerprint
        self.n_dimensions_ = min(self.dimensions or found.n_dimensions, found.n_dimensions)
        return self

    def fit_transform(
        self, X: Sequence[str], y: Any = None, *, text_vectors: Mapping[str, np.ndarray] | None = None
    ) -> np.ndarray:
        """Return the vectors of X after `fit` with these text_vectors: float32, (n_documents, n_dimensions)."""
        return self.fit(X, y, text_vectors=text_vectors).transform(X)

    def transform(self, X: Sequence[str]) -> np.ndarray:
        """Return the vectors: dense float32, (n_documents, n_dimensions).

        Raises ValueError where another model has taken the place of the one it was fitted with.
        """
        check_is_fitted(self)
        texts, known = checked_texts(X), getattr(self, "_known", {})
        return rows_of(texts, known, self._made, self.n_dimensions_, normalize=self.normalize)

    def _made(self, texts: Sequence[str]) -> np.ndarray:
        found = self._encoder()
        if found.folder.fingerprint != self.fingerprint_:
            raise ValueError(
                f"{self.model} is another model than this was fitted with: its fingerprint must be "
                f"{self.fingerprint_[:12]}, got {found.folder.fingerprint[:12]}"
            )
        return found.encode(texts)

    def _encoder(self) -> Encoder:
        return encoder(self.model, self.max_tokens, self.prompt, self.pooling, self.long, self.backend)

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.n_dimensions_


def build(**params: Any) -> SentenceVectors:
    """Return the unfitted transformer with these parameters."""
    return SentenceVectors(**params)
