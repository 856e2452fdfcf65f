"""The recorded audit of each data set: a fresh checkout without any data knows what `tasks.audit` found in it.

`recorded_audits.json` keeps it with the sha256 of the data set's files. A record whose sha256 is no longer the data
set's is not used.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from textbench.tasks import audit, catalogue, ingest
from textbench.tasks.storage.files import write_json
from textbench.tasks.storage.store import Store

FILE = Path(__file__).with_name("recorded_audits.json")


def recorded() -> dict[str, dict[str, Any]]:
    """Return the recorded audits by data set: `audit`, `leaks` (sentences), `sha256`, `recorded` (the day)."""
    found = json.loads(FILE.read_text("utf-8"))
    names = catalogue.datasets()
    return {name: one for name, one in found.items() if name in names and one["sha256"] == _sha256(name)}


def _sha256(name: str) -> dict[str, str]:
    return dict(catalogue.dataset(name).load().SHA256)


def record(store: Store, leaks: Mapping[str, Sequence[str]]) -> int:
    """Write the stored audits of all known data sets into the file, in place of older ones; return how many.

    leaks: by data set what its flaws are worth, in sentences; where there are none, those recorded stay.
    """
    found, n_new = recorded(), 0
    for name in catalogue.datasets():
        reference = audit.reference(ingest.reference(name))
        if store.has(reference):
            made = {
                "audit": store.open(reference).json("audit"),
                "leaks": leaks.get(name) or found.get(name, {}).get("leaks", []),
                "sha256": _sha256(name),
                "recorded": datetime.now(UTC).strftime("%Y-%m-%d"),
            }
            found[name] = made
            n_new += 1
    write_json(FILE, dict(sorted(found.items())))
    return n_new
