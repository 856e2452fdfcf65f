"""Words that predict their context together with a mixture of topics of their document: lda2vec's loops.

Source: C. Moody, "Mixing Dirichlet topic models and word embeddings to make lda2vec", arXiv 1605.02019, 2016, equations
(1) to (6). `tokens`, `offsets`, `kept`, `table` and `state` are those of `skip_gram`.
"""

import numpy as np
from numba import njit

from textbench.featurizers._exponential import exponential
from textbench.featurizers._topical.products import aligned_zeros, dot_products
from textbench.featurizers._topical.skip_gram import (
    BLOCK,
    _learn,
    _looked_around,
    _random,
    _read_document,
    _sampled,
)

LONGEST = 5.0  # gradient of a document's mixture, as in the author's code
LARGEST_WEIGHT = 10.0  # of a document, before the softmax: the prior has no lower bound
SURE = np.float32(6.0)  # a score beyond which the probability is 0 or 1, as in `skip_gram`


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
    rows, places = np.empty((2 * window, size), np.float32), np.empty(2 * window, np.int32)
    for i in range(2 * window):
        places[i] = i
    around = np.empty(2 * window, np.int32)
    values, slopes = np.empty((2 * window, size), np.float32), np.empty((2 * window, size), np.float32)
    changes, fixed = np.empty((BLOCK, size), np.float32), np.empty((negative + 1, size), np.float32)
    steps = np.empty(negative + 1, np.int32)
    for i in range(negative + 1):
        steps[i] = i
    own, asked = np.empty(size, np.float32), np.empty(size, np.float32)
    share, gain = np.empty(n_topics, np.float64), np.empty(n_topics, np.float64)
    n_seen = 0
    for _ in range(n_epochs):
        for d in range(len(offsets) - 1):
            rate = np.float32(first_rate + (last_rate - first_rate) * n_seen / (n_epochs * len(tokens)))
            n_seen += offsets[d + 1] - offsets[d]
            _shares(weights[d], share)
            _mixed(share, topics, own)
            asked[:] = 0.0
            n_read = _read_document(tokens, offsets[d], offsets[d + 1], kept, read, state)
            for place in range(n_read):
                n_around = _looked_around(read, place, n_read, window, around, state)
                for i in range(n_around):
                    word = tokens[around[i]]
                    around[i] = word
                    for k in range(size):
                        rows[i, k] = words[word, k] + own[k]
                n_drawn = _sampled(tokens, read[place], drawn, table, negative, state)
                contexts, at = outputs, drawn
                if not learns_words:  # outputs are copied, and the copies forgotten
                    contexts, at = fixed, steps
                    for i in range(n_drawn):
                        for k in range(size):
                            fixed[i, k] = outputs[drawn[i], k]
                _learn(rows, contexts, places[:n_around], at[:n_drawn], rate, values, slopes, changes)
                for i in range(n_around):
                    for k in range(size):
                        asked[k] += slopes[i, k]
                for i in range(n_around if learns_words else 0):
                    word = around[i]
                    for k in range(size):
                        words[word, k] += slopes[i, k]
            shortened = _clip(asked, rate)
            _move_weights(weights[d], share, gain, topics, asked, rate, shortened * prior, concentration)
            if learns_topics:
                for t in range(n_topics):
                    for k in range(size):
                        topics[t, k] += np.float32(share[t]) * asked[k]


@njit(cache=True)
def _shares(weights, share):  # type: ignore[no-untyped-def]
    """Fill in softmax(weights)."""
    total = 0.0
    for t in range(len(weights)):
        share[t] = np.exp(weights[t])
        total += share[t]
    for t in range(len(weights)):
        share[t] /= total


@njit(cache=True)
def _mixed(share, topics, own):  # type: ignore[no-untyped-def]
    """Fill in the mixture of the topics, share . topics."""
    own[:] = 0.0
    for t in range(len(share)):
        for k in range(len(own)):
            own[k] += share[t] * topics[t, k]


@njit(cache=True)
def _clip(asked, rate):  # type: ignore[no-untyped-def]
    """Shorten rate times the gradient of a document's mixture to rate times `LONGEST`, if it is longer, and return how.

    The sum over a long document would otherwise throw topics so far that nothing brings them back. The prior's slope
    is shortened by the same factor, or it would outweigh all that the words ask, and leave a document one topic.
    """
    squared = 0.0
    for k in range(len(asked)):
        squared += np.float64(asked[k]) ** 2
    most = LONGEST * rate
    if squared > most * most:
        factor = np.float32(most / np.sqrt(squared))
        for k in range(len(asked)):
            asked[k] *= factor
        return factor
    return np.float32(1.0)


@njit(cache=True)
def _move_weights(weights, share, gain, topics, asked, rate, prior, concentration):  # type: ignore[no-untyped-def]
    """Move a document's weights along what all its windows ask of its mixture, and along the prior's slope."""
    n_topics, mean = len(share), 0.0
    for t in range(n_topics):
        gain[t] = 0.0
        for k in range(len(asked)):
            gain[t] += topics[t, k] * asked[k]
        mean += share[t] * gain[t]
    for t in range(n_topics):
        of_prior = rate * prior * (concentration - 1) * (1 - n_topics * share[t])
        moved = weights[t] + share[t] * (gain[t] - mean) + of_prior
        weights[t] = min(max(moved, -LARGEST_WEIGHT), LARGEST_WEIGHT)


def room_of(longest: int, size: int, n_topics: int, window: int, negative: int) -> tuple[np.ndarray, ...]:
    """Return what `_infer_mixtures` works in: made inside of its loops, the compiler's loops take longer."""
    scores = aligned_zeros((2 * window, (negative + BLOCK) // BLOCK * BLOCK))
    return (
        aligned_zeros((longest, size)),  # rows of a document's tokens
        np.arange(longest, dtype=np.int32),  # its places
        np.zeros(2 * window, dtype=np.int32),
        np.zeros(negative + 1, dtype=np.int32),
        scores,
        scores.reshape(-1),
        aligned_zeros(scores.shape[1:]),  # errors of all words around together
        aligned_zeros((size,)),
        aligned_zeros((size,)),
        np.zeros(n_topics),
        np.zeros(n_topics),
        np.zeros(1, dtype=np.uint64),
    )


@njit(cache=True, nogil=True)
def _infer_mixtures(begin, end, offsets, tokens, table, model, settings, n_epochs, seeds, room):  # type: ignore[no-untyped-def]
    """Train the weights of documents begin .. end alone, each by itself, its numbers drawn from its own seed.

    It is `_train_mixtures` of a document that learns neither words nor topics, with the same numbers drawn. As nothing
    that a window reads moves before the document has been gone through, its rows are made once a time, a window's
    scores are one product, and only the sum of what its words ask is ever made.
    """
    words, outputs, topics, weights = model
    window, negative, prior, concentration, _, _, first_rate, last_rate = settings
    rows, read, around, drawn, scores, flat, errors, asked, own, share, gain, state = room
    size = words.shape[1]
    for d in range(begin, end):
        own_tokens = tokens[offsets[d] : offsets[d + 1]]
        n = len(own_tokens)
        state[0] = seeds[d]
        for epoch in range(n_epochs if n else 0):
            rate = np.float32(first_rate + (last_rate - first_rate) * epoch / n_epochs)
            _shares(weights[d], share)
            _mixed(share, topics, own)
            for place in range(n):
                _random(state)  # with which a training decides whether a token is left out
                for k in range(size):
                    rows[place, k] = words[own_tokens[place], k] + own[k]
            asked[:] = 0.0
            for place in range(n):
                n_around = _looked_around(read, place, n, window, around, state)
                n_drawn = _sampled(own_tokens, place, drawn, table, negative, state)
                dot_products(rows, around, n_around, outputs, drawn, n_drawn, scores)
                _add_errors(scores, flat, n_around, n_drawn, errors)
                _add_rows(outputs, drawn, n_drawn, errors, asked)
            for k in range(size):
                asked[k] *= rate
            shortened = _clip(asked, rate)
            _move_weights(weights[d], share, gain, topics, asked, rate, shortened * prior, concentration)


@njit(cache=True, fastmath=True)
def _add_errors(scores, flat, n, m, errors):  # type: ignore[no-untyped-def]
    """Fill in the sum over n rows of label - probability for each of m columns, the first of which is there.

    flat: the scores as one row, in whose place probabilities are put, many at once.
    """
    width = scores.shape[1]
    for q in range(n * width):
        score = flat[q]
        probability = np.float32(1.0) / (np.float32(1.0) + exponential(min(max(-score, -SURE), SURE)))
        probability = np.float32(1.0) if score > SURE else probability
        flat[q] = np.float32(0.0) if score < -SURE else probability
    for j in range(width):
        error = np.float32(0.0)
        for i in range(n):
            error -= scores[i, j]
        errors[j] = error if j < m else np.float32(0.0)
    errors[0] += np.float32(n)


@njit(cache=True, fastmath=True)
def _add_rows(rows, at, m, errors, asked):  # type: ignore[no-untyped-def]
    """Add errors . rows[at] of m rows to `asked`; errors beyond m are zero."""
    for j in range(0, m, BLOCK):
        p, q, r, s = at[j], at[min(j + 1, m - 1)], at[min(j + 2, m - 1)], at[min(j + 3, m - 1)]
        for_p, for_q, for_r, for_s = errors[j], errors[j + 1], errors[j + 2], errors[j + 3]
        for k in range(len(asked)):
            asked[k] += for_p * rows[p, k] + for_q * rows[q, k] + for_r * rows[r, k] + for_s * rows[s, k]
