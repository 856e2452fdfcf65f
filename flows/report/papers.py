"""Chapter four: what the papers claimed, what was measured, here or as the repository records it, and the verdicts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textbench.evaluation.claims.verdicts import Kind
from textbench.flows.results.metric_names import HEADINGS
from textbench.flows.tables.table import LOCAL, NOTHING, RECORDED, Datum, Table, number
from textbench.flows.tables.words import counted

if TYPE_CHECKING:
    from textbench.flows.referee.ledger import Entry
    from textbench.flows.referee.measurement import Measurement

KINDS: tuple[Kind, ...] = (
    "reproduced", "better than published", "not reproduced", "undecided",
    "impossible", "suspect", "not runnable", "not yet run",
)  # fmt: skip
MEANING = {
    "reproduced": "the published figure, as rounded, lies in the measured interval",
    "better than published": "outside of the interval, and the measured figure is better",
    "not reproduced": "outside of the interval, and the measured figure is worse",
    "undecided": "the interval is wide, or there is none",
    "impossible": "beyond what the test documents allow, whatever the method",
    "suspect": "the paper contradicts itself",
    "not runnable": "data licensed or lost, or nothing here implements the method",
    "not yet run": "it could be measured, and was not",
}
PLAIN = ("seeds", "documents")  # a figure judged as it is, not as a difference or a ratio


@dataclass(frozen=True)
class Held:
    """A published figure beside the measured one, both in percent."""

    label: str
    published: float
    value: float
    low: float | None
    high: float | None
    verdict: str


def verdict_counts(entries: "Sequence[Entry]") -> Table:
    """Return how many claims of each paper have each verdict."""
    papers = list(dict.fromkeys(entry.claim.paper for entry in entries))
    found = Counter((entry.claim.paper, entry.verdict.kind) for entry in entries)
    headings = [
        ("verdict", "verdict"),
        *((paper, paper) for paper in papers),
        ("all", "all"),
        ("meaning", "meaning"),
    ]
    rows = []
    for kind in KINDS:
        counts = [found[paper, kind] for paper in papers]
        rows.append([
            Datum(kind), *(Datum(str(n), n) for n in counts), Datum(str(sum(counts)), sum(counts), is_strong=True),
            Datum(MEANING[kind]),
        ])  # fmt: skip
    totals = [sum(entry.claim.paper == paper for entry in entries) for paper in papers]
    rows.append([Datum("all"), *(Datum(str(n), n) for n in [*totals, len(entries)]), Datum("")])
    note = "The rule of the verdicts is a page of its own, evaluation/claims/verdicts.py; nothing is judged by hand."
    return Table("verdicts", "Verdicts on the published figures", headings, rows, note)


def ledger(entries: "Sequence[Entry]") -> Table:
    """Return every claim beside what was measured, and its verdict with the reason."""
    headings = [
        ("id", "claim"), ("paper", "paper"), ("published", "published"), ("measured", "measured"), ("low", "from"),
        ("high", "to"), ("basis", "interval over"), ("source", "whose"), ("verdict", "verdict"), ("reason", "reason"),
    ]  # fmt: skip
    note = (
        "Percent unless the claim says otherwise. Where the interval is of a difference or a "
        "ratio, it stands beside that: "
        "“interval over” says which. A claim that orders methods has pairs instead of a figure."
    )
    rows = [_line(entry) for entry in entries]
    return Table(
        "claims", "Every published figure", headings, rows, note, filters=("paper", "verdict", "source")
    )


def _line(entry: "Entry") -> list[Datum]:
    claim, found = entry.claim, entry.measured
    source = "" if found is None else LOCAL if entry.fresh else RECORDED
    printed, said = claim.printed, claim.id
    if printed is None:
        said = f"{claim.id}: {claim.text}"
    link = "made-recorded" if entry.record and not entry.fresh else ""
    return [
        Datum(said, claim.id, link=link),
        Datum(claim.paper),
        Datum(claim.text, printed.value) if printed else Datum("an order", ""),
        *_measured(found),
        Datum(source or "-", source),
        Datum(entry.verdict.kind, is_strong=True),
        Datum(entry.verdict.reason),
    ]


def _measured(found: "Measurement | None") -> list[Datum]:
    if found is None:
        return [NOTHING] * 4
    if found.comparisons:
        return [Datum(counted(len(found.comparisons), "pair"), ""), NOTHING, NOTHING, Datum("paired tests")]
    return [*(number(value) for value in (found.value, found.low, found.high)), Datum(found.basis)]


def held(entries: "Sequence[Entry]") -> dict[tuple[str, ...], list[Held]]:
    """Return the methods' figures in percent that were measured as they were published.

    They go by paper, place in it, data set and metric, as people read it.
    """
    found: dict[tuple[str, ...], list[Held]] = {}
    for entry in entries:
        claim, measured = entry.claim, entry.measured
        if measured is None or claim.printed is None or claim.unit != "percent" or claim.class_rate:
            continue
        if measured.basis in PLAIN and measured.value is not None:
            figures = (claim.printed.value, measured.value, measured.low, measured.high)
            metric = HEADINGS.get(claim.metric_here or "", claim.metric)
            place = (claim.paper, claim.place, claim.dataset_here or claim.dataset, metric)
            found.setdefault(place, []).append(Held(claim.method, *figures, entry.verdict.kind))
    return found
