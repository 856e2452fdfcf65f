"""Trial: score one setting of a method on training documents alone, over the probe's values of C if it has a probe."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textbench.tasks import featurize, fold_scores
from textbench.tasks.labels import chosen_rows, held_out, labelled
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    from textbench.evaluation.probes.tuning import CVResult
    from textbench.tasks.storage.store import Job

# What a trial takes over from the study it belongs to.
SHARED = ("method", "seed", "probe", "validation", "labels")


def uses(params: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return what is looked up by name: the method, the probe with its grids, the metric that tuning goes by."""
    found = featurize.uses(params["method"], params["fixed"] if "fixed" in params else params["params"])
    if params["probe"] is not None:
        found += [
            ("textbench.evaluation.probes.catalogue:PROBES", params["probe"]),
            ("textbench.evaluation.probes.tuning:C_GRIDS", params["probe"]),
            ("textbench.evaluation.probes.tuning:SETTING_GRIDS", params["probe"]),
        ]
    metric = params["validation"].get("metric")
    found.append(("textbench.evaluation.metrics.single_label:_METRICS", metric or "accuracy"))
    found.append(("textbench.evaluation.metrics.multilabel:_METRICS", metric or "micro_f1_zero"))
    return found


def direction(job: "Job") -> int:
    """Return 1 if the metric is better when higher, as the metrics are that are used by default, -1 if lower."""
    from textbench.evaluation.metrics.multilabel import MULTILABEL_METRICS
    from textbench.evaluation.metrics.single_label import METRICS

    # A name that both tables hold points the same way in both.
    metric = job.params["validation"].get("metric")
    return 1 if metric is None or (METRICS | MULTILABEL_METRICS)[metric].higher_is_better else -1


def reference(job: "Job", params: Mapping[str, Any], prune_below: list[float]) -> Reference:
    """Return the artifact of one setting's validation; params are those that differ from the method's defaults."""
    recipe = {name: job.params[name] for name in SHARED} | {
        "params": dict(params),
        "prune_below": prune_below,
    }
    return refer("textbench.tasks.trial:compute", recipe, job.inputs, uses(recipe))


def compute(job: "Job") -> None:
    """Score one setting of a method, over the probe's values of C if it has a probe.

    Writes trial.json, and what `tasks.fold_scores` keeps of the best C.
    """
    from dataclasses import asdict, replace

    method, params, seed = (job.params[key] for key in ("method", "params", "seed"))
    arguments = dict(job.params["validation"]) | {"random_state": seed}
    if job.params["prune_below"]:
        arguments["prune_below"] = job.params["prune_below"]
    targets, rows = labelled(job)
    if (validation := held_out(job, rows)) is not None:
        arguments["held_out"] = validation
    if job.params["probe"] is None:
        chosen = _score_classifier(job, rows, targets, arguments)
    else:
        from textbench.evaluation.probes.tuning import choose_c

        features = featurize.reference(job.inputs["vectors"], method, params, seed, job.params["labels"])
        if "labels" in features.params:
            X = featurize.in_folds(job, features)
        else:
            X = chosen_rows(job.store.open(features).matrix("train"), rows)
        chosen = choose_c(X, targets, job.params["probe"], **arguments)
    found = asdict(replace(chosen, out_of_fold=[]))
    del found["out_of_fold"]
    job.save_json("trial", {"params": params} | found)
    n_labels = len(job.open("corpus").json("corpus")["target_names"])
    fold_scores.save(job, chosen.out_of_fold, n_labels, several=targets.ndim == 2)


def _score_classifier(job: "Job", rows: Any, targets: Any, arguments: dict[str, Any]) -> "CVResult":
    from textbench.evaluation.probes.tuning import score_classifier

    arguments.pop("c_grid", None)  # a protocol's, for its probe
    build, kind = featurize.builder(*(job.params[name] for name in ("method", "params", "seed")))
    documents = featurize.documents(job, "train", kind)
    return score_classifier(build, chosen_rows(documents, rows), targets, **arguments)
