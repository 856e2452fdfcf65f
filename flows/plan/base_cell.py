"""Squares of a table of results: what every cell has, whether it classifies or ranks."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from textbench.tasks.joined import PARTS
from textbench.tasks.storage.recipe import Reference, canonical_json

SHARED = ("word_vectors", "token_topics", "text_vectors", "piece_vectors")  # stages that methods share


@dataclass(frozen=True)
class BaseCell:
    """A method on one data set or collection with one seed, and the artifacts behind its result by stage."""

    dataset: str
    method: str
    protocol: str
    seed: int
    trials: int
    references: Mapping[str, Reference] = field(repr=False)

    @property
    def reference(self) -> Reference:
        """Its result."""
        return self.references["evaluate"]

    @property
    def key(self) -> str:
        """The key of its result, known before anything is computed."""
        return self.reference.key

    @property
    def label(self) -> str:
        """Its name for people."""
        return f"{self.dataset} {self.method} seed {self.seed}"

    @property
    def made_by(self) -> str:
        """What results that are averaged share: the sha256 of the recipe without seed, labels drawn and documents.

        It holds the code and the versions of libraries of all stages that follow the documents. Where a file of the
        user's stands is no part of it, its content is.
        """
        return made_by(self.reference)


def made_by(result: Reference) -> str:
    """Return what results share that differ in their seeds, labels and documents alone (`BaseCell.made_by`)."""
    return _made_by(result, {})


def _made_by(reference: Reference, known: dict[int, str]) -> str:
    if id(reference) not in known:
        params = {name: value for name, value in reference.params.items() if name not in ("seed", "labels")}
        params, own = _without_places(params), params.get("method")
        inputs = {
            name: _made_by(one, known) for name, one in reference.inputs.items() if one.stage != "ingest"
        }
        recipe = {
            "stage": reference.stage,
            "params": params | ({"method": PurePath(own).name} if own else {}),
            "code": reference.code,
            "libraries": dict(reference.libraries),
            "inputs": inputs,
        }
        known[id(reference)] = hashlib.sha256(canonical_json(recipe).encode()).hexdigest()
    return known[id(reference)]


def _without_places(value: Any) -> Any:
    """Return parameters without the paths of files whose sha256 stands beside them."""
    if not isinstance(value, Mapping):
        return value
    return {
        name: _without_places(one)
        for name, one in value.items()
        if not (name == "path" and "sha256" in value)
    }


# Among an ensemble's stages the vectors that tell which documents are near one another, where they decide together.
NEAR = "near vectorize"


def member_stage(place: int, stage: str) -> str:
    """Return the name that a stage of an ensemble's member has among the ensemble's: "02 tune" for the second."""
    return f"{place:02} {stage}"


def plain_stage(name: str) -> str:
    """Return the stage that a name of `member_stage`, NEAR, or a stage's own name stands for."""
    return name.rpartition(" ")[2]


def feature_stages(features: Reference) -> dict[str, Reference]:
    """Return the stages that make a method's features: what it shares with other methods is one of its own.

    Word vectors and topics of tokens: as a stage they are made by one worker, and no other waits for it idly.
    """
    found = {stage: ref for stage, ref in features.inputs.items() if stage in SHARED}
    for part in set(PARTS) & features.inputs.keys():
        found |= feature_stages(features.inputs[part])
    found |= {part: features.inputs[part] for part in PARTS if part in features.inputs}
    return found | {"featurize": features}
