"""Label-budget curves as a picture: a line a method, its 95 % band, and its name at its end or below."""

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textbench.flows.plots import style
from textbench.flows.results.learning_curves import Curve
from textbench.flows.results.method_names import explained
from textbench.flows.results.metric_names import heading, scale, unit
from textbench.tasks import InputError

GAP = 0.06  # least distance of two names at the ends of lines, as a share of the axis
LONG = 16  # characters of a name that there is no room for beside its line
MOST_TIMES = 20  # that the largest budget is of the smallest, for a linear axis
ONE_LINE = 54  # characters below a picture
ONE_TITLE = 24  # above a panel


def draw(curves: Sequence[Curve], path: Path) -> None:
    """Draw the curves of one data set, in their metric's unit, to an SVG, PNG or PDF file.

    Raises InputError when there is nothing to draw.
    """
    if not curves:
        raise InputError("no cell of the curves is finished; there is nothing to draw")
    first = curves[0]
    with style.canvas(4.5 + height_of_legend(curves), style.WIDE) as (figure, axis):
        draw_curves(axis, curves)
        label = f"{heading(first.metric)}, {unit(first.metric)} (95 % band, {first.n_draws} draws)"
        axis.set_ylabel(label)
        axis.set_title(first.dataset)
        style.save(figure, path)


def draw_curves(axis: Any, found: Sequence[Curve]) -> None:
    """Draw curves of one metric into axes: lines that differ in colour, mark and dashes, bands, and names.

    These stand at the ends of lines, or where one is long in a legend below the figure. Budgets that grow far are
    evenly apart on a logarithmic scale.
    """
    metric = found[0].metric
    _draw_lines(axis, found, [style.shortened(curve.label) for curve in found])
    budgets = sorted({point.budget for curve in found for point in curve.points})
    if budgets[-1] >= MOST_TIMES * budgets[0]:
        axis.set_xscale("log")
        axis.set_xticks(budgets, [f"{budget:,}" for budget in budgets])
        axis.minorticks_off()
    if height_of_legend(found):
        axis.figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    else:
        _name_lines(axis, found)
    said = explained(curve.label for curve in found).strip()
    axis.set_xlabel("\n".join(["labelled training documents", *textwrap.wrap(said, ONE_LINE)]))
    axis.set_ylabel(f"{heading(metric)}, {unit(metric)}")


def draw_multiples(figure: Any, panels: Sequence[Any], found: Sequence[Sequence[Curve]]) -> None:
    """Draw the curves of a data set into each of some panels; a method looks the same in all, and is named below them.

    Panels without curves are left blank.
    """
    names = list(dict.fromkeys(style.shortened(curve.label) for curves in found for curve in curves))
    handles: dict[str, Any] = {}
    for axis, curves in zip(panels, found, strict=False):
        _draw_lines(axis, curves, names)
        budgets = sorted({point.budget for curve in curves for point in curve.points})
        axis.set_xscale("log")
        shown = sorted({budgets[0], budgets[len(budgets) // 2], budgets[-1]})
        axis.set_xticks(shown, [f"{budget:,}" for budget in shown])
        axis.minorticks_off()
        axis.set_title(textwrap.fill(f"{curves[0].dataset}, {heading(curves[0].metric)}", ONE_TITLE))
        handles |= dict(zip(*axis.get_legend_handles_labels()[::-1], strict=True))
    for axis in panels[len(found) :]:
        axis.set_axis_off()
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=2, fontsize=8, frameon=False)


def _draw_lines(axis: Any, found: Sequence[Curve], names: Sequence[str]) -> None:
    """Draw curves of one metric, each as the place of its name among `names` has it, with their bands."""
    factor = scale(found[0].metric)
    for curve in found:
        place = names.index(style.shortened(curve.label))
        budgets = [point.budget for point in curve.points]
        colour = style.COLOURS[place % len(style.COLOURS)]
        mark = style.MARKS[place % len(style.MARKS)]
        mean, low, high = (
            [factor * getattr(point, name) for point in curve.points] for name in ("mean", "low", "high")
        )
        dashes = "-" if place < len(style.COLOURS) else "--"
        axis.plot(budgets, mean, dashes, color=colour, marker=mark, ms=4, clip_on=False, label=names[place])
        axis.fill_between(budgets, low, high, color=colour, alpha=0.15, linewidth=0)
    low, high = axis.get_ylim()
    most = 101.0 if factor == 100 else high
    axis.set_ylim(max(low, 0.0), min(high, most))  # two draws have an interval wider than all there is


def height_of_legend(found: Sequence[Curve]) -> float:
    """Return the inches of a legend below the figure; 0 where every name has room at the end of its line."""
    return 0.16 * math.ceil(len(found) / 2) if any(len(curve.label) > LONG for curve in found) else 0.0


def _name_lines(axis: Any, found: Sequence[Curve]) -> None:
    """Write each method's name beside the end of its line, moved apart where ends are close, within the axes."""
    low, high = axis.get_ylim()
    factor, gap = scale(found[0].metric), GAP * (high - low)
    ordered = sorted(enumerate(found), key=lambda item: item[1].points[-1].mean)
    heights: list[float] = []
    for _, curve in ordered:
        heights.append(max([factor * curve.points[-1].mean, *(height + gap for height in heights[-1:])]))
    ceiling = high
    for (place, curve), height in zip(ordered[::-1], heights[::-1], strict=True):
        at, ceiling = min(height, ceiling), min(height, ceiling) - gap
        end = curve.points[-1]
        axis.annotate(
            style.shortened(curve.label),
            (end.budget, factor * end.mean),
            xytext=(1.01, at),
            textcoords=axis.get_yaxis_transform(),
            color=style.COLOURS[place % len(style.COLOURS)],
            va="center",
            annotation_clip=False,
        )
