"""Steps of words and topics that predict their context through a tensor: NTSG's loops."""

from typing import Any

import numpy as np
from numba import njit

from textbench.featurizers._exponential import exponential
from textbench.featurizers._topical.products import add_products, aligned_zeros, dot_products
from textbench.featurizers._topical.skip_gram import (
    BLOCK,
    FIRST_RATE,
    LAST_RATE,
    _looked_around,
    _read_document,
    _sampled,
)

STEEPEST = 5.0  # slope along which a step with a tensor goes its whole length
ONE = np.float32(1.0)
SURE = np.float32(6.0)  # a score beyond which the probability is 0 or 1, as in `skip_gram`
SERIES = np.float32(0.0625)  # square below which the hyperbolic tangent is its series
T3, T5, T7 = np.float32(-1 / 3), np.float32(2 / 15), np.float32(-17 / 315)


@njit(cache=True)
def _train_tensor(work, model, settings, n_epochs, state, room):  # type: ignore[no-untyped-def]
    """Train words, topics, contexts, biases, tensor (left, right) and mixture in place; `_step_tensor` has a step."""
    tokens, topics, offsets, kept, table = work
    window, negative, flags = settings
    read = np.empty(len(tokens), np.int32)
    around, drawn = np.empty(2 * window, np.int32), np.empty(negative + 1, np.int32)
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


def room_of(model: tuple[np.ndarray, ...], window: int) -> tuple[Any, ...]:
    """Return what `_step_tensor` works in, and its contexts and tensor as rows.

    model: what `_train_tensor` trains; of the tensor left and right are (n_slices, rank, size).
    It is made outside of the loops and handed to them: made inside, the compiler's loops take twice as long.
    """
    _, _, contexts, _, left, right, _ = model
    n_slices, rank, size = left.shape
    most, n_ranks, n_contexts = 2 * window, n_slices * rank, n_slices * BLOCK
    wide = (max(n_ranks, n_contexts, most) + 3) // 4 * 4
    rows = contexts.reshape(-1, 2 * size), left.reshape(-1, size), right.reshape(-1, size)
    numbers = np.arange(wide, dtype=np.int32)
    of_tokens = aligned_zeros((most, 2 * size)), aligned_zeros((most, 2 * size))  # values and slopes
    of_block = (
        aligned_zeros((most, wide)),  # scores of tokens and contexts
        aligned_zeros((most, wide)),  # errors of tokens and contexts
        aligned_zeros((n_contexts, wide)),  # errors of contexts and tokens
        aligned_zeros((n_contexts * most,)),  # scores, then errors, one after another
        aligned_zeros((BLOCK * most,)),  # scores of all slices together
    )
    of_tensor = (
        aligned_zeros((most, n_slices)),  # what it adds to scores
        aligned_zeros((most, n_slices)),  # errors of all contexts together
        aligned_zeros((2, most, wide)),  # the factors w' P and Q t
        aligned_zeros((2, most, wide)),  # what they are asked for
        aligned_zeros((n_ranks, wide)),  # the same of ranks and tokens, as long as the step is
        aligned_zeros((most, wide)),  # products of the tokens' rows
        aligned_zeros((most, size)),  # slopes of tokens
    )
    # Of words, of topics, of rows of contexts.
    places = tuple(np.zeros(n, dtype=np.int32) for n in (most, most, n_contexts))
    return rows, of_tokens, of_block, of_tensor, (numbers, *places), aligned_zeros((n_slices,))


@njit(cache=True)
def _step_tensor(tokens, topics, around, drawn, model, rate, flags, room):  # type: ignore[no-untyped-def]
    """One step for the tokens around a place, of the score u . f(w' P Q t + V_c (w, t) + b_c); drawn[0] stands there.

    All changes are of the values before the step, but that a block of four contexts changes before the next.
    """
    words, vectors, _, biases, _, _, mixture = model
    is_tanh, has_tensor, has_bias, learns_mixture = flags
    (contexts, lefts, rights), (values, slopes), of_block, of_tensor, places, to_mixture = room
    numbers, word_at, topic_at, at = places
    scores, errors, by_context, flat, whole = of_block
    tensor, summed = of_tensor[0], of_tensor[1]
    size, n_slices, n = words.shape[1], len(mixture), len(around)
    for i in range(n):
        word_at[i], topic_at[i] = tokens[around[i]], topics[around[i]]
    _gather(words, vectors, word_at, topic_at, n, values, slopes)
    for i in range(n):
        for s in range(n_slices):
            tensor[i, s] = summed[i, s] = 0.0
    if has_tensor:
        _multiply(words, vectors, word_at, topic_at, n, lefts, rights, numbers, of_tensor)
    for s in range(n_slices):
        to_mixture[s] = 0.0
    for first in range(0, len(drawn), BLOCK):
        n_drawn = min(BLOCK, len(drawn) - first)
        n_rows = n_drawn * n_slices
        for s in range(n_slices):
            for m in range(n_drawn):
                at[s * n_drawn + m] = drawn[first + m] * n_slices + s
        dot_products(values, numbers, n, contexts, at, n_rows, scores)
        for s in range(n_slices):
            for m in range(n_drawn):
                bias = biases[drawn[first + m], s]
                for i in range(n):
                    flat[(s * n_drawn + m) * n + i] = scores[i, s * n_drawn + m] + tensor[i, s] + bias
        _errors_of(flat, whole, n, n_drawn, first == 0, mixture, to_mixture, rate, is_tanh)
        for s in range(n_slices):
            for m in range(n_drawn):
                j, to_bias = s * n_drawn + m, np.float32(0.0)
                for i in range(n):
                    error = flat[j * n + i]
                    errors[i, j] = by_context[j, i] = error
                    summed[i, s] += error
                    to_bias += error
                if has_bias:
                    biases[drawn[first + m], s] += to_bias
        add_products(slopes, numbers, n, errors, contexts, at, n_rows)
        add_products(contexts, at, n_rows, by_context, values, numbers, n)
    if has_tensor:
        _move_tensor(model, slopes, n, lefts, rights, numbers, word_at, topic_at, of_tensor, rate)
    for i in range(n):
        word, topic, slope, slope_of_topic = word_at[i], topic_at[i], slopes[i, :size], slopes[i, size:]
        for k in range(size):
            words[word, k] += slope[k]
        for k in range(size):
            vectors[topic, k] += slope_of_topic[k]
    if learns_mixture:
        for s in range(n_slices):
            mixture[s] += to_mixture[s]


@njit(cache=True)
def _gather(words, vectors, word_at, topic_at, n, values, slopes):  # type: ignore[no-untyped-def]
    """Fill in the values of n tokens, word beside topic, and zeros as their slopes."""
    size = words.shape[1]
    for i in range(n):
        word, topic, of_word, of_topic = word_at[i], topic_at[i], values[i, :size], values[i, size:]
        for k in range(size):
            of_word[k] = words[word, k]
        for k in range(size):
            of_topic[k] = vectors[topic, k]
        for k in range(2 * size):
            slopes[i, k] = 0.0


@njit(cache=True, fastmath=True)
def _errors_of(flat, whole, n, n_drawn, has_first, mixture, to_mixture, rate, is_tanh):  # type: ignore[no-untyped-def]
    """Put errors in the place of scores, of each slice, context and token; add what the mixture is asked for.

    flat: (n_slices * n_drawn * n,). Of the contexts the first stands there, if it is of the block.
    """
    size = n_drawn * n
    n_slices = len(mixture)
    if is_tanh:
        for q in range(n_slices * size):
            flat[q] = _tanh(flat[q])
    for q in range(size):
        whole[q] = 0.0
    for s in range(n_slices):
        own = flat[s * size : (s + 1) * size]
        for q in range(size):
            whole[q] += mixture[s] * own[q]
    for q in range(size):
        score = whole[q]
        probability = ONE / (ONE + exponential(min(max(-score, -SURE), SURE)))
        probability = ONE if score > SURE else probability
        whole[q] = np.float32(0.0) if score < -SURE else -probability * rate
    for q in range(n if has_first else 0):
        whole[q] += rate
    for s in range(n_slices):
        own, asked = flat[s * size : (s + 1) * size], np.float32(0.0)
        for q in range(size):
            asked += whole[q] * own[q]
            error = whole[q] * mixture[s]
            error = error * (ONE - own[q] * own[q]) if is_tanh else error
            own[q] = min(max(error, -rate), rate)
        to_mixture[s] += asked


@njit(cache=True, fastmath={"contract", "reassoc", "nsz"})
def _tanh(x):  # type: ignore[no-untyped-def]
    """The hyperbolic tangent to 2e-7, by its series where a difference of exponentials would lose digits."""
    y = x * x
    small = x * (ONE + y * (T3 + y * (T5 + y * T7)))
    e = exponential(np.float32(-2.0) * abs(x))
    large = (ONE - e) / (ONE + e)
    return small if y < SERIES else (large if x > 0 else -large)


@njit(cache=True)
def _multiply(words, vectors, word_at, topic_at, n, lefts, rights, numbers, of_tensor):  # type: ignore[no-untyped-def]
    """Add w' P Q t of each of n tokens and slice to `tensor`; keep the factors w' P and Q t in `halves`."""
    tensor, _, halves, _, pulled, _, _ = of_tensor
    n_slices, n_ranks = tensor.shape[1], len(pulled)
    rank = n_ranks // n_slices
    for side in range(2):  # one call, which the compiler copies once
        rows, own, factors = (words, word_at, lefts) if side == 0 else (vectors, topic_at, rights)
        dot_products(rows, own, n, factors, numbers, n_ranks, halves[side])
    for i in range(n):
        for s in range(n_slices):
            for j in range(s * rank, (s + 1) * rank):
                tensor[i, s] += halves[0, i, j] * halves[1, i, j]


@njit(cache=True)
def _move_tensor(model, slopes, n, lefts, rights, numbers, word_at, topic_at, of_tensor, rate):  # type: ignore[no-untyped-def]
    """Move P and Q by the errors `summed` of n tokens, and add what they ask of the tokens to `slopes`.

    What is multiplied grows fast: no step is longer than STEEPEST.
    """
    words, vectors = model[0], model[1]
    _, summed, halves, pulls, pulled, gram, to_tokens = of_tensor
    n_slices, n_ranks, size = summed.shape[1], len(pulled), words.shape[1]
    rank = n_ranks // n_slices
    for i in range(n):
        for s in range(n_slices):
            for j in range(s * rank, (s + 1) * rank):
                pulls[0, i, j] = halves[1, i, j] * summed[i, s]
                pulls[1, i, j] = halves[0, i, j] * summed[i, s]
    for side in range(2):
        for i in range(n):
            for k in range(size):
                to_tokens[i, k] = 0.0
        add_products(to_tokens, numbers, n, pulls[side], lefts if side == 0 else rights, numbers, n_ranks)
        for i in range(n):
            slope = slopes[i, side * size : (side + 1) * size]
            for k in range(size):
                slope[k] += to_tokens[i, k]
    for side in range(2):
        rows, own = (words, word_at) if side == 0 else (vectors, topic_at)
        dot_products(rows, own, n, rows, own, n, gram)
        shrink = _shrunk(_square(pulls[side], gram, n, n_ranks), rate)
        for i in range(n):
            for j in range(n_ranks):
                pulled[j, i] = shrink * pulls[side, i, j]
        add_products(lefts if side == 0 else rights, numbers, n_ranks, pulled, rows, own, n)
    for i in range(n):
        shrink = _shrunk(_squared(slopes[i]), rate)
        for k in range(2 * size):
            slopes[i, k] *= shrink


@njit(cache=True, fastmath=True)
def _square(pulls, gram, n, n_ranks):  # type: ignore[no-untyped-def]
    """The squared length of all of sum_i pulls_ij row_i together, of the products `gram` of the n rows."""
    found = np.float32(0.0)
    for i in range(n):
        for other in range(n):
            both = np.float32(0.0)
            for j in range(n_ranks):
                both += pulls[i, j] * pulls[other, j]
            found += both * gram[i, other]
    return found


@njit(cache=True, fastmath=True)
def _squared(row):  # type: ignore[no-untyped-def]
    found = np.float32(0.0)
    for k in range(len(row)):
        found += row[k] * row[k]
    return found


@njit(cache=True)
def _shrunk(square, rate):  # type: ignore[no-untyped-def]
    """What a step of this squared length is multiplied by, so that its slope is no steeper than STEEPEST."""
    longest = STEEPEST * rate
    return np.float32(longest / np.sqrt(square)) if square > longest * longest else np.float32(1.0)
