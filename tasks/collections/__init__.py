"""Retrieval collections: one file each, found by listing this folder (a file whose name starts with `_` is none).

A collection is documents, queries, and judgments of which documents answer which query. Adding one is writing one
file, `tasks/collections/<name>.py`; its underscores are hyphens on the command line. It holds

- a docstring whose first line describes the collection;
- `SOURCE` (where the files come from), `SHA256` (file name -> sha256 of its bytes), `LICENCE`, `CITATION`;
- `RULE`, the name of the token rule used unless another is asked for (`tasks.tokens.RULES`);
- `load() -> Collection`, which raises `tasks.InputError` when a file is missing or differs, naming the remedy.

The `_` files read the formats: SMART, TREC, JSON Lines.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from textbench.tasks import InputError

# Which judgments count as relevant; a figure means nothing without the name of the policy beside it.
POLICIES = ("positive", "nonzero")


class Judgment(NamedTuple):
    """One line of a collection's judgments: the code as it stands there."""

    query: str
    document: str
    code: int


@dataclass(frozen=True, eq=False)
class Collection:
    """A retrieval collection: texts under their names, and judgments of (query, document) pairs.

    `graded` says that a higher code is a better answer, which makes codes the gains of nDCG; otherwise every relevant
    document has gain 1. `notes` says what edition of the data this is. Raises InputError where there is no document or
    no query, names and texts do not fit together, or a name occurs twice.
    """

    document_ids: Sequence[str]
    documents: Sequence[str]
    query_ids: Sequence[str]
    queries: Sequence[str]
    judgments: Sequence[Judgment]
    name: str
    notes: str
    graded: bool = False

    def __post_init__(self) -> None:
        for kind, names, texts in (
            ("document", self.document_ids, self.documents),
            ("query", self.query_ids, self.queries),
        ):
            if not names:
                raise InputError(f"collection {self.name}: it needs at least one {kind}, got none")
            if len(names) != len(texts):
                raise InputError(
                    f"collection {self.name}: every {kind} needs a name, got {len(names)} names "
                    f"and {len(texts)} texts"
                )
            require_distinct(names, kind, f"collection {self.name}")


def gain(code: int, policy: str, graded: bool) -> int:
    """Return what a judged document is worth under a policy of `POLICIES`: 0 if it is not relevant.

    `positive`: codes from 1 are relevant; `nonzero`: negative codes too, which Cranfield has. InputError for others.
    """
    if policy not in POLICIES:
        raise InputError(f"judgments are read as {' or '.join(POLICIES)}, got {policy!r}")
    is_relevant = code > 0 if policy == "positive" else code != 0
    return max(code, 1) if is_relevant and graded else int(is_relevant)


def require_distinct(names: Sequence[str], kind: str, place: str) -> None:
    """Raise InputError naming the first name that occurs more than once."""
    if len(set(names)) == len(names):
        return
    name, n = next((name, n) for name, n in Counter(names).items() if n > 1)
    raise InputError(f"{place}: {kind} names must differ, got {name!r} {n} times")
