"""Orders: published sentences that put methods or settings in order, and the paired tests that judge them.

A sentence is read once, here, as pairs in which one side is claimed to be better. Every pair is tested over
repetitions that both sides share (draws of labels, or seeds) by Student's paired t test, and the p values are corrected
together (Holm). `evaluation.verdicts.judge_order` makes the verdict.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.significance import holm, paired_t
from evaluation.verdicts import Comparison

Range = tuple[float, float]


@dataclass(frozen=True)
class Point:
    """A measured figure, higher is better: a method with its fixed parameters, at a label budget or with all labels."""

    method: str
    params: Mapping[str, Any]
    budget: int | None
    repetition: int
    value: float


@dataclass(frozen=True)
class Above:
    """One method above others, at each of some label budgets."""

    method: str
    others: tuple[str, ...]
    budgets: tuple[int, ...]


@dataclass(frozen=True)
class Sweep:
    """A parameter whose values in `better` beat those in `worse` (ranges, ends included); all else is equal.

    A method that is given no value has the `default`.
    """

    method: str
    parameter: str
    default: float
    better: Range
    worse: tuple[Range, ...]
    budget: int | None = None


# What "saturates at" says of larger values is that they are no better, which no test can show: only the rise is judged.
# "High noise is best" is read as 70 to 90 percent above 10 to 30.
ORDERS: dict[str, Above | Sweep] = {
    "dcot-2012/figure-4/reuters65/order": Above(
        "dcot", ("lsi", "lda", "tfidf", "counts"), tuple(range(500, 5501, 500))
    ),
    "dcot-2012/figure-3/reuters65/depth": Sweep("dcot", "n_layers", 3, (2, 5), ((1, 1),), 1000),
    "dcot-2012/figure-3/reuters65/noise": Sweep("dcot", "noise", 0.8, (0.7, 0.9), ((0.1, 0.3),), 1000),
    "scdv-2017/figure-4/scdv/n_clusters": Sweep("scdv", "n_clusters", 60, (60, 60), ((1, 59),)),
    "scdv-2017/figure-4/scdv/word-vector-dimension": Sweep(
        "scdv", "word_vectors__vector_size", 200, (300, 300), ((1, 299),)
    ),
    "scdv-2017/figure-4/scdv/sparsity-percent": Sweep(
        "scdv", "sparsity", 0.04, (0.04, 0.04), ((0, 0.0399), (0.0401, 1.0))
    ),
}
Runs = Mapping[int, float]


def comparisons(order: Above | Sweep, points: Sequence[Point]) -> list[Comparison]:
    """Return the tested pairs of an order, p corrected together; empty while one of an `Above` is not measured.

    A pair of fewer than two shared repetitions has p = 1.
    """
    pairs = _above(order, points) if isinstance(order, Above) else _sweep(order, points)
    tested = [(name, *paired_t(better, worse)) for name, better, worse in pairs]
    corrected = holm([p for _, _, p in tested])
    return [
        Comparison(name, difference, p) for (name, difference, _), p in zip(tested, corrected, strict=True)
    ]


def _above(order: Above, points: Sequence[Point]) -> list[tuple[str, Runs, Runs]]:
    runs: dict[tuple[str, int | None], dict[int, float]] = defaultdict(dict)
    for point in points:
        if not point.params:
            runs[point.method, point.budget][point.repetition] = point.value
    pairs: list[tuple[str, Runs, Runs]] = []
    for budget in order.budgets:
        for other in order.others:
            better, worse = runs.get((order.method, budget)), runs.get((other, budget))
            if not better or not worse:
                return []
            pairs.append((f"{order.method} against {other} at {budget} labels", better, worse))
    return pairs


def _sweep(order: Sweep, points: Sequence[Point]) -> list[tuple[str, Runs, Runs]]:
    """Pair the values of the parameter where all other parameters agree."""
    lines: dict[str, dict[float, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for point in points:
        if (point.method, point.budget) == (order.method, order.budget):
            others = {k: v for k, v in sorted(point.params.items()) if k != order.parameter}
            value = point.params.get(order.parameter, order.default)
            lines[str(others)][value][point.repetition] = point.value
    pairs: list[tuple[str, Runs, Runs]] = []
    for others_text, line in lines.items():
        better = [value for value in line if _within(value, order.better)]
        worse = [value for value in line if any(_within(value, part) for part in order.worse)]
        given = "" if others_text == "{}" else f" with {others_text}"
        pairs += [
            (f"{order.parameter} {high:g} against {low:g}{given}", line[high], line[low])
            for high in better
            for low in worse
        ]
    return pairs


def _within(value: float, part: Range) -> bool:
    return part[0] <= value <= part[1]
