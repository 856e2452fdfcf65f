"""The figures of the report, each an SVG element for the page; the style is `style`'s."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.flows.plots import style
from textbench.flows.report.boards import Board, Line
from textbench.flows.report.papers import KINDS
from textbench.flows.results.metric_names import heading, scale, unit
from textbench.flows.results.summary import of_best
from textbench.flows.tables.table import LOCAL, RECORDED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from textbench.flows.plan.learning_curves import Curve
    from textbench.flows.referee.ledger import Entry
    from textbench.flows.report.papers import Held
    from textbench.flows.results.comparison import Ranking
    from textbench.flows.results.summary import Summary

MANY = 16  # methods of a board that are drawn; its table has all
FAR = 20.0  # points behind the best, from which on a method is drawn at the edge
GAP = 0.045  # least distance of two names at the ends of lines, as a share of the axis
LONGEST = 32  # characters of a name beside a line; the table has the rest


@dataclass(frozen=True)
class Figure:
    """A picture of the page: its id, what is written under it, and the SVG element."""

    name: str
    caption: str
    svg: str


def _widen(axis: "Axes") -> None:
    """Show one unit at least, so that a hundredth of a point does not look large, with ticks that say what they are."""
    low, high = axis.get_xlim()
    if high - low < 1:
        axis.set_xlim((low + high - 1) / 2, (low + high + 1) / 2)
    axis.ticklabel_format(axis="x", useOffset=False)


def leaderboard(board: Board) -> Figure:
    """Draw a board: a method a line with its interval, best first; filled what is best or tied with it."""
    shown = _drawn(board)
    factor = scale(board.metric)
    values = [factor * line.summary.mean[board.metric] for line in shown]
    edge = values[0] - FAR if factor == 100 else float("-inf")
    with style.canvas(0.27 * len(shown) + 0.75) as (figure, axis):
        for place, (line, value) in enumerate(zip(shown, values, strict=True)):
            half, kind = factor * line.summary.half_width[board.metric], line.mark.partition(" ")[0]
            colour = style.BEST if line.mark == "best" else style.OTHER
            mark = "s" if line.source == RECORDED else "D" if line.mark == "best" else "o"
            filled = colour if kind in ("best", "tied") else "#ffffff"
            if value < edge:
                axis.plot([edge], [place], marker="<", color=colour, markerfacecolor=filled, clip_on=False)
            else:
                bar = half if half == half else None
                looks = {"fmt": mark, "color": colour, "markerfacecolor": filled, "capsize": 2.5}
                drawn = axis.errorbar(value, place, xerr=bar, clip_on=False, **looks)
                style.dash(drawn, line.summary.over.get(board.metric))
            word = f" {line.mark}" if kind in ("best", "tied") else ""
            axis.text(1.02, place, f"{value:.2f}{word}", transform=axis.get_yaxis_transform(), va="center")
        axis.set_yticks(range(len(shown)), [_short(line.summary.label) for line in shown])
        axis.set_ylim(len(shown) - 0.5, -0.5)
        _widen(axis)
        axis.set_xlabel(f"{board.heading}, {unit(board.metric)}")
        axis.grid(axis="y", visible=False)
        axis.spines["left"].set_visible(False)
        axis.tick_params(axis="y", length=0)
        title = board.title
        words = "; ".join(f"{line.summary.label} {v:.2f}" for line, v in zip(shown, values, strict=True))
        svg = style.inline(
            figure,
            f"fig-leaderboard-{board.name}",
            title,
            f"{board.heading} in {unit(board.metric)}: {words}.",
        )
    more = f" {MANY} of {len(board.lines)} methods; the table has all." if len(board.lines) > MANY else ""
    more += " Squares: recorded in the repository." if board.recorded else ""
    left = f" A triangle at the edge is more than {FAR:.0f} points behind." if min(values) < edge else ""
    return Figure(
        f"fig-leaderboard-{board.name}",
        f"{title}. Bars are 95 % intervals, the wider of solid: over seeds, "
        f"and dashed: over test documents; filled: best{of_best(board.summaries, board.metric)}, or statistically "
        f"tied with it.{left}{more}",
        svg,
    )


def _drawn(board: Board) -> list[Line]:
    """Return the lines of a board that are drawn: what was run here first, and the best."""
    measured = [line for line in board.lines if board.metric in line.summary.mean]
    chosen = sorted(measured, key=lambda line: line.source != LOCAL)[:MANY]
    if measured[0] not in chosen:
        chosen[-1] = measured[0]
    return [line for line in measured if line in chosen]


def _short(label: str) -> str:
    """Return a label without its middle if it is too long: the ends tell settings apart."""
    return label if len(label) <= LONGEST else f"{label[: LONGEST // 2 - 1]}…{label[-LONGEST // 2 :]}"


def cost(board: Board, kind: str) -> Figure | None:
    """Draw a board's figures against `kind`, "seconds" or "peak_mb"; what nothing beats on both is joined by a line."""
    points = [(getattr(s, kind), scale(board.metric) * s.mean[board.metric], s) for s in board.summaries]
    timed = [point for point in points if point[0]]
    if len(timed) < 2:
        return None
    chosen = front([(x, y) for x, y, _ in timed])
    highest = max(y for _, y, _ in timed)
    drawn = [point for point in timed if point[1] >= highest - FAR]
    cost_heading = {"seconds": "seconds a seed, all stages", "peak_mb": "peak memory, MB"}[kind]
    with style.canvas(3.3) as (figure, axis):
        axis.set_xscale("log")
        line = sorted((x, y) for x, y, _ in drawn if (x, y) in chosen)
        path = [line[0]]
        for (_, y), (a, b) in pairwise(line):
            path += [(a, y), (a, b)]
        axis.plot(*zip(*path, strict=True), color=style.BEST, linewidth=1.2, zorder=1)
        for x, y, _ in drawn:
            on_front = (x, y) in chosen
            colour = style.BEST if on_front else style.OTHER
            face = colour if on_front else "#ffffff"
            axis.plot([x], [y], "D" if on_front else "o", color=colour, markerfacecolor=face, zorder=2)
        axis.margins(x=0.18, y=0.12)
        axis.set_xlabel(cost_heading)
        axis.set_ylabel(f"{board.heading}, {unit(board.metric)}")
        _plain_ticks(axis)
        style.place_labels(
            axis, [(x, y) for x, y, _ in drawn], [s.label for *_, s in drawn], path, fontsize=9
        )
        name = f"fig-{kind.replace('_', '-')}-{board.name}"
        words = "; ".join(f"{s.label} {y:.2f} at {x:.3g}" for x, y, s in sorted(timed, key=lambda p: p[0]))
        title = f"{board.title}: {board.heading} against {cost_heading}"
        svg = style.inline(figure, name, title, f"{words}. On the Pareto front: {_names(timed, chosen)}.")
    left = [s.label for _, y, s in timed if y < highest - FAR]
    apart = f" Not drawn, more than {FAR:.0f} points behind: {', '.join(left)}." if left else ""
    return Figure(
        name, f"{title}. Filled and joined: the Pareto front, nothing is both better and cheaper.{apart}", svg
    )


def _names(points: Sequence[tuple[Any, Any, "Summary"]], chosen: set[tuple[float, float]]) -> str:
    return ", ".join(s.label for x, y, s in points if (x, y) in chosen)


def front(points: Sequence[tuple[float, float]]) -> set[tuple[float, float]]:
    """Return the points (cost, gain) that no other is as good as on both and better on one."""
    return {(x, y) for x, y in points if not any(a <= x and b >= y and (a < x or b > y) for a, b in points)}


def _plain_ticks(axis: Any) -> None:
    """Write the costs out as numbers, few enough to be read."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_xlim()
    steps = (1.0, 2.0, 5.0) if high < 30 * low else (1.0,)
    axis.xaxis.set_major_locator(LogLocator(subs=steps))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())


def curves(found: "Sequence[Curve]", name: str, title: str) -> Figure:
    """Draw the label-budget curves of a data set: a line a method, its 95 % band, its name at its end."""
    with style.canvas(3.4) as (figure, axis):
        draw_curves(axis, found)
        metric = found[0].metric
        words = "; ".join(
            f"{c.method} {', '.join(f'{scale(metric) * p.mean:.1f} at {p.budget}' for p in c.points)}"
            for c in found
        )
        svg = style.inline(figure, name, title, f"{heading(metric)} in {unit(metric)}: {words}.")
    draws = found[0].n_draws
    band = f"Bands are 95 % intervals over {draws} draws." if draws > 1 else "One draw: no interval."
    return Figure(name, f"{title}. {band}", svg)


def draw_curves(axis: Any, found: "Sequence[Curve]") -> None:
    """Draw curves of one metric into axes: lines that differ in colour and mark, bands, and names at their ends."""
    metric = found[0].metric
    factor = scale(metric)
    for place, curve in enumerate(found):
        budgets = [point.budget for point in curve.points]
        colour = style.COLOURS[place % len(style.COLOURS)]
        mark = style.MARKS[place % len(style.MARKS)]
        mean, low, high = (
            [factor * getattr(point, name) for point in curve.points] for name in ("mean", "low", "high")
        )
        axis.plot(budgets, mean, color=colour, marker=mark, ms=4, clip_on=False)
        axis.fill_between(budgets, low, high, color=colour, alpha=0.15, linewidth=0)
    low, high = axis.get_ylim()
    most = 101.0 if factor == 100 else high
    axis.set_ylim(max(low, 0.0), min(high, most))  # two draws have an interval wider than all there is
    _name_lines(axis, found)
    axis.set_xlabel("labelled training documents")
    axis.set_ylabel(f"{heading(metric)}, {unit(metric)}")


def _name_lines(axis: Any, found: "Sequence[Curve]") -> None:
    """Write each method's name beside the end of its line, moved apart where ends are close."""
    low, high = axis.get_ylim()
    factor, height = scale(found[0].metric), -float("inf")
    for place, curve in sorted(enumerate(found), key=lambda item: item[1].points[-1].mean):
        end = curve.points[-1]
        height = max(factor * end.mean, height + GAP * (high - low))
        axis.annotate(
            _short(curve.method),
            (end.budget, factor * end.mean),
            xytext=(1.01, height),
            textcoords=axis.get_yaxis_transform(),
            color=style.COLOURS[place % len(style.COLOURS)],
            va="center",
            annotation_clip=False,
        )


def ranks(found: "Ranking", name: str, title: str) -> Figure:
    """Draw the critical-difference diagram: methods on a line of average ranks, bars join what is not told apart."""
    import numpy as np
    import pandas as pd
    from scikit_posthocs import critical_difference_diagram

    average = np.array(found.average_ranks)
    # The drawing joins what has p above 0.05: 1 where ranks are closer than the critical difference, else 0.
    alike = (np.abs(average[:, None] - average) < found.critical_difference).astype(float)
    with style.canvas(0.9 + 0.19 * len(average)) as (figure, axis):
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
        order = sorted(zip(found.average_ranks, found.methods, strict=True))
        words = ", ".join(f"{method} {rank:.2f}" for rank, method in order)
        svg = style.inline(figure, name, title, f"Average ranks, 1 is best: {words}.")
    return Figure(
        name,
        f"{title}: average ranks, 1 is best. Bars join what is less than "
        f"{found.critical_difference:.2f} apart: not told "
        f"apart (Nemenyi, {100 * found.level:.0f} %).",
        svg,
    )


def verdicts(entries: "Sequence[Entry]") -> Figure:
    """Draw how many claims of each paper have each verdict: a panel a paper, a bar a verdict, its number beside it."""
    from collections import Counter

    papers = list(dict.fromkeys(entry.claim.paper for entry in entries))
    found = Counter((entry.claim.paper, entry.verdict.kind) for entry in entries)
    options = {"ncols": len(papers), "sharey": True, "squeeze": False}
    with style.canvas(0.24 * len(KINDS) + 0.4, 1.3 * style.WIDTH, **options) as (figure, axes):
        draw_verdicts(axes[0], papers, found)
        words = "; ".join(
            f"{paper}: {', '.join(f'{found[paper, k]} {k}' for k in KINDS)}" for paper in papers
        )
        title = "Verdicts on the published figures, by paper"
        svg = style.inline(figure, "fig-verdicts", title, f"{words}.")
    return Figure(
        "fig-verdicts",
        f"{title}. The rule is evaluation/claims/verdicts.py; the table says what each means.",
        svg,
    )


def draw_verdicts(axes: Any, papers: Sequence[str], found: Mapping[Any, int]) -> None:
    """Draw counts (paper, verdict) into a row of axes, one a paper."""
    most = max(found.values(), default=1)
    for axis, paper in zip(axes, papers, strict=True):
        counts = [found[paper, kind] for kind in KINDS]
        axis.barh(range(len(KINDS)), counts, color=style.OTHER, height=0.65)
        for place, count in enumerate(counts):
            axis.text(count + 0.03 * most, place, str(count), va="center", fontsize=9)
        axis.set_yticks(range(len(KINDS)), KINDS)
        axis.set_ylim(len(KINDS) - 0.4, -0.6)
        axis.set(xlim=(0, 1.3 * most), xticks=[])
        axis.set_title(paper, fontsize=9)
        axis.grid(visible=False)
        axis.spines[["left", "bottom"]].set_visible(False)
        axis.tick_params(axis="y", length=0)


def draw_picture(entries: "Sequence[Entry]", path: Path) -> None:
    """Draw the verdicts to an SVG, PNG or PDF file."""
    from collections import Counter

    papers = list(dict.fromkeys(entry.claim.paper for entry in entries))
    found = Counter((entry.claim.paper, entry.verdict.kind) for entry in entries)
    options = {"ncols": len(papers), "sharey": True, "squeeze": False}
    with style.canvas(0.24 * len(KINDS) + 0.4, 1.6 * style.WIDTH, **options) as (figure, axes):
        draw_verdicts(axes[0], papers, found)
        style.save(figure, path)


def held(found: "Sequence[Held]", name: str, title: str) -> Figure:
    """Draw published figures beside measured ones, in percent, a line a figure, with the verdict at the right."""
    with style.canvas(0.27 * max(3, len(found)) + 0.75) as (figure, axis):
        draw_held(axis, found)
        words = "; ".join(
            f"{h.label}: published {h.published:g}, measured {h.value:.2f}, {h.verdict}" for h in found
        )
        svg = style.inline(figure, name, title, f"{words}.")
    return Figure(
        name,
        f"{title}. BaseCell: published; dot: measured, with its 95 % interval; at the right the verdict by rule.",
        svg,
    )


def draw_held(axis: Any, found: "Sequence[Held]") -> None:
    """Draw published and measured figures into axes."""
    for place, one in enumerate(found):
        axis.plot([one.published, one.value], [place, place], color=style.QUIET, linewidth=0.8, zorder=1)
        reach = (
            None if one.low is None or one.high is None else [[one.value - one.low], [one.high - one.value]]
        )
        looks = {"color": style.OTHER, "capsize": 2.5, "zorder": 3, "clip_on": False}
        axis.errorbar(one.value, place, xerr=reach, fmt="o", **looks)
        square = {"color": style.BEST, "markerfacecolor": "#ffffff", "zorder": 2, "clip_on": False}
        axis.plot([one.published], [place], "s", **square)
        axis.text(1.02, place, one.verdict, transform=axis.get_yaxis_transform(), va="center", fontsize=9)
    axis.set_yticks(range(len(found)), [one.label for one in found])
    axis.set_ylim(len(found) - 0.5, -0.5)
    axis.set_xlabel("percent")
    axis.grid(axis="y", visible=False)
    axis.spines["left"].set_visible(False)
    axis.tick_params(axis="y", length=0)
