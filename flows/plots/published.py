"""Published figures beside measured ones, a line a figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textbench.flows.plots import style


@dataclass(frozen=True)
class Held:
    """A published figure beside the measured one, both in percent; what lies between low and high its caption says."""

    label: str
    published: float
    value: float
    low: float | None
    high: float | None
    verdict: str


def draw_held(axis: Any, found: Sequence[Held]) -> None:
    """Draw published and measured figures into axes, with the verdict at the right."""
    for place, one in enumerate(found):
        axis.plot([one.published, one.value], [place, place], color=style.QUIET, linewidth=0.8, zorder=1)
        reach = None
        if one.low is not None and one.high is not None:
            reach = [[one.value - one.low], [one.high - one.value]]
        looks = {"color": style.OTHER, "capsize": 2.5, "zorder": 3, "clip_on": False}
        axis.errorbar(one.value, place, xerr=reach, fmt="o", **looks)
        square = {"color": style.BEST, "markerfacecolor": "#ffffff", "zorder": 2, "clip_on": False}
        axis.plot([one.published], [place], "s", **square)
        axis.text(1.02, place, one.verdict, transform=axis.get_yaxis_transform(), va="center", fontsize=9)
    style.name_lines(axis, [one.label for one in found])
    axis.set_xlabel("percent")


def draw(found: Sequence[Held], path: Path, baseline: float | None = None) -> None:
    """Draw the figures, and TF-IDF's as a line across them where it is given, to an SVG, PNG or PDF file."""
    with style.canvas(0.27 * len(found) + (0.8 if baseline is None else 1.0)) as (figure, axis):
        draw_held(axis, found)
        if baseline is not None:
            axis.axvline(baseline, color=style.QUIET, linestyle="--", linewidth=1)
            axis.set_title(f"dashed: TF-IDF, {baseline:.1f}", color=style.QUIET)
        axis.set_xlabel("percent; square: published, dot: measured")
        style.save(figure, path)
