"""Evaluate: train the probe with the chosen settings and read the test labels, once."""

from typing import TYPE_CHECKING, Any

from tasks import catalogue, featurize
from tasks.recipe import Reference, refer

if TYPE_CHECKING:
    import numpy as np

    from tasks.store import Artifact, Job


def reference(corpus: Reference, vectors: Reference, choice: Reference) -> Reference:
    """Return the result artifact of a tuned method.

    Files: metrics.json, per_class.json, predictions.parquet (document, target, predicted, margin, and the document's
    average precision as a query), and the fitted probe's arrays.
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
    """Fit the probe on the training documents, predict the test documents, and score both labels and neighbours."""
    from evaluation.by_example import search_by_example
    from evaluation.metrics import METRICS, per_class, score_labels
    from evaluation.probes import build_probe
    from tasks.ingest import read_targets

    corpus, choice = job.open("corpus"), job.open("choice")
    features = job.store.open(features_of(job.inputs["vectors"], choice))
    train, test = features.matrix("train"), features.matrix("test")
    train_targets, test_targets = (read_targets(corpus, part) for part in ("train", "test"))
    probe = build_probe(job.params["probe"], choice.json("choice")["C"], job.params["seed"])
    probe.fit(train, train_targets)
    predicted = probe.predict(test)
    queries = search_by_example(train, train_targets, test, test_targets)
    metrics = score_labels(test_targets, predicted)
    metrics |= {name: m.function(queries) for name, m in METRICS.items() if m.needs == "neighbours"}
    job.save_json("metrics", metrics)
    job.save_json("per_class", per_class(test_targets, predicted, corpus.json("corpus")["target_names"]))
    columns: dict[str, Any] = {
        "document": range(len(test_targets)),
        "target": test_targets,
        "predicted": predicted,
        "margin": _margin(probe.decision_function(test)),
        "average_precision": queries.average_precision,
    }
    job.save_table("predictions", columns)
    featurize.save_arrays(job, "probe", probe.to_arrays())


def _margin(decisions: "np.ndarray") -> "np.ndarray":
    """Return how far the winning class is ahead of the second, (n_documents,)."""
    import numpy as np

    if decisions.ndim == 1:
        return np.abs(decisions)
    highest = np.partition(decisions, -2, axis=1)[:, -2:]
    return highest[:, 1] - highest[:, 0]
