"""Pieces: what a paper shows that is no result of a cell, such as the topics its method has learned.

A piece is an artifact of its own stage, made without the classifier of a cell: of the features of a cell, or of parts
of a data set. In a suite a part with `pieces` makes them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from textbench.flows.plan import papers
from textbench.flows.plan.base_cell import BaseCell
from textbench.flows.plan.cell import Cell, plan
from textbench.flows.plan.request import DerivedRequest, once
from textbench.tasks import InputError
from textbench.tasks.catalogue import pick
from textbench.tasks.derived import polysemy, topics, tsne_map, value_histogram
from textbench.tasks.storage.recipe import Reference

# What is made of the features of a cell, by stage.
MADE: dict[str, Callable[[Mapping[str, Reference], int], Reference]] = {
    "topics": lambda at, seed: topics.reference(at["vectorize"], at["featurize"]),
    "senses": lambda at, seed: polysemy.reference(at["vectorize"], at["featurize"], polysemy.PUBLISHED),
    "values": lambda at, seed: value_histogram.reference(at["vectorize"], at["featurize"]),
    "embedding": lambda at, seed: tsne_map.reference(at["ingest"], at["featurize"], seed),
}
BEFORE = ("ingest", "vectorize", "word_vectors", "token_topics", "featurize")


@dataclass(frozen=True)
class DerivedArtifact(BaseCell):
    """A stage's artifact of a method's features on one data set with one seed."""

    stage: str

    @property
    def reference(self) -> Reference:
        """Its artifact."""
        return self.references[self.stage]

    @property
    def label(self) -> str:
        """Its name for people."""
        return f"{super().label}: {self.stage}"


@once
def plan_derived(request: DerivedRequest) -> list[DerivedArtifact]:
    """Return the pieces of a request, nothing computed. Raises InputError for names that are none.

    A stage of `MADE` is made for every cell of the request; other names are plans of a paper of its own, made of parts
    of a data set, and need no cells.
    """
    plans: dict[str, Callable[[], list[DerivedArtifact]]] = {}
    for module in papers.modules("derived"):
        plans |= module.PLANS
    names = dict.fromkeys(request.pieces)
    for name in names:
        pick("piece", name, {**MADE, **plans})
    stages = [name for name in names if name in MADE]
    cells = plan(request) if stages else []
    found = [_piece(cell, stage) for cell in cells for stage in stages]
    return found + [piece for name in names if name in plans for piece in plans[name]()]


def _piece(cell: Cell, stage: str) -> DerivedArtifact:
    if "featurize" not in cell.references:
        raise InputError(
            f"pieces are made of the features of a method at fixed settings, got {cell.method} with {cell.trials} "
            f"trials; leave out trials and classifiers"
        )
    if cell.references["vectorize"].params["rule"] is None and stage != "embedding":
        raise InputError(f"{stage} are made of terms, and {cell.method} reads raw texts")
    before = {name: cell.references[name] for name in BEFORE if name in cell.references}
    references = before | {stage: MADE[stage](before, cell.seed)}
    return DerivedArtifact(
        cell.dataset, cell.method, cell.protocol, cell.seed, cell.trials, references, stage
    )
