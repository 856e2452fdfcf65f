"""Ensembles of finished runs: who can be a member, who contributes what, and whether the whole is better by chance."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textbench.evaluation.ensembles import SCHEMES
from textbench.evaluation.metrics.calibration import CALIBRATED_BY
from textbench.evaluation.metrics.multilabel import is_of_several_labels
from textbench.flows.plan.cell import Cell, own_rule, plan, reads_texts_alone
from textbench.flows.plan.corpora import choose_datasets
from textbench.flows.plan.request import BenchmarkRequest, Request
from textbench.flows.results.calibrated import judged
from textbench.flows.results.comparison import LEVEL, Entrant, PairedTest, pairs
from textbench.flows.results.index import Index
from textbench.flows.results.metric_names import heading, scale
from textbench.flows.results.runs import changed, command_to_run, is_current, is_whole
from textbench.flows.results.summary import latest
from textbench.flows.tables.table import Datum, Table, of_texts
from textbench.tasks import InputError, catalogue, ensemble
from textbench.tasks.corpus import read_targets
from textbench.tasks.storage.store import Store
from textbench.tasks.words import counted

Row = Mapping[str, Any]
CALIBRATION = ("log loss", "Brier", "calibration")
OTHERWISE = "was tuned, or its probe chosen, in another way"
# What all members were asked for alike.
SHARED = ("protocol", "trials", "probe", "search_seconds", "paper", "validation")
LONGEST_FIRST = ("greedy", "stacked", "equal")  # so that no core waits for the longest at the end


@dataclass(frozen=True)
class Candidates:
    """Finished runs that can decide together: by member, as `tasks.ensemble` spells it, its runs by seed.

    `request` asks for their ensembles, one a way to weigh them, with the seeds that all members ran. `left_out`: what
    else was run, and why that cannot be a member beside them.
    """

    request: BenchmarkRequest
    members: Mapping[str, Mapping[int, Row]]
    left_out: Mapping[str, str]

    @property
    def seeds(self) -> Sequence[int]:
        """The seeds that all members ran."""
        return self.request.seeds


def candidates(
    home: Path,
    dataset: str,
    methods: Sequence[str] = (),
    protocol: str = "honest",
    trials: int | None = None,
) -> Candidates:
    """Return the newest finished runs on a data set that an ensemble can be made of, or those of some methods.

    All were tuned alike: of several ways the one that most methods were, or with so many trials. Runs of code that
    has changed since are left out, for their features would be made again. A method's name stands for its runs under
    every token rule, nb@letters for those under one. Raises InputError for fewer than two methods, one that there is
    not, and one that was not run, with the command that does.
    """
    every = Index(home).rows()
    dataset = choose_datasets(every, [dataset])[0]
    rows = [
        row
        for row in every
        if row["dataset"] == dataset and row["protocol"] == protocol and is_whole(row) and _may_decide(row)
    ]
    known = {name for row in rows for name in _names(row)}
    members = {ensemble.spelled([one]): one for one in map(ensemble.member, methods)}
    if missing := [name for name in members if name not in known]:
        raise InputError(
            f"{missing[0]} has not been run on {dataset} under the {protocol} protocol; run it with: "
            f"{_command_of(dataset, [members[missing[0]][0]], every, protocol, trials, members[missing[0]][1])}"
        )
    # Runs of today's code, though other code ran later, before those that are named with why they are none.
    newest = [*latest(filter(is_current, rows)), *latest(row for row in rows if not is_current(row))]
    newest = [row for row in newest if not members or _names(row) & members.keys()]
    alike: dict[str, dict[str, dict[int, Row]]] = {}
    for row in newest:
        if is_current(row) and trials in (None, int(row["trials"])):
            alike.setdefault(_way(row), {}).setdefault(_member_name(row), {})[row["seed"]] = row
    found = max(alike.values(), key=len, default={})
    seeds = _seeds_of_most(found)
    found = {name: found[name] for name in sorted(found) if set(seeds) <= found[name].keys()}
    left_out = _left_out(home, newest, found, seeds)
    kept = {name for runs in found.values() for row in runs.values() for name in _names(row)}
    if lost := [name for name in members if name not in kept]:
        own = [row for row in newest if lost[0] in _names(row)]
        raise InputError(
            f"{lost[0]} cannot be a member beside {', '.join(found) or 'the others'}: it "
            f"{left_out[_member_name(own[-1])]}; run all of them alike, with one command for each token rule, such as: "
            f"{_command_of(dataset, [members[lost[0]][0]], every, protocol, trials, members[lost[0]][1])}"
        )
    if len(found) < 2:
        raise InputError(
            f"an ensemble needs at least two methods that were run alike on {dataset} under the {protocol} protocol, "
            f"got {', '.join(found) or 'none'}; run some with: "
            f"{_command_of(dataset, ['tfidf', 'nb-svm'], every, protocol, trials)}"
        )
    asked = next(iter(next(iter(found.values())).values()))["request"]
    of = ", ".join(found)
    ways = [catalogue.spelled(catalogue.ENSEMBLE, {"of": of} | _weights(way)) for way in LONGEST_FIRST]
    request = Request(**asked | {"methods": ways, "seeds": seeds, "rule": None})
    return Candidates(BenchmarkRequest(**{**vars(request), "name": "ensemble"}), found, left_out)


def _command_of(
    dataset: str,
    methods: Sequence[str],
    rows: Sequence[Row],
    protocol: str,
    trials: int | None,
    rule: str | None = None,
) -> str:
    others = {"--rule": rule, "--trials": trials}
    return " ".join(
        [
            command_to_run([dataset], methods, rows, protocol),
            *(f"{k} {v}" for k, v in others.items() if v is not None),
        ]
    )


def _weights(scheme: str) -> dict[str, str]:
    return {} if scheme == SCHEMES[0] else {"weights": scheme}


def _may_decide(row: Row) -> bool:
    """Tell whether a run is of a method of the catalogue, whose out-of-fold scores can be made."""
    try:
        entry = catalogue.method(catalogue.parse_method(row["method"])[0])
    except InputError:
        return False
    return not (entry.is_file or entry.is_own or entry.is_ensemble)


def _names(row: Row) -> set[str]:
    """Return what a run can be asked for by: its method, and that with its token rule, be it the data set's own."""
    rule = row["request"].get("rule") or _own_rule(row)
    return {row["method"], ensemble.spelled([(row["method"], rule)])}


def _member_name(row: Row) -> str:
    rule = row["request"].get("rule")
    return ensemble.spelled([(row["method"], None if rule == _own_rule(row) else rule)])


def _own_rule(row: Row) -> str | None:
    """Return the token rule that a run has unasked; that of the run where none matters, or its method is no more."""
    asked = row["request"].get("rule")
    try:
        if reads_texts_alone(row["method"]):
            return asked
        return own_rule(Request(**row["request"]), row["dataset"], row["method"])
    except InputError:
        return asked


def _way(row: Row) -> str:
    return json.dumps({name: row["request"].get(name) for name in SHARED})


def _left_out(
    home: Path, rows: Sequence[Row], found: Mapping[str, Mapping[int, Row]], seeds: Sequence[int]
) -> dict[str, str]:
    """Return what of these runs is no member of those found, and why: "ran ..."."""
    way = next((_way(row) for runs in found.values() for row in runs.values()), "")
    reasons: dict[str, str] = {}
    for name in sorted({_member_name(row) for row in rows} - found.keys()):
        own = [row for row in rows if _member_name(row) == name]
        current = [row for row in own if is_current(row)]
        if not current:
            reasons[name] = f"ran, and {changed(home, own[-1])}"
        elif not (alike := [row["seed"] for row in current if _way(row) == way]):
            reasons[name] = OTHERWISE
        else:
            ran, needed = (", ".join(map(str, sorted(which))) for which in (alike, seeds))
            reasons[name] = f"ran with seed {ran}, where the others share {needed}"
    for row in rows:
        if way and is_current(row) and (name := _member_name(row)) in found and _way(row) != way:
            tuned = (
                f"{counted(int(row['trials']), 'trial')}, {row['request'].get('probe') or 'its own probe'}"
            )
            reasons[f"{name} ({tuned})"] = OTHERWISE
    return reasons


def _seeds_of_most(found: Mapping[str, Mapping[int, Row]]) -> list[int]:
    """Return the seeds that all those share who ran the seed that most ran, the lowest of several such."""
    counts: dict[int, int] = {}
    for seed in (seed for runs in found.values() for seed in runs):
        counts[seed] = counts.get(seed, 0) + 1
    if not counts:
        return [0]
    first = min(counts, key=lambda seed: (-counts[seed], seed))
    return sorted(set.intersection(*(set(runs) for runs in found.values() if first in runs)))


@dataclass(frozen=True)
class Contribution:
    """A member: its weight by way to weigh, and in fractions its quality out of fold, alone and of the rest without it.

    `without` is that of greedy selection. `test` is its test figure, `calibration` on test documents log loss, Brier
    score and calibration error of its probabilities, by what was learned out of fold.
    """

    member: str
    weights: Mapping[str, float]
    quality: float
    without: float
    test: float
    calibration: Mapping[str, float]


@dataclass(frozen=True)
class Way:
    """One way to weigh the members: quality out of fold, of documents the weights were not learned from, and on test.

    `against` is the paired test against the best member.
    """

    scheme: str
    method: str
    cross_fitted: float
    test: float
    against: PairedTest


@dataclass(frozen=True)
class Ensembles:
    """The ensembles of some runs on one data set: means over the seeds. `best` is the member of `best_of`.

    `chosen` is the way to weigh that is best on training documents that its weights were not learned from. `left_out`
    is that of `Candidates`. `moves_border`: of two classes a member that counts has a calibration with an offset.
    """

    dataset: str
    metric: str
    seeds: Sequence[int]
    best: Contribution
    members: Sequence[Contribution]
    ways: Sequence[Way]
    left_out: Mapping[str, str]
    moves_border: bool = False

    @property
    def chosen(self) -> Way:
        """The way that training documents speak for, of equals the first of SCHEMES."""
        return max(self.ways, key=lambda way: round(way.cross_fitted, 6))

    @property
    def verdict(self) -> str:
        """Whether the ensemble is better than its best member, by more than chance, and than each on test documents."""
        way, factor = self.chosen, scale(self.metric)
        n_tied = sum(round(one.quality, 6) == round(self.best.quality, 6) for one in self.members)
        tied = f" (of {n_tied} that are equal the best on test documents)" if n_tied > 1 else ""
        head = (
            f"{self.dataset}: training documents choose {way.scheme} weights and {self.best.member} as the best "
            f"member{tied}. The ensemble's {heading(self.metric)} is {factor * way.test:.2f}, that member's "
            f"{factor * self.best.test:.2f}"
        )
        above = max(self.members, key=lambda one: one.test)
        tail = f" On test documents {above.member} alone has {factor * above.test:.2f}."
        tail = tail if above is not self.best and above.test > way.test else ""
        gap, p = way.against.difference, way.against.p
        span = f"{factor * gap.value:+.2f}, 95 % interval {factor * gap.low:+.2f} .. {factor * gap.high:+.2f}"
        if p >= LEVEL:
            return f"{head} ({span}): no more than chance explains (p = {p:.2g}).{tail}"
        better = "better" if gap.value > 0 else "worse"
        return f"{head} ({span}): {better} by more than chance (p = {p:.2g}).{tail}"


def ensembles(home: Path, given: Candidates, rows: Sequence[Row]) -> Ensembles:
    """Return what became of the ensembles, whose finished `rows` have a key each."""
    recorded = {row["key"]: row for row in Index(home).rows()}
    rows = [recorded[row["key"]] for row in rows]
    metric = "micro_f1" if is_of_several_labels(rows[0]["metrics"]) else "accuracy"
    by_way = {way: [row for row in rows if _scheme(row) == way] for way in SCHEMES}
    store = Store(home / "store")
    cells = {way: [plan(Request(**row["request"]))[0] for row in own] for way, own in by_way.items()}
    told = {
        way: [store.open(cell.references["tune"]).json("ensemble") for cell in own]
        for way, own in cells.items()
    }
    made = cells["greedy"]
    corpora = {cell.references["ingest"].key: cell.references["ingest"] for cell in made}
    targets = {key: read_targets(store.open(corpus), "test") for key, corpus in corpora.items()}
    members = [
        Contribution(
            member=name,
            weights={way: _mean(one["members"][place]["weight"] for one in told[way]) for way in SCHEMES},
            quality=_mean(one["members"][place]["quality"] for one in told["greedy"]),
            without=_mean(one["members"][place]["without"] for one in told["greedy"]),
            test=_mean(given.members[name][seed]["metrics"][metric] for seed in given.seeds),
            calibration=_calibration(store, made, targets, place, told["greedy"]),
        )
        for place, name in enumerate(given.members)
    ]
    best = best_of(members)
    alone = Entrant(best.member, {seed: given.members[best.member][seed] for seed in given.seeds})
    ways = []
    for way, own in by_way.items():
        together = Entrant(f"ensemble, {way}", {row["seed"]: row for row in own})
        (tested,) = pairs(home, str(own[0]["dataset"]), [together, alone], metric)
        score = _mean(one["cross_fitted"] for one in told[way])
        test = _mean(row["metrics"][metric] for row in own)
        ways.append(Way(way, str(own[0]["method"]), score, test, tested))
    moves_border = any(
        one["offset"] and one["weight"] and not about["several_labels"]
        for own in told.values()
        for about in own
        for one in about["members"]
    )
    dataset = str(rows[0]["dataset"])
    return Ensembles(dataset, metric, given.seeds, best, members, ways, given.left_out, moves_border)


def best_of(members: Sequence[Contribution]) -> Contribution:
    """Return the member that is best out of fold, of equals the hardest to beat: the best on test documents."""
    return max(members, key=lambda one: (round(one.quality, 6), one.test))


def _calibration(
    store: Store,
    cells: Sequence[Cell],
    targets: Mapping[str, Any],
    place: int,
    told: Sequence[Mapping[str, Any]],
) -> dict[str, float]:
    """Return log loss, Brier score and calibration error of a member on test documents, means over seeds.

    targets: those of the test documents, by the key of their corpus.
    """
    found: dict[str, list[float]] = {}
    for cell, about in zip(cells, told, strict=True):
        scores = store.open(cell.reference.inputs[f"member_{place + 1:02}"]).array("scores")
        indicator = ensemble.indicator_of(targets[cell.references["ingest"].key], scores.shape[1])
        shares = ensemble.weights_of(about)[1][place].probabilities(scores)
        for name, value in judged(indicator, shares, several_labels=about["several_labels"]).items():
            found.setdefault(name, []).append(value)
    return {name: _mean(values) for name, values in found.items()}


def _scheme(row: Row) -> str:
    return ensemble.scheme_of(catalogue.parse_method(row["request"]["methods"][0])[1])


def _mean(values: Any) -> float:
    listed = list(values)
    return math.fsum(listed) / len(listed)


def tables(found: Ensembles) -> list[Table]:
    """Return the ways to weigh and what each member contributes as tables."""
    factor, name = scale(found.metric), heading(found.metric)
    ways: list[list[str | Datum]] = [
        [
            Datum(way.scheme, mark="chosen" if way is found.chosen else "", is_strong=way is found.chosen),
            f"{factor * way.cross_fitted:.2f}",
            f"{factor * way.test:.2f}",
            f"{factor * way.against.difference.value:+.2f}",
            f"{way.against.p:.2g}",
        ]
        for way in found.ways
    ]
    seeds = counted(len(found.seeds), "seed")
    note = (
        "Training: out-of-fold scores of training documents, each half weighed by what the other half says. Gain "
        f"and p: against {found.best.member}, the member that is best out of fold, by paired bootstrap over test "
        f"documents, each p by itself. {seeds}. Nothing was fitted again.{_of_thresholds(found.metric)}"
    )
    if found.moves_border:
        note += (
            " Of two classes probabilities move the border between them, where out of fold that decides as many "
            "right: it can be part of the gain."
        )
    if found.left_out:
        note += f" Left out: {'; '.join(f'{name}, which {why}' for name, why in found.left_out.items())}."
    title = f"{found.dataset}, ensembles of {counted(len(found.members), 'method')}, {name}"
    first = of_texts(title, ("weights", "training", "test", "gain", "p"), ways, note)
    order = sorted(found.members, key=lambda one: (-one.weights["greedy"], -one.quality))
    rows = [
        [
            one.member,
            *(f"{one.weights[way]:.2f}" for way in SCHEMES),
            f"{factor * one.quality:.2f}",
            f"{factor * one.without:.2f}",
            f"{factor * one.test:.2f}",
            f"{one.calibration['log_loss']:.3f}",
            f"{one.calibration['brier_score']:.3f}",
            f"{100 * one.calibration['calibration_error']:.1f}",
        ]
        for one in order
    ]
    note = (
        "Weights: greedy and equal ones sum to 1 and average probabilities, stacked ones weigh log probabilities. "
        "Alone: the member's out-of-fold figure. Without: that of greedy weights when it is left out; where it has all "
        f"of it, that of the others alike.{_of_thresholds(found.metric)} "
        "Log loss (nats), Brier score, calibration error (percent): of probabilities of test documents, by "
        f"{CALIBRATED_BY}, out of fold."
    )
    second = of_texts(
        "Who contributes what", ("member", *SCHEMES, "alone", "without", "test", *CALIBRATION), rows, note
    )
    return [first, second]


def _of_thresholds(metric: str) -> str:
    """Say by what labels are given, where a document has several."""
    if metric != "micro_f1":
        return ""
    return (
        " Out of fold a label is given from probability 1/2 on, on test documents above its tuned threshold."
    )


def as_json(found: Ensembles) -> dict[str, Any]:
    """Return everything as JSON values."""
    return {
        "dataset": found.dataset,
        "metric": found.metric,
        "seeds": list(found.seeds),
        "chosen": found.chosen.scheme,
        "best_member": found.best.member,
        "verdict": found.verdict,
        "left_out": dict(found.left_out),
        "ensembles": [
            {
                "weights": way.scheme,
                "method": way.method,
                "cross_fitted": way.cross_fitted,
                "test": way.test,
                "gain": way.against.difference.value,
                "p": way.against.p,
            }
            for way in found.ways
        ],
        "members": [
            {"member": one.member, "weights": dict(one.weights), "out_of_fold": one.quality,
             "without": one.without, "test": one.test, "calibration": dict(one.calibration)}
            for one in found.members
        ],
    }  # fmt: skip
