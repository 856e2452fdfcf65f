"""Chapter five: the audit of each data set, local where its documents are in the store, else as recorded."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from textbench.evaluation.metrics.multilabel import is_of_several_labels
from textbench.flows.referee import recorded_audits
from textbench.flows.report.evidence import Evidence, Row, published_name
from textbench.flows.results import leakage
from textbench.flows.results.metric_names import KNOWN, heading, scale
from textbench.flows.results.runs import Run
from textbench.flows.tables.table import LOCAL, RECORDED, Datum, Table, number, slug
from textbench.tasks import InputError, audit
from textbench.tasks.storage.store import Store


def local(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """Return the audits of the data sets of local runs, as far as they are stored; `leaks` are of the best run."""
    found: dict[str, dict[str, Any]] = {}
    for row in sorted(
        [*evidence.rows, *evidence.budgets], key=lambda row: -row["metrics"].get("accuracy", 0.0)
    ):
        if row["dataset"] not in found:
            stored = _stored(evidence.home, row)
            if stored is not None:
                found[row["dataset"]] = {"audit": stored, "leaks": []}
        own = found.get(row["dataset"])
        if (
            own
            and not own["leaks"]
            and not is_of_several_labels(row["metrics"])
            and not row["request"].get("labels")
        ):
            own["leaks"] = _leaks(evidence.home, row)
    return found


def _stored(home: Path, row: Row) -> dict[str, Any] | None:
    """Return the audit of a run's documents, None where it or the run's result is no longer in the store."""
    store = Store(home / "store")
    try:
        reference = audit.reference(Run(home, row).reference.inputs["corpus"])
    except InputError:
        return None
    return dict(store.open(reference).json("audit")) if store.has(reference) else None


def _leaks(home: Path, row: Row) -> list[str]:
    """Return what the flaws of the data set are worth to a run, in sentences; none where its result is gone."""
    run, store = Run(home, row), Store(home / "store")
    try:
        parts = [run.reference, run.reference.inputs["corpus"]]
        if not all(map(store.has, parts)):
            return []
        lines = leakage.in_words(leakage.costs(run), row["metrics"]["accuracy"])
    except InputError:
        return []
    accuracy = 100 * row["metrics"]["accuracy"]
    measured = f"{row['method']} seed {row['seed']}, {row['protocol']} protocol, accuracy {accuracy:.2f}"
    return [f"Measured on {measured}.", *lines] if lines else []


def known(evidence: Evidence, *, others: bool) -> dict[str, dict[str, Any]]:
    """Return the audits to show, local before recorded, each with its `source`; `ceilings` by metric are in `audit`.

    They are of the data sets that were used here, with `others` also of all whose audit is recorded.
    """
    used = {row["dataset"]: published_name(row) for row in [*evidence.rows, *evidence.budgets]}
    ours = {name: one | {"source": LOCAL} for name, one in local(evidence).items()}
    kept = {name: one | {"source": RECORDED} for name, one in recorded_audits.recorded().items()}
    theirs = {name: kept[published] for name, published in used.items() if published in kept}
    if others:
        theirs |= {
            name: one for name, one in kept.items() if name not in used.values() and name not in theirs
        }
    found = theirs | ours
    for name, one in found.items():
        if not one["leaks"] and name in theirs:
            found[name] = one | {"leaks": theirs[name]["leaks"]}
    return dict(sorted(found.items()))


def overview(found: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return a line a data set: documents, classes, copies across the split, classes never trained, a ceiling."""
    headings = [
        ("dataset", "data set"), ("train", "training"), ("test", "test"), ("classes", "classes"),
        ("across", "test texts also in training"), ("twice", "repeated in test"),
        ("conflicts", "documents labelled in two ways"), ("untrained", "test documents of an unseen class"),
        ("empty", "empty test texts"), ("ceiling", "ceiling, %"), ("source", "whose"),
    ]  # fmt: skip
    rows = []
    for name, one in found.items():
        of = one["audit"]
        metric = "accuracy" if "accuracy" in of["ceilings"] else "micro_f1"
        counts = [
            of["documents"]["train"], of["documents"]["test"],
            of["classes"]["train"] + of["classes"]["test"] - of["classes"]["both"],
            of["duplicates"]["across"], of["duplicates"]["test"], of["conflicts"]["documents"],
            of["untrained"]["documents"], of["empty_texts"]["test"],
        ]  # fmt: skip
        rows.append([
            Datum(name, link=slug(f"audit-{name}")), *(Datum(f"{n:,}", n) for n in counts),
            number(of["ceilings"][metric], scale=100), Datum(one["source"]),
        ])  # fmt: skip
    note = "The ceiling is the best accuracy (micro-F1 where documents have several labels) that any method can reach."
    return Table("audits", "Audit of every data set", headings, rows, note)


def ceilings(name: str, one: Mapping[str, Any]) -> Table:
    """Return the ceilings of a data set."""
    rows = [
        [Datum(heading(metric)), number(value, scale=scale(metric)), Datum(_side(metric))]
        for metric, value in one["audit"]["ceilings"].items()
    ]
    headings = [("metric", "metric"), ("ceiling", "ceiling"), ("side", "reached at best")]
    note = (
        "Percent; coverage error in labels. For methods that give equal texts equal answers and know only "
        "trained classes."
    )
    return Table(
        slug(f"ceilings-{name}"), f"Ceilings of {name}", headings, rows, note, one["source"], is_folded=True
    )


def _side(metric: str) -> str:
    return "at most" if metric not in KNOWN or KNOWN[metric].higher_is_better else "at least"


def in_words(one: Mapping[str, Any]) -> Sequence[str]:
    """Return what an audit found as sentences."""
    return [*leakage.audit_in_words(one["audit"]), *one["leaks"]]


def record(evidence: Evidence) -> int:
    """Record the stored audits of all known data sets, with what flaws are worth to local runs; return how many."""
    leaks = {name: one["leaks"] for name, one in local(evidence).items()}
    return recorded_audits.record(Store(evidence.home / "store"), leaks)
