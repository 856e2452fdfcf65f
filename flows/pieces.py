"""Pieces: what a paper shows that is no result of a cell, such as the topics its method has learned.

A piece is an artifact of its own stage, made without the classifier of a cell: of the features of a cell, or of parts
of a data set. In a suite a part with `pieces` makes them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from flows.cells import Cell, Request, plan
from flows.squares import Square
from tasks import InputError, embedding, senses, topics, values
from tasks.catalogue import pick
from tasks.recipe import Reference

# What is made of the features of a cell, by stage.
MADE: dict[str, Callable[[Mapping[str, Reference], int], Reference]] = {
    "topics": lambda at, seed: topics.reference(at["vectorize"], at["featurize"]),
    "senses": lambda at, seed: senses.reference(at["vectorize"], at["featurize"], senses.PUBLISHED),
    "values": lambda at, seed: values.reference(at["vectorize"], at["featurize"]),
    "embedding": lambda at, seed: embedding.reference(at["ingest"], at["featurize"], seed),
}
BEFORE = ("ingest", "vectorize", "word_vectors", "featurize")


@dataclass(frozen=True)
class Piece(Square):
    """A stage's artifact of a method's features on one data set with one seed."""

    stage: str

    @property
    def reference(self) -> Reference:
        """Its artifact."""
        return self.references[self.stage]

    @property
    def key(self) -> str:
        """The key of its artifact, known before anything is computed."""
        return self.reference.key

    @property
    def label(self) -> str:
        """Its name for people."""
        return f"{super().label}: {self.stage}"


def plan_pieces(request: Request, names: Sequence[str]) -> list[Piece]:
    """Return the pieces of these names, nothing computed. Raises InputError for names that are none.

    A stage of `MADE` is made for every cell of the request; other names are plans of a paper of its own, made of parts
    of a data set, and need no cells.
    """
    from flows.papers._compressive_plan import PLANS  # it names what is defined here

    for name in names:
        pick("piece", name, {**MADE, **PLANS})
    stages = [name for name in dict.fromkeys(names) if name in MADE]
    cells = plan(request) if stages else []
    found = [_piece(cell, stage) for cell in cells for stage in stages]
    return found + [piece for name in dict.fromkeys(names) if name in PLANS for piece in PLANS[name]()]


def _piece(cell: Cell, stage: str) -> Piece:
    if "featurize" not in cell.references:
        raise InputError(
            f"pieces are made of the features of a method at fixed settings, got {cell.method} with {cell.trials} "
            f"trials; leave out trials and classifiers"
        )
    before = {name: cell.references[name] for name in BEFORE if name in cell.references}
    references = before | {stage: MADE[stage](before, cell.seed)}
    return Piece(cell.dataset, cell.method, cell.protocol, cell.seed, cell.trials, references, stage)
