"""Chapter one: which representation to use. A board is a data set under a protocol: its methods, best first.

The best is tested against every other method by the paired bootstrap over test documents, Holm-corrected
(`flows.verdict`); what is not told apart from it is marked as tied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from flows.leaderboard import HEADINGS, KNOWN, Summary, caption, columns, failures, scale, summarise
from flows.report.evidence import Evidence
from flows.report.tables import NOTHING, Cell, Table, number, slug
from flows.verdict import Standing, standing

LOCAL = "measured here"


@dataclass(frozen=True)
class Board:
    """The methods of a data set under a protocol, best first, by the metric that ranks.

    `tests` says how the others stand to the best.
    """

    dataset: str
    protocol: str
    metric: str
    summaries: Sequence[Summary]
    tests: Standing

    @property
    def p_values(self) -> Mapping[str, float]:
        """The corrected p of each other method against the best, by label."""
        return self.tests.p_values

    @property
    def name(self) -> str:
        """Its place in the page."""
        return slug(f"{self.dataset}-{self.protocol}")

    @property
    def heading(self) -> str:
        """The metric's name for people."""
        return HEADINGS.get(self.metric, self.metric)

    @property
    def best(self) -> Summary:
        """The method with the best mean."""
        return self.summaries[0]

    def standing(self, summary: Summary) -> str:
        """Return "best", "tied" (not told apart from the best), "behind" (significantly) or "not tested"."""
        if summary.is_best:
            return "best"
        if summary.label not in self.p_values:
            return "not tested"
        return "behind" if summary.label in self.tests.behind else "tied"

    @property
    def tied(self) -> list[Summary]:
        """The other methods that are as good as the best, or not told apart from it."""
        return [summary for summary in self.summaries[1:] if self.standing(summary) in ("best", "tied")]

    @property
    def cheapest(self) -> Summary | None:
        """The cheapest of the best and what is tied with it; None where times are missing or the best is alone."""
        timed = [s for s in [self.best, *self.tied] if s.seconds is not None]
        return min(timed, key=lambda s: s.seconds or 0.0) if len(timed) > 1 else None


def boards(evidence: Evidence) -> list[Board]:
    """Return the boards of all finished runs in which something was measured."""
    found = []
    for (dataset, protocol), table in groupby(summarise(evidence.rows), lambda s: (s.dataset, s.protocol)):
        summaries = list(table)
        metric = columns(summaries, None)[0]
        measured = [summary for summary in summaries if metric in summary.mean]
        if measured:
            rows = [row for row in evidence.rows if (row["dataset"], row["protocol"]) == (dataset, protocol)]
            tests = standing(evidence.home, rows, measured, metric)
            found.append(Board(dataset, protocol, metric, measured, tests))
    return found


def figure(board: Board, summary: Summary, metric: str | None = None) -> str:
    """Return a method's figure with its half-width, as text."""
    metric = metric or board.metric
    value, half = summary.mean[metric], summary.half_width[metric]
    interval = "" if half != half else f" ± {scale(metric) * half:.2f}"
    return f"{scale(metric) * value:.2f}{interval}"


def table(board: Board) -> Table:
    """Return the leaderboard of a board."""
    shown = columns(board.summaries, None)
    headings = [("method", "method"), (board.metric, f"{board.heading}, %"), (f"{board.metric}_95", "±")]
    headings += [(name, f"{HEADINGS.get(name, name)}, %") for name in shown[1:]]
    headings += [
        ("p", "p against the best"),
        ("seconds", "seconds"),
        ("peak_mb", "peak MB"),
        ("seeds", "seeds"),
    ]
    rows = []
    for summary in board.summaries:
        standing = board.standing(summary)
        mark = standing if standing != "behind" else ""
        p = board.p_values.get(summary.label)
        rows.append([
            Cell(summary.label + ("*" if summary.on_border else ""), mark=mark, is_strong=summary.is_best),
            number(summary.mean[board.metric], scale=scale(board.metric)),
            _half_width(summary, board.metric),
            *(number(summary.mean.get(name), scale=scale(name)) for name in shown[1:]),
            NOTHING if p is None else Cell(f"{p:.2g}", p),
            number(summary.seconds, 1),
            number(summary.peak_mb, 0),
            Cell(str(summary.n_seeds), summary.n_seeds),
        ])  # fmt: skip
    note = caption(board.summaries, shown).replace(" > best", " Best")
    note += (
        " Tied: not told apart from the best by the paired bootstrap over test documents (p, Holm-corrected)."
    )
    title = f"{board.dataset}, {board.protocol} protocol"
    data = [f"{board.dataset}: {board.summaries[0].data_note}."] if board.summaries[0].data_note else []
    notes = " ".join([note, *data, *board.tests.untested])
    return Table(f"leaderboard-{board.name}", title, headings, rows, notes, LOCAL)


def _half_width(summary: Summary, metric: str) -> Cell:
    """Return half the interval, with the letter that says over what it is."""
    half = summary.half_width[metric]
    if half != half:
        return NOTHING
    return Cell(f"{scale(metric) * half:,.2f} {summary.over[metric][0]}", half)


def failed(evidence: Evidence) -> Table | None:
    """Return what failed and why; None if nothing did."""
    if not evidence.failed:
        return None
    headings = [(name, name) for name in ("dataset", "method", "protocol", "seed", "reason")]
    rows = [
        [
            *(Cell(str(row.get(name, "-"))) for name in ("dataset", "method", "protocol", "seed")),
            Cell(row["error"]),
        ]
        for row in evidence.failed
    ]
    return Table(
        "failed", "Cells that failed, and have not been finished since", headings, rows, source=LOCAL
    )


def is_better(metric: str, first: float, second: float) -> bool:
    """Tell whether the first figure is better than the second."""
    return first > second if KNOWN[metric].higher_is_better else first < second


__all__ = ["Board", "boards", "failed", "failures", "figure", "is_better", "table"]
