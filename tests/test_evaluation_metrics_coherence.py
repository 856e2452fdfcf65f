"""Topic coherence, against counting by hand and loops over documents."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from gensim.corpora import Dictionary
from gensim.models import CoherenceModel

from textbench.evaluation.metrics.coherence import npmi, term_probabilities_of_topics, top_terms, umass

RNG = np.random.default_rng(4)
COUNTS = sp.csr_matrix(RNG.poisson(0.5, size=(60, 15)))
TOPICS = np.array([[0, 3, 5, 7], [14, 2, 3, 1]])
# Documents: {a, b}, {a, b, c}, {a}, {c}.
FOUR = sp.csr_matrix([[2, 1, 0], [1, 1, 3], [4, 0, 0], [0, 0, 1]])


def test_umass_of_four_documents_by_hand() -> None:
    expected = math.log((2 + 1) / 3) + math.log((1 + 1) / 3) + math.log((1 + 1) / 2)
    assert umass(np.array([[0, 1, 2]]), FOUR)[0] == pytest.approx(expected)


def test_umass_conditions_on_the_more_probable_term() -> None:
    assert umass(np.array([[0, 1]]), FOUR)[0] == pytest.approx(math.log(3 / 3))
    assert umass(np.array([[1, 0]]), FOUR)[0] == pytest.approx(math.log(3 / 2))


def test_npmi_of_four_documents_by_hand() -> None:
    ab = math.log((2 / 4) / ((3 / 4) * (2 / 4))) / -math.log(2 / 4)
    ac = math.log((1 / 4) / ((3 / 4) * (2 / 4))) / -math.log(1 / 4)
    bc = math.log((1 / 4) / ((2 / 4) * (2 / 4))) / -math.log(1 / 4)
    assert npmi(np.array([[0, 1, 2]]), FOUR)[0] == pytest.approx((ab + ac + bc) / 3)


def test_npmi_reaches_its_ends() -> None:
    always = sp.csr_matrix([[1, 1], [2, 3], [0, 0]])
    assert npmi(np.array([[0, 1]]), always)[0] == pytest.approx(1)
    assert npmi(np.array([[0, 1]]), sp.csr_matrix([[1, 0], [0, 1]]))[0] == -1
    assert npmi(np.array([[0, 1]]), sp.csr_matrix([[1, 1], [1, 1]]))[0] == 1
    independent = sp.csr_matrix([[1, 1], [1, 0], [0, 1], [0, 0]])
    assert npmi(np.array([[0, 1]]), independent)[0] == pytest.approx(0)


def test_coherence_agrees_with_loops_over_documents() -> None:
    present = COUNTS.toarray() > 0
    for topic, ours, normalised in zip(TOPICS, umass(TOPICS, COUNTS), npmi(TOPICS, COUNTS), strict=True):
        total, information = 0.0, []
        for m in range(1, len(topic)):
            for before in range(m):
                first, second = present[:, topic[before]], present[:, topic[m]]
                both = np.mean(first & second)
                total += math.log(((first & second).sum() + 1) / first.sum())
                information.append(math.log(both / first.mean() / second.mean()) / -math.log(both))
        assert ours == pytest.approx(total)
        assert normalised == pytest.approx(np.mean(information))


def test_umass_of_many_copies_tends_to_gensims() -> None:
    # gensim adds next to nothing where Mimno adds one document, which many copies of the documents make negligible.
    texts = [[f"w{term:02}" for term in row.indices] for row in COUNTS]
    names = [[f"w{term:02}" for term in topic] for topic in TOPICS]
    model = CoherenceModel(
        topics=names, texts=texts, dictionary=Dictionary(texts), coherence="u_mass", topn=TOPICS.shape[1]
    )
    # gensim's is the mean over pairs, Mimno's their sum.
    n_pairs = TOPICS.shape[1] * (TOPICS.shape[1] - 1) / 2
    copies = sp.csr_matrix(sp.vstack([COUNTS] * 2000))
    np.testing.assert_allclose(umass(TOPICS, copies) / n_pairs, model.get_coherence_per_topic(), atol=1e-3)


def test_how_often_a_term_occurs_in_a_document_does_not_matter() -> None:
    np.testing.assert_array_equal(umass(TOPICS, COUNTS), umass(TOPICS, sp.csr_matrix(COUNTS > 0)))
    np.testing.assert_array_equal(npmi(TOPICS, COUNTS), npmi(TOPICS, 7 * COUNTS))


def test_bayes_rule_gives_the_memberships_back() -> None:
    memberships, occurrences = RNG.dirichlet(np.ones(3), size=15), RNG.integers(1, 50, size=15)
    given_topic = term_probabilities_of_topics(memberships, occurrences)
    np.testing.assert_allclose(given_topic.sum(axis=1), 1)
    prior = occurrences / occurrences.sum()
    topics = memberships.T @ prior
    np.testing.assert_allclose((given_topic * topics[:, None]).T / prior[:, None], memberships)


def test_hard_clusters_rank_their_terms_by_frequency() -> None:
    memberships = np.eye(2)[[0, 0, 1, 1, 0]]
    given_topic = term_probabilities_of_topics(memberships, np.array([1, 5, 2, 8, 4]))
    np.testing.assert_allclose(given_topic, [[0.1, 0.5, 0, 0, 0.4], [0, 0, 0.2, 0.8, 0]])
    np.testing.assert_array_equal(top_terms(given_topic, 2), [[1, 4], [3, 2]])


def test_a_dead_topic_has_no_terms() -> None:
    given_topic = term_probabilities_of_topics(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([1, 3]))
    np.testing.assert_array_equal(given_topic[1], 0)
    with pytest.raises(ValueError, match="at least 2 terms: topic 1 has 0"):
        top_terms(given_topic, 2)


def test_equal_terms_keep_their_order() -> None:
    np.testing.assert_array_equal(top_terms(np.array([[0.25, 0.25, 0.25, 0.25]]), 3), [[0, 1, 2]])


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"got \(3, 2\) and \(4,\)"):
        term_probabilities_of_topics(np.ones((3, 2)), np.ones(4))
    with pytest.raises(ValueError, match="must not be negative"):
        term_probabilities_of_topics(-np.ones((3, 2)), np.ones(3))
    with pytest.raises(ValueError, match="some term must occur"):
        term_probabilities_of_topics(np.ones((3, 2)), np.zeros(3))
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="must be finite"):
            term_probabilities_of_topics(np.array([[1.0], [bad]]), np.ones(2))
        with pytest.raises(ValueError, match="must be finite"):
            term_probabilities_of_topics(np.ones((2, 1)), np.array([1.0, bad]))
    unseen = sp.csr_matrix([[1, 0], [1, 0]])
    for measure in (umass, npmi):
        with pytest.raises(ValueError, match="term 1 does not"):
            measure(np.array([[0, 1]]), unseen)
