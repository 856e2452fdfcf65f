"""Linear SVM by the finite Newton method on the Gram matrix: a path of C, for some ten thousand documents.

The squared hinge loss is quadratic as long as the same documents lie inside the margin. With w = sum_i b_i x_i, scores
f = K b and S the documents with y_i f_i < 1, the minimum of that quadratic solves (K_SS + I / 2C) b_S = y_S, b = 0
elsewhere. Where the solution keeps S it is the solution; else one moves towards it as far as the loss falls, and S
changes. Conjugate gradients solve the systems, those of several neighbouring C together: one product of matrices a
step. Each C starts from the best combination of the solutions before, so that S is known but for a few documents; a
large first C is reached by way of smaller ones, where S is most documents and the systems are well conditioned.
A solution is accepted only with a small duality gap over all documents.

Source: Keerthi, DeCoste, A Modified Finite Newton Method for Fast Solution of Large Scale Linear SVMs, JMLR 6
(2005), in the coefficients of the documents as in Chapelle, Training a Support Vector Machine in the Primal, Neural
Computation 19 (2007); steps left early as in Dembo, Eisenstat, Steihaug, Inexact Newton Methods, SIAM Journal on
Numerical Analysis 19 (1982).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

GAP = 1e-5  # the largest relative duality gap of a solution that is accepted
INNER_GAP = 0.8 * GAP  # that among the documents near the margin; the others may add the rest
FIRST = 0.6  # the first C, times the documents' mean squared length, that is solved without a solution before
STEP = 10.0  # from one C to the next on the way to the first that is asked for
FORCING = 0.1  # a step's system is solved until this share of the present error is left
MAX_STEPS = 100  # Newton steps
MAX_INNER = 300  # conjugate gradients in one of them
# Neighbouring C are solved together, up to SPAN times the first and MANY of them: a product with more columns costs
# less a column, but the last C starts further from its solution.
SPAN, MANY = 1.5, 10
N_BEFORE = 4  # solutions whose best combination is the next start
FIT_STEPS = 12  # Newton steps in the coefficients of a combination
ROWS = 256  # of the Gram matrix that are copied at a time, 12 MB


class NewtonSolution(NamedTuple):
    """One problem at one C: w = sum_i b_i x_i / scale over the documents, the intercept sum_i b_i."""

    b: np.ndarray  # (n_documents,) float64, 0 outside the training documents
    scores: np.ndarray  # (n_documents,) float64, of all documents of the Gram matrix
    converged: bool


class NewtonPath:
    """The binary problems of one set of training documents, each along a path of C.

    minimise |w|^2/2 + b^2/2 + C sum_i max(0, 1 - y_i (w.x_i/scale + b))^2, i over the training documents.

    gram: float32 (n_documents, n_documents), as `evaluation.probes.solvers.gram` makes it, never modified; train:
    (n_train,) ints, positions of the training documents. Products are float32, what adds up along a path float64. No
    random numbers: the same bits each time.
    """

    def __init__(self, gram: np.ndarray, train: np.ndarray, scale: float) -> None:
        self.gram = gram
        self.train = train
        self.factor = 1 / scale**2
        self.square = np.diagonal(gram) * self.factor + 1.0  # the bias is a feature of ones
        self.buffer = np.empty(0, dtype=np.float32)
        # What the first C starts from, the directions of all documents and of the positive ones: each document
        # counts as if it had length 1.
        self.direction = np.zeros(len(gram))
        self.direction[train] = 1 / self.square[train]
        self.direction_scores = self._scores(train, self.direction[None, train])

    def solve(
        self, positive: np.ndarray, c_grid: Sequence[float], max_steps: int = MAX_STEPS
    ) -> Iterator[NewtonSolution]:
        """Yield the solution for each C of c_grid, in that order; positive: (n_train,) bools, some of each kind."""
        sign = np.zeros(len(self.gram))  # 0: not trained on
        sign[self.train] = np.where(positive, 1.0, -1.0)
        side = self.train[positive]
        basis = np.stack([self.direction, np.where(sign > 0, self.direction, 0.0)])
        scores = np.vstack([self.direction_scores, self._scores(side, self.direction[None, side])])
        coefficients = np.zeros(2)
        way = self._way_to(c_grid[0])
        for k_block, C in enumerate([*way, *_blocks(c_grid)]):
            norm, signed = basis @ scores.T, sign[self.train] * scores[:, self.train]
            starts = np.empty((len(C), len(basis)))
            for k, each in enumerate(C):
                starts[k] = coefficients = _best_combination(norm, signed, each, coefficients)
            b, at, converged = self._solve_together(starts @ basis, starts @ scores, sign, C, max_steps)
            if k_block >= len(way):
                yield from map(NewtonSolution, b, at, converged.tolist())
            basis, scores = np.vstack([basis, b])[-N_BEFORE:], np.vstack([scores, at])[-N_BEFORE:]
            coefficients = np.eye(len(basis))[-1]

    def _way_to(self, C: float) -> list[np.ndarray]:
        """The C that are solved before a first one, one at a time."""
        found, each = [], FIRST / self.square[self.train].mean()
        while each * STEP**0.5 <= C:
            found.append(np.array([each]))
            each *= STEP
        return found

    def _solve_together(
        self, b: np.ndarray, scores: np.ndarray, sign: np.ndarray, C: np.ndarray, max_steps: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Solve for each of C from the starts b, scores (n_C, n_documents): those of the solutions, and converged.

        The documents inside the margin are solved alone; they are joined by others that their solution leaves inside.
        """
        trained = sign != 0
        inside = trained & (sign * (scores - self.square * b) < 1)
        near = np.flatnonzero(inside.any(axis=0))
        if not len(near):
            near, inside = self.train, np.broadcast_to(trained, b.shape)
        start: np.ndarray = b[:, near]
        while True:
            system = _System(self._products(near), self.square[near], self.factor, sign[near])
            start, converged = system.minimise(start, inside[:, near], C, max_steps)
            scores = self._scores(near, start)
            b = np.zeros(scores.shape)
            b[:, near] = start
            inside = trained & (sign * (scores - self.square * b) < 1)
            missed = inside.copy()
            missed[:, near] = False
            slack = np.where(missed, 1.0 - sign * scores, 0.0)
            losses = C * np.einsum("ij,ij->i", slack, slack)
            gaps = system.relative_gaps(start, scores[:, near], C, losses)
            missed = missed[gaps > GAP].any(axis=0)
            if not missed.any() or not converged.all():
                return b, scores, gaps <= GAP
            near = np.union1d(near, np.flatnonzero(missed))
            start = b[:, near]

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
    """The problem of some documents, sign (n,), for several C at once: arrays (n_C, n), and C (n_C,)."""

    def __init__(self, products: np.ndarray, square: np.ndarray, factor: float, sign: np.ndarray) -> None:
        self.products, self.square, self.factor, self.sign = products, square, factor, sign

    def minimise(
        self, b: np.ndarray, inside: np.ndarray, C: np.ndarray, max_steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Newton steps from b, the first with these documents inside the margin: (b, whether each converged)."""
        b, scores, inside = b.copy(), self._scores(b), inside.copy()
        left = np.arange(len(C))
        for _ in range(max_steps):
            before = self._objectives(b[left], scores[left], C[left])
            target, at_target = self._solve(b[left], inside[left], C[left], before)
            certain = self.relative_gaps(target, at_target, C[left], 0.0) <= INNER_GAP
            worse = ~certain & (self._objectives(target, at_target, C[left]) > before)
            for k in np.flatnonzero(worse):
                one, way, change = left[k], target[k] - b[left[k]], at_target[k] - scores[left[k]]
                slope, curve = scores[one] @ way, change @ way
                step = line_search(self.sign, scores[one], change, slope, curve, C[one])
                target[k], at_target[k] = b[one] + step * way, scores[one] + step * change
            b[left], scores[left] = target, at_target
            own = np.where(worse[:, None], 0.0, self.square * target)
            inside[left] = self.sign * (at_target - own) < 1
            left = left[~certain]
            if not len(left):
                break
        return b, ~np.isin(np.arange(len(C)), left)

    def relative_gaps(
        self, b: np.ndarray, scores: np.ndarray, C: np.ndarray, losses: np.ndarray | float
    ) -> np.ndarray:
        """The primal objectives, with the losses of other documents, less dual ones, in parts of the primal.

        A dual point needs alpha = y b >= 0; raising the negative ones to 0 by e changes its objective by e.g - e.He/2
        with its gradient g, and e.He <= (sum_i e_i sqrt(H_ii))^2.
        """
        alpha, ridge = self.sign * b, 0.5 / C[:, None]
        norm = np.einsum("ij,ij->i", b, scores)
        primal = self._objectives(b, scores, C) + losses
        dual = alpha.sum(axis=1) - norm / 2 - np.einsum("ij,ij->i", alpha, alpha) / (4 * C)
        raised = np.maximum(0.0, -alpha)
        gradient = 1.0 - self.sign * scores - ridge * alpha
        dual += np.einsum("ij,ij->i", raised, gradient)
        dual -= np.einsum("ij,ij->i", raised, np.sqrt(self.square + ridge)) ** 2 / 2
        return (primal - dual) / primal

    def _objectives(self, b: np.ndarray, scores: np.ndarray, C: np.ndarray) -> np.ndarray:
        slack = np.maximum(0.0, 1.0 - self.sign * scores)
        return np.einsum("ij,ij->i", b, scores) / 2 + C * np.einsum("ij,ij->i", slack, slack)

    def _scores(self, b: np.ndarray) -> np.ndarray:
        return (b.astype(np.float32) @ self.products) * self.factor + b.sum(axis=1, keepdims=True)

    def _solve(
        self, b: np.ndarray, inside: np.ndarray, C: np.ndarray, before: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Solve (K_SS + I / 2C) b_S = y_S by conjugate gradients over the diagonal: b, and its scores.

        The quadratic has its own duality gap. Once it is at most FORCING times what `before`, the objective, is above
        the dual one, the way to b leads downhill.
        """
        ridge = 0.5 / C[:, None]
        b = np.where(inside, b, 0.0)
        scores = self._scores(b)
        diagonal = self.square + ridge
        rest = np.where(inside, self.sign - scores - ridge * b, 0.0)
        way = rest / diagonal
        size = np.einsum("ij,ij->i", rest, way)
        left = np.flatnonzero(size > 0)
        for _ in range(MAX_INNER):
            if not len(left):
                break
            forward = way[left]
            change = self._scores(forward)
            curved = np.where(inside[left], change, 0.0) + ridge[left] * forward
            step = (size[left] / np.einsum("ij,ij->i", forward, curved))[:, None]
            b[left] += step * forward
            scores[left] += step * change
            rest[left] -= step * curved
            scaled = rest[left] / diagonal[left]
            new_size = np.einsum("ij,ij->i", rest[left], scaled)
            way[left] = scaled + (new_size / size[left])[:, None] * forward
            size[left] = new_size
            gap, dual, primal = self._quadratic_gap(b[left], scores[left], inside[left], C[left])
            wanted = np.maximum(FORCING * (before[left] - dual), 0.3 * INNER_GAP * primal)
            left = left[(gap > wanted) & (new_size > 0)]
        return b, scores

    def _quadratic_gap(
        self, b: np.ndarray, scores: np.ndarray, inside: np.ndarray, C: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The primal less the dual objective of the quadratic that has these documents inside; both objectives."""
        norm, slack = np.einsum("ij,ij->i", b, scores), np.where(inside, 1.0 - self.sign * scores, 0.0)
        primal = norm / 2 + C * np.einsum("ij,ij->i", slack, slack)
        dual = b @ self.sign - norm / 2 - np.einsum("ij,ij->i", b, b) / (4 * C)
        return primal - dual, dual, primal


def _blocks(c_grid: Sequence[float]) -> list[np.ndarray]:
    """The values of C in that order, neighbours of like size together."""
    blocks: list[list[float]] = []
    for C in c_grid:
        if blocks and len(blocks[-1]) < MANY and 1 / SPAN <= C / blocks[-1][0] <= SPAN:
            blocks[-1].append(C)
        else:
            blocks.append([C])
    return [np.array(block) for block in blocks]


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
            following = (lowest + highest) / 2
        if abs(following - t) <= 1e-9 * t:
            break
        t = following
    return t
