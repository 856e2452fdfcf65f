"""The pictures of the SCDV paper's exhibits, in the report's style; what they show is worked out in `scdv`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.flows.plots import style

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class ClassGain:
    """How far a class's rate is ahead of bag of words, in points: as published, and as measured with its interval."""

    name: str
    published: float
    value: float
    low: float
    high: float


def differences(panels: Mapping[str, Sequence[ClassGain]], path: Path) -> None:
    """Draw a panel a rate, a line a class; filled where the interval leaves out zero."""
    heights = [0.21 * len(found) + 0.7 for found in panels.values()]
    layout: dict[str, Any] = {"nrows": len(panels), "height_ratios": heights, "sharex": True}
    with style.canvas(sum(heights), squeeze=False, **layout) as (figure, axes):
        for axis, (rate, found) in zip(axes[:, 0], panels.items(), strict=True):
            for place, one in enumerate(found):
                told = one.low > 0 or one.high < 0
                colour = style.OTHER if told else style.QUIET
                reach = [[one.value - one.low], [one.high - one.value]]
                face = colour if told else "#ffffff"
                axis.errorbar(
                    one.value, place, xerr=reach, fmt="o", color=colour, markerfacecolor=face, capsize=2
                )
                axis.plot(
                    [one.published], [place], "s", color=style.BEST, markerfacecolor="#ffffff", zorder=2
                )
            axis.axvline(0, color=style.INK, linewidth=0.8)
            style.name_lines(axis, [one.name for one in found], fontsize=8)
            axis.set_title(f"{rate}: SCDV less BoW")
        axes[-1, 0].set_xlabel("points; square: published, dot: measured")
        style.save(figure, path)


def matrix(
    rows: Sequence[str], columns: Sequence[str], found: Mapping[tuple[str, str], float], base: str, path: Path
) -> None:
    """Draw figures in percent, (row, column) -> figure; shaded by how far they are from the row `base`.

    Blue is above it and orange below; the figures say the same.
    """
    from matplotlib.patches import Rectangle

    apart = {
        place: value - found[base, place[1]] for place, value in found.items() if (base, place[1]) in found
    }
    most = max((abs(value) for value in apart.values()), default=0.0) or 1.0
    with style.canvas(0.26 * len(rows) + 0.5) as (figure, axis):
        for (row, column), value in found.items():
            x, y = columns.index(column), rows.index(row)
            ahead = apart.get((row, column), 0.0)
            colour, shade = style.OTHER if ahead > 0 else style.BEST, 0.5 * abs(ahead) / most
            corner = (x - 0.48, y - 0.46)
            axis.add_patch(Rectangle(corner, 0.96, 0.92, facecolor=colour, alpha=shade, linewidth=0))
            is_best = value == max(v for (_, c), v in found.items() if c == column)
            weight = "bold" if is_best else "normal"
            axis.text(x, y, f"{value:.1f}", ha="center", va="center", fontsize=9, fontweight=weight)
        axis.set_xticks(range(len(columns)), [name.replace("-", "-\n", 1) for name in columns], fontsize=8)
        axis.set_yticks(range(len(rows)), rows)
        axis.xaxis.tick_top()
        axis.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
        style.strip(axis)
        style.save(figure, path)


def histogram(counts: "np.ndarray", reach: float, threshold: float, share: float, path: Path) -> None:
    """Draw how many values lie where from -reach to reach, and the threshold under which they become zero."""
    import numpy as np

    edges = np.linspace(-reach, reach, len(counts) + 1)
    with style.canvas(2.8) as (figure, axis):
        axis.stairs(counts, edges, color=style.OTHER, fill=True, alpha=0.35)
        axis.set_yscale("log")
        for place in (-threshold, threshold):
            axis.axvline(place, color=style.BEST, linewidth=1, linestyle="--")
        axis.set_title(
            f"dashed: threshold, ±{threshold:.4f}; {100 * share:.1f} % of values under it", fontsize=9
        )
        axis.set(xlim=(-reach, reach), xlabel="value", ylabel="values, of all training documents")
        style.save(figure, path)


@dataclass(frozen=True)
class ParameterLine:
    """Accuracies in percent over the values of a parameter, (value, mean, half width or nan)."""

    name: str
    points: Sequence[tuple[float, float, float]]
    published_at: float  # the value that the paper recommends


def sweeps(lines: Sequence[ParameterLine], baseline: float | None, path: Path) -> None:
    """Draw a panel a parameter, the others fixed, with the value that the paper recommends and a baseline."""
    layout = {"nrows": len(lines), "squeeze": False, "sharey": True}
    with style.canvas(1.9 * len(lines), **layout) as (figure, axes):
        for axis, line in zip(axes[:, 0], lines, strict=True):
            x, y, half = zip(*line.points, strict=True)
            bars = [0.0 if h != h else h for h in half]
            axis.errorbar(x, y, yerr=bars, fmt="o-", color=style.OTHER, capsize=2.5)
            axis.axvline(line.published_at, color=style.BEST, linestyle=":", linewidth=1.2)
            if baseline is not None:
                axis.axhline(baseline, color=style.QUIET, linestyle="--", linewidth=1)
            axis.set_xlabel(line.name)
            axis.set_ylabel("accuracy, %")
        beside = "" if baseline is None else f"; dashed: TF-IDF, {baseline:.1f}"
        axes[0, 0].set_title(f"dotted: what the paper recommends{beside}", fontsize=9)
        style.save(figure, path)


@dataclass(frozen=True)
class Map:
    """Documents in the plane: positions (n_documents, 2), the number of each one's class."""

    name: str
    positions: "np.ndarray"
    targets: "np.ndarray"
    agreement: float


def maps(found: Sequence[Map], names: Sequence[str], path: Path) -> None:
    """Draw documents as dots in the colour of the branch (comp, rec, ...) of their class, which is named beside."""
    branches = list(dict.fromkeys(name.partition(".")[0] for name in names))
    with style.canvas(4.0 * len(found), nrows=len(found), squeeze=False) as (figure, axes):
        for axis, one in zip(axes[:, 0], found, strict=True):
            axis.set_rasterization_zorder(0)  # thousands of dots would be megabytes of shapes
            for branch in branches:
                members = [k for k, name in enumerate(names) if name.partition(".")[0] == branch]
                _dots(axis, one, members, DOTS[branches.index(branch) % len(DOTS)])
            axis.set_title(
                f"{one.name}: {100 * one.agreement:.0f} % of 10 nearest share the group", fontsize=9
            )
            axis.set(xticks=[], yticks=[])
            axis.grid(visible=False)
            axis.spines[:].set_visible(False)
        for axis, one in zip(axes[:, 0], found, strict=True):
            _name_classes(axis, one, names, branches)
        style.save(figure, path)


# The dots are a picture inside of the picture, whose colours no page can change: none is black.
DOTS = (*style.COLOURS[:-1], "#7f7f7f")


def _dots(axis: Any, one: Map, classes: Sequence[int], colour: str) -> None:
    import numpy as np

    own = one.positions[np.isin(one.targets, classes)]
    axis.plot(own[:, 0], own[:, 1], ".", color=colour, markersize=1.6, alpha=0.55, zorder=-1)


def _name_classes(axis: Any, one: Map, names: Sequence[str], branches: Sequence[str]) -> None:
    import numpy as np

    colours: dict[str, str] = {}
    middles: list[tuple[float, float]] = []
    for number, name in enumerate(names):
        own = one.positions[one.targets == number]
        if len(own):
            x, y = np.median(own, axis=0).tolist()
            middles.append((x, y))
            place = branches.index(name.partition(".")[0])
            colours[short(name)] = style.COLOURS[place % len(style.COLOURS)]
    style.place_labels(axis, middles, list(colours), fontsize=8, fontweight="bold")
    for label in axis.texts:
        label.set(color=colours[label.get_text()])
        label.set_bbox({"facecolor": "#ffffff", "alpha": 0.65, "linewidth": 0, "pad": 0.8})


def short(name: str) -> str:
    """Return what tells a group from others of its branch: comp.sys.ibm.pc.hardware is ibm.hardware."""
    parts = [part for part in name.split(".")[1:] if part not in ("sys", "pc", "os", "misc")]
    return ".".join(parts) or name


def coherence(models: Mapping[str, tuple[Sequence[float], float | None]], path: Path) -> None:
    """Draw each model's topics by coherence, its mean as a bar, the published mean as a square."""
    import numpy as np

    with style.canvas(0.55 * len(models) + 0.9) as (figure, axis):
        for place, (values, printed) in enumerate(models.values()):
            spread = place + 0.22 * np.sin(2.4 * np.arange(len(values)))  # apart, always in the same way
            axis.plot(values, spread, ".", color=style.OTHER, markersize=4, alpha=0.5)
            mean = float(np.mean(values))
            axis.plot([mean, mean], [place - 0.35, place + 0.35], color=style.OTHER, linewidth=2.5)
            axis.annotate(f"{mean:.1f}", (mean, place - 0.36), ha="center", va="bottom", color=style.OTHER)
            if printed is not None:
                axis.plot([printed], [place], "s", color=style.BEST, markerfacecolor="#ffffff", zorder=3)
        style.name_lines(axis, list(models))
        axis.set_ylim(len(models) - 0.5, -0.75)
        axis.set_xlabel("UMass; dot: a topic, bar: mean, square: published mean")
        style.save(figure, path)
