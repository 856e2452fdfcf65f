"""Topic vectors in the space of word vectors: concave fits to how often each term has each topic.

Source: D. Q. Nguyen, R. Billingsley, L. Du and M. Johnson, "Improving topic models with latent feature word
representations", TACL 3 (2015), section 3.4 (softmax); Y. Liu, Z. Liu, T.-S. Chua and M. Sun, "Topical word
embeddings", AAAI 2015, equation (4), with negative samples of T. Mikolov et al., NIPS 2013, equation (4).

Everywhere `topics` and `start` are topic vectors t, (n_topics, n_dimensions), `vectors` v and `outputs` o are of terms,
(n_terms, n_dimensions), `counts` N and `seen` A are of pairs, (n_topics, n_terms), `penalty` is a number or one a topic
(n_topics,), `log_base` log u and `noise` P have a number a term, (n_terms,).
"""

import numpy as np
from numba import njit

from textbench.featurizers._topical.ascent import maximise

TERMS_AT_ONCE = 1024


def log_softmax(topics: np.ndarray, vectors: np.ndarray, log_base: np.ndarray | None = None) -> np.ndarray:
    """Return log p(term | topic), float64 (n_topics, n_terms): u_w exp(v_w . t_k) over its sum over terms.

    topics: (n_topics, n_dimensions); vectors: (n_terms, n_dimensions); log_base: log u (n_terms,), zero where None.
    """
    scores = topics @ np.asarray(vectors, dtype=np.float64).T
    if log_base is not None:
        scores += log_base
    largest = scores.max(axis=1, keepdims=True)
    scores -= largest
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def softmax_objective(
    topics: np.ndarray,
    counts: np.ndarray,
    vectors: np.ndarray,
    penalty: np.ndarray | float,
    log_base: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return F_k = sum_w N_kw log p(w | t) - penalty_k |t|^2 of each topic, and its gradient.

    log p(w | t) = log u_w + v_w.t - log sum_j u_j exp(v_j.t).

    counts: N (n_topics, n_terms); values float64 (n_topics,), gradients (n_topics, n_dimensions).
    """
    exact = np.asarray(vectors, dtype=np.float64)
    return _softmax_objective(topics, _summed(counts, exact, log_base), exact, penalty, log_base)


def _summed(
    counts: np.ndarray, vectors: np.ndarray, log_base: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | float]:
    """Return sum_w N_kw v_w, sum_w N_kw and sum_w N_kw log u_w: what no topic vector changes."""
    return counts @ vectors, counts.sum(axis=1), 0.0 if log_base is None else counts @ log_base


def _softmax_objective(
    topics: np.ndarray,
    summed: tuple[np.ndarray, np.ndarray, np.ndarray | float],
    vectors: np.ndarray,
    penalty: np.ndarray | float,
    log_base: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return `softmax_objective` of `_summed` counts.

    Terms are gone through some at a time, whose scores stay in the cache; exponentials are over the largest so far.
    """
    sums, totals, of_base = summed
    largest, whole = np.full((len(topics), 1), -np.inf), np.zeros((len(topics), 1))
    means = np.zeros_like(sums)
    for first in range(0, len(vectors), TERMS_AT_ONCE):
        part = vectors[first : first + TERMS_AT_ONCE]
        scores = topics @ part.T
        if log_base is not None:
            scores += log_base[first : first + TERMS_AT_ONCE]
        higher = np.maximum(largest, scores.max(axis=1, keepdims=True))
        scores -= higher
        np.exp(scores, out=scores)
        shrink = np.exp(largest - higher)
        whole = whole * shrink + scores.sum(axis=1, keepdims=True)
        means = means * shrink + scores @ part
        largest = higher
    squares = np.einsum("kd,kd->k", topics, topics)
    partition = (largest + np.log(whole))[:, 0]
    values = np.einsum("kd,kd->k", sums, topics) + of_base - totals * partition - penalty * squares
    slopes = sums - totals[:, None] * (means / whole) - 2 * np.reshape(penalty, (-1, 1)) * topics
    return values, slopes


def fit_softmax(
    counts: np.ndarray,
    vectors: np.ndarray,
    start: np.ndarray,
    *,
    penalty: np.ndarray | float = 0.01,
    log_base: np.ndarray | None = None,
    n_steps: int = 50,
    tolerance: float = 1e-6,
    radius: float = np.inf,
) -> np.ndarray:
    """Return the topic vectors that maximise `softmax_objective`, float64 (n_topics, n_dimensions), from `start` on."""
    exact = np.asarray(vectors, dtype=np.float64)
    summed = _summed(counts, exact, log_base)  # once, not at every step
    return maximise(
        lambda topics: _softmax_objective(topics, summed, exact, penalty, log_base),
        start,
        n_steps=n_steps,
        tolerance=tolerance,
        radius=radius,
    )


def negatives_objective(
    topics: np.ndarray, seen: np.ndarray, drawn: np.ndarray, outputs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return sum_c A_kc log s(t_k.o_c) + B_kc log s(-t_k.o_c) of each topic, s the logistic function, and its gradient.

    seen: A, how often c stands around a token of topic k, and drawn: B, how often it is a negative sample there, both
    (n_topics, n_terms); outputs: o (n_terms, n_dimensions).
    """
    exact = np.asarray(outputs, dtype=np.float64)
    scores = topics @ exact.T
    below = -np.logaddexp(0.0, -scores)  # log s(score); log s(-score) is that less the score
    values = ((seen + drawn) * below - drawn * scores).sum(axis=1)
    slopes = (seen - (seen + drawn) * np.exp(below)) @ exact
    return values, slopes


def fit_negatives(
    seen: np.ndarray,
    noise: np.ndarray,
    negative: int,
    outputs: np.ndarray,
    start: np.ndarray,
    *,
    n_steps: int = 100,
    tolerance: float = 1e-7,
) -> np.ndarray:
    """Return the topic vectors that skip-gram with negative samples tends to, where output vectors stay as they are.

    Of the `negative` samples of each pair those that equal the target are left out: B_kc = negative P(c) (A_k - A_kc),
    P the noise (n_terms,). Float64 (n_topics, n_dimensions).
    """
    drawn = negative * noise * (seen.sum(axis=1, keepdims=True) - seen)
    # Each topic's function is a mean, so that all are of one size.
    size = np.maximum(seen.sum(axis=1, keepdims=True), 1)
    seen, drawn, exact = seen / size, drawn / size, outputs.astype(np.float64)
    return maximise(
        lambda topics: negatives_objective(topics, seen, drawn, exact),
        start,
        n_steps=n_steps,
        tolerance=tolerance,
    )


def topics_around(
    tokens: np.ndarray, topics: np.ndarray, offsets: np.ndarray, n_topics: int, n_terms: int, window: int
) -> np.ndarray:
    """Return A, float64 (n_topics, n_terms): how often a token of topic k stands in the window of a term c.

    tokens, topics: int32 (n_tokens,); offsets: (n_documents + 1,), where documents begin. A pair at distance l weighs
    (window - l + 1) / window, as often as a window whose reach is drawn anew at each place holds it.
    """
    found = np.zeros((n_terms, n_topics))
    _topics_around(tokens, topics, offsets, window, found)
    return np.ascontiguousarray(found.T)


@njit(cache=True, nogil=True)
def _topics_around(tokens, topics, offsets, window, found):  # type: ignore[no-untyped-def]
    for d in range(len(offsets) - 1):
        for place in range(offsets[d], offsets[d + 1]):
            for other in range(max(offsets[d], place - window), min(offsets[d + 1], place + window + 1)):
                if other != place:
                    found[tokens[place], topics[other]] += (window - abs(place - other) + 1) / window


def mean_vectors(counts: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return the mean vector of the tokens of each topic, float64 (n_topics, n_dimensions); zero for a topic of none.

    counts: (n_terms, n_topics), how often each term has each topic; vectors: (n_terms, n_dimensions).
    """
    totals = np.maximum(counts.sum(axis=0), 1e-12)
    return (counts.T @ vectors.astype(np.float64)) / totals[:, None]
