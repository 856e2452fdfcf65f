"""Results over seeds: of each method its mean, its interval and its costs, best first."""

import json
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from textbench.evaluation.metrics.calibration import PROBABILITIES
from textbench.evaluation.metrics.multilabel import is_of_several_labels
from textbench.evaluation.statistics.intervals import mean_interval
from textbench.flows.results.half_widths import over_documents, wider
from textbench.flows.results.method_names import uses_labels, with_marks
from textbench.flows.results.metric_names import KNOWN, SHOWN, SHOWN_SEVERAL, places, scale
from textbench.tasks.catalogue import ENSEMBLE
from textbench.tasks.words import counted

Row = Mapping[str, Any]
DIGITS = 12  # of a cell's key, in the record
SEARCHED = " s of search"  # ends the word of `settings_of` that says how long settings were searched for
KINDS = (DEFAULT, TUNED, ENSEMBLED) = ("default", "tuned", "ensembled")


@dataclass(frozen=True)
class Summary:
    """One method on one data set under one protocol, over its seeds.

    `mean` and `half_width` go by metric, in fractions. Two things make a mean doubtful, the seeds and the test
    documents: `half_width_seeds` is of Student's t interval, nan for one seed, and where no seed changes a figure;
    `half_width_documents` is the mean of the runs' intervals over test documents, which is exact where all seeds err
    alike and else too wide, for metrics that are kept per document. The wider one is `half_width`, and `over` says
    which, "seeds" or "documents"; without either it is nan.
    `seconds` is the sum over stages, its mean over seeds; `peak_mb` the largest. `params` holds each distinct
    setting that was chosen, `on_border` the parameters whose best value is an end of what was searched.
    `errors` are the distinct reasons of the `n_failed` seeds, `n_otherwise` counts the runs that `made_alike` left out.
    With `n_seeds` 0 nothing was measured. `settings` is what else was asked for (`settings_of`), `apart` those words of
    it that tell it from the method's other summaries.
    `dataset` is of the same documents alone (`flows.plan.corpora`), `about` what tells it from others of its name,
    `n_documents` how many train and how many test it, (0, 0) if that is not known.
    `is_best` goes by the seeds that it has in common with others (`in_common`); `by_seed` has the figures by metric.
    `runs` are the ids that other commands take, the lowest seed first; `data_note` says what is wrong with the data.
    `uses_labels` says that the representation was fitted to labels. `unread`: of a pretrained model, the shares of the
    documents that it cut and of the tokens that it did not read. `rank` is the least and the greatest rank that it may
    have, `ties` the letters of its groups of ties, `ranked_by` what these rest on: `flows.results.placed` sets them.
    `cells` are the keys of its runs, the lowest seed first, DIGITS of each; of what is recorded `pairs` has by metric p
    of its paired tests, not corrected, by the `cells` of the other.
    """

    dataset: str
    method: str
    protocol: str
    trials: int
    n_seeds: int
    mean: Mapping[str, float]
    half_width: Mapping[str, float]
    seconds: float | None
    peak_mb: float | None
    params: Sequence[Mapping[str, Any]]
    on_border: Sequence[str]
    n_failed: int
    errors: Sequence[str]
    n_otherwise: int = 0
    is_best: bool = False
    probe: str | None = None
    settings: tuple[str, ...] = ()
    apart: Sequence[str] = ()
    about: str = ""
    documents_sha256: str = ""
    n_documents: tuple[int, int] = (0, 0)
    by_seed: Mapping[str, Mapping[int, float]] = field(default_factory=dict, repr=False)
    over: Mapping[str, str] = field(default_factory=dict)
    half_width_seeds: Mapping[str, float] = field(default_factory=dict)
    half_width_documents: Mapping[str, float] = field(default_factory=dict)
    runs: Sequence[str] = ()
    data_note: str = ""
    uses_labels: bool = False
    unread: Mapping[str, float] = field(default_factory=dict)
    rank: tuple[int, int] | None = None
    ties: str = ""
    ranked_by: str = ""
    cells: str = ""
    pairs: Mapping[str, Mapping[str, float]] = field(default_factory=dict, repr=False)

    @property
    def title(self) -> str:
        """That of its table: the data set and the protocol."""
        return f"{self.dataset}, {self.protocol} protocol"

    @property
    def label(self) -> str:
        """The method, how many settings or how long was tried if it was tuned, and what tells it from its others.

        What was fitted to labels, or stands on a pretrained model, is marked.
        """
        searched = [word for word in self.settings if word.endswith(SEARCHED) and word not in self.apart]
        words = [*([counted(self.trials, "trial")] if self.trials else searched), *self.apart]
        name = with_marks(self.method, uses_labels=self.uses_labels)
        return f"{name} ({', '.join(words)})" if words else name

    @property
    def kind(self) -> str:
        """Whether settings were left as they are, searched for, or several methods decide together: one of KINDS."""
        if self.method.startswith(f"{ENSEMBLE}("):
            return ENSEMBLED
        is_searched = any(word.endswith(SEARCHED) for word in self.settings)
        return TUNED if self.trials or is_searched else DEFAULT

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Tell whether a row is one of those that are summarised here."""
        # The settings last: of thousands of rows few are of this method, and they take the longest to say.
        return (
            row["method"] == self.method
            and row["dataset"] == self.dataset
            and row["protocol"] == self.protocol
            and int(row["trials"]) == self.trials
            and settings_of(row) == self.settings
        )


def latest(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the newest row of each data set, protocol, method, number of trials, settings and seed.

    They are of what made the newest of all their seeds alone (`made_alike`).
    """
    newest: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in made_alike(rows):
        cell = (*group_of(row), row["seed"])
        if cell not in newest or asked_at(row) > asked_at(newest[cell]):
            newest[cell] = row
    return list(newest.values())


def asked_at(row: Mapping[str, Any]) -> float:
    """Return when a row was made, or asked for again after other code had made its like."""
    return max(row["created"], row.get("asked", row["created"]))


def made_alike(rows: Iterable[Row], group: Callable[[Row], Hashable] | None = None) -> list[Row]:
    """Return the rows of each group that were made as its newest; without `group` they are those of `group_of`.

    What other code, or other versions of libraries, made is another method under the same name, and no part of one mean
    (`BaseCell.made_by`). Each row says as `n_otherwise` how many seeds or draws of its group are left out for that.
    What does not say how it was made is kept beside its like alone.
    """
    groups: dict[Hashable, list[Row]] = {}
    for row in rows:
        groups.setdefault((group or group_of)(row), []).append(row)
    found: list[Row] = []
    for own in groups.values():
        made_by = max(own, key=asked_at).get("made_by")
        alike = [row for row in own if row.get("made_by") == made_by]
        if len(alike) < len(own):
            n_otherwise = len({*map(_place, own)} - {*map(_place, alike)})
            alike = [{**row, "n_otherwise": row.get("n_otherwise", 0) + n_otherwise} for row in alike]
        found += alike
    return found


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the seed of a run, and of a point of a curve its labels."""
    labels = (row.get("request") or {}).get("labels") or {}
    return row["seed"], *sorted(labels.items())


def left_out(n_otherwise: Mapping[str, int]) -> str:
    """Say of which methods, by name, how many runs are left out because others made them; "" without any."""
    words = [f"{counted(n, 'run')} of {name}" for name, n in n_otherwise.items() if n]
    if not words:
        return ""
    return (
        f"Left out: {', '.join(words)}, not known to be of the code and the libraries of the newest; the same command "
        "runs them again."
    )


def summarise(rows: Iterable[Mapping[str, Any]], metric: str | None = None) -> list[Summary]:
    """Return rows (as `flows.results.rows.row` describes) summarised over seeds, best first by data set and protocol.

    Without a metric accuracy ranks, or micro-F1 where documents have several labels. Methods are ranked on the seeds
    that they have in common; of equal means there all are best. What has no such seed comes after them, by its own
    mean, and what has no result last.
    """
    summaries = _told_apart(
        [_summary(group, list(members)) for group, members in groupby(sorted(rows, key=group_of), group_of)]
    )
    summaries.sort(key=lambda s: (s.dataset, s.protocol, s.method, s.trials, s.settings))
    ordered = []
    for table in tables(summaries):
        ordered += _ranked(table, columns(table, metric)[0])
    return ordered


def _ranked(table: Sequence[Summary], ranking: str) -> list[Summary]:
    sign = -1 if KNOWN[ranking].higher_is_better else 1
    compared, seeds = in_common(table, ranking)
    shared = {s.label: mean_over(s, ranking, seeds) for s in compared}
    best = min(shared.values(), key=lambda value: sign * value, default=None)

    def rank(summary: Summary) -> tuple[float, float]:
        own = sign * summary.mean[ranking] if ranking in summary.mean else math.inf
        return sign * shared[summary.label] if summary.label in shared else math.inf, own

    return [
        replace(s, is_best=s.label in shared and shared[s.label] == best) for s in sorted(table, key=rank)
    ]


def in_common(table: Sequence[Summary], metric: str) -> tuple[list[Summary], list[int]]:
    """Return the methods of a table that a metric compares, and the seeds that all of these ran.

    They are the methods that ran the seed which most of them did, the lowest of several such. None where no two of
    several methods ran the same seed: nothing is compared then.
    """
    measured = [s for s in table if metric in s.by_seed]
    counts = Counter(seed for s in measured for seed in s.by_seed[metric])
    most = max(counts.values(), default=0)
    if not most or most < min(2, len(measured)):
        return [], []
    seed = min(seed for seed, count in counts.items() if count == most)
    compared = [s for s in measured if seed in s.by_seed[metric]]
    return compared, sorted(set.intersection(*(set(s.by_seed[metric]) for s in compared)))


def mean_over(summary: Summary, metric: str, seeds: Sequence[int]) -> float:
    """Return the mean of a metric over some of a summary's seeds."""
    return math.fsum(summary.by_seed[metric][seed] for seed in seeds) / len(seeds)


Group = tuple[str, str, str, int, tuple[str, ...]]


def group_of(row: Mapping[str, Any]) -> Group:
    """Return what all runs share that differ in their seeds alone."""
    return (row["dataset"], row["protocol"], row["method"], int(row["trials"]), settings_of(row))


def settings_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return in words what was asked for beside data set, protocol, method and trials: runs that differ in it differ.

    The probe, the paper, then a token rule and ways to tune that are not the protocol's. Rows of MLflow that were made
    elsewhere, and of a run just made, say no more than the first two. Rows of a packed board say it as `settings`.
    """
    if "settings" in row:
        return tuple(row["settings"])
    request = row.get("request") or {}
    words = [row.get("probe"), row.get("paper"), request.get("rule") and f"rule {request['rule']}"]
    words += [f"{name} {value}" for name, value in sorted((request.get("validation") or {}).items())]
    words += [request.get("search_seconds") and f"{request['search_seconds']:g}{SEARCHED}"]
    return tuple(word for word in words if word)


def _told_apart(summaries: Sequence[Summary]) -> list[Summary]:
    """Give summaries the words by which their settings differ: of one method, tuned alike, all; else the probe alone.

    The probe is told where it is not the commonest of the table.
    """
    alike: dict[tuple[Any, ...], list[Summary]] = {}
    for s in summaries:
        alike.setdefault((s.dataset, s.protocol, s.method, s.trials), []).append(s)
    counts = Counter((s.dataset, s.protocol, s.probe) for s in summaries if s.probe)
    # Of each table the last, which has the highest count, stays.
    commonest = {key[:2]: key[2] for key in sorted(counts, key=lambda key: (counts[key], key))}
    told = []
    for group in alike.values():
        shared = set(group[0].settings).intersection(*(s.settings for s in group))
        for s in group:
            is_told = s.probe != commonest.get((s.dataset, s.protocol))
            words = [w for w in s.settings if w not in shared or (is_told and w == s.probe)]
            told.append(replace(s, apart=words))
    return told


def tables(summaries: Iterable[Summary]) -> list[list[Summary]]:
    """Return summaries, in their order, parted by data set and protocol."""
    return [list(members) for _, members in groupby(summaries, lambda s: (s.dataset, s.protocol))]


def _summary(group: Group, rows: list[Mapping[str, Any]]) -> Summary:
    dataset, protocol, method, trials, settings = group
    done = [row for row in rows if not row["error"]]
    shared = [name for name in KNOWN if done and all(name in row["metrics"] for row in done)]
    by_seed = {name: {row["seed"]: row["metrics"][name] for row in done} for name in shared}
    values = {name: [row["metrics"][name] for row in done] for name in shared}
    intervals = {name: mean_interval(of_seeds) for name, of_seeds in values.items()}
    alike = [name for name, of_seeds in values.items() if min(of_seeds) == max(of_seeds)]
    seeds = {n: math.nan if n in alike else half for n, (_, half) in intervals.items()}
    documents = over_documents(done, shared)
    half_width, over = wider(seeds, documents)
    seconds = [sum(row["seconds"].values()) for row in done if row["seconds"]]
    peaks = [row["peak_mb"] for row in done if row["peak_mb"] is not None]
    params = {json.dumps(row["params"], sort_keys=True): row["params"] for row in done}
    corpus: Mapping[str, Any] = next((row["corpus"] for row in rows if row.get("corpus")), {})
    return Summary(
        dataset=dataset,
        method=method,
        protocol=protocol,
        trials=trials,
        n_seeds=len(done),
        mean={name: mean for name, (mean, _) in intervals.items()},
        half_width=half_width,
        seconds=math.fsum(seconds) / len(seconds) if seconds else None,
        peak_mb=max(peaks, default=None),
        params=list(params.values()),
        on_border=sorted({name for row in done for name in row.get("on_border", ())}),
        n_failed=len(rows) - len(done),
        errors=sorted({str(row["error"]) for row in rows if row["error"]}),
        n_otherwise=max(row.get("n_otherwise", 0) for row in rows),
        probe=rows[0].get("probe"),
        settings=settings,
        about=rows[0].get("about", ""),
        documents_sha256=corpus.get("documents_sha256", ""),
        n_documents=(corpus.get("n_train", 0), corpus.get("n_test", 0)),
        by_seed=by_seed,
        over=over,
        half_width_seeds=seeds,
        half_width_documents=documents,
        runs=_ids(done),
        data_note=next((row["data_note"] for row in rows if row.get("data_note")), ""),
        uses_labels=uses_labels(rows[0]) or any(row.get("uses_labels") for row in rows),
        unread=next((row["unread"] for row in rows if row.get("unread")), {}),
        cells=_cells(done),
    )


def _cells(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return keys of runs; none where MLflow alone knows one of them."""
    if not all(row.get("key") for row in rows):
        return ""
    return " ".join(row["key"][:DIGITS] for row in sorted(rows, key=lambda row: row["seed"]))


def _ids(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the ids of runs, the lowest seed first: MLflow's, or the cell's key of a run that is not there."""
    ordered = sorted(rows, key=lambda row: (row["seed"], -row.get("created", 0.0)))
    return [name for row in ordered if (name := row.get("run_id") or row.get("key"))]


def on_seeds(table: Sequence[Summary], metric: str) -> str:
    """Say on which seeds the best is best, where that is not all that every method ran."""
    compared, seeds = in_common(table, metric)
    measured = [s for s in table if metric in s.by_seed]
    if all(sorted(s.by_seed[metric]) == seeds for s in measured):
        return ""
    if not compared:
        return ": none, for no two methods ran the same seed"
    return f" on the {seeds_of(seeds)} in common, {listed(seeds)}"


def higher(table: Sequence[Summary], metric: str) -> str:
    """Name the methods whose mean is better than that of the best, which other seeds gave; "" without any.

    For instance "nb has 69.44 on seed 7, not compared".
    """
    best = next((s for s in table if s.is_best), None)
    if best is None:
        return ""
    compared, seeds = in_common(table, metric)
    sign = 1 if KNOWN[metric].higher_is_better else -1
    said = []
    for s in table:
        if metric not in s.mean or s.is_best or sign * s.mean[metric] <= sign * best.mean[metric]:
            continue
        own = sorted(s.by_seed[metric])
        how = f"compared on {seeds_of(seeds)} {listed(seeds)} alone" if s in compared else "not compared"
        said.append(f"{s.label} has {in_unit(s, metric)} on {seeds_of(own)} {listed(own)}, {how}")
    return "; ".join(said)


def of_best(table: Sequence[Summary], metric: str) -> str:
    """Return `on_seeds`, and after a semicolon what is `higher`."""
    return "; ".join(filter(None, [on_seeds(table, metric), higher(table, metric)]))


def seeds_of(seeds: Sequence[int]) -> str:
    """Return "seed" or "seeds", as many as there are."""
    return "seed" if len(seeds) == 1 else "seeds"


def listed(seeds: Sequence[int]) -> str:
    """Return seeds in words: "0", "0 and 4", "0 to 2"."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    *first, last = map(str, seeds)
    return f"{', '.join(first)} and {last}" if first else last


def columns(table: Sequence[Summary], metric: str | None) -> list[str]:
    """Return the metrics that a table shows, the one that ranks first; of probabilities all with the main metric."""
    is_several = any(is_of_several_labels(summary.mean) for summary in table)
    shown: Sequence[str] = SHOWN_SEVERAL if is_several else SHOWN
    if metric in PROBABILITIES:
        shown = (*PROBABILITIES, shown[0])
    return [metric, *(name for name in shown if name != metric)] if metric else list(shown)


def in_unit(summary: Summary, metric: str) -> str:
    """Return a mean as it is shown, in the metric's unit; "-" where there is none."""
    if metric not in summary.mean:
        return "-"
    return f"{scale(metric) * summary.mean[metric]:.{places(metric)}f}"
