"""The store's index: what is recorded of every finished cell."""

import contextlib
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from textbench.flows.plan.base_cell import BaseCell, made_by
from textbench.flows.plan.corpora import told_apart
from textbench.tasks.storage.files import META, Damaged, read_json, read_meta, write_json
from textbench.tasks.storage.recipe import Reference

# What a record of the index has beside its row.
RECORDED = {"dataset", "method", "protocol", "seed", "trials", "metrics", "seconds", "run_id", "created"} | {
    "attempt", "tracking_uri", "sweeps", "request",
}  # fmt: skip


class Index:
    """One small file a finished cell, `<home>/index/<key>.json`, written with its run.

    `folder` is another one of the results folder, `needed` what makes a file of it a record.
    """

    def __init__(self, home: Path, folder: str = "index", needed: Set[str] = RECORDED) -> None:
        self.folder = home / folder
        self._needed = needed

    def get(self, cell: BaseCell) -> dict[str, Any] | None:
        """Return the recorded row of a cell, or None."""
        return self._read(self.folder / f"{cell.key}.json")

    def put(self, cell: BaseCell, record: Mapping[str, Any]) -> None:
        """Record a row; it appears whole or not at all."""
        write_json(self.folder / f"{cell.key}.json", dict(record))

    def amend(self, key: str, found: Mapping[str, Any]) -> None:
        """Change some of what is recorded of a cell."""
        path = self.folder / f"{key}.json"
        if (record := self._read(path)) is not None:
            write_json(path, record | dict(found))

    def rows(self) -> list[dict[str, Any]]:
        """Return every recorded row, with its `key`; its `dataset` is the name of its documents (`corpora`)."""
        return told_apart(self.folder.parent, self.records())

    def records(self) -> list[dict[str, Any]]:
        """Return every recorded row, with its `key`; its `dataset` is what was asked for.

        Rows of earlier versions are told what made them (`made_by`) by the recipe of their result, if that is stored.
        """
        found = ((path.stem, self._read(path)) for path in sorted(self.folder.glob("*.json")))
        rows = [record | {"key": key} for key, record in found if record is not None]
        return [row if "made_by" in row else row | self._made_by(row["key"]) for row in rows]

    def _made_by(self, key: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for stage in ("evaluate", "retrieve"):
            with contextlib.suppress(OSError, Damaged, KeyError):
                meta = read_meta(self.folder.parent / "store" / stage / key / META)
                found = {"made_by": made_by(Reference.from_json(meta["recipe"]))}
        if found:  # it takes milliseconds a row, so it is kept where that is allowed
            with contextlib.suppress(OSError):
                self.amend(key, found)
        return found

    def _read(self, path: Path) -> dict[str, Any] | None:
        record = read_json(path)
        # What is not a record is made again, like one that is missing.
        return record if record.keys() >= self._needed else None
