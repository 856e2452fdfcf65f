"""Orders: published sentences that put methods or settings in order, and the paired tests that judge them.

A sentence is read once, here, as pairs in which one side is claimed to be better. Every pair is tested over
repetitions that both sides share (draws of labels, or seeds) by Student's paired t test, and the p values are corrected
together (Holm). `evaluation.claims.verdicts.judge_order` makes the verdict.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textbench.evaluation.claims.verdicts import Comparison
from textbench.evaluation.statistics.significance import detectable_difference, holm, paired_t


@dataclass(frozen=True)
class OrderedFigure:
    """A measured figure, higher is better: a method with its fixed parameters, at a label budget or with all labels.

    `run` is the key of the run behind it.
    """

    method: str
    params: Mapping[str, Any]
    budget: int | None
    repetition: int
    value: float
    run: str = ""


@dataclass(frozen=True)
class Above:
    """One method above others, at each of some label budgets."""

    method: str
    others: tuple[str, ...]
    budgets: tuple[int, ...]


@dataclass(frozen=True)
class Sweep:
    """A parameter whose values in `better` beat those in `worse`, and are not beaten by those `beyond`; all else equal.

    A method that is given no value has the `default`. Nothing is judged before all these values are measured.
    """

    method: str
    parameter: str
    default: float
    better: tuple[float, ...]
    worse: tuple[float, ...]
    beyond: tuple[float, ...] = ()
    budget: int | None = None


@dataclass(frozen=True)
class OrderedPair:
    """Two sides of a comparison by repetition, the first claimed to be better or, where `may_tie`, no worse."""

    name: str
    better: Mapping[int, OrderedFigure]
    worse: Mapping[int, OrderedFigure]
    may_tie: bool = False

    @property
    def shared(self) -> list[int]:
        """The places on the axis where both have a point, ascending."""
        return sorted(self.better.keys() & self.worse.keys())


# "Saturates at" says that smaller values are worse and larger ones no better: no test can show that they are equal, but
# a larger value that is significantly better speaks against. "High noise is best" is read as 70 to 90 percent above 10
# to 30.
ORDERS: dict[str, Above | Sweep] = {
    "dcot-2012/figure-4/reuters65/order": Above(
        "dcot", ("lsi", "lda", "tfidf", "counts"), tuple(range(500, 5501, 500))
    ),
    "dcot-2012/figure-3/reuters65/depth": Sweep("dcot", "n_layers", 3, (2, 3, 4, 5), (1,), budget=1000),
    "dcot-2012/figure-3/reuters65/noise": Sweep(
        "dcot", "noise", 0.8, (0.7, 0.8, 0.9), (0.1, 0.2, 0.3), budget=1000
    ),
    "scdv-2017/figure-4/scdv/n_clusters": Sweep("scdv", "n_clusters", 60, (60,), (10, 20, 40), (80, 100)),
    "scdv-2017/figure-4/scdv/word-vector-dimension": Sweep(
        "scdv", "word_vectors__vector_size", 200, (300,), (50, 100, 200), (400,)
    ),
    "scdv-2017/figure-4/scdv/sparsity-percent": Sweep(
        "scdv", "sparsity", 0.04, (0.04,), (0.0, 0.02, 0.06, 0.08, 0.1)
    ),
}


def pairs(order: Above | Sweep, points: Sequence[OrderedFigure]) -> list[OrderedPair]:
    """Return the pairs that an order puts side by side; empty while one that it names is not measured."""
    return _above(order, points) if isinstance(order, Above) else _sweep(order, points)


def comparisons(found: Sequence[OrderedPair]) -> list[Comparison]:
    """Return the pairs tested, p corrected together. One of fewer than two shared repetitions is not: its p is 1."""
    tested = [(pair, *paired_t(_values(pair.better), _values(pair.worse))) for pair in found]
    corrected = holm([p for _, _, p in tested])
    return [
        Comparison(
            pair.name,
            difference,
            p,
            pair.may_tie,
            detectable_difference(_values(pair.better), _values(pair.worse), len(found)),
            is_tested=len(pair.shared) >= 2,
        )
        for (pair, difference, _), p in zip(tested, corrected, strict=True)
    ]


def _values(side: Mapping[int, OrderedFigure]) -> dict[int, float]:
    return {repetition: point.value for repetition, point in side.items()}


def _above(order: Above, points: Sequence[OrderedFigure]) -> list[OrderedPair]:
    runs: dict[tuple[str, int | None], dict[int, OrderedFigure]] = defaultdict(dict)
    for point in points:
        if not point.params:
            runs[point.method, point.budget][point.repetition] = point
    found: list[OrderedPair] = []
    for budget in order.budgets:
        for other in order.others:
            better, worse = runs.get((order.method, budget)), runs.get((other, budget))
            if not better or not worse:
                return []
            found.append(OrderedPair(f"{order.method} against {other} at {budget} labels", better, worse))
    return found


def _sweep(order: Sweep, points: Sequence[OrderedFigure]) -> list[OrderedPair]:
    """Pair the values of the parameter where all other parameters agree and every value that is named is measured."""
    lines: dict[str, dict[float, dict[int, OrderedFigure]]] = defaultdict(lambda: defaultdict(dict))
    for point in points:
        if (point.method, point.budget) == (order.method, order.budget):
            others = {k: v for k, v in sorted(point.params.items()) if k != order.parameter}
            value = point.params.get(order.parameter, order.default)
            lines[str(others)][value][point.repetition] = point
    found: list[OrderedPair] = []
    for others_text, line in lines.items():
        if not line.keys() >= {*order.better, *order.worse, *order.beyond}:
            continue
        given = "" if others_text == "{}" else f" with {others_text}"
        found += [
            OrderedPair(
                f"{order.parameter} {high:g} against {low:g}{given}",
                line[high],
                line[low],
                low in order.beyond,
            )
            for high in order.better
            for low in (*order.worse, *order.beyond)
        ]
    return found
