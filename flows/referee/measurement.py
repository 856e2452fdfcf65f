"""Measuring claims: from finished faithful runs to the figure, and the interval, that a published one is held against.

What is compared is the rule of `evaluation.claims.verdicts`; here the runs are found and read.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.evaluation.claims.ordering_claims import ORDERS, OrderedFigure, Sweep, comparisons, pairs
from textbench.evaluation.claims.published import (
    METHODS,
    OWN,
    PROBES,
    SECONDS,
    Claim,
    published,
)
from textbench.evaluation.claims.verdicts import Comparison
from textbench.evaluation.claims.yardstick import allowance
from textbench.evaluation.metrics.multilabel import is_of_several_labels
from textbench.evaluation.statistics.intervals import mean_interval
from textbench.evaluation.statistics.significance import Difference, bootstrap, difference, paired_difference
from textbench.evaluation.statistics.sufficient_statistics import SufficientStatistics, class_tally, mean_of
from textbench.flows.plan import papers
from textbench.flows.plan.corpora import newest
from textbench.flows.referee import recorded_draws
from textbench.flows.results.index import Index
from textbench.flows.results.predictions import is_several, labels, predictions, tally, testable
from textbench.flows.results.runs import Run, is_whole
from textbench.flows.results.summary import asked_at, made_alike
from textbench.tasks import InputError, catalogue

if TYPE_CHECKING:
    import pyarrow

Row = Mapping[str, Any]
Runs = Mapping[int, Row]
# What an interval is over: test documents, of a method that draws no random numbers; of some figures nothing.
DOCUMENTS, EXACT = "documents", ("certified bounds", "one compression", "one run", "a shape")
# Claims about the features: the size of those of training documents, and the share of zeros in all.
MEGABYTES, SAVED = "feature-megabytes", "sparsity-at-4-percent"


@dataclass(frozen=True)
class Measurement:
    """What was measured for a claim, in its unit.

    `value` is the figure; `compared` is what is judged: the figure or a ratio, as `basis` says. `low` and `high` (None:
    no interval) are the 95 % interval of our own figure, of a ratio those between which the paper's may lie. An order
    has `comparisons` instead. `rows` are the runs behind it. Where the figure is a mean over seeds, `each` has that of
    every seed; it and `rows` go up by seed.
    """

    basis: str
    value: float | None = None
    compared: float | None = None
    low: float | None = None
    high: float | None = None
    comparisons: Sequence[Comparison] = ()
    rows: Sequence[Row] = field(default=(), repr=False)
    each: Mapping[int, float] = field(default_factory=dict)

    @property
    def is_random(self) -> bool:
        """Whether another seed would give another figure."""
        return self.basis not in (DOCUMENTS, *EXACT)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values, the runs by seed, parameters, MLflow id and key."""
        found = {k: v for k, v in asdict(self).items() if k != "rows"}
        runs = [
            {name: row[name] for name in ("method", "seed", "trials", "params", "protocol", "run_id", "key")}
            for row in self.rows
        ]
        return found | {"seeds": sorted({row["seed"] for row in self.rows}), "runs": runs}


def is_random(method: str) -> bool:
    """Tell whether a method's features change with the seed: it draws random numbers, or its word vectors did."""
    entry = catalogue.method(catalogue.parse_method(method)[0])
    return entry.is_seeded or "word_vectors" in entry.needs


def is_timed_apart(claim: Claim, other: str) -> bool:
    """Tell whether each seed times both sides of a ratio anew: seeds change what both methods make."""
    return all(is_random(METHODS[method]) for method in (claim.method, other))


def _spent(row: Row, name: str) -> float:
    """Return the seconds of a stage, or of a part of the last one; 0 where they were not measured."""
    return float((row["seconds"] | row.get("parts", {})).get(name, 0.0))


def is_answered(claim: Claim) -> bool:
    """Tell whether artifacts of the claim's paper answer it (`answers.py` in the paper's folder), not runs alone."""
    return (claim.paper, claim.metric.partition(":")[0]) in _answered()


@cache
def _answered() -> frozenset[tuple[str, str]]:
    return frozenset((one.PAPER, metric) for one in papers.modules("answers") for metric in one.METRICS)


class FaithfulRuns:
    """The finished faithful runs of a results folder, as claims ask for them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._tables: dict[str, pyarrow.Table] = {}
        self._names: dict[str, list[str]] = {}
        every = newest(Index(home).rows())
        rows = [row for row in every if row["protocol"] == "faithful" and not row.get("error")]
        # Other token rules and other ways to tune are no longer the paper's protocol.
        rows = [
            row for row in rows if not row["request"].get("rule") and not row["request"].get("validation")
        ]
        budgets = [row for row in rows if not is_whole(row)]
        self.rows = sorted(made_alike(filter(is_whole, rows)) + made_alike(budgets), key=_thoroughness)

    def runs(self, claim: Claim, method: str | None = None, is_tuned: bool = True) -> Runs:
        """Return by seed the newest runs of a claim's method, or of another in the paper's spelling.

        They are those of the claim's paper and classifier; where the method was tuned too and may be, the most
        thoroughly tuned.
        """
        name, probe = METHODS.get(method or claim.method), PROBES.get(method or claim.method)
        found: dict[int, dict[int, Row]] = {}
        for row in self.rows:
            asked = row.get("request") or {}
            if (
                is_whole(row)
                and (row["dataset"], row["method"], row.get("paper"))
                == (claim.dataset_here, name, claim.source)
                and asked.get("probe") == probe
                and not asked.get("rule")
                and (is_tuned or not int(row["trials"]))
            ):
                found.setdefault(int(row["trials"]), {})[row["seed"]] = row
        # By seed, whenever each ran: the draws of a bootstrap depend on the order of its runs.
        return dict(sorted(found[max(found)].items())) if found else {}

    def measure(self, claim: Claim, claims: Mapping[str, Claim]) -> Measurement | None:
        """Return what the runs say of a claim, None while they say nothing. `claims` go by id."""
        if claim.id in ORDERS:
            return self._order(claim)
        if is_answered(claim):
            return self._answers[claim.paper](claim)
        if claim.dataset_here is None or claim.method_here is None:
            return None
        if claim.class_rate:
            return self._class_rate(claim)
        if claim.metric in SECONDS:
            return self._seconds(claim, claims)
        if claim.metric in (MEGABYTES, SAVED):
            return self._size(claim)
        return self._figure(claim) if claim.metric_here else None

    @cached_property
    def _answers(self) -> Mapping[str, Callable[[Claim], Measurement | None]]:
        """By paper what its artifacts say of a claim."""
        return {module.PAPER: module.answers(self) for module in papers.modules("answers")}

    @cached_property
    def _with_recorded_draws(self) -> Sequence[Row]:
        """The runs, with the recorded draws of label budgets that stand beside theirs, in the order of `rows`."""
        return sorted([*recorded_draws.beside(self.rows), *self.rows], key=_thoroughness)

    def _figure(self, claim: Claim) -> Measurement | None:
        runs, metric = self.runs(claim), claim.metric_here or ""
        rows = [row for row in runs.values() if metric in row["metrics"]]
        if not rows:
            return None
        values = [claim.scale * row["metrics"][metric] for row in rows]
        if not is_random(rows[0]["method"]):
            mean = math.fsum(values) / len(values)
            tables = [self._predictions(row) for row in rows]
            if metric in testable(is_several(tables[0])):
                return _bootstrapped(claim, tally(tables, metric), mean, rows)
            return Measurement(DOCUMENTS, mean, mean, rows=rows)
        return over_seeds(values, rows)

    def _class_rate(self, claim: Claim) -> Measurement | None:
        """The precision or recall of one class."""
        rows = list(self.runs(claim).values())
        if not rows:
            return None
        rates = self._rates(claim, rows)
        if is_random(rows[0]["method"]):
            return over_seeds([claim.scale * one.value for one in rates], rows)
        return _bootstrapped(claim, rates[0], claim.scale * rates[0].value, rows)

    def class_gain(self, claim: Claim, method: str) -> Difference | None:
        """Return what a class's rate is above that of another method, in the paper's spelling, as a fraction.

        Paired over test documents, the mean over the runs of each; None while one has no run.
        """
        both = [list(runs.values()) for runs in (self.runs(claim), self.runs(claim, method))]
        if not all(both):
            return None
        first, second = (mean_of(self._rates(claim, rows)) for rows in both)
        return paired_difference(first, second, bootstrap([first, second]) @ [1, -1])

    def _rates(self, claim: Claim, rows: Sequence[Row]) -> list[SufficientStatistics]:
        assert claim.class_rate is not None
        rate, name = claim.class_rate
        names = self._class_names(rows[0])
        if name not in names:
            raise InputError(f"{rows[0]['dataset']} has no class {name}")
        return [class_tally(rate, names.index(name), *labels(self._predictions(row))) for row in rows]

    def _predictions(self, row: Row) -> "pyarrow.Table":
        """Return a run's predictions; many claims read the same."""
        if row["key"] not in self._tables:
            self._tables[row["key"]] = predictions(self.home, row)
        return self._tables[row["key"]]

    def _class_names(self, row: Row) -> list[str]:
        if row["dataset"] not in self._names:
            self._names[row["dataset"]] = Run(self.home, row).open("corpus").json("corpus")["target_names"]
        return self._names[row["dataset"]]

    def _size(self, claim: Claim) -> Measurement | None:
        """Megabytes (10^6 bytes) of the features of training documents, or the percentage of zeros in all.

        "1.1 GB" of BoWV is 11,314 training documents by 12,060 columns of 8 bytes: dense. What is sparse has 8 bytes a
        value and 4 an index.
        """
        # Features that were tuned are not those of the published settings.
        rows, values = list(self.runs(claim, is_tuned=False).values()), []
        for row in rows:
            features = Run(self.home, row).open("features")
            matrices = [features.matrix(part) for part in ("train", "test")]
            if claim.metric == SAVED:
                n_values = sum(matrix.astype(bool).sum() for matrix in matrices)
                values.append(100 * (1 - n_values / sum(math.prod(matrix.shape) for matrix in matrices)))
            elif claim.method == OWN[claim.paper]:
                values.append((12 * matrices[0].astype(bool).sum() + 4 * (matrices[0].shape[0] + 1)) / 1e6)
            else:
                return exact("a shape", 8 * math.prod(matrices[0].shape) / 1e6, rows)
        return over_seeds(values, rows) if rows else None

    def _seconds(self, claim: Claim, claims: Mapping[str, Claim]) -> Measurement | None:
        """The ratio of two methods' seconds in one stage, or part, of one timed run, the geometric mean over seeds.

        Where no seed changes what one of them makes it was timed once, whatever the number of seeds.
        """
        judged, stage = published(claim, claims), SECONDS[claim.metric]
        if judged is None or judged[1] is None:
            return None
        both = [self._timed(claim, method, stage) for method in (claim.method, judged[1])]
        attempts = sorted({attempt for attempt, _ in both[0]} & {attempt for attempt, _ in both[1]})
        if not attempts:
            return None
        last = attempts[-1]
        own, other = ({seed: row for (at, seed), row in runs.items() if at == last} for runs in both)
        is_own = claim.method == OWN[claim.paper]
        seeds = sorted(own.keys() & other.keys())
        if not seeds:
            return None
        logs = [math.log(_spent(own[s], stage) / _spent(other[s], stage)) for s in seeds]
        reach = allowance([-value for value in logs] if is_own else logs, is_random=True).interval
        low, high = (
            math.exp(end) if is_timed_apart(claim, judged[1]) else None for end in (reach.low, reach.high)
        )
        if len(seeds) == 1:
            low = high = None
        value = math.fsum(_spent(own[s], stage) for s in seeds) / len(seeds)
        rows = [runs[s] for runs in (own, other) for s in seeds]
        name = METHODS[judged[1]]
        basis = f"times as fast as {name}" if is_own else f"times the seconds of {name}"
        return Measurement(basis, value, math.exp(reach.value), low, high, rows=rows)

    def _timed(self, claim: Claim, method: str, stage: str) -> dict[tuple[str, int], Row]:
        """Return a method's runs of `--timed` sweeps by attempt and seed."""
        return {
            (row["attempt"], row["seed"]): row
            for row in self.rows
            if row.get("timed")
            and is_whole(row)
            and (row["dataset"], row["method"], row.get("paper"))
            == (claim.dataset_here, METHODS.get(method), claim.paper)
            and _spent(row, stage)
        }

    def _order(self, claim: Claim) -> Measurement | None:
        """Judge an order; the rows are those of the repetitions that are compared."""
        points = self._points(claim)
        found = pairs(ORDERS[claim.id], [point for point, _ in points])
        used = {side[n].run for pair in found for n in pair.shared for side in (pair.better, pair.worse)}
        rows = [row for point, row in points if point.run in used]
        is_fresh = any("hardware" not in row for row in rows)  # not all of it was recorded
        return Measurement("order", comparisons=comparisons(found), rows=rows) if is_fresh else None

    def _points(self, claim: Claim) -> list[tuple[OrderedFigure, Row]]:
        """Return the accuracies that an order is judged by: of label budgets by draw, of all labels by seed.

        Cells of a budget have `labels` in their request; the repetition is their draw. What was tuned does not have
        the settings that a sweep compares.
        """
        points: dict[tuple[Any, ...], tuple[OrderedFigure, Row]] = {}
        order = ORDERS[claim.id]
        for row in self._with_recorded_draws:
            asked = row["request"]
            is_of_paper = (row["dataset"], row.get("paper")) == (claim.dataset_here, claim.paper)
            if not is_of_paper or asked.get("probe") or is_of_several_labels(row["metrics"]):
                continue
            if isinstance(order, Sweep) and int(row["trials"]):
                continue
            name, params = catalogue.parse_method(row["method"])
            if name not in (order.method, *getattr(order, "others", ())):
                continue
            budget = asked.get("labels") or {}
            repetition = budget.get("draw", 0) if budget else row["seed"]
            point = OrderedFigure(
                name, params, budget.get("budget"), repetition, row["metrics"]["accuracy"], row["key"]
            )
            # Of runs alike the most thoroughly tuned counts, and of these the newest: they come last.
            points[row["method"], point.budget, repetition] = (point, row)
        return list(points.values())


def _thoroughness(row: Row) -> tuple[int, float]:
    """Sort what was tuned most last, and of runs alike the newest."""
    return int(row["trials"]), asked_at(row)


def exact(basis: str, value: float, rows: Sequence[Row]) -> Measurement:
    """Return a figure that is no sample: it has no other interval than itself."""
    return Measurement(basis, value, value, value, value, rows=rows)


def over_seeds(values: Sequence[float], rows: Sequence[Row]) -> Measurement:
    """Return the mean of a figure, in the claim's unit and one value a row, with Student's t interval over seeds."""
    by_seed = sorted(zip(rows, values, strict=True), key=lambda pair: pair[0]["seed"])
    mean, half = mean_interval(values)
    low, high = (None, None) if math.isnan(half) else (mean - half, mean + half)
    each = {row["seed"]: value for row, value in by_seed}
    return Measurement("seeds", mean, mean, low, high, rows=[row for row, _ in by_seed], each=each)


def _bootstrapped(claim: Claim, own: SufficientStatistics, value: float, rows: Sequence[Row]) -> Measurement:
    """Return a figure that draws no random numbers, with the percentile interval over test documents."""
    found = difference(own.value, bootstrap([own])[:, 0])
    low, high = (claim.scale * end for end in (found.low, found.high))
    return Measurement(DOCUMENTS, value, claim.scale * found.value, low, high, rows=rows)
