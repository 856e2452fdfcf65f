"""First seed: of many training documents, a seed that draws nothing but folds has the first one's result.

Folds of many documents find the same C, or one as good (tests/benchmarks/tuning.py); going through them once for every
seed would say nothing of the method. What a seed changes else is its own, and is computed.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from textbench.tasks import catalogue, joined
from textbench.tasks.labels import labelled
from textbench.tasks.storage.recipe import Reference

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Job

FIRST = 0


def stands_for(job: "Job", asked: Mapping[str, Any]) -> bool:
    """Tell whether the first seed's result is that of the job's seed, another one.

    asked: the parameters of `tasks.tune.reference`. It is where more than `evaluation.probes.tuning.LARGE` documents
    have labels, nothing is searched, the method and what it needs have no seed, and the probe draws nothing but the
    order in which its solver visits the documents.
    """
    from textbench.evaluation.probes.catalogue import probe_class
    from textbench.evaluation.probes.tuning import LARGE

    if asked["seed"] == FIRST or asked["trials"] or asked["search_seconds"]:
        return False
    if labelled(job)[0].shape[0] <= LARGE:
        return False
    parts = joined.entries(catalogue.method(asked["method"]), asked["fixed"])
    if any(part.is_seeded or {"word_vectors", "token_topics"} & set(part.needs) for part in parts):
        return False
    return asked["probe"] is None or not probe_class(asked["probe"]).DRAWS


def choice(job: "Job") -> Reference:
    """Return the first seed's choice in place of the one that is the job's input."""
    own = job.inputs["choice"]
    return replace(own, params=dict(own.params) | {"seed": FIRST})
