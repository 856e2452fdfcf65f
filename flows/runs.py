"""Finished runs by name: find one in the store's index, and open the artifacts that made it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from flows.cells import Index, Request, plan
from tasks import InputError, evaluate
from tasks.recipe import Reference
from tasks.store import META, Artifact, Damaged, Store, read_meta
from tasks.tokens import RULES

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
        row = self.row
        options = f"-d {row['dataset']} -m {row['method']} --seed {row['seed']} --trials {row['trials']}"
        return f"textbench run {options} --protocol {row['protocol']}"

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
            return self._open(evaluate.features_of(self.reference.inputs["vectors"], self.open("choice")))
        return self._open(self.reference.inputs[name])

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
        row = self.row
        corpus, vectors = self.reference.inputs["corpus"], self.reference.inputs["vectors"]
        rules = [name for name, rule in RULES.items() if asdict(rule) == vectors.params["rule"]]
        # What is the user's own has its path here.
        own = corpus.params.get("own")
        request = Request(
            datasets=[] if own else [corpus.params["dataset"]],
            methods=[self.reference.params["method"]],
            seeds=[row["seed"]],
            protocol=row["protocol"],
            trials=row["trials"],
            probe=row["probe"],
            rule=rules[0] if rules else None,
            own=own,
        )
        try:
            return plan(request)[0].key == row["key"]
        except InputError:
            return False


def read_audit(run: Run) -> dict[str, Any]:
    """Return the findings of the audit of the run's data set."""
    from tasks import audit

    return Store(run.home / "store").open(audit.reference(run.reference.inputs["corpus"])).json("audit")
