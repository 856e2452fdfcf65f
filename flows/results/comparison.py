"""Comparing finished runs in pairs: who is right where the other is wrong, how large the difference is, and by chance?

Each pair gets two tests on the same test documents. McNemar's exact test counts the documents that only one of
them gets right (of several labels: whose highest-scored label is right); it needs one answer a document, so of runs
with several seeds it takes the lowest seed that all share. The paired bootstrap follows the metric itself, the mean
over the shared seeds, and gives the difference its interval: over test documents, not over seeds. Both are
corrected by Holm's rule over the pairs of a data set. Over several data sets average ranks are compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from textbench.evaluation.metrics.multilabel import is_of_several_labels
from textbench.evaluation.statistics.significance import (
    Difference,
    McNemar,
    average_ranks,
    bootstrap,
    holm,
    mcnemar_exact,
    paired_difference,
)
from textbench.flows.plan.corpora import choose_datasets, choose_methods
from textbench.flows.results.index import Index
from textbench.flows.results.method_names import explained, in_groups, marked
from textbench.flows.results.metric_names import KNOWN, heading, scale
from textbench.flows.results.predictions import corpus_key, is_right, predictions, require_same_number, tally
from textbench.flows.results.runs import command_to_run, find_run, is_whole
from textbench.flows.results.summary import latest, summarise
from textbench.flows.tables.table import Datum, Table, of_texts
from textbench.tasks import InputError
from textbench.tasks.words import counted

Row = Mapping[str, Any]

LEVEL, SIGNIFICANT = 0.05, "*"
COLUMNS = ("difference", "95 % interval", "p", "only one right", "McNemar p")


@dataclass(frozen=True)
class Entrant:
    """One side of comparisons on a data set: its name, and its finished runs by seed."""

    name: str
    runs: Mapping[int, Row]


@dataclass(frozen=True)
class PairedTest:
    """Two entrants on the same test documents; a difference is first minus second, in the metric's own fractions.

    `p` and `mcnemar_p` are corrected over the pairs of the data set. Each side has `n_runs` runs, of these seeds.
    """

    dataset: str
    first: str
    second: str
    metric: str
    first_value: float
    second_value: float
    difference: Difference
    p: float
    mcnemar: McNemar
    mcnemar_p: float
    seeds: Sequence[int]
    n_runs: int
    n_documents: int


@dataclass(frozen=True)
class Ranking:
    """Methods over data sets: average ranks (1 is best) and Friedman's p, None for fewer than three methods."""

    datasets: Sequence[str]
    methods: Sequence[str]
    average_ranks: Sequence[float]
    friedman_p: float | None
    critical_difference: float
    level: float


def runs_by_name(home: Path, names: Sequence[str]) -> dict[str, list[Entrant]]:
    """Return the named runs as entrants, by data set. Raises InputError for unknown ones and fewer than two."""
    rows = list({row["key"]: row for row in (find_run(home, name) for name in names)}.values())
    if len(rows) < 2:
        raise InputError(f"a comparison needs at least two different runs, got {len(rows)}")
    entrants = [Entrant(name, {row["seed"]: row}) for name, row in zip(_names(rows), rows, strict=True)]
    _require_same_documents(home, entrants)
    return {rows[0]["dataset"]: entrants}


def _names(rows: Sequence[Row]) -> list[str]:
    """Name each row by the least that sets it apart."""
    columns = ("method", "protocol", "trials", "probe", "seed")
    varying = [c for c in columns if c == "method" or len({row.get(c) for row in rows}) > 1]
    names = [" ".join([marked(row), *(f"{c} {row.get(c)}" for c in varying[1:])]) for row in rows]
    return [
        name if names.count(name) == 1 else f"{name} {row['key'][:8]}"
        for name, row in zip(names, rows, strict=True)
    ]


def runs_of_methods(
    home: Path, datasets: Sequence[str], methods: Sequence[str], protocol: str, n_seeds: int | None = None
) -> dict[str, list[Entrant]]:
    """Return the newest runs of each method on each data set as entrants, over the seeds that all of them have.

    Runs on a label budget are left out; a method that was tuned and run untuned too enters twice. Raises InputError for
    what has not been run, with the command that does.
    """
    if len(set(methods)) < 2:
        raise InputError(
            f"a comparison needs at least two methods, got {', '.join(dict.fromkeys(methods)) or 'none'}"
        )
    every = Index(home).rows()
    datasets, methods = choose_datasets(every, datasets), choose_methods(every, methods)
    rows = [row for row in every if row["protocol"] == protocol and is_whole(row)]
    wanted = set(range(n_seeds)) if n_seeds else set()
    found = {}
    for dataset in dict.fromkeys(datasets):
        entrants: list[Entrant] = []
        for method in dict.fromkeys(methods):
            own = [row for row in rows if (row["dataset"], row["method"]) == (dataset, method)]
            variants = _variants(method, own, wanted)
            if not variants:
                raise InputError(
                    f"{method} has not been run on {dataset} under the {protocol} protocol"
                    f"{f' for {n_seeds} seeds' if n_seeds else ''}; run it with: "
                    f"{command_to_run([dataset], [method], every, protocol, n_seeds)}"
                )
            entrants += variants
        _require_same_documents(home, entrants)
        found[dataset] = entrants
    return found


def runs_of_keys(home: Path, keys: Sequence[str]) -> dict[str, list[Entrant]]:
    """Return recorded runs, by their keys, as entrants, by data set: each method with the seeds that it has.

    Raises InputError for fewer than two methods on a data set.
    """
    recorded = {row["key"]: row for row in Index(home).rows()}
    rows = [recorded[key] for key in keys if key in recorded]
    found = {}
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        own = [row for row in rows if row["dataset"] == dataset]
        methods = dict.fromkeys(row["method"] for row in own)
        entrants = [
            one
            for method in methods
            for one in _variants(method, [row for row in own if row["method"] == method], set())
        ]
        if len(entrants) < 2:
            raise InputError(f"a comparison needs at least two methods on {dataset}, got {len(entrants)}")
        found[dataset] = entrants
    if not found:
        raise InputError("a comparison needs finished runs, got none")
    return found


def _variants(method: str, rows: Sequence[Row], wanted: set[int]) -> list[Entrant]:
    """Split a method's runs by what else was asked for; of one seed the newest run counts."""
    rows = latest(rows)
    found = []
    for summary in summarise(rows):
        runs = {row["seed"]: row for row in rows if summary.holds(row)}
        if wanted <= runs.keys():
            found.append(Entrant(summary.label, {seed: runs[seed] for seed in sorted(wanted or runs)}))
    return found


def _require_same_documents(home: Path, entrants: Sequence[Entrant]) -> None:
    """Refuse entrants that were tested on different documents, saying which and why that cannot be compared."""
    first = next(iter(entrants[0].runs.values()))
    for entrant in entrants:
        for row in entrant.runs.values():
            if corpus_key(home, row) == corpus_key(home, first):
                continue
            pair = (
                f"{entrants[0].name} was tested on {first['dataset']} and {entrant.name} on {row['dataset']}"
            )
            reason = (
                "whose documents have changed in between; run the older one again"
                if row["dataset"] == first["dataset"]
                else "and tests in pairs need the same test documents"
            )
            raise InputError(f"{pair}, {reason}")


def pairs(
    home: Path, dataset: str, entrants: Sequence[Entrant], metric: str | None = None
) -> list[PairedTest]:
    """Return all pairs of entrants of a data set, by accuracy or micro-F1 unless told otherwise, largest gap first.

    Raises InputError for no seed in common, or a metric that is not kept per document.
    """
    tables, seeds = _tables(home, entrants)
    first_row = next(iter(entrants[0].runs.values()))
    metric = metric or ("micro_f1" if is_of_several_labels(first_row["metrics"]) else "accuracy")
    tallies = {name: tally(runs, metric) for name, runs in tables.items()}
    require_same_number(tallies.values())
    draws = dict(zip(tallies, bootstrap(list(tallies.values())).T, strict=True))
    found = []
    for first, second in combinations(tables, 2):
        gap = paired_difference(tallies[first], tallies[second], draws[first] - draws[second])
        right = [is_right(tables[name][0]) for name in (first, second)]
        found.append((first, second, gap, mcnemar_exact(*right)))
    p_values = holm([gap.p for _, _, gap, _ in found])
    mcnemar_p = holm([test.p for *_, test in found])
    made = [
        PairedTest(
            dataset=dataset,
            first=first,
            second=second,
            metric=metric,
            first_value=tallies[first].value,
            second_value=tallies[second].value,
            difference=gap,
            p=p,
            mcnemar=test,
            mcnemar_p=exact_p,
            seeds=seeds,
            n_runs=len(tables[first]),
            n_documents=len(tallies[first].columns),
        )
        for (first, second, gap, test), p, exact_p in zip(found, p_values, mcnemar_p, strict=True)
    ]
    return sorted(made, key=lambda pair: -abs(pair.difference.value))


def _tables(home: Path, entrants: Sequence[Entrant]) -> tuple[dict[str, list[Any]], list[int]]:
    """Return the predictions of every entrant, of the seeds that all share or of its one run, and those seeds."""
    if all(len(entrant.runs) == 1 for entrant in entrants):
        only = {entrant.name: next(iter(entrant.runs.items())) for entrant in entrants}
        tables = {name: [predictions(home, row)] for name, (_, row) in only.items()}
        return tables, sorted({seed for seed, _ in only.values()})
    seeds = sorted(set.intersection(*(set(entrant.runs) for entrant in entrants)))
    if not seeds:
        listed = "; ".join(f"{e.name}: {', '.join(map(str, sorted(e.runs)))}" for e in entrants)
        raise InputError(f"no seed was run by all of them ({listed}); run the missing seeds")
    return {e.name: [predictions(home, e.runs[seed]) for seed in seeds] for e in entrants}, seeds


def ranking(found: Mapping[str, Sequence[PairedTest]]) -> Ranking | None:
    """Return the methods' ranks over data sets (Friedman, Nemenyi at 5 %); None for one data set or unlike entrants."""
    import numpy as np

    values: dict[str, dict[str, float]] = {}
    for dataset, compared in found.items():
        for pair in compared:
            sign = 1 if KNOWN[pair.metric].higher_is_better else -1
            row = values.setdefault(dataset, {})
            row |= {pair.first: sign * pair.first_value, pair.second: sign * pair.second_value}
    methods = sorted(next(iter(values.values()), {}))
    if len(values) < 2 or any(sorted(row) != methods for row in values.values()):
        return None
    ranks = average_ranks(np.array([[row[method] for method in methods] for row in values.values()]))
    return Ranking(
        datasets=list(values),
        methods=methods,
        average_ranks=ranks.average.tolist(),
        friedman_p=ranks.p,
        critical_difference=ranks.critical_difference,
        level=ranks.level,
    )


def as_json(found: Mapping[str, Sequence[PairedTest]], ranks: Ranking | None) -> list[dict[str, Any]]:
    """Return the comparison as JSON objects: one a pair (`kind` "pair"), and one of the ranks (`kind` "ranking")."""
    rows = [{"kind": "pair"} | asdict(pair) for compared in found.values() for pair in compared]
    return [*rows, {"kind": "ranking"} | asdict(ranks)] if ranks else rows


def pairs_table(dataset: str, compared: Sequence[PairedTest]) -> Table:
    """Return the pairs of a data set as a table: significant ones are marked."""
    first = compared[0]
    factor = scale(first.metric)
    rows: list[list[str | Datum]] = []
    for pair in compared:
        gap, is_significant = pair.difference, pair.p < LEVEL
        names = [
            f"{pair.first} {factor * pair.first_value:.2f}",
            f"against {pair.second} {factor * pair.second_value:.2f}",
        ]
        figures = [
            f"{factor * gap.value:+.2f}{SIGNIFICANT if is_significant else ' '}",
            f"{factor * gap.low:+.2f} .. {factor * gap.high:+.2f}",
            f"{pair.p:.2g}",
            f"{pair.mcnemar.first_only} : {pair.mcnemar.second_only}",
            f"{pair.mcnemar_p:.2g}",
        ]
        style = "bold" if is_significant else ""
        rows.append([Datum(" ".join(names), parts=names, style=style), *figures])
    mean = (
        "one run each"
        if first.n_runs == 1
        else f"means over {counted(first.n_runs, 'seed')}, McNemar on the first"
    )
    note = (
        f"{first.n_documents:,} test documents, {mean}. Interval and p: paired bootstrap over documents; "
        f"both p Holm-corrected over {counted(len(compared), 'pair')}. "
        f"{SIGNIFICANT} p below {LEVEL}. Only one right: "
        "documents that the first, and that the second alone gets right."
        f"{explained(name for pair in compared for name in (pair.first, pair.second))}"
    )
    title = f"{dataset}, {heading(first.metric)}"
    return in_groups(of_texts(title, ("pair", *COLUMNS), rows, note))


def in_words(ranks: Ranking) -> str:
    """Return in words how methods rank over data sets, and which differences tell them apart."""
    order = sorted(zip(ranks.average_ranks, ranks.methods, strict=True))
    listed = ", ".join(f"{method} {rank:.2f}" for rank, method in order)
    p = ranks.friedman_p
    test = "" if p is None else f" Friedman's test that all are alike: p = {p:.2g}."
    return (
        f"Average ranks over {len(ranks.datasets)} data sets (1 is best): {listed}.{test} Two methods differ where "
        f"their ranks are {ranks.critical_difference:.2f} apart (Nemenyi, {100 * ranks.level:.0f} %)."
    )
