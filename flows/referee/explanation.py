"""One claim in full: what was printed where, what was measured and how, the verdict's algebra, the ledger's notes."""

import json
from collections.abc import Iterator, Sequence

from textbench.evaluation.claims.verdicts import Comparison
from textbench.flows.referee.ledger import LedgerEntry
from textbench.flows.referee.measurement import Measurement
from textbench.flows.referee.notes import Note, notes_on

Part = tuple[str, Sequence[str]]  # a heading and the lines below it


def explain(entry: LedgerEntry) -> list[Part]:
    """Return the parts of an explanation, a heading with lines each. Raises InputError for notes that are none."""
    claim = entry.claim
    printed = claim.text if claim.printed is None else f"{claim.text} {claim.unit}"
    means = f"the mean of {claim.n_published} runs" if claim.n_published > 1 else ""
    twin = f"printed in one with {claim.twin}" if claim.twin else ""
    where = f"{claim.paper}, {claim.place}: {claim.method} on {claim.dataset}, {claim.metric}"
    made_by = f"{claim.method_here or 'no method here'} on {claim.dataset_here or 'no data set here'}"
    parts: list[Part] = [
        ("published", [printed, where, *filter(None, [means, twin, claim.note])]),
        ("protocol", [f"{claim.protocol}, of {claim.source}: {made_by}"]),
    ]
    if entry.fresh:
        parts.append(("measured here", [*_figures(entry.fresh), *_runs(entry.fresh)]))
    if entry.recorded:
        parts.append(("recorded", [*_figures(entry.recorded), *_record(entry)]))
    if claim.corrected is not None:
        parts.append(("another definition", [*_corrected(entry)]))
    if entry.verdict.algebra:
        parts.append(("interval", entry.verdict.algebra))
    parts.append(("verdict", [f"{entry.verdict.kind}: {entry.verdict.reason}"]))
    parts += [(f"note on {note.about}", [*_note(note)]) for note in notes_on(claim.id)]
    return parts


def _figures(found: Measurement) -> Iterator[str]:
    for pair in found.comparisons:
        p = f"p = {pair.p:.3g}" if pair.p else "p < 1e-6"  # six digits are recorded
        p = p if pair.is_tested else "one repetition, not tested"
        yield f"{pair.pair}: {pair.difference:+.4g}, {p}{', may tie' * pair.may_tie}{_detectable(pair)}"
    if found.value is not None:
        yield f"{found.value:.6g}"
    if found.compared is not None and found.compared != found.value:
        yield f"{found.basis}: {found.compared:.6g}"
    for seed, value in found.each.items():
        yield f"seed {seed}: {value:.6g}"


def _corrected(entry: LedgerEntry) -> Iterator[str]:
    yield (
        f"{entry.claim.corrected} {entry.claim.unit} is what the row's source printed later in its place: the harmonic "
        "mean of macro precision and macro recall"
    )
    yield "measured: nothing" if entry.corrected is None else f"measured: {entry.corrected:.6g}"


def _detectable(pair: Comparison) -> str:
    return "" if pair.detectable is None else f", would be seen from {pair.detectable:.2g}"


def _runs(found: Measurement) -> Iterator[str]:
    for row in found.rows:
        yield f"{row['method']} seed {row['seed']}: {_settings(row['params'])}, key {row['key'][:12]}"


def _record(entry: LedgerEntry) -> Iterator[str]:
    record = entry.record
    for run, params in json.loads(record["params"] or "{}").items():
        yield f"{run}: {_settings(params)}"
    for name in ("command", "commit", "hardware", "data_sha256", "recorded"):
        if record[name]:
            yield f"{name}: {record[name]}"
    if entry.is_of_changed_tree:
        yield "That is a changed tree, whose code no commit has: to be recorded again."


def _settings(params: dict[str, object]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in params.items()) or "defaults"


def _note(note: Note) -> Iterator[str]:
    yield note.text
    yield from (f"{name}: {value}" for name in ("origin", "certainty") if (value := getattr(note, name)))
    for one in note.experiments:
        yield f"{one.settings} ({one.of})"
        yield from (f"  {figure}" for figure in one.figures)
        yield from (f"  {name}: {value}" for name in ("command", "commit") if (value := getattr(one, name)))
