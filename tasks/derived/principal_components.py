"""Components: documents at the pair of their first principal components that shows the classes best.

Source: Paskov, West, Mitchell, Hastie, Compressive Feature Learning, NIPS (2013), section 5, "PCA", and figure 3: a
logistic regression is trained on every pair of the first ten components, and the pair with the lowest training error is
drawn.
"""

from itertools import combinations
from typing import TYPE_CHECKING, Any

from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_matrix

    from textbench.tasks.storage.store import Job

N_COMPONENTS = 10
PENALTY = 1e4  # C, next to no penalty


def reference(corpus: Reference, features: Reference) -> Reference:
    """Return the components artifact of a corpus of one label a document, training and test documents together.

    Files: scores.npy float32 (n_documents, 10), training documents first; targets.npy int64 (n_documents,); pair.json:
    `pair` (two columns of scores), `error` (training error of the logistic regression on it), `errors` of all pairs,
    `n_features` and the `explained` share of the variance of each component.
    """
    return refer(
        "textbench.tasks.derived.principal_components:compute",
        {},
        {"corpus": corpus, "features": features},
        stage="components",
    )


def compute(job: "Job") -> None:
    """Project the documents, scaled as for the paper's classifiers, and choose the pair."""
    import numpy as np
    import scipy.sparse as sp

    from textbench.tasks.corpus import read_targets

    corpus, features = job.open("corpus"), job.open("features")
    X = sp.vstack([features.matrix(part) for part in ("train", "test")], format="csr")
    targets = np.concatenate([read_targets(corpus, part) for part in ("train", "test")])
    scores, explained = project(X)
    errors = pair_errors(scores, targets)
    best = min(errors, key=lambda pair: errors[pair])
    job.save_array("scores", scores.astype(np.float32))
    job.save_array("targets", targets)
    found: dict[str, Any] = {"pair": list(best), "error": errors[best], "n_features": X.shape[1]}
    found |= {"errors": [[*pair, error] for pair, error in errors.items()], "explained": explained.tolist()}
    job.save_json("pair", found)


def project(X: "csr_matrix") -> "tuple[np.ndarray, np.ndarray]":
    """Return documents' scores (n_documents, n_components), and each component's share of the variance.

    X: csr (n_documents, n_features) of counts. Documents are divided by their sums and features by their deviations, as
    section 5 has it, then centred. There are at most ten components, fewer where the documents are fewer.
    """
    import numpy as np
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import normalize

    X = normalize(X.astype(np.float64), norm="l1")
    mean = np.asarray(X.mean(axis=0)).ravel()
    variance = np.maximum(np.asarray(X.power(2).mean(axis=0)).ravel() - mean**2, 0.0)
    varies = np.flatnonzero(variance > 1e-12 * mean**2)  # the rest is rounding
    X = X[:, varies]
    X.data /= np.sqrt(variance[varies])[X.indices]
    n_components = min(N_COMPONENTS, min(X.shape) - 1)
    method = PCA(n_components, svd_solver="arpack", random_state=0)
    scores = method.fit_transform(X)
    # Equal inputs have equal pictures: the largest score of each component is positive.
    signs = np.sign(scores[np.abs(scores).argmax(axis=0), np.arange(n_components)])
    return scores * signs, method.explained_variance_ratio_


def pair_errors(scores: "np.ndarray", targets: "np.ndarray") -> dict[tuple[int, int], float]:
    """Return for each pair of components the training error of a logistic regression on it, by (first, second)."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    # A few outliers are hundreds of times farther out than the rest, by whose spread the penalty next to none is.
    spread = np.subtract(*np.percentile(scores, [75, 25], axis=0))
    inner = scores / np.where(spread > 0, spread, 1.0)
    errors = {}
    for pair in combinations(range(scores.shape[1]), 2):
        X = inner[:, pair]
        classifier = LogisticRegression(C=PENALTY, solver="newton-cholesky", max_iter=200).fit(X, targets)
        errors[pair] = float(np.mean(classifier.predict(X) != targets))
    return errors
