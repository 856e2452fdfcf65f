"""Compressed features' 83.0 on 20 Newsgroups: pointer costs of a denser grid, unit rows with LIBLINEAR, and a softmax.

Training and test messages are compressed together, in the fast mode (no iterations of ADMM), k = 5. The paper divides
documents by their L1 norm and features by their standard deviation, then fits glmnet's elastic net: a softmax,
and beside it textbench's, class by class. C and the share of absolute values by a fifth of the training messages held
out, of each pointer cost anew. (glmnet divides features by their deviation once more: they have one already.)
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from scipy.special import logsumexp
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from tests.benchmarks.gaps._documents import all_documents
from tests.benchmarks.gaps._printing import over_documents
from textbench.evaluation.probes.wide import ElasticNetProbe
from textbench.featurizers.compressive import CompressiveKGrams
from textbench.tasks import catalogue
from textbench.tasks.tokens import token_rule, vectorize

POINTER_COSTS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.19)
GRID, L1_RATIOS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0), (0.003, 0.03, 0.3)
FALLEN = 0.002
# A solution is accepted when a pass over all features changes the objective by less than this share.
TOLERANCE, MOST_PASSES = 1e-5, 300
FARTHEST = 0.3  # that a score may change in one step of the local curvature: this grows by exp(2 * 0.3) < 2


def as_published(X: sp.csr_matrix) -> sp.csr_matrix:
    """Rows of L1 norm 1, columns over their standard deviation."""
    X = normalize(X.astype(np.float64), "l1")
    mean = np.asarray(X.mean(axis=0)).ravel()
    deviation = np.sqrt(np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2)
    return (X @ sp.diags(np.divide(1, deviation, where=deviation > 0, out=np.zeros_like(deviation)))).tocsr()


class SoftmaxPath:
    """A softmax with an elastic net, for one C after another: r |W|_1 + (1 - r) |W|^2 / 2 - C sum_i log p(y_i | x_i).

    Solved feature by feature, the weights of all classes at once. diag(p) - p p' is at most 2 diag(p (1 - p)), which is
    each weight's curvature where scores change little (FARTHEST), and at most 1/2 everywhere (Boehning, Multinomial
    logistic regression algorithm, 1992). X: csr (n, d); y: (n,) ints from 0; the intercept is not penalised.
    """

    def __init__(self, X: sp.csr_matrix, y: np.ndarray, l1_ratio: float) -> None:
        self.X, self.y, self.l1_ratio = sp.csc_matrix(X), y, l1_ratio
        n_classes = int(y.max()) + 1
        self.weights = np.zeros((X.shape[1], n_classes))
        self.bias = np.log(np.bincount(y) / len(y))
        self.scores = np.tile(self.bias, (len(y), 1))

    def solve(self, C: float) -> "SoftmaxPath":
        """Go on from the last solution to that of C."""
        columns = (self.X.data, self.X.indices, self.X.indptr)
        before, active = np.inf, np.ones(self.X.shape[1], dtype=bool)
        for number in range(MOST_PASSES):
            # Of every ten passes one goes over all features, the others over those with a weight.
            active[:] = number % 10 == 0 or self.weights.any(axis=1)
            _pass(*columns, self.y, self.scores, self.weights, self.bias, active, C, self.l1_ratio)
            value = self.objective(C)
            assert value <= before * (1 + 1e-9), "a pass must not raise what is minimised"
            if number % 10 == 0 and before - value < TOLERANCE * abs(value):
                break
            before = value
        return self

    def objective(self, C: float) -> float:
        """Return what is minimised."""
        loss = logsumexp(self.scores, axis=1) - self.scores[np.arange(len(self.y)), self.y]
        squares, absolutes = np.square(self.weights).sum(), np.abs(self.weights).sum()
        return float(self.l1_ratio * absolutes + (1 - self.l1_ratio) * squares / 2 + C * loss.sum())

    def predict(self, X: sp.csr_matrix) -> np.ndarray:
        """Return the classes (n_documents,)."""
        return np.asarray((X @ self.weights + self.bias).argmax(axis=1))


@njit(cache=False)
def _pass(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, y: np.ndarray, scores: np.ndarray,
    weights: np.ndarray, bias: np.ndarray, active: np.ndarray, C: float, l1_ratio: float,
) -> None:  # fmt: skip
    """Change the weights of each active feature once, and the intercepts; scores (n, K) follow."""
    n, n_classes = scores.shape
    p = np.empty_like(scores)
    for i in range(n):
        _softmax(scores[i], p[i])
    slope, bend, step = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    slope[:], bend[:] = 0, 0
    for i in range(n):
        slope[y[i]] -= 1
        for k in range(n_classes):
            slope[k] += p[i, k]
            bend[k] += 2 * p[i, k] * (1 - p[i, k])
    for k in range(n_classes):
        step[k] = -slope[k] / max(bend[k], 1e-9)
        bias[k] += step[k]
    for i in range(n):
        for k in range(n_classes):
            scores[i, k] += step[k]
        _softmax(scores[i], p[i])
    for j in range(len(active)):
        if not active[j] or indptr[j] == indptr[j + 1]:
            continue
        slope[:], bend[:] = 0, 0
        for place in range(indptr[j], indptr[j + 1]):
            i, value = indices[place], data[place]
            slope[y[i]] -= value
            for k in range(n_classes):
                slope[k] += value * p[i, k]
                bend[k] += 2 * value * value * p[i, k] * (1 - p[i, k])
        x = data[indptr[j] : indptr[j + 1]]
        for is_safe in (False, True):
            for k in range(n_classes):
                own = (x @ x) / 2 if is_safe else bend[k]
                curvature = max(C * own + 1 - l1_ratio, 1e-9)
                goal = weights[j, k] - (C * slope[k] + (1 - l1_ratio) * weights[j, k]) / curvature
                step[k] = max(abs(goal) - l1_ratio / curvature, 0.0) * np.sign(goal) - weights[j, k]
            if np.abs(x).max() * np.abs(step).max() <= FARTHEST:
                break
        weights[j] += step
        if step.any():
            for place in range(indptr[j], indptr[j + 1]):
                i = indices[place]
                for k in range(n_classes):
                    scores[i, k] += data[place] * step[k]
                _softmax(scores[i], p[i])


@njit(cache=False)
def _softmax(scores: np.ndarray, p: np.ndarray) -> None:
    p[:] = np.exp(scores - scores.max())
    p /= p.sum()


def softmax(X: sp.csr_matrix, y: np.ndarray) -> Callable[[float], Iterator[Any]]:
    """Return what yields, for a share of absolute values, the softmax of one C after another; the same object each."""

    def fitted(l1_ratio: float) -> Iterator[Any]:
        path = SoftmaxPath(X, y, l1_ratio)
        return (path.solve(C) for C in GRID)

    return fitted


def class_by_class(X: sp.csr_matrix, y: np.ndarray) -> Callable[[float], Iterator[Any]]:
    """Return the same for textbench's elastic net, a class against the others."""
    return lambda l1_ratio: (ElasticNetProbe(C, l1_ratio=l1_ratio).fit(X, y) for C in GRID)


def held_out(
    classifier: Callable[[sp.csr_matrix, np.ndarray], Callable[[float], Iterator[Any]]],
    X: sp.csr_matrix, y: np.ndarray, test: sp.csr_matrix,
) -> tuple[str, np.ndarray]:  # fmt: skip
    """Return what a held-out fifth chooses of the constants, in words, and the test documents' classes.

    C grows for as long as the held-out accuracy does not fall by FALLEN.
    """
    inside, outside = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=0)
    right: dict[tuple[float, int], float] = {}
    fitted = classifier(X[inside], y[inside])
    for l1_ratio in L1_RATIOS:
        for place, model in enumerate(fitted(l1_ratio)):
            right[l1_ratio, place] = (model.predict(X[outside]) == y[outside]).mean()
            if right[l1_ratio, place] < max(v for (r, _), v in right.items() if r == l1_ratio) - FALLEN:
                break
    l1_ratio, place = best = max(right, key=right.__getitem__)
    model = next(islice(classifier(X, y)(l1_ratio), place, None))
    return f"C {GRID[place]:g}, l1_ratio {l1_ratio:g} ({100 * right[best]:.2f} held out)", model.predict(test)


def run(pointer_costs: Sequence[float], *, with_elastic_nets: bool) -> None:
    """Print a line for each pointer cost and classifier."""
    corpus = catalogue.dataset("20ng").load().load()
    vectors = vectorize(corpus.train_texts, corpus.test_texts, token_rule("letters"), transductive=True)
    y, target, n = corpus.train_targets, corpus.test_targets, len(corpus.train_texts)
    documents = all_documents(vectors)
    for cost in pointer_costs:
        X = CompressiveKGrams(pointer_cost=cost, max_iter=0).fit_transform(documents)
        for name, rows in (("unit rows", normalize(X)), ("sublinear, unit rows", normalize(X.log1p()))):
            model = LinearSVC(C=1.0, random_state=0).fit(rows[:n], y)
            is_right = model.predict(rows[n:]) == target
            print(
                f"pointer cost {cost:g}, {X.shape[1]} features, {name}, LIBLINEAR: {over_documents(is_right)}"
            )
        if with_elastic_nets:
            Z = as_published(X)
            for name, classifier in (("softmax", softmax), ("class by class", class_by_class)):
                chosen, found = held_out(classifier, Z[:n], y, Z[n:])
                print(
                    f"pointer cost {cost:g}, as published, {name}, {chosen}: {over_documents(found == target)}"
                )


def main() -> None:
    run(POINTER_COSTS, with_elastic_nets=True)
