"""What methods on tokens, their topics and trained word vectors share: what is read, and vectors of topics.

`documents` are int32 arrays of token ids (n_tokens,), `terms` those that are known, ascending (n_known,);
`word_vectors` and `output_vectors` have a row a term (n_terms, n_dimensions), `norms` and `counts` a number a term
(n_terms,); `vectors` are any rows (n_rows, n_dimensions).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from textbench.featurizers._paragraph_vectors import validated_documents
from textbench.featurizers._topical.documents import joined
from textbench.featurizers._topical.skip_gram import SMOOTHING, KnownTokens, train_rows
from textbench.featurizers._topical.token_topics import TokenTopics
from textbench.featurizers._topical.topic_vectors import fit_negatives, mean_vectors, topics_around

SAMPLE = 1e-3  # the frequency above which tokens are left out at random


@dataclass(frozen=True)
class TopicReading:
    """Documents of known terms with the topic of each token.

    `reading`, the documents; `topics` int32 (n_tokens,); `counts` float64 (n_known, n_topics), how often each term has
    each topic.
    """

    reading: KnownTokens
    topics: np.ndarray
    counts: np.ndarray

    @property
    def n_topics(self) -> int:
        """The number of topics."""
        return int(self.counts.shape[1])


@dataclass(frozen=True)
class Trained:
    """Word vectors as long as their training left them, and output vectors, float32 (n_known, n_dimensions)."""

    words: np.ndarray
    outputs: np.ndarray

    @classmethod
    def of(
        cls, word_vectors: np.ndarray, output_vectors: np.ndarray, norms: np.ndarray, terms: np.ndarray
    ) -> Self:
        """Take those of `terms`. Raises ValueError for shapes that do not fit or values that are not finite."""
        if (
            np.shape(output_vectors) != np.shape(word_vectors)
            or np.shape(norms) != np.shape(word_vectors)[:1]
        ):
            raise ValueError(
                "output_vectors and vector_norms must fit word_vectors: got shapes "
                f"{np.shape(output_vectors)} and {np.shape(norms)} for {np.shape(word_vectors)}"
            )
        if not (np.isfinite(output_vectors).all() and np.isfinite(norms).all()):
            raise ValueError("output_vectors and vector_norms must be finite: got NaN or infinite values")
        words = word_vectors[terms].astype(np.float32) * norms[terms, None].astype(np.float32)
        return cls(words, output_vectors[terms].astype(np.float32))


def read_topics(
    documents: Sequence[np.ndarray],
    terms: np.ndarray,
    token_topics: TokenTopics,
    n_terms: int,
    sample: float = SAMPLE,
) -> TopicReading:
    """Return documents as they are read, with their topics, of the known `terms` alone.

    Raises ValueError for topics of another number of tokens, topics that are none, or documents without a known term.
    """
    documents = validated_documents(documents)
    topics = np.asarray(token_topics.topics)
    token_topics.counts(joined(documents), n_terms)
    reading = KnownTokens.of(documents, terms, n_terms, sample)
    if not len(reading.tokens):
        raise ValueError(
            f"at least one token must be of a term that has a word vector: got none of {len(topics)} tokens of "
            f"{len(documents)} documents; lower min_count"
        )
    own = topics[reading.places].astype(np.int32)
    pairs = reading.tokens.astype(np.int64) * token_topics.n_topics + own
    counts = np.bincount(pairs, minlength=len(terms) * token_topics.n_topics)
    return TopicReading(reading, own, counts.reshape(len(terms), -1).astype(np.float64))


def noise_of(counts: np.ndarray) -> np.ndarray:
    """Return how probable each term is as a negative sample, float64 (n_terms,), by how often it occurs."""
    weights = counts.astype(np.float64) ** SMOOTHING
    return weights / max(weights.sum(), 1e-300)


def fitted_topics(read: TopicReading, trained: Trained, window: int, negative: int) -> np.ndarray:
    """Return TWE-1's topic vectors, float64 (n_topics, n_dimensions), from the mean vector of a topic's tokens on."""
    reading = read.reading
    seen = topics_around(
        reading.tokens, read.topics, reading.offsets, read.n_topics, len(trained.words), window
    )
    start = mean_vectors(read.counts, trained.words)
    return fit_negatives(seen, noise_of(reading.counts), negative, trained.outputs, start)


def trained_together(
    read: TopicReading, trained: Trained, window: int, negative: int, epochs: int, seed: int | None
) -> tuple[Trained, np.ndarray]:
    """Return words, outputs and topics (n_topics, n_dimensions) trained together: a token puts in both of its rows."""
    topics = mean_vectors(read.counts, trained.words).astype(np.float32)
    rows = np.ascontiguousarray(np.vstack([trained.words, topics]))
    outputs = trained.outputs.copy()
    inputs = np.column_stack([read.reading.tokens, len(trained.words) + read.topics]).astype(np.int32)
    state = np.random.default_rng(seed).integers(2**63, size=1).astype(np.uint64)
    train_rows(read.reading, inputs, rows, outputs, window, negative, epochs, state)
    n_words = len(trained.words)
    return Trained(rows[:n_words], outputs), rows[n_words:]


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Return the rows at unit length, float32; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)
