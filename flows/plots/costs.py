"""What methods reach against what they cost, and which of them nothing beats on both."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from textbench.flows.plots import style

Point = tuple[float, float]  # cost, gain


def front(points: Sequence[Point]) -> set[Point]:
    """Return the points (cost, gain) that no other is as good as on both and better on one."""
    return {(x, y) for x, y in points if not any(a <= x and b >= y and (a < x or b > y) for a, b in points)}


def draw_costs(axis: Any, points: Sequence[Point], labels: Sequence[str], best: set[Point]) -> None:
    """Draw points into axes with a logarithmic cost; the `best` are filled and joined."""
    axis.set_xscale("log")
    line = sorted(point for point in points if point in best)
    path = [line[0]]
    for (_, y), (a, b) in pairwise(line):
        path += [(a, y), (a, b)]
    axis.plot(*zip(*path, strict=True), color=style.BEST, linewidth=1.2, zorder=1)
    for x, y in points:
        is_best = (x, y) in best
        colour = style.BEST if is_best else style.OTHER
        face = colour if is_best else "#ffffff"
        axis.plot([x], [y], "D" if is_best else "o", color=colour, markerfacecolor=face, zorder=2)
    axis.margins(x=0.18, y=0.12)
    _plain_ticks(axis)
    style.place_labels(axis, points, labels, path, fontsize=9)


def _plain_ticks(axis: Any) -> None:
    """Write the costs out as numbers, few enough to be read."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_xlim()
    steps = (1.0, 2.0, 5.0) if high < 30 * low else (1.0,)
    axis.xaxis.set_major_locator(LogLocator(subs=steps))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
