"""How many published figures have which verdict: a panel a paper, a bar a verdict, its number beside it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from textbench.evaluation.claims.verdicts import KINDS, Kind
from textbench.flows.plots import style

Counts = Mapping[str, Mapping[Kind, int]]  # by paper and verdict


@contextmanager
def drawn(counts: Counts, width: float) -> Iterator[Any]:
    """Give a figure of so many inches with the counts in it."""
    most = max((count for of_paper in counts.values() for count in of_paper.values()), default=1)
    options = {"ncols": len(counts), "sharey": True, "squeeze": False}
    with style.canvas(0.24 * len(KINDS) + 0.4, width, **options) as (figure, axes):
        for axis, (paper, of_paper) in zip(axes[0], counts.items(), strict=True):
            found = [of_paper.get(kind, 0) for kind in KINDS]
            axis.barh(range(len(KINDS)), found, color=style.OTHER, height=0.65)
            for place, count in enumerate(found):
                axis.text(count + 0.03 * most, place, str(count), va="center", fontsize=9)
            style.name_lines(axis, KINDS)
            style.strip(axis)
            axis.set(xlim=(0, 1.3 * most), xticks=[])
            axis.set_title(paper, fontsize=9)
        yield figure


def draw(counts: Counts, path: Path) -> None:
    """Draw the counts to an SVG, PNG or PDF file."""
    with drawn(counts, 1.6 * style.WIDTH) as figure:
        style.save(figure, path)
