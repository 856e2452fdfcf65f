"""The critical-difference diagram: methods on a line of average ranks, bars join what is not told apart."""

from pathlib import Path
from typing import Any

from textbench.flows.plots import style
from textbench.flows.results.comparison import Ranking
from textbench.flows.results.method_names import explained


def draw_ranks(axis: Any, found: Ranking) -> None:
    """Draw the diagram into axes."""
    import numpy as np
    import pandas as pd
    from scikit_posthocs import critical_difference_diagram

    average = np.array(found.average_ranks)
    # The drawing joins what has p above 0.05: 1 where ranks are closer than the critical difference, else 0.
    alike = (np.abs(average[:, None] - average) < found.critical_difference).astype(float)
    axis.grid(visible=False)
    critical_difference_diagram(
        dict(zip(found.methods, found.average_ranks, strict=True)),
        pd.DataFrame(alike, found.methods, found.methods),
        ax=axis,
        label_fmt_right="{label} ({rank:.2f})",
        label_fmt_left="{label} ({rank:.2f})",
        color_palette=[style.INK] * len(average),
        crossbar_props={"color": style.BEST, "linewidth": 3},
        text_h_margin=0.15,
    )


def draw(found: Ranking, path: Path) -> None:
    """Draw the diagram to an SVG, PNG or PDF file."""
    with style.canvas(1.2 + 0.25 * len(found.methods), style.WIDE) as (figure, axis):
        draw_ranks(axis, found)
        axis.set_title(
            f"Average ranks over {', '.join(found.datasets)} (1 is best)\nbars join what is less than "
            f"{found.critical_difference:.2f} apart (Nemenyi, {100 * found.level:.0f} %)"
            + explained(found.methods).replace(" ", "\n", 1)
        )
        style.save(figure, path)
