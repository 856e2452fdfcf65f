"""LTSG: no rounds are averaged word vectors, a flat temperature is LDA with topics held, one topic trains words on."""

from typing import Any

import numpy as np
import pytest

from tests.topical import (
    COUNTS,
    DOCUMENTS,
    KNOWN,
    N_TERMS,
    N_TOPICS,
    NEEDS,
    NORMS,
    ONE_TOPIC,
    OUTPUTS,
    TOPICS,
    VECTORS,
)
from textbench.featurizers import ltsg
from textbench.featurizers._topical.documents import frequencies
from textbench.featurizers._topical.embeddings import Trained, read_topics
from textbench.featurizers._topical.gibbs import Assignments
from textbench.featurizers._topical.inference import infer
from textbench.featurizers._topical.pairs import Pairs, refined, topics_of_vectors
from textbench.featurizers._topical.skip_gram import train_rows
from textbench.featurizers._topical.token_topics import TokenTopics

READ = read_topics(DOCUMENTS, KNOWN, TOPICS, N_TERMS)
TRAINED = Trained.of(VECTORS, OUTPUTS, NORMS, KNOWN)
K = N_TOPICS


def fitted(needs: Any = NEEDS, **params: Any) -> ltsg.LatentTopicalSkipGram:
    return ltsg.build(**{"random_state": 0, "n_rounds": 2, "n_sweeps": 3, **params}).fit(DOCUMENTS, **needs)


def learned(read: Any = READ, **params: Any) -> tuple[Pairs, np.ndarray]:
    given = {"n_rounds": 2, "n_sweeps": 3, "temperature": 1.0, "alpha": 0.3, "beta": 0.1}
    return refined(read, TRAINED, **{**given, "window": 3, "negative": 4, "seed": 5, **params})


def test_without_rounds_documents_are_averaged_word_vectors() -> None:
    shares = frequencies(COUNTS[:, KNOWN].astype(float))
    np.testing.assert_allclose(fitted(n_rounds=0).transform(DOCUMENTS), shares @ TRAINED.words, atol=1e-5)


def test_a_flat_temperature_is_lda_with_topics_held() -> None:
    """One round: phi is that of the counts, and the sweeps are those of the kernel with it."""
    phi = learned(temperature=1e9, n_rounds=1)[1]
    plain = (READ.counts + 0.1) / (READ.counts + 0.1).sum(axis=0)
    np.testing.assert_allclose(phi, plain, rtol=1e-6)
    own = Assignments.of(READ.reading, READ.topics, K, 1.0, 5)
    own.sweep(plain, 1.0, 0.3, 0.1, n=3)
    after = own.of_terms(len(KNOWN), K) + 0.1
    np.testing.assert_allclose(learned(temperature=1e9)[1], after / after.sum(axis=0), rtol=1e-6)


def test_the_one_topic_trains_words_on() -> None:
    one = read_topics(DOCUMENTS, KNOWN, TokenTopics(TOPICS.topics * 0, 1, 0.5, 0.01), N_TERMS)
    pairs, phi = learned(one)
    words, outputs = TRAINED.words.copy(), TRAINED.outputs.copy()
    state = np.random.default_rng(5).integers(2**63, size=1).astype(np.uint64)
    for _ in range(2):
        train_rows(one.reading, one.reading.tokens[:, None], words, outputs, 3, 4, 1, state)
    assert pairs.vectors.tobytes() == words.tobytes()
    np.testing.assert_allclose(phi.sum(), 1)
    assert fitted({**NEEDS, "token_topics": ONE_TOPIC}).components_.shape == (1, N_TERMS)


def test_topics_are_distributions_that_draw_words_near() -> None:
    counts, rng = READ.counts, np.random.default_rng(0)
    cosines = rng.uniform(-1, 1, counts.shape)
    phi = topics_of_vectors(counts, cosines, 0.1, 0.5)
    np.testing.assert_allclose(phi.sum(axis=0), 1)
    expected = (counts[3, 1] + 0.1) / (counts[8, 1] + 0.1) * np.exp((cosines[3, 1] - cosines[8, 1]) / 0.5)
    np.testing.assert_allclose(phi[3, 1] / phi[8, 1], expected)


def test_pairs_keep_their_vectors_and_others_have_their_words() -> None:
    words = np.arange(12.0).reshape(4, 3)
    pairs = Pairs(np.array([2, 7]), np.full((2, 3), 9.0, np.float32), 2).with_all(np.array([0, 7, 5]), words)
    assert pairs.numbers.tolist() == [0, 2, 5, 7]
    np.testing.assert_array_equal(pairs.vectors, [words[0], [9] * 3, words[2], [9] * 3])
    counts = np.zeros((4, 2))
    counts.ravel()[[0, 2, 7]] = [1, 3, 2]
    means = pairs.means(counts)
    np.testing.assert_allclose(means, [(words[0] + 27) / 4, [9.0] * 3])
    cosines = pairs.cosines(means, words)
    unit = words / np.linalg.norm(words, axis=1, keepdims=True)
    np.testing.assert_allclose(cosines[1, 1], unit[1] @ means[1] / np.linalg.norm(means[1]))
    np.testing.assert_allclose(cosines[3, 1], 1)


def test_documents_are_sums_over_terms_and_topics() -> None:
    method = fitted()
    table, words = method.components_[:, KNOWN].T, method.vectors_
    counts = COUNTS[:, KNOWN].astype(float)
    theta, shares = infer(counts, table, method.alpha_).proportions, frequencies(counts).toarray()
    vectors = np.repeat(words[:, None], K, axis=1)
    vectors.reshape(-1, words.shape[1])[method.pairs_] = method.pair_vectors_
    q = theta[:, None] * table
    q /= q.sum(axis=2, keepdims=True)
    q *= q >= 0.01
    q /= q.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(
        method.transform(DOCUMENTS), np.einsum("dw,dwk,wkj->dj", shares, q, vectors), atol=1e-4
    )
    assert fitted().transform(DOCUMENTS).tobytes() == method.transform(DOCUMENTS).tobytes()


def test_more_topics_than_documents_are_finite_and_impossible_values_are_named() -> None:
    many = TokenTopics(TOPICS.topics, 60, 0.5, 0.01)
    assert np.isfinite(fitted({**NEEDS, "token_topics": many}).transform(DOCUMENTS)).all()
    for params in ({"n_rounds": -1}, {"temperature": 0.0}, {"window": 0}):
        with pytest.raises(ValueError, match=f"got {next(iter(params.values()))!r}"):
            fitted(**params)
