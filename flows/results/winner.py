"""The verdict of a leaderboard, in words: what is best, what is statistically tied with it, and what of these is cheap.

The best method is compared with every other one by the paired bootstrap over test documents
(`evaluation.statistics.significance`) on the metric that ranks, the mean over the seeds that all of them ran; p
values are corrected together by Holm's rule. What is best is judged on these seeds too, so that it is never called
better than what beats it there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textbench.evaluation.statistics.significance import bootstrap, holm, paired_difference
from textbench.evaluation.statistics.sufficient_statistics import SufficientStatistics
from textbench.flows.results.index import Index
from textbench.flows.results.metric_names import KNOWN, heading, places, scale
from textbench.flows.results.predictions import corpus_key, predictions, require_same_number, tally
from textbench.flows.results.summary import (
    Summary,
    columns,
    in_common,
    latest,
    listed,
    mean_over,
    seeds_of,
    summarise,
    tables,
)
from textbench.tasks import InputError

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
    rows = with_keys(home, rows)
    lines = []
    for summaries in tables(summarise(rows, metric)):
        ranking = columns(summaries, metric)[0]
        measured = [s for s in summaries if ranking in s.mean]
        failed = [s.label for s in summaries if s.n_failed and not s.n_seeds]
        if measured:
            lines.append(f"{measured[0].title}: {_sentence(home, rows, measured, ranking, failed)}")
    return lines


def with_keys(home: Path, rows: Rows) -> Rows:
    """Return rows with the index's `key`, looked up by their run where they have none, as MLflow's."""
    if all("key" in row for row in rows):
        return rows
    keys = {record["run_id"]: record["key"] for record in Index(home).rows()}
    return [{"key": keys.get(row["run_id"]), **row} for row in rows]


@dataclass(frozen=True)
class Standing:
    """How the others of a table stand to its best, on the seeds that all of them ran.

    `best` is None where nothing is compared. `p_values` go by a method's label, corrected; `behind` are those that the
    best is significantly better than. `untested` are sentences on what could not be tested.
    """

    best: Summary | None
    seeds: Sequence[int]
    p_values: Mapping[str, float]
    untested: Sequence[str]

    @property
    def behind(self) -> set[str]:
        """The labels of the methods that are significantly worse than the best."""
        return {label for label, p in self.p_values.items() if p < LEVEL}


def standing(home: Path, rows: Rows, table: Sequence[Summary], metric: str) -> Standing:
    """Return tests of the best of a table (best first, as `flows.results.summary.summarise` has it) against all others.

    p is that of the difference in favour of the best: 1 where the documents speak against it.
    """
    measured = [s for s in table if metric in s.mean]
    compared, seeds = in_common(measured, metric)
    if not compared:
        return Standing(None, [], {}, [])
    (best, *_), sign = compared, 1 if KNOWN[metric].higher_is_better else -1
    found: dict[str, float] = {}
    reasons: dict[str, list[str]] = {}
    for other in measured[1:]:
        try:
            first, second = _paired(home, runs_of(rows, best), runs_of(rows, other), seeds, metric)
        except InputError as error:
            reasons.setdefault(str(error), []).append(other.label)
            continue
        draws = bootstrap([first, second])
        if sign < 0:
            first, second, draws = second, first, draws[:, ::-1]
        gap = paired_difference(first, second, draws[:, 0] - draws[:, 1])
        found[other.label] = gap.p if gap.value > 0 and gap.high > 0 else 1.0
    corrected = dict(zip(found, holm(list(found.values())), strict=True))
    untested = [f"Not tested: {', '.join(labels)} ({reason})." for reason, labels in reasons.items()]
    return Standing(best, seeds, corrected, untested)


def _sentence(
    home: Path, rows: Rows, measured: Sequence[Summary], metric: str, failed: Sequence[str] = ()
) -> str:
    found = standing(home, rows, measured, metric)
    best = found.best
    if best is None:
        return "nothing is compared, for no two methods ran the same seed; run them with the same --seeds."
    value = f"{heading(metric)} {scale(metric) * mean_over(best, metric, found.seeds):.{places(metric)}f}"
    uneven = any(sorted(s.by_seed[metric]) != list(found.seeds) for s in measured)
    shared = f" on the {seeds_of(found.seeds)} in common" if uneven else ""
    figure = f"{best.label} is best{shared} ({value})"
    if len(measured) == 1 and failed:
        return f"{figure}; there is nothing to compare it with, for {', '.join(failed)} failed."
    if len(measured) == 1:
        return f"{figure}; nothing else was run to compare it with."
    tied = [s for s in measured if s.label in found.p_values.keys() - found.behind]
    if not found.p_values:
        parts = [f"{figure}."]
    elif tied:
        names = ", ".join(f"{s.label} (p = {found.p_values[s.label]:.2g})" for s in tied)
        parts = [f"{figure}. Statistically tied with it: {names}."]
    else:
        highest = max(found.p_values.values())
        parts = [f"{figure}, and significantly better than {the_others(found)} (p <= {highest:.2g})."]
    if tied and (cheapest := _cheapest([best, *tied])):
        parts.append(cheapest)
    if found.p_values:
        runs = "one run" if len(found.seeds) == 1 else f"{len(found.seeds)} runs"
        which = f"{seeds_of(found.seeds)} {listed(found.seeds)}"
        parts.append(f"Paired bootstrap over test documents, {runs} of each ({which}), Holm-corrected.")
    return " ".join([*parts, *found.untested])


def the_others(found: Standing) -> str:
    """Return in words how many methods were tested against the best: "the other one", "the other 3"."""
    n_tested, only = len(found.p_values), " that could be tested" if found.untested else ""
    return f"the other {'one' if n_tested == 1 else n_tested}{only}"


def _cheapest(tied: Sequence[Summary]) -> str | None:
    timed = [s for s in tied if s.seconds is not None]
    if len(timed) < 2:
        return None
    cheapest = min(timed, key=lambda s: s.seconds or 0.0)
    if cheapest is tied[0]:
        return f"It is also the cheapest of them: {cheapest.seconds:.1f} s."
    return f"The cheapest of them is {cheapest.label}: {cheapest.seconds:.1f} s against {tied[0].seconds or 0:.1f} s."


def best_runs(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the newest runs of the best method of each data set and protocol, all labels used."""
    newest = latest(row for row in rows if not row["request"]["labels"])
    bests = (next((s for s in table if s.mean), None) for table in tables(summarise(newest)))
    return [row for best in bests if best is not None for row in runs_of(newest, best).values()]


def runs_of(rows: Rows, summary: Summary) -> dict[int, Mapping[str, Any]]:
    """Return a summary's finished rows by seed."""
    return {row["seed"]: row for row in rows if summary.holds(row) and not row["error"]}


def _paired(
    home: Path,
    first: Mapping[int, Mapping[str, Any]],
    second: Mapping[int, Mapping[str, Any]],
    seeds: Sequence[int],
    metric: str,
) -> tuple[SufficientStatistics, SufficientStatistics]:
    """Return both methods' tallies over these seeds. Raises InputError when they cannot be compared."""
    if not set(seeds) <= first.keys() & second.keys():
        raise InputError("no seed in common with the best")
    both = [[runs[seed] for seed in seeds] for runs in (first, second)]
    if any(row["key"] is None for runs in both for row in runs):
        raise InputError("their predictions are not in the results folder")
    if len({corpus_key(home, row) for runs in both for row in runs}) > 1:
        raise InputError("tested on other documents: the data set changed in between")
    one, other = (tally([predictions(home, row) for row in runs], metric) for runs in both)
    require_same_number([one, other])
    return one, other
