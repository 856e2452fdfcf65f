"""Squares of a table of results: what every cell has, whether it classifies or ranks, and its row."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tasks.recipe import Reference
from tasks.store import Store


@dataclass(frozen=True)
class Square:
    """A method on one data set or collection with one seed, and the artifacts behind its result by stage."""

    dataset: str
    method: str
    protocol: str
    seed: int
    trials: int
    references: Mapping[str, Reference] = field(repr=False)

    @property
    def key(self) -> str:
        """The key of its result, known before anything is computed."""
        return self.references["evaluate"].key

    @property
    def label(self) -> str:
        """Its name for people."""
        return f"{self.dataset} {self.method} seed {self.seed}"


def empty_row(
    square: Square, error: str | None, *, probe: str = "", paper: str | None = None, params: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a square as a row with no result yet, or with the error that took its place.

    Its recorder fills in `corpus`, what tells its documents from others (`tasks.ingest.identity`).
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


def feature_stages(features: Reference) -> dict[str, Reference]:
    """Return the stages that make a method's features: word vectors, where it reads them, are one of their own.

    Methods share them: as a stage they are trained by one worker, and no other waits for it with nothing to do.
    """
    trained = {stage: ref for stage, ref in features.inputs.items() if stage == "word_vectors"}
    return trained | {"featurize": features}


def spent(references: Mapping[str, Reference], store: Store) -> dict[str, Any]:
    """Return what making these artifacts took: `seconds` by stage, and the highest `peak_mb`."""
    metas = {stage: store.meta(reference) for stage, reference in references.items()}
    return {
        "seconds": {stage: round(meta["seconds"], 3) for stage, meta in metas.items()},
        "peak_mb": round(max(meta["peak_mb"] for meta in metas.values()), 1),
    }
