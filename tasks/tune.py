"""Tune: choose a method's parameters and the probe's C by cross-validation on training documents alone."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tasks import catalogue, featurize
from tasks.recipe import Reference, refer

if TYPE_CHECKING:
    from tasks.store import Job


def reference(
    corpus: Reference,
    vectors: Reference,
    method: str,
    trials: int,
    seed: int,
    probe: str,
    validation: Mapping[str, Any],
) -> Reference:
    """Return the choice artifact: choice.json with params, C, score, on_border, and every trial that led to it.

    `validation` holds what `evaluation.tuning.choose_c` is told beside its defaults: c_grid, n_folds, metric. Without
    trials the method keeps its defaults and only C is chosen. With them the first trial is the defaults.
    """
    entry = catalogue.method(method)
    params = {"method": method, "trials": trials, "seed": seed, "probe": probe}
    params["validation"] = dict(validation)
    return refer("tasks.tune:compute", params, {"corpus": corpus, "vectors": vectors}, [entry.module])


def compute(job: "Job") -> None:
    """Run the trials one after another; each is an artifact of its own, so that a resumed search repeats none."""
    trials = [_trial(job, {})]
    if job.params["trials"]:
        trials = _search(job, job.params["trials"])
    best = max(trials, key=lambda trial: _direction(job) * trial["score"])
    job.save_json("choice", best | {"trials": trials})


def _search(job: "Job", n_trials: int) -> list[dict[str, Any]]:
    """Search the method's space by TPE. Each trial seeds its own sampler: a resumed search takes the same path."""
    import numpy as np
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = catalogue.method(job.params["method"]).load().SEARCH_SPACE
    study = optuna.create_study(direction="maximize")
    done: list[dict[str, Any]] = []
    for number in range(n_trials if space else 1):
        if number == 0:
            done.append(_trial(job, {}))
            continue
        seed = np.random.SeedSequence([job.params["seed"], number]).generate_state(1)[0]
        study.sampler = optuna.samplers.TPESampler(seed=int(seed))
        trial = study.ask(space)
        done.append(_trial(job, trial.params))
        study.tell(trial, _direction(job) * done[-1]["score"])
    return done


def _direction(job: "Job") -> int:
    """Return 1 if the metric is better when higher, as the metrics are that are used by default, -1 if lower."""
    from evaluation.metrics import METRICS
    from evaluation.multilabel import MULTILABEL_METRICS

    # A name that both tables hold points the same way in both.
    metric = job.params["validation"].get("metric")
    return 1 if metric is None or (METRICS | MULTILABEL_METRICS)[metric].higher_is_better else -1


def _trial(job: "Job", params: Mapping[str, Any]) -> dict[str, Any]:
    entry = catalogue.method(job.params["method"])
    recipe = {key: job.params[key] for key in ("method", "seed", "probe", "validation")} | {
        "params": dict(params)
    }
    trial = refer("tasks.tune:cross_validate", recipe, job.inputs, [entry.module], stage="trial")
    return job.store.open(trial).json("trial")


def cross_validate(job: "Job") -> None:
    """Score one setting of a method over the probe's values of C; write trial.json."""
    from dataclasses import asdict

    from evaluation.tuning import choose_c
    from tasks.ingest import read_targets

    method, params, seed = (job.params[key] for key in ("method", "params", "seed"))
    features = job.store.open(featurize.reference(job.inputs["vectors"], method, params, seed)).matrix(
        "train"
    )
    targets = read_targets(job.open("corpus"), "train")
    chosen = choose_c(features, targets, job.params["probe"], random_state=seed, **job.params["validation"])
    job.save_json("trial", {"params": params} | asdict(chosen))
