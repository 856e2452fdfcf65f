"""lda2vec: without topics it is skip-gram to the bit, weights follow the slope, mixtures sum to 1, one topic is all."""

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
    ONE_TOPIC,
    TOPICS,
    slope_by_differences,
)
from textbench.featurizers import _kernels as kernels
from textbench.featurizers import lda2vec
from textbench.featurizers._topical import mixtures, skip_gram
from textbench.featurizers._topical.embeddings import read_topics
from textbench.featurizers._topical.token_topics import TokenTopics

READ = read_topics(DOCUMENTS, KNOWN, TOPICS, N_TERMS).reading
V, K = len(KNOWN), N_TOPICS
RNG = np.random.default_rng(8)


def settings(prior: float, learns_words: bool, learns_topics: bool, rates: tuple = (0.025, 0.0001)) -> tuple:
    return (4, 5, prior, 1 / K, learns_words, learns_topics, *rates)


def test_without_topics_it_is_skip_gram_to_the_bit() -> None:
    words = RNG.normal(0, 0.1, (V, 10)).astype(np.float32)
    outputs = np.zeros_like(words)
    weights = RNG.normal(size=(len(DOCUMENTS), K))
    before = weights.copy()
    mine, own = words.copy(), outputs.copy()
    work = READ.tokens, READ.offsets, READ.kept, READ.table
    model = mine, own, np.zeros((K, 10), np.float32), weights
    mixtures._train_mixtures(work, model, settings(0.0, True, False), 3, np.array([7], np.uint64))
    skip_gram.train_rows(READ, READ.tokens[:, None], words, outputs, 4, 5, 3, np.array([7], np.uint64))
    assert mine.tobytes() == words.tobytes() and own.tobytes() == outputs.tobytes()
    np.testing.assert_array_equal(weights, before)  # nothing is asked of them, and there is no prior


@pytest.mark.parametrize("scale", [1, 30])
def test_weights_and_topics_follow_the_slope(scale: float) -> None:
    """One window of two words: every pair meets, and negative samples are too rare to be drawn.

    Of outputs 30 times as large, the mixture's gradient is longer than allowed: all of the step is shortened alike.
    """
    words = RNG.normal(0, 0.5 / scale, (2, 4)).astype(np.float32)
    outputs = RNG.normal(0, 0.5 * scale, (2, 4)).astype(np.float32)
    topics, weights = RNG.normal(0, 0.5 / scale, (K, 4)).astype(np.float32), RNG.normal(size=(1, K))
    tokens, rate, prior = np.array([0, 1], np.int32), 1e-3 / scale**2, 0.7
    work = tokens, np.array([0, 2]), np.ones(2), np.array([0], np.int32)  # samples are of word 0
    state = np.array([3], np.uint64)

    def of_words(e: np.ndarray) -> float:
        one, two = (words[i].astype(float) + e for i in (0, 1))
        positive = -np.logaddexp(0, -two @ outputs[0]) - np.logaddexp(0, -one @ outputs[1])
        sampled = -5 * np.logaddexp(0, one @ outputs[0])  # what word 1 is told from, around it word 0
        return float(positive + sampled)

    def shares(a: np.ndarray) -> np.ndarray:
        return np.exp(a[0]) / np.exp(a[0]).sum()

    def likelihood(a: np.ndarray) -> float:
        return of_words(shares(a) @ topics) + prior * (1 / K - 1) * np.log(shares(a)).sum()

    asked = slope_by_differences(of_words, shares(weights) @ topics.astype(float))
    shortened = min(1, mixtures.LONGEST / np.linalg.norm(asked))
    assert (shortened < 1) == (scale > 1)
    expected = shortened * slope_by_differences(likelihood, weights.copy())
    expected_topics = shortened * np.outer(shares(weights), asked)
    moved, shifted = weights.copy(), topics.copy()
    given = (1, 5, prior, 1 / K, False, True, rate, rate)
    mixtures._train_mixtures(work, (words, outputs, shifted, moved), given, 1, state)
    np.testing.assert_allclose((moved - weights) / rate, expected, rtol=2e-2, atol=2e-3)
    np.testing.assert_allclose((shifted - topics) / rate, expected_topics, rtol=2e-2, atol=2e-3)


def test_inference_is_training_that_learns_no_words() -> None:
    """Of one document the same numbers are drawn: scores and errors differ by rounding alone."""
    words, outputs = (RNG.normal(0, 0.5, (V, 10)).astype(np.float32) for _ in "12")
    topics, weights = RNG.normal(0, 0.5, (K, 10)).astype(np.float32), RNG.normal(size=(1, K))
    tokens, offsets = READ.tokens[: READ.offsets[1]], READ.offsets[:2]
    trained, inferred, given = weights.copy(), weights.copy(), settings(0.3, False, False)
    work = tokens, offsets, np.ones(V), READ.table
    mixtures._train_mixtures(work, (words, outputs, topics, trained), given, 4, np.array([9], np.uint64))
    model, room = (words, outputs, topics, inferred), mixtures.room_of(len(tokens), 10, K, *given[:2])
    seeds = np.array([9], np.uint64)
    mixtures._infer_mixtures(0, 1, offsets, tokens, READ.table, model, given, 4, seeds, room)
    np.testing.assert_allclose(inferred, trained, atol=1e-5)
    assert np.abs(inferred - weights).max() > 1e-2


def fitted(needs: Any = NEEDS, **params: Any) -> lda2vec.Lda2Vec:
    given = {"epochs": 2, "infer_epochs": 3, "random_state": 0, **params}
    return lda2vec.build(**given).fit(DOCUMENTS, **needs)


@pytest.mark.parametrize("start", ["lda", "random"])
def test_mixtures_sum_to_one_and_vectors_are_theirs(start: str) -> None:
    method = fitted(start=start)
    p = fitted(start=start, features="proportions").transform(DOCUMENTS)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(method.transform(DOCUMENTS), p @ method.topic_vectors_, atol=1e-5)
    assert np.linalg.matrix_rank(method.transform(DOCUMENTS), tol=1e-5) <= K


def test_the_one_topic_is_every_document() -> None:
    method = fitted({**NEEDS, "token_topics": ONE_TOPIC})
    found = method.transform(DOCUMENTS)
    np.testing.assert_allclose(found, np.repeat(method.topic_vectors_, len(found), axis=0), atol=1e-6)


def test_a_great_prior_makes_mixtures_sparser_and_weights_stay_bounded() -> None:
    dense, sparse = (
        fitted(prior=prior, features="proportions").transform(DOCUMENTS) for prior in (0.0, 200.0)
    )
    assert sparse.max(axis=1).mean() > dense.max(axis=1).mean()
    assert np.isfinite(sparse).all()


def test_inference_leaves_the_model_alone_and_does_not_depend_on_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    method = fitted()
    before = [array.copy() for array in (method.vectors_, method.output_vectors_, method.topic_vectors_)]
    found = []
    for n in (1, 4):
        monkeypatch.setattr(kernels, "n_cores", lambda n=n: n)
        found.append(method.transform(DOCUMENTS).tobytes())
    assert found[0] == found[1]
    for old, new in zip(
        before, (method.vectors_, method.output_vectors_, method.topic_vectors_), strict=True
    ):
        np.testing.assert_array_equal(old, new)


def test_more_topics_than_documents_are_finite_and_impossible_values_are_named() -> None:
    many = TokenTopics(TOPICS.topics, 60, 0.5, 0.01)
    assert fitted({**NEEDS, "token_topics": many}).transform(DOCUMENTS).shape == (
        len(DOCUMENTS),
        N_DIMENSIONS,
    )
    for params in ({"prior": -1.0}, {"start": "zero"}, {"infer_epochs": 0}):
        with pytest.raises(ValueError, match=f"got {next(iter(params.values()))!r}"):
            fitted(**params)


def test_the_errors_of_scores_of_any_size() -> None:
    """Also of -256 ln 2, whose exponential a float32 does not hold."""
    scores = np.array([[-256 * np.log(2), -89, -6.5, 0], [500, 89, 6.5, 0]], dtype=np.float32)
    errors = np.empty(4, dtype=np.float32)
    mixtures._add_errors(scores, scores.reshape(-1), 2, 4, errors)  # the first of them is there
    assert errors.tolist() == [1, -1, -1, -1]


def test_a_long_documents_gradient_is_shortened_and_a_short_ones_is_not() -> None:
    rate = np.float32(0.1)
    for length, wanted in ((50.0, mixtures.LONGEST * 0.1), (0.4, 0.4)):
        asked = np.array([3, -4], dtype=np.float32) * np.float32(length / 5)
        factor = mixtures._clip(asked, rate)
        np.testing.assert_allclose(factor, wanted / length, rtol=1e-6)
        np.testing.assert_allclose(asked, np.array([0.6, -0.8]) * wanted, rtol=1e-6)
