"""The one style of every figure: size, type, colours, and how a picture becomes part of a page.

Colours are Okabe and Ito's, told apart by colour-blind eyes, darkened where needed so that text in them is readable on
white; methods are also told apart by their marks and named beside them. In a page each colour becomes a CSS variable,
so that the same picture suits light and dark.
"""

import io
import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from textbench.tasks import InputError

INK, QUIET, GRID = "#333333", "#5f6368", "#dddddd"
# Lines and dots in their order; the first is a plain result, the second the best.
COLOURS = ("#0072b2", "#b84c00", "#00795a", "#a0447a", "#8a6100", "#4d5db0", "#000001")
OTHER, BEST = COLOURS[0], COLOURS[1]
MARKS = "osD^vP*"
WIDTH = 4.6  # inches: a column of a page, a whole telephone
WIDE = 7.0  # inches: a file of its own
LONGEST = 32  # characters of a name beside a line
SETTINGS: Any = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "textbench",  # equal pictures are equal files
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": QUIET,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "lines.markersize": 5,
}
# Dates are left out, so that equal pictures are equal files.
DATES = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
VARIABLES = {INK: "ink", QUIET: "quiet", GRID: "grid", "#ffffff": "paper"} | {
    colour: f"c{place}" for place, colour in enumerate(COLOURS)
}


@contextmanager
def canvas(height: float, width: float = WIDTH, **options: Any) -> Iterator[tuple[Any, Any]]:
    """Give a figure of so many inches and its axes, in the style; the figure is closed afterwards."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with matplotlib.rc_context(SETTINGS):
        figure, axes = plt.subplots(figsize=(width, height), layout="constrained", **options)
        try:
            yield figure, axes
        finally:
            plt.close(figure)


def dash(bar: Any, over: str | None) -> None:
    """Draw an error bar dashed where it is over test documents; over seeds it stays solid."""
    if over == "documents":
        for line in bar.lines[2]:
            line.set_linestyle("--")


def save(figure: Any, path: Path) -> None:
    """Write a figure to an SVG, PNG or PDF file, the same bytes for the same picture.

    Raises InputError where it cannot be written.
    """
    metadata = DATES.get(path.suffix.lower())
    try:
        figure.savefig(path, metadata=metadata, dpi=150)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def inline(figure: Any, name: str, title: str, description: str) -> str:
    """Return a figure as an SVG element for a page: its ids begin with `name`, its colours are CSS variables.

    `description` says in words what the picture shows.
    """
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None}, transparent=True)
    return element(stream.getvalue(), name, title, description)


def element(svg: str, name: str, title: str, description: str) -> str:
    """Return a figure of this style that was written as SVG as an element for a page, as `inline` does."""
    from html import escape

    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg)
    svg = svg.replace("url(#", f"url(#{name}-").replace("xlink:href", "href")
    for colour, variable in VARIABLES.items():
        svg = re.sub(colour, f"var(--{variable}, {colour})", svg, flags=re.IGNORECASE)
    svg = re.sub(r"font: ([^;\"]*?)(\d+(?:\.\d+)?px) [^;\"]*", r"font: \1\2 var(--sans, sans-serif)", svg)
    view = re.search(r'viewBox="[^"]*"', svg)
    opening = svg[: svg.index(">") + 1]
    about = (
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(description)}</desc>'
    )
    element = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {view.group() if view else ""} role="img" '
        f'aria-labelledby="{name}-title {name}-desc">{about}'
    )
    return svg.replace(opening, element, 1)


def name_lines(axis: Any, names: Sequence[str], **options: Any) -> None:
    """Name the lines 0, 1, ... of a drawing at the left, the first on top, without a frame there."""
    axis.set_yticks(range(len(names)), names, **options)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.grid(axis="y", visible=False)
    axis.spines["left"].set_visible(False)
    axis.tick_params(axis="y", length=0)


def strip(axis: Any) -> None:
    """Take grid, frame and ticks off axes whose figures are written into them."""
    axis.grid(visible=False)
    axis.spines[["left", "bottom"]].set_visible(False)
    axis.tick_params(length=0)


def shortened(label: str) -> str:
    """Return a label without its middle if it is too long: the ends tell settings apart."""
    return label if len(label) <= LONGEST else f"{label[: LONGEST // 2 - 1]}…{label[-LONGEST // 2 :]}"


def place_labels(
    axis: Any, points: Sequence[tuple[float, float]], names: Sequence[str], path: Any = None, **options: Any
) -> None:
    """Name points beside them, each where it covers least of other names, points and a drawn path (x, y).

    A line leads to a name that is far from its point.
    """
    figure = axis.figure
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # what is measured now has to stay where it is
    renderer, frame = figure.canvas.get_renderer(), axis.get_window_extent()
    marks = axis.transData.transform(points)
    step = 0.6 * 10 * figure.dpi / 72
    taken: list[tuple[float, float, float, float]] = [(x - 4, y - 4, x + 4, y + 4) for x, y in marks]
    if path is not None:
        taken += [(x - 2, y - 2, x + 2, y + 2) for x, y in _along(axis.transData.transform(path))]
    for place in sorted(range(len(points)), key=lambda i: -marks[i][1]):
        text = axis.text(0, 0, names[place], **options)
        box = text.get_window_extent(renderer)
        x, y = marks[place]
        spots = [
            (x + dx + (0 if dx > 0 else -box.width), y + dy - box.height / 2)
            for reach, dx in itertools.product(range(9), (step, -step))
            for dy in ((reach * step, -reach * step) if reach else (0.0,))
        ]
        best = min(enumerate(spots), key=lambda spot: (_covered(spot[1], box, taken, frame), spot[0]))[1]
        taken.append((best[0], best[1], best[0] + box.width, best[1] + box.height))
        text.set_position(axis.transData.inverted().transform((best[0], best[1] + box.height / 2)))
        text.set_verticalalignment("center")
        if abs(best[1] + box.height / 2 - y) > 1.5 * step:
            end = (best[0] if best[0] > x else best[0] + box.width, best[1] + box.height / 2)
            line = axis.transData.inverted().transform([(x, y), end])
            axis.plot(line[:, 0], line[:, 1], color=QUIET, linewidth=0.6, zorder=1)


def _along(corners: Any) -> list[tuple[float, float]]:
    """Return points on a path of straight lines, a few pixels apart."""
    import numpy as np

    found: list[tuple[float, float]] = []
    for (x, y), (a, b) in itertools.pairwise(corners.tolist()):
        n = 2 + int(max(abs(a - x), abs(b - y)) / 4)
        found += zip(np.linspace(x, a, n), np.linspace(y, b, n), strict=True)
    return found


def _covered(spot: tuple[float, float], box: Any, taken: Sequence[tuple[float, ...]], frame: Any) -> float:
    """Return how much of what is taken a name would cover, and of itself lie outside of the frame."""
    left, low = spot
    right, high = left + box.width, low + box.height
    area = sum(
        max(0.0, min(right, x1) - max(left, x0)) * max(0.0, min(high, y1) - max(low, y0))
        for x0, y0, x1, y1 in taken
    )
    beyond = max(0.0, frame.x0 - left) + max(0.0, right - frame.x1)
    above = max(0.0, frame.y0 - low) + max(0.0, high - frame.y1)
    return round(area + beyond * box.height + above * box.width, 6)
