"""Tune: choose a method's parameters and the probe's C on training documents alone.

By cross-validation; where the corpus has validation documents of its own, on these.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textbench.tasks import catalogue, first_seed, fold_scores, joined, trial
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Job


def reference(
    corpus: Reference,
    vectors: Reference,
    method: str,
    seed: int,
    probe: str,
    *,
    trials: int = 0,
    seconds: float | None = None,
    validation: Mapping[str, Any] | None = None,
    fixed: Mapping[str, Any] | None = None,
    labels: Mapping[str, Any] | None = None,
) -> Reference:
    """Return the choice artifact: choice.json with params, C, score, on_border, every trial that led to it,
    and the space that was searched (by parameter, as Optuna's JSON); and the chosen setting's scores of its folds
    (`tasks.fold_scores`).

    Without `trials` and `seconds` the method keeps its defaults and only C is chosen. `validation` holds what
    `evaluation.probes.tuning.choose_c` is told beside its defaults; `fixed` are parameters of the method that are not
    searched; `labels` (the arguments of `evaluation.probes.budgets.labelled_documents`) are the labels that may be
    seen, all if empty.
    """
    entry = catalogue.method(method)
    params = {
        "method": method,
        "trials": trials,
        "search_seconds": seconds,
        "seed": seed,
        "probe": None if entry.is_classifier else probe,
        "validation": dict(validation or {}),
        "fixed": dict(fixed or {}),
        "labels": dict(labels or {}),
    }
    return _of(params, {"corpus": corpus, "vectors": vectors})


def _of(params: Mapping[str, Any], inputs: Mapping[str, Reference]) -> Reference:
    is_searched = params["trials"] or params["search_seconds"]
    spaces = joined.entries(catalogue.method(params["method"]), params["fixed"]) if is_searched else []
    uses = [*trial.uses(params), *(use for one in spaces for use in one.code("SEARCH_SPACE"))]
    return refer("textbench.tasks.tune:compute", params, inputs, uses)


def compute(job: "Job") -> None:
    """Search, then write the best trial (of equals the first), all others beside it, and the best one's scores."""
    from textbench.tasks.study import search

    if first_seed.stands_for(job, job.params):
        job.take(job.store.open(_of(job.params | {"seed": first_seed.FIRST}, job.inputs)))
        return
    trials, references, space = search(job)
    finished = [k for k, one in enumerate(trials) if one["state"] == "complete"]
    best = max(finished, key=lambda k: trial.direction(job) * trials[k]["score"])
    job.save_json("choice", trials[best] | {"trials": trials, "space": space})
    fold_scores.hand_on(job, job.store.open(references[best]))
