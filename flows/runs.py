"""Finished runs by name: find one in the store's index, and open the artifacts that made it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from flows.cells import Index, Request, plan
from tasks import InputError, evaluate
from tasks.files import META, Damaged, read_meta
from tasks.recipe import Reference
from tasks.store import Artifact, Store

SHORTEST = 6


def find_run(home: Path, name: str) -> dict[str, Any]:
    """Return the index row (with its `key`) of a run: `last`, or the beginning of its MLflow id or cell key.

    Raises InputError when there is none, or more than one, with the candidates.
    """
    rows = sorted(Index(home).rows(), key=lambda row: -row["created"])
    if not rows:
        raise InputError(f"there are no finished runs in {home}; make some with: textbench run quick")
    if name == "last":
        return rows[0]
    wanted = name.lower()
    if len(wanted) < SHORTEST:
        raise InputError(
            f"a run is named by at least {SHORTEST} characters or `last`, got {name!r}; {_some(rows)}"
        )
    found = [row for row in rows if (row["key"].startswith(wanted) or _id(row).startswith(wanted))]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{name!r} begins {len(found)} runs: {_listed(found)}; give more characters")
    raise InputError(f"there is no finished run {name!r}; {_some(rows)}")


def _id(row: Mapping[str, Any]) -> str:
    return row["run_id"] or ""


def _some(rows: Sequence[Mapping[str, Any]]) -> str:
    return f"the latest are {_listed(rows[:3])}"


def _listed(rows: Sequence[Mapping[str, Any]]) -> str:
    shown = [f"{row['key'][:12]} ({row['dataset']} {row['method']} seed {row['seed']})" for row in rows[:5]]
    return ", ".join(shown) + (", ..." if len(rows) > 5 else "")


@dataclass(frozen=True)
class Run:
    """A finished run: its index row, and its artifacts opened on demand.

    An artifact that was pruned is computed again if the code still is what made it; else InputError says so.
    """

    home: Path
    row: Mapping[str, Any]

    @property
    def command(self) -> str:
        """The command that makes this run."""
        return command_of(Request(**self.row["request"]))

    @cached_property
    def reference(self) -> Reference:
        """The recipe of the result, from its meta.json. Raises InputError when that is gone or damaged."""
        path = self._store.root / "evaluate" / self.row["key"] / META
        try:
            return Reference.from_json(read_meta(path)["recipe"])
        except (OSError, Damaged) as error:
            raise InputError(
                f"the result of this run is no longer in the store; run it again with: {self.command}"
            ) from error

    def open(self, name: str) -> Artifact:
        """Return the artifact "result", or the "corpus", "vectors", "choice" or "features" behind it."""
        if name == "result":
            return self._open(self.reference)
        if name == "features":
            # Their recipe is worked out anew, so it is this run's only as long as the code is the same.
            self._require_current(f"the code behind {self.row['method']} has changed since this run")
            features = evaluate.features_of(self.reference.inputs["vectors"], self.open("choice"))
            if features is None:
                raise InputError(f"{self.row['method']} is a classifier: it makes no features")
            return self._open(features)
        return self._open(self.reference.inputs[name])

    @property
    def zero_rows(self) -> dict[str, int] | None:
        """How many training and test documents have no feature but zeros; None where nothing in the store tells."""
        choice = self.reference.inputs["choice"]
        if not self._is_current or not self._store.has(choice):
            return None
        features = evaluate.features_of(self.reference.inputs["vectors"], self._store.open(choice))
        if features is None:
            return None
        try:
            return read_meta(self._store.folder(features) / META).get("zero_rows")
        except (OSError, Damaged):
            return None

    def _open(self, reference: Reference) -> Artifact:
        if not self._store.has(reference):
            self._require_current(
                f"the {reference.stage} artifact of this run is gone and the code that made it has changed"
            )
        return self._store.open(reference)

    def _require_current(self, reason: str) -> None:
        if not self._is_current:
            raise InputError(f"{reason}; run it again with: {self.command}")

    @property
    def _store(self) -> Store:
        return Store(self.home / "store")

    @cached_property
    def _is_current(self) -> bool:
        """Whether the same request would lead to the same result today."""
        try:
            return plan(Request(**self.row["request"]))[0].key == self.row["key"]
        except InputError:
            return False


def command_of(request: Request) -> str:
    """Return the command that asks for one cell; of a cell of a label-budget curve, the shortest curve with it."""
    own = dict(request.own or {})
    options: dict[str, Any] = {"data": own.pop("path", None)} | own
    options |= {"dataset": next(iter(request.datasets), None), "method": request.methods[0]}
    options |= {"seed": request.seeds[0], "trials": request.trials, "search-seconds": request.search_seconds}
    options |= {"protocol": request.protocol, "paper": request.paper, "probe": request.probe}
    options |= {"rule": request.rule}
    names = {"n_folds": "folds", "held_out": "held-out", "metric": "tune-metric"}
    options |= {names[name]: value for name, value in request.validation.items() if name in names}
    words = ["run"]
    if labels := request.labels:
        words = ["curve", *(["--stratified"] if labels["stratified"] else [])]
        options |= {"budgets": labels["budget"], "draws": labels["draw"] + 1}
        if grid := request.validation.get("c_grid"):
            options["c-grid"] = ",".join(f"{c:g}" for c in grid)
    for name, value in options.items():
        if value is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join(["textbench", *words])


def read_audit(run: Run) -> dict[str, Any]:
    """Return the findings of the audit of the run's data set."""
    from tasks import audit

    return Store(run.home / "store").open(audit.reference(run.reference.inputs["corpus"])).json("audit")
