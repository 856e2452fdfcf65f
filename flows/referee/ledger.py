"""The ledger of claims: every published figure beside what was measured here, and the verdict by rule.

Fresh figures come from the results folder, recorded ones from `evaluation/measured.csv`, which keeps in the repository
what took hours to compute. They are shown apart; the fresh one is judged where there is one. The rule of the
verdicts is the page `evaluation.claims.verdicts`.
"""

import csv
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from textbench.evaluation.claims.ordering_claims import ORDERS
from textbench.evaluation.claims.published import (
    METHODS,
    PROBES,
    SECONDS,
    Claim,
    contradictions,
    published,
    read_claims,
)
from textbench.evaluation.claims.verdicts import Comparison, Verdict, settle
from textbench.evaluation.metrics.single_label import f1_of_rates
from textbench.flows.plan.request import BenchmarkRequest
from textbench.flows.referee import recorded_audits
from textbench.flows.referee.judgement import impossible, judge
from textbench.flows.referee.measurement import (
    MEGABYTES,
    SAVED,
    FaithfulRuns,
    Measurement,
    is_answered,
    is_random,
    is_timed_apart,
)
from textbench.flows.referee.recorded import with_recorded
from textbench.flows.referee.sentences import judge_sentence
from textbench.flows.results.runs import Run
from textbench.tasks import InputError, audit, catalogue, ingest
from textbench.tasks.sources import archives
from textbench.tasks.storage.definitions import PROJECT
from textbench.tasks.storage.isolate import CellError
from textbench.tasks.storage.store import Store
from textbench.tasks.tracking.tracker import CHANGED, committed

MEASURED = PROJECT / "evaluation" / "measured.csv"
COLUMNS = (
    "id", "value", "compared", "low", "high", "basis", "comparisons", "seeds", "each", "trials", "params", "protocol",
    "paper", "cells", "runs", "data_sha256", "commit", "hardware", "command", "recorded",
)  # fmt: skip
N_SEEDS = 5  # of a method that draws random numbers, as many as SCDV's authors ran
N_TIMED = 3
MACRO_RATES = ("macro-precision", "macro-recall")
# That make what no plain run does.
SUITES = {"scdv-2017": "scdv", "compressive-features-2013": "compressive", "dcot-2012": "dcot"}


@dataclass(frozen=True)
class LedgerEntry:
    """A claim in the ledger: `fresh` is measured by this results folder, `recorded` is a row of measured.csv."""

    claim: Claim
    verdict: Verdict
    fresh: Measurement | None
    recorded: Measurement | None
    record: Mapping[str, str] = field(default_factory=dict, repr=False)
    corrected: float | None = None  # measured, in the definition that the claim's `corrected` has

    @property
    def measured(self) -> Measurement | None:
        """What the verdict rests on."""
        return self.fresh or self.recorded

    @property
    def is_of_changed_tree(self) -> bool:
        """Whether it was recorded by code that no commit has: the figure has to be recorded again."""
        return self.fresh is None and CHANGED in self.record.get("commit", "")

    def as_json(self) -> dict[str, Any]:
        """Return the entry as JSON values."""
        about = asdict(self.claim)
        about["published"] = self.claim.printed.value if self.claim.printed else about["text"]
        del about["text"]
        hardware = hardware_here() if self.fresh else None
        return about | {
            "verdict": self.verdict.kind,
            "reason": self.verdict.reason,
            "algebra": list(self.verdict.algebra),
            "twin": self.claim.twin,
            "corrected": {"published": self.claim.corrected, "measured": self.corrected},
            "measured": self.fresh.as_json() | {"hardware": hardware} if self.fresh else None,
            "recorded": dict(self.record) or None,
        }


def choose(prefix: str | None = None, paper: str | None = None) -> list[Claim]:
    """Return the claims of a paper, or those whose id begins with the parts of `prefix`.

    Raises InputError for names that match nothing.
    """
    claims = list(read_claims())
    if paper is not None:
        catalogue.pick("paper", paper, dict.fromkeys(claim.paper for claim in claims))
        claims = [claim for claim in claims if claim.paper == paper]
    if prefix is not None:
        parts = prefix.rstrip("/").split("/")
        found = [claim for claim in claims if claim.id.split("/")[: len(parts)] == parts]
        if not found:
            places = dict.fromkeys(claim.id.rpartition("/")[0] for claim in claims)
            raise InputError(f"no claim's id begins with {prefix!r}; {catalogue.nearest(prefix, places)}")
        claims = found
    return claims


def ledger(home: Path, claims: Sequence[Claim]) -> list[LedgerEntry]:
    """Return the entries of claims. The audits that the ceilings come from are made if they are missing."""
    every = {claim.id: claim for claim in read_claims()}
    suspect, evidence = contradictions(every.values()), _Evidence(home, every)
    ceilings = {name: _ceilings(home, name) for name in dict.fromkeys(c.dataset_here for c in claims) if name}
    entries = []
    for claim in claims:
        fresh, recorded, missing = evidence.of(claim)
        measured = fresh or recorded
        if measured:
            judged = judge(claim, measured, every)
        else:
            judged = judge_sentence(claim, list(every.values()), evidence.best)
        verdict = settle(
            impossible=impossible(claim, ceilings.get(claim.dataset_here or "", {})),
            suspect=suspect.get(claim.id),
            not_runnable=claim.obstacle,
            measured=judged,
            missing=missing or _missing(claim),
        )
        record = evidence.records.get(claim.id, {})
        corrected = _corrected(claim, every, evidence.best)
        entries.append(LedgerEntry(claim, verdict, fresh, recorded, record, corrected))
    return entries


def _corrected(
    claim: Claim, claims: Mapping[str, Claim], best: Callable[[Claim], Measurement | None]
) -> float | None:
    """Return the harmonic mean of the macro rates measured for a claim's row, the mean over seeds; None without."""
    if claim.corrected is None:
        return None
    both = [best(claims[claim.id.replace(claim.metric, rate)]) for rate in MACRO_RATES]
    precision, recall = both
    if precision is None or recall is None or precision.value is None or recall.value is None:
        return None
    seeds = precision.each.keys() & recall.each.keys()
    if not seeds:
        return f1_of_rates(precision.value, recall.value)
    return sum(f1_of_rates(precision.each[seed], recall.each[seed]) for seed in sorted(seeds)) / len(seeds)


Found = tuple[Measurement | None, Measurement | None, str | None]


class _Evidence:
    """What is there on each claim: measured in a results folder, and recorded."""

    def __init__(self, home: Path, claims: Mapping[str, Claim]) -> None:
        self.records, self._claims = read_measured(), claims
        self._results = FaithfulRuns(home)
        self._known: dict[str, Found] = {}

    def of(self, claim: Claim) -> Found:
        """Return what is fresh, what is recorded, and why there is nothing fresh where its files are gone."""
        if claim.id not in self._known:
            self._known[claim.id] = self._find(claim)
        return self._known[claim.id]

    def _find(self, claim: Claim) -> Found:
        fresh, missing, record = None, None, self.records.get(claim.id)
        try:
            fresh = self._results.measure(claim, self._claims)
            if fresh and record:
                fresh = with_recorded(fresh, record)
        except (InputError, CellError, OSError) as error:  # its predictions are gone
            missing = " ".join(str(error).split())
        return fresh, _recorded(claim, record, self._claims) if record else None, missing

    def best(self, claim: Claim) -> Measurement | None:
        """Return what a claim is judged by, the fresh before the recorded."""
        fresh, recorded, _ = self.of(claim)
        return fresh or recorded


def _ceilings(home: Path, dataset: str) -> Mapping[str, float]:
    """Return a data set's ceilings by metric: from its audit, or without its archive from the recorded one."""

    store, reference = Store(home / "store"), audit.reference(ingest.reference(dataset))
    if not store.has(reference) and not archives.are_here(catalogue.dataset(dataset).load().SHA256):
        known = recorded_audits.recorded().get(dataset)
        return dict(known["audit"]["ceilings"]) if known else {}
    try:
        return dict(store.open(reference).json("audit")["ceilings"])
    except (CellError, OSError):
        return {}


def _missing(claim: Claim) -> str:
    """Say why nothing was measured."""
    how = f"run it with: {_command(claim)}"
    if claim.id in ORDERS or (is_answered(claim) and claim.method_here):
        return how
    if claim.dataset_here is None:
        return f"there is no data set here for {claim.dataset}"
    if not _is_here(claim.method_here or ""):
        return f"there is no method {claim.method_here} yet"
    if claim.metric_here or claim.class_rate:
        return how
    if claim.metric in (*SECONDS, MEGABYTES, SAVED):
        return how
    return f"no run measures {claim.metric.partition(':')[0]} by itself"


def _command(claim: Claim, options: str = "") -> str:
    """Return the command that measures a claim: its paper's suite, where no plain run does."""
    if _is_of_suite(claim):
        return f"textbench run {SUITES[claim.paper]}"
    return f"textbench claims {claim.id} --run{options}"


def _is_of_suite(claim: Claim) -> bool:
    return claim.id in ORDERS or is_answered(claim)


def left_to_suites(entries: Iterable[LedgerEntry]) -> dict[str, list[str]]:
    """Return the claims that `requests` leaves out, as no plain run measures them: ids by the suite that does."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        if not (entry.fresh or entry.claim.obstacle) and _is_of_suite(entry.claim):
            found.setdefault(SUITES[entry.claim.paper], []).append(entry.claim.id)
    return found


def requests(entries: Iterable[LedgerEntry], trials: int = 0) -> list[BenchmarkRequest]:
    """Return what has to be run for claims without a fresh figure, in the order to run it.

    One seed of every method first, then the other seeds of those that draw random numbers, then what is timed. Methods
    are tuned over `trials` settings.
    """
    places: dict[tuple[Any, ...], list[str]] = {}
    for entry in entries:
        claim, is_timed = entry.claim, entry.claim.metric in SECONDS
        rows = entry.fresh.rows if entry.fresh else ()
        have = {row["seed"] for row in rows if int(row["trials"]) >= trials}
        for method in _needed(claim):
            n_seeds = N_TIMED if is_timed else N_SEEDS if is_random(METHODS[method]) else 1
            if not set(range(n_seeds)) <= have:
                place = (is_timed, claim.dataset_here, claim.source, PROBES.get(method))
                places.setdefault(place, []).append(METHODS[method])
    found = []
    for part in ("one seed", "more seeds", "timed"):
        for (is_timed, dataset, paper, probe), methods in places.items():
            chosen = [m for m in dict.fromkeys(methods) if part != "more seeds" or is_random(m)]
            seeds = {"one seed": [0], "more seeds": list(range(1, N_SEEDS)), "timed": list(range(N_TIMED))}[
                part
            ]
            if is_timed == (part == "timed") and chosen:
                asked = {"name": "claims", "probe": probe, "paper": paper, "timed": is_timed}
                found.append(BenchmarkRequest([dataset], chosen, seeds, "faithful", trials, **asked))
    return found


def _needed(claim: Claim) -> list[str]:
    """Return the methods, in the paper's spelling, whose runs measure a claim; none where no plain run does."""
    if claim.obstacle or claim.dataset_here is None:
        return []
    if claim.class_rate:
        needed = [claim.method]
    elif claim.metric in SECONDS:
        judged = published(claim, {other.id: other for other in read_claims()})
        needed = [claim.method, judged[1]] if judged and judged[1] else []
    else:
        needed = [claim.method] if claim.metric_here or claim.metric in (MEGABYTES, SAVED) else []
    return needed if all(_is_here(METHODS[method]) for method in needed) else []


def _is_here(method: str) -> bool:
    return catalogue.parse_method(method)[0] in catalogue.methods()


def read_measured() -> dict[str, dict[str, str]]:
    """Return the rows of measured.csv by claim id."""
    with MEASURED.open(encoding="utf-8", newline="") as stream:
        return {row["id"]: row for row in csv.DictReader(stream)}


def _recorded(claim: Claim, row: Mapping[str, str], claims: Mapping[str, Claim]) -> Measurement:
    numbers = {name: float(row[name]) if row[name] else None for name in ("value", "compared", "low", "high")}
    judged = published(claim, claims)
    is_once = judged is not None and judged[1] is not None and not is_timed_apart(claim, judged[1])
    was_difference = row["basis"].startswith("difference")  # as the rate of a class was once recorded
    if is_once or was_difference:
        numbers |= {"low": None, "high": None}
    if claim.class_rate:
        numbers["compared"] = numbers["value"]
    each = {int(seed): value for seed, value in json.loads(row["each"] or "{}").items()}
    pairs = [Comparison(*pair) for pair in json.loads(row["comparisons"] or "[]")]
    return Measurement(row["basis"], **numbers, comparisons=pairs, each=each)  # type: ignore[arg-type]


def record(home: Path, entries: Iterable[LedgerEntry]) -> int:
    """Write every fresh figure into measured.csv, in place of the claim's older row, and return how many there were.

    Raises InputError where the file cannot be written, and for code that no commit has.
    """
    records, commit = read_measured(), committed(MEASURED)
    fresh = [entry for entry in entries if entry.fresh]
    records |= {
        entry.claim.id: _record(home, entry.claim, entry.fresh, commit) for entry in fresh if entry.fresh
    }
    order = {claim.id: place for place, claim in enumerate(read_claims())}
    temporary = MEASURED.with_name(f".{MEASURED.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(sorted(records.values(), key=lambda row: order.get(row["id"], len(order))))
        temporary.replace(MEASURED)
    except OSError as error:
        raise InputError(f"{MEASURED} cannot be written: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)
    return len(fresh)


def _record(home: Path, claim: Claim, found: Measurement, commit: str) -> dict[str, str]:

    def text(value: float | None) -> str:
        return "" if value is None else repr(round(value, 6))

    rows = found.rows
    row = next(row for row in rows if "hardware" not in row)  # made here, not recorded
    of_piece = row.get("documents")
    corpus = Store(home / "store").open(of_piece) if of_piece else Run(home, row).open("corpus")
    digests = corpus.json("corpus")["sha256"]
    pairs = [
        [
            c.pair,
            round(c.difference, 6),
            round(c.p, 6),
            c.may_tie,
            c.detectable and round(c.detectable, 6),
            c.is_tested,
        ]
        for c in found.comparisons
    ]
    trials = sorted({int(row["trials"]) for row in rows})
    options = f" --trials {trials[-1]}" if trials[-1] else ""
    cells = {f"{row['method']} seed {row['seed']}": row["params"] for row in rows} if not pairs else {}
    each = {str(seed): round(value, 6) for seed, value in found.each.items()}
    here = hardware_here()
    return {
        "id": claim.id,
        "value": text(found.value),
        "compared": text(found.compared),
        "low": text(found.low),
        "high": text(found.high),
        "basis": found.basis,
        "comparisons": json.dumps(pairs) if pairs else "",
        "seeds": " ".join(map(str, sorted({row["seed"] for row in rows}))),
        "each": json.dumps(each) if each else "",
        "trials": " ".join(map(str, trials)),
        "params": json.dumps(cells, sort_keys=True),
        "protocol": rows[0]["protocol"],
        "paper": rows[0].get("paper") or "",
        "cells": " ".join(row["key"][:12] for row in rows),
        "runs": " ".join(row["run_id"] or "-" for row in rows),
        "data_sha256": " ".join(f"{name}={digest}" for name, digest in sorted(digests.items())),
        "commit": commit,
        "hardware": "; ".join(dict.fromkeys(row.get("hardware", here) for row in rows)),
        "command": _command(claim, f"{options} --record"),
        "recorded": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def hardware_here() -> str:
    """Return this machine in words: processor, cores, memory."""
    import platform

    import psutil

    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        model = next(
            (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model
        )
    except OSError:  # not Linux
        pass
    memory = psutil.virtual_memory().total / 2**30
    return f"{model}, {psutil.cpu_count()} cores, {memory:.0f} GB"
