"""Topic coherence: do a topic's first words occur in the same documents? Also which words these are.

Source: D. Mimno, H. Wallach, E. Talley, M. Leenders and A. McCallum, "Optimizing semantic coherence in topic models",
EMNLP 2011, section 4 (UMass); G. Bouma, "Normalized (pointwise) mutual information in collocation extraction", GSCL
2009, and J. Lau, D. Newman and T. Baldwin, "Machine reading tea leaves", EACL 2014 (NPMI); topics from soft clusters of
words: D. Mekala et al., "SCDV", EMNLP 2017, section 4.3; A. Dieng, F. Ruiz and D. Blei, "Topic modeling in embedding
spaces", TACL 8 (2020), section 5 (diversity).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def term_probabilities_of_topics(memberships: np.ndarray, occurrences: np.ndarray) -> np.ndarray:
    """P(w | c) by Bayes' rule from memberships, P(c | w), and how often each term occurs, (n_terms,).

    memberships: float (n_terms, n_topics). Returns float64 (n_topics, n_terms), rows that sum to 1; zero for a topic
    no occurring term belongs to. The paper prints P(c) as a sum over topics; it has to be over the vocabulary: P(c) =
    sum_w P(c | w) P(w). ValueError for shapes that do not fit, values that are negative or not finite, or no
    occurrences.
    """
    memberships, occurrences = (
        np.asarray(memberships, dtype=np.float64),
        np.asarray(occurrences, dtype=np.float64),
    )
    if memberships.ndim != 2 or occurrences.shape != memberships.shape[:1]:
        raise ValueError(
            "memberships (n_terms, n_topics) need as many occurrences as terms: "
            f"got {memberships.shape} and {occurrences.shape}"
        )
    if not (np.isfinite(memberships).all() and np.isfinite(occurrences).all()):
        raise ValueError("memberships and occurrences must be finite, got NaN or infinite values")
    if min(memberships.min(initial=0), occurrences.min(initial=0)) < 0 or not occurrences.sum():
        raise ValueError("memberships and occurrences must not be negative, and some term must occur")
    joint = (memberships * (occurrences / occurrences.sum())[:, None]).T
    topics = joint.sum(axis=1, keepdims=True)
    return joint / np.where(topics > 0, topics, 1)


def top_terms(probabilities: np.ndarray, n: int = 10) -> np.ndarray:
    """Return the `n` most probable terms of each topic, best first: int64 (n_topics, n); of equals, the first.

    probabilities: (n_topics, n_terms). ValueError when a topic has fewer than `n` terms of any probability.
    """
    n_own = (probabilities > 0).sum(axis=1)
    if (n_own < n).any():
        topic = int(np.flatnonzero(n_own < n)[0])
        raise ValueError(f"every topic must have at least {n} terms: topic {topic} has {n_own[topic]}")
    return np.argsort(-probabilities, axis=1, kind="stable")[:, :n]


def umass(topics: np.ndarray, counts: "csr_matrix") -> np.ndarray:
    """UMass coherence: sum over pairs l < m of ln((D(w_m, w_l) + 1) / D(w_l)), D the number of documents with them.

    topics: ints (n_topics, n), terms from the most probable on; counts: csr (n_documents, n_terms). Returns float64
    (n_topics,); higher is better. ValueError for a term that no document has.
    """
    together, alone = _document_frequencies(topics, counts)
    later, earlier = np.tril_indices(topics.shape[1], -1)
    return np.log((together[:, later, earlier] + 1) / alone[:, earlier]).sum(axis=1)


def npmi(topics: np.ndarray, counts: "csr_matrix") -> np.ndarray:
    """NPMI coherence: the mean over pairs of ln(P(a, b) / (P(a) P(b))) / -ln P(a, b), P the share of documents.

    From -1 (never together, also by definition when they never are) to 1 (never apart). topics: ints (n_topics, n);
    counts: csr (n_documents, n_terms). Returns float64 (n_topics,); higher is better. ValueError for a term that no
    document has. Documents, not windows of ten words, are what words share here.
    """
    together, alone = _document_frequencies(topics, counts)
    later, earlier = np.tril_indices(topics.shape[1], -1)
    joint = together[:, later, earlier] / counts.shape[0]
    expected = alone[:, later] * alone[:, earlier] / counts.shape[0] ** 2
    never, always = joint == 0, joint == 1
    information = np.log(np.where(never, 1, joint) / expected)
    values = information / -np.log(np.where(never | always, 0.5, joint))
    return np.where(never, -1.0, np.where(always, 1.0, values)).mean(axis=1)


def diversity(words: Sequence[Sequence[str]]) -> float:
    """Topic diversity: the share of words that are unlike among the first words of all topics, 1 where none recurs.

    words: the first words of each topic, at least one topic and as many words each.
    """
    every = [word for topic in words for word in topic]
    return len(set(every)) / len(every)


def _document_frequencies(topics: np.ndarray, counts: "csr_matrix") -> tuple[np.ndarray, np.ndarray]:
    """Return in how many documents two terms of a topic occur, (n_topics, n, n), and one of them, (n_topics, n)."""
    terms, place = np.unique(topics, return_inverse=True)
    occurs = (counts[:, terms] > 0).astype(np.float64)
    shared = (occurs.T @ occurs).toarray()
    place = place.reshape(topics.shape)
    together = shared[place[:, :, None], place[:, None, :]]
    alone = np.diagonal(shared)[place]
    if (alone == 0).any():
        raise ValueError(
            f"every term of a topic must occur in some document: term {topics[alone == 0][0]} does not"
        )
    return together, alone
