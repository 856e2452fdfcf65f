"""Labels: which of the training documents' labels a job may see, and on which of these alone tuning is done."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_matrix

    from textbench.tasks.storage.store import Job


def labelled(job: "Job") -> "tuple[np.ndarray | csr_matrix, np.ndarray | None]":
    """Return the training targets that the job may see, and the rows of their documents; None if it sees all.

    Targets are ints (n_documents,), or an indicator, csr int8 (n_documents, n_labels).
    """
    from textbench.evaluation.probes.budgets import labelled_documents
    from textbench.tasks.corpus import read_targets

    targets = read_targets(job.open("corpus"), "train")
    if not job.params["labels"]:
        return targets, None
    rows = labelled_documents(targets, **job.params["labels"])
    return targets[rows], rows


def held_out(job: "Job", rows: "np.ndarray | None") -> list[int] | None:
    """Return which of the documents that `labelled` gave are the corpus's own validation documents, by position.

    On these alone everything is tuned. None where folds are to be made of all documents: the corpus has no validation
    documents, or a label budget has left none, or nothing but them.
    """
    import numpy as np

    from textbench.tasks.corpus import read_validation

    validation = read_validation(job.open("corpus"))
    if validation is None:
        return None
    if rows is None:
        return validation.tolist()
    found = np.flatnonzero(np.isin(rows, validation))
    return found.tolist() if 0 < len(found) < len(rows) else None


def chosen_rows(documents: Any, rows: "np.ndarray | None") -> Any:
    """Return these rows of a matrix, or these documents of a list; all of them for None."""
    if rows is None:
        return documents
    return [documents[row] for row in rows] if isinstance(documents, list) else documents[rows]
