"""What a report is made from: the local runs of a results folder, those of them that failed, and of which sweeps.

What the repository keeps (`evaluation/measured.csv`, `audits.json`) is read by the chapters that show it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textbench.flows.results.doubt import with_doubt
from textbench.flows.results.index import Index
from textbench.flows.results.rescore import rescored
from textbench.flows.results.summary import latest, made_alike
from textbench.tasks import InputError, catalogue
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.tracking.tracker import CELL_TAG, ERROR_TAG, Tracker, TrackingError, read_settings

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Evidence:
    """The local runs: `rows` saw all labels, `budgets` are label-budget cells, `failed` have a reason and no result.

    `sweeps` are those asked for, all if empty.
    """

    home: Path
    rows: Sequence[Row]
    budgets: Sequence[Row]
    failed: Sequence[Row]
    sweeps: Sequence[str]

    @property
    def is_empty(self) -> bool:
        """Whether nothing was run here."""
        has_searched = any((self.home / "retrieval").glob("*.json"))
        return not (self.rows or self.budgets or self.failed or has_searched)


def gather(home: Path, sweeps: Sequence[str] = ()) -> Evidence:
    """Return the local runs of these sweeps, or of all.

    A sweep is named as in MLflow's tags, `quick-1a2b3c4d`, or by what stands before its digits, `quick`. Raises
    InputError for one that no run belongs to.
    """
    rows, failed = Index(home).rows(), _failed(home)
    known = {name for row in [*rows, *failed] for name in _sweeps(row)}
    for sweep in sweeps:
        if sweep not in known:
            raise InputError(f"no run belongs to the sweep {sweep!r}; {_nearest(sweep, known)}")
    chosen = [row for row in rescored(home, rows) if not sweeps or {*sweeps} & _sweeps(row)]
    whole = [row for row in chosen if not (row["request"] or {}).get("labels")]
    return Evidence(
        home=home,
        rows=with_doubt(home, latest(whole)),
        budgets=made_alike(row for row in chosen if row["request"].get("labels")),
        failed=[row for row in failed if not sweeps or {*sweeps} & _sweeps(row)],
        sweeps=tuple(sweeps),
    )


def published_name(row: Row) -> str:
    """Return the catalogue's name of a run's data set, "" for the user's own data, whatever it is called."""
    name = row.get("named", row["dataset"])
    return name if name in catalogue.datasets() and not (row.get("request") or {}).get("own") else ""


def _sweeps(row: Row) -> set[str]:
    """Return a run's sweeps, each with and without its digits; the cells of a curve know the name of what asked."""
    names = set(row["sweeps"]) | {(row.get("request") or {}).get("name", "custom")}
    return names | {name.rpartition("-")[0] for name in row["sweeps"] if "-" in name}


def _nearest(sweep: str, known: set[str]) -> str:
    if not known:
        return "there are no runs yet; make some with: textbench run quick"
    return catalogue.nearest(sweep, sorted(known))


def _failed(home: Path) -> list[Row]:
    """Return what failed and was not finished since, from MLflow: the index has finished runs only."""
    tracker = Tracker(read_settings(home))
    if not tracker.settings.tracking_uri.startswith("sqlite:///") or not tracker.exists():
        return []
    try:
        client, settings = tracker.client, tracker.settings
    except TrackingError:
        return []
    experiments = {tracker.experiment(name) for name in (settings.experiment, settings.retrieval_experiment)}
    found = client.search_runs(list(experiments), "attributes.status = 'FAILED'")
    rows: dict[str, Row] = {}
    for run in found:  # the newest first
        tags, params = run.data.tags, run.data.params
        key = tags.get(CELL_TAG, run.info.run_id)
        if ERROR_TAG in tags and "dataset" in params and not (home / "index" / f"{key}.json").exists():
            sweeps = [name.removeprefix("sweep.") for name in tags if name.startswith("sweep.")]
            rows.setdefault(
                key, params | {"key": key, "error": tags[ERROR_TAG], "sweeps": sweeps, "request": {}}
            )
    return list(rows.values())


@dataclass(frozen=True)
class Known:
    """What is stored of a finished run beside its row; None where it is no longer in the store.

    `classes` are the figures of per_class.json; `libraries` their versions; `corpus` is corpus.json, with the sha256 of
    the data set's files.
    """

    classes: Sequence[Mapping[str, Any]] | None
    libraries: Mapping[str, str] | None
    corpus: Mapping[str, Any] | None
    made: float | None


def known(home: Path, row: Row) -> Known:
    """Return what is stored of a run, without computing anything."""
    folder = home / "store" / "evaluate" / row["key"]
    meta = _json(folder / "meta.json") or {}
    recipe = meta.get("recipe") or {}
    corpus = None
    if "corpus" in recipe.get("inputs", {}):
        reference = Reference.from_json(recipe["inputs"]["corpus"])
        corpus = _json(home / "store" / reference.stage / reference.key / "corpus.json")
    return Known(_json(folder / "per_class.json"), recipe.get("libraries"), corpus, meta.get("created"))


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
