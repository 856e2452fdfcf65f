"""NTSG: without topics it is skip-gram, its steps follow the slope, one topic is a bias of each context."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.topical import (
    DOCUMENTS,
    KNOWN,
    N_DIMENSIONS,
    N_TERMS,
    N_TOPICS,
    NEEDS,
    NORMS,
    TOPICS,
    VECTORS,
    slope_by_differences,
)
from textbench.featurizers import ntsg
from textbench.featurizers._topical import skip_gram, tensor_steps
from textbench.featurizers._topical.embeddings import read_topics
from textbench.featurizers._topical.tensor import TensorModel
from textbench.featurizers._topical.token_topics import TokenTopics

READ = read_topics(DOCUMENTS, KNOWN, TOPICS, N_TERMS)
V, K = len(KNOWN), N_TOPICS


def model_of(n_slices: int, size: int, rank: int, *, has_tensor: bool = True) -> TensorModel:
    """A model none of whose numbers is zero."""
    rng = np.random.default_rng(3)
    words, topics = rng.normal(0, 0.5, (V, size)), rng.normal(0, 0.5, (K, size))
    start = TensorModel.start(words, topics, n_slices, rank, has_tensor=has_tensor, rng=rng)
    start.contexts[:] = rng.normal(0, 0.4, start.contexts.shape)
    start.biases[:] = rng.normal(0, 0.4, start.biases.shape)
    return start


def test_without_topics_it_is_skip_gram() -> None:
    """One linear slice, topics and biases at zero: the word half of the contexts are output vectors.

    The stream of numbers is the same to the bit, vectors to a few last places of them: these loops have an exponential
    of their own, make a step of a target as rate - rate p, not as rate (1 - p), and add up products of twice the width.
    """
    rng = np.random.default_rng(0)
    words = rng.normal(0, 0.1, (V, 64)).astype(np.float32)
    model = TensorModel.start(words, np.zeros((K, 64)), 1, 2, has_tensor=False, rng=rng)
    state, same = np.array([7], np.uint64), np.array([7], np.uint64)
    model.train(READ, 4, 5, 3, state, is_tanh=False, has_tensor=False, has_bias=False)
    outputs = np.zeros((V, 64), np.float32)
    skip_gram.train_rows(READ.reading, READ.reading.tokens[:, None], words, outputs, 4, 5, 3, same)
    assert state == same
    np.testing.assert_allclose(model.words, words, atol=1e-7, rtol=0)
    np.testing.assert_allclose(model.contexts[:, 0, :64], outputs, atol=1e-7, rtol=0)
    assert not model.topics.any() and not model.contexts[:, 0, 64:].any()


def log_likelihood(
    arrays: list[np.ndarray], pairs: list[tuple[int, int]], drawn: list[int], tanh: bool
) -> float:
    """Of drawn[0] around (word, topic) pairs, and of the others not, written out."""
    words, topics, contexts, biases, left, right, mixture = arrays
    total = 0.0
    for word, topic in pairs:
        w, t = words[word], topics[topic]
        for number, c in enumerate(drawn):
            a = np.array(
                [
                    w @ left[s].T @ right[s] @ t + contexts[c, s] @ np.concatenate([w, t]) + biases[c, s]
                    for s in range(len(mixture))
                ]
            )
            score = mixture @ (np.tanh(a) if tanh else a)
            total -= np.logaddexp(0, -score if number == 0 else score)
    return total


@pytest.mark.parametrize(("n_slices", "tanh"), [(1, False), (3, True)])
def test_a_step_follows_the_slope(n_slices: int, tanh: bool) -> None:
    size, rank, rate = 4, 2, 1e-2
    model = model_of(n_slices, size, rank)
    tokens, topics = np.array([0, 3, 5, 8], np.int32), np.array([0, 2, 1, 0], np.int32)
    drawn = np.array([9, 1, 2, 7, 11, 12], np.int32)
    before = [array.astype(np.float64) for array in model.arrays]
    pairs = list(zip(tokens.tolist(), topics.tolist(), strict=True))
    flags = (tanh, True, True, tanh)
    tensor_steps._step_tensor(
        tokens,
        topics,
        np.arange(4, dtype=np.int32),
        drawn,
        model.arrays,
        np.float32(rate),
        flags,
        tensor_steps.room_of(model.arrays, 2),
    )
    for number, (old, new) in enumerate(zip(before, model.arrays, strict=True)):

        def at(array: np.ndarray, number: int = number) -> float:
            arrays = [*before[:number], array, *before[number + 1 :]]
            return log_likelihood(arrays, pairs, drawn.tolist(), tanh)

        expected = 0 * old if number == 6 and not tanh else slope_by_differences(at, old)
        np.testing.assert_allclose((new - old) / rate, expected, rtol=1e-3, atol=3e-4)


def test_slices_in_another_order_give_the_same_words() -> None:
    found = []
    for order in ([0, 1, 2], [2, 0, 1]):
        start = model_of(3, 4, 2)
        own = start.contexts[:, order].copy()
        start = replace(
            start,
            contexts=own,
            biases=start.biases[:, order].copy(),
            left=start.left[order].copy(),
            right=start.right[order].copy(),
            mixture=np.array([0.5, 0.6, 0.7], np.float32)[order].copy(),
        )
        start.train(READ, 3, 4, 2, np.array([1], np.uint64), is_tanh=True, has_tensor=True)
        found.append((start.words, start.topics))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def scores(model: TensorModel, topic: np.ndarray, *, has_tensor: bool) -> np.ndarray:
    """The score of each word (rows) in a topic with each context: read off what a step of rate 1 does to its bias.

    A bias of zero becomes label - probability; the label is 1 of the first context alone.
    """
    one, every, found = np.zeros(1, np.int32), np.arange(V, dtype=np.int32), []
    for word in range(V):
        words, _, contexts, _, *others = (array.copy() for array in model.arrays)
        biases = np.zeros((V, 1), np.float32)
        arrays = (words, topic[None].copy(), contexts, biases, *others)
        tensor_steps._step_tensor(
            np.array([word], np.int32),
            one,
            one,
            every,
            arrays,
            np.float32(1),
            (False, has_tensor, True, False),
            tensor_steps.room_of(arrays, 1),
        )
        probability = (every == 0) - biases[:, 0].astype(np.float64)
        found.append(np.log(probability / (1 - probability)))
    return np.array(found)


@pytest.mark.parametrize("has_tensor", [False, True])
def test_the_one_topic_is_a_bias_of_each_context(has_tensor: bool) -> None:
    """Its vector adds V_c . t to a context's score, whatever the word; a tensor adds what depends on the word."""
    one = read_topics(DOCUMENTS, KNOWN, TokenTopics(TOPICS.topics * 0, 1, 0.5, 0.01), N_TERMS)
    words, rng = VECTORS[KNOWN] * NORMS[KNOWN, None], np.random.default_rng(0)
    model = TensorModel.start(words, np.ones((1, N_DIMENSIONS)), 1, 1, has_tensor=has_tensor, rng=rng)
    state = np.array([1], np.uint64)
    model.train(one, 3, 4, 20, state, is_tanh=False, has_tensor=has_tensor, has_bias=False)
    (topic,) = model.topics
    biases = model.contexts[:, 0, N_DIMENSIONS:] @ topic
    assert np.ptp(biases) > 0.5
    with_topic, without = (scores(model, t, has_tensor=has_tensor) for t in (topic, 0 * topic))
    np.testing.assert_allclose(without, model.words @ model.contexts[:, 0, :N_DIMENSIONS].T, atol=1e-5)
    of_words = with_topic - without - biases
    if has_tensor:
        assert np.ptp(of_words, axis=0).min() > 0.1
    else:
        np.testing.assert_allclose(of_words, 0, atol=1e-5)


def test_a_topic_at_zero_without_a_tensor_stays_there() -> None:
    one = read_topics(DOCUMENTS, KNOWN, TokenTopics(TOPICS.topics * 0, 1, 0.5, 0.01), N_TERMS)
    words, rng = VECTORS[KNOWN] * NORMS[KNOWN, None], np.random.default_rng(0)
    without = TensorModel.start(words, np.zeros((1, N_DIMENSIONS)), 1, 1, has_tensor=False, rng=rng)
    without.train(one, 3, 4, 2, np.array([1], np.uint64), is_tanh=False, has_tensor=False)
    assert not without.topics.any() and without.biases.any()


def fitted(**params: Any) -> ntsg.NeuralTensorSkipGram:
    given = {"epochs": 2, "rank": 3, "random_state": 0, **params}
    return ntsg.build(**given).fit(DOCUMENTS, **{**NEEDS, **given.pop("needs", {})})


@pytest.mark.parametrize("variant", [1, 2, 3])
def test_every_variant_moves_words_and_topics_and_repeats(variant: int) -> None:
    method = fitted(variant=variant)
    found = method.transform(DOCUMENTS)
    assert found.shape == (len(DOCUMENTS), 2 * N_DIMENSIONS) and np.isfinite(found).all()
    assert not np.allclose(method.vectors_, VECTORS[KNOWN] * NORMS[KNOWN, None], atol=1e-4)
    assert found.tobytes() == fitted(variant=variant).transform(DOCUMENTS).tobytes()
    assert np.linalg.matrix_rank(found[:, N_DIMENSIONS:], tol=1e-5) <= K


def test_presets_can_be_overruled() -> None:
    same = fitted(variant=3, tensor=True, n_slices=2, activation="tanh").transform(DOCUMENTS)
    np.testing.assert_array_equal(same, fitted(variant=2).transform(DOCUMENTS))


@pytest.mark.parametrize(
    "params", [{"variant": 4}, {"n_slices": 0}, {"activation": "relu"}, {"rank": 0}, {"tensor": 1}]
)
def test_what_a_parameter_does_not_take_is_named(params: dict) -> None:
    with pytest.raises(ValueError, match=f"got {next(iter(params.values()))!r}"):
        fitted(**params)


def test_the_errors_of_scores_of_any_size() -> None:
    flat, whole = np.array([-256 * np.log(2), -89, 89, 500], dtype=np.float32), np.empty(4, dtype=np.float32)
    one, asked = np.ones(1, dtype=np.float32), np.zeros(1, dtype=np.float32)
    tensor_steps._errors_of(flat, whole, 1, 4, False, one, asked, np.float32(0.5), False)
    assert flat.tolist() == [0, 0, -0.5, -0.5]
