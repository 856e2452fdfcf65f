"""Chapter five: how each number was made: protocol, seeds, settings, versions, sha256 of the data, command."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from textbench.flows.plan.request import Request
from textbench.flows.referee.ledger import LedgerEntry
from textbench.flows.report.evidence import Evidence, Row, known
from textbench.flows.results.method_names import explained, marked
from textbench.flows.results.packed import without_folders
from textbench.flows.results.runs import command_of
from textbench.flows.results.summary import settings_of
from textbench.flows.tables.table import LOCAL, NOTHING, RECORDED, Datum, Table, code
from textbench.tasks import catalogue

SHORT = 12  # digits of a key or a digest that are shown; CSV has all
HEADINGS = [
    ("dataset", "data set"), ("method", "method"), ("protocol", "protocol"), ("labels", "labels"), ("seeds", "seeds"),
    ("settings", "settings"), ("classifier", "classifier"), ("sha256", "sha256 of the data"), ("versions", "versions"),
    ("command", "command"), ("keys", "keys"),
]  # fmt: skip


def local(evidence: Evidence) -> Table:
    """Return a line for each method on each data set: what its local runs were made with."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in [*evidence.rows, *evidence.budgets]:
        labels = row["request"].get("labels") or {}
        # A curve has one seed and one way to draw: the command of a line makes all of its runs.
        curve = (labels["budget"], bool(labels.get("stratified")), row["seed"]) if labels else ()
        group = (
            row["dataset"],
            row["protocol"],
            row["method"],
            int(row["trials"]),
            settings_of(row),
            curve,
        )
        groups.setdefault(group, []).append(row)
    ordered = sorted(groups.items())
    rows = [_line(evidence, own) for _, own in ordered]
    note = (
        "One line a method and setting. The command repeats the first seed, with few labels all draws; the same "
        f"command gives the same bits.{explained(marked(own[0]) for _, own in ordered)}"
    )
    return Table("made-here", "How the local numbers were made", HEADINGS, rows, note, LOCAL, is_folded=True)


def _line(evidence: Evidence, rows: Sequence[Row]) -> list[Datum]:
    first = min(rows, key=lambda row: row["seed"])
    about = known(evidence.home, first)
    budget = first["request"].get("labels") or {}
    draws = sorted({(row["request"].get("labels") or {}).get("draw", 0) for row in rows})
    seeds = " ".join(str(seed) for seed in sorted({row["seed"] for row in rows}))
    drawn = "stratified draws" if budget.get("stratified") else "draws"
    labels = f"{budget['budget']:,}, {drawn} {' '.join(map(str, draws))}" if budget else "all"
    trials = f", best of {first['trials']} settings" if int(first["trials"]) else ""
    return [
        Datum(first["dataset"]),
        Datum(marked(first)),
        Datum(", ".join(filter(None, [first["protocol"], first.get("paper")]))),
        Datum(labels),
        Datum(seeds),
        Datum(f"{settings(rows)}{trials}"),
        Datum(first["probe"] or "the method itself"),
        digests(about.corpus["sha256"]) if about.corpus else Datum("no longer in the store"),
        Datum("no longer in the store" if about.libraries is None else _versions(about.libraries)),
        code(command_of(_without_folders(Request(**first["request"])), n_draws=draws[-1] + 1)),
        Datum(
            " ".join(row["key"][:SHORT] for row in rows), " ".join(row["key"] for row in rows), is_code=True
        ),
    ]


def _without_folders(request: Request) -> Request:
    """Return what asks for a run with the user's own files by their names alone: a report is handed on."""
    own = request.own and {**request.own, "path": PurePath(request.own["path"]).name}
    methods = []
    for text in request.methods:
        name, params = catalogue.parse_method(text)
        places = {n: PurePath(str(params[n])).name for n in ("path",) if n in params}
        methods.append(without_folders(catalogue.spelled(PurePath(name).name, dict(params) | places)))
    return replace(request, own=own, methods=methods)


def settings(rows: Sequence[Row]) -> str:
    """Return the distinct settings that runs chose, in words."""
    chosen = list(dict.fromkeys(json.dumps(row["params"], sort_keys=True) for row in rows))
    return "; ".join(
        ", ".join(f"{name} = {value}" for name, value in json.loads(one).items()) or "defaults"
        for one in chosen
    )


def digests(files: Mapping[str, str]) -> Datum:
    """Return the sha256 of the files of a data set, short for people and whole in CSV."""
    if not files:
        return Datum("no longer in the store", "")
    short = ", ".join(f"{name} {digest[:SHORT]}" for name, digest in sorted(files.items()))
    return Datum(short, " ".join(f"{name}={digest}" for name, digest in sorted(files.items())), is_code=True)


def _versions(libraries: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in libraries.items())


def recorded(entries: Sequence[LedgerEntry]) -> Table:
    """Return a line for each recorded figure: what measured.csv says of how it was made."""
    headings = [
        ("id", "claim"), ("protocol", "protocol"), ("seeds", "seeds"), ("trials", "settings tried"),
        ("params", "settings"), ("sha256", "sha256 of the data"), ("commit", "commit"), ("hardware", "hardware"),
        ("command", "command"), ("recorded", "recorded"), ("cells", "keys"),
    ]  # fmt: skip
    rows = []
    for entry in entries:
        record = entry.record
        if not record:
            continue
        files = dict(pair.split("=", 1) for pair in record["data_sha256"].split() if "=" in pair)
        rows.append([
            Datum(entry.claim.id), Datum(f"{record['protocol']}, {record['paper']}"), Datum(record["seeds"] or "-"),
            Datum(record["trials"] or "-"), _params(record["params"]), digests(files),
            Datum(record["commit"][:SHORT] + "+changes" * ("+" in record["commit"]), record["commit"], is_code=True),
            Datum(record["hardware"]), code(record["command"]), Datum(record["recorded"]),
            Datum(record["cells"] or "-", is_code=True),
        ])  # fmt: skip
    note = "From evaluation/measured.csv. The versions are those of requirements.lock at that commit."
    return Table(
        "made-recorded", "How the recorded numbers were made", headings, rows, note, RECORDED, is_folded=True
    )


def _params(text: str) -> Datum:
    """Return the settings of a record: those of each run, or one for all where they agree."""
    cells = json.loads(text or "{}")
    if not cells:
        return NOTHING
    different = list(dict.fromkeys(json.dumps(values, sort_keys=True) for values in cells.values()))
    if len(different) == 1:
        return Datum(", ".join(f"{k} = {v}" for k, v in json.loads(different[0]).items()) or "defaults", text)
    listed = (f"{run}: {', '.join(f'{k} = {v}' for k, v in values.items())}" for run, values in cells.items())
    return Datum("; ".join(listed), text)
