"""Skip-gram whose negative samples are shared by the windows of a block, on one core or two: the loops.

The windows of a few words that follow one another are learned from at once, all changes from the values before them:
the words around predict the words of the block in whose windows they are, and are told from `negative` samples, once
for every such pair. So a pair has as many negative samples as it would by itself, but the pairs of a block have the
same, and the work is three small matrix products.

Two threads have half of the dimensions each. A score is the sum of both halves', and all else is worked out by both;
one thread has both halves, and makes the same sums: the same bits.

Source: S. Ji, N. Satish, S. Li and P. Dubey, "Parallelizing word2vec in shared and distributed memory", IEEE
Transactions on Parallel and Distributed Systems 30 (2019), section 3.1, whose samples are shared by one window;
T. Mikolov, I. Sutskever, K. Chen, G. Corrado and J. Dean, "Distributed representations of words and phrases and their
compositionality", NIPS 2013, section 2.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit
from threadpoolctl import threadpool_limits

from textbench.featurizers._exponential import exponential
from textbench.featurizers._topical.skip_gram import FIRST_RATE, LAST_RATE, KnownTokens, _random
from textbench.tasks.rendezvous import meet

# Pairs, on average, that have a negative sample at once. All steps of a block are of the values before it: on 20
# Newsgroups with four times as many vectors grow without bound, with twice as many the longest are twice as long.
MOST_PAIRS = 24
HALVES = 2
SURE = np.float32(6.0)  # a score beyond which the probability is 0 or 1
ONE = np.float32(1.0)
CACHE_LINE = 8  # in numbers of 64 bits


def train_words(
    reading: KnownTokens,
    words: np.ndarray,
    outputs: np.ndarray,
    window: int,
    negative: int,
    n_epochs: int,
    state: int,
    n_threads: int = 1,
    together: int | None = None,
) -> int:
    """Train words and outputs in place, float32 (n_known, n_dimensions); return how many tokens were not left out.

    state: where the stream of random numbers begins, below 2 ** 64; together: how many windows are a block, by default
    `windows_of_block(window)`. More than two threads are as good as two.
    """
    together = together or windows_of_block(window)
    size = words.shape[1]
    width = -(-size // HALVES)
    halves = np.zeros((2, HALVES, len(words), width), dtype=np.float32)
    for rows, into in zip((words, outputs), halves, strict=True):
        for half in range(HALVES):
            own = rows[:, half * width : (half + 1) * width]
            into[half, :, : own.shape[1]] = own
    most = (2 * window + together) * (together + negative)
    scores = np.zeros((2, HALVES, most), dtype=np.float32)  # of a block and of the one before it
    arrived = np.zeros((HALVES, CACHE_LINE), dtype=np.int64)
    work = reading.tokens, reading.offsets, reading.kept, reading.table

    def train(own: tuple[int, int]) -> int:
        stream = np.array([state], dtype=np.uint64)
        settings = window, negative, n_epochs, together
        try:
            return int(_train(work, halves[0], halves[1], settings, stream, scores, arrived, *own))
        finally:  # nobody waits for a thread that failed
            arrived[own[0]] = np.iinfo(np.int64).max

    parts = [(half, half + 1) for half in range(HALVES)] if n_threads > 1 else [(0, HALVES)]
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(len(parts)) as pool:
        n_trained, *_ = pool.map(train, parts)
    for rows, trained in zip((words, outputs), halves, strict=True):
        rows[:] = np.hstack(trained)[:, :size]
    return n_trained


def windows_of_block(window: int) -> int:
    """Return how many windows are learned from at once: one has window + 1 words around on average."""
    return max(1, MOST_PAIRS // (window + 1))


@njit(cache=True, nogil=True)
def _train(work, words, outputs, settings, state, scores, arrived, first, last):  # type: ignore[no-untyped-def]
    """Train the halves first .. last of `words` and `outputs`, (HALVES, n_known, width), in place."""
    tokens, offsets, kept, table = work
    window, negative, n_epochs, together = settings
    width = words.shape[2]
    most, n_outputs = 2 * window + together, together + negative
    read, drawn = np.empty(len(tokens), np.int32), np.empty(n_outputs, np.int32)  # read: of a document
    pairs, errors = np.empty(most * n_outputs, np.float32), np.empty(most * n_outputs, np.float32)
    values, slopes = np.empty((2, most, width), np.float32), np.empty((most, width), np.float32)
    contexts, changes = np.empty((2, n_outputs, width), np.float32), np.empty((n_outputs, width), np.float32)
    n_trained = n_seen = n_blocks = 0
    for _ in range(n_epochs):
        for d in range(len(offsets) - 1):
            rate = np.float32(FIRST_RATE + (LAST_RATE - FIRST_RATE) * n_seen / (n_epochs * len(tokens)))
            n_seen += offsets[d + 1] - offsets[d]
            n_read = 0
            for token in tokens[offsets[d] : offsets[d + 1]]:
                if (_random(state) >> np.uint64(11)) < kept[token] * 2.0**53:
                    read[n_read] = token
                    n_read += 1
            n_trained += n_read
            for start in range(0, n_read, together):
                end = min(start + together, n_read)
                low, high = _draw(read[:n_read], start, end, window, negative, table, drawn, pairs, state)
                n, m = high - low, end - start + negative
                own = scores[n_blocks % 2]
                for half in range(first, last):
                    x, y = values[half, :n], contexts[half, :m]
                    _gather(words[half], read[low:high], x)
                    _gather(outputs[half], drawn[:m], y)
                    np.dot(x, y.T, own[half, : n * m].reshape(n, m))
                n_blocks += 1
                if last - first < HALVES:
                    meet(arrived, first, n_blocks)
                _errors(own[0], own[1], pairs, n, m, end - start, rate, errors)
                error = errors[: n * m].reshape(n, m)
                for half in range(first, last):
                    np.dot(error, contexts[half, :m], slopes[:n])
                    np.dot(error.T, values[half, :n], changes[:m])
                    _add(words[half], read[low:high], slopes)
                    _add(outputs[half], drawn[:m], changes)
    return n_trained


@njit(cache=True)
def _draw(read, start, end, window, negative, table, drawn, pairs, state):  # type: ignore[no-untyped-def]
    """Fill in `drawn`, the words start .. end and negative samples, and how often each meets each word around.

    The words around stand in low .. high, which are returned; `pairs` is (high - low, len(drawn)), row after row.
    """
    n_there = end - start
    m = n_there + negative
    reaches = np.empty(n_there, np.int64)
    low, high = start, end
    for place in range(start, end):
        reach = window - np.int64(_random(state) % np.uint64(window))
        reaches[place - start] = reach
        low, high = min(low, max(0, place - reach)), max(high, min(len(read), place + reach + 1))
        drawn[place - start] = read[place]
    for j in range(n_there, m):
        drawn[j] = table[_random(state) % np.uint64(len(table))]
    pairs[: (high - low) * m] = np.float32(0.0)
    for place in range(start, end):
        reach = reaches[place - start]
        for other in range(max(0, place - reach), min(len(read), place + reach + 1)):
            if other != place:
                row = pairs[(other - low) * m :]
                row[place - start] = ONE
                for j in range(n_there, m):
                    row[j] += ONE if drawn[j] != read[place] else np.float32(0.0)
    return low, high


@njit(cache=True)
def _gather(rows, at, out):  # type: ignore[no-untyped-def]
    """Fill in out[i] = rows[at[i]]."""
    for i in range(len(at)):
        row, into = rows[at[i]], out[i]
        for k in range(len(into)):
            into[k] = row[k]


@njit(cache=True)
def _add(rows, at, changes):  # type: ignore[no-untyped-def]
    """Add changes[i] to rows[at[i]]."""
    for i in range(len(at)):
        row, change = rows[at[i]], changes[i]
        for k in range(len(change)):
            row[k] += change[k]


@njit(cache=True, fastmath=True, error_model="numpy")
def _errors(one, other, pairs, n, m, n_there, rate, errors):  # type: ignore[no-untyped-def]
    """Fill in pairs * rate * (label - probability) of n words and m outputs, the first `n_there` of which are there.

    A score is the sum of `one` and `other`; far from 0 the probability is 0 or 1.
    """
    for q in range(n * m):
        score = one[q] + other[q]
        probability = ONE / (ONE + exponential(min(max(-score, -SURE), SURE)))
        probability = ONE if score > SURE else probability
        probability = np.float32(0.0) if score < -SURE else probability
        errors[q] = -probability * pairs[q] * rate
    for i in range(n):
        for j in range(n_there):
            errors[i * m + j] += pairs[i * m + j] * rate
