"""Compressed features' 83.0 on 20 Newsgroups: pointer costs of a denser grid, unit rows with LIBLINEAR, and a softmax.

Training and test messages are compressed together, in the fast mode (no iterations of ADMM), k = 5. The paper divides
documents by their L1 norm and features by their standard deviation, then fits a multinomial elastic net. Its softmax is
here with squares alone; C by a fifth of the training messages held out, of each pointer cost anew.
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from tests.benchmarks.gaps._printing import over_documents
from textbench.featurizers.compressive import CompressiveKGrams
from textbench.tasks import catalogue
from textbench.tasks.tokens import token_rule, vectorize

POINTER_COSTS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.19)
GRID = (0.0003, 0.001, 0.003, 0.01)


def as_published(X: sp.csr_matrix) -> sp.csr_matrix:
    """Rows of L1 norm 1, columns over their standard deviation."""
    X = normalize(X.astype(np.float64), "l1")
    mean = np.asarray(X.mean(axis=0)).ravel()
    deviation = np.sqrt(np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2)
    return (X @ sp.diags(np.divide(1, deviation, where=deviation > 0, out=np.zeros_like(deviation)))).tocsr()


def softmax(X: sp.csr_matrix, y: np.ndarray, test: sp.csr_matrix) -> tuple[float, np.ndarray]:
    """C as a held-out fifth chooses it, and the classes of the test documents (n_test,)."""
    rows = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=0)
    right = {}
    for C in GRID:
        model = LogisticRegression(C=C, max_iter=60).fit(X[rows[0]], y[rows[0]])
        right[C] = model.score(X[rows[1]], y[rows[1]])
    best = max(right, key=right.__getitem__)
    return best, LogisticRegression(C=best, max_iter=100).fit(X, y).predict(test)


def run(pointer_costs: Sequence[float], *, with_softmax: bool) -> None:
    """Print a line for each pointer cost and classifier."""
    corpus = catalogue.dataset("20ng").load().load()
    vectors = vectorize(corpus.train_texts, corpus.test_texts, token_rule("letters"), transductive=True)
    y, target, n = corpus.train_targets, corpus.test_targets, len(corpus.train_texts)
    documents = [
        document
        for ids, offsets in (
            (vectors.train_ids, vectors.train_offsets),
            (vectors.test_ids, vectors.test_offsets),
        )
        for document in np.split(ids, offsets[1:-1])
    ]
    for cost in pointer_costs:
        X = CompressiveKGrams(pointer_cost=cost, max_iter=0).fit_transform(documents)
        for name, rows in (("unit rows", normalize(X)), ("sublinear, unit rows", normalize(X.log1p()))):
            model = LinearSVC(C=1.0, random_state=0).fit(rows[:n], y)
            is_right = model.predict(rows[n:]) == target
            print(
                f"pointer cost {cost:g}, {X.shape[1]} features, {name}, LIBLINEAR: {over_documents(is_right)}"
            )
        if with_softmax:
            Z = as_published(X)
            C, found = softmax(Z[:n], y, Z[n:])
            print(f"pointer cost {cost:g}, as published, softmax, C {C:g}: {over_documents(found == target)}")


def main() -> None:
    run(POINTER_COSTS, with_softmax=True)
