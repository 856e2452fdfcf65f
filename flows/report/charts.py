"""The figures of the report, each an SVG element for the page, as `flows.plots` draws them."""

from collections.abc import Sequence
from dataclasses import dataclass

from textbench.evaluation.claims.verdicts import KINDS
from textbench.flows.plots import style
from textbench.flows.plots.costs import draw_costs, front
from textbench.flows.plots.curves import draw_curves, draw_multiples, height_of_legend
from textbench.flows.plots.leaderboard import MethodMark, draw_methods
from textbench.flows.plots.published import Held, draw_held
from textbench.flows.plots.ranks import draw_ranks
from textbench.flows.plots.verdicts import Counts, drawn
from textbench.flows.report.boards import Board, BoardLine
from textbench.flows.results.comparison import Ranking
from textbench.flows.results.learning_curves import Curve, draws_of
from textbench.flows.results.method_names import explained
from textbench.flows.results.metric_names import heading, scale, unit
from textbench.flows.results.summary import of_best
from textbench.flows.tables.table import LOCAL, RECORDED
from textbench.tasks.words import spanned

MANY = 16  # methods of a board that are drawn; its table has all
FAR = 20.0  # points behind the best, from which on a method is drawn at the edge


@dataclass(frozen=True)
class Figure:
    """A picture of the page: its id, what is written under it, and the SVG element."""

    name: str
    caption: str
    svg: str


def leaderboard(board: Board) -> Figure:
    """Draw a board: a method a line with its interval, best first; filled what is best or tied with it."""
    lines = _drawn(board)
    shown = [_mark(line, board.metric) for line in lines]
    edge = shown[0].value - FAR if scale(board.metric) == 100 else float("-inf")
    title, name = board.title, f"fig-leaderboard-{board.name}"
    with style.canvas(0.27 * len(shown) + 0.75) as (figure, axis):
        draw_methods(axis, shown, edge)
        axis.set_xlabel(f"{board.heading}, {unit(board.metric)}")
        words = "; ".join(f"{line.summary.label} {m.value:.2f}" for line, m in zip(lines, shown, strict=True))
        svg = style.inline(figure, name, title, f"{board.heading} in {unit(board.metric)}: {words}.")
    more = f" {MANY} of {len(board.lines)} methods; the table has all." if len(board.lines) > MANY else ""
    more += " Squares: recorded in the repository." if board.recorded else ""
    is_far = min(mark.value for mark in shown) < edge
    left = f" A triangle at the edge is more than {FAR:.0f} points behind." if is_far else ""
    return Figure(
        name,
        f"{title}. Bars are 95 % intervals, the wider of solid: over seeds, "
        f"and dashed: over test documents; filled: best{of_best(board.summaries, board.metric)}, or statistically "
        f"tied with it.{left}{more}{explained(line.summary.label for line in lines)}",
        svg,
    )


def _mark(line: BoardLine, metric: str) -> MethodMark:
    value, kind = scale(metric) * line.summary.mean[metric], line.mark.partition(" ")[0]
    is_best, is_filled = line.mark == "best", kind in ("best", "tied")
    return MethodMark(
        label=style.shortened(line.summary.label),
        value=value,
        half_width=scale(metric) * line.summary.half_width[metric],
        over=line.summary.over.get(metric),
        marker="s" if line.source == RECORDED else "D" if is_best else "o",
        is_best=is_best,
        is_filled=is_filled,
        beside=f"{value:.2f}{f' {line.mark}' if is_filled else ''}",
    )


def _drawn(board: Board) -> list[BoardLine]:
    """Return the lines of a board that are drawn: what was run here first, and the best."""
    measured = [line for line in board.lines if board.metric in line.summary.mean]
    chosen = sorted(measured, key=lambda line: line.source != LOCAL)[:MANY]
    if measured[0] not in chosen:
        chosen[-1] = measured[0]
    return [line for line in measured if line in chosen]


def cost(board: Board, kind: str) -> Figure | None:
    """Draw a board's figures against `kind`, "seconds" or "peak_mb"; what nothing beats on both is joined by a line."""
    points = [(getattr(s, kind), scale(board.metric) * s.mean[board.metric], s) for s in board.summaries]
    timed = [point for point in points if point[0]]
    if len(timed) < 2:
        return None
    best = front([(x, y) for x, y, _ in timed])
    highest = max(y for _, y, _ in timed)
    near = [point for point in timed if point[1] >= highest - FAR]
    of_cost = {"seconds": "seconds per seed, all stages", "peak_mb": "peak memory, MB"}[kind]
    name, title = (
        f"fig-{kind.replace('_', '-')}-{board.name}",
        f"{board.title}: {board.heading} against {of_cost}",
    )
    with style.canvas(3.3) as (figure, axis):
        axis.set_xlabel(of_cost)
        axis.set_ylabel(f"{board.heading}, {unit(board.metric)}")
        draw_costs(axis, [(x, y) for x, y, _ in near], [style.shortened(s.label) for *_, s in near], best)
        words = "; ".join(f"{s.label} {y:.2f} at {x:.3g}" for x, y, s in sorted(timed, key=lambda p: p[0]))
        on_front = ", ".join(s.label for x, y, s in timed if (x, y) in best)
        svg = style.inline(figure, name, title, f"{words}. On the Pareto front: {on_front}.")
    left = [s.label for _, y, s in timed if y < highest - FAR]
    apart = f" Not drawn, more than {FAR:.0f} points behind: {', '.join(left)}." if left else ""
    apart += explained(s.label for *_, s in timed)
    return Figure(
        name, f"{title}. Filled and joined: the Pareto front, nothing is both better and cheaper.{apart}", svg
    )


def curves(found: Sequence[Curve], name: str, title: str) -> Figure:
    """Draw the label-budget curves of a data set: a line a method, its 95 % band, its name at its end or below."""
    with style.canvas(3.4 + height_of_legend(found)) as (figure, axis):
        draw_curves(axis, found)
        metric = found[0].metric
        words = "; ".join(
            f"{c.label} {', '.join(f'{scale(metric) * p.mean:.1f} at {p.budget}' for p in c.points)}"
            for c in found
        )
        svg = style.inline(figure, name, title, f"{heading(metric)} in {unit(metric)}: {words}.")
    more = max(curve.n_draws for curve in found) > 1
    band = f"Bands are 95 % intervals over {draws_of(found)}." if more else "One draw: no interval."
    return Figure(name, f"{title}. {band}", svg)


def multiples(found: Sequence[Sequence[Curve]], name: str, title: str) -> Figure:
    """Draw the label-budget curves of several data sets side by side, each method alike in all of them."""
    n_rows, names = -(-len(found) // 2), dict.fromkeys(curve.label for curves in found for curve in curves)
    height = 1.9 * n_rows + 0.16 * -(-len(names) // 2)
    with style.canvas(height, nrows=n_rows, ncols=2, squeeze=False) as (figure, axes):
        draw_multiples(figure, list(axes.flat), found)
        words = "; ".join(
            f"{c.dataset}, {c.label}: {', '.join(f'{scale(c.metric) * p.mean:.1f} at {p.budget}' for p in c.points)}"
            for curves in found
            for c in curves
        )
        svg = style.inline(figure, name, title, f"By labelled training documents: {words}.")
    over = spanned(curve.n_draws for curves in found for curve in curves)
    said = explained(names)
    return Figure(
        name,
        f"{title}, by labelled training documents. Bands are 95 % intervals over {over} draws.{said}",
        svg,
    )


def ranks(found: Ranking, name: str, title: str) -> Figure:
    """Draw the critical-difference diagram."""
    with style.canvas(0.9 + 0.19 * len(found.methods)) as (figure, axis):
        draw_ranks(axis, found)
        order = sorted(zip(found.average_ranks, found.methods, strict=True))
        words = ", ".join(f"{method} {rank:.2f}" for rank, method in order)
        svg = style.inline(figure, name, title, f"Average ranks, 1 is best: {words}.")
    return Figure(
        name,
        f"{title}: average ranks, 1 is best. Bars join what is less than "
        f"{found.critical_difference:.2f} apart: not told apart (Nemenyi, {100 * found.level:.0f} %)."
        f"{explained(found.methods)}",
        svg,
    )


def verdicts(counts: Counts, headlines: Sequence[str] = ()) -> Figure:
    """Draw how many claims of each paper have each verdict, and how many rates of single classes; headlines below."""
    name, title = (
        "fig-verdicts",
        "Verdicts on the published figures, by paper, and on the rates of single classes",
    )
    with drawn(counts, 1.3 * style.WIDTH, headlines) as figure:
        words = "; ".join(
            f"{paper}: {', '.join(f'{found.get(kind, 0)} {kind}' for kind in KINDS)}"
            for paper, found in counts.items()
        )
        svg = style.inline(figure, name, title, f"{words}.")
    rule = "The rule is docs/verdicts.md; the table says what each means."
    return Figure(name, f"{title}. {rule}", svg)


def held(found: Sequence[Held], name: str, title: str) -> Figure:
    """Draw published figures beside measured ones, in percent, a line a figure, with the verdict at the right."""
    with style.canvas(0.27 * max(3, len(found)) + 0.75) as (figure, axis):
        draw_held(axis, found)
        words = "; ".join(
            f"{h.label}: published {h.published:g}, measured {h.value:.2f}, {h.verdict}" for h in found
        )
        svg = style.inline(figure, name, title, f"{words}.")
    return Figure(
        name,
        f"{title}. Square: published; dot: measured, with where a repetition may lie; "
        "at the right the verdict by rule.",
        svg,
    )
