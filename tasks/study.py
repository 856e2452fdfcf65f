"""A study: the search of a method's parameters, in batches whose results do not depend on who computes them.

Every trial seeds its own sampler with its number, four are asked for at a time whatever the number of workers, and
told in order: one worker or several, killed and resumed or not, the study is the same to the bit. What survives a
kill are the trials' artifacts. The journal is a record of finished trials for Optuna's dashboard, so that none is
ever left RUNNING.
"""

import contextlib
import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from textbench.tasks import catalogue, featurize
from textbench.tasks.storage import isolate, tracebacks
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.trial import direction
from textbench.tasks.trial import reference as trial_reference

if TYPE_CHECKING:
    import optuna

    from textbench.tasks.storage.store import Job, Store

BATCH = 4
# Trials before the first that may be pruned: the median of fewer says little.
N_UNPRUNED = 8
FEW = 64  # settings of a space that is gone through, each once, instead of sampled
MAX_TRIALS = 10_000  # of a search that is limited by seconds


def search(job: "Job") -> tuple[list[dict[str, Any]], list[Reference], dict[str, str]]:
    """Return the trials of the job's study in order, the method's defaults first, their artifacts, and their space.

    Each has number, state ("complete", "pruned", "failed"), params (those that differ from the defaults, as recipes
    hold them), values (every searched parameter), seconds, error, and if it was scored what
    `evaluation.probes.tuning.CVResult` holds, with on_border the list of names whose value is an end of what was
    searched.
    """
    from optuna.distributions import distribution_to_json

    params = job.params
    space, defaults = _space(job)
    n_trials = params["trials"] or (MAX_TRIALS if params["search_seconds"] else 0)
    if not n_trials or not space:
        alone = Study(job, {}, {})
        (only,) = alone.batch([{}], None)
        if only["state"] == "failed":  # nothing else was asked for: the cell fails with this reason
            raise isolate.CellError(only["error"], alone.traceback)
        return [only], alone.references, {}
    study = Study(job, space, defaults)
    workers = min(BATCH, job.store.workers)
    with isolate.pool(workers) if workers > 1 else contextlib.nullcontext() as pool, study.journal() as write:
        n_trials = min(n_trials, study.n_settings or n_trials)
        while len(study.trials) < n_trials and not study.is_over(params["search_seconds"]):
            asked = [study.ask() for _ in range(min(BATCH, n_trials - len(study.trials)))]
            for trial, outcome in zip(
                asked, study.batch([trial.params for trial in asked], pool), strict=True
            ):
                write(study.tell(trial, outcome))
    if not any(trial["state"] == "complete" for trial in study.trials):
        failed = f"all {len(study.trials)} trials failed, the first with: {study.trials[0]['error']}"
        raise isolate.CellError(failed, study.traceback)
    return study.trials, study.references, {n: distribution_to_json(values) for n, values in space.items()}


def _space(job: "Job") -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the distributions that are searched, and the method's default of each."""
    module = catalogue.method(job.params["method"]).load()
    fixed = job.params["fixed"]
    own = {name: value for name, value in fixed.items() if not name.startswith(featurize.PREFIX)}
    defaults = module.build(**own).get_params()
    searched = module.search_space(fixed) if hasattr(module, "search_space") else module.SEARCH_SPACE
    space = {name: values for name, values in searched.items() if name not in fixed}
    return space, {name: defaults[name] for name in space}


class Study:
    """The trials so far, and Optuna's memory of them."""

    def __init__(self, job: "Job", space: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.job = job
        self.space = dict(space)
        self.defaults = dict(defaults)
        self.trials: list[dict[str, Any]] = []
        self.traceback = ""  # of the first setting that failed
        self.references: list[Reference] = []  # of the trials that were asked for
        self._outcomes: dict[str, dict[str, Any]] = {}
        self._made: dict[str, Reference] = {}
        self._paid: set[str] = set()
        self._n_asked = 0
        self._study = optuna.create_study(direction=self._direction)
        order = self._every_setting()
        self.n_settings = len(order)
        for setting in order or [self.defaults]:
            self._study.enqueue_trial(setting)

    def _every_setting(self) -> list[dict[str, Any]]:
        """Return the settings of a space that has few, the defaults first, the rest in random order; else nothing."""
        import numpy as np

        choices = [getattr(values, "choices", ()) for values in self.space.values()]
        if not 1 <= math.prod(map(len, choices)) <= FEW or not choices:
            return []
        every = [dict(zip(self.space, values, strict=True)) for values in itertools.product(*choices)]
        rest = [setting for setting in every if setting != self.defaults]
        order = np.random.default_rng(self.job.params["seed"]).permutation(len(rest))
        return [self.defaults, *(rest[i] for i in order)]

    @property
    def _direction(self) -> Literal["maximize", "minimize"]:
        return "maximize" if direction(self.job) > 0 else "minimize"

    def is_over(self, seconds: float | None) -> bool:
        """Tell whether the trials have cost that many seconds; by what they cost when made, also if resumed."""
        return seconds is not None and sum(trial["seconds"] for trial in self.trials) >= seconds

    def ask(self) -> "optuna.Trial":
        """Return the next trial with its parameters, which depend on the batches told and its own number alone."""
        import numpy as np
        import optuna

        seed = np.random.SeedSequence([self.job.params["seed"], self._n_asked]).generate_state(1)[0]
        self._n_asked += 1
        with _quiet():
            self._study.sampler = optuna.samplers.TPESampler(seed=int(seed), constant_liar=True)
            return self._study.ask(self.space)

    def batch(self, settings: list[dict[str, Any]], pool: Executor | None) -> list[dict[str, Any]]:
        """Return the outcomes of these settings; what a setting of this study gave before is not computed again."""
        jobs: dict[str, tuple[Reference | None, Reference]] = {}
        prune_below = self._medians()
        for values in settings:
            name = json.dumps(values, sort_keys=True)
            if name not in self._outcomes:
                jobs[name] = self._references(values, prune_below)
        run = pool.map if pool else map
        store = self.job.store
        for name, found in zip(jobs, run(_run, [store] * len(jobs), jobs.values()), strict=True):
            self._outcomes[name], self._made[name] = found, jobs[name][1]
            self.traceback = self.traceback or found.get("traceback", "")
        outcomes = []
        for values in settings:
            self.references.append(self._made[json.dumps(values, sort_keys=True)])
            outcome = self._outcomes[json.dumps(values, sort_keys=True)]
            cost = sum(s for key, s in outcome["costs"].items() if key not in self._paid)
            self._paid.update(outcome["costs"])
            about = {"params": self._recipe(values), "values": self.job.params["fixed"] | values}
            seconds = {"seconds": round(cost, 3)}
            result = dict(outcome["result"], on_border=self._on_border(outcome["result"], values))
            outcomes.append({"state": outcome["state"], "error": outcome["error"]} | result | about | seconds)
        return outcomes

    def _recipe(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Leave out what equals the default, so that the features of the defaults are always the same artifact."""
        return self.job.params["fixed"] | {
            name: value for name, value in values.items() if value != self.defaults[name]
        }

    def _references(
        self, values: Mapping[str, Any], prune_below: list[float]
    ) -> tuple[Reference | None, Reference]:
        params, recipe = self.job.params, self._recipe(values)
        trial = trial_reference(self.job, recipe, prune_below)
        # A trial makes features of labels itself, for each fold.
        if params["probe"] is None or catalogue.method(params["method"]).uses_labels(recipe):
            return None, trial
        vectors = self.job.inputs["vectors"]
        return featurize.reference(vectors, params["method"], recipe, params["seed"]), trial

    def _medians(self) -> list[float]:
        """Return for every fold but the last what half of the trials had reached by then; nothing to begin with."""
        import numpy as np

        courses = [trial["fold_scores"] for trial in self.trials if trial["state"] != "failed"]
        if len(courses) < N_UNPRUNED:
            return []
        n_folds = max(len(course) for course in courses)
        return [
            float(np.median([course[i] for course in courses if len(course) > i])) for i in range(n_folds - 1)
        ]

    def _on_border(self, result: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
        at_end = [
            name
            for name, distribution in self.space.items()
            if values.get(name) in (getattr(distribution, "low", _NONE), getattr(distribution, "high", _NONE))
        ]
        return (["C"] if result.get("on_border") else []) + at_end

    def tell(self, trial: "optuna.Trial", outcome: dict[str, Any]) -> "optuna.trial.FrozenTrial":
        """Add an outcome to the study and return it as Optuna keeps it."""
        import optuna

        state = getattr(
            optuna.trial.TrialState, {"failed": "FAIL"}.get(outcome["state"], outcome["state"].upper())
        )
        with _quiet():
            for step, score in enumerate(outcome.get("fold_scores", ())):
                trial.report(score, step)
            for name in ("error", "C", "seconds"):
                if outcome.get(name) is not None:
                    trial.set_user_attr(name, outcome[name])
            frozen = self._study.tell(
                trial, outcome["score"] if outcome["state"] == "complete" else None, state
            )
        self.trials.append({"number": frozen.number} | outcome)
        return frozen

    @contextlib.contextmanager
    def journal(self) -> "Iterator[Callable[[optuna.trial.FrozenTrial], None]]":
        """Give a function that writes finished trials to the study's file in `studies`, begun anew."""
        import optuna
        from optuna.storages.journal import JournalFileBackend

        path = journal_path(self.job)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # the artifacts have every finished trial, in order
        with _quiet():
            storage = optuna.storages.JournalStorage(JournalFileBackend(str(path)))
            record = optuna.create_study(storage=storage, study_name=path.stem, direction=self._direction)
            yield record.add_trial


_NONE = object()


def journal_path(job: "Job") -> Path:
    """Return the file of the job's study: beside the store, in `studies`."""
    import hashlib

    params, corpus = job.params, job.inputs["corpus"].params
    known = json.dumps([params, *(job.inputs[name].key for name in ("corpus", "vectors"))], sort_keys=True)
    method = Path(params["method"]).stem if params["method"].endswith(".py") else params["method"]
    name = f"{corpus.get('dataset', 'own')}-{method}-{hashlib.sha256(known.encode()).hexdigest()[:8]}"
    return job.store.root.parent / "studies" / f"{name}.log"


def _run(store: "Store", references: tuple[Reference | None, Reference]) -> dict[str, Any]:
    """Compute one trial in whatever process this is; return its state, result, and what each artifact cost."""
    costs = {}
    try:
        for reference in filter(None, references):
            costs[reference.key] = store.ensure(reference)["seconds"]
        result = store.open(references[1]).json("trial")
    except OSError:
        raise  # a full disk is nobody's setting
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        failed = {"state": "failed", "error": reason, "result": {}, "costs": costs}
        return failed | {"traceback": tracebacks.of(error)}
    state = "complete" if result["pruned_after"] is None else "pruned"
    return {"state": state, "error": None, "result": result, "costs": costs}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna calls what is used here experimental
        yield
