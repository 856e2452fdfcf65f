"""Label-budget curves that the repository records: `evaluation/curves.csv`, a line per method and budget.

A line keeps the figures of every draw, so that curves are tested in pairs from the record alone.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from textbench.flows.plan.request import Request
from textbench.flows.referee.ledger import hardware_here
from textbench.flows.report import recorded
from textbench.flows.report.evidence import Evidence, known
from textbench.flows.report.provenance import SHORT
from textbench.flows.results.runs import command_of

METRICS = ("accuracy", "micro_f1", "macro_f1")  # as far as a run has them
# What tells one line from another; `drawn` is "stratified", or nothing for draws from all documents.
PLACE = ("dataset", "protocol", "paper", "method", "probe", "trials", "seed", "drawn", "budget")
COLUMNS = (
    *PLACE,
    "draws",
    "metrics",
    "seconds",
    "data_sha256",
    "cells",
    "commit",
    "hardware",
    "command",
    "recorded",
)

Place = tuple[str, ...]


def rows() -> list[dict[str, Any]]:
    """Return what is recorded as rows like those of local runs: one per method, budget and draw."""
    found = []
    for line in read():
        draws, metrics = map(int, line["draws"].split()), json.loads(line["metrics"])
        for place, draw in enumerate(draws):
            labels = {"budget": int(line["budget"]), "draw": draw, "stratified": bool(line["drawn"])}
            found.append({
                "dataset": line["dataset"], "protocol": line["protocol"], "method": line["method"], "error": None,
                "trials": int(line["trials"]), "seed": int(line["seed"]), "created": 0.0, "labels": labels,
                "request": {"labels": labels}, "metrics": {name: each[place] for name, each in metrics.items()},
            })  # fmt: skip
    return found


def read() -> list[dict[str, str]]:
    """Return the lines of curves.csv."""
    with recorded.CURVES.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def record(evidence: Evidence) -> int:
    """Write the local curves into curves.csv; return how many lines are new.

    A line of more draws is never replaced by one of fewer. Raises InputError where the file cannot be written, and for
    code that no commit has.
    """
    commit = recorded.commit_of_code()
    lines = {tuple(line[name] for name in PLACE): line for line in read()}
    groups: dict[Place, dict[int, Mapping[str, Any]]] = {}
    for row in sorted(filter(recorded.is_ours, evidence.budgets), key=lambda row: row["created"]):
        if not row["error"]:
            groups.setdefault(_place(row), {})[row["request"]["labels"]["draw"]] = row
    n_new = 0
    for place, by_draw in groups.items():
        if place not in lines or len(lines[place]["draws"].split()) <= len(by_draw):
            own = [by_draw[draw] for draw in sorted(by_draw)]
            lines[place] = dict(zip(PLACE, place, strict=True)) | _record(evidence, own, commit)
            n_new += 1
    # The budget, a place's last part, is a number: 60 comes before 100.
    ordered = sorted(lines, key=lambda place: (*place[:-1], int(place[-1])))
    recorded.write(recorded.CURVES, COLUMNS, [lines[place] for place in ordered])
    return n_new


def _place(row: Mapping[str, Any]) -> Place:
    request = row["request"]
    labels = request["labels"]
    found = {name: row[name] for name in ("dataset", "protocol", "method", "trials", "seed")} | {
        "paper": row.get("paper") or "",
        "probe": request.get("probe") or "",
        "drawn": "stratified" if labels["stratified"] else "",
        "budget": labels["budget"],
    }
    return tuple(str(found[name]) for name in PLACE)


def _record(evidence: Evidence, own: Sequence[Mapping[str, Any]], commit: str) -> dict[str, str]:
    first = own[0]
    corpus = known(evidence.home, first).corpus or {"sha256": {}}
    metrics = {name: [row["metrics"][name] for row in own] for name in METRICS if name in first["metrics"]}
    seconds = [sum(row["seconds"].values()) for row in own]
    draws = [row["request"]["labels"]["draw"] for row in own]
    return {
        "draws": " ".join(map(str, draws)),
        "metrics": json.dumps(metrics),
        "seconds": f"{sum(seconds) / len(seconds):.3f}",
        "data_sha256": " ".join(f"{name}={digest}" for name, digest in sorted(corpus["sha256"].items())),
        "cells": " ".join(row["key"][:SHORT] for row in own),
        "commit": commit,
        "hardware": hardware_here(),
        "command": command_of(Request(**first["request"]), max(draws) + 1),
        "recorded": datetime.now(UTC).strftime("%Y-%m-%d"),
    }
