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

from textbench.featurizers._exponential import ONE, exponential
from textbench.featurizers._kernels import in_parallel, shares
from textbench.featurizers._topical.products import aligned_zeros

# Proportions are iterated until none of a document's steps adds up to more than this.
TOLERANCE = 1e-4
MAX_STEPS = 50
LANES = 16  # numbers that the widest registers hold: rows are filled up with zeros to a multiple of them
CHUNK = 64  # documents whose weights are added up in single precision
HALF = np.float32(0.5)
M1, M3, M5 = np.float32(1 / 24), np.float32(-37 / 5760), np.float32(10313 / 2903040)


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
    return found / np.maximum(found.sum(axis=0), 1e-300)


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
    rows = _filled_up(table)
    first = np.full((1, n_topics), 1 / n_topics) if start is None else start
    begun = np.ascontiguousarray(first, dtype=np.float32)
    given = (counts.indices, entries, added, rows, float(alpha), int(n_steps), is_variational, begun)
    in_parallel(_infer, [(begin, end, offsets, *given, theta, expected) for begin, end in shares(offsets)])
    return Inferred(theta, expected)


def expected_counts(counts: sp.spmatrix, table: np.ndarray, mixing: np.ndarray) -> np.ndarray:
    """Return N_wk = sum_d n_dw q_dwk, float64 (n_terms, n_topics), with q_dwk ~ mixing_dk table_wk.

    counts: csr, or csc (which is faster); mixing: (n_documents, n_topics), theta or what stands for it. Terms are
    worked on side by side, each by itself: the number of cores changes no bit.
    """
    by_term = counts.tocsc()
    found, starts = np.zeros(table.shape), by_term.indptr.astype(np.int64)
    given = by_term.indices, by_term.data.astype(np.float32), _filled_up(mixing), _filled_up(table), found
    in_parallel(_expected_counts, [(begin, end, starts, *given) for begin, end in shares(starts)])
    return np.asarray(table * found)


def _filled_up(rows: np.ndarray) -> np.ndarray:
    """Return float32 rows that begin where a register does, with zeros at their ends."""
    filled = aligned_zeros((len(rows), -(-rows.shape[1] // LANES) * LANES))
    filled[:, : rows.shape[1]] = rows
    return filled


@njit(cache=True, nogil=True)
def _expected_counts(begin, end, starts, documents, entries, mixing, table, found):  # type: ignore[no-untyped-def]
    """Fill in sum_d n_dw mixing_dk / (mixing_d . table_w) of terms begin .. end."""
    sums = np.empty(table.shape[1], np.float32)
    for w in range(begin, end):
        now = table[w]
        for first in range(starts[w], starts[w + 1], CHUNK):
            _add_shares(first, min(first + CHUNK, starts[w + 1]), documents, entries, mixing, now, sums)
            for k in range(found.shape[1]):
                found[w, k] += sums[k]


@njit(cache=True, fastmath={"contract", "reassoc", "nsz"})
def _add_shares(first, last, at, entries, rows, now, sums):  # type: ignore[no-untyped-def]
    """Fill in the sum of entry / (now . row) times the row, over the rows `at` of the entries first .. last.

    Four at a time: each number of `now` and of the sums is read once for them. A row that meets nothing adds nothing.
    """
    zero = np.float32(0.0)
    for k in range(len(sums)):
        sums[k] = zero
    for i in range(first, last, 4):
        a, b = at[i], at[min(i + 1, last - 1)]
        c, d = at[min(i + 2, last - 1)], at[min(i + 3, last - 1)]
        of_a = of_b = of_c = of_d = zero
        for k in range(len(sums)):
            of_a += now[k] * rows[a, k]
            of_b += now[k] * rows[b, k]
            of_c += now[k] * rows[c, k]
            of_d += now[k] * rows[d, k]
        for_a = entries[i] / of_a if of_a > zero else zero
        for_b = entries[i + 1] / of_b if i + 1 < last and of_b > zero else zero
        for_c = entries[i + 2] / of_c if i + 2 < last and of_c > zero else zero
        for_d = entries[i + 3] / of_d if i + 3 < last and of_d > zero else zero
        for k in range(len(sums)):
            sums[k] += for_a * rows[a, k] + for_b * rows[b, k] + for_c * rows[c, k] + for_d * rows[d, k]


@njit(cache=True, fastmath={"contract", "reassoc", "nsz"})
def exp_digamma(x, found):  # type: ignore[no-untyped-def]
    """Fill in exp(digamma(x)) of float32 x > 0, to 3e-6 of it and 1e-16.

    Six steps of the recurrence, digamma(x) = digamma(x + 6) - 1 / x - .. - 1 / (x + 5), then the series of
    exp(digamma(u + 1/2)): Abramowitz and Stegun, 6.3.5; no logarithm is taken, and several numbers at once.
    """
    for k in range(len(x)):
        z = x[k] * (x[k] + np.float32(5.0))
        below = ONE / z + ONE / (z + np.float32(4.0)) + ONE / (z + np.float32(6.0))
        u = x[k] + np.float32(5.5)
        v = ONE / u
        w = v * v
        beyond = u + v * (M1 + w * (M3 + w * M5))
        found[k] = beyond * exponential(-(x[k] + x[k] + np.float32(5.0)) * below)


@njit(cache=True, nogil=True)
def _infer(  # type: ignore[no-untyped-def]
    begin, end, offsets, terms, entries, added, table, alpha, n_steps, is_variational, start, theta, expected
):
    n_topics, width = theta.shape[1], table.shape[1]
    now, sums = np.zeros(width, np.float32), np.empty(width, np.float32)
    before, amounts = np.empty(n_topics, np.float32), np.empty(n_topics, np.float32)
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
        of_start = start[d if len(start) > 1 else 0]
        for k in range(n_topics):
            before[k] = of_start[k]
        _mix(before, whole, is_variational, amounts, now)
        for _ in range(n_steps):
            _add_shares(first, last, terms, entries, table, now, sums)
            step = _moved(before, now, sums, alpha)
            _mix(before, whole, is_variational, amounts, now)
            if step < TOLERANCE:
                break
        _add_shares(first, last, terms, added, table, now, sums)
        for k in range(n_topics):
            theta[d, k] = before[k]
            expected[d, k] = now[k] * sums[k]


@njit(cache=True, fastmath={"contract", "reassoc", "nsz"})
def _moved(before, now, sums, alpha):  # type: ignore[no-untyped-def]
    """Put new proportions in the place of those before; how far they all are from them.

    They are shares of the sum as it was rounded, so that one topic is all of a document to the bit.
    """
    step = whole = 0.0
    for k in range(len(before)):
        whole += alpha + now[k] * sums[k]
    for k in range(len(before)):
        updated = (alpha + now[k] * sums[k]) / whole
        step += abs(updated - before[k])
        before[k] = updated
    return step


@njit(cache=True)
def _mix(proportions, whole, is_variational, amounts, now):  # type: ignore[no-untyped-def]
    """Fill in what proportions stand for in q: themselves, or exp(digamma) of their amounts of the whole, over it."""
    if not is_variational:
        for k in range(len(proportions)):
            now[k] = proportions[k]
        return
    size, share = np.float32(whole), np.float32(1.0 / whole)
    for k in range(len(proportions)):
        amounts[k] = proportions[k] * size
    exp_digamma(amounts, now)
    for k in range(len(proportions)):
        now[k] *= share
