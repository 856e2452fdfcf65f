"""Scores of folds: what the chosen setting said, while it was tuned, of documents it was not trained on.

Whatever needs such scores later, thresholds of labels and ensembles, fits nothing again. A trial writes them, and what
stands on it hands the same files on, which take no room twice in one store.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from textbench.evaluation.probes.search import FoldScores
    from textbench.tasks.storage.store import Artifact, Job

SCORES, FOLDS, ROUNDING, DOCUMENTS = "scores.npy", "folds.npy", "rounding.json", "documents.npy"


def save(job: "Job", parts: "Sequence[FoldScores]", n_labels: int, *, several: bool) -> None:
    """Write the scores of each fold's documents, if there are any."""
    import numpy as np

    if not parts:
        return
    scores = np.concatenate(
        [p.scores if several else every_class(p.scores, p.classes, n_labels) for p in parts]
    )
    documents = np.concatenate([p.documents for p in parts])
    folds = np.repeat(np.arange(len(parts)), [len(p.documents) for p in parts])
    order = np.argsort(documents)
    write(job, scores[order], documents[order], folds[order], several=several)


def write(
    job: "Job", scores: "np.ndarray", documents: "np.ndarray", folds: "np.ndarray", *, several: bool
) -> None:
    """Write scores, rounded, as `by_fold` reads them.

    scores: float64 (n_scored, n_labels); documents: ints (n_scored,), rising; folds: in which each was scored.
    rounding.json: the type, the largest error of rounding, and of how many documents it changed what is decided.
    """
    import numpy as np

    from textbench.evaluation.probes.out_of_fold import rounded

    kept, error, changed = rounded(scores, several_labels=several)
    job.save_array("scores", kept)
    job.save_array("documents", documents.astype(np.int32))
    job.save_array("folds", folds.astype(np.int16))
    told = {"dtype": str(kept.dtype), "largest_error": error, "decisions_changed": changed}
    job.save_json("rounding", told)


def are_in(artifact: "Artifact") -> bool:
    """Tell whether a trial or a choice has such scores."""
    return (artifact.folder / FOLDS).exists()


def hand_on(job: "Job", artifact: "Artifact", *, with_documents: bool = True) -> None:
    """Give a job the scores of another artifact, if it has some: the same files."""
    if are_in(artifact):
        for name in (SCORES, FOLDS, ROUNDING, *([DOCUMENTS] if with_documents else [])):
            job.link(artifact, name)


def by_fold(artifact: "Artifact") -> "list[tuple[np.ndarray, np.ndarray]]":
    """Return the documents, int32 (n_scored,), and the scores, float64 (n_scored, n_labels), of each fold."""
    import numpy as np

    scores, documents, folds = (artifact.array(name) for name in ("scores", "documents", "folds"))
    return [
        (documents[folds == fold], scores[folds == fold].astype(np.float64))
        for fold in range(folds.max(initial=-1) + 1)
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
