"""Resamples: the test error of a classifier trained on shares of the training documents, over many draws of them.

Each draw is tuned twice. `tuned` chooses the classifier's constants by cross-validation on the documents drawn.
`on_test` chooses those with the least error on the test documents, as the compressive-features paper did in figures 2
and 4 "so as to eliminate effects from imperfect tuning": an error below what anybody could have reached.

Documents are divided by the sum of their features, those that no drawn document has included, as the paper has it: one
whose k-grams are mostly new is scored near the intercept. With `known` only the features of drawn documents count.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_matrix

    from textbench.tasks.storage.store import Job

N_FOLDS = 3


def reference(
    corpus: Reference,
    features: Reference,
    penalty: str,
    share: float,
    draws: Sequence[int],
    *,
    known: bool = False,
) -> Reference:
    """Return the artifact of some draws of a share, in (0, 1], of the training documents.

    penalty: "elastic-net" or "ridge" (`evaluation.probes.wide`); draws: their numbers. Files: draws.json, a list with
    for each draw `draw`, `documents`, and for `tuned` and `on_test` the `error` on the test documents, `cv_error`, the
    constants and whether that fit converged; for a draw of all documents also predictions.parquet (target, tuned,
    on_test).
    """
    params = {"penalty": penalty, "share": share, "draws": list(draws), "known": known}
    return refer(
        "textbench.tasks.derived.subsampled_error:compute",
        params,
        {"corpus": corpus, "features": features},
        stage="resamples",
    )


def compute(job: "Job") -> None:
    """Draw, fit and score."""
    import numpy as np

    from textbench.evaluation.probes.budgets import labelled_documents
    from textbench.tasks.corpus import read_targets

    corpus, features = job.open("corpus"), job.open("features")
    X, X_test = (features.matrix(part).astype(np.float64) for part in ("train", "test"))
    y, y_test = (read_targets(corpus, part) for part in ("train", "test"))
    n_documents = max(2, round(job.params["share"] * len(y)))
    found = []
    for draw in job.params["draws"]:
        rows = labelled_documents(y, n_documents, draw, stratified=True)
        both = scaled(X[rows], X_test, job.params["known"])
        one, predicted = tune_and_test(*both, y[rows], y_test, job.params["penalty"])
        found.append({"draw": draw, "documents": n_documents} | one)
    job.save_json("draws", found)
    if n_documents == len(y):
        job.save_table("predictions", {"target": y_test} | predicted)


def scaled(X: "csr_matrix", X_test: "csr_matrix", known: bool) -> "tuple[csr_matrix, csr_matrix]":
    """Return the columns that a training document has, others have no weight, of documents divided by their sums."""
    import numpy as np
    from sklearn.preprocessing import normalize

    used = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
    if known:
        return normalize(X[:, used], norm="l1"), normalize(X_test[:, used], norm="l1")
    return normalize(X, norm="l1")[:, used], normalize(X_test, norm="l1")[:, used]


def tune_and_test(
    X: "csr_matrix", X_test: "csr_matrix", y: "np.ndarray", y_test: "np.ndarray", penalty: str
) -> "tuple[dict[str, Any], dict[str, np.ndarray]]":
    """Return what was chosen either way and its test error, and what it predicts of the test documents."""
    import numpy as np

    from textbench.evaluation.probes.wide import GRIDS, PENALTIES

    candidates: list[dict[str, Any]] = []
    predictions = []
    for probe in PENALTIES[penalty]().fit_grid(X, y):
        constants = {name: getattr(probe, name) for name in GRIDS[penalty]}
        candidates.append(constants | {"converged": bool(probe.converged_)})
        predictions.append(probe.predict(X_test))
    errors = np.array([np.mean(predicted != y_test) for predicted in predictions])
    scores = cross_validated(X, y, penalty)
    chosen = {"tuned": int(scores.argmin()), "on_test": int(errors.argmin())}
    about = {
        name: candidates[i] | {"error": float(errors[i]), "cv_error": float(scores[i])}
        for name, i in chosen.items()
    }
    return about, {name: predictions[i] for name, i in chosen.items()}


def cross_validated(X: "csr_matrix", y: "np.ndarray", penalty: str) -> "np.ndarray":
    """Return each candidate's mean error over stratified folds, in the order of the penalty's grid."""
    import numpy as np

    from textbench.evaluation.probes.folds import folds_of
    from textbench.evaluation.probes.wide import PENALTIES

    errors = [
        [
            np.mean(probe.predict(X[held]) != y[held])
            for probe in PENALTIES[penalty]().fit_grid(X[train], y[train])
        ]
        for train, held in folds_of(X, y, N_FOLDS, 0)
    ]
    return np.mean(errors, axis=0).round(12)
