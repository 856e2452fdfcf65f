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
STEEPEST = 5.0  # slope along which a step with a tensor goes its whole length
LARGEST_WEIGHT = 10.0  # of a document, before the softmax: the prior has no lower bound
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


def train_words(
    reading: KnownTokens,
    words: np.ndarray,
    outputs: np.ndarray,
    window: int,
    negative: int,
    n_epochs: int,
    state: np.ndarray,
) -> None:
    """Train words and outputs in place, float32 (n_known, n_dimensions); state: uint64 (1,)."""
    work = reading.tokens, reading.offsets, reading.kept, reading.table
    _train(work, words, outputs, (window, negative), n_epochs, state)


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
    """As `train_words`, where each token puts in the rows that `inputs` names: int32 (n_tokens, n_inputs).

    rows: float32 (n_rows, n_dimensions). With a word's own row alone it is `train_words` to the bit.
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
def _train(work, words, outputs, settings, n_epochs, state):  # type: ignore[no-untyped-def]
    """Train `words` and `outputs` in place; the number of tokens that were not left out."""
    tokens, offsets, kept, table = work
    window, negative = settings
    size = words.shape[1]
    read = np.empty(len(tokens), np.int32)  # of a document
    around, drawn = np.empty(2 * window, np.int32), np.empty(negative + 1, np.int32)
    values, slopes = np.empty((2 * window, size), np.float32), np.empty((2 * window, size), np.float32)
    changes = np.empty((BLOCK, size), np.float32)
    n_trained, n_seen = 0, 0
    for _ in range(n_epochs):
        for d in range(len(offsets) - 1):
            rate = FIRST_RATE + (LAST_RATE - FIRST_RATE) * n_seen / (n_epochs * len(tokens))
            n_seen += offsets[d + 1] - offsets[d]
            n_read = 0
            for token in tokens[offsets[d] : offsets[d + 1]]:
                if (_random(state) >> np.uint64(11)) < kept[token] * 2.0**53:
                    read[n_read] = token
                    n_read += 1
            n_trained += n_read
            for place in range(n_read):
                reach = window - np.int64(_random(state) % np.uint64(window))
                n_around = 0
                for other in range(max(0, place - reach), min(n_read, place + reach + 1)):
                    if other != place:
                        around[n_around] = read[other]
                        n_around += 1
                drawn[0], n_drawn = read[place], 1
                for _ in range(negative):
                    sample = table[_random(state) % np.uint64(len(table))]
                    if sample != read[place]:
                        drawn[n_drawn] = sample
                        n_drawn += 1
                _learn(
                    words,
                    outputs,
                    around[:n_around],
                    drawn[:n_drawn],
                    np.float32(rate),
                    values,
                    slopes,
                    changes,
                )
    return n_trained


@njit(cache=True)
def _train_rows(work, rows, outputs, settings, n_epochs, state):  # type: ignore[no-untyped-def]
    """As `_train`, of tokens that put in several rows each."""
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


@njit(cache=True)
def _train_tensor(work, model, settings, n_epochs, state):  # type: ignore[no-untyped-def]
    """Train words, topics, contexts, biases, tensor (left, right) and mixture in place; `_step_tensor` has a step."""
    tokens, topics, offsets, kept, table = work
    window, negative, flags = settings
    read = np.empty(len(tokens), np.int32)
    around, drawn = np.empty(2 * window, np.int32), np.empty(negative + 1, np.int32)
    room = _room(model, window)
    n_seen = 0
    for _ in range(n_epochs):
        for d in range(len(offsets) - 1):
            rate = np.float32(FIRST_RATE + (LAST_RATE - FIRST_RATE) * n_seen / (n_epochs * len(tokens)))
            n_seen += offsets[d + 1] - offsets[d]
            n_read = _read_document(tokens, offsets[d], offsets[d + 1], kept, read, state)
            for place in range(n_read):
                n_around = _looked_around(read, place, n_read, window, around, state)
                n_drawn = _sampled(tokens, read[place], drawn, table, negative, state)
                _step_tensor(tokens, topics, around[:n_around], drawn[:n_drawn], model, rate, flags, room)


@njit(cache=True)
def _room(model, window):  # type: ignore[no-untyped-def]
    """What `_step_tensor` works in: values and slopes of its tokens, changes of a block, scores and errors of it."""
    n_slices, rank, size = model[4].shape
    values, slopes = (
        np.empty((2 * window, 2 * size), np.float32),
        np.empty((2 * window, 2 * size), np.float32),
    )
    changes = np.empty((BLOCK, n_slices, 2 * size), np.float32)
    scores, errors = np.empty((n_slices, BLOCK), np.float32), np.empty((n_slices, BLOCK), np.float32)
    to_biases, to_mixture = np.empty((n_slices, BLOCK), np.float32), np.zeros(n_slices, np.float32)
    tensor, summed = (
        np.empty((2 * window, n_slices), np.float32),
        np.empty((2 * window, n_slices), np.float32),
    )
    halves = np.empty((2, 2 * window, n_slices, rank), np.float32)
    to_tensor = np.empty((2, n_slices, rank, size), np.float32)
    return (
        values,
        slopes,
        changes,
        scores,
        errors,
        to_biases,
        to_mixture,
        tensor,
        summed,
        halves,
        to_tensor,
    )


@njit(cache=True, fastmath=True)
def _step_tensor(tokens, topics, around, drawn, model, rate, flags, room):  # type: ignore[no-untyped-def]
    """One step for the tokens around a place, of the score u . f(w' P Q t + V_c (w, t) + b_c); drawn[0] stands there.

    All changes are of the values before the step, but that a block of four contexts changes before the next.
    """
    words, vectors, contexts, biases, left, right, mixture = model
    is_tanh, has_tensor, has_bias, learns_mixture = flags
    values, slopes, changes, scores, errors, to_biases, to_mixture, tensor, summed, halves, to_tensor = room
    size, n_slices = words.shape[1], len(mixture)
    width = 2 * size
    for i, place in enumerate(around):
        word, topic = words[tokens[place]], vectors[topics[place]]
        for k in range(size):
            values[i, k] = word[k]
            values[i, size + k] = topic[k]
        for k in range(width):
            slopes[i, k] = 0.0
        for s in range(n_slices):
            tensor[i, s] = 0.0
            summed[i, s] = 0.0
    if has_tensor:
        _multiply(left, right, values, len(around), halves, tensor)
    last = len(drawn) - 1
    to_mixture[:] = 0.0
    for first in range(0, len(drawn), BLOCK):
        one, two = drawn[first], drawn[min(first + 1, last)]
        three, four = drawn[min(first + 2, last)], drawn[min(first + 3, last)]
        changes[:] = 0.0
        to_biases[:] = 0.0
        n = min(BLOCK, len(drawn) - first)
        for i in range(len(around)):
            value, slope = values[i], slopes[i]
            for s in range(n_slices):
                a, b, c, d = contexts[one, s], contexts[two, s], contexts[three, s], contexts[four, s]
                at_a = at_b = at_c = at_d = np.float32(0.0)
                for k in range(width):
                    at_a += value[k] * a[k]
                    at_b += value[k] * b[k]
                    at_c += value[k] * c[k]
                    at_d += value[k] * d[k]
                scores[s, 0] = at_a + tensor[i, s] + biases[one, s]
                scores[s, 1] = at_b + tensor[i, s] + biases[two, s]
                scores[s, 2] = at_c + tensor[i, s] + biases[three, s]
                scores[s, 3] = at_d + tensor[i, s] + biases[four, s]
            for m in range(BLOCK):
                whole = np.float32(0.0)
                for s in range(n_slices):
                    if is_tanh:
                        scores[s, m] = np.tanh(scores[s, m])
                    whole += mixture[s] * scores[s, m]
                wrong = _slope(whole, first + m == 0, rate) if m < n else np.float32(0.0)
                for s in range(n_slices):
                    if learns_mixture:
                        to_mixture[s] += wrong * scores[s, m]
                    error = wrong * mixture[s]
                    if is_tanh:
                        error *= np.float32(1.0) - scores[s, m] * scores[s, m]
                    errors[s, m] = min(max(error, -rate), rate)
                    summed[i, s] += errors[s, m]
            for s in range(n_slices):
                a, b, c, d = contexts[one, s], contexts[two, s], contexts[three, s], contexts[four, s]
                to_a, to_b, to_c, to_d = changes[0, s], changes[1, s], changes[2, s], changes[3, s]
                for_a, for_b, for_c, for_d = errors[s, 0], errors[s, 1], errors[s, 2], errors[s, 3]
                for k in range(width):
                    slope[k] += for_a * a[k] + for_b * b[k] + for_c * c[k] + for_d * d[k]
                    to_a[k] += for_a * value[k]
                    to_b[k] += for_b * value[k]
                    to_c[k] += for_c * value[k]
                    to_d[k] += for_d * value[k]
                for m in range(BLOCK):
                    to_biases[s, m] += errors[s, m]
        for m in range(n):
            for s in range(n_slices):
                for k in range(width):
                    contexts[drawn[first + m], s, k] += changes[m, s, k]
                if has_bias:
                    biases[drawn[first + m], s] += to_biases[s, m]
    if has_tensor:
        _move_tensor(left, right, values, slopes, len(around), halves, summed, to_tensor, rate)
    for i, place in enumerate(around):
        for k in range(size):
            words[tokens[place], k] += slopes[i, k]
            vectors[topics[place], k] += slopes[i, size + k]
    if learns_mixture:
        for s in range(n_slices):
            mixture[s] += to_mixture[s]


@njit(cache=True, fastmath=True)
def _multiply(left, right, values, n, halves, tensor):  # type: ignore[no-untyped-def]
    """Add w' P Q t of each of n tokens and slice to `tensor`; keep the factors w' P and Q t in `halves`."""
    n_slices, rank, size = left.shape
    for s in range(n_slices):
        for j in range(rank):
            p, q = left[s, j], right[s, j]
            for i in range(n):
                word, topic = values[i, :size], values[i, size:]
                at_left = at_right = np.float32(0.0)
                for k in range(size):
                    at_left += p[k] * word[k]
                    at_right += q[k] * topic[k]
                halves[0, i, s, j], halves[1, i, s, j] = at_left, at_right
                tensor[i, s] += at_left * at_right


@njit(cache=True, fastmath=True)
def _move_tensor(left, right, values, slopes, n, halves, summed, to_tensor, rate):  # type: ignore[no-untyped-def]
    """Move P and Q by the errors `summed` of n tokens, and add what they ask of the tokens to `slopes`.

    What is multiplied grows fast: no step is longer than STEEPEST.
    """
    n_slices, rank, size = left.shape
    to_tensor[:] = 0.0
    square_left = square_right = np.float32(0.0)
    for s in range(n_slices):
        for j in range(rank):
            p, q, to_p, to_q = left[s, j], right[s, j], to_tensor[0, s, j], to_tensor[1, s, j]
            for i in range(n):
                for_left = halves[1, i, s, j] * summed[i, s]
                for_right = halves[0, i, s, j] * summed[i, s]
                word, topic = values[i, :size], values[i, size:]
                word_slope, topic_slope = slopes[i, :size], slopes[i, size:]
                for k in range(size):
                    to_p[k] += for_left * word[k]
                    word_slope[k] += for_left * p[k]
                for k in range(size):
                    to_q[k] += for_right * topic[k]
                    topic_slope[k] += for_right * q[k]
            for k in range(size):
                square_left += to_p[k] * to_p[k]
                square_right += to_q[k] * to_q[k]
    on_left, on_right = _shrunk(square_left, rate), _shrunk(square_right, rate)
    for s in range(n_slices):
        for j in range(rank):
            for k in range(size):
                left[s, j, k] += on_left * to_tensor[0, s, j, k]
                right[s, j, k] += on_right * to_tensor[1, s, j, k]
    for i in range(n):
        square = np.float32(0.0)
        for k in range(2 * size):
            square += slopes[i, k] * slopes[i, k]
        shrink = _shrunk(square, rate)
        for k in range(2 * size):
            slopes[i, k] *= shrink


@njit(cache=True)
def _shrunk(square, rate):  # type: ignore[no-untyped-def]
    """What a step of this squared length is multiplied by, so that its slope is no steeper than STEEPEST."""
    longest = STEEPEST * rate
    return np.float32(longest / np.sqrt(square)) if square > longest * longest else np.float32(1.0)


@njit(cache=True)
def _train_mixtures(work, model, settings, n_epochs, state):  # type: ignore[no-untyped-def]
    """Train words, outputs, topics and documents' weights in place: a word's input is its vector and its document's.

    The document's is softmax(weights) . topics; what all its windows ask of it is added up, then weights and topics
    move.
    """
    tokens, offsets, kept, table = work
    words, outputs, topics, weights = model
    window, negative, prior, concentration, learns_words, learns_topics, first_rate, last_rate = settings
    size, n_topics = words.shape[1], len(topics)
    longest = 0
    for d in range(len(offsets) - 1):
        longest = max(longest, offsets[d + 1] - offsets[d])
    read, drawn = np.empty(longest, np.int32), np.empty(negative + 1, np.int32)
    rows, places = np.empty((2 * window, size), np.float32), np.arange(2 * window).astype(np.int32)
    around = np.empty(2 * window, np.int32)
    values, slopes = np.empty((2 * window, size), np.float32), np.empty((2 * window, size), np.float32)
    changes, fixed = np.empty((BLOCK, size), np.float32), np.empty((negative + 1, size), np.float32)
    steps = np.arange(negative + 1).astype(np.int32)
    own, asked = np.empty(size, np.float32), np.empty(size, np.float32)
    share, gain = np.empty(n_topics, np.float64), np.empty(n_topics, np.float64)
    n_seen = 0
    for _ in range(n_epochs):
        for d in range(len(offsets) - 1):
            rate = np.float32(first_rate + (last_rate - first_rate) * n_seen / (n_epochs * len(tokens)))
            n_seen += offsets[d + 1] - offsets[d]
            _shares(weights[d], share)
            own[:] = 0.0
            for t in range(n_topics):
                for k in range(size):
                    own[k] += share[t] * topics[t, k]
            asked[:] = 0.0
            n_read = _read_document(tokens, offsets[d], offsets[d + 1], kept, read, state)
            for place in range(n_read):
                n_around = _looked_around(read, place, n_read, window, around, state)
                for i in range(n_around):
                    around[i] = tokens[around[i]]
                    for k in range(size):
                        rows[i, k] = words[around[i], k] + own[k]
                n_drawn = _sampled(tokens, read[place], drawn, table, negative, state)
                if learns_words:
                    _learn(rows, outputs, places[:n_around], drawn[:n_drawn], rate, values, slopes, changes)
                else:  # outputs are copied, and the copies forgotten
                    for i in range(n_drawn):
                        fixed[i] = outputs[drawn[i]]
                    _learn(rows, fixed, places[:n_around], steps[:n_drawn], rate, values, slopes, changes)
                for i in range(n_around):
                    for k in range(size):
                        asked[k] += slopes[i, k]
                        if learns_words:
                            words[around[i], k] += slopes[i, k]
            mean = 0.0
            for t in range(n_topics):
                gain[t] = 0.0
                for k in range(size):
                    gain[t] += topics[t, k] * asked[k]
                mean += share[t] * gain[t]
            for t in range(n_topics):
                if learns_topics:
                    for k in range(size):
                        topics[t, k] += np.float32(share[t]) * asked[k]
                of_prior = rate * prior * (concentration - 1) * (1 - n_topics * share[t])
                moved = weights[d, t] + share[t] * (gain[t] - mean) + of_prior
                weights[d, t] = min(max(moved, -LARGEST_WEIGHT), LARGEST_WEIGHT)


@njit(cache=True)
def _shares(weights, share):  # type: ignore[no-untyped-def]
    """Fill in softmax(weights)."""
    total = 0.0
    for t in range(len(weights)):
        share[t] = np.exp(weights[t])
        total += share[t]
    for t in range(len(weights)):
        share[t] /= total


@njit(cache=True, nogil=True)
def _infer_mixtures(begin, end, offsets, tokens, table, model, settings, n_epochs, seeds):  # type: ignore[no-untyped-def]
    """Train the weights of documents begin .. end alone, each by itself, its numbers drawn from its own seed."""
    words, outputs, topics, weights = model
    everything = np.ones(len(words))
    state = np.empty(1, np.uint64)
    for d in range(begin, end):
        if offsets[d] == offsets[d + 1]:
            continue
        state[0] = seeds[d]
        own = np.array([0, offsets[d + 1] - offsets[d]])
        work = tokens[offsets[d] : offsets[d + 1]], own, everything, table
        _train_mixtures(work, (words, outputs, topics, weights[d : d + 1]), settings, n_epochs, state)
