"""Label-budget curves: the cells that make them."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from textbench.flows.plan.cell import Cell, Request, plan
from textbench.flows.plan.checks import check_shown_metric
from textbench.tasks import catalogue

if TYPE_CHECKING:
    from textbench.flows.plan.suites import Part


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


def check_metric(request: Request, metric: str | None) -> None:
    """Raise InputError for a metric, None for the default, that a curve of the request would not have."""
    for dataset in request.datasets if metric is not None else ():
        several = catalogue.dataset(dataset).constant("SEVERAL_LABELS", False)
        for text in request.methods:
            method = catalogue.method(catalogue.parse_method(text)[0])
            check_shown_metric(str(metric), dataset, method, several_labels=several)


def curve_arguments(part: "Part") -> dict[str, Any]:
    """Return a curve of a suite as the arguments of the flow `label_budget`."""
    arguments = asdict(part.request)
    for name in ("seeds", "search_seconds", "labels"):
        del arguments[name]
    arguments |= {"seed": part.request.seeds[0], "budgets": list(part.budgets)}
    return arguments | {"draws": part.draws, "stratified": part.stratified}
