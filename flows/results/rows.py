"""Rows of results: what a cell was, what it scored and what it took."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from textbench.flows.plan.base_cell import BaseCell, feature_stages, member_stage, plain_stage
from textbench.flows.plan.cell import SCORES, Cell, members
from textbench.tasks import catalogue, predict, score, text_vectors
from textbench.tasks.storage.files import META
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Store


def result_row(cell: Cell, store: Store) -> dict[str, Any]:
    """Return a finished cell as a row: what it was, its metrics, seconds by stage and peak memory."""
    choice = store.open(cell.references["tune"])
    chosen = choice.json("choice")
    used = {
        stage: reference for stage, reference in cell.references.items() if stage not in ("audit", SCORES)
    }
    features = predict.features_of(cell.references["vectorize"], choice)
    if features is not None:
        used |= feature_stages(features)
    entry = catalogue.method(choice.meta["recipe"]["params"]["method"])
    if entry.is_ensemble:
        used |= _features_of_members(cell, store)
    # Of several encoders the first. An ensemble's were used by its members' runs, and may be gone since.
    encoded = next((one for stage, one in used.items() if plain_stage(stage) == "text_vectors"), None)
    vectors = store.open(encoded) if encoded and (store.has(encoded) or not entry.is_ensemble) else None
    choices = [store.open(one) for stage, one in cell.references.items() if plain_stage(stage) == "tune"]
    found = {
        "uses_labels": features is not None and "labels" in features.params,
        "unread": {} if vectors is None else text_vectors.unread(vectors),
        "sent": {} if vectors is None else text_vectors.sent(vectors),
        "params": chosen["values"] | chosen["settings"] | ({"C": chosen["C"]} if chosen["C"] else {}),
        # Of an ensemble that of its members.
        "on_border": list(dict.fromkeys(name for one in choices for name in one.json("choice")["on_border"])),
        "metrics": score.metrics(store.open(cell.references["evaluate"])),
        "scored_by": score.digest(),
        "parts": {
            name: round(seconds, 3)
            for name, seconds in store.meta(cell.references["evaluate"])["parts"].items()
        },
    }
    # What it took to make a file elsewhere nobody knows here.
    cost = {one.meta["key"]: _searched(one.json("choice")) for one in choices}
    return row(cell) | found | ({} if entry.is_file else spent(used, store, cost))


def _searched(choice: Mapping[str, Any]) -> float:
    """Return the seconds of a search's trials when they were made, 0 where nothing was searched."""
    return math.fsum(trial["seconds"] for trial in choice["trials"]) if choice["space"] else 0.0


def _features_of_members(cell: Cell, store: Store) -> dict[str, Reference]:
    """Return the stages that made the features which the members of an ensemble chose, of what is still known of."""
    found: dict[str, Reference] = {}
    for place, member in enumerate(members(cell), start=1):
        choice = store.open(member.references["tune"])
        features = predict.features_of(member.references["vectorize"], choice)
        stages = {} if features is None else feature_stages(features)
        found |= {member_stage(place, stage): one for stage, one in stages.items()}
    # What is gone was made for the member's own run; nothing is computed for the seconds that it took.
    return {stage: one for stage, one in found.items() if (store.folder(one) / META).exists()}


def row(cell: Cell, error: str | None = None) -> dict[str, Any]:
    """Return a cell as a row with no result yet, or with the error that took its place."""
    return empty_row(cell, error, probe=cell.probe or "", paper=cell.request.paper, params={})


def empty_row(
    square: BaseCell,
    error: str | None,
    *,
    probe: str = "",
    paper: str | None = None,
    params: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a square as a row with no result yet, or with the error that took its place.

    Its recorder fills in `corpus`, what tells its documents from others (`tasks.corpus.identity`).
    """
    return {
        "dataset": square.dataset,
        "corpus": None,
        "method": square.method,
        "protocol": square.protocol,
        "seed": square.seed,
        "trials": square.trials,
        "probe": probe,
        "paper": paper,
        "uses_labels": None,
        "unread": {},
        "sent": {},
        "params": dict(params),
        "on_border": [],
        "metrics": {},
        "scored_by": None,
        "parts": {},
        "seconds": {},
        "peak_mb": None,
        "run_id": None,
        "cached": False,
        "error": error,
    }


def spent(
    references: Mapping[str, Reference], store: Store, cost: Mapping[str, float] = MappingProxyType({})
) -> dict[str, Any]:
    """Return what making these artifacts took: `seconds` by stage, and the highest `peak_mb`.

    What several members of an ensemble share counts once. cost: by the key of a search what its trials took, which is
    more than it did itself where it was taken up again, found some made, or had several workers.
    """
    once = {reference.key: stage for stage, reference in reversed([*references.items()])}
    metas = {
        stage: store.meta(reference)
        for stage, reference in references.items()
        if once[reference.key] == stage
    }
    seconds: dict[str, float] = {}
    for stage, meta in metas.items():
        own = max(meta["seconds"], cost.get(meta["key"], 0.0))
        seconds[plain_stage(stage)] = seconds.get(plain_stage(stage), 0.0) + own
    return {
        "seconds": {stage: round(spent, 3) for stage, spent in seconds.items()},
        "peak_mb": round(max(meta["peak_mb"] for meta in metas.values()), 1),
    }
