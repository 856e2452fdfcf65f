"""Published figures beside measured ones: those that are judged as they are, and how many have which verdict."""

from collections import Counter
from collections.abc import Sequence

from textbench.evaluation.claims.verdicts import Kind
from textbench.flows.plots.published import Held
from textbench.flows.referee.ledger import LedgerEntry
from textbench.flows.referee.measurement import Measurement
from textbench.flows.results.metric_names import HEADINGS

PLAIN = ("seeds", "documents")  # a figure judged as it is, not as a difference or a ratio


def held(entries: Sequence[LedgerEntry]) -> dict[tuple[str, ...], list[Held]]:
    """Return the methods' figures in percent that were measured as they were published.

    They go by paper, place in it, data set and metric, as people read it.
    """
    found: dict[tuple[str, ...], list[Held]] = {}
    for entry in entries:
        claim, measured = entry.claim, entry.measured
        if measured is None or measured.basis not in PLAIN or claim.unit != "percent" or claim.class_rate:
            continue
        if one := beside(claim.method, entry, measured):
            metric = HEADINGS.get(claim.metric_here or "", claim.metric)
            place = (claim.paper, claim.place, claim.dataset_here or claim.dataset, metric)
            found.setdefault(place, []).append(one)
    return found


def beside(label: str, entry: LedgerEntry, measured: Measurement | None) -> Held | None:
    """Return a claim's figure beside what was measured; None where either has none."""
    printed = entry.claim.printed
    if printed is None or measured is None or measured.value is None:
        return None
    return Held(label, printed.value, measured.value, measured.low, measured.high, entry.verdict.kind)


def counts(entries: Sequence[LedgerEntry]) -> dict[str, Counter[Kind]]:
    """Return by paper how many of its claims have each verdict."""
    found: dict[str, Counter[Kind]] = {}
    for entry in entries:
        found.setdefault(entry.claim.paper, Counter())[entry.verdict.kind] += 1
    return found
