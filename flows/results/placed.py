"""Ranks on a leaderboard: from which to which a method's may be, and which methods are ties.

Each pair of methods is tested, and all pairs of a table are Holm-corrected together. Where the predictions of both are
in the results folder, of the seeds that the table has in common, the test is the paired bootstrap over test documents
(`evaluation.statistics.significance`); else means are compared by their intervals, taken as independent
(`evaluation.statistics.rank_intervals`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.evaluation.statistics.rank_intervals import better, rank_intervals, tie_groups
from textbench.evaluation.statistics.significance import bootstrap, paired_difference
from textbench.flows.results.metric_names import KNOWN
from textbench.flows.results.predictions import corpus_key, predictions, tally
from textbench.flows.results.summary import Summary, columns, in_common, summarise, tables
from textbench.flows.results.winner import with_keys
from textbench.tasks import InputError

if TYPE_CHECKING:
    from textbench.evaluation.statistics.sufficient_statistics import SufficientStatistics

MOST_TESTED = 200  # runs of a table; reading back the predictions of one takes milliseconds
NOTE = "Ranks: the best and the worst that each may have, with 95 % certainty; a shared letter is a tie."
PAIRED = "Pairs: paired bootstrap over test documents, Holm-corrected."
MIXED = (
    "Pairs: paired bootstrap over test documents where predictions were at hand, else intervals taken as independent; "
    "Holm-corrected together."
)
INDEPENDENT = (
    "Pairs: intervals taken as independent, Holm-corrected together; a paired test (textbench compare) finds more "
    "differences."
)
Row = Mapping[str, Any]


def placed(rows: Iterable[Row], metric: str | None = None, home: Path | None = None) -> list[Summary]:
    """Return `summarise` with the rank intervals and tie groups of each table; paired where `home` has predictions."""
    rows = list(rows)
    if home is not None:
        rows = list(with_keys(home, rows))
    found: list[Summary] = []
    for table in tables(summarise(rows, metric)):
        ranking = columns(table, metric)[0]
        found += with_ranks(table, ranking, {} if home is None else paired(home, rows, table, ranking))
    return found


def paired(
    home: Path, rows: Sequence[Row], table: Sequence[Summary], metric: str
) -> dict[tuple[str, str], float]:
    """Return p of pairs of a table's methods, by their labels in the table's order, not corrected.

    1 where the shared seeds speak for the other one than all seeds. Pairs without predictions are left out, and all
    of a table of more than MOST_TESTED runs.
    """
    compared, seeds = in_common([s for s in table if metric in s.mean], metric)
    if len(compared) < 2 or len(compared) * len(seeds) > MOST_TESTED:
        return {}
    read = {s.label: _read(home, rows, s, seeds, metric) for s in compared}
    known = [s for s in compared if read[s.label]]
    found = {}
    for documents in dict.fromkeys(_documents(read[s.label]) for s in known):
        own = [s for s in known if _documents(read[s.label]) == documents]
        tallies = [one for s in own if (told := read[s.label]) for one in told[1:]]
        draws = bootstrap(tallies) if len(own) > 1 else None
        for i, j in combinations(range(len(own)), 2):
            assert draws is not None
            gap = paired_difference(tallies[i], tallies[j], draws[:, i] - draws[:, j])
            overall = own[i].mean[metric] - own[j].mean[metric]
            found[own[i].label, own[j].label] = gap.p if gap.value * overall > 0 else 1.0
    return found


def _documents(read: "tuple[str, SufficientStatistics] | None") -> tuple[str, int]:
    """Return what tells test documents from others, and how many of them a metric is of."""
    return (read[0], len(read[1].columns)) if read else ("", 0)


def _read(
    home: Path, rows: Sequence[Row], summary: Summary, seeds: Sequence[int], metric: str
) -> "tuple[str, SufficientStatistics] | None":
    """Return what stands for a method's test documents, and its tally over these seeds; None without predictions."""
    runs = {row["seed"]: row for row in rows if summary.holds(row) and not row["error"]}
    own = [runs[seed] for seed in seeds if seed in runs]
    try:
        corpora = {corpus_key(home, row) for row in own if row.get("key")}
        if len(own) < len(seeds) or any(not row.get("key") for row in own) or len(corpora) > 1:
            return None
        return corpora.pop(), tally([predictions(home, row) for row in own], metric)
    except InputError:
        return None


def with_ranks(
    table: Sequence[Summary], metric: str, p_values: Mapping[tuple[str, str], float]
) -> list[Summary]:
    """Return summaries of one table, best first, with `rank`, `ties` and `ranked_by`."""
    means = [summary.mean.get(metric, math.nan) for summary in table]
    halves = [
        summary.half_width.get(metric, math.nan) if metric in summary.mean else math.nan for summary in table
    ]
    place = {summary.label: number for number, summary in enumerate(table)}
    known = {(place[first], place[second]): p for (first, second), p in p_values.items()}
    known = {(min(pair), max(pair)): p for pair, p in known.items()}
    told = better(
        means,
        halves,
        degrees=[_degrees(summary, metric) for summary in table],
        is_rising=KNOWN[metric].higher_is_better,
        paired=known,
    )
    ranks, letters = rank_intervals(told, halves), tie_groups(told, halves)
    n = sum(rank is not None for rank in ranks)
    n_paired = sum(not math.isnan(halves[i] + halves[j]) for i, j in known)
    how = PAIRED if n_paired == n * (n - 1) // 2 else MIXED if n_paired else INDEPENDENT
    return [
        replace(summary, rank=rank, ties=letter, ranked_by=how)
        for summary, rank, letter in zip(table, ranks, letters, strict=True)
    ]


def _degrees(summary: Summary, metric: str) -> float:
    """Return the degrees of freedom behind a half-width: one less than its seeds, without end over documents."""
    if summary.over.get(metric) == "documents":
        return math.inf
    n_seeds = len(summary.by_seed.get(metric, ())) or summary.n_seeds
    return n_seeds - 1 if n_seeds > 1 else math.inf


def note(table: Sequence[Summary]) -> str:
    """Say what ranks are and what they rest on; "" where fewer than two methods have one."""
    ranked = [summary for summary in table if summary.rank]
    return f"{NOTE} {ranked[0].ranked_by}" if len(ranked) > 1 else ""
