"""Linear SVM and logistic regression on TF-IDF of many short documents: who fits them soonest, on one thread.

`TEXTBENCH_SOLVERS_DOCUMENTS` says how many documents train (140,000), beside half as many for the test; of 60 words
and 4 classes, each against the rest. Of every solver: CPU seconds, accuracy, and by how much its objective, the mean
over classes, is above the lowest that was seen. SAGA is scikit-learn's. The probe is what this project takes.

Then documents of SCDV's kind, sums of word vectors by soft clusters, whose spectrum falls fast: a path of C for a few
by Newton's method on the Gram matrix, with its preconditioner of low rank and by the diagonal alone; and for more
of them Newton's method in passes beside dual descent.
"""

import os
import time
import warnings
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import softmax
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from tests.benchmarks.tuning import short_documents
from textbench.evaluation.probes import catalogue
from textbench.evaluation.probes.catalogue import build_probe
from textbench.evaluation.probes.solvers import finite_newton
from textbench.evaluation.probes.solvers.dual_descent import DualPath
from textbench.featurizers import tfidf
from textbench.featurizers.scdv import compose

N_TRAIN = int(os.environ.get("TEXTBENCH_SOLVERS_DOCUMENTS") or 140_000)
SVM_C, LOGISTIC_C = (0.3, 10.0), (3.0,)
TOLERANCE = 1e-3
N_WEIGHTED = 6_000, 40_000
N_CLUSTERS, N_DIMENSIONS = 40, 50
FEW_PATH, MANY_PATH = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0), (0.3, 1.0, 3.0)
Hyperplanes = tuple[np.ndarray, np.ndarray]


def main() -> None:
    """Print a line a solver for each loss and C."""
    counts, y = short_documents(N_TRAIN * 3 // 2)
    X = tfidf.build().fit_transform(counts).astype(np.float64)
    del counts
    train, test, known = X[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:]
    print(f"{N_TRAIN:,} training documents, {train.nnz:,} values, {train.shape[1]:,} terms")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _descent(train[:1000], y[:1000], 1.0)  # compile
        for C in SVM_C:
            _compare("linear SVM", C, _svm_solvers(C), train, y[:N_TRAIN], test, known, squared_hinge)
        for C in LOGISTIC_C:
            _compare(
                "logistic regression", C, _logistic_solvers(C), train, y[:N_TRAIN], test, known, logistic
            )
        del X, train, test
        weighted_vectors()


def weighted_vectors() -> None:
    """Print the CPU seconds of each C on a path, without and with what is for a spectrum that falls fast."""
    counts, y = short_documents(max(N_WEIGHTED))
    X = _weighted_vectors(counts)
    few, many = N_WEIGHTED
    _descent(X[:1000], y[:1000], 1.0)  # compile
    for name, patience in (("by the diagonal", np.inf), ("with low rank", finite_newton.PATIENCE)):
        with (
            patch.object(finite_newton, "PATIENCE", patience),
            patch.object(catalogue, "choose_solver", lambda X: "gram"),
        ):
            _print_path(f"{few:,} on the Gram matrix, {name}", X[:few], y[:few], FEW_PATH)
    for solver in ("descent", "streamed"):
        with patch.object(catalogue, "choose_solver", lambda X, solver=solver: solver):
            _print_path(f"{many:,}, {solver}", X[:many], y[:many], MANY_PATH)


def _weighted_vectors(counts: csr_matrix) -> np.ndarray:
    """Documents by SCDV's sums, float32 (n_documents, N_CLUSTERS * N_DIMENSIONS), of singular vectors of the terms."""
    terms = TruncatedSVD(N_DIMENSIONS, random_state=0).fit(counts.astype(np.float64)).components_.T
    terms /= np.linalg.norm(terms, axis=1, keepdims=True).clip(1e-12)
    centres = terms[np.random.default_rng(0).choice(len(terms), N_CLUSTERS, replace=False)]
    return compose(counts, terms, softmax(10 * terms @ centres.T, axis=1), np.ones(len(terms)))


def _print_path(name: str, X: np.ndarray, y: np.ndarray, path: tuple[float, ...]) -> None:
    spent, last = [], time.process_time()
    for probe in build_probe("linear-svm").fit_path(X, y, path):
        spent.append(f"{time.process_time() - last:.1f}" + ("" if probe.converged_ else " (not converged)"))
        last = time.process_time()
    print(f"  {name}: {', '.join(spent)} CPU s for C = {', '.join(f'{C:g}' for C in path)}")


def squared_hinge(margins: np.ndarray) -> float:
    """Sum of the squared hinge loss over margins (n_documents,)."""
    slack = np.maximum(0.0, 1.0 - margins)
    return float(slack @ slack)


def logistic(margins: np.ndarray) -> float:
    """Sum of the logistic loss over margins (n_documents,)."""
    return float(np.logaddexp(0.0, -margins).sum())


def _svm_solvers(C: float) -> dict[str, Callable[[Any, np.ndarray], Hyperplanes]]:
    return {
        "LIBLINEAR, dual": lambda X, y: _theirs(LinearSVC(C=C, tol=TOLERANCE, dual=True), X, y),
        "LIBLINEAR, primal": lambda X, y: _theirs(LinearSVC(C=C, tol=TOLERANCE, dual=False), X, y),
        "descent with a duality gap": lambda X, y: _descent(X, y, C),
        "the probe": lambda X, y: _theirs(build_probe("linear-svm", C, scaled=False), X, y),
    }


def _logistic_solvers(C: float) -> dict[str, Callable[[Any, np.ndarray], Hyperplanes]]:
    def one(**options: Any) -> Any:
        return OneVsRestClassifier(LogisticRegression(C=C, tol=TOLERANCE, random_state=0, **options))

    return {
        "LIBLINEAR, primal": lambda X, y: _theirs(one(solver="liblinear"), X, y),
        "LIBLINEAR, dual": lambda X, y: _theirs(one(solver="liblinear", dual=True), X, y),
        "SAGA": lambda X, y: _theirs(one(solver="saga"), X, y),
        "the probe": lambda X, y: _theirs(build_probe("logistic-regression", C, scaled=False), X, y),
    }


def _theirs(solver: Any, X: Any, y: np.ndarray) -> Hyperplanes:
    fitted = solver.fit(X, y)
    each = getattr(fitted, "estimators_", None) or [fitted]
    return np.vstack([one.coef_ for one in each]), np.concatenate([one.intercept_ for one in each])


def _descent(X: Any, y: np.ndarray, C: float) -> Hyperplanes:
    path = DualPath(X.astype(np.float32), np.zeros(X.shape[1], dtype=bool), 1.0)
    found = [path.solve(c, y == c, C, 10_000) for c in range(4)]
    return np.array([one[0] for one in found]), np.array([one[1] for one in found])


def _compare(
    name: str,
    C: float,
    solvers: dict[str, Callable[[Any, np.ndarray], Hyperplanes]],
    train: Any,
    y: np.ndarray,
    test: Any,
    known: np.ndarray,
    loss: Callable[[np.ndarray], float],
) -> None:
    rows = []
    for solver, solve in solvers.items():
        started = time.process_time()
        coef, intercept = solve(train, y)
        seconds = time.process_time() - started
        scores = train @ coef.T + intercept
        losses = [loss(np.where(y == c, 1, -1) * scores[:, c]) for c in range(len(coef))]
        objective = np.mean(
            [w @ w / 2 + b**2 / 2 + C * one for w, b, one in zip(coef, intercept, losses, strict=True)]
        )
        accuracy = float(((test @ coef.T + intercept).argmax(axis=1) == known).mean())
        rows.append((solver, seconds, accuracy, objective))
    lowest = min(row[-1] for row in rows)
    print(f"-- {name}, C = {C:g}")
    for solver, seconds, accuracy, objective in rows:
        print(
            f"{solver:28s} {seconds:8.1f} CPU s  accuracy {accuracy:.4f}  objective +{objective / lowest - 1:.1e}"
        )
