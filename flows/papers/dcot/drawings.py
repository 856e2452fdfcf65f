"""The pictures of the dCoT paper's exhibits, in the report's style; what they show is worked out in `dcot`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from textbench.flows.explain.terms import Column
from textbench.flows.plots import style
from textbench.flows.plots.curves import draw_curves
from textbench.flows.plots.terms import draw_terms
from textbench.flows.results.learning_curves import BudgetPoint, Curve

Grid = Mapping[tuple[float, int], Sequence[float]]  # (noise, layers) -> accuracies in percent, one a draw
PANELS_A_ROW = 3


def seconds(rows: Sequence[tuple[str, float | None, float]], path: Path) -> None:
    """Draw (method, published, measured) seconds on a logarithmic line a method."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    with style.canvas(0.42 * len(rows) + 0.8) as (figure, axis):
        axis.set_xscale("log")
        for place, (_, printed, measured) in enumerate(rows):
            if printed is not None:
                axis.plot([printed, measured], [place, place], color=style.QUIET, linewidth=0.8, zorder=1)
                axis.plot([printed], [place], "s", color=style.BEST, markerfacecolor="#ffffff", zorder=2)
                _above(axis, printed, place, style.BEST)
            axis.plot([measured], [place], "o", color=style.OTHER, zorder=3)
            _above(axis, measured, place, style.OTHER)
        style.name_lines(axis, [row[0] for row in rows])
        axis.set_ylim(len(rows) - 0.6, -0.8)
        axis.margins(x=0.12)
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_xlabel("seconds; square: published, dot: measured")
        style.save(figure, path)


def _above(axis: Any, x: float, y: float, colour: str) -> None:
    place = {"xytext": (0, 5), "textcoords": "offset points", "ha": "center", "fontsize": 9}
    axis.annotate(span(x), (x, y), color=colour, **place)


def span(seconds: float) -> str:
    """Return seconds as people say them: 0.052 s, 9.4 s, 51 min, 3 h 10 min."""
    if seconds >= 7200:
        return f"{seconds // 3600:.0f} h {seconds % 3600 / 60:.0f} min"
    if seconds >= 120:
        return f"{seconds / 60:.0f} min"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def columns(found: Sequence[Column], shared: Sequence[set[str]], path: Path) -> None:
    """Draw columns of terms as panels, terms in `shared` in bold with a dot."""
    n_rows = -(-len(found) // PANELS_A_ROW)
    n_terms = max(len(column.terms) for column in found)
    layout = {"nrows": n_rows, "ncols": PANELS_A_ROW, "squeeze": False}
    with style.canvas(n_rows * (0.19 * n_terms + 0.35), **layout) as (figure, axes):
        for axis in axes.flat[len(found) :]:
            axis.set_visible(False)
        for axis, column, both in zip(axes.flat, found, shared, strict=False):
            draw_terms(axis, column.heading, column.terms, n_terms, both)
        style.save(figure, path)


def grid(found: Grid, beside: Mapping[str, Sequence[float]], path: Path) -> None:
    """Draw the mean accuracies as a heat map, and under it as lines; methods in `beside` are dashed lines."""
    with style.canvas(6.2, nrows=2, height_ratios=[1, 1.6]) as (figure, (above, below)):
        means = {place: sum(values) / len(values) for place, values in found.items()}
        _heat_map(above, means)
        _lines(below, means, {method: sum(values) / len(values) for method, values in beside.items()})
        style.save(figure, path)


def _heat_map(axis: Any, means: Mapping[tuple[float, int], float]) -> None:
    """Draw a square a setting with its figure; the highest is framed and bold.

    Shades are one colour's opacity, so that they and the figures in them suit light and dark pages.
    """
    from matplotlib.patches import Rectangle

    noises, depths = sorted({noise for noise, _ in means}), sorted({depth for _, depth in means})
    low, high = min(means.values()), max(means.values())
    for (noise, depth), mean in means.items():
        x, y = noises.index(noise), depths.index(depth)
        shade = 0.04 + 0.5 * (mean - low) / ((high - low) or 1.0)
        corner, width, height = (x - 0.48, y - 0.47), 0.96, 0.94
        axis.add_patch(Rectangle(corner, width, height, facecolor=style.OTHER, alpha=shade, linewidth=0))
        if mean == high:
            axis.add_patch(Rectangle(corner, width, height, fill=False, edgecolor=style.BEST, linewidth=2))
        weight = "bold" if mean == high else "normal"
        axis.text(x, y, f"{mean:.1f}", ha="center", va="center", fontsize=9, fontweight=weight)
    axis.set_xticks(range(len(noises)), [f"{100 * noise:g}" for noise in noises])
    axis.set_yticks(range(len(depths)), [str(depth) for depth in depths])
    axis.set(xlim=(-0.5, len(noises) - 0.5), ylim=(-0.55, len(depths) - 0.45))
    axis.set(xlabel="noise, percent", ylabel="layers")
    axis.set_title("accuracy, percent; framed: the highest")
    style.strip(axis)


def _lines(axis: Any, means: Mapping[tuple[float, int], float], beside: Mapping[str, float]) -> None:
    """Draw a line a depth over the noise, and a dashed line for each of `beside`."""
    noises, depths = sorted({noise for noise, _ in means}), sorted({depth for _, depth in means})
    found = []
    for depth in depths:
        values = {noise: means[noise, depth] for noise in noises if (noise, depth) in means}
        found.append(_line(f"{depth} layer{'s' if depth > 1 else ''}", values))
    found += [_line(method, {noises[0]: mean, noises[-1]: mean}) for method, mean in beside.items()]
    draw_curves(axis, found)
    for line in axis.lines[len(depths) :]:
        line.set(linestyle="--", marker="")
    for text in axis.texts:
        text.set_fontsize(9)
    axis.set_xlabel("noise, percent")


def _line(name: str, values: Mapping[float, float]) -> Curve:
    """Return percentages by noise as a curve without a band."""
    shares = {round(100 * noise): mean / 100 for noise, mean in values.items()}
    points = [BudgetPoint(noise, share, share, share) for noise, share in shares.items()]
    return Curve("", name, "accuracy", 1, points)


def curves(found: Sequence[Curve], path: Path) -> None:
    """Draw label-budget curves."""
    with style.canvas(4.2) as (figure, axis):
        draw_curves(axis, found)
        style.save(figure, path)
