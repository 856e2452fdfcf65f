"""Score: compute every metric from the stored predictions of a result, in milliseconds.

A metric that is added or mended changes no result's key: `digest` says which metrics a row was scored with.
"""

from typing import TYPE_CHECKING, Any

from textbench.tasks.storage.recipe import fingerprint

if TYPE_CHECKING:
    from textbench.tasks.storage.store import Artifact

TABLES = (
    ("textbench.evaluation.metrics.single_label", "_METRICS"),
    ("textbench.evaluation.metrics.multilabel", "_METRICS"),
)


def digest() -> str:
    """Return a digest of the code that `metrics` reaches: equal digests mean equal metrics of equal predictions."""
    return fingerprint(((__name__, "metrics"), *TABLES))[0][:16]


def metrics(result: "Artifact") -> dict[str, float]:
    """Return every metric of a result of `tasks.predict`, by name: those of one label a document, or of several."""
    from textbench.evaluation.metrics.multilabel import score_multilabel
    from textbench.evaluation.metrics.query_scores import QueryScores
    from textbench.evaluation.metrics.single_label import score_classes, score_labels, score_neighbours
    from textbench.tasks.corpus import targets_of

    table, scores = result.table("predictions", ["target", "predicted"]), result.array("scores")
    n_labels = scores.shape[1]
    target, predicted = (targets_of(table[name], n_labels) for name in ("target", "predicted"))
    if target.ndim == 2:
        return score_multilabel(target, scores, predicted)
    found = score_labels(target, predicted) | score_classes(target, scores)
    if (result.folder / "neighbours.npz").exists():
        queries: dict[str, Any] = result.arrays("neighbours")
        found |= score_neighbours(QueryScores(**queries))
    return found
