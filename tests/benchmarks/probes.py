"""The probes: Newton's methods and dual descent beside LIBLINEAR, CPU seconds on one thread.

The linear SVM on Reuters-65, a path of C and 35 C by 5 folds, and one large C on R52; logistic regression on the 90
labels of Reuters.
"""

import time
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.sparse import csr_matrix, hstack
from threadpoolctl import threadpool_limits

from textbench.evaluation.probes import catalogue as probes
from textbench.evaluation.probes.folds import folds_of
from textbench.evaluation.probes.solvers import finite_newton
from textbench.evaluation.probes.solvers.choice import Solver, choose_logistic_solver, choose_solver
from textbench.evaluation.probes.solvers.gram import gram_matrix
from textbench.featurizers import counts, lsi, tfidf
from textbench.tasks import catalogue
from textbench.tasks.tokens import token_rule, vectorize

N_LABELS = (1_000, 5_500)
C_PATH = (0.3, 1.0, 3.0, 10.0, 30.0)
LOGISTIC_PATH = (0.1, 70.1, 140.1)
FINE_PATH = tuple(np.arange(0.1, 7.0, 0.2).round(1))  # 35 values, those of the paper of SCDV


def path(
    solver: Solver, X: csr_matrix, y: np.ndarray, X_test: csr_matrix
) -> tuple[list[np.ndarray], float, bool]:
    """The test documents' classes for each C, the CPU seconds of fitting on one thread, and whether all converged."""
    with threadpool_limits(1), patch.object(probes, "choose_solver", lambda X: solver):
        started = time.process_time()
        fitted = list(probes.LinearSVMProbe().fit_path(X, y, C_PATH))
        seconds = time.process_time() - started
    return [probe.predict(X_test) for probe in fitted], seconds, all(probe.converged_ for probe in fitted)


def folds_at_once(X: csr_matrix, y: np.ndarray, liblinear_seconds: float) -> None:
    """Print the seconds of 35 C by 5 folds on one Gram matrix, beside LIBLINEAR's as far as they can be told."""
    folds = folds_of(X, y, 5, 0, None)
    with threadpool_limits(1), patch.object(probes, "choose_solver", lambda X: "gram"):
        started = time.process_time()
        for fitted, asked in probes.LinearSVMProbe().fit_folds(X, y, folds):
            for probe in fitted(FINE_PATH):
                probe.predict(asked)
        seconds = time.process_time() - started
    expected = liblinear_seconds / len(C_PATH) * len(FINE_PATH) * len(folds) * 0.8
    print(
        f"    35 C by 5 folds: {seconds:.1f} CPU seconds by the Gram matrix; LIBLINEAR by the fit above, a fifth"
    )
    print(f"    of the documents left out: {expected:.0f} ({expected / seconds:.1f} times as long)")


def main() -> None:
    """Print the seconds of each solver, and how many test documents get another class than from LIBLINEAR."""
    linear_svm()
    one_large_c()
    counts_of_20ng()
    logistic_regression()


def counts_of_20ng() -> None:
    """The Gram matrix beside scipy's product, and classes that are solved together beside one by one."""
    corpus = catalogue.dataset("20ng").load().load()
    X = vectorize(corpus.train_texts, corpus.test_texts, token_rule("words")).train_counts
    gram_matrix(X[:100])  # compile
    print(f"counts of 20 Newsgroups, {X.shape[0]} documents, {X.nnz / X.shape[0]:.0f} terms each")
    with threadpool_limits(1):
        for name, multiply in (("ours", gram_matrix), ("scipy's", lambda X: (X @ X.T).toarray())):
            started = time.process_time()
            multiply(X[::4])
            print(f"  Gram matrix of every fourth, {name}: {time.process_time() - started:.2f} CPU seconds")
        started = time.process_time()
        gram_matrix(X)
        print(f"  of all, ours: {time.process_time() - started:.2f}")
        train = np.arange(0, X.shape[0], 2)
        for name, shared in (("together", finite_newton.SHARED), ("one by one", 0)):
            with (
                patch.object(finite_newton, "SHARED", shared),
                patch.object(probes, "choose_solver", lambda X: "gram"),
            ):
                started = time.process_time()
                for _ in probes.LinearSVMProbe().fit_path(X[train], corpus.train_targets[train], C_PATH):
                    pass
            print(
                f"  SVM of every second, 5 C, classes {name}: {time.process_time() - started:.1f} CPU seconds"
            )


def one_large_c() -> None:
    """C = 30 alone, from the directions of the classes and by way of smaller C."""
    corpus = catalogue.dataset("r52").load().load()
    vectors = vectorize(corpus.train_texts, corpus.test_texts, token_rule("words"))
    X = lsi.build(n_components=1000, random_state=0).fit_transform(vectors.train_counts)
    print(f"LSI 1000 of R52, {X.shape[0]} documents, 52 classes, C 30 alone")
    for name, first in (("by way of smaller C", finite_newton.FIRST), ("at once", np.inf)):
        with (
            threadpool_limits(1),
            patch.object(probes, "choose_solver", lambda X: "gram"),
            patch.object(finite_newton, "FIRST", first),
        ):
            started = time.process_time()
            probe = probes.LinearSVMProbe(C=30.0).fit(X, corpus.train_targets)
            seconds = time.process_time() - started
        print(f"    {name:20} {seconds:7.2f} CPU seconds; converged {probe.converged_}")


def logistic_regression() -> None:
    """Every label of Reuters against the rest, at C from the range of the paper of SCDV."""
    corpus = catalogue.dataset("reuters-random70").load().load()
    vectors = vectorize(corpus.train_texts, corpus.test_texts, token_rule("letters-stop-stem"))
    weights = tfidf.build()
    many, few = (lsi.build(n_components=n, random_state=0) for n in (1000, 200))
    train, test = vectors.train_counts, vectors.test_counts
    features = {
        "tfidf and LSI 1000": (
            csr_matrix(hstack([weights.fit_transform(train), many.fit_transform(train)])),
            csr_matrix(hstack([weights.transform(test), many.transform(test)])),
        ),
        "LSI 200": (few.fit_transform(train), few.transform(test)),
    }
    for name, (X, X_test) in features.items():
        own = choose_logistic_solver(X)
        print(f"{name}, {X.shape[0]} x {X.shape[1]}, 90 labels, C {LOGISTIC_PATH}")
        answers, seconds = {}, {}
        for solver in (own, "liblinear"):
            started = time.process_time()
            with (
                threadpool_limits(1),
                patch.object(probes, "choose_logistic_solver", lambda X, one=solver: one),
            ):
                probe = probes.LogisticRegressionProbe(max_iter=100, scaled=False)
                fitted = list(probe.fit_path(X, corpus.train_targets, LOGISTIC_PATH))
            seconds[solver] = time.process_time() - started
            answers[solver] = [each.predict(X_test) for each in fitted]
            converged = all(each.converged_ for each in fitted)
            print(f"    {solver:9} {seconds[solver]:7.2f} CPU seconds; converged {converged}")
        different = [int((a != b).sum()) for a, b in zip(answers[own], answers["liblinear"], strict=True)]
        print(
            f"    LIBLINEAR {seconds['liblinear'] / seconds[own]:.1f} times as long; of "
            f"{X_test.shape[0] * 90} decisions differ {different}"
        )


def linear_svm() -> None:
    """Counts, TF-IDF and LSI, each by every solver that may be chosen for them."""
    corpus = catalogue.dataset("reuters65").load().load()
    vectors = vectorize(corpus.train_texts, corpus.test_texts, token_rule("letters-stop-stem"))
    y = corpus.train_targets
    sparse: dict[str, Any] = {"counts": counts.build(), "tfidf": tfidf.build()}
    both = (vectors.train_counts, vectors.test_counts)
    features: dict[str, Any] = {
        name: (method.fit_transform(both[0]), method.transform(both[1])) for name, method in sparse.items()
    }
    for n_components in (100, 1000):
        method = lsi.build(n_components=n_components, random_state=0)
        features[f"LSI {n_components}"] = method.fit_transform(both[0]), method.transform(both[1])
    wide = zip(features["tfidf"], features["LSI 1000"], strict=True)
    features["tfidf and LSI 1000"] = tuple(csr_matrix(hstack(parts)) for parts in wide)
    few = np.arange(200)
    # Compiled before it is timed.
    path("descent", features["LSI 100"][0][few], y[few] % 2, features["LSI 100"][1])
    for name, (X, X_test) in features.items():
        for n_labels in N_LABELS:
            some = np.sort(np.random.default_rng(0).permutation(len(y))[:n_labels])
            print(f"{name}, {n_labels} x {X.shape[1]}, chosen: {choose_solver(X[some])}")
            truth, liblinear_seconds, _ = path("liblinear", X[some], y[some], X_test)
            print(f"    liblinear {liblinear_seconds:7.2f} CPU seconds")
            for solver in ("primal", "gram", "descent"):
                if (solver == "primal" and X.shape[1] > 1000) or (solver == "descent" and name in sparse):
                    continue
                answers, seconds, converged = path(solver, X[some], y[some], X_test)
                different = [int((one != other).sum()) for one, other in zip(truth, answers, strict=True)]
                print(
                    f"    {solver:9} {seconds:7.2f} CPU seconds, LIBLINEAR {liblinear_seconds / seconds:.1f} times as "
                    f"long; converged {converged}; of {X_test.shape[0]} classes differ {different}",
                )
            if choose_solver(X[some]) == "gram":
                folds_at_once(X[some], y[some], liblinear_seconds)
