"""Skip-gram with negative samples that the inputs of a window share: the loops of all that learns so.

All inputs of a window (word vectors, or what stands for them) predict the word in its middle against the same samples,
so that each of these is read from memory once a window; a window's changes are made together when all its slopes are
known. One thread: the same state gives the same bits.

Source: S. Ji, N. Satish, S. Li and P. Dubey, "Parallelizing word2vec in shared and distributed memory", IEEE
Transactions on Parallel and Distributed Systems 30 (2019), section 3.1; T. Mikolov, I. Sutskever, K. Chen, G. Corrado
and J. Dean, "Distributed representations of words and phrases and their compositionality", NIPS 2013, section 2.

`documents` are int32 arrays of token ids (n_tokens,); `words`, `outputs` and other `rows` are float32 (n_rows,
n_dimensions), `counts` how often each term occurs, (n_terms,); `state` is uint64 (1,), where the stream of random
numbers has got to.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numba import njit

FIRST_RATE, LAST_RATE = 0.025, 0.0001
SMOOTHING = 0.75  # power of a term's frequency, to which it is drawn as a negative sample
TABLE = 10_000_000  # draws of negative samples are entries of a table of so many
BLOCK = 4  # outputs that are worked on at a time, so that each number of a word is read once for all of them


@dataclass(frozen=True)
class KnownTokens:
    """Documents as a training reads them: known terms alone, numbered from 0 in the order of their own numbers.

    `tokens` int32 (n_tokens,); `offsets` int64 (n_documents + 1,), where documents begin: a window reaches across what
    is left out, as gensim's does; `places` int64 (n_tokens,), where the tokens stood among all of the documents;
    `counts` int64 and `kept` float64 (n_known,), how often a term occurs, and the share of its tokens that is read.
    """

    tokens: np.ndarray
    offsets: np.ndarray
    places: np.ndarray
    counts: np.ndarray
    kept: np.ndarray

    @classmethod
    def of(cls, documents: Sequence[np.ndarray], known: np.ndarray, n_terms: int, sample: float) -> Self:
        """Read documents, int32 token ids each; known: the numbers of the known terms, ascending."""
        tokens = np.concatenate([np.zeros(0, dtype=np.int32), *documents])
        number = np.full(n_terms, -1, dtype=np.int32)
        number[known] = np.arange(len(known))
        tokens = number[tokens]
        places = np.flatnonzero(tokens >= 0)
        offsets = np.concatenate([[0], np.cumsum([len(document) for document in documents])]).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(tokens >= 0)])[offsets]
        counts = np.bincount(tokens[places], minlength=len(known))
        return cls(
            tokens[places],
            offsets,
            places,
            counts,
            kept_share(np.maximum(counts, 1), sample),
        )

    @functools.cached_property
    def table(self) -> np.ndarray:
        """What negative samples are drawn from: int32 (TABLE,)."""
        return sample_table(self.counts)


def train_rows(
    reading: KnownTokens,
    inputs: np.ndarray,
    rows: np.ndarray,
    outputs: np.ndarray,
    window: int,
    negative: int,
    n_epochs: int,
    state: np.ndarray,
) -> None:
    """Train rows and outputs in place: each token puts in the rows that `inputs` names, int32 (n_tokens, n_inputs).

    With a word's own row alone they are word vectors.
    """
    work = reading.tokens, inputs, reading.offsets, reading.kept, reading.table
    _train_rows(work, rows, outputs, (window, negative), n_epochs, state)


def kept_share(counts: np.ndarray, sample: float) -> np.ndarray:
    """Return the share of each term's tokens that is read, float64: word2vec's sqrt(t/f) + t/f, at most 1.

    counts: (n_terms,) how often each occurs; sample: the frequency t above which tokens are left out, 0 for none.
    """
    if not sample:
        return np.ones(len(counts))
    ratio = sample * counts.sum() / counts
    return np.minimum(np.sqrt(ratio) + ratio, 1.0)


def sample_table(counts: np.ndarray) -> np.ndarray:
    """Return TABLE term numbers, int32, each as often as the term is drawn as a negative sample."""
    weight = counts.astype(np.float64) ** SMOOTHING
    ends = np.round(np.cumsum(weight) / weight.sum() * TABLE).astype(np.int64)
    return np.repeat(np.arange(len(counts), dtype=np.int32), np.diff(ends, prepend=0))


@njit(cache=True)
def _random(state):  # type: ignore[no-untyped-def]
    """The next of SplitMix64's numbers."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    mixed = state[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@njit(cache=True)
def _train_rows(work, rows, outputs, settings, n_epochs, state):  # type: ignore[no-untyped-def]
    """Train `rows` and `outputs` in place."""
    tokens, inputs, offsets, kept, table = work
    window, negative = settings
    n_inputs, size = inputs.shape[1], rows.shape[1]
    read = np.empty(len(tokens), np.int32)  # of a document
    around, drawn = np.empty(2 * window, np.int32), np.empty(negative + 1, np.int32)
    named = np.empty(2 * window * n_inputs, np.int32)
    values = np.empty((2 * window * n_inputs, size), np.float32)
    slopes = np.empty((2 * window * n_inputs, size), np.float32)
    changes = np.empty((BLOCK, size), np.float32)
    n_seen = 0
    for _ in range(n_epochs):
        for d in range(len(offsets) - 1):
            rate = np.float32(FIRST_RATE + (LAST_RATE - FIRST_RATE) * n_seen / (n_epochs * len(tokens)))
            n_seen += offsets[d + 1] - offsets[d]
            n_read = _read_document(tokens, offsets[d], offsets[d + 1], kept, read, state)
            for place in range(n_read):
                n_around = _looked_around(read, place, n_read, window, around, state)
                for i in range(n_around):
                    for m in range(n_inputs):
                        named[i * n_inputs + m] = inputs[around[i], m]
                n_drawn = _sampled(tokens, read[place], drawn, table, negative, state)
                _learn(
                    rows,
                    outputs,
                    named[: n_around * n_inputs],
                    drawn[:n_drawn],
                    rate,
                    values,
                    slopes,
                    changes,
                )


@njit(cache=True, fastmath=True)
def _learn(words, outputs, around, drawn, rate, values, slopes, changes):  # type: ignore[no-untyped-def]
    """One step for the words around a place: drawn[0] stands there, the others are negative samples."""
    size = words.shape[1]
    for i, word in enumerate(around):
        for k in range(size):
            values[i, k] = words[word, k]
            slopes[i, k] = 0.0
    last = len(drawn) - 1
    for first in range(0, len(drawn), BLOCK):
        # A block beyond the last reads the last again and leaves it alone.
        a, b = outputs[drawn[first]], outputs[drawn[min(first + 1, last)]]
        c, d = outputs[drawn[min(first + 2, last)]], outputs[drawn[min(first + 3, last)]]
        changes[:] = 0.0
        to_a, to_b, to_c, to_d = changes[0], changes[1], changes[2], changes[3]
        n = min(BLOCK, len(drawn) - first)
        for i in range(len(around)):
            value, slope = values[i], slopes[i]
            at_a = at_b = at_c = at_d = np.float32(0.0)
            for k in range(size):
                at_a += value[k] * a[k]
                at_b += value[k] * b[k]
                at_c += value[k] * c[k]
                at_d += value[k] * d[k]
            for_a = _slope(at_a, first == 0, rate)
            for_b = _slope(at_b, False, rate) if n > 1 else np.float32(0.0)
            for_c = _slope(at_c, False, rate) if n > 2 else np.float32(0.0)
            for_d = _slope(at_d, False, rate) if n > 3 else np.float32(0.0)
            for k in range(size):
                slope[k] += for_a * a[k] + for_b * b[k] + for_c * c[k] + for_d * d[k]
                to_a[k] += for_a * value[k]
                to_b[k] += for_b * value[k]
                to_c[k] += for_c * value[k]
                to_d[k] += for_d * value[k]
        for m in range(n):
            for k in range(size):
                outputs[drawn[first + m], k] += changes[m, k]
    for i, word in enumerate(around):
        for k in range(size):
            words[word, k] += slopes[i, k]


@njit(cache=True)
def _slope(score, is_there, rate):  # type: ignore[no-untyped-def]
    """rate * (label - probability); far from 0 the probability is 0 or 1."""
    label = np.float32(1.0) if is_there else np.float32(0.0)
    if score > 6.0:
        return (label - np.float32(1.0)) * rate
    if score < -6.0:
        return label * rate
    return (label - np.float32(1.0) / (np.float32(1.0) + np.exp(-score))) * rate


@njit(cache=True)
def _looked_around(read, place, n_read, window, around, state):  # type: ignore[no-untyped-def]
    """Fill in what was read around a place, as far as a reach that is drawn; how much there is."""
    reach = window - np.int64(_random(state) % np.uint64(window))
    n_around = 0
    for other in range(max(0, place - reach), min(n_read, place + reach + 1)):
        if other != place:
            around[n_around] = read[other]
            n_around += 1
    return n_around


@njit(cache=True)
def _sampled(tokens, place, drawn, table, negative, state):  # type: ignore[no-untyped-def]
    """Fill in the token at a place and its negative samples; how many there are."""
    drawn[0], n_drawn = tokens[place], 1
    for _ in range(negative):
        sample = table[_random(state) % np.uint64(len(table))]
        if sample != drawn[0]:
            drawn[n_drawn] = sample
            n_drawn += 1
    return n_drawn


@njit(cache=True)
def _read_document(tokens, begin, end, kept, read, state):  # type: ignore[no-untyped-def]
    """Fill in the places of the tokens that are not left out; how many there are."""
    n_read = 0
    for place in range(begin, end):
        if (_random(state) >> np.uint64(11)) < kept[tokens[place]] * 2.0**53:
            read[n_read] = place
            n_read += 1
    return n_read
