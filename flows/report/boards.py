"""Chapter one: which representation to use. A board is a data set under a protocol: its methods, best first.

The best is tested against every other method by the paired bootstrap over test documents, Holm-corrected
(`flows.results.winner`); what is not told apart from it is marked as tied. What the repository records of the same
data set and protocol stands in the same table, told apart, so that nothing is called best while a better one is
known.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from textbench.evaluation.statistics.significance import holm
from textbench.flows.report.evidence import Evidence, published_name
from textbench.flows.report.recorded import beside, paper_of
from textbench.flows.results.leaderboard import CUT, caption, cut, failures, rank_of
from textbench.flows.results.method_names import explained, in_groups
from textbench.flows.results.metric_names import KNOWN, heading, scale
from textbench.flows.results.placed import note as note_of_ranks
from textbench.flows.results.placed import paired, with_ranks
from textbench.flows.results.runs import HONEST, command_to_run
from textbench.flows.results.summary import Summary, columns, summarise, tables
from textbench.flows.results.winner import LEVEL, Standing, standing
from textbench.flows.tables.table import LOCAL, NOTHING, RECORDED, Datum, Table, number, slug

LEAST = 1e-9  # of a fraction: less is floating point's
# Marks of what is recorded: by intervals alone, and by a paired test.
MEETS, TIED = "interval meets the best's", "tied"


@dataclass(frozen=True)
class Board:
    """The methods of a data set under a protocol, best first, by the metric that ranks.

    `tests` says how the others stand to the best. `recorded` are the methods that the repository records; where nothing
    was run here `summaries` is empty. `published` is the data set's name in the catalogue, "" for the user's own;
    `another` is the command that runs one more method on the same documents.
    `pairs` are p of paired tests of what was run here, by label, not corrected (`flows.results.placed`).
    `paper` is set where a board has one paper's protocol alone: that of another is another protocol.
    """

    dataset: str
    protocol: str
    metric: str
    summaries: Sequence[Summary]
    tests: Standing
    recorded: Sequence[Summary] = ()
    published: str = ""
    another: str = ""
    paper: str = ""
    pairs: Mapping[tuple[str, str], float] = field(default_factory=dict, repr=False)

    @property
    def title(self) -> str:
        """The data set and the protocol, of which paper too where those of several are told apart."""
        return f"{self.dataset}, {self.protocol} protocol{self.paper and f' of {self.paper}'}"

    @property
    def p_values(self) -> Mapping[str, float]:
        """The corrected p of each other method against the best, by label."""
        return self.tests.p_values

    @property
    def name(self) -> str:
        """Its place in the page."""
        return slug("-".join(filter(None, [self.dataset, self.protocol, self.paper])))

    @property
    def source(self) -> str:
        """Whose figures it has; empty where it has both kinds."""
        if self.summaries and self.recorded:
            return ""
        return LOCAL if self.summaries else RECORDED

    @property
    def heading(self) -> str:
        """The metric's name for people."""
        return heading(self.metric)

    @property
    def best(self) -> Summary:
        """The method with the best mean of those that were run here."""
        return self.summaries[0]

    @property
    def ahead(self) -> list[Summary]:
        """The recorded methods that are better than all that was run here, best first."""
        ranked = self._ranked(self.recorded)
        if not self.summaries:
            return ranked
        own = self._ranked(self.summaries)[0].mean[self.metric]
        return [s for s in ranked if is_better(self.metric, s.mean[self.metric], own, LEAST)]

    @property
    def lines(self) -> list["BoardLine"]:
        """All that is known, best first; recorded methods without the metric come last."""
        ranked = self._ranked([*self.summaries, *self.recorded]) if self.recorded else self.summaries
        here = {id(summary) for summary in self.summaries}
        lines = [
            BoardLine(s, self._mark_here(s), LOCAL)
            if id(s) in here
            else BoardLine(s, self._mark_recorded(s, ranked[0], id(ranked[0]) in here), RECORDED)
            for s in ranked
        ]
        return [*lines, *(BoardLine(s, "", RECORDED) for s in self.recorded if self.metric not in s.mean)]

    def _ranked(self, summaries: Sequence[Summary]) -> list[Summary]:
        measured = [summary for summary in summaries if self.metric in summary.mean]
        is_descending = KNOWN[self.metric].higher_is_better
        return sorted(measured, key=lambda s: s.mean[self.metric], reverse=is_descending)

    def _mark_here(self, summary: Summary) -> str:
        standing = self.standing(summary)
        if standing in ("best", "tied"):
            return f"{standing} here" if self.ahead else standing
        return "" if standing == "behind" else standing

    def _mark_recorded(self, summary: Summary, best: Summary, is_best_here: bool) -> str:
        distance = abs(summary.mean[self.metric] - best.mean[self.metric])
        if distance <= LEAST:
            return "best"
        tests = best.pairs.get(self.metric, {})
        if summary.cells in tests:
            corrected = dict(zip(tests, holm(list(tests.values())), strict=True))
            return TIED if corrected[summary.cells] >= LEVEL else ""
        reach = summary.half_width[self.metric] + best.half_width[self.metric]  # nan without an interval
        return MEETS if not is_best_here and distance <= reach else ""

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


@dataclass(frozen=True)
class BoardLine:
    """A method in a board's table and figure: `mark` says how it stands, `source` whose figures they are."""

    summary: Summary
    mark: str
    source: str


def boards(evidence: Evidence, recorded: Sequence[Summary] = ()) -> list[Board]:
    """Return the boards of all finished runs in which something was measured, with what is recorded beside them."""
    found = []
    for summaries in tables(summarise(evidence.rows)):
        dataset, protocol = summaries[0].dataset, summaries[0].protocol
        metric = columns(summaries, None)[0]
        measured = [summary for summary in summaries if metric in summary.mean]
        if measured:
            rows = [row for row in evidence.rows if (row["dataset"], row["protocol"]) == (dataset, protocol)]
            tests = standing(evidence.home, rows, measured, metric)
            pairs = paired(evidence.home, rows, measured, metric)
            published = published_name(rows[0])
            known = [s for s in recorded if (s.dataset, s.protocol) == (published, protocol)]
            method = "lsi" if measured[0].method == "tfidf" else "tfidf"
            another = command_to_run([dataset], [method], rows, None if protocol == HONEST else protocol)
            found.append(
                Board(
                    dataset,
                    protocol,
                    metric,
                    measured,
                    tests,
                    beside(measured, known),
                    published,
                    another,
                    pairs=pairs,
                )
            )
    return found


def recorded_boards(recorded: Sequence[Summary], shown: Sequence[Board]) -> list[Board]:
    """Return the boards of what is recorded alone, without those that are shown with local runs."""
    found, nothing = [], Standing(None, [], {}, [])
    places = {(s.dataset, s.protocol, paper_of(s)) for s in recorded}
    n_papers = Counter(place[:2] for place in places)
    here = {(b.published, b.protocol) for b in shown}
    for dataset, protocol, paper in sorted(place for place in places if place[:2] not in here):
        own = [s for s in recorded if (s.dataset, s.protocol, paper_of(s)) == (dataset, protocol, paper)]
        members = beside([], own)
        metric = next(name for name in columns(members, None) if any(name in s.mean for s in members))
        told = paper if n_papers[dataset, protocol] > 1 else ""
        found.append(Board(dataset, protocol, metric, [], nothing, members, dataset, paper=told))
    return found


def figure(board: Board, summary: Summary, metric: str | None = None) -> str:
    """Return a method's figure with its half-width, as text."""
    metric = metric or board.metric
    value, half = summary.mean[metric], summary.half_width[metric]
    interval = "" if half != half else f" ± {scale(metric) * half:.2f}"
    return f"{scale(metric) * value:.2f}{interval}"


def table(board: Board) -> Table:
    """Return the leaderboard of a board, with intervals of ranks and groups of ties, and kinds where these differ."""
    lines = board.lines
    ranked = _ranked(board, lines)
    is_ranked, is_of_kinds = bool(note_of_ranks(ranked)), len({line.summary.kind for line in lines}) > 1
    papers = {paper_of(line.summary) for line in lines}
    shown = columns([line.summary for line in lines], None)
    shown = [board.metric, *(name for name in shown if name != board.metric)]
    whose = [] if board.source else [("source", "whose")]
    headings = [
        ("method", "method"),
        *([("kind", "settings")] if is_of_kinds else []),
        *whose,
        (board.metric, f"{board.heading}, %"),
        (f"{board.metric}_95", "±"),
        *([("ranks", "ranks"), ("ties", "ties")] if is_ranked else []),
    ]
    headings += [(name, f"{heading(name)}, %") for name in shown[1:]]
    is_cut = any(line.summary.unread for line in lines)
    headings += [
        *([("p", f"p against the best{' here' if board.ahead else ''}")] if board.summaries else []),
        ("seconds", "seconds"),
        ("peak_mb", "peak MB"),
        ("seeds", "seeds"),
        *(CUT if is_cut else ()),
        *([("paper", "protocol of")] if len(papers) > 1 else []),
    ]
    rows = []
    for line, place in zip(lines, ranked, strict=True):
        summary = line.summary
        p = board.p_values.get(summary.label) if line.source == LOCAL else None
        rows.append([
            Datum(summary.label + ("*" if summary.on_border else ""), mark=line.mark, is_strong=line.mark == "best"),
            *([Datum(summary.kind)] if is_of_kinds else []),
            *([Datum("here" if line.source == LOCAL else "recorded", line.source)] if whose else []),
            number(summary.mean.get(board.metric), scale=scale(board.metric)),
            _half_width(summary, board.metric),
            *([rank_of(place), Datum(place.ties) if place.ties else NOTHING] if is_ranked else []),
            *(number(summary.mean.get(name), scale=scale(name)) for name in shown[1:]),
            *([NOTHING if p is None else Datum(f"{p:.2g}", p)] if board.summaries else []),
            number(summary.seconds, 1),
            number(summary.peak_mb, 0),
            Datum(str(summary.n_seeds), summary.n_seeds),
            *(cut(summary) if is_cut else []),
            *([Datum(paper_of(summary) or "-")] if len(papers) > 1 else []),
        ])  # fmt: skip
    title = board.title
    note = " ".join([*_explained(board, shown), *board.tests.untested])
    note += f" {note_of_ranks(ranked)}" * is_ranked
    note += explained(line.summary.label for line in lines)
    return in_groups(Table(f"leaderboard-{board.name}", title, headings, rows, note, board.source))


def _ranked(board: Board, lines: Sequence[BoardLine]) -> list[Summary]:
    """Return the summaries of lines with their ranks and ties; of two recorded ones by the test that is recorded."""
    here = [line.source == LOCAL for line in lines]
    named = [
        line.summary if is_here else replace(line.summary, apart=[*line.summary.apart, f"recorded {number}"])
        for number, (line, is_here) in enumerate(zip(lines, here, strict=True))
    ]
    tests = {
        (one.label, other.label): p
        for one in named
        for other in named
        if (p := one.pairs.get(board.metric, {}).get(other.cells)) is not None
    }
    return with_ranks(named, board.metric, {**tests, **board.pairs})


def _half_width(summary: Summary, metric: str) -> Datum:
    """Return half the interval, with the letter that says over what it is."""
    half = summary.half_width.get(metric, math.nan)
    if math.isnan(half):
        return NOTHING
    return Datum(f"{scale(metric) * half:,.2f} {summary.over[metric][0]}", half)


def _explained(board: Board, shown: Sequence[str]) -> list[str]:
    """Say what the figures and marks of a board's table rest on."""
    if board.summaries:
        said = [
            caption(board.summaries, shown, best=""),
            "Tied: not told apart from the best by the paired bootstrap over test documents (p, Holm-corrected for the "
            "best's pairs). Ranks are corrected for all pairs of the table, so that a method behind the best may share "
            "a rank with it.",
        ]
    else:
        said = ["Percent; means over seeds with half of the 95 % interval."]
    if note := next((summary.data_note for summary in board.summaries if summary.data_note), ""):
        said.append(f"{board.dataset}: {note}.")
    if board.recorded:
        said.append(
            "What is recorded was measured before under the same protocol. Ranks rest on paired tests where the record "
            "keeps them, on the seeds that the methods of one recording share; intervals (s over seeds, d over test "
            "documents) are no paired tests."
        )
    if not board.source:
        said.append("A recorded figure that was found again here stands once, as measured here.")
    return said


def failed(evidence: Evidence) -> Table | None:
    """Return what failed and why; None if nothing did."""
    if not evidence.failed:
        return None
    headings = [(name, name) for name in ("dataset", "method", "protocol", "seed", "reason")]
    rows = [
        [
            *(Datum(str(row.get(name, "-"))) for name in ("dataset", "method", "protocol", "seed")),
            Datum(row["error"]),
        ]
        for row in evidence.failed
    ]
    return Table(
        "failed", "Cells that failed, and have not been finished since", headings, rows, source=LOCAL
    )


def is_better(metric: str, first: float, second: float, by: float = 0.0) -> bool:
    """Tell whether the first figure is better than the second, and by more than `by`."""
    return (first - second if KNOWN[metric].higher_is_better else second - first) > by


__all__ = ["Board", "boards", "failed", "failures", "figure", "is_better", "recorded_boards", "table"]
