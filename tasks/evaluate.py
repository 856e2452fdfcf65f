"""Evaluate: train the probe with the chosen settings and read the test labels, once."""

from typing import TYPE_CHECKING, Any

from tasks import catalogue, featurize
from tasks.recipe import Reference, refer

if TYPE_CHECKING:
    import numpy as np

    from evaluation.probes import LinearProbe
    from tasks.store import Artifact, Job

N_TOP = 5  # highest-scored labels that are kept of each document


def reference(corpus: Reference, vectors: Reference, choice: Reference) -> Reference:
    """Return the result artifact of a tuned method.

    Files: metrics.json, per_class.json, predictions.parquet, and the fitted probe's arrays. A row of predictions is a
    document: target, predicted, margin, and its average precision as a query; where documents have several labels,
    target and predicted are lists of them, `top` and `top_scores` its highest-scored labels, and precision_at_1 and
    label_ranking_average_precision its shares of those means.
    """
    entry = catalogue.method(choice.params["method"])
    params = {key: choice.params[key] for key in ("method", "seed", "probe")}
    inputs = {"corpus": corpus, "vectors": vectors, "choice": choice}
    return refer("tasks.evaluate:compute", params, inputs, [entry.module])


def features_of(vectors: Reference, choice: "Artifact") -> Reference:
    """Return the features that a choice artifact settled on."""
    asked = choice.meta["recipe"]["params"]
    return featurize.reference(vectors, asked["method"], choice.json("choice")["params"], asked["seed"])


def compute(job: "Job") -> None:
    """Fit the probe on the training documents, predict the test documents, and score them."""
    from evaluation.probes import build_probe
    from tasks.ingest import read_targets

    corpus, choice = job.open("corpus"), job.open("choice")
    features = job.store.open(features_of(job.inputs["vectors"], choice))
    train, test = ((features.matrix(part), read_targets(corpus, part)) for part in ("train", "test"))
    probe = build_probe(job.params["probe"], choice.json("choice")["C"], job.params["seed"])
    probe.fit(*train)
    names = corpus.json("corpus")["target_names"]
    if test[1].ndim == 2:
        _score_several_labels(job, probe, train, test, names)
    else:
        _score_one_label(job, probe, train, test, names)
    featurize.save_arrays(job, "probe", probe.to_arrays())


def _score_one_label(
    job: "Job", probe: "LinearProbe", train: tuple[Any, Any], test: tuple[Any, Any], names: list[str]
) -> None:
    """Score the predicted classes, and the training documents nearest to each test document."""
    from evaluation.by_example import search_by_example
    from evaluation.metrics import per_class, score_labels, score_neighbours

    features, targets = test
    predicted = probe.predict(features)
    queries = search_by_example(*train, *test)
    job.save_json("metrics", score_labels(targets, predicted) | score_neighbours(queries))
    job.save_json("per_class", per_class(targets, predicted, names))
    columns: dict[str, Any] = {
        "document": range(len(targets)),
        "target": targets,
        "predicted": predicted,
        "margin": margin(probe.decision_function(features)),
        "average_precision": queries.average_precision,
    }
    job.save_table("predictions", columns)


def _score_several_labels(
    job: "Job", probe: "LinearProbe", train: tuple[Any, Any], test: tuple[Any, Any], names: list[str]
) -> None:
    """Tune the probe's thresholds on the training documents; score the ranking of the labels and the decisions.

    The thresholds are tuned on the folds on which C was.
    """
    from evaluation.label_ranking import label_ranking_average_precision, precision_at_k
    from evaluation.multilabel import per_label, score_multilabel
    from evaluation.tuning import tune_thresholds
    from tasks.ingest import label_lists

    features, targets = test
    n_folds = max(2, job.open("choice").json("choice")["n_folds"])  # C had no folds where one document trains
    thresholds = tune_thresholds(*train, job.params["probe"], probe.C, n_folds, job.params["seed"])
    probe.thresholds_ = thresholds
    scores, predicted = probe.decision_function(features), probe.predict(features)
    job.save_json("metrics", score_multilabel(targets, scores, predicted))
    job.save_json("per_class", per_label(targets, predicted, names, thresholds))
    top = (-scores).argsort(axis=1, kind="stable")[:, :N_TOP]
    columns: dict[str, Any] = {
        "document": range(len(scores)),
        "target": label_lists(targets),
        "predicted": label_lists(predicted),
        "top": list(top),
        "top_scores": [row[labels] for row, labels in zip(scores, top, strict=True)],
        "precision_at_1": precision_at_k(targets, scores, 1),
        "label_ranking_average_precision": label_ranking_average_precision(targets, scores),
    }
    job.save_table("predictions", columns)


def margin(decisions: "np.ndarray") -> "np.ndarray":
    """Return how far the winning class is ahead of the second, (n_documents,)."""
    import numpy as np

    if decisions.ndim == 1:
        return np.abs(decisions)
    highest = np.partition(decisions, -2, axis=1)[:, -2:]
    return highest[:, 1] - highest[:, 0]
