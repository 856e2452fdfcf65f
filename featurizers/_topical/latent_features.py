"""Topics that mix counts with a softmax over word vectors: what LF-LDA and WTM share.

Source: D. Q. Nguyen, R. Billingsley, L. Du and M. Johnson, "Improving topic models with latent feature word
representations", TACL 3 (2015), sections 3.1 to 3.4.

`vectors` are of the known terms, (n_known, n_dimensions).
"""

from dataclasses import dataclass

import numpy as np

from textbench.featurizers._topical.embeddings import TopicReading
from textbench.featurizers._topical.gibbs import Assignments
from textbench.featurizers._topical.topic_vectors import fit_softmax, log_softmax

# A fit goes on from the one before it, a sweep ago.
STEPS_A_SWEEP, TOLERANCE = 5, 1e-4
FIRST_STEPS = 50


@dataclass(frozen=True)
class Mixed:
    """What was learned: `table` p(w | k), float64 (n_known, n_topics); `topics` (n_topics, n_dimensions), the vectors
    of the softmax; `assigned` int32 (n_tokens,), the tokens' topics in the end."""

    table: np.ndarray
    topics: np.ndarray
    assigned: np.ndarray


def mixed(
    read: TopicReading,
    vectors: np.ndarray,
    start: np.ndarray,
    *,
    share: float,
    alpha: float,
    beta: float,
    penalty: float,
    n_sweeps: int,
    seed: int | None,
    every: int = 1,
    of_all: bool = False,
) -> Mixed:
    """Return what sweeps lead to from a reading's topics on, and topic vectors from `start` (n_topics, n_dimensions).

    p(w | k) = share softmax_w(v_w . t_k) + (1 - share) phi_kw. Vectors are fitted before every sweep whose number is a
    multiple of `every`, to the tokens that are of the softmax or, `of_all`, to the share that each term has of all
    tokens of a topic, so that the divergence of phi from the softmax is least; a topic without a token keeps its
    vector. With a share of 0 they play no part and stay as they are.
    """
    n_terms, n_topics, vectors = len(vectors), read.n_topics, vectors.astype(np.float64)
    own = Assignments.of(read.reading, read.topics, n_topics, 0.0 if of_all else share, seed)
    topics, table = np.array(start, dtype=np.float64), np.zeros((n_terms, n_topics))

    def fitted(n_steps: int) -> tuple[np.ndarray, np.ndarray]:
        n = own.of_terms(n_terms, n_topics, latent=None if of_all else True).T
        totals = n.sum(axis=1)
        weight = np.full(n_topics, penalty)
        if of_all:
            weight, n = penalty / np.maximum(totals, 1), n / np.maximum(totals, 1)[:, None]
        has = totals > 0
        found = topics.copy()
        found[has] = fit_softmax(
            n[has], vectors, topics[has], penalty=weight[has], n_steps=n_steps, tolerance=TOLERANCE
        )
        return found, np.exp(log_softmax(found, vectors)).T

    if share:
        topics, table = fitted(FIRST_STEPS)
    for number in range(n_sweeps):
        if share and number and number % every == 0:
            topics, table = fitted(STEPS_A_SWEEP)
        own.sweep(table, share, alpha, beta)
    if share and n_sweeps:
        topics, table = fitted(STEPS_A_SWEEP)
    phi = own.counts.astype(np.float64) + beta
    return Mixed(share * table + (1 - share) * phi / phi.sum(axis=0), topics, own.topics)
