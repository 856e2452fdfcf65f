"""Compression of a corpus: relaxation, rounding and search put together.

1. A cover at amortised prices gives prices of words to begin with.
2. ADMM solves the relaxation; its prices of words certify a lower bound.
3. ADMM goes on with weights that push it towards 0 and 1. After every round the dictionary is what is more in than out,
   and each document is covered at the least cost given that dictionary.
4. Local search lowers the true cost of the cheapest of these covers.

Without iterations of ADMM the search begins from the amortised cover: faster, and a few tenths of a per cent dearer.
"""

from dataclasses import dataclass

import numpy as np

from textbench.featurizers._compressive.admm import Relaxation
from textbench.featurizers._compressive.bound import lower_bound
from textbench.featurizers._compressive.cover import cost_of, cover_with, usage_of
from textbench.featurizers._compressive.index import ONCE, KgramIndex
from textbench.featurizers._compressive.search import amortised_cover, improve

ROUND = 10  # iterations between two reweightings
QUICK_ROUNDS = 2  # of the search and of the bound, when there are no iterations


@dataclass(frozen=True, eq=False)
class CostSolution:
    """At a pointer cost: a cover, `span` uint8 (n_words,), a bound, and prices of words, float32 (n_words,)."""

    pointer_cost: float
    span: np.ndarray
    lower_bound: float
    n_iter: int
    prices: np.ndarray


def solve(
    index: KgramIndex,
    pointer_cost: float,
    costs: np.ndarray,
    max_iter: int,
    tol: float,
    warm: CostSolution | None = None,
) -> CostSolution:
    """Compress a corpus and return the solution. costs: float64 (max_length,), of an entry of 1, 2, ... words.

    Half of `max_iter` at most goes to the relaxation, which ends when an iteration moves the prices by less than the
    share `tol`; the rest to reweighting. warm: the solution at another pointer cost, to begin from.
    """
    span = amortised_cover(index, pointer_cost, costs)
    prices = word_prices(index, span, pointer_cost, costs)
    if warm is not None:
        opened = usage_of(index, warm.span) > 0
        span = _cheaper(index, pointer_cost, costs, span, cover_with(index, opened, pointer_cost, costs))
        prices = _prices_at(index, warm, pointer_cost, costs)
    if max_iter == 0:
        return _search_only(index, pointer_cost, costs, span, prices)
    relaxation = Relaxation(index, pointer_cost, costs, prices, span)
    n_iter = 0
    while n_iter < (max_iter + 1) // 2:
        n_iter += 1
        if relaxation.iterate() < tol:
            break
    solved = relaxation.alpha.copy()
    bound = lower_bound(index, pointer_cost, costs, solved)
    best = _cheaper(
        index, pointer_cost, costs, span, cover_with(index, relaxation.opened(), pointer_cost, costs)
    )
    left = max_iter - (max_iter + 1) // 2
    while left > 0:
        relaxation.reweight()
        for _ in range(min(ROUND, left)):
            relaxation.iterate()
        n_iter += min(ROUND, left)
        left -= ROUND
        best = _cheaper(
            index, pointer_cost, costs, best, cover_with(index, relaxation.opened(), pointer_cost, costs)
        )
    del relaxation
    improve(index, best, pointer_cost, costs)
    return CostSolution(pointer_cost, best, bound, n_iter, solved)


def word_prices(index: KgramIndex, span: np.ndarray, pointer_cost: float, costs: np.ndarray) -> np.ndarray:
    """Return what each word costs in a cover `span`, float32 (n_words,), pointers and entries shared out evenly."""
    at = np.flatnonzero(span)
    used = index.kgram[at, span[at] - 1]
    usage = usage_of(index, span)
    users = np.where(used == ONCE, 1, usage[np.maximum(used, 0)]) if len(usage) else np.ones(len(at))
    share = (pointer_cost + costs[span[at] - 1] / users) / span[at]
    prices = np.zeros(len(span), dtype=np.float32)
    for offset in range(index.max_length):
        inside = span[at] > offset
        # Where pointers overlap, the dearer price stands.
        prices[at[inside] + offset] = np.maximum(prices[at[inside] + offset], share[inside])
    return prices


def _prices_at(
    index: KgramIndex, solution: CostSolution, pointer_cost: float, costs: np.ndarray
) -> np.ndarray:
    """Return a solution's prices of words as they would be if its cover stood at another pointer cost."""
    before = word_prices(index, solution.span, solution.pointer_cost, costs)
    after = word_prices(index, solution.span, pointer_cost, costs)
    return np.maximum(solution.prices + after - before, 0)


def _search_only(
    index: KgramIndex, pointer_cost: float, costs: np.ndarray, span: np.ndarray, prices: np.ndarray
) -> CostSolution:
    bound = lower_bound(index, pointer_cost, costs, prices, QUICK_ROUNDS)
    improve(index, span, pointer_cost, costs, QUICK_ROUNDS)
    return CostSolution(pointer_cost, span, bound, 0, prices)


def _cheaper(
    index: KgramIndex, pointer_cost: float, costs: np.ndarray, a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    return a if cost_of(index, a, pointer_cost, costs) <= cost_of(index, b, pointer_cost, costs) else b
