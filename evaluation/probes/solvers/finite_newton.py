"""Linear SVM by the finite Newton method on the Gram matrix: a path of C, for some ten thousand documents.

The squared hinge loss is quadratic as long as the same documents lie inside the margin. With w = sum_i b_i x_i, scores
f = K b and S the documents with y_i f_i < 1, the minimum of that quadratic solves (K_SS + I / 2C) b_S = y_S, b = 0
elsewhere. Where the solution keeps S it is the solution; else one moves towards it as far as the loss falls, and S
changes. Conjugate gradients solve the systems, those of several neighbouring C together, and those of several classes
where S is much of the documents: one product of matrices a step. Each C starts from the best combination of the
solutions before, so that S is known but for a few documents; a large first C is reached by way of smaller ones, where
S is most documents and the systems are well conditioned. Where a system is not, a preconditioner of low rank serves it.
A solution is accepted only with a small duality gap over all documents.

Source: Keerthi, DeCoste, A Modified Finite Newton Method for Fast Solution of Large Scale Linear SVMs, JMLR 6
(2005), in the coefficients of the documents as in Chapelle, Training a Support Vector Machine in the Primal, Neural
Computation 19 (2007); steps left early as in Dembo, Eisenstat, Steihaug, Inexact Newton Methods, SIAM Journal on
Numerical Analysis 19 (1982).
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from textbench.evaluation.probes.solvers.low_rank import LowRank

GAP = 1e-5  # the largest relative duality gap of a solution that is accepted
INNER_GAP = 0.8 * GAP  # that among the documents near the margin; the others may add the rest
FIRST = 0.6  # the first C, times the documents' mean squared length, that is solved without a solution before
STEP = 10.0  # from one C to the next on the way to the first that is asked for
FORCING = 0.1  # a step's system is solved until this share of the present error is left
MAX_STEPS = 100  # Newton steps
MAX_INNER = 300  # conjugate gradients in one of them
PATIENCE = 10  # of those by the diagonal alone: about as long as a preconditioner of low rank takes to make
# Neighbouring C are solved together, up to SPAN times the first and MANY of them: a product with more columns costs
# less a column, but the last C starts further from its solution.
SPAN, MANY = 1.5, 10
# Classes are solved together, up to MANY_ROWS of their systems, where S of a class alone would not save a product with
# a vector SHARED times the work: with one vector it waits for memory, with many it does not, and as they converge they
# get few. FEW vectors wait less one by one.
SHARED, MANY_ROWS, FEW = 2, 40, 4
N_BEFORE = 4  # solutions whose best combination is the next start
FIT_STEPS = 12  # Newton steps in the coefficients of a combination
ROWS = 256  # of the Gram matrix that are copied at a time, 12 MB


class NewtonSolution(NamedTuple):
    """One problem at one C: w = sum_i b_i x_i / scale over the documents, the intercept sum_i b_i."""

    b: np.ndarray  # (n_documents,) float64, 0 outside the training documents
    scores: np.ndarray  # (n_documents,) float64, of all documents of the Gram matrix
    converged: bool


@dataclass
class _Problem:
    """One class against the rest, and what the next C starts from: the last solutions, and their best combination."""

    sign: np.ndarray  # (n_documents,), 0: not trained on
    basis: np.ndarray  # (n_before, n_documents)
    scores: np.ndarray  # (n_before, n_documents), of all documents by each of the basis
    coefficients: np.ndarray  # (n_before,)

    def continue_from(self, b: np.ndarray, scores: np.ndarray) -> None:
        """Add solutions for some C, (n_C, n_documents) each, of which the last is nearest to the next."""
        self.basis = np.vstack([self.basis, b])[-N_BEFORE:]
        self.scores = np.vstack([self.scores, scores])[-N_BEFORE:]
        self.coefficients = np.eye(len(self.basis))[-1]


class NewtonPath:
    """The binary problems of one set of training documents, all along one path of C.

    minimise |w|^2/2 + b^2/2 + C sum_i max(0, 1 - y_i (w.x_i/scale + b))^2, i over the training documents.

    gram: float32 (n_documents, n_documents), as `evaluation.probes.solvers.gram` makes it, never modified; train:
    (n_train,) ints, positions of the training documents; positive: bools (n_problems, n_train), some of each kind in
    each row. Products are float32, what adds up along a path float64. No random numbers: the same bits each time.
    """

    def __init__(self, gram: np.ndarray, train: np.ndarray, scale: float, positive: np.ndarray) -> None:
        self.gram = gram
        self.train = train
        self.factor = 1 / scale**2
        self.square = np.diagonal(gram) * self.factor + 1.0  # the bias is a feature of ones
        self.buffer = np.empty(0, dtype=np.float32)
        self.has_begun = False
        self.is_slow = False  # by the diagonal alone
        # What the first C starts from, the directions of all documents and of the positive ones: each document
        # counts as if it had length 1.
        length = 1 / self.square[train]
        sides = np.vstack([length, np.where(positive, length, 0.0)])
        scores = self._scores(train, sides)
        directions = np.zeros(scores.shape)
        directions[:, train] = sides
        signs = np.zeros((len(positive), len(gram)))
        signs[:, train] = np.where(positive, 1.0, -1.0)
        self.problems = [
            _Problem(sign, directions[[0, k]], scores[[0, k]], np.zeros(2)) for k, sign in enumerate(signs, 1)
        ]

    def solve(self, C: Sequence[float], max_steps: int = MAX_STEPS) -> list[list[NewtonSolution]]:
        """The solutions of each problem for each of C, values of like size which are solved together.

        Solutions of one call are where the next begins.
        """
        way = [] if self.has_begun else way_to(C[0], self.square[self.train].mean())
        self.has_begun = True
        for before in way:
            self._follow(np.array([before]), max_steps)
        found = self._follow(np.array(C), max_steps)
        self.buffer = np.empty(0, dtype=np.float32)  # several paths may wait for a further C
        return found

    def _follow(self, C: np.ndarray, max_steps: int) -> list[list[NewtonSolution]]:
        """Solve each problem for each of C from the best combinations of the solutions before."""
        starts = [self._start(problem, C) for problem in self.problems]
        found: dict[int, list[NewtonSolution]] = {}
        for group in self._groups(starts, len(C)):
            sign = np.repeat([self.problems[k].sign for k in group], len(C), axis=0)
            b, scores = (np.concatenate(rows) for rows in zip(*(starts[k] for k in group), strict=True))
            solved = self._solve_together(b, scores, sign, np.tile(C, len(group)), max_steps)
            for k, *own in zip(group, *(np.split(rows, len(group)) for rows in solved), strict=True):
                found[k] = [
                    NewtonSolution(b, at, bool(converged)) for b, at, converged in zip(*own, strict=True)
                ]
                self.problems[k].continue_from(*own[:2])
        return [found[k] for k in range(len(starts))]

    def _start(self, problem: _Problem, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where a problem starts for each of C: coefficients and scores, each (n_C, n_documents)."""
        norm = problem.basis @ problem.scores.T
        signed = problem.sign[self.train] * problem.scores[:, self.train]
        starts = np.empty((len(C), len(norm)))
        for k, each in enumerate(C):
            starts[k] = problem.coefficients = _best_combination(norm, signed, each, problem.coefficients)
        return starts @ problem.basis, starts @ problem.scores

    def _groups(self, starts: list[tuple[np.ndarray, np.ndarray]], n_C: int) -> list[list[int]]:
        """Which problems are solved together for n_C values of C each."""
        near = [
            self._inside(problem.sign, b, scores).any(axis=0).sum() / len(self.train)
            for problem, (b, scores) in zip(self.problems, starts, strict=True)
        ]
        wide = [k for k, share in enumerate(near) if SHARED * share**2 > n_C]
        size = max(1, MANY_ROWS // n_C)
        together = [wide[first : first + size] for first in range(0, len(wide), size)]
        return together + [[k] for k in range(len(near)) if k not in wide]

    def _inside(self, sign: np.ndarray, b: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Which training documents lie inside the margin, or would without their own part of the score."""
        return (sign != 0) & (sign * (scores - self.square * b) < 1)

    def _solve_together(
        self, b: np.ndarray, scores: np.ndarray, sign: np.ndarray, C: np.ndarray, max_steps: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Solve from the starts b, scores, with sign (n_rows, n_documents) and C (n_rows,): solutions, and converged.

        The documents inside the margin are solved alone; they are joined by others that their solution leaves inside.
        """
        inside = self._inside(sign, b, scores)
        near = np.flatnonzero(inside.any(axis=0))
        if not len(near):
            near, inside = self.train, sign != 0
        rows, gaps = np.arange(len(b)), np.empty(len(b))
        while True:
            system = _System(
                self._products(near),
                self.square[near],
                self.factor,
                sign[rows][:, near],
                C[rows],
                is_slow=self.is_slow,
            )
            some, converged = system.minimise(b[rows][:, near], inside[rows][:, near], max_steps)
            self.is_slow = system.is_slow
            b[rows], scores[rows] = 0.0, self._scores(near, some)
            b[np.ix_(rows, near)] = some
            inside[rows] = self._inside(sign[rows], b[rows], scores[rows])
            missed = inside[rows]
            missed[:, near] = False
            slack = np.where(missed, 1.0 - sign[rows] * scores[rows], 0.0)
            losses = C[rows] * np.einsum("ij,ij->i", slack, slack)
            gaps[rows] = system.relative_gaps(some, scores[rows][:, near], losses)
            again = converged & (gaps[rows] > GAP)
            if not missed[again].any():
                return b, scores, gaps <= GAP
            near = np.union1d(near, np.flatnonzero(missed[again].any(axis=0)))
            rows = rows[again]

    def _products(self, documents: np.ndarray) -> np.ndarray:
        """The Gram matrix of some documents, in a buffer that the next call overwrites."""
        n = len(documents)
        if self.buffer.size < n * n:
            self.buffer = np.empty(n * n, dtype=np.float32)
        products = self.buffer[: n * n].reshape(n, n)
        for row, document in zip(products, documents, strict=True):
            np.take(self.gram[document], documents, out=row, mode="clip")  # "clip" writes without a copy
        return products

    def _scores(self, documents: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Scores (n_C, n_documents) of all documents by the coefficients b (n_C, n_some) of some documents."""
        scores = np.zeros((len(b), len(self.gram)))
        for start in range(0, len(documents), ROWS):
            part = slice(start, start + ROWS)
            scores += b[:, part].astype(np.float32) @ self.gram[documents[part]]
        return scores * self.factor + b.sum(axis=1, keepdims=True)


class _System:
    """Some documents' problems, a row each: sign (n_rows, n), C (n_rows,). `rows` says which an array's rows are."""

    def __init__(
        self,
        products: np.ndarray,
        square: np.ndarray,
        factor: float,
        sign: np.ndarray,
        C: np.ndarray,
        *,
        is_slow: bool,
    ) -> None:
        self.products, self.square, self.factor, self.sign, self.C = products, square, factor, sign, C
        self.is_slow = is_slow

    @functools.cached_property
    def _low_rank(self) -> LowRank:
        return LowRank(self.products, self.square, self.factor)

    def minimise(self, b: np.ndarray, inside: np.ndarray, max_steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Newton steps from b, the first with these documents inside the margin: (b, whether each converged)."""
        b, scores, inside = b.copy(), self._scores(b), inside.copy()
        rows = np.arange(len(b))
        for _ in range(max_steps):
            before = self._objectives(b[rows], scores[rows], rows)
            target, at_target = self._solve(b[rows], inside[rows], rows, before)
            certain = self._gaps(target, at_target, rows, 0.0) <= INNER_GAP
            worse = ~certain & (self._objectives(target, at_target, rows) > before)
            if worse.any():  # or so it seems by scores that are sums of many products
                some = rows[worse]
                scores[some], at_target[worse] = self._scores(b[some]), self._scores(target[worse])
                before = self._objectives(b[rows], scores[rows], rows)
                worse &= self._objectives(target, at_target, rows) > before
            for k in np.flatnonzero(worse):
                one, way, change = rows[k], target[k] - b[rows[k]], at_target[k] - scores[rows[k]]
                slope, curve = scores[one] @ way, change @ way
                step = line_search(self.sign[one], scores[one], change, slope, curve, self.C[one])
                target[k], at_target[k] = b[one] + step * way, scores[one] + step * change
            b[rows], scores[rows] = target, at_target
            own = np.where(worse[:, None], 0.0, self.square * target)
            inside[rows] = self.sign[rows] * (at_target - own) < 1
            rows = rows[~certain]
            if not len(rows):
                break
        return b, ~np.isin(np.arange(len(b)), rows)

    def relative_gaps(self, b: np.ndarray, scores: np.ndarray, losses: np.ndarray) -> np.ndarray:
        """The primal objectives, with the losses of other documents, less dual ones, in parts of the primal."""
        return self._gaps(b, scores, np.arange(len(b)), losses)

    def _gaps(
        self, b: np.ndarray, scores: np.ndarray, rows: np.ndarray, losses: np.ndarray | float
    ) -> np.ndarray:
        # A dual point needs alpha = y b >= 0; raising the negative ones to 0 by e changes its objective by
        # e.g - e.He/2 with its gradient g, and e.He <= (sum_i e_i sqrt(H_ii))^2.
        sign, C = self.sign[rows], self.C[rows]
        alpha, ridge = sign * b, 0.5 / C[:, None]
        norm = np.einsum("ij,ij->i", b, scores)
        primal = self._objectives(b, scores, rows) + losses
        dual = alpha.sum(axis=1) - norm / 2 - np.einsum("ij,ij->i", alpha, alpha) / (4 * C)
        raised = np.maximum(0.0, -alpha)
        gradient = 1.0 - sign * scores - ridge * alpha
        dual += np.einsum("ij,ij->i", raised, gradient)
        dual -= np.einsum("ij,ij->i", raised, np.sqrt(self.square + ridge)) ** 2 / 2
        return (primal - dual) / primal

    def _objectives(self, b: np.ndarray, scores: np.ndarray, rows: np.ndarray) -> np.ndarray:
        slack = np.maximum(0.0, 1.0 - self.sign[rows] * scores)
        return np.einsum("ij,ij->i", b, scores) / 2 + self.C[rows] * np.einsum("ij,ij->i", slack, slack)

    def _scores(self, b: np.ndarray) -> np.ndarray:
        single = b.astype(np.float32)
        one_by_one = len(b) <= FEW
        products = np.stack([self.products @ row for row in single]) if one_by_one else single @ self.products
        return products * self.factor + b.sum(axis=1, keepdims=True)

    def _solve(
        self, b: np.ndarray, inside: np.ndarray, rows: np.ndarray, before: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Solve (K_SS + I / 2C) b_S = y_S by preconditioned conjugate gradients: b, and its scores.

        The quadratic has its own duality gap. Once it is at most FORCING times what `before`, the objective, is above
        the dual one, the way to b leads downhill. The preconditioner is the diagonal; of low rank, once a system was
        slow.
        """
        sign, C = self.sign[rows], self.C[rows]
        ridge = 0.5 / C[:, None]
        b = np.where(inside, b, 0.0)
        scores = self._scores(b)
        rest = np.where(inside, sign - scores - ridge * b, 0.0)
        way, size = np.zeros_like(rest), np.full(len(rest), np.inf)
        left = np.arange(len(b))
        apply = self._preconditioner(inside, ridge)
        for step in range(MAX_INNER):
            if not len(left):
                break
            if step == PATIENCE and not self.is_slow:
                self.is_slow = True
                apply = self._preconditioner(inside, ridge)
                size[left] = np.inf  # conjugate directions are those of one preconditioner
            scaled = apply(rest[left], left)
            new_size = np.einsum("ij,ij->i", rest[left], scaled)
            way[left] = scaled + (new_size / size[left])[:, None] * way[left]
            size[left] = new_size
            forward = way[left]
            change = self._scores(forward)
            curved = np.where(inside[left], change, 0.0) + ridge[left] * forward
            curve = np.einsum("ij,ij->i", forward, curved)
            least = ridge[left, 0] * np.einsum("ij,ij->i", forward, forward)  # of a matrix without rounding
            # Where not, it is solved, or precision does not suffice.
            is_sound = (new_size > 0) & (2 * curve > least)
            length = np.divide(new_size, curve, out=np.zeros_like(curve), where=is_sound)[:, None]
            b[left] += length * forward
            scores[left] += length * change
            rest[left] -= length * curved
            gap, dual, primal = _quadratic_gap(b[left], scores[left], sign[left], inside[left], C[left])
            wanted = np.maximum(FORCING * (before[left] - dual), 0.3 * INNER_GAP * primal)
            left = left[(gap > wanted) & is_sound]
        return b, scores

    def _preconditioner(self, inside: np.ndarray, ridge: np.ndarray) -> Callable[..., np.ndarray]:
        """What multiplies (n_some, n) by the inverses of about K_SS + ridge of these rows, inside each row's S."""
        if self.is_slow:
            return self._low_rank.inverses(inside, ridge)
        diagonal = self.square + ridge
        return lambda vectors, rows: vectors / diagonal[rows]


def _quadratic_gap(
    b: np.ndarray, scores: np.ndarray, sign: np.ndarray, inside: np.ndarray, C: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The primal less the dual objective of the quadratic that has these documents inside; both objectives."""
    norm, slack = np.einsum("ij,ij->i", b, scores), np.where(inside, 1.0 - sign * scores, 0.0)
    primal = norm / 2 + C * np.einsum("ij,ij->i", slack, slack)
    dual = np.einsum("ij,ij->i", b, sign) - norm / 2 - np.einsum("ij,ij->i", b, b) / (4 * C)
    return primal - dual, dual, primal


def way_to(C: float, mean_square: float) -> list[float]:
    """The C that are solved before a first one, of documents of that mean squared length, one at a time."""
    found, each = [], FIRST / mean_square
    while each * STEP**0.5 <= C:
        found.append(each)
        each *= STEP
    return found


def neighbours(c_grid: Sequence[float]) -> list[list[float]]:
    """The values of C in that order, neighbours of like size together."""
    blocks: list[list[float]] = []
    for C in c_grid:
        if blocks and len(blocks[-1]) < MANY and 1 / SPAN <= C / blocks[-1][0] <= SPAN:
            blocks[-1].append(C)
        else:
            blocks.append([C])
    return blocks


def _best_combination(norm: np.ndarray, signed: np.ndarray, C: float, start: np.ndarray) -> np.ndarray:
    """The combination c (n_vectors,) of some b with the lowest objective, roughly: Newton steps from a start.

    norm: (n_vectors, n_vectors), b.Kb; signed: (n_vectors, n_train), the scores of each times the sign.
    """
    best, lowest, coefficients = start, np.inf, start
    for _ in range(FIT_STEPS):
        slack = 1.0 - coefficients @ signed
        inside = slack > 0
        objective = coefficients @ norm @ coefficients / 2 + C * (slack[inside] @ slack[inside])
        if not objective < lowest * (1 - 1e-7):
            break
        best, lowest = coefficients, objective
        some = signed[:, inside]
        # Solutions of neighbouring C are all but collinear.
        coefficients = np.linalg.lstsq(norm + 2 * C * some @ some.T, 2 * C * some.sum(axis=1), rcond=1e-12)[0]
    return best


def line_search(
    sign: np.ndarray, scores: np.ndarray, change: np.ndarray, slope: float, curve: float, C: float
) -> float:
    """The step t that minimises |w + t v|^2 / 2 + C sum_i max(0, 1 - y_i (f_i + t g_i))^2.

    sign y, scores f, change g: (n_documents,); slope: w.v; curve: |v|^2. The derivative is piecewise linear and rises:
    Newton's method finds its zero, kept inside a bracket.
    """
    slack, fall = 1.0 - sign * scores, sign * change
    lowest, highest, t = 0.0, np.inf, 1.0
    for _ in range(MAX_STEPS):
        active = slack > t * fall
        rest, moved = slack[active] - t * fall[active], fall[active]
        at_t = slope + t * curve - 2 * C * (moved @ rest)
        lowest, highest = (lowest, t) if at_t > 0 else (t, highest)
        following = t - at_t / (curve + 2 * C * (moved @ moved))
        if not lowest <= following <= highest:
            if highest == np.inf:  # the derivative falls, by rounding
                break
            following = (lowest + highest) / 2
        if abs(following - t) <= 1e-9 * t:
            break
        t = following
    return t
