"""Documents against fixed topics: the proportions of LDA, expected counts entry by entry, on any number of cores."""

import numpy as np
import pytest
from scipy.special import digamma as exact_digamma

from tests.topical import COUNTS, DOCUMENTS, N_TERMS, N_TOPICS, TOKENS, TOPICS
from textbench.featurizers import _kernels as kernels
from textbench.featurizers._topical import inference
from textbench.featurizers._topical.documents import counted, frequencies
from textbench.featurizers._topical.token_topics import TokenTopics, sample
from textbench.featurizers.lda import proportions

RNG = np.random.default_rng(2)
TABLE = RNG.dirichlet(np.full(N_TERMS, 0.4), size=N_TOPICS).T


def responsibilities(theta: np.ndarray) -> np.ndarray:
    """q (n_documents, n_terms, n_topics)."""
    joint = theta[:, None] * TABLE
    return joint / joint.sum(axis=2, keepdims=True)


def test_proportions_are_those_of_lda() -> None:
    found = inference.infer(COUNTS, TABLE, 0.4, n_steps=200)
    for document, theta in enumerate(found.proportions):
        n = COUNTS[document].toarray()[0]
        np.testing.assert_allclose(theta, proportions(TABLE[n > 0], n[n > 0], 0.4), atol=2e-4)
    np.testing.assert_allclose(found.proportions.sum(axis=1), 1, rtol=1e-5)


def test_expected_weights_are_sums_of_responsibilities() -> None:
    shares = frequencies(COUNTS.astype(float))
    found = inference.infer(COUNTS, TABLE, 0.4, shares.data)
    q = responsibilities(found.proportions.astype(float))
    np.testing.assert_allclose(found.expected, np.einsum("dw,dwk->dk", shares.toarray(), q), atol=1e-5)
    np.testing.assert_allclose(found.expected.sum(axis=1), 1, rtol=1e-5)
    counts = inference.expected_counts(COUNTS, TABLE.astype(np.float32), found.proportions)
    np.testing.assert_allclose(counts, np.einsum("dw,dwk->wk", COUNTS.toarray(), q), atol=1e-4)


def test_variational_proportions_are_a_fixed_point() -> None:
    found = inference.infer(COUNTS, TABLE, 0.4, n_steps=500, is_variational=True)
    n = np.asarray(COUNTS.sum(axis=1))
    whole = n + N_TOPICS * 0.4
    q = responsibilities(np.exp(exact_digamma(found.proportions * whole)))
    again = (0.4 + np.einsum("dw,dwk->dk", COUNTS.toarray(), q)) / whole
    np.testing.assert_allclose(found.proportions, again, atol=3e-4)


def test_exponentials_of_digamma_are_scipys() -> None:
    x = np.geomspace(1e-3, 1e7, 600).astype(np.float32)
    found = np.empty_like(x)
    inference.exp_digamma(x, found)
    np.testing.assert_allclose(found, np.exp(exact_digamma(x.astype(float))), rtol=3e-6, atol=1e-16)


def test_a_factor_of_a_term_changes_nothing_and_empty_documents_are_zero() -> None:
    scaled = TABLE * RNG.uniform(0.1, 9, size=(N_TERMS, 1))
    first, other = (inference.infer(COUNTS, table, 0.4) for table in (TABLE, scaled))
    np.testing.assert_allclose(first.proportions, other.proportions, atol=1e-4)
    table = np.log(np.maximum(TABLE, 1e-30))
    np.testing.assert_allclose(
        inference.infer(COUNTS, inference.table_of(table), 0.4).proportions, first.proportions, atol=1e-4
    )
    assert not inference.infer(COUNTS[:2] * 0, TABLE, 0.4).proportions.any()
    assert not inference.infer(COUNTS[:2], TABLE * 0, 0.4).expected.any()


def test_the_number_of_cores_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for n in (1, 5):
        monkeypatch.setattr(kernels, "n_cores", lambda n=n: n)
        made = inference.infer(COUNTS, TABLE, 0.4)
        n_wk = inference.expected_counts(COUNTS, TABLE, made.proportions)
        found.append((made.proportions.tobytes(), made.expected.tobytes(), n_wk.tobytes()))
    assert found[0] == found[1]


def test_smoothed_counts_are_distributions_of_the_terms_that_occur() -> None:
    counts = TOPICS.counts(TOKENS, N_TERMS + 1)
    phi = inference.smoothed(counts, 0.5)
    np.testing.assert_allclose(phi.sum(axis=0), 1)
    assert not phi[-1].any()
    np.testing.assert_allclose(phi[:-1, 0], (counts[:-1, 0] + 0.5) / (counts[:, 0].sum() + 0.5 * N_TERMS))


def test_every_token_gets_a_topic_in_its_place() -> None:
    """Terms of one subject each: their tokens get one topic, and empty documents none."""
    documents = [
        np.array([0, 1, 2, 0], np.int32),
        np.zeros(0, np.int32),
        np.array([7, 8, 8, 7, 9], np.int32),
    ] * 12
    found = sample(documents, 1, n_topics=2, alpha=0.1, n_iter=60)
    tokens = np.concatenate(documents)
    assert (len(found.topics), found.n_topics, found.alpha) == (len(tokens), 2, 0.1)
    assert len(set(found.topics[tokens < 5])) == len(set(found.topics[tokens > 5])) == 1
    assert found.topics[0] != found.topics[4]
    assert found.topics.tobytes() == sample(documents, 1, n_topics=2, alpha=0.1, n_iter=60).topics.tobytes()
    assert sample([], 0).alpha == 50 / 80
    with pytest.raises(ValueError, match="each of 3 tokens: got 2"):
        TokenTopics(np.zeros(2, np.int32), 1, 0.5, 0.01).counts(np.zeros(3, np.int32), 4)


def test_documents_are_counted_without_unknown_terms() -> None:
    terms = np.array([1, 3, 20])
    np.testing.assert_array_equal(counted(DOCUMENTS, terms).toarray(), COUNTS[:, terms].toarray())
