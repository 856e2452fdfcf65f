"""Vectors of words in topics: their training, the topics that follow from them, and documents of them.

Source: J. Law, H. H. Zhuo, J. He and E. Rong, "LTSG: Latent topical skip-gram", 2017; a reconstruction.

`words` are vectors of the known terms, (n_known, n_dimensions); `counts` are csr (n_documents, n_known), or how often
each term has each topic, (n_known, n_topics), as `table` and phi are.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from textbench.featurizers._topical.documents import frequencies
from textbench.featurizers._topical.embeddings import TopicReading, Trained
from textbench.featurizers._topical.gibbs import Assignments
from textbench.featurizers._topical.inference import infer, smoothed
from textbench.featurizers._topical.skip_gram import train_rows
from textbench.featurizers._word_vectors import blocks

SMALLEST_SHARE = 0.01  # of a term that a topic has, below which its vector there is left out
DOCUMENTS_AT_ONCE = 500


@dataclass(frozen=True)
class Pairs:
    """Terms in topics that have a vector of their own.

    `numbers` int64 (n_pairs,), term * n_topics + topic, ascending; `vectors` float32 (n_pairs, n_dimensions).
    """

    numbers: np.ndarray
    vectors: np.ndarray
    n_topics: int

    def with_all(self, numbers: np.ndarray, words: np.ndarray) -> "Pairs":
        """Return these and what else is among `numbers` (n_numbers,), at the vectors of their words."""
        every = np.union1d(self.numbers, numbers)
        vectors = words[every // self.n_topics].astype(np.float32)
        vectors[np.searchsorted(every, self.numbers)] = self.vectors
        return Pairs(every, vectors, self.n_topics)

    def means(self, counts: np.ndarray) -> np.ndarray:
        """Return the mean vector of each topic's tokens, float64 (n_topics, n_dimensions)."""
        own = counts.ravel()[self.numbers]
        sums = sp.csr_matrix(
            (own, (self.numbers % self.n_topics, np.arange(len(own)))), shape=(self.n_topics, len(own))
        )
        totals = np.maximum(counts.sum(axis=0), 1e-12)
        return np.asarray(sums @ self.vectors.astype(np.float64)) / totals[:, None]

    def cosines(self, topics: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return cos(x_wk, t_k), float64 (n_known, n_topics), zero with a vector of length zero.

        topics: (n_topics, n_dimensions).
        """
        units = _unit(topics)
        found = _unit(words) @ units.T
        terms, own = np.divmod(self.numbers, self.n_topics)
        found[terms, own] = np.einsum("ij,ij->i", _unit(self.vectors), units[own])
        return found


def _unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float64) / np.where(lengths > 0, lengths, 1)


def topics_of_vectors(counts: np.ndarray, cosines: np.ndarray, beta: float, temperature: float) -> np.ndarray:
    """Return phi_wk ~ (C_wk + beta) exp(cos_wk / temperature), columns that sum to 1; cosines: (n_known, n_topics)."""
    found = (counts + beta) * np.exp(cosines / temperature)
    return found / found.sum(axis=0)


def refined(
    read: TopicReading,
    trained: Trained,
    *,
    n_rounds: int,
    n_sweeps: int,
    temperature: float,
    alpha: float,
    beta: float,
    window: int,
    negative: int,
    seed: int | None,
) -> tuple[Pairs, np.ndarray]:
    """Return the vectors of pairs, and phi, float64 (n_known, n_topics), after rounds that refine one by the other."""
    n_terms, n_topics = read.counts.shape
    own = Assignments.of(read.reading, read.topics, n_topics, 1.0, seed)
    empty = np.zeros((0, trained.words.shape[1]), dtype=np.float32)
    pairs = Pairs(np.zeros(0, dtype=np.int64), empty, n_topics)
    counts, phi, outputs = read.counts, smoothed(read.counts, beta), trained.outputs.copy()
    state = np.random.default_rng(seed).integers(2**63, size=1).astype(np.uint64)
    for _ in range(n_rounds):
        numbers = own.tokens.astype(np.int64) * n_topics + own.topics
        pairs = pairs.with_all(numbers, trained.words)
        inputs = np.searchsorted(pairs.numbers, numbers).astype(np.int32)[:, None]
        train_rows(read.reading, inputs, pairs.vectors, outputs, window, negative, 1, state)
        cosines = pairs.cosines(pairs.means(counts), trained.words)
        phi = topics_of_vectors(counts, cosines, beta, temperature)
        own.sweep(phi, 1.0, alpha, beta, n=n_sweeps)
        counts = own.of_terms(n_terms, n_topics)
    return pairs, phi


def documents_of_pairs(
    counts: sp.csr_matrix, table: np.ndarray, alpha: float, words: np.ndarray, pairs: Pairs
) -> np.ndarray:
    """Return sum_w f_dw sum_k q_dwk x_wk, float32 (n_documents, n_dimensions)."""
    n_topics, terms = pairs.n_topics, counts.shape[1]
    theta = infer(counts, table, alpha).proportions
    shares = frequencies(counts)
    # Where a pair's vector is among all, the words' coming first.
    place = np.repeat(np.arange(terms), n_topics)
    place[pairs.numbers] = terms + np.arange(len(pairs.numbers))
    every = np.vstack([words, pairs.vectors]).astype(np.float32)
    found = np.zeros((counts.shape[0], words.shape[1]), dtype=np.float32)
    for block in blocks(counts.shape[0], DOCUMENTS_AT_ONCE):
        own = shares[block]
        documents = np.repeat(np.arange(own.shape[0]), np.diff(own.indptr))
        q = theta[block][documents] * table[own.indices]
        q /= np.maximum(q.sum(axis=1, keepdims=True), 1e-30)
        q *= q >= SMALLEST_SHARE
        # A term that no topic has is its word alone.
        is_left = q.sum(axis=1) > 0
        q[is_left] /= q[is_left].sum(axis=1, keepdims=True)
        entry, topic = np.nonzero(q)
        columns = place[own.indices[entry].astype(np.int64) * n_topics + topic]
        weights, rows = own.data[entry] * q[entry, topic], documents[entry]
        alone = np.flatnonzero(~is_left)
        columns = np.concatenate([columns, own.indices[alone]])
        weights, rows = np.concatenate([weights, own.data[alone]]), np.concatenate([rows, documents[alone]])
        found[block] = sp.csr_matrix((weights, (rows, columns)), shape=(own.shape[0], len(every))) @ every
    return found
