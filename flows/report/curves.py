"""Chapter one, with few labels: the label-budget curves of each data set, as figures and tables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from textbench.flows.results.learning_curves import Curve, draws_of
from textbench.flows.results.method_names import SUPERVISED, explained
from textbench.flows.results.metric_names import heading, scale, unit
from textbench.flows.results.summary import left_out, settings_of
from textbench.flows.tables.table import LOCAL, NOTHING, Datum, Table, slug
from textbench.tasks.words import counted

BY_CLASS = "each class in proportion"
LINES = 12  # that a figure of curves can tell apart


def groups(budgets: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """Return the rows of budgets by data set, protocol and how labels are drawn, as `learning_curves` reads them.

    How they are drawn is BY_CLASS or nothing, from all documents.
    """
    kinds: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in budgets:
        drawn = BY_CLASS if row["request"]["labels"].get("stratified") else ""
        kinds.setdefault((row["dataset"], row["protocol"], drawn), []).append(row)
    return {kind: _newest(rows) for kind, rows in kinds.items()}


def _newest(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows as `learning_curves` reads them: of one place on a curve the newest.

    A method's rows are `apart` by trials, and where it was run with several probes, token rules or the like by these.
    """
    shared: dict[tuple[str, int], set[str]] = {}
    for row in rows:
        words = settings_of(row)
        shared.setdefault((row["method"], int(row["trials"])), {*words}).intersection_update(words)
    places: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["created"]):
        labels, trials = {"draw": 0} | row["request"]["labels"], int(row["trials"])
        apart = [counted(trials, "trial")] if trials else []
        apart += [word for word in settings_of(row) if word not in shared[row["method"], trials]]
        place = (row["method"], *apart, row["seed"], labels["budget"], labels["draw"])
        places[place] = dict(row) | {"apart": ", ".join(apart), "labels": labels}
    return list(places.values())


def drawn(found: Sequence[Curve]) -> list[Curve]:
    """Return the curves that a figure can show: of several budgets, the LINES best at their last one."""
    lines = [curve for curve in found if len(curve.points) > 1]
    return sorted(lines, key=lambda curve: -curve.points[-1].mean)[:LINES]


def headed(dataset: str, protocol: str, drawn: str) -> str:
    """Return the heading of a group's curves."""
    return f"{dataset} with few labels, {protocol} protocol{f', {drawn}' if drawn else ''}"


def tables(dataset: str, protocol: str, found: Sequence[Curve], source: str = LOCAL) -> list[Table]:
    """Return the curves of a data set as tables: those over several budgets, and what was run at one budget alone."""
    lines = [curve for curve in found if len(curve.points) > 1]
    spots = [curve for curve in found if len(curve.points) == 1]
    spots.sort(key=lambda curve: -curve.points[0].mean)
    return [_table(dataset, protocol, curves, source) for curves in (lines, spots) if curves]


def _table(dataset: str, protocol: str, curves: Sequence[Curve], source: str) -> Table:
    """A line per method, a column per budget."""
    budgets = sorted({point.budget for curve in curves for point in curve.points})
    metric = curves[0].metric
    factor = scale(metric)
    headings = [("method", "method")]
    for budget in budgets:
        headings += [(f"labels_{budget}", f"{budget:,} labels"), (f"labels_{budget}_95", "±")]
    rows = []
    for curve in curves:
        points = {point.budget: point for point in curve.points}
        cells = [Datum(curve.label)]
        for budget in budgets:
            point = points.get(budget)
            half = (point.high - point.low) / 2 if point else 0.0
            cells.append(Datum(f"{factor * point.mean:.1f}", point.mean) if point else NOTHING)
            cells.append(Datum(f"{factor * half:.1f}", half) if half else NOTHING)
        rows.append(cells)
    fitted = f", those of a method marked {SUPERVISED} on the labelled ones alone"
    note = (
        f"{heading(metric)} in {unit(metric)}, the mean over {draws_of(curves)} of labels"
        f"{f', {BY_CLASS},' if curves[0].is_stratified else ''} with "
        "the half-width of its 95 % interval. All methods get the same draws; features are learnt "
        f"on all training texts{fitted if any(curve.uses_labels for curve in curves) else ''}."
        f"{explained(curve.label for curve in curves)}"
        f" {left_out({curve.label: curve.n_otherwise for curve in curves})}"
    ).rstrip()
    by, drawn = (f", {BY_CLASS}", "-by-class") if curves[0].is_stratified else ("", "")
    title = f"{dataset}, {protocol} protocol, by labels{by}"
    name = slug(f"curve-{dataset}-{protocol}{drawn}" + ("" if source == LOCAL else "-recorded"))
    if len(budgets) == 1:
        title, name = f"{dataset}, {protocol} protocol, {budgets[0]:,} labels{by}", f"{name}-{budgets[0]}"
    return Table(name, title, headings, rows, note, source)
