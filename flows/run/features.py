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
# Who makes them; a user's file of vectors stays.
MADE_AGAIN = ("textbench.tasks.featurize:", "textbench.tasks.joined:")


def let_features_go(
    store: Store, cells: Sequence[BaseCell], rows: Sequence[Mapping[str, object]], since: float
) -> int:
    """Let features go that a run used, were quickly made and take room; return the bytes that are free.

    They are those of its plan, and those of its documents made `since` it began (seconds since the epoch): by a search.
    All stay where a cell failed, for it is to be run again, and where another run is at work, which may read them.
    """
    corpora = {cell.references["ingest"].key for cell in cells if "ingest" in cell.references}
    planned = {ref.key for cell in cells for ref in cell.references.values() if ref.stage == "featurize"}
    if any(row["error"] for row in rows) or (alone := take(store.root / READERS)) is None:
        return 0
    try:
        freed = [
            let_go(store.root, folder)
            for _, folder, size in list(artifacts(store.root, "featurize"))
            if size >= LARGE
            and seconds_of(folder) < CHEAP * size / 1e6
            and _may_go(folder, planned, corpora, since)
        ]
    finally:
        os.close(alone)
    if freed:
        log.info(
            "%s of %.0f MB not kept: made again in seconds where needed (--keep-features keeps all)",
            counted(len(freed), "artifact of features", "artifacts of features"), sum(freed) / 1e6,
        )  # fmt: skip
    return sum(freed)


def _may_go(folder: Path, planned: Set[str], corpora: Set[str], since: float) -> bool:
    """Tell whether features are made by a method, not taken from a user's file, and planned, or made for these corpora.

    These since a time. What is damaged stays, to be noticed where it is needed.
    """
    try:
        meta = read_meta(folder / META)
    except (OSError, Damaged):
        return False
    if not str(meta["recipe"]["function"]).startswith(MADE_AGAIN):
        return False
    is_new = meta["created"] >= since
    return folder.name in planned or (
        is_new and not corpora.isdisjoint(behind([Reference.from_json(meta["recipe"])]))
    )
