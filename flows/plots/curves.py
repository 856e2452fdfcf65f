"""Label-budget curves as a picture: a line a method, its 95 % band, and its name at its end."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textbench.flows.plots import style
from textbench.flows.results.learning_curves import Curve
from textbench.flows.results.method_names import explained
from textbench.flows.results.metric_names import heading, scale, unit
from textbench.tasks import InputError

GAP = 0.045  # least distance of two names at the ends of lines, as a share of the axis


def draw(curves: Sequence[Curve], path: Path) -> None:
    """Draw the curves of one data set, in their metric's unit, to an SVG, PNG or PDF file.

    Raises InputError when there is nothing to draw.
    """
    if not curves:
        raise InputError("no cell of the curves is finished; there is nothing to draw")
    first = curves[0]
    with style.canvas(4.5, style.WIDE) as (figure, axis):
        draw_curves(axis, curves)
        label = f"{heading(first.metric)}, {unit(first.metric)} (95 % band, {first.n_draws} draws)"
        axis.set_ylabel(label)
        axis.set_title(first.dataset)
        style.save(figure, path)


def draw_curves(axis: Any, found: Sequence[Curve]) -> None:
    """Draw curves of one metric into axes: lines that differ in colour and mark, bands, and names at their ends."""
    metric = found[0].metric
    factor = scale(metric)
    for place, curve in enumerate(found):
        budgets = [point.budget for point in curve.points]
        colour = style.COLOURS[place % len(style.COLOURS)]
        mark = style.MARKS[place % len(style.MARKS)]
        mean, low, high = (
            [factor * getattr(point, name) for point in curve.points] for name in ("mean", "low", "high")
        )
        axis.plot(budgets, mean, color=colour, marker=mark, ms=4, clip_on=False)
        axis.fill_between(budgets, low, high, color=colour, alpha=0.15, linewidth=0)
    low, high = axis.get_ylim()
    most = 101.0 if factor == 100 else high
    axis.set_ylim(max(low, 0.0), min(high, most))  # two draws have an interval wider than all there is
    _name_lines(axis, found)
    said = explained(curve.label for curve in found)
    axis.set_xlabel("labelled training documents" + said.replace(" ", "\n", 1))
    axis.set_ylabel(f"{heading(metric)}, {unit(metric)}")


def _name_lines(axis: Any, found: Sequence[Curve]) -> None:
    """Write each method's name beside the end of its line, moved apart where ends are close."""
    low, high = axis.get_ylim()
    factor, height = scale(found[0].metric), -float("inf")
    for place, curve in sorted(enumerate(found), key=lambda item: item[1].points[-1].mean):
        end = curve.points[-1]
        height = max(factor * end.mean, height + GAP * (high - low))
        axis.annotate(
            style.shortened(curve.label),
            (end.budget, factor * end.mean),
            xytext=(1.01, height),
            textcoords=axis.get_yaxis_transform(),
            color=style.COLOURS[place % len(style.COLOURS)],
            va="center",
            annotation_clip=False,
        )
