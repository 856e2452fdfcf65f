"""A certified lower bound of the compression criterion, from any prices of words.

Split the cost of every dictionary entry among the places it occurs at: y_i >= 0 with sum over J(s) of y_i <= c(s). If
every document is then covered on its own at prices lambda + y_i, no cover of the corpus costs less than these covers
together: a cover that uses s at some places pays c(s) once, which is no less than the sum of their y_i. So any split
gives a bound, and dynamic programming evaluates it exactly; the best split gives the value of the linear relaxation.

Prices of words alpha, as the relaxation has them, say how to split: y_i = (alpha(places of i) - lambda - mu)_+, with
mu such that the parts sum to c(s) (below 0 where there is something to spare). The differences of the shortest
distances in a covered document are prices of words again, feasible and worth exactly the bound; splitting by them
cannot lower it, so the two steps are repeated.
"""

import numpy as np

from textbench.featurizers._compressive.index import OUTSIDE, KgramIndex
from textbench.featurizers._kernels import in_parallel, kernel, shares

ROUNDS = 12  # at most
ENOUGH = 5e-6  # a round that raises the bound by less than this share of it is the last
LESS = 1 - 1e-6  # parts are stored in float32; they sum to no more than the cost of the entry


def lower_bound(
    index: KgramIndex, pointer_cost: float, costs: np.ndarray, alpha: np.ndarray, rounds: int = ROUNDS
) -> float:
    """Return a bound below which no cover of the corpus can cost, from prices of words alpha, float (n_words,)."""
    prices = alpha.astype(np.float32)  # any prices split the entries to a bound, rounded ones too
    parts = np.empty(index.kgram.T.shape, dtype=np.float32)
    parts[:] = costs[:, None]  # a k-gram that occurs once bears its entry alone
    parts[index.kgram.T == OUTSIDE] = np.inf
    best = 0.0
    for _ in range(rounds):
        places = (index.start, index.where, index.lengths, prices, pointer_cost, costs, parts)
        in_parallel(_split, [(*part, *places) for part in shares(index.start)])
        covers = [(index.offsets, *part, parts, pointer_cost, prices) for part in shares(index.offsets)]
        bound = sum(in_parallel(_cover, covers))
        risen, best = bound - best, max(bound, best)
        if risen <= ENOUGH * best:
            break
    return best


@kernel
def _split(
    begin: int,
    end: int,
    start: np.ndarray,
    where: np.ndarray,
    lengths: np.ndarray,
    prices: np.ndarray,
    pointer: float,
    costs: np.ndarray,
    parts: np.ndarray,
) -> None:
    """Split the entries of the k-grams begin ... end - 1; mu by Newton's method from below, as it cannot overshoot."""
    most = 1
    for g in range(begin, end):
        most = max(most, start[g + 1] - start[g])
    worth = np.empty(most, dtype=np.float64)
    for g in range(begin, end):
        t = lengths[g]
        places = where[start[g] : start[g + 1]]
        c, total, least = costs[t - 1], 0.0, np.inf
        for o in range(len(places)):
            value = -pointer
            for j in range(places[o], places[o] + t):
                value += prices[j]
            worth[o] = value
            total += max(value, 0.0)
            least = min(least, value)
        mu = 0.0 if total >= c else least - c / len(places)
        for _ in range(100):
            excess, n_above = -c, 0
            for o in range(len(places)):
                if worth[o] > mu:
                    excess += worth[o] - mu
                    n_above += 1
            if excess <= 1e-9 * c:
                break
            mu += excess / n_above
        for o in range(len(places)):
            parts[t - 1, places[o]] = max(worth[o] - mu, 0.0) * LESS


@kernel
def _cover(
    offsets: np.ndarray, begin: int, end: int, parts: np.ndarray, pointer: float, prices: np.ndarray
) -> float:
    """Return the cost of the cheapest covers; prices become the mean of the differences from both ends."""
    k = parts.shape[0]
    longest = 0
    for d in range(begin, end):
        longest = max(longest, offsets[d + 1] - offsets[d])
    ahead, behind = np.empty(longest + 1), np.empty(longest + 1)
    total = 0.0
    for d in range(begin, end):
        low, n = offsets[d], offsets[d + 1] - offsets[d]
        ahead[: n + 1] = np.inf
        behind[: n + 1] = np.inf
        ahead[0] = behind[n] = 0.0
        for s in range(n):
            cheapest = np.inf
            for t in range(min(k, n - s), 0, -1):
                cheapest = min(cheapest, pointer + parts[t - 1, low + s])
                ahead[s + t] = min(ahead[s + t], ahead[s] + cheapest)
        for e in range(n, 0, -1):
            cheapest = np.inf
            for t in range(min(k, e), 0, -1):
                cheapest = min(cheapest, pointer + parts[t - 1, low + e - t])
                behind[e - t] = min(behind[e - t], behind[e] + cheapest)
        total += ahead[n]
        for j in range(n):
            prices[low + j] = (ahead[j + 1] - ahead[j] + behind[j] - behind[j + 1]) / 2
    return total
