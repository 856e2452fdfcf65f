"""Label-budget curves as a picture: a line a method, its 95 % band, and its name at its end."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textbench.flows.plots.charts import draw_curves
from textbench.flows.plots.leaderboard import WIDTH
from textbench.flows.plots.style import canvas, save
from textbench.flows.results.metric_names import heading, unit
from textbench.tasks import InputError

if TYPE_CHECKING:
    from textbench.flows.plan.learning_curves import Curve


def draw(curves: "Sequence[Curve]", path: Path) -> None:
    """Draw the curves of one data set, in their metric's unit, to an SVG, PNG or PDF file.

    Raises InputError when there is nothing to draw.
    """
    if not curves:
        raise InputError("no cell of the curves is finished; there is nothing to draw")
    first = curves[0]
    with canvas(4.5, WIDTH) as (figure, axis):
        draw_curves(axis, curves)
        axis.set_ylabel(f"{heading(first.metric)}, {unit(first.metric)} (95 % band, {first.n_draws} draws)")
        axis.set_title(first.dataset)
        save(figure, path)
