"""Writing the label-budget curves of a results folder into the record (`flows.referee.recorded_draws`)."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from textbench.flows.plan.request import Request
from textbench.flows.referee import recorded_draws
from textbench.flows.referee.ledger import hardware_here
from textbench.flows.referee.recorded_draws import PLACE, Place
from textbench.flows.report import recorded
from textbench.flows.report.evidence import Evidence, known
from textbench.flows.report.provenance import SHORT
from textbench.flows.results.runs import command_of

METRICS = ("accuracy", "micro_f1", "macro_f1")  # as far as a run has them
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


def record(evidence: Evidence) -> int:
    """Write the local curves into curves.csv, with the draws recorded earlier that stand beside them.

    Those of `recorded.may_record` are written. A line is never replaced by one that lacks a draw of it. Return how many
    lines are new. Raises InputError where the file cannot be written, and for code that no commit has.
    """
    commit = recorded.commit_of_code()
    lines = {tuple(line[name] for name in PLACE): line for line in recorded_draws.read()}
    fresh = [row for row in evidence.budgets if recorded.may_record(row) and not row["error"]]
    groups: dict[Place, dict[int, Mapping[str, Any]]] = {}
    fresh.sort(key=lambda row: row["created"])
    for row in [*recorded_draws.beside(fresh), *fresh]:
        groups.setdefault(recorded_draws.place_of(row), {})[row["request"]["labels"]["draw"]] = row
    n_new = 0
    for place, by_draw in groups.items():
        if place not in lines or {*map(int, lines[place]["draws"].split())} <= by_draw.keys():
            own = [by_draw[draw] for draw in sorted(by_draw)]
            lines[place] = dict(zip(PLACE, place, strict=True)) | _record(evidence, own, commit)
            n_new += 1
    # The budget, a place's last part, is a number: 60 comes before 100.
    ordered = sorted(lines, key=lambda place: (*place[:-1], int(place[-1])))
    recorded.write(recorded_draws.FILE, COLUMNS, [lines[place] for place in ordered])
    return n_new


def _record(evidence: Evidence, own: Sequence[Mapping[str, Any]], commit: str) -> dict[str, str]:
    here = hardware_here()
    fresh = next(row for row in own if "hardware" not in row)  # made here, not recorded
    corpus = known(evidence.home, fresh).corpus or {"sha256": {}}
    metrics = {
        name: [row["metrics"][name] for row in own]
        for name in METRICS
        if all(name in row["metrics"] for row in own)
    }
    seconds = [sum(row["seconds"].values()) for row in own]
    draws = [row["request"]["labels"]["draw"] for row in own]
    return {
        "draws": " ".join(map(str, draws)),
        "metrics": json.dumps(metrics),
        "seconds": f"{sum(seconds) / len(seconds):.3f}",
        "data_sha256": " ".join(f"{name}={digest}" for name, digest in sorted(corpus["sha256"].items())),
        "cells": " ".join(row["key"][:SHORT] for row in own),
        "commit": commit,
        "hardware": "; ".join(dict.fromkeys(row.get("hardware", here) for row in own)),
        "command": command_of(Request(**fresh["request"]), max(draws) + 1),
        "recorded": datetime.now(UTC).strftime("%Y-%m-%d"),
    }
