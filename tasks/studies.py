"""Studies on a server: the trials of finished searches in a PostgreSQL database that Optuna's dashboard reads.

It is a record, like the journal beside each store: what a resumed search trusts are its trials' artifacts. Every
machine that computes a search writes it, so that `optuna-dashboard postgresql://...` shows those of all.
"""

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.remote import STUDIES, held
from textbench.tasks.storage.store import Job, Store

if TYPE_CHECKING:
    import optuna

log = logging.getLogger("textbench.store")
STATES = {"complete": "COMPLETE", "pruned": "PRUNED", "failed": "FAIL"}


def record(store: Store, reference: Reference) -> None:
    """Write the search behind a choice to the database of `TEXTBENCH_STUDIES`, if there is one.

    A database that does not answer is a warning: the search itself is whole.
    """
    address = os.environ.get(STUDIES)
    if not address:
        return
    choice = store.open(reference).json("choice")
    if len(choice["trials"]) < 2:
        return
    try:
        _write(address, Job(dict(reference.params), reference.inputs, Path(), store), choice)
    except Exception as error:  # whatever the database's client raises
        log.warning("a study could not be written to %s: %s", STUDIES, " ".join(str(error).split()))


def _write(address: str, job: Job, choice: dict[str, Any]) -> None:
    import optuna

    from textbench.tasks import study
    from textbench.tasks.trial import direction

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    name = study.journal_path(job).stem
    with held(address, STUDIES, STUDIES):  # two who make its tables at once stumble over each other
        storage = optuna.storages.RDBStorage(address)
        if name in optuna.get_all_study_names(storage):
            optuna.delete_study(study_name=name, storage=storage)
        way = (
            optuna.study.StudyDirection.MAXIMIZE
            if direction(job) > 0
            else optuna.study.StudyDirection.MINIMIZE
        )
        made = optuna.create_study(storage=storage, study_name=name, direction=way)
        made.add_trials([_frozen(trial, choice["space"]) for trial in choice["trials"]])


def _frozen(trial: dict[str, Any], space: dict[str, str]) -> "optuna.trial.FrozenTrial":
    """Return a trial of choice.json as Optuna keeps it."""
    import optuna
    from optuna.distributions import json_to_distribution

    attributes = {name: trial[name] for name in ("error", "C", "seconds") if trial.get(name) is not None}
    return optuna.trial.create_trial(
        state=optuna.trial.TrialState[STATES[trial["state"]]],
        value=trial["score"] if trial["state"] == "complete" else None,
        params={name: trial["values"][name] for name in space},
        distributions={name: json_to_distribution(text) for name, text in space.items()},
        user_attrs=attributes,
        intermediate_values=dict(enumerate(trial.get("fold_scores", ()))),
    )
