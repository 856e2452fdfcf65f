"""TWE-1 and Topic2Vec: word half as AvgVec, topic half of low rank, topic vectors at the maximum, one topic."""

from typing import Any

import numpy as np
import pytest

from tests.topical import (
    COUNTS,
    DOCUMENTS,
    KNOWN,
    N_DIMENSIONS,
    N_TERMS,
    N_TOPICS,
    NEEDS,
    NORMS,
    ONE_TOPIC,
    OUTPUTS,
    TOKENS,
    TOPICS,
    TRAINED,
    VECTORS,
)
from textbench.featurizers import avgvec, twe_1
from textbench.featurizers._topical.embeddings import Trained, fitted_topics, noise_of, read_topics
from textbench.featurizers._topical.token_topics import TokenTopics
from textbench.featurizers._topical.topic_vectors import mean_vectors, negatives_objective, topics_around


def fitted(needs: Any = NEEDS, **params: Any) -> twe_1.TopicalWordEmbeddings:
    return twe_1.build(random_state=0, **params).fit(DOCUMENTS, **needs)


def test_the_word_half_is_avgvec_and_the_topic_half_of_one_topic_is_constant() -> None:
    average = avgvec.build().fit(COUNTS, word_vectors=VECTORS).transform(COUNTS)
    found = fitted({**TRAINED, "token_topics": ONE_TOPIC}).transform(DOCUMENTS)
    np.testing.assert_allclose(found[:, :N_DIMENSIONS], average, atol=1e-6)
    np.testing.assert_allclose(
        found[:, N_DIMENSIONS:], found[:1, N_DIMENSIONS:].repeat(len(found), 0), atol=1e-6
    )


def test_the_topic_half_is_shares_times_topic_vectors() -> None:
    method = fitted()
    half = method.transform(DOCUMENTS)[:, N_DIMENSIONS:]
    assert np.linalg.matrix_rank(half, tol=1e-4) <= N_TOPICS
    shares = np.linalg.lstsq(method.topic_vectors_.T, half.T, rcond=None)[0].T
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-3)
    # Terms tell their topics, so shares are those of tokens.
    tokens = np.array(
        [np.bincount(np.asarray(d)[np.isin(d, KNOWN)] % N_TOPICS, minlength=N_TOPICS) for d in DOCUMENTS]
    )
    np.testing.assert_allclose(shares, tokens / tokens.sum(axis=1, keepdims=True), atol=0.05)


def test_two_documents_joined_are_their_weighted_mean() -> None:
    """Weighed by their known tokens: to rounding where q is held, nearly where terms tell their topics, as here."""
    method, (one, two) = fitted(), DOCUMENTS[:2]
    weights = np.array([np.isin(d, KNOWN).sum() for d in (one, two)])

    def joined_and_apart() -> tuple[np.ndarray, np.ndarray]:
        joined = method.transform([np.concatenate([one, two])])[0]
        return joined, weights @ method.transform([one, two]) / weights.sum()

    joined, apart = joined_and_apart()
    np.testing.assert_allclose(joined, apart, atol=0.05)
    np.testing.assert_allclose(joined[:N_DIMENSIONS], apart[:N_DIMENSIONS], atol=1e-6)
    # A term's topics are more than one, and with a prior so strong the same in every document.
    method.components_ = method.components_ + np.float32(0.01)
    loose, alone = joined_and_apart()
    assert np.abs(loose - alone).max() > 1e-3
    method.alpha_ = 1e9
    np.testing.assert_allclose(*joined_and_apart(), atol=1e-6)


def test_topic_vectors_are_a_maximum_above_the_mean_vectors() -> None:
    read = read_topics(DOCUMENTS, KNOWN, TOPICS, N_TERMS)
    trained = Trained.of(VECTORS, OUTPUTS, NORMS, KNOWN)
    found = fitted_topics(read, trained, 5, 10)
    seen = topics_around(read.reading.tokens, read.topics, read.reading.offsets, N_TOPICS, len(KNOWN), 5)
    drawn = 10 * noise_of(read.reading.counts) * (seen.sum(axis=1, keepdims=True) - seen)
    values, slopes = negatives_objective(found, seen, drawn, trained.outputs)
    start = mean_vectors(read.counts, trained.words)
    assert (values > negatives_objective(start, seen, drawn, trained.outputs)[0]).all()
    np.testing.assert_allclose(slopes / seen.sum(axis=1, keepdims=True), 0, atol=1e-3)


def test_one_topic_solves_the_regression_of_what_is_seen_against_the_noise() -> None:
    """In a window that holds every document, all pairs of tokens of a document meet, whatever their order."""
    read = read_topics(DOCUMENTS, KNOWN, ONE_TOPIC, N_TERMS)
    trained = Trained.of(VECTORS, OUTPUTS, NORMS, KNOWN)
    (topic,) = fitted_topics(read, trained, 10**9, 4)
    own = COUNTS.toarray()[:, KNOWN].astype(float)
    seen = (own * (own.sum(axis=1, keepdims=True) - 1)).sum(axis=0)
    reading = read.reading
    around = topics_around(reading.tokens, read.topics, reading.offsets, 1, len(KNOWN), 10**9)
    np.testing.assert_allclose(around[0], seen, rtol=1e-6)
    noise = own.sum(axis=0) ** 0.75 / (own.sum(axis=0) ** 0.75).sum()
    drawn = 4 * noise * (seen.sum() - seen)
    probability = 1 / (1 + np.exp(-trained.outputs @ topic))
    np.testing.assert_allclose(
        trained.outputs.T @ (seen - (seen + drawn) * probability) / seen.sum(), 0, atol=1e-4
    )


@pytest.mark.parametrize("weighting", ["frequency", "tfidf"])
def test_the_numbers_of_topics_do_not_matter(weighting: str) -> None:
    order = np.array([2, 0, 1])
    other = TokenTopics(order[TOPICS.topics].astype(np.int32), N_TOPICS, TOPICS.alpha, TOPICS.eta)
    one, two = fitted(weighting=weighting), fitted({**NEEDS, "token_topics": other}, weighting=weighting)
    np.testing.assert_allclose(one.transform(DOCUMENTS), two.transform(DOCUMENTS), atol=1e-4)
    np.testing.assert_allclose(one.components_, two.components_[order], atol=1e-6)


def test_components_are_distributions_and_lengths_are_kept_on_demand() -> None:
    method = fitted(normalize=False)
    np.testing.assert_allclose(method.components_.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(method.vectors_, axis=1), NORMS[KNOWN], rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(fitted().topic_vectors_, axis=1), 1, rtol=1e-5)


def test_topic2vec_trains_words_too_and_repeats() -> None:
    one, again = fitted(joint=True), fitted(joint=True)
    assert one.transform(DOCUMENTS).tobytes() == again.transform(DOCUMENTS).tobytes()
    assert not np.allclose(one.vectors_, fitted().vectors_, atol=1e-3)


def test_more_topics_than_documents_and_topics_of_nothing_are_finite() -> None:
    many = TokenTopics(TOPICS.topics, 50, 0.5, 0.01)
    assert np.isfinite(fitted({**NEEDS, "token_topics": many}).transform(DOCUMENTS)).all()


@pytest.mark.parametrize(
    ("needs", "said"),
    [
        ({"token_topics": TokenTopics(TOPICS.topics[1:], 3, 0.5, 0.01)}, f"each of {len(TOKENS)} tokens"),
        ({"token_topics": TokenTopics(TOPICS.topics, 2, 0.5, 0.01)}, r"below n_topics = 2: got 0 \.\. 2"),
        ({"output_vectors": OUTPUTS[1:]}, "must fit word_vectors"),
        ({"vector_norms": NORMS * np.nan}, "finite"),
        ({"word_vectors": VECTORS[:20], "output_vectors": OUTPUTS[:20]}, "a row for each term: got 20"),
        ({"word_vectors": VECTORS * 0}, "at least one term must have a word vector"),
    ],
)
def test_what_does_not_fit_is_refused(needs: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        fitted({**NEEDS, **needs})
