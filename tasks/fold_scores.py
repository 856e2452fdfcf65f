"""Scores of folds: what the chosen setting said, while it was tuned, of documents it was not trained on.

Whatever needs such scores later, thresholds of labels and ensembles, fits nothing again.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from textbench.evaluation.probes.search import FoldScores
    from textbench.tasks.storage.store import Artifact, Job

NAME = "out_of_fold"


def save(job: "Job", parts: "Sequence[FoldScores]", n_labels: int, *, several: bool) -> None:
    """Write the scores of each fold's documents, if there are any, one fold after another, in single precision."""
    import numpy as np

    if not parts:
        return
    scores = np.concatenate(
        [p.scores if several else every_class(p.scores, p.classes, n_labels) for p in parts]
    )
    kept = scores.astype(np.float32)
    arrays = {
        "documents": np.concatenate([p.documents for p in parts]).astype(np.int32),
        "folds": np.repeat(np.arange(len(parts), dtype=np.int32), [len(p.documents) for p in parts]),
        "scores": kept,
        "largest_error": np.abs(scores - kept).max(initial=0.0),
        "changed": np.sum(scores.argmax(axis=1) != kept.argmax(axis=1)),
    }
    job.save_arrays(NAME, arrays)


def read(artifact: "Artifact") -> "dict[str, np.ndarray] | None":
    """Return what a trial or a choice has; None where it has none.

    documents: int32 (n_scored,), positions among the labelled documents; folds: int32 (n_scored,), in which each was
    scored; scores: float32 (n_scored, n_labels); largest_error, changed: by how much rounding to that changed a score,
    and how many documents' highest label.
    """
    return artifact.arrays(NAME) if (artifact.folder / f"{NAME}.npz").exists() else None


def by_fold(found: "dict[str, np.ndarray]") -> "list[tuple[np.ndarray, np.ndarray]]":
    """Return the documents and the scores of each fold."""
    return [
        (found["documents"][found["folds"] == fold], found["scores"][found["folds"] == fold])
        for fold in range(found["folds"].max() + 1)
    ]


def every_class(decisions: "np.ndarray", classes: "np.ndarray", n_classes: int) -> "np.ndarray":
    """Return a decision value for every class, float64 (n_documents, n_classes).

    decisions: (n_documents, n_trained), or (n_documents,) of two classes, the second one's. A class without training
    documents gets a value below all others of its document.
    """
    import numpy as np

    if decisions.ndim == 1:
        sides = [-decisions, decisions] if len(classes) == 2 else [decisions]
        decisions = np.stack(sides, axis=1)
    lowest = decisions.min(axis=1, keepdims=True) - 1.0
    found = np.repeat(lowest, n_classes, axis=1).astype(np.float64)
    found[:, classes] = decisions
    return found
