"""The leaderboard: results over seeds, best first, as tables on a terminal or in a paper, as CSV and JSON Lines."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.evaluation.metrics.calibration import CALIBRATED_BY, PROBABILITIES
from textbench.evaluation.metrics.multilabel import is_of_several_labels
from textbench.flows.results.half_widths import in_words, is_told
from textbench.flows.results.method_names import explained, in_groups, is_pretrained
from textbench.flows.results.metric_names import KNOWN, SHORT, heading, places, scale, unit
from textbench.flows.results.placed import note, placed
from textbench.flows.results.predictions import testable
from textbench.flows.results.summary import Summary, columns, higher, in_unit, left_out, on_seeds, tables
from textbench.flows.tables.formats import to_csv, to_latex, to_markdown
from textbench.flows.tables.table import NOTHING, Datum, Table, number, slug
from textbench.flows.tables.terminal import BEST, print_table
from textbench.tasks.words import spanned

if TYPE_CHECKING:
    from rich.console import Console

ON_BORDER = "*"
CUT = (("documents_cut", "documents cut, %"), ("tokens_cut", "tokens cut, %"))
NEVER_DRAWN = 80_000_000  # pairs of documents: of fewer all test documents ask for their like
MARKED, IN_BOLD = f"{BEST} best", "Best in bold"  # how the best is marked on a terminal, and in papers
BY_SIGMOID = (
    f"Probabilities: {CALIBRATED_BY}, learned from out-of-fold scores of training documents; lower is better."
)
Rows = Iterable[Mapping[str, Any]]


def boards(
    rows: Rows, metric: str | None = None, best: str = IN_BOLD, home: Path | None = None
) -> list[Table]:
    """Return one table for each data set and protocol, in percent, with the ids of runs where it is for a terminal.

    Ranks are by paired tests where `home` has the predictions (`flows.results.placed`).
    """
    return [_board(table, columns(table, metric), best) for table in tables(placed(rows, metric, home))]


def _board(table: Sequence[Summary], shown: Sequence[str], best: str) -> Table:
    first, is_terminal = table[0], best == MARKED
    ranking, *others = shown
    headings = [("method", "method"), (ranking, f"{heading(ranking)} ±"), *((n, heading(n)) for n in others)]
    is_ranked = bool(note(table))
    is_of_kinds = len({summary.kind for summary in table}) > 1
    headings[2:2] = [("ranks", "ranks")] * is_ranked
    headings[1:1] = [("kind", "settings")] * is_of_kinds
    headings += [("seconds", "seconds"), ("peak_mb", "peak MB"), ("seeds", "seeds")]
    is_cut = any(summary.unread for summary in table) and not is_terminal  # there it would be too wide
    headings += CUT if is_cut else ()
    headings += [("run", "run")] * is_terminal
    rows = [
        [
            *_row(summary, shown, is_ranked=is_ranked, is_of_kinds=is_of_kinds),
            *(cut(summary) if is_cut else []),
            *([Datum(short_id(summary))] * is_terminal),
        ]
        for summary in table
        if summary.n_seeds
    ]
    said = " ".join(filter(None, [caption(table, shown, best), note(table)])) if rows else ""
    unread = _unread(table) if is_terminal else ""
    made = Table(
        slug(f"leaderboard-{first.dataset}-{first.protocol}"),
        first.title,
        headings,
        rows,
        f"{said}{explained(summary.label for summary in table)}{unread}".strip(),
        warning=f"{first.dataset}: {first.data_note}." if first.data_note else "",
        failures=failures(table),
        may_go=("kind", "peak_mb", "seconds"),
        right=[name for name, _ in headings[1:] if name != "kind"],
    )
    return in_groups(made)


def cut(summary: Summary) -> list[Datum]:
    """Return the shares of the documents that a pretrained model cut, and of the tokens that it did not read."""
    return [number(summary.unread.get(name), 1, scale=100) for name in ("documents", "tokens")]


def _unread(table: Sequence[Summary]) -> str:
    """Say of pretrained models how much of the documents they did not read."""
    words = [
        f"{s.method} {100 * s.unread['documents']:.0f} % and {100 * s.unread['tokens']:.0f} %"
        for s in table
        if s.unread
    ]
    return f" Documents cut, and tokens not read: {'; '.join(words)}." if words else ""


def rank_of(summary: Summary) -> Datum:
    """Return the ranks that a method may have, in words "1-3"."""
    if summary.rank is None:
        return NOTHING
    least, greatest = summary.rank
    return Datum(str(least) if least == greatest else f"{least}-{greatest}", least)


def _row(summary: Summary, shown: Sequence[str], *, is_ranked: bool, is_of_kinds: bool) -> list[Datum]:
    label = summary.label + ON_BORDER * bool(summary.on_border)
    name, _, words = label.partition(" (")
    ranking, *others = shown
    costs = ((summary.seconds, 1), (summary.peak_mb, 0), (summary.n_seeds, 0))
    return [
        Datum(label, is_strong=summary.is_best, parts=[name, *([f"({words}"] if words else [])]),
        *([Datum(summary.kind)] * is_of_kinds),
        Datum(_interval(summary, ranking), summary.mean.get(ranking), is_strong=summary.is_best),
        *([_rank_and_ties(summary)] * is_ranked),
        *(Datum(in_unit(summary, metric), summary.mean.get(metric)) for metric in others),
        *(NOTHING if cost is None else Datum(f"{cost:.{places}f}", cost) for cost, places in costs),
    ]


def _rank_and_ties(summary: Summary) -> Datum:
    rank = rank_of(summary)
    return replace(rank, text=f"{rank.text} {summary.ties}") if summary.ties else rank


def _interval(summary: Summary, metric: str) -> str:
    half = summary.half_width.get(metric, math.nan)
    if not is_told(half):
        return in_unit(summary, metric)
    letter = f" {summary.over[metric][0]}" if metric in summary.half_width_documents else ""
    return f"{in_unit(summary, metric)} ± {scale(metric) * half:.{places(metric)}f}{letter}"


def render_table(rows: Rows, console: "Console", metric: str | None = None, home: Path | None = None) -> None:
    """Print one table for each data set and protocol; values in percent, what failed and why underneath."""
    for table in boards(rows, metric, MARKED, home):
        print_table(console, table)


def short_id(summary: Summary) -> str:
    """Return the beginning of the id of the lowest seed's run, as `textbench show` takes it; "-" without one."""
    return summary.runs[0][:SHORT] if summary.runs else "-"


def caption(table: Sequence[Summary], shown: Sequence[str], best: str = MARKED) -> str:
    """Say what figures, marks and intervals of one table of these metrics mean, and which data of its name it is.

    `best` is how the best is marked; where that is "", the seeds alone are told on which it is the best.
    """
    seeds = sorted({summary.n_seeds for summary in table if summary.n_seeds})
    measured = [summary for summary in table if shown[0] in summary.mean]
    lacking = [summary for summary in measured if shown[0] not in summary.half_width_documents]
    if len(lacking) < len(measured):
        mean = "" if seeds == [1] else f"mean over {spanned(seeds)} seeds, "
        interval = f"{mean}± 95 % interval, {in_words(summary.over.get(shown[0]) for summary in measured)}"
    elif seeds == [1]:
        interval = "one seed: no interval"
    else:
        interval = f"mean and 95 % interval (Student t) over {spanned(seeds)} seeds"
    if lacking:
        interval += _alone(lacking, measured, shown[0])
    others = "".join(f", {heading(name)} in {unit(name)}" for name in shown if unit(name) != "percent")
    parts = [f"Percent{others}; {interval}."]
    if shown[0] in PROBABILITIES:
        parts.append(BY_SIGMOID)
    if (seeds_in_common := on_seeds(table, shown[0])) or best:
        parts.append(f"{best or 'Best'}{seeds_in_common}.")
    if better := higher(table, shown[0]):
        parts.append(f"Better but of other seeds: {better}.")
    border = sorted({name for summary in table for name in summary.on_border})
    if border:
        parts.append(
            f"{ON_BORDER} the best {' or '.join(border)} was the largest or the smallest that was tried."
        )
    if lacking_seeds := left_out({s.label: s.n_otherwise for s in table}):
        parts.append(lacking_seeds)
    if "map" in shown and (queries := _queries(table)):
        parts.append(queries)
    if about := table[0].about:
        parts.append(f"{table[0].dataset}: {about}.")
    return " ".join(parts)


def _queries(table: Sequence[Summary]) -> str:
    """Say how many test documents asked for their like, where not all did."""
    n_train, n_test = max((s.n_documents for s in table if "map" in s.mean), default=(0, 0))
    if n_train * n_test < NEVER_DRAWN:
        return ""
    from textbench.evaluation.metrics.query_by_example import asked

    n_asked = len(asked(n_train, n_test))
    drawn = f"MAP is that of {n_asked:,} of {n_test:,} test documents, drawn once for all methods."
    return drawn if n_asked < n_test else ""


def _alone(lacking: Sequence[Summary], measured: Sequence[Summary], metric: str) -> str:
    """Say which intervals are not over test documents too, and why."""
    is_kept = metric in testable(is_of_several_labels(measured[0].mean))
    reason = "the predictions are not here" if is_kept else f"{heading(metric)} is not kept per test document"
    of = f" of {', '.join(summary.label for summary in lacking)}" if len(lacking) < len(measured) else ""
    return f"; intervals{of} over seeds alone: {reason}"


def failures(table: Sequence[Summary]) -> list[str]:
    """Return a line for each method of the table that failed, with its reasons."""
    return [f"{s.label} failed{_of_seeds(s)}: {'; '.join(s.errors)}" for s in table if s.n_failed]


def _of_seeds(summary: Summary) -> str:
    total = summary.n_seeds + summary.n_failed
    return f" for {summary.n_failed} of {total} seeds" if total > 1 else ""


def _json_lines(rows: Rows, metric: str | None = None, home: Path | None = None) -> str:
    """Return JSON Lines, one object a summary, at full precision; a missing interval is null."""
    lines = []
    for summary in placed(rows, metric, home):
        halves = {
            kind: {name: None if math.isnan(h) else h for name, h in getattr(summary, kind).items()}
            for kind in ("half_width", "half_width_seeds", "half_width_documents")
        }
        lines.append(json.dumps(asdict(summary) | halves | {"kind": summary.kind}, ensure_ascii=False))
    return "\n".join(lines)


def figures(rows: Rows, metric: str | None, home: Path | None = None) -> Table:
    """Return every metric as a fraction at full precision, its half-width, `<metric>_95`, and what that is over."""
    fixed = ["dataset", "protocol", "label", "method", "kind", "trials", "n_seeds"]
    known = [name for name in KNOWN if metric in PROBABILITIES or name not in PROBABILITIES]
    ordered = [*([metric] if metric else []), *(name for name in known if name != metric)]
    names = [*fixed, *(column for name in ordered for column in (name, f"{name}_95", f"{name}_95_over"))]
    names += ["rank_least", "rank_greatest", "ties", "ranked_by"]
    names += ["seconds", "peak_mb", "is_best", "on_border", "n_failed", "errors", "documents_sha256", "runs"]
    names += ["uses_labels", "is_pretrained", *(name for name, _ in CUT)]
    lines = []
    for summary in placed(rows, metric, home):
        values: list[Any] = [getattr(summary, name) for name in fixed]
        for name in ordered:
            half = summary.half_width.get(name, math.nan)
            values += [summary.mean.get(name), None if math.isnan(half) else half, summary.over.get(name)]
        values += [*(summary.rank or (None, None)), summary.ties or None, summary.ranked_by or None]
        values += [summary.seconds, summary.peak_mb, int(summary.is_best), " ".join(summary.on_border)]
        values += [summary.n_failed, "; ".join(summary.errors), summary.documents_sha256]
        values += [" ".join(summary.runs), int(summary.uses_labels), int(is_pretrained(summary.method))]
        values += [summary.unread.get(name) for name in ("documents", "tokens")]
        lines.append([Datum("", value) for value in values])
    return Table("leaderboard", "", [(name, name) for name in names], lines)


FORMATS: dict[str, Callable[..., str]] = {
    "csv": lambda rows, metric=None, home=None: to_csv(figures(rows, metric, home)).rstrip("\n"),
    "markdown": lambda rows, metric=None, home=None: to_markdown(*boards(rows, metric, IN_BOLD, home)).rstrip(
        "\n"
    ),
    "latex": lambda rows, metric=None, home=None: to_latex(*boards(rows, metric, IN_BOLD, home)).rstrip("\n"),
    "json": _json_lines,
}
