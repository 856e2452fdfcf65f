"""Paragraph vectors by gensim's Doc2Vec: what PV-DM and PV-DBOW share.

Source: Q. Le and T. Mikolov, "Distributed representations of sentences and documents", ICML 2014, section 2.
"""

import zlib
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from gensim.models import Doc2Vec
from gensim.models.doc2vec import TaggedDocument, train_document_dbow, train_document_dm
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._learned import LearnedArrays

# gensim reads no more than this many tokens of a text; the rest of a longer one would be lost without a word.
LONGEST_TEXT = 10_000
LARGEST_TERM = np.iinfo(np.int32).max
SAMPLE = 1e-3
FIRST_RATE, LAST_RATE = 0.025, 0.0001


class ParagraphVectors(LearnedArrays, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Paragraph vectors: each document has a vector, from which its words are predicted.

    A subclass says which model it is (`is_dm`) and has the parameters `n_components`, `negative`, `min_count`,
    `epochs`, `random_state` and, for PV-DM, `window`.
    """

    learned = ("terms_", "term_counts_", "term_vectors_", "output_vectors_", "seed_", "n_empty_documents_")

    is_dm: bool

    @abstractmethod
    def _check(self) -> None:
        """Raise ValueError for an impossible parameter."""

    def fit(self, X: Sequence[np.ndarray], y: Any = None) -> Self:
        """Train on X, token ids, an int32 array (n_tokens,) a document; one thread, so that a seed gives the same bits.

        Raises ValueError where no term occurs `min_count` times.
        """
        self._check()
        params = self.get_params()
        documents = validated_documents(X)
        seed = params["random_state"]
        self.seed_ = int(np.random.default_rng().integers(2**31) if seed is None else seed)
        texts = [
            TaggedDocument(chunk, [number])
            for number, document in enumerate(documents)
            for chunk in _chunks(document)
        ]
        model = self._model()
        model.build_vocab(texts)
        if not len(model.wv):
            raise ValueError(f"no term occurs min_count = {params['min_count']} times: lower min_count")
        model.train(texts, total_examples=model.corpus_count, epochs=model.epochs)
        words = model.wv.index_to_key
        self.terms_ = np.array([int(word) for word in words], dtype=np.int32)
        self.term_counts_ = np.array([model.wv.get_vecattr(word, "count") for word in words], dtype=np.int64)
        self.term_vectors_ = model.wv.vectors if self.is_dm else model.wv.vectors[:0].copy()
        self.output_vectors_ = model.syn1neg
        self.n_empty_documents_ = sum(not len(document) for document in _known(documents, self.terms_))
        return self

    def transform(self, X: Sequence[np.ndarray]) -> np.ndarray:
        """Return vectors inferred with all else held fixed: dense float32, (n_documents, n_components).

        A document starts from noise that depends on its own tokens alone, so that it gets the same vector in any
        company; training documents are inferred like new ones. A document without a known term is a row of zeros. X:
        as in `fit`.
        """
        check_is_fitted(self)
        model = self._trained_model()
        features = np.zeros((len(X), self._n_features_out), dtype=np.float32)
        for row, document in zip(features, _known(validated_documents(X), self.terms_), strict=True):
            if len(document):
                row[:] = self._infer(model, document)
        return features

    def _model(self) -> Doc2Vec:
        params = self.get_params()
        own = {name: params[name] for name in ("window", "negative", "min_count", "epochs") if name in params}
        own |= {"vector_size": params["n_components"], "dm": int(self.is_dm), "seed": self.seed_}
        return Doc2Vec(sample=SAMPLE, alpha=FIRST_RATE, min_alpha=LAST_RATE, workers=1, **own)

    def _trained_model(self) -> Doc2Vec:
        """Return the model as it was when its training ended, made from the learned arrays alone."""
        model = self._model()
        words = [str(term) for term in self.terms_]
        model.build_vocab_from_freq(dict(zip(words, self.term_counts_.tolist(), strict=True)), corpus_count=1)
        place = [model.wv.key_to_index[word] for word in words]
        model.syn1neg[place] = self.output_vectors_
        if self.is_dm:
            model.wv.vectors[place] = self.term_vectors_
        return model

    def _infer(self, model: Doc2Vec, document: np.ndarray) -> np.ndarray:
        # As gensim's `infer_vector`, whose start depends on Python's hash of a string: that differs between processes.
        fingerprint = zlib.crc32(document.tobytes())
        start = np.random.default_rng([self.seed_, fingerprint]).random((1, model.vector_size)) - 0.5
        vector = (start / model.vector_size).astype(np.float32)
        model.random.seed((self.seed_ + fingerprint) % 2**32)
        fixed = {"learn_words": False, "learn_hidden": False, "doctags_lockf": np.ones(1, dtype=np.float32)}
        # Left to itself, gensim would go on using work space that it has already freed.
        fixed["work"] = np.zeros(model.layer1_size, dtype=np.float32)
        if self.is_dm:
            fixed["neu1"] = np.zeros(model.layer1_size, dtype=np.float32)
        step = train_document_dm if self.is_dm else train_document_dbow
        chunks = _chunks(document)
        for rate in np.linspace(FIRST_RATE, LAST_RATE, model.epochs):
            for chunk in chunks:
                step(model, chunk, [0], rate, doctag_vectors=vector, **fixed)
        return vector[0]

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.output_vectors_.shape[1]


def validated_documents(X: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the documents X as int32 arrays (n_tokens,). ValueError unless all are 1-D, of ints in 0 .. 2^31 - 1."""
    documents = [np.asarray(document) for document in X]
    for document in documents:
        if document.ndim != 1 or document.dtype.kind not in "iu" or document.min(initial=0) < 0:
            raise ValueError(
                "a document must be a one-dimensional array of token ids, whole numbers from 0: got "
                f"{document.dtype} of shape {document.shape}, smallest {document.min(initial=0)}"
            )
        if document.max(initial=0) > LARGEST_TERM:
            raise ValueError(f"a token id must be at most {LARGEST_TERM}: got {document.max()}")
    return [document.astype(np.int32) for document in documents]


def _known(documents: list[np.ndarray], terms: np.ndarray) -> list[np.ndarray]:
    """Return the documents without the tokens of terms that are not among `terms`."""
    is_known = np.isin(np.concatenate([np.zeros(0, dtype=np.int32), *documents]), terms)
    ends = np.cumsum([len(document) for document in documents])
    return [
        document[is_known[end - len(document) : end]] for document, end in zip(documents, ends, strict=True)
    ]


def _chunks(document: np.ndarray) -> list[list[str]]:
    """Return the document as words that gensim can read; an empty one has none."""
    words = [str(token) for token in document.tolist()]
    return [words[start : start + LONGEST_TEXT] for start in range(0, len(words), LONGEST_TEXT)]
