"""The reweighted relaxation of the compression criterion and its solution by ADMM (the paper's section 4).

Source: H. Paskov, R. West, J. Mitchell and T. Hastie, "Compressive feature learning", NIPS 2013, equations (2)-(6). The
derivations that the paper leaves to its supplement:

The problem. w >= 0 has an entry a pointer (k-gram s at a place), X w >= 1 says that each word is covered, and with
weights D
    minimise  sum_i D_i lambda w_i + sum_s c(s) max_{i in J(s)} D_i w_i   subject to  X w >= 1.                      (2)
w <= 1 needs no saying: lowering an entry above 1 to 1 keeps every word covered and costs no more.
ADMM has a copy z of w, z = w, a dual y of that and a step rho; g(z) says X z >= 1. One iteration:
    w = argmin f(w) + y'w + rho/2 |w - z|^2,   z = argmin g(z) - y'z + rho/2 |w - z|^2,   y = y + rho (w - z).

z-step (6). With alpha >= 0 the dual of X z >= 1, stationarity gives z = w + (y + X'alpha)/rho; put in, what is left
is to minimise alpha'H alpha/2 - alpha'(rho 1 - X(y + rho w)), H = X X'. The step of y then leaves y = y + rho w - rho
z = -X'alpha: after every iteration y is minus the sum of alpha over the pointer's words. So neither y nor z need be
kept: with a the alpha of the iteration before, y = -X'a, the z-step is
    min over alpha >= 0 of  (alpha - a)'H(alpha - a)/2 + rho alpha'(X w - 1),
and z = w + X'(alpha - a)/rho. H_jl counts the pointers over both words j and l: zero if l - j >= k or across
documents, so documents are apart and each system is banded (`_compressive_projection`).

w-step (5). Separable by k-gram s: minimise c max(D w) + rho/2 |w|^2 - q'w over w >= 0, where
q = max(0, rho z - D lambda - y) = max(0, rho w + X'(2 alpha - a) - D lambda); clipping at 0 is right since w_i = 0
wherever the linear term is not negative. Fix M = max(D w): then w_i = min(q_i/rho, M/D_i). The derivative in M of the
cost is c - sum_i (q_i - rho M/D_i)_+ / D_i, which grows with M. At M = 0 it is c - |q/D|_1: if that is not negative,
w = 0 (the paper's test). Otherwise M solves sum_i (q_i - rho M/D_i)_+ / D_i = c; where the first r terms (in
decreasing D q) are positive, M = (sum_r q/D - c) / (rho sum_r D^-2). That is (5), whose printed form lacks the factor
1/rho. The left side is convex, decreasing and piecewise linear in M, so Newton's method from M = 0 climbs to the
solution without passing it and without sorting. A k-gram that occurs once has w = (q - c D)_+ / rho.

Reweighting: D = max(1, 1/(w + epsilon)); the weights push small entries to 0 and leave those near 1 alone.

Departures. Step: rho = max(lambda, 0.1), since duals are prices of words and grow with the pointer cost. k-grams that
occur once are kept only where they can come near paying: where the words of a pointer would cost, each alone in its
own entry shared by its occurrences, at least the pointer's price less a half. The bound (`_compressive_bound`)
regards them all.
"""

import numpy as np

from textbench.featurizers._compressive.index import ONCE, OUTSIDE, KgramIndex
from textbench.featurizers._compressive.projection import project
from textbench.featurizers._kernels import in_parallel, kernel, shares

SMALLEST_STEP = 0.1
EPSILON = 0.5  # of the reweighting; 0.1 and less settles on a poor answer
FLOOR = 1e-30  # of a sum that may be zero
DROPPED = -1.0  # in place of w: a pointer that the relaxation leaves out


class Relaxation:
    """The iteration's state: alpha, float32 (n_words,), and w beside D, float32 (max_length, n_words, 2).

    alpha: prices of words to begin with, float (n_words,). span: a cover that w begins as.
    """

    def __init__(
        self, index: KgramIndex, pointer_cost: float, costs: np.ndarray, alpha: np.ndarray, span: np.ndarray
    ) -> None:
        self.index, self.pointer_cost, self.costs = index, pointer_cost, costs
        self.step = max(pointer_cost, SMALLEST_STEP)
        self.alpha = alpha.astype(np.float32)
        self._ahead = self.alpha.copy()  # 2 alpha - (alpha before)
        self._state = np.zeros((*index.kgram.T.shape, 2), dtype=np.float32)
        self._state[:, :, 1] = 1
        _begin(index.kgram, index.words, np.bincount(index.words), pointer_cost, costs, span, self._state)

    def iterate(self) -> float:
        """Do one iteration; return how far alpha moved, as a share of its sum."""
        index = self.index
        given = (self._ahead, self._state, np.float32(self.pointer_cost), self.costs, np.float32(self.step))
        places = (index.start, index.where, index.lengths)
        in_parallel(_step_repeated, [(*part, *places, *given) for part in shares(index.start)])
        documents = shares(index.offsets)
        in_parallel(_step_once, [(index.kgram, index.offsets, *part, *given) for part in documents])
        own = (self._state, self.alpha, self._ahead, self.step)
        moved = in_parallel(project, [(index.offsets, *part, *own) for part in documents])
        return sum(moved) / max(float(self.alpha.sum(dtype=np.float64)), FLOOR)

    def reweight(self) -> None:
        """Set D from w."""
        _reweight(self._state.reshape(-1, 2))

    def opened(self) -> np.ndarray:
        """Return the k-grams of which some pointer is more in than out (w > 1/2), bool (n_kgrams,)."""
        index, opened = self.index, np.zeros(len(self.index.lengths), dtype=np.bool_)
        given = (index.start, index.where, index.lengths, self._state, opened)
        in_parallel(_round, [(*part, *given) for part in shares(index.start)])
        return opened


@kernel
def _begin(
    kgram: np.ndarray,
    words: np.ndarray,
    counts: np.ndarray,
    pointer: float,
    costs: np.ndarray,
    span: np.ndarray,
    state: np.ndarray,
) -> None:
    """w = 1 where the cover has a pointer; leave out k-grams that occur once and come nowhere near paying."""
    for i in range(len(words)):
        alone = 0.0
        for t in range(1, kgram.shape[1] + 1):
            if kgram[i, t - 1] == OUTSIDE:
                state[t - 1, i, 0] = DROPPED
                continue
            alone += pointer + 1.0 / counts[words[i + t - 1]]
            if span[i] == t:
                state[t - 1, i, 0] = 1
            elif kgram[i, t - 1] == ONCE and t > 1 and alone <= pointer + costs[t - 1] - 0.5:
                state[t - 1, i, 0] = DROPPED


@kernel
def _step_repeated(
    begin: int,
    end: int,
    start: np.ndarray,
    where: np.ndarray,
    lengths: np.ndarray,
    ahead: np.ndarray,
    state: np.ndarray,
    pointer: float,
    costs: np.ndarray,
    rho: float,
) -> None:
    """The w-step of the k-grams begin ... end - 1 (equation (5))."""
    most = 1
    for g in range(begin, end):
        most = max(most, start[g + 1] - start[g])
    q, inverse = np.empty(most, dtype=np.float32), np.empty(most, dtype=np.float32)
    for g in range(begin, end):
        t = lengths[g]
        places = where[start[g] : start[g + 1]]
        c, total = costs[t - 1], 0.0
        for o in range(len(places)):
            i = places[o]
            weight = state[t - 1, i, 1]
            value = rho * state[t - 1, i, 0] - weight * pointer
            for j in range(i, i + t):
                value += ahead[j]
            q[o] = max(value, np.float32(0.0))
            inverse[o] = np.float32(1.0) / weight
            total += q[o] * inverse[o]
        level = 0.0 if total <= c else _level(q[: len(places)], inverse, c, rho)
        for o in range(len(places)):
            new = min(q[o] / rho, level * inverse[o])
            if state[t - 1, places[o], 0] != new:  # most stay 0, and memory is written slowly
                state[t - 1, places[o], 0] = new


@kernel
def _level(q: np.ndarray, inverse: np.ndarray, c: float, rho: float) -> float:
    """Solve sum (q - rho M/D)_+ / D = c for M by Newton's method from 0."""
    level = 0.0
    for _ in range(100):
        excess, slope = -c, 0.0
        for o in range(len(q)):
            rest = q[o] - rho * level * inverse[o]
            if rest > 0:
                excess += rest * inverse[o]
                slope += rho * inverse[o] * inverse[o]
        if excess <= 1e-5 * c:
            break
        level += excess / slope
    return level


@kernel
def _step_once(
    kgram: np.ndarray,
    offsets: np.ndarray,
    begin: int,
    end: int,
    ahead: np.ndarray,
    state: np.ndarray,
    pointer: float,
    costs: np.ndarray,
    rho: float,
) -> None:
    """The w-step of k-grams that occur once, in the documents begin ... end - 1."""
    for i in range(offsets[begin], offsets[end]):
        value = 0.0
        for t in range(1, kgram.shape[1] + 1):
            if kgram[i, t - 1] == OUTSIDE:
                break
            value += ahead[i + t - 1]
            if kgram[i, t - 1] == ONCE and state[t - 1, i, 0] >= 0:
                price = state[t - 1, i, 1] * (pointer + costs[t - 1])
                state[t - 1, i, 0] = max(0.0, state[t - 1, i, 0] + (value - price) / rho)


@kernel
def _reweight(state: np.ndarray) -> None:
    for e in range(len(state)):
        state[e, 1] = max(1.0, 1.0 / (max(state[e, 0], 0.0) + EPSILON))


@kernel
def _round(
    begin: int,
    end: int,
    start: np.ndarray,
    where: np.ndarray,
    lengths: np.ndarray,
    state: np.ndarray,
    opened: np.ndarray,
) -> None:
    for g in range(begin, end):
        for o in range(start[g], start[g + 1]):
            if state[lengths[g] - 1, where[o], 0] > 0.5:
                opened[g] = True
                break
