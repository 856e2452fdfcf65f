"""A results folder in Prometheus' text format: what runs, what waits, what was finished, and when.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/, text-based format 0.0.4.
"""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textbench.flows.results.index import Index
from textbench.flows.run import outbox

Labels = Mapping[str, str]
Family = tuple[str, str, list[tuple[Labels, float]]]  # name, help, and each value with its labels


def exposition(home: Path, services: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the metrics of a results folder; `services` is what `flows.servers.services.status` says of it."""
    rows = Index(home).rows()
    cells = Counter((row["dataset"], row["protocol"]) for row in rows)
    families: list[Family] = [
        (
            "textbench_service_up",
            "Whether a service answers.",
            [({"service": name}, float(bool(state["healthy"]))) for name, state in services.items()],
        ),
        ("textbench_runs_waiting", "Runs not yet sent to MLflow.", [({}, len(outbox.waiting(home)))]),
        (
            "textbench_cells_finished",
            "Finished cells on record.",
            [
                ({"dataset": dataset, "protocol": protocol}, n)
                for (dataset, protocol), n in sorted(cells.items())
            ],
        ),
        (
            "textbench_last_finished_timestamp_seconds",
            "When the newest cell was recorded.",
            [({}, max(row["created"] for row in rows))] if rows else [],
        ),
        ("textbench_last_night_timestamp_seconds", "When the newest night began.", _last_night(home)),
    ]
    return "".join(map(_family, families))


def _last_night(home: Path) -> list[tuple[Labels, float]]:
    for path in sorted((home / "nights").glob("*/night.json"), reverse=True):
        try:
            return [({}, float(json.loads(path.read_text("utf-8"))["begun"]))]
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return []


def _family(family: Family) -> str:
    name, said, values = family
    if not values:
        return ""
    lines = [f"# HELP {name} {said}", f"# TYPE {name} gauge"]
    for labels, value in values:
        inner = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        lines.append(f"{name}{{{inner}}} {value:.15g}" if inner else f"{name} {value:.15g}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
