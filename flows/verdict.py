"""The verdict of a leaderboard, in words: what is best, what is statistically tied with it, and what of these is cheap.

The best method is compared with every other one by the paired bootstrap over test documents (`evaluation.significance`)
on the metric that ranks, the mean over the seeds that both ran; p values are corrected together by Holm's rule.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cells import Index
from flows.leaderboard import HEADINGS, Summary, columns, scale, summarise
from tasks import InputError

if TYPE_CHECKING:
    from evaluation.tallies import Tally

LEVEL = 0.05
MOST_TESTED = 1000  # runs; reading back the predictions of one takes milliseconds
Rows = Sequence[Mapping[str, Any]]


def verdicts(home: Path, rows: Iterable[Mapping[str, Any]], metric: str | None = None) -> list[str]:
    """Return a sentence for each data set and protocol of `rows` in which something was measured.

    rows: as of the leaderboard; those without the index's `key` are looked up by their run id. What cannot be tested
    is named, with the reason; of thousands of runs nothing is tested.
    """
    rows = list(rows)
    if len(rows) > MOST_TESTED:
        return [
            f"No verdict: {len(rows)} runs are more than the {MOST_TESTED} that are tested document by document; "
            "choose some: textbench leaderboard -d DATA-SET -m METHOD ..."
        ]
    rows = _with_keys(home, rows)
    lines = []
    for (dataset, protocol), table in groupby(summarise(rows, metric), lambda s: (s.dataset, s.protocol)):
        summaries = list(table)
        ranking = columns(summaries, metric)[0]
        measured = [s for s in summaries if ranking in s.mean]
        if measured:
            lines.append(f"{dataset}, {protocol} protocol: {_sentence(home, rows, measured, ranking)}")
    return lines


def _with_keys(home: Path, rows: Rows) -> Rows:
    if all("key" in row for row in rows):
        return rows
    keys = {record["run_id"]: record["key"] for record in Index(home).rows()}
    return [{"key": keys.get(row["run_id"]), **row} for row in rows]


def _sentence(home: Path, rows: Rows, measured: Sequence[Summary], metric: str) -> str:
    best, *others = measured
    figure = f"{best.label} is best ({HEADINGS.get(metric, metric)} {scale(metric) * best.mean[metric]:.2f})"
    if not others:
        return f"{figure}; nothing else was run to compare it with."
    p_values, untested = against_best(home, rows, best, others, metric)
    tied = [s for s in others if p_values.get(s.label, 0) >= LEVEL]
    if not p_values:
        parts = [f"{figure}."]
    elif tied:
        names = ", ".join(f"{s.label} (p = {p_values[s.label]:.2g})" for s in tied)
        parts = [f"{figure}. Statistically tied with it: {names}."]
    else:
        highest = max(p_values.values())
        parts = [f"{figure}, and significantly better than the other {len(p_values)} (p <= {highest:.2g})."]
    if tied and (cheapest := _cheapest([best, *tied])):
        parts.append(cheapest)
    if p_values:
        parts.append("Paired bootstrap over test documents, Holm-corrected.")
    return " ".join([*parts, *untested])


def _cheapest(tied: Sequence[Summary]) -> str | None:
    timed = [s for s in tied if s.seconds is not None]
    if len(timed) < 2:
        return None
    cheapest = min(timed, key=lambda s: s.seconds or 0.0)
    if cheapest is tied[0]:
        return f"It is also the cheapest of them: {cheapest.seconds:.1f} s."
    return f"The cheapest of them is {cheapest.label}: {cheapest.seconds:.1f} s against {tied[0].seconds or 0:.1f} s."


def against_best(
    home: Path, rows: Rows, best: Summary, others: Sequence[Summary], metric: str
) -> tuple[dict[str, float], list[str]]:
    """Return each other method's corrected p, by label, and sentences on what could not be tested."""
    from evaluation.significance import bootstrap, difference, holm

    found: dict[str, float] = {}
    reasons: dict[str, list[str]] = {}
    for other in others:
        try:
            first, second = _paired(home, runs_of(rows, best), runs_of(rows, other), metric)
        except InputError as error:
            reasons.setdefault(str(error), []).append(other.label)
            continue
        draws = bootstrap([first, second])
        found[other.label] = difference(first.value - second.value, draws[:, 0] - draws[:, 1]).p
    corrected = dict(zip(found, holm(list(found.values())), strict=True))
    return corrected, [f"Not tested: {', '.join(labels)} ({reason})." for reason, labels in reasons.items()]


def runs_of(rows: Rows, summary: Summary) -> dict[int, Mapping[str, Any]]:
    """Return a summary's finished rows by seed."""
    return {row["seed"]: row for row in rows if summary.holds(row) and not row["error"]}


def _paired(
    home: Path, first: Mapping[int, Mapping[str, Any]], second: Mapping[int, Mapping[str, Any]], metric: str
) -> "tuple[Tally, Tally]":
    """Return both methods' tallies over the seeds they share. Raises InputError when they cannot be compared."""
    from flows.answers import corpus_key, predictions, tally

    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        raise InputError("no seed in common with the best")
    both = [[runs[seed] for seed in seeds] for runs in (first, second)]
    if any(row["key"] is None for runs in both for row in runs):
        raise InputError("their predictions are not in the results folder")
    if len({corpus_key(home, row) for runs in both for row in runs}) > 1:
        raise InputError("tested on other documents: the data set changed in between")
    one, other = (tally([predictions(home, row) for row in runs], metric) for runs in both)
    return one, other
