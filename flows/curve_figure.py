"""Label-budget curves as a picture: a line a method, its 95 % band, and its name at its end."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.figure import INK, KINDS
from flows.leaderboard import HEADINGS
from tasks import InputError

if TYPE_CHECKING:
    from flows.curves import Curve

# Okabe and Ito's colours, told apart by colour-blind eyes; lines also differ by their marks.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKS = "os^Dv*P"
GAP = 0.035  # least distance of two names, as a share of the axis


def draw(curves: "Sequence[Curve]", path: Path) -> None:
    """Draw the curves of one data set, values in percent, to an SVG, PNG or PDF file.

    Raises InputError for another kind of file or when there is nothing to draw.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    if path.suffix.lower() not in KINDS:
        raise InputError(f"--figure must end in {', '.join(KINDS)}, got {path.name}")
    if not curves:
        raise InputError("no cell of the curves is finished; there is nothing to draw")
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "textbench", "font.size": 10}
    figure, axis = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for place, curve in enumerate(curves):
        budgets = [point.budget for point in curve.points]
        colour, mark = COLOURS[place % len(COLOURS)], MARKS[place % len(MARKS)]
        axis.plot(budgets, [100 * point.mean for point in curve.points], color=colour, marker=mark, ms=4)
        low, high = ([100 * getattr(point, end) for point in curve.points] for end in ("low", "high"))
        axis.fill_between(budgets, low, high, color=colour, alpha=0.15, linewidth=0)
    _name_lines(axis, curves)
    first = curves[0]
    heading = HEADINGS.get(first.metric, first.metric)
    axis.set_xlabel("labelled training documents", color=INK)
    axis.set_ylabel(f"{heading}, percent (95 % band, {first.n_draws} draws)", color=INK)
    axis.set_title(first.dataset, loc="left", fontsize=10, color=INK)
    axis.grid(color="#DDDDDD")
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    figure.savefig(path, metadata={"Date": None} if path.suffix != ".png" else None, dpi=150)
    plt.close(figure)


def _name_lines(axis: Any, curves: "Sequence[Curve]") -> None:
    """Write each method's name beside the end of its line, moved apart where ends are close."""
    low, high = axis.get_ylim()
    least = GAP * (high - low)
    height = -float("inf")
    for place, curve in sorted(enumerate(curves), key=lambda item: item[1].points[-1].mean):
        end = curve.points[-1]
        height = max(100 * end.mean, height + least)
        axis.annotate(
            curve.method,
            (end.budget, 100 * end.mean),
            xytext=(1.01, height),
            textcoords=axis.get_yaxis_transform(),
            color=COLOURS[place % len(COLOURS)],
            va="center",
            annotation_clip=False,
        )
