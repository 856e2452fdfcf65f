"""Label-budget curves that the repository records: `evaluation/curves.csv`, a line per method and budget.

A line keeps the figures of every draw of labels, so that curves are tested in pairs from the record alone, and the key
of its cell. The draws of a curve need not be run in one place: recorded ones stand beside fresh ones by the rule of
recorded seeds (`flows.referee.recorded`), as long as their cells would have the same keys now.
"""

import csv
import json
from collections.abc import Iterable, Mapping
from typing import Any

from textbench.flows.plan.cell import key_now
from textbench.tasks.storage.definitions import PROJECT

FILE = PROJECT / "evaluation" / "curves.csv"
# What tells one line from another; `drawn` is "stratified", or nothing for draws from all documents.
PLACE = ("dataset", "protocol", "paper", "method", "probe", "trials", "seed", "drawn", "budget")

Place = tuple[str, ...]


def read() -> list[dict[str, str]]:
    """Return the lines of curves.csv."""
    with FILE.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def rows() -> list[dict[str, Any]]:
    """Return what is recorded as rows like those of local runs: one per method, budget and draw.

    Their keys are short, and their seconds the mean over the draws of their line.
    """
    found = []
    for line in read():
        draws, metrics = map(int, line["draws"].split()), json.loads(line["metrics"])
        about: dict[str, Any] = {name: line[name] for name in ("dataset", "protocol", "method", "hardware")}
        about |= {
            "paper": line["paper"] or None,
            "probe": line["probe"] or None,
            "seed": int(line["seed"]),
            "trials": int(line["trials"]),
        }
        about |= {"seconds": {"all": float(line["seconds"])}, "params": {}, "created": 0.0}
        about |= {"error": None, "run_id": None}
        for n, (draw, key) in enumerate(zip(draws, line["cells"].split(), strict=True)):
            labels = {"budget": int(line["budget"]), "draw": draw, "stratified": bool(line["drawn"])}
            request = {"labels": labels, "probe": line["probe"] or None}
            own = {"metrics": {name: values[n] for name, values in metrics.items()}, "key": key}
            found.append(about | own | {"labels": labels, "request": request})
    return found


def place_of(row: Mapping[str, Any]) -> Place:
    """Return the place in the record of a cell of a label budget."""
    request = row["request"]
    labels = request["labels"]
    found = {name: row[name] for name in ("dataset", "protocol", "method", "trials", "seed")} | {
        "paper": row.get("paper") or "",
        "probe": request.get("probe") or "",
        "drawn": "stratified" if labels.get("stratified") else "",
        "budget": labels["budget"],
    }
    return tuple(str(found[name]) for name in PLACE)


def beside(fresh: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the recorded draws, as `rows` does, that belong to curves of fresh cells and that none of these drew.

    They are those whose cells would have the recorded keys today; beside a fresh cell that earlier code made there are
    none.
    """
    drawn: dict[Place, dict[int, Mapping[str, Any]]] = {}
    for row in sorted(fresh, key=lambda row: row["created"]):
        if row["request"].get("labels"):
            drawn.setdefault(place_of(row), {})[row["request"]["labels"]["draw"]] = row
    recorded = [row for row in rows() if place_of(row) in drawn]
    places = {place_of(row) for row in recorded}
    is_of_today = {
        place: all(key_now(row["request"]) == row["key"] for row in drawn[place].values()) for place in places
    }
    found = []
    for row in recorded:
        place = place_of(row)
        if row["labels"]["draw"] not in drawn[place] and is_of_today[place]:
            asked = next(iter(drawn[place].values()))["request"]
            if key_now(asked, labels=row["labels"]).startswith(row["key"]):
                found.append(row)
    return found
