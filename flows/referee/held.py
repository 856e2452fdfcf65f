"""Published figures beside measured ones: those that are judged as they are, and how many have which verdict.

Rates of single classes are counted apart from the figures and sentences of a paper, and a figure that is printed in one
with another (`Claim.twin`) is not counted beside it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from textbench.evaluation.claims.published import HEADLINES
from textbench.evaluation.claims.verdicts import KINDS, Kind
from textbench.flows.plots.published import Held
from textbench.flows.referee.ledger import LedgerEntry
from textbench.flows.referee.measurement import Measurement
from textbench.flows.results.metric_names import HEADINGS
from textbench.tasks.words import counted

CLASSES = "rates of classes"
PLAIN = ("seeds", "documents")  # a figure judged as it is, not as a difference or a ratio


def held(entries: Sequence[LedgerEntry]) -> dict[tuple[str, ...], list[Held]]:
    """Return the methods' figures in percent that were measured as they were published.

    They go by paper, place in it, data set and metric, as people read it, each between where a repetition may lie.
    """
    found: dict[tuple[str, ...], list[Held]] = {}
    for entry in entries:
        claim, measured = entry.claim, entry.measured
        if measured is None or measured.basis not in PLAIN or claim.unit != "percent":
            continue
        if claim.class_rate or claim.twin:
            continue
        if one := beside(claim.method, entry, measured):
            metric = HEADINGS.get(claim.metric_here or "", claim.metric)
            place = (claim.paper, claim.place, claim.dataset_here or claim.dataset, metric)
            reach = entry.verdict.allowed
            low, high = (reach.low, reach.high) if reach else (None, None)
            found.setdefault(place, []).append(replace(one, low=low, high=high))
    return found


def beside(label: str, entry: LedgerEntry, measured: Measurement | None) -> Held | None:
    """Return a claim's figure beside what was measured, with its own interval; None where either has none."""
    printed = entry.claim.printed
    if printed is None or measured is None or measured.value is None:
        return None
    return Held(label, printed.value, measured.value, measured.low, measured.high, entry.verdict.kind)


def counts(entries: Sequence[LedgerEntry]) -> dict[str, Counter[Kind]]:
    """Return by paper how many of its figures and sentences have each verdict, and last how many rates of classes."""
    found: dict[str, Counter[Kind]] = {}
    rates: dict[str, Counter[Kind]] = {}
    for entry in entries:
        if not entry.claim.twin:
            of_kind = rates if entry.claim.class_rate else found
            name = CLASSES if entry.claim.class_rate else entry.claim.paper
            of_kind.setdefault(name, Counter())[entry.verdict.kind] += 1
    return found | rates


def totals(entries: Sequence[LedgerEntry]) -> list[str]:
    """Return in words how many figures and sentences have each verdict, and apart how many rates of single classes."""
    found = counts(entries)
    rates = found.pop(CLASSES, Counter())
    lines = []
    for nouns, of_kind in (
        (("claim",), sum(found.values(), Counter())),
        (("rate of a class", CLASSES), rates),
    ):
        if of_kind:
            listed = ", ".join(f"{of_kind[kind]} {kind}" for kind in KINDS if of_kind[kind])
            lines.append(f"{counted(of_kind.total(), *nouns)}: {listed}.")
    return lines


def headlines(entries: Sequence[LedgerEntry]) -> list[str]:
    """Return what became of what each paper says of its own method first, a line each."""
    found = {entry.claim.id: entry for entry in entries}
    lines = []
    for paper, ids in HEADLINES.items():
        for entry in (found[id_] for id_ in ids if id_ in found):
            claim = entry.claim
            where = claim.dataset_here or claim.dataset
            said = f"{claim.method}, {claim.metric} on {where}, {claim.text}" if claim.printed else claim.text
            lines.append(f"{paper}: {said}: {entry.verdict.kind}")
    return lines
