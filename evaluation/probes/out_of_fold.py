"""Out-of-fold scores: every training document scored by the classifier that was trained without its fold.

Source: Wolpert, Stacked Generalization, Neural Networks 5 (1992), section 3.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from textbench.evaluation.probes.folds import Fold
from textbench.evaluation.probes.tuning import fit_each

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

TOLERANCE = 1e-3  # the share of documents of which rounding may change what is decided


def out_of_fold_scores(
    X: Any,
    y: "np.ndarray | csr_matrix",
    build: Callable[[], Any],
    folds: Sequence[Fold],
    spread: "Callable[[np.ndarray, np.ndarray], np.ndarray]",
) -> tuple[np.ndarray, np.ndarray]:
    """Return scores, float64 (n_scored, n_labels), and the positions of the documents that they are of, (n_scored,).

    X: csr or dense (n_documents, n_features), what makes the features of each fold, or a list of documents; y:
    (n_documents,) ints, or an indicator (n_documents, n_labels). build: returns the probe or classifier, unfitted.
    folds: as of `folds_of`, one at least; no document is scored twice. spread: given a fold's decision values and the
    classes that it was trained on, returns a column for every label.
    """
    parts = [
        spread(fitted.decision_function(scored), np.asarray(fitted.classes_))
        for fitted, scored in fit_each(build, X, y, folds)
    ]
    documents = np.concatenate([test for _, test in folds])
    order = np.argsort(documents)
    return np.concatenate(parts)[order], documents[order]


def rounded(scores: np.ndarray, *, several_labels: bool) -> tuple[np.ndarray, float, int]:
    """Return scores in half precision where that changes little, else in single: (scores, largest error, changed).

    scores: float64 (n_documents, n_labels). Half precision changes little where at most one document in 1,000 gets
    another highest label. Of several labels it is single: thresholds of rare labels lie between scores that half
    precision does not tell apart. Scores beyond a type's range become its last number; the largest error is that of the
    others. `changed` counts the documents with another highest label or, of several, with others above 0.
    """

    def decided(some: np.ndarray) -> np.ndarray:
        return some > 0 if several_labels else some.argmax(axis=1)[:, None]

    kept, largest, changed = scores, 0.0, 0
    for kind in (np.float32,) if several_labels else (np.float16, np.float32):
        limit = float(np.finfo(kind).max)
        kept = np.clip(scores, -limit, limit).astype(kind)
        if not len(scores):
            break
        largest = float(np.abs(scores - kept)[np.abs(scores) <= limit].max(initial=0.0))
        changed = int((decided(scores) != decided(kept)).any(axis=1).sum())
        if changed <= TOLERANCE * len(scores):
            break
    return kept, largest, changed
