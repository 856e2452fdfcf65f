"""How many published figures have which verdict: a panel a paper, a bar a verdict, its number beside it.

Below stands what became of each paper's headline figures.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from textbench.evaluation.claims.verdicts import KINDS, Kind
from textbench.flows.plots import style

Counts = Mapping[str, Mapping[Kind, int]]  # by paper, or what else is counted, and verdict
LINE = 0.17  # inches of a line of text


@contextmanager
def drawn(counts: Counts, width: float, headlines: Sequence[str] = ()) -> Iterator[Any]:
    """Give a figure of so many inches with the counts in it, and the headlines as lines below."""
    most = max((count for of_paper in counts.values() for count in of_paper.values()), default=1)
    options = {"ncols": len(counts), "sharey": True, "squeeze": False}
    height = 0.24 * len(KINDS) + 0.5 + LINE * (len(headlines) + 1) * bool(headlines)
    with style.canvas(height, width, **options) as (figure, axes):
        for axis, (paper, of_paper) in zip(axes[0], counts.items(), strict=True):
            found = [of_paper.get(kind, 0) for kind in KINDS]
            axis.barh(range(len(KINDS)), found, color=style.OTHER, height=0.65)
            for place, count in enumerate(found):
                axis.text(count + 0.03 * most, place, str(count), va="center", fontsize=9)
            style.name_lines(axis, KINDS)
            style.strip(axis)
            axis.set(xlim=(0, 1.3 * most), xticks=[])
            axis.set_title(textwrap.fill(paper, 16), fontsize=9)
        if headlines:
            figure.supxlabel("\n".join(headlines), x=0.01, ha="left", fontsize=8)
        yield figure


def draw(counts: Counts, path: Path, headlines: Sequence[str] = ()) -> None:
    """Draw the counts to an SVG, PNG or PDF file."""
    with drawn(counts, 1.7 * style.WIDTH, headlines) as figure:
        style.save(figure, path)
