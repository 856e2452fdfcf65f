"""Chapter three: what it costs, in seconds and in memory, and what on each board nothing beats on both."""

from textbench.flows.plots.costs import front
from textbench.flows.report.boards import Board, figure
from textbench.flows.results.method_names import explained, in_groups
from textbench.flows.results.metric_names import scale
from textbench.flows.results.summary import Summary, in_common, mean_over, of_best
from textbench.flows.tables.table import LOCAL, Datum, Table, number


def table(board: Board) -> Table | None:
    """Return a board's costs, cheapest first, with marks for the two Pareto fronts; None where nothing was timed."""
    timed = [s for s in board.summaries if s.seconds is not None and s.peak_mb is not None]
    if len(timed) < 2:
        return None
    factor = scale(board.metric)
    fronts = {
        kind: front([(getattr(s, kind), s.mean[board.metric]) for s in timed])
        for kind in ("seconds", "peak_mb")
    }
    compared, seeds = in_common(board.summaries, board.metric)

    def behind(summary: Summary) -> float:
        """Return how far a method is from the best on the seeds that are compared."""
        own, best = (mean_over(one, board.metric, seeds) for one in (summary, board.best))
        return own - best

    rows = []
    for summary in sorted(timed, key=lambda s: s.seconds or 0.0):
        value = summary.mean[board.metric]
        marks = [
            "on the front" if (getattr(summary, kind), value) in chosen else ""
            for kind, chosen in fronts.items()
        ]
        rows.append([
            Datum(summary.label),
            Datum(figure(board, summary), value),
            number(summary.seconds, 1, mark=marks[0]),
            number(behind(summary) if summary in compared else None, scale=factor),
            number(summary.peak_mb, 0, mark=marks[1]),
        ])  # fmt: skip
    headings = [
        ("method", "method"), (board.metric, f"{board.heading}, %"), ("seconds", "seconds per seed"),
        ("behind", "points from the best"), ("peak_mb", "peak MB"),
    ]  # fmt: skip
    note = (
        "Seconds are of all stages together, as they were when each was computed; for seconds to "
        "publish run with --timed. "
        "On the front: nothing is both better and cheaper."
    )
    if shared := of_best(board.summaries, board.metric):
        note += f" Best{shared}. Points from it are on these seeds; the fronts are of each method's own."
    note += explained(summary.label for summary in timed)
    title = f"What {board.title} costs"
    return in_groups(Table(f"costs-{board.name}", title, headings, rows, note, LOCAL))
