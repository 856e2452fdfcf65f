"""LF-LDA and WTM: a share of zero is LDA to the bit, a share of one leaves counts out, none of sweeps is TWE-1."""

import itertools
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
    ONE_TOPIC,
    TOPICS,
    TRAINED,
    VECTORS,
)
from textbench.featurizers import lf_lda, twe_1, wtm
from textbench.featurizers._topical import latent_features
from textbench.featurizers._topical.embeddings import read_topics
from textbench.featurizers._topical.gibbs import Assignments, _uniform
from textbench.featurizers._topical.inference import infer
from textbench.featurizers._topical.latent_features import mixed
from textbench.featurizers._topical.token_topics import TokenTopics
from textbench.featurizers._topical.topic_vectors import log_softmax

READ = read_topics(DOCUMENTS, KNOWN, TOPICS, N_TERMS)
OWN_VECTORS = VECTORS[KNOWN]
V, K = len(KNOWN), N_TOPICS
ALPHA, BETA = 0.4, 0.2


def plain_sweep(tokens: np.ndarray, offsets: np.ndarray, z: np.ndarray, state: np.ndarray) -> None:
    """Collapsed Gibbs sampling as Griffiths and Steyvers write it, loop by loop."""
    c_wk = np.zeros((V, K))
    np.add.at(c_wk, (tokens, z), 1)
    for begin, end in itertools.pairwise(offsets):
        for i in range(begin, end):
            c_wk[tokens[i], z[i]] -= 1
            n_dk = np.bincount(np.delete(z[begin:end], i - begin), minlength=K)
            weights = (n_dk + ALPHA) * (c_wk[tokens[i]] + BETA) / (c_wk.sum(axis=0) + V * BETA)
            left, new = _uniform(state) * weights.sum(), 0
            while new < K - 1 and left >= weights[new]:
                left, new = left - weights[new], new + 1
            z[i] = new
            c_wk[tokens[i], new] += 1


def begun(share: float, seed: int = 3) -> Assignments:
    return Assignments.of(READ.reading, READ.topics, K, share, seed)


def test_a_share_of_zero_is_lda_draw_by_draw() -> None:
    own = begun(0.0)
    z, state = own.topics.copy(), own.state.copy()
    for _ in range(4):
        own.sweep(np.zeros((V, K)), 0.0, ALPHA, BETA)
        plain_sweep(own.tokens, own.offsets, z, state)
        assert own.topics.tobytes() == z.tobytes() and own.state == state
    assert not own.latent.any() and not np.array_equal(z, READ.topics)
    np.testing.assert_array_equal(own.counts, own.of_terms(V, K))


def test_counts_are_those_of_the_tokens_that_are_not_of_the_table() -> None:
    table = np.random.default_rng(1).dirichlet(np.ones(V), size=K).T
    own = begun(0.5)
    own.sweep(table, 0.5, ALPHA, BETA, n=5)
    np.testing.assert_allclose(own.counts, own.of_terms(V, K, latent=False))
    assert 0.2 < own.latent.mean() < 0.8
    own = begun(1.0)
    own.sweep(table, 1.0, ALPHA, BETA)
    assert own.latent.all() and not own.counts.any()


def test_draws_have_the_probabilities_they_should() -> None:
    """One token a document: topic and kind are drawn from their joint probability, many times."""
    n = 20_000
    table = np.array([[0.7, 0.1], [0.3, 0.9]])
    own = Assignments(
        np.zeros(n, np.int32),
        np.arange(n + 1),
        np.zeros(n, np.int32),
        np.ones(n, bool),
        np.array([[30.0, 5], [10, 60]], np.float32) * 1e4,
        np.array([5], np.uint64),
    )
    own.sweep(table, 0.6, 0.5, 0.01)
    phi = np.array([0.75, 1 / 13])
    expected = np.concatenate([0.4 * phi, 0.6 * table[0]])
    found = np.bincount(own.topics + 2 * own.latent, minlength=4) / n
    np.testing.assert_allclose(found, expected / expected.sum(), atol=0.02)


def learned(share: float, **params: Any) -> Any:
    given = {"alpha": 0.3, "beta": 0.1, "penalty": 0.01, "n_sweeps": 6, "seed": 0, **params}
    return mixed(READ, OWN_VECTORS, np.zeros((K, N_DIMENSIONS)), share=share, **given)


def test_ends_of_the_share_are_counts_alone_and_the_softmax_alone() -> None:
    none = learned(0.0)
    counts = np.zeros((V, K))
    np.add.at(counts, (READ.reading.tokens, none.assigned), 1)
    np.testing.assert_allclose(none.table, (counts + 0.1) / (counts.sum(axis=0) + 0.1 * V))
    assert not none.topics.any()
    alone = learned(1.0)
    np.testing.assert_allclose(alone.table, np.exp(log_softmax(alone.topics, OWN_VECTORS)).T)
    for found in (none, alone, learned(0.6)):
        np.testing.assert_allclose(found.table.sum(axis=0), 1)


def test_vectors_follow_their_topics() -> None:
    """A topic's own terms are more probable under its softmax than under the others'."""
    table = np.exp(log_softmax(learned(1.0).topics, OWN_VECTORS)).T
    mass = np.array([table[k == KNOWN % K].sum(axis=0) for k in range(K)])
    assert (mass.argmax(axis=0) == np.arange(K)).all()


def lf(needs: Any = NEEDS, **params: Any) -> lf_lda.LatentFeatureTopics:
    method = lf_lda.build(**{"n_iter": 5, "random_state": 0, **params})
    return method.fit(DOCUMENTS, word_vectors=needs["word_vectors"], token_topics=needs["token_topics"])


def test_proportions_are_of_the_mixed_topics() -> None:
    method = lf()
    np.testing.assert_allclose(method.components_.sum(axis=1), 1, rtol=1e-5)
    assert not method.components_[:, [4, 17]].any()
    found = infer(COUNTS[:, KNOWN], method.components_[:, KNOWN].T, 0.1).proportions
    np.testing.assert_allclose(method.transform(DOCUMENTS), found)
    one = lf({**NEEDS, "token_topics": ONE_TOPIC})
    assert (one.transform(DOCUMENTS) == 1).all()


def test_seeds_repeat_and_differ() -> None:
    one, again, other = (lf(random_state=seed).components_.tobytes() for seed in (0, 0, 1))
    assert one == again != other


def wtm_of(needs: Any = NEEDS, **params: Any) -> wtm.WordTopicMixture:
    return wtm.build(**{"n_sweeps": 12, "random_state": 0, **params}).fit(DOCUMENTS, **needs)


def test_without_sweeps_wtm_is_twe_1() -> None:
    """Its words, its topics, and proportions of phi unchanged."""
    twe = twe_1.build().fit(DOCUMENTS, **NEEDS)
    found = wtm_of(n_sweeps=0)
    np.testing.assert_allclose(found.components_, twe.components_, atol=1e-6)
    np.testing.assert_allclose(found.transform(DOCUMENTS), twe.transform(DOCUMENTS), atol=1e-4)


def test_a_share_of_zero_is_twe_1_after_more_sweeps_of_lda() -> None:
    own = Assignments.of(READ.reading, READ.topics, K, 0.0, 0)
    own.sweep(np.zeros((V, K)), 0.0, TOPICS.alpha, TOPICS.eta, n=12)
    topics = TOPICS.topics.copy()
    topics[READ.reading.places] = own.topics
    twe = twe_1.build().fit(
        DOCUMENTS, **TRAINED, token_topics=TokenTopics(topics, K, TOPICS.alpha, TOPICS.eta)
    )
    np.testing.assert_allclose(wtm_of(share=0.0).transform(DOCUMENTS), twe.transform(DOCUMENTS), atol=1e-4)


def divergence(topics: np.ndarray) -> float:
    """Of phi, the topics' terms as `token_topics` has them, from the softmax over WTM's words."""
    phi = np.maximum(READ.counts.T, 1e-12)
    phi /= phi.sum(axis=1, keepdims=True)
    words = VECTORS[KNOWN] * TRAINED["vector_norms"][KNOWN, None]
    return float((phi * (np.log(phi) - log_softmax(topics, words))).sum())


def test_wtms_divergence_falls_from_twe_1s_vectors_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a penalty, step by step of the first fit; a sweep that is not followed by a fit changes no vector."""
    monkeypatch.setattr(latent_features, "STEPS_A_SWEEP", 0)
    found = []
    for n_steps in (0, 1, 2, 4, 8, 50):
        monkeypatch.setattr(latent_features, "FIRST_STEPS", n_steps)
        found.append(wtm_of(n_sweeps=1, penalty=0.0).softmax_vectors_)
    twe = twe_1.build(normalize=False).fit(DOCUMENTS, **NEEDS)
    np.testing.assert_array_equal(found[0], twe.topic_vectors_)
    values = [divergence(topics) for topics in found]
    assert (np.diff(values) < 0).all() and values[-1] < values[0] / 2


def test_wtms_softmax_comes_near_its_counts() -> None:
    """The divergence of phi from the softmax is less at the fitted vectors than at none."""
    method = wtm_of(share=0.6)
    assert divergence(method.softmax_vectors_) < divergence(0 * method.softmax_vectors_)
    np.testing.assert_allclose(method.components_.sum(axis=1), 1, rtol=1e-5)
    assert wtm_of(features="proportions").transform(DOCUMENTS).shape[1] == K


@pytest.mark.parametrize("fit", [lf, wtm_of])
def test_more_topics_than_documents_are_finite_and_shares_beyond_one_are_refused(fit: Any) -> None:
    many = TokenTopics(TOPICS.topics, 60, 0.5, 0.01)
    assert np.isfinite(fit({**NEEDS, "token_topics": many}).transform(DOCUMENTS)).all()
    for share in (-0.1, 1.1):
        with pytest.raises(ValueError, match=f"share must be a number from 0 to 1: got {share}"):
            fit(share=share)
