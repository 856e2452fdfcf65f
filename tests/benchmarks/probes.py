"""The linear SVM on Reuters-65, sparse columns beside 1,000 dense ones: a path of C, against LIBLINEAR."""

import time
from unittest.mock import patch

import numpy as np
from scipy.sparse import csr_matrix, hstack
from threadpoolctl import threadpool_limits

from evaluation import dual_descent, probes
from featurizers import counts, lsi, tfidf
from tasks import catalogue
from tasks.tokens import token_rule, vectorize

N_LABELS = 5_500
C_PATH = (0.3, 1.0, 3.0, 10.0, 30.0)
TIGHT, TIGHT_PATH = 1e-6, C_PATH[:3]  # it takes minutes for each larger C


def path(
    X: csr_matrix, y: np.ndarray, X_test: csr_matrix, c_path: tuple[float, ...] = C_PATH
) -> tuple[list[np.ndarray], float]:
    """The test documents' classes for each C, and the CPU seconds of fitting on one thread."""
    with threadpool_limits(1):
        started = time.process_time()
        fitted = list(probes.LinearSVMProbe().fit_path(X, y, c_path))
        seconds = time.process_time() - started
    return [probe.predict(X_test) for probe in fitted], seconds


def few_labels(X: csr_matrix, y: np.ndarray, X_test: csr_matrix) -> None:
    """Print the seconds of a path with few labels, with the finite Newton method and by dual descent alone."""
    for n_labels in (667, 1667, 3667):
        some = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:n_labels])
        newton, newton_seconds = path(X[some], y[some], X_test)
        with patch.object(dual_descent, "FEW", 0):
            descent, descent_seconds = path(X[some], y[some], X_test)
        different = sum((one != other).sum() for one, other in zip(newton, descent, strict=True))
        ratio = descent_seconds / newton_seconds
        print(f"  {n_labels:,} labels: finite Newton {newton_seconds:.2f} CPU seconds, dual descent alone")
        print(f"    {descent_seconds:.2f} ({ratio:.1f} times as long); {different} classes differ")


def main() -> None:
    """Print the seconds of both, and how many test documents get another class than from LIBLINEAR at 1e-6."""
    corpus = catalogue.dataset("reuters65").load().load()
    vectors = vectorize(corpus.train_texts, corpus.test_texts, token_rule("letters-stop-stem"))
    y, y_test = corpus.train_targets, corpus.test_targets
    labelled = np.sort(np.random.default_rng(0).permutation(len(y))[:N_LABELS])
    dense_method = lsi.build(n_components=1000, random_state=0)
    dense = dense_method.fit_transform(vectors.train_counts), dense_method.transform(vectors.test_counts)
    for name, method in (("counts", counts.build()), ("tfidf", tfidf.build())):
        sparse = method.fit_transform(vectors.train_counts), method.transform(vectors.test_counts)
        X, X_test = (csr_matrix(hstack(both)) for both in zip(sparse, dense, strict=True))
        X, labels = X[labelled], y[labelled]
        next(probes.LinearSVMProbe().fit_path(X, labels % 2, (0.01,)))  # compiled before it is timed
        ours, our_seconds = path(X, labels, X_test)
        with patch.object(probes, "LARGE", np.inf):
            theirs, their_seconds = path(X, labels, X_test)
            with patch.object(probes, "TOLERANCE", TIGHT):
                tight, tight_seconds = path(X, labels, X_test, TIGHT_PATH)
        print(f"{name} and LSI, {X.shape[0]} x {X.shape[1]}, {len(np.unique(labels))} classes, C in {C_PATH}")
        print(f"  dual descent {our_seconds:7.2f} CPU seconds")
        print(
            f"  LIBLINEAR    {their_seconds:7.2f} CPU seconds ({their_seconds / our_seconds:.1f} times as long)"
        )
        print(f"  LIBLINEAR at {TIGHT:.0e}, C in {TIGHT_PATH}: {tight_seconds:.2f} CPU seconds")
        for C, answer, their_answer in zip(C_PATH, ours, theirs, strict=True):
            accuracies = f"{np.mean(answer == y_test):.5f}, {np.mean(their_answer == y_test):.5f}"
            different = (answer != their_answer).sum()
            print(f"  C = {C:4}: accuracy {accuracies}; {different} of {len(y_test)} documents differ")
        for C, answer, truth in zip(TIGHT_PATH, ours, tight, strict=False):
            print(f"  C = {C:4}: {(answer != truth).sum()} differ from LIBLINEAR at {TIGHT:.0e}")
        few_labels(X, labels, X_test)
