"""Out-of-fold scores of a tuned method: what its classifier says of training documents that it was not trained on.

The folds are those on which C was chosen; the classifier has the chosen settings. What was learned without labels is
that of the run: its documents are all training documents.
"""

from typing import TYPE_CHECKING, Any

from textbench.tasks import featurize, first_seed, fold_scores, predict
from textbench.tasks.labels import chosen_rows, held_out, labelled
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from textbench.tasks.storage.store import Artifact, Job


def reference(result: Reference) -> Reference:
    """Return the artifact of a result's out-of-fold scores.

    Files: scores.npy, decision values (n_scored, n_labels), float16 where that changes little and else float32;
    documents.npy, which training documents these are of, int32 (n_scored,), folds.npy, in which fold each was scored,
    int16 (n_scored,); rounding.json as `fold_scores.write` has it. Of a corpus with validation documents of its own
    these alone are scored; of a single training document none is.
    """
    choice = result.inputs["choice"]
    folds = {
        key: value for key, value in choice.params["validation"].items() if key in ("n_folds", "held_out")
    }
    params = {key: choice.params[key] for key in ("method", "seed", "probe", "labels")} | {
        "validation": folds
    }
    inputs = {name: result.inputs[name] for name in ("corpus", "vectors", "choice")}
    return refer("textbench.tasks.out_of_fold:compute", params, inputs, predict.uses(choice))


def scored_together(scores: "Artifact") -> "list[np.ndarray]":
    """Return the positions in `documents` of those that one classifier scored, int arrays, a fold each.

    scores: an artifact of `reference`.
    """
    import numpy as np

    folds = scores.array("folds")
    return [np.flatnonzero(folds == fold) for fold in range(folds.max(initial=-1) + 1)]


def _folds(job: "Job", validation: "Mapping[str, Any]", X: Any, y: Any, rows: "np.ndarray | None") -> Any:
    """Return the folds on which a job's C was chosen; X: what has a row for each of the labelled documents."""
    from textbench.evaluation.probes.folds import folds_of

    arguments = {"n_folds": 3} | dict(validation)
    if (own := held_out(job, rows)) is not None:
        arguments["held_out"] = own
    return folds_of(X, y, arguments["n_folds"], job.params["seed"], arguments.get("held_out"))


def compute(job: "Job") -> None:
    """Write what a classifier says of each fold's documents: by the scores that tuning left, or trained once a fold."""
    import numpy as np

    corpus, vectors, choice = (job.inputs[name] for name in ("corpus", "vectors", "choice"))
    if first_seed.stands_for(job, choice.params):
        first = predict.reference(corpus, vectors, first_seed.choice(job))
        job.take(job.store.open(reference(first)))
        return
    tuned = job.open("choice")
    if not fold_scores.are_in(tuned):
        _score(job)
        return
    rows = labelled(job)[1]
    fold_scores.hand_on(job, tuned, with_documents=rows is None)
    if rows is not None:
        job.save_array("documents", rows[tuned.array("documents")].astype(np.int32))


def _score(job: "Job") -> None:
    import numpy as np

    from textbench.evaluation.probes.out_of_fold import out_of_fold_scores

    documents, build = predict.training(job)
    targets, rows = labelled(job)
    names = job.open("corpus").json("corpus")["target_names"]
    known = chosen_rows(documents("train"), rows)
    folds = _folds(job, job.params["validation"], known, targets, rows)
    features = predict.features_of(job.inputs["vectors"], job.open("choice"))
    made = featurize.in_folds(job, features) if features and "labels" in features.params else known

    def spread(decisions: "np.ndarray", classes: "np.ndarray") -> Any:
        return decisions if targets.ndim == 2 else fold_scores.every_class(decisions, classes, len(names))

    scores, scored = np.empty((0, len(names))), np.empty(0, dtype=np.int32)
    fold_of = np.empty(targets.shape[0], dtype=np.int16)
    for fold, (_, some) in enumerate(folds):
        fold_of[some] = fold
    if folds:
        scores, scored = out_of_fold_scores(made, targets, build, folds, spread)
    of_corpus = scored if rows is None else rows[scored]
    fold_scores.write(job, scores, of_corpus, fold_of[scored], several=targets.ndim == 2)
