"""Label-budget curves: their points, and who is best at which budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from textbench.evaluation.metrics.multilabel import is_of_several_labels
from textbench.evaluation.statistics.intervals import mean_interval
from textbench.evaluation.statistics.significance import holm, paired_t
from textbench.flows.results.method_names import explained, marked, uses_labels, with_marks
from textbench.flows.results.metric_names import KNOWN, heading, scale, unit
from textbench.flows.tables.table import Table, of_texts

LEVEL = 0.05


@dataclass(frozen=True)
class BudgetPoint:
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
    points: Sequence[BudgetPoint]
    uses_labels: bool = False

    @property
    def label(self) -> str:
        """The method, with a mark if it was fitted to labels."""
        return with_marks(self.method, uses_labels=self.uses_labels)


def summarise(rows: Sequence[Mapping[str, Any]], metric: str | None = None) -> list[Curve]:
    """Return the curve of each method over the rows of budgets; without a metric accuracy, or micro-F1."""
    curves = []
    done = [found for found in rows if not found["error"]]
    names = dict.fromkeys((found["dataset"], found["method"]) for found in done)
    for dataset, method in names:
        own = [found for found in done if (found["dataset"], found["method"]) == (dataset, method)]
        chosen = metric or _ranking(own)
        values: dict[int, list[float]] = {}
        for found in own:
            values.setdefault(found["labels"]["budget"], []).append(found["metrics"][chosen])
        points = [_point(budget, values[budget]) for budget in sorted(values)]
        n_draws = max(map(len, values.values()))
        curves.append(Curve(dataset, method, chosen, n_draws, points, uses_labels(own[0])))
    return curves


def _point(budget: int, values: Sequence[float]) -> BudgetPoint:
    mean, half = mean_interval(values)
    half = 0.0 if half != half else half
    return BudgetPoint(budget, mean, mean - half, mean + half)


def _ranking(rows: Sequence[Mapping[str, Any]]) -> str:
    return "micro_f1" if is_of_several_labels(rows[0]["metrics"]) else "accuracy"


def verdicts(rows: Sequence[Mapping[str, Any]], metric: str | None = None) -> list[str]:
    """Return for each data set a sentence on who is best from which to which budget, and who is tied with it.

    The best mean is compared with every other one by Student's paired t test over the draws, which all methods share;
    p values are corrected together for each budget (Holm). A single draw tests nothing and gives no sentence; nor are
    draws tested that are all alike, as those of all documents are.
    """
    lines = []
    done = [found for found in rows if not found["error"]]
    for dataset in dict.fromkeys(found["dataset"] for found in done):
        own = [found for found in done if found["dataset"] == dataset]
        if len({found["method"] for found in own}) < 2 or len({found["labels"]["draw"] for found in own}) < 2:
            continue
        budgets = sorted({found["labels"]["budget"] for found in own})
        found_at = {budget: _standing(own, budget, metric or _ranking(own)) for budget in budgets}
        parts = []
        for said, group in groupby(budgets, found_at.__getitem__):
            first, *others = group
            parts.append(f"{first:,}{f' to {others[-1]:,}' if others else ''} labels: {said}")
        lines.append(f"{dataset}: {'; '.join(parts)}. Paired t tests over draws, Holm-corrected.")
    return lines


def _standing(rows: Sequence[Mapping[str, Any]], budget: int, metric: str) -> str:
    runs: dict[str, dict[int, float]] = {}
    for row in rows:
        if row["labels"]["budget"] == budget:
            runs.setdefault(marked(row), {})[row["labels"]["draw"]] = row["metrics"][metric]
    sign = 1 if KNOWN[metric].higher_is_better else -1
    are_alike = all(len(set(own.values())) == 1 for own in runs.values())
    best = max(runs, key=lambda method: sign * mean_interval(list(runs[method].values()))[0])
    if are_alike:
        return f"{best} is highest, untested, for draws do not differ"
    others = [method for method in runs if method != best]
    corrected = holm([paired_t(runs[best], runs[method])[1] for method in others])
    tied = [method for method, p in zip(others, corrected, strict=True) if p >= LEVEL]
    return f"{best} is best" + (f", tied with {', '.join(tied)}" if tied else "")


def curve_tables(curves: Sequence[Curve]) -> list[Table]:
    """Return a table for each data set, a line a budget and a column a method; the last has a note on the figures."""
    tables = []
    for name in dict.fromkeys(curve.dataset for curve in curves):
        own = [curve for curve in curves if curve.dataset == name]
        metric = own[0].metric
        title = f"{name}: {heading(metric)} in {unit(metric)} by labelled documents"
        points = [{point.budget: point for point in one.points} for one in own]
        lines = [
            [f"{budget:,}", *(_figure(of_method.get(budget), scale(metric)) for of_method in points)]
            for budget in sorted({budget for of_method in points for budget in of_method})
        ]
        tables.append(of_texts(title, ("labels", *(one.label for one in own)), lines))
    note = (
        "Mean over draws with the half width of its 95 % interval, none where draws are equal or one alone; the draws "
        f"are the same for all methods.{explained(curve.label for curve in curves)}"
    )
    return [*tables[:-1], *(replace(table, note=note) for table in tables[-1:])]


def _figure(point: BudgetPoint | None, factor: int) -> str:
    """Return a point as text, times `factor`, with half of its interval if one draw differs from another."""
    if point is None:
        return "-"
    half = (point.high - point.low) / 2
    return f"{factor * point.mean:.1f}" + (f" ±{factor * half:.1f}" if half else "")
