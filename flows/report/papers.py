"""Chapter four: what the papers claimed, what was measured, here or as the repository records it, and the verdicts."""

from collections import Counter
from collections.abc import Sequence

from textbench.evaluation.claims.verdicts import KINDS, Interval, Kind
from textbench.flows.referee.held import CLASSES, counts
from textbench.flows.referee.ledger import LedgerEntry
from textbench.flows.referee.measurement import Measurement
from textbench.flows.referee.notes import notes_on
from textbench.flows.tables.table import EMPTY, LOCAL, NOTHING, RECORDED, Datum, Table, number
from textbench.tasks.words import counted

MEANING: dict[Kind, str] = {
    "reproduced": "the published figure, as rounded, lies where a repetition may lie",
    "better than published": "it lies outside, and the measured figure is better",
    "not reproduced": "it lies outside, and the measured figure is worse",
    "undecided": "settings are not stated, the interval is wide or there is none, or tests do not tell",
    "impossible": "beyond what the test documents allow, whatever the method",
    "suspect": "the paper contradicts itself",
    "not runnable": "data licensed or lost",
    "not yet run": "it could be measured, and was not",
}


BASES = {"seeds": "mean over seeds", "documents": "no chance in it"}


def verdict_counts(entries: Sequence[LedgerEntry]) -> Table:
    """Return how many claims of each paper have each verdict, and apart from them how many rates of classes."""
    found = counts(entries)
    rates = found.pop(CLASSES, Counter())
    headings = [(name, name) for name in ("verdict", *found, "all", CLASSES, "meaning")]
    rows = []
    for kind in KINDS:
        of_kind = [of_paper[kind] for of_paper in found.values()]
        n = sum(of_kind)
        rows.append(
            [
                Datum(kind),
                *map(_count, of_kind),
                Datum(str(n), n, is_strong=True),
                _count(rates[kind]),
                Datum(MEANING[kind]),
            ]
        )
    of_all = [of_paper.total() for of_paper in found.values()]
    rows.append([Datum("all"), *map(_count, [*of_all, sum(of_all), rates.total()]), EMPTY])
    note = "The rule of the verdicts is a page of its own, docs/verdicts.md; nothing is judged by hand."
    return Table("verdicts", "Verdicts on the published figures", headings, rows, note)


def _count(n: int) -> Datum:
    return Datum(str(n), n)


def ledger(entries: Sequence[LedgerEntry]) -> Table:
    """Return every claim beside what was measured, and its verdict with the reason."""
    headings = [
        ("id", "claim"), ("paper", "paper"), ("published", "published"), ("measured", "measured"), ("low", "from"),
        ("high", "to"), ("basis", "what was measured"), ("source", "whose"), ("verdict", "verdict"),
        ("reason", "reason"),
    ]  # fmt: skip
    note = (
        "Percent unless the claim says otherwise. A repetition of what was measured may lie between the two columns "
        "beside it. A claim that orders methods has pairs instead of a figure."
    )
    rows = [_line(entry) for entry in entries]
    return Table(
        "claims", "Every published figure", headings, rows, note, filters=("paper", "verdict", "source")
    )


def origins(entries: Sequence[LedgerEntry]) -> Table:
    """Return, of the figures whose source or whose method is in doubt, what is known of both, in the ledger's notes."""
    notes = {note.about: note for entry in entries for note in notes_on(entry.claim.id)}
    rows = [
        [Datum(about), Datum(note.origin or "-"), Datum(note.certainty or "-")]
        for about, note in notes.items()
        if note.origin or note.certainty
    ]
    headings = [
        ("about", "claims"),
        ("origin", "where the figures come from"),
        ("certainty", "how sure the method is"),
    ]
    said = "What else is known of a claim: textbench claims --explain ID."
    return Table("origins", "Where figures come from", headings, rows, said)


def _line(entry: LedgerEntry) -> list[Datum]:
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
        *_measured(found, entry.verdict.allowed, max(2, len(claim.text.partition(".")[2]) if printed else 0)),
        Datum(source or "-", source),
        Datum(entry.verdict.kind, is_strong=True),
        Datum(entry.verdict.reason),
    ]


def _measured(found: Measurement | None, allowed: Interval | None, places: int) -> list[Datum]:
    """Return the figure and where the paper's may lie, to as many places as it is printed, two at least."""
    if found is None:
        return [NOTHING] * 4
    if found.comparisons:
        return [Datum(counted(len(found.comparisons), "pair"), ""), NOTHING, NOTHING, Datum("paired tests")]
    ends = (allowed.low, allowed.high) if allowed else (None, None)
    return [
        *(number(value, places) for value in (found.value, *ends)),
        Datum(BASES.get(found.basis, found.basis)),
    ]
