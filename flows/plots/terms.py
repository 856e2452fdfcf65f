"""Columns of terms side by side; a bar is a value's share of its column's best."""

from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

from textbench.flows.plots import style

EMPTY = "(nothing)"  # in place of a column's terms
Terms = Sequence[tuple[str, float]]  # with their values, best first


def draw_terms(axis: Any, heading: str, terms: Terms, n_rows: int, marked: Set[str] = frozenset()) -> None:
    """Draw a column into axes with room for so many rows; marked terms in bold with a dot."""
    values = [max(value, 0.0) for _, value in terms]
    best = max(values, default=0.0) or 1.0
    shares = [value / best for value in values]
    axis.barh(range(len(shares)), shares, color=style.OTHER, alpha=0.25, height=0.85)  # terms are read on it
    for place, term in enumerate([term for term, _ in terms] or [EMPTY]):
        text, weight = (f"• {term}", "bold") if term in marked else (term, "normal")
        axis.text(0.03, place, text, va="center", fontsize=9, fontweight=weight)
    axis.set(xlim=(0, 1), ylim=(n_rows - 0.4, -0.6), xticks=[], yticks=[])
    axis.set_title(heading, fontweight="bold")
    style.strip(axis)


def draw(columns: Sequence[tuple[str, Terms]], path: Path) -> None:
    """Draw columns, (heading, terms), to an SVG, PNG or PDF file. Raises InputError where it cannot be written."""
    n_rows = max([1, *(len(terms) for _, terms in columns)])
    longest = [
        max(len(text) for text in (heading, *(term for term, _ in terms))) for heading, terms in columns
    ]
    widths = [max(1.2, 0.1 * n_characters) for n_characters in longest]
    layout = {"ncols": len(widths), "squeeze": False, "width_ratios": widths}
    with style.canvas(0.28 * n_rows + 0.7, sum(widths), **layout) as (figure, axes):
        for axis, (heading, terms) in zip(axes[0], columns, strict=True):
            draw_terms(axis, heading, terms, n_rows)
        style.save(figure, path)
