"""Search of C: which candidates were scored, which of them is best, and whether further values might be better."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from textbench.evaluation.metrics.single_label import Metric

LIMITS = (1e-5, 1e9)  # how far a grid of C grows


class FoldScores(NamedTuple):
    """What a classifier that was trained without a fold says of its documents."""

    documents: np.ndarray  # (n_scored,) ints, positions
    scores: np.ndarray  # floats (n_scored, n_classes), or (n_scored,) of two classes, for the second one
    classes: np.ndarray  # (n_classes,), those it was trained on


@dataclass
class Search:
    """Scores (n_folds, n_candidates) of the folds so far, their best running means, and what went wrong.

    fold_scores: of each candidate its FoldScores in turn; there are none of a classifier without `labels_of`, and none
    where they were too many.
    """

    candidates: list[dict[str, float]]
    scores: np.ndarray
    best_means: list[float] = field(default_factory=list)
    fold_scores: list[list[FoldScores]] = field(default_factory=list)
    n_not_converged: int = 0
    pruned_after: int | None = None

    def best(self, measure: Metric) -> int:
        """The best candidate: of equals the first combination of settings, and the smallest C."""
        mean = mean_score(self.scores)
        found = np.flatnonzero(mean == (mean.max() if measure.higher_is_better else mean.min()))
        return min(found.tolist(), key=self._order().index)

    def ends(self, measure: Metric) -> list[int]:
        """The sides (-1, 1) on which the best has no neighbour in C, if it beats the one on the other side."""
        best, mean = self.best(measure), mean_score(self.scores)
        chosen = beside_c(self.candidates[best])
        order = [i for i in self._order() if beside_c(self.candidates[i]) == chosen]
        at = order.index(best)
        if len(order) > 1 and mean[order[1 if at == 0 else at - 1]] == mean[best]:
            return []
        return [-1] * (at == 0) + [1] * (at == len(order) - 1)

    def add(self, other: "Search") -> None:
        """Take over the candidates of another search on the same folds."""
        self.candidates += other.candidates
        self.scores = np.hstack([self.scores, other.scores])
        self.fold_scores += other.fold_scores
        self.n_not_converged += other.n_not_converged

    def table(self) -> list[dict[str, float]]:
        """A row a candidate: combinations in their order, values of C rising."""
        means, deviations = mean_score(self.scores).tolist(), self.scores.std(axis=0).tolist()
        return [self.candidates[i] | {"mean": means[i], "std": deviations[i]} for i in self._order()]

    def _order(self) -> list[int]:
        every = [beside_c(candidate) for candidate in self.candidates]
        values = [candidate.get("C", 0.0) for candidate in self.candidates]
        return sorted(range(len(every)), key=lambda i: (every.index(every[i]), values[i]))


def beside_c(candidate: dict[str, float]) -> dict[str, float]:
    """What a candidate sets beside C."""
    return {name: value for name, value in candidate.items() if name != "C"}


def climb(search: Search, measure: Metric, score: Callable[[list[dict[str, float]]], Search]) -> None:
    """Score neighbours in C of the best, while it has none on a side and beats the other: to LIMITS, lower first."""
    if search.pruned_after or not len(search.scores) or np.isnan(search.scores).any():
        return
    while open_ends := [
        further
        for side in search.ends(measure)
        if LIMITS[0] <= (further := _next(search.candidates[search.best(measure)]["C"], side)) <= LIMITS[1]
    ]:
        search.add(score([search.candidates[search.best(measure)] | {"C": open_ends[0]}]))
    search.best_means[-1] = float(mean_score(search.scores)[search.best(measure)])


def _next(C: float, side: int) -> float:
    """The next value above (side 1) or below (-1) in 1, 3, 10, 30 and so on."""
    power = math.floor(math.log10(C) + 1e-9)
    steps = [float(f"{digit}e{power + k}") for k in (-1, 0, 1) for digit in (1, 3)]
    return min(v for v in steps if v > C * 1.01) if side > 0 else max(v for v in steps if v < C * 0.99)


def mean_score(scores: np.ndarray) -> np.ndarray:
    """The mean over folds of scores (n_folds, n_candidates)."""
    # Equal fold scores met in another order give means that differ in the last bit; those are ties.
    return scores.mean(axis=0).round(12)
