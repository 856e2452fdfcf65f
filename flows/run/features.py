"""Which features a run leaves: those that took long to make, and those that are small.

Features are by far the most of what a run stores, and most of them are made again in seconds. Once every cell is
recorded, the others go; their meta.json stays, so that what making them took is still known. Whatever needs them later
has them made again, to the bit; a cell that is finished needs them no more (`flows.run.scheduler`).
"""

import logging
import os
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

from textbench.flows.plan.base_cell import BaseCell
from textbench.tasks.storage.files import META, Damaged, read_meta
from textbench.tasks.storage.garbage import READERS, artifacts, behind, let_go, seconds_of
from textbench.tasks.storage.locks import take
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Store
from textbench.tasks.words import counted

log = logging.getLogger("textbench.run")
CHEAP = 1.0  # seconds a megabyte, below which features are made again rather than kept
LARGE = 1_000_000  # bytes, below which they stay whatever they took
MADE_AGAIN = (
    "textbench.tasks.featurize:",
    "textbench.tasks.joined:",
)  # who makes them; a user's file of vectors stays


def let_features_go(store: Store, cells: Sequence[BaseCell], rows: Sequence[Mapping[str, object]]) -> int:
    """Let features of the cells' documents go that were quickly made and take room; return the bytes that are free.

    All stay where a cell failed, for it is to be run again, and while another run may read them: then that one lets
    them go when it is over.
    """
    corpora = {cell.references["ingest"].key for cell in cells if "ingest" in cell.references}
    if any(row["error"] for row in rows) or (alone := take(store.root / READERS)) is None:
        return 0
    try:
        freed = [
            let_go(store.root, folder)
            for _, folder, size in list(artifacts(store.root, "featurize"))
            if size >= LARGE and seconds_of(folder) < CHEAP * size / 1e6 and _is_of(folder / META, corpora)
        ]
    finally:
        os.close(alone)
    if freed:
        log.info(
            "%s of %.0f MB not kept: made again in seconds where needed (--keep-features keeps all)",
            counted(len(freed), "artifact of features", "artifacts of features"), sum(freed) / 1e6,
        )  # fmt: skip
    return sum(freed)


def _is_of(meta: Path, corpora: Set[str]) -> bool:
    """Tell whether an artifact was made of one of these corpora by a method, not taken from a user's file."""
    try:
        reference = Reference.from_json(read_meta(meta)["recipe"])
    except (OSError, Damaged):
        return False
    return reference.function.startswith(MADE_AGAIN) and not corpora.isdisjoint(behind([reference]))
