"""Embeddings by an endpoint over HTTP (OpenAI's, or any server that answers like it); the texts are sent there.

Source: OpenAI, API reference, "Create embeddings" (2022): POST /embeddings.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._encoders.endpoint import Endpoint, endpoint_of
from textbench.featurizers._encoders.rows import rows_of
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers._texts import checked_texts

INPUT = "texts"
NEEDS = ("text_vectors",)
PRETRAINED = True
ACCEPTS = {"dimensions": "[1, inf)"}
MODEL, OPENAI, KEY = "text-embedding-3-small", "https://api.openai.com/v1", "OPENAI_API_KEY"
SEARCH_SPACE: dict[str, BaseDistribution] = {"normalize": CategoricalDistribution([True, False])}


def encoder(
    model: str = MODEL,
    url: str = OPENAI,
    key_env: str | None = KEY,
    dimensions: int | None = None,
    prompt: str | None = None,
) -> Endpoint:
    """Return what gives texts their vectors (`EndpointVectors` says the parameters); nothing is sent yet.

    Raises ValueError for settings that are none.
    """
    return endpoint_of(model, url, key_env, dimensions, prompt)


class EndpointVectors(LearnedArrays, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Embeddings by an endpoint over HTTP, POST `url`/embeddings: the texts leave this machine unless it is the one.

    `model`: its name there. `url`: its address, plain http only on this machine. `key_env`: the name of
    the environment variable that holds the key, None where none is needed; a key is never stored. `dimensions`: how
    many numbers are asked for, None for all. `prompt`: what goes before a text. `normalize`: whether rows are of unit
    length. Texts go to another machine only where `TEXTBENCH_ALLOW_UPLOAD` is 1 (`textbench run --allow-upload`).

    X: a list of strings. Features: dense float32, (n_documents, n_dimensions); an empty text is a row of zeros and is
    not sent. `fingerprint_`: the sha256 of the settings. Raises ValueError for settings that are none, texts that may
    not be sent and a key that is missing, and RuntimeError for an endpoint that does not answer what was asked for.

    Source: OpenAI, API reference, "Create embeddings".
    """

    learned = ("fingerprint_", "n_dimensions_")

    def __init__(
        self,
        *,
        model: str = MODEL,
        url: str = OPENAI,
        key_env: str | None = KEY,
        dimensions: int | None = None,
        prompt: str | None = None,
        normalize: bool = True,
    ) -> None:
        self.model = model
        self.url = url
        self.key_env = key_env
        self.dimensions = dimensions
        self.prompt = prompt
        self.normalize = normalize

    def fit(
        self, X: Sequence[str], y: Any = None, *, text_vectors: Mapping[str, np.ndarray] | None = None
    ) -> Self:
        """Learn how wide vectors are. text_vectors: vectors (n_dimensions,) of texts that have theirs already."""
        check_parameters(self, ACCEPTS)
        checked_texts(X)
        self._known = text_vectors or {}
        found = self._encoder()
        self.fingerprint_ = hashlib.sha256(json.dumps(found.described(), sort_keys=True).encode()).hexdigest()
        first = next(iter(self._known.values()), None)
        self.n_dimensions_ = found.n_dimensions if first is None else len(first)
        return self

    def fit_transform(
        self, X: Sequence[str], y: Any = None, *, text_vectors: Mapping[str, np.ndarray] | None = None
    ) -> np.ndarray:
        """Return the vectors of X after `fit` with these text_vectors: float32, (n_documents, n_dimensions)."""
        return self.fit(X, y, text_vectors=text_vectors).transform(X)

    def transform(self, X: Sequence[str]) -> np.ndarray:
        """Return the vectors: dense float32, (n_documents, n_dimensions).

        Raises ValueError for vectors of another width than those it was fitted with.
        """
        check_is_fitted(self)
        texts = checked_texts(X)
        return rows_of(
            texts, getattr(self, "_known", {}), self._made, self.n_dimensions_, normalize=self.normalize
        )

    def _made(self, texts: Sequence[str]) -> np.ndarray:
        found = self._encoder().encode(texts)
        if found.shape[1] != self.n_dimensions_:
            raise ValueError(
                f"{self.model} is another model than this was fitted with: vectors must have {self.n_dimensions_} "
                f"numbers, got {found.shape[1]}"
            )
        return found

    def _encoder(self) -> Endpoint:
        return encoder(self.model, self.url, self.key_env, self.dimensions, self.prompt)

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.n_dimensions_


def build(**params: Any) -> EndpointVectors:
    """Return the unfitted transformer with these parameters."""
    return EndpointVectors(**params)
