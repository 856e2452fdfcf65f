"""The leaderboard as a picture: how good each method is, with its interval, and what it costs."""

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from textbench.flows.plots.style import BEST, INK, OTHER, canvas, dash, save
from textbench.flows.results.metric_names import heading, scale, unit
from textbench.flows.results.summary import Summary, columns, of_best, summarise, tables
from textbench.tasks import InputError

__all__ = ["INK", "WIDTH", "draw"]

WIDTH = 7.0  # inches
LINE = 80  # characters below an axis


def draw(rows: Iterable[Mapping[str, Any]], path: Path, metric: str | None = None) -> None:
    """Draw one panel a data set and protocol, best first, each in its metric's unit, to an SVG, PNG or PDF file.

    A bar is the 95 % interval, the wider of that over seeds, a solid line, and that over test documents, a dashed one;
    the number at the right is seconds, all stages together.
    Raises InputError when there is nothing to draw.
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
    with canvas(0.32 * sum(heights), WIDTH, **layout) as (figure, axes):
        for axis, (ranking, group) in zip(axes[:, 0], groups, strict=True):
            _panel(axis, group, ranking)
        save(figure, path)


def _panel(axis: Any, summaries: list[Summary], metric: str) -> None:
    for place, summary in enumerate(summaries):
        value, half = (scale(metric) * figures[metric] for figures in (summary.mean, summary.half_width))
        colour, marker = (BEST, "D") if summary.is_best else (OTHER, "o")
        bar = half if half == half else None
        drawn = axis.errorbar(value, place, xerr=bar, fmt=marker, color=colour, capsize=3, clip_on=False)
        dash(drawn, summary.over.get(metric))
        if summary.seconds is not None:
            axis.text(
                1.02, place, f"{summary.seconds:.1f} s", transform=axis.get_yaxis_transform(), va="center"
            )
    axis.set_yticks(range(len(summaries)), [summary.label for summary in summaries])
    axis.set_ylim(len(summaries) - 0.5, -0.5)
    axis.set_title(summaries[0].title)
    label = f"{heading(metric)}, {unit(metric)}{_bars(summaries, metric)}"
    if shared := of_best(summaries, metric):
        label += "\n" + textwrap.fill(f"Diamond: best{shared}", LINE)
    axis.set_xlabel(label)
    axis.grid(axis="y", visible=False)
    axis.spines["left"].set_visible(False)
    axis.tick_params(axis="y", length=0)


def _bars(summaries: list[Summary], metric: str) -> str:
    """Say over what the bars of a panel are; "" without bars."""
    kinds = {summary.over.get(metric) for summary in summaries} - {None}
    if kinds == {"seeds", "documents"}:
        return " (95 %: solid over seeds, dashed over test documents)"
    return f" (95 % interval over {'seeds' if kinds == {'seeds'} else 'test documents'})" if kinds else ""
