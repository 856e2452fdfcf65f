"""Label-budget curves: the cells that make them, and their points."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evaluation.intervals import mean_interval
from flows.cells import Cell, Request, plan


def plan_curves(
    request: Request, budgets: Sequence[int], draws: int, *, stratified: bool = False
) -> list[Cell]:
    """Return the cells of the curves: for each draw and budget, smallest first, every method on every data set."""
    labels = [
        {"budget": budget, "draw": draw, "stratified": stratified}
        for draw in range(draws)
        for budget in sorted(set(budgets))
    ]
    return [cell for some in labels for cell in plan(replace(request, labels=some))]


@dataclass(frozen=True)
class Point:
    """The mean over draws at a budget and its 95 % interval (the mean itself for one draw), fractions."""

    budget: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Curve:
    """One method on one data set: its points by budget, smallest first."""

    dataset: str
    method: str
    metric: str
    n_draws: int
    points: Sequence[Point]


def summarise(rows: Sequence[Mapping[str, Any]], metric: str | None = None) -> list[Curve]:
    """Return the curve of each method over the rows of budgets; without a metric accuracy, or micro-F1."""
    curves = []
    done = [found for found in rows if not found["error"]]
    names = dict.fromkeys((found["dataset"], found["method"]) for found in done)
    for dataset, method in names:
        own = [found for found in done if (found["dataset"], found["method"]) == (dataset, method)]
        chosen = metric or ("accuracy" if "accuracy" in own[0]["metrics"] else "micro_f1")
        values: dict[int, list[float]] = {}
        for found in own:
            values.setdefault(found["labels"]["budget"], []).append(found["metrics"][chosen])
        points = [_point(budget, values[budget]) for budget in sorted(values)]
        curves.append(Curve(dataset, method, chosen, max(map(len, values.values())), points))
    return curves


def _point(budget: int, values: Sequence[float]) -> Point:
    mean, half = mean_interval(values)
    half = 0.0 if half != half else half
    return Point(budget, mean, mean - half, mean + half)
