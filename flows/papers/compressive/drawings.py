"""The pictures of the compressive-features paper's exhibits; what they show is worked out in `compressive`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.flows.papers.compressive.results import Order, SharePoint
from textbench.flows.plots import style

if TYPE_CHECKING:
    import numpy as np

TITLES = {"on_test": "tuned on test error, as published", "tuned": "tuned on training documents"}


def orders(found: Sequence[Order], path: Path) -> None:
    """Draw errors with bars of one standard error, a line an order; both tunings beside each other."""
    with style.canvas(0.42 * len(found) + 1.1) as (figure, axis):
        for offset, tuning, colour, mark, fill in (
            (-0.14, "on_test", style.BEST, "s", "#ffffff"),
            (0.14, "tuned", style.OTHER, "o", style.OTHER),
        ):
            for place, row in enumerate(found):
                error, bar = 100 * row.error[tuning], 100 * row.bar[tuning]
                options = {"color": colour, "markerfacecolor": fill, "capsize": 2.5}
                axis.errorbar(error, place + offset, xerr=bar, fmt=mark, **options)
        names = [row.name if row.name.startswith("compressed") else f"LZ77 {row.name}" for row in found]
        style.name_lines(axis, [name.replace(", ", ",\n") for name in names])
        axis.set_ylim(len(found) - 0.5, -0.6)
        axis.set_xlim(left=0)
        axis.set_xlabel("error, percent\nsquare: tuned on test error\ndot: on training documents")
        style.save(figure, path)


def shares(found: Mapping[str, Mapping[float, SharePoint]], path: Path) -> None:
    """Draw error by share of the training documents, a panel a tuning, a line a kind of features with its band."""
    with style.canvas(7.0, nrows=2, sharex=True, sharey=True) as (figure, axes):
        for axis, (tuning, title) in zip(axes, TITLES.items(), strict=True):
            for place, (name, points) in enumerate(found.items()):
                colour = style.COLOURS[place]
                x = [100 * share for share in points]
                means = [point.mean(tuning) for point in points.values()]
                y, half = [100 * mean for mean, _ in means], [0 if h != h else 100 * h for _, h in means]
                options = {"marker": style.MARKS[place], "linestyle": "--" if "known" in name else "-"}
                axis.plot(x, y, color=colour, ms=4, label=name, **options)
                low, high = ([a + sign * b for a, b in zip(y, half, strict=True)] for sign in (-1, 1))
                axis.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
            axis.set_ylim(bottom=0)
            axis.set_title(title)
            axis.set_ylabel("error, percent")
        axes[1].set_xlabel("percent of training documents")
        lines, names = axes[0].get_legend_handles_labels()
        figure.legend(lines, names, loc="outside upper left", frameon=False, labelcolor="linecolor")
        style.save(figure, path)


def scatter(panels: "Sequence[tuple[str, np.ndarray, np.ndarray, Sequence[str]]]", path: Path) -> None:
    """Draw documents at two components, a panel of (title, scores (n, 2), targets, names of the targets)."""
    import numpy as np

    n_columns = 2 if len(panels) > 1 else 1
    n_rows = -(-len(panels) // n_columns)
    layout: dict[str, Any] = {"nrows": n_rows, "ncols": n_columns, "squeeze": False}
    with style.canvas(2.5 * n_rows, **layout) as (figure, axes):
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        for axis, (title, scores, targets, names) in zip(axes.flat, panels, strict=False):
            for target, name in enumerate(names):
                own = scores[targets == target]
                options = {"color": style.COLOURS[target], "marker": style.MARKS[target]}
                axis.scatter(own[:, 0], own[:, 1], s=5, alpha=0.45, linewidths=0, label=name, **options)
            for setter, values in ((axis.set_xlim, scores[:, 0]), (axis.set_ylim, scores[:, 1])):
                # A handful of outliers would leave the rest a dot.
                low, high = np.percentile(values, [1, 99])
                setter(low - 0.15 * (high - low), high + 0.15 * (high - low))
            axis.set_title(title, fontsize=9)
            axis.set(xticks=[], yticks=[])
            axis.legend(fontsize=8, frameon=False, handletextpad=0.1, borderpad=0.1, markerscale=2)
        style.save(figure, path)


def path_of_costs(found: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the number of features and the errors over the pointer cost."""
    costs = [step["pointer_cost"] for step in found]
    with style.canvas(4.4, nrows=2, sharex=True) as (figure, (above, below)):
        above.plot(costs, [step["n_features"] / 1e3 for step in found], "o-", color=style.OTHER, ms=4)
        above.set_ylabel("features, thousands")
        above.set_xscale("log")
        for name, mark, colour, words in (
            ("error", "D", style.BEST, "test documents"),
            ("cv_error", "o", style.OTHER, "cross-validation"),
        ):
            values = [100 * step[name] for step in found]
            below.plot(costs, values, mark, linestyle="-", color=colour, ms=4, label=words)
        below.legend(loc="upper left", frameon=False, labelcolor="linecolor")
        below.set_ylabel("error, percent")
        below.set_xlabel("pointer cost")
        below.set_ylim(bottom=0)
        below.set_xticks(costs, [f"{cost:g}" for cost in costs])
        below.minorticks_off()
        style.save(figure, path)
