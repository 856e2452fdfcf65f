"""Documents against topics that stay as they are: their proportions, and whose each of their terms is.

Source: A. Asuncion, M. Welling, P. Smyth and Y. W. Teh, "On smoothing and inference for topic models", UAI 2009:
maximum a posteriori with the prior offset by one, and variational Bayes.

`counts` are csr (n_documents, n_terms), or (n_terms, n_topics) of how often each term has each topic; `table` and
`log_probabilities` are of p(term | topic), (n_terms, n_topics); `weights` (n_entries,) are of the counts' entries.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numba import njit

from textbench.featurizers._compressive.kernels import in_parallel, shares

# Proportions are iterated until none of a document's steps adds up to more than this.
TOLERANCE = 1e-4
MAX_STEPS = 50


@dataclass(frozen=True)
class Inferred:
    """What documents are made of, by topic.

    `proportions` theta, float32 (n_documents, n_topics), rows that sum to 1; `expected` float32 of the same shape, the
    weight of a document's terms that is each topic's, sum_w weight_dw q_dwk with q_dwk = theta_dk B_wk / sum_j theta_dj
    B_wj. Both are zero for a document without a term that some topic has.
    """

    proportions: np.ndarray
    expected: np.ndarray


def table_of(log_probabilities: np.ndarray) -> np.ndarray:
    """Return float32 (n_terms, n_topics), exp of a table of log p(term | topic) up to a factor of each term.

    The factor is the same for all topics, so nothing of a document depends on it; the largest of a row is 1.
    """
    log_probabilities = log_probabilities - log_probabilities.max(axis=1, keepdims=True)
    return np.exp(log_probabilities).astype(np.float32)


def smoothed(counts: np.ndarray, eta: float) -> np.ndarray:
    """Return p(term | topic), float64 (n_terms, n_topics), of how often each term has each topic.

    Terms that never occur have none.
    """
    occurs = counts.any(axis=1, keepdims=True)
    found = (counts + eta) * occurs
    return found / found.sum(axis=0)


def infer(
    counts: sp.csr_matrix,
    table: np.ndarray,
    alpha: float,
    weights: np.ndarray | None = None,
    *,
    n_steps: int = MAX_STEPS,
    is_variational: bool = False,
    start: np.ndarray | None = None,
) -> Inferred:
    """Return what documents are made of: counts csr (n_documents, n_terms), table (n_terms, n_topics) >= 0.

    theta_k <- (alpha + sum_w n_w q_wk) / (n_topics alpha + n), from `start` (n_documents, n_topics) on, uniform where
    None; `is_variational` puts exp(digamma(.)) of the sum in theta's place in q. At most `n_steps` steps. `weights` (of
    the counts' entries; the counts themselves where None) are what `expected` adds up. Documents are worked on side by
    side, each by itself: the number of cores changes no bit.
    """
    n_documents, n_topics = counts.shape[0], table.shape[1]
    theta, expected = (np.zeros((n_documents, n_topics), dtype=np.float32) for _ in "12")
    entries = counts.data.astype(np.float32)
    added = entries if weights is None else np.asarray(weights, dtype=np.float32)
    offsets = counts.indptr.astype(np.int64)
    rows = np.ascontiguousarray(table, dtype=np.float32)
    first = np.full((1, n_topics), 1 / n_topics) if start is None else start
    begun = np.ascontiguousarray(first, dtype=np.float32)
    given = (counts.indices, entries, added, rows, float(alpha), int(n_steps), is_variational, begun)
    in_parallel(_infer, [(begin, end, offsets, *given, theta, expected) for begin, end in shares(offsets)])
    return Inferred(theta, expected)


def expected_counts(counts: sp.csr_matrix, table: np.ndarray, mixing: np.ndarray) -> np.ndarray:
    """Return N_wk = sum_d n_dw q_dwk, float64 (n_terms, n_topics), with q_dwk ~ mixing_dk table_wk.

    mixing: (n_documents, n_topics), theta or what stands for it. The order of the sum is that of the entries.
    """
    scores = np.zeros(counts.nnz, dtype=np.float32)
    _scores(counts.indptr, counts.indices, table, mixing.astype(np.float32), scores)
    ratio = np.divide(counts.data, scores, out=np.zeros(counts.nnz), where=scores > 0)
    shared = sp.csr_matrix((ratio, counts.indices, counts.indptr), shape=counts.shape)
    return np.asarray(table * (shared.T @ mixing.astype(np.float64)))


@njit(cache=True, nogil=True, fastmath=True)
def _scores(offsets, terms, table, mixing, scores):  # type: ignore[no-untyped-def]
    """Fill in sum_k mixing_dk table_wk of every entry."""
    for d in range(len(offsets) - 1):
        for i in range(offsets[d], offsets[d + 1]):
            row, score = table[terms[i]], np.float32(0.0)
            for k in range(table.shape[1]):
                score += mixing[d, k] * row[k]
            scores[i] = score


@njit(cache=True)
def digamma(x):  # type: ignore[no-untyped-def]
    """The derivative of ln Gamma(x) for x > 0: recurrence up to 6, then the asymptotic series."""
    below = 0.0
    while x < 6.0:
        below -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132)))))
    return below + np.log(x) - 0.5 / x - series


@njit(cache=True)
def _mixing(share, whole):  # type: ignore[no-untyped-def]
    """Return exp(digamma(share * whole)), over whole."""
    return np.exp(digamma(share * whole) - np.log(whole))


@njit(cache=True, nogil=True, fastmath=True)
def _infer(  # type: ignore[no-untyped-def]
    begin, end, offsets, terms, entries, added, table, alpha, n_steps, is_variational, start, theta, expected
):
    n_topics = table.shape[1]
    now, sums = np.empty(n_topics, np.float32), np.empty(n_topics, np.float32)
    before = np.empty(n_topics, np.float32)
    for d in range(begin, end):
        first, last = offsets[d], offsets[d + 1]
        total = 0.0
        for i in range(first, last):
            row = table[terms[i]]
            for k in range(n_topics):
                if row[k] > 0:
                    total += entries[i]
                    break
        if total == 0.0:
            continue
        whole = n_topics * alpha + total
        for k in range(n_topics):
            before[k] = start[d if len(start) > 1 else 0, k]
            now[k] = _mixing(before[k], whole) if is_variational else before[k]
        for _ in range(n_steps):
            sums[:] = 0.0
            for i in range(first, last):
                row, score = table[terms[i]], np.float32(0.0)
                for k in range(n_topics):
                    score += now[k] * row[k]
                if score > 0:
                    share = entries[i] / score
                    for k in range(n_topics):
                        sums[k] += share * row[k]
            step = 0.0
            for k in range(n_topics):
                updated = (alpha + now[k] * sums[k]) / whole
                step += abs(updated - before[k])
                before[k] = updated
                now[k] = _mixing(updated, whole) if is_variational else updated
            if step < TOLERANCE:
                break
        sums[:] = 0.0
        for i in range(first, last):
            row, score = table[terms[i]], np.float32(0.0)
            for k in range(n_topics):
                score += now[k] * row[k]
            if score > 0:
                share = added[i] / score
                for k in range(n_topics):
                    sums[k] += share * row[k]
        for k in range(n_topics):
            theta[d, k] = before[k]
            expected[d, k] = now[k] * sums[k]
