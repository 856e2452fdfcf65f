"""The leaderboard as a picture: how good each method is, with its interval, and what it costs."""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textbench.flows.plots import style
from textbench.flows.results.method_names import explained
from textbench.flows.results.metric_names import heading, scale, unit
from textbench.flows.results.summary import Summary, columns, of_best, summarise, tables
from textbench.tasks import InputError

LINE = 64  # characters below an axis


@dataclass(frozen=True)
class MethodMark:
    """A line: a method's figure and half of its interval, nan without one, in the metric's unit, and what that is over.

    What `is_best` has a colour of its own; `beside` is written at the right.
    """

    label: str
    value: float
    half_width: float
    over: str | None
    marker: str
    is_best: bool
    is_filled: bool
    beside: str


def draw_methods(axis: Any, methods: Sequence[MethodMark], edge: float = -math.inf) -> None:
    """Draw methods into axes, a line each; of one below the edge a triangle there.

    A bar is the 95 % interval: over seeds solid, over test documents dashed.
    """
    for place, method in enumerate(methods):
        colour = style.BEST if method.is_best else style.OTHER
        looks = {
            "color": colour,
            "markerfacecolor": colour if method.is_filled else "#ffffff",
            "clip_on": False,
        }
        if method.value < edge:
            axis.plot([edge], [place], marker="<", **looks)
        else:
            bar = None if math.isnan(method.half_width) else method.half_width
            drawn = axis.errorbar(method.value, place, xerr=bar, fmt=method.marker, capsize=2.5, **looks)
            style.dash(drawn, method.over)
        axis.text(1.02, place, method.beside, transform=axis.get_yaxis_transform(), va="center")
    style.name_lines(axis, [style.shortened(method.label) for method in methods])
    # One unit at least, so that a hundredth of a point does not look large, with ticks that say what they are.
    low, high = axis.get_xlim()
    if high - low < 1:
        axis.set_xlim((low + high - 1) / 2, (low + high + 1) / 2)
    axis.ticklabel_format(axis="x", useOffset=False)


def draw(rows: Iterable[Mapping[str, Any]], path: Path, metric: str | None = None) -> None:
    """Draw one panel a data set and protocol, best first, each in its metric's unit, to an SVG, PNG or PDF file.

    The number at the right is seconds, all stages together. Raises InputError when there is nothing to draw.
    """
    groups = []
    for summaries in tables(summarise(rows, metric)):
        ranking = columns(summaries, metric)[0]
        if measured := [summary for summary in summaries if ranking in summary.mean]:
            groups.append((ranking, measured))
    if not groups:
        raise InputError("no finished run has that metric; there is nothing to draw")
    heights = [len(group) + 1.5 for _, group in groups]
    layout = {"nrows": len(groups), "squeeze": False, "height_ratios": heights}
    with style.canvas(0.32 * sum(heights), style.WIDE, **layout) as (figure, axes):
        for axis, (ranking, group) in zip(axes[:, 0], groups, strict=True):
            _panel(axis, group, ranking)
        style.save(figure, path)


def _panel(axis: Any, summaries: list[Summary], metric: str) -> None:
    draw_methods(axis, [_mark(summary, metric) for summary in summaries])
    axis.set_title(summaries[0].title)
    label = f"{heading(metric)}, {unit(metric)}{_bars(summaries, metric)}"
    if shared := of_best(summaries, metric):
        label += "\n" + textwrap.fill(f"Diamond: best{shared}", LINE)
    if said := explained(summary.label for summary in summaries):
        label += "\n" + textwrap.fill(said.strip(), LINE)
    axis.set_xlabel(label)


def _mark(summary: Summary, metric: str) -> MethodMark:
    return MethodMark(
        label=summary.label,
        value=scale(metric) * summary.mean[metric],
        half_width=scale(metric) * summary.half_width[metric],
        over=summary.over.get(metric),
        marker="D" if summary.is_best else "o",
        is_best=summary.is_best,
        is_filled=True,
        beside="" if summary.seconds is None else f"{summary.seconds:.1f} s",
    )


def _bars(summaries: list[Summary], metric: str) -> str:
    """Say over what the bars of a panel are; "" without bars."""
    kinds = {summary.over.get(metric) for summary in summaries} - {None}
    if kinds == {"seeds", "documents"}:
        return " (95 %: solid over seeds, dashed over test documents)"
    return f" (95 % interval over {'seeds' if kinds == {'seeds'} else 'test documents'})" if kinds else ""
