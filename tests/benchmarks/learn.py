"""What learns from a million short documents: LSI of 300 dimensions, linear probes, NB-SVM, dCoT, SCDV.

`TEXTBENCH_LEARN_SIZES` says how many documents there are (10000,100000,1000000), of 60 words and 4 classes; 70 % train.
Of each size: CPU and wall-clock seconds on one thread, the process' peak MB meanwhile, and the accuracy on the others;
beside them scikit-learn's, of the same weights: TruncatedSVD, LinearSVC, LogisticRegression by LIBLINEAR and by SAGA,
and NB-SVM by LinearSVC a class at a time. Of LSI, how much of the squares its directions hold. Last, the exponent by
which CPU seconds grow from one size to the next: 1 is linear. LSI's features are those of all documents; NB-SVM has
pairs of neighbours too. Parts are named by TEXTBENCH_LEARN_PARTS (lsi,probes,nb-svm; dcot and scdv if they are).

dCoT and SCDV, with the parameters they have by default, go as a run goes: features are written by blocks and mapped, a
linear SVM learns from two thirds of them, as tuning does, and from all, and test documents ask for their like.
TEXTBENCH_LEARN_STEPS limits the SVM's passes (10,000): one tells what memory it takes. SCDV's word vectors are trained
on TEXTBENCH_LEARN_VECTORS documents (100,000). Peaks count files that are mapped, which the system takes back when
it is short; `own` do not.
"""

import os
import tempfile
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from tests.benchmarks._memory import forget_peak, own_peak
from tests.benchmarks.tuning import N_TERMS, counted, short_words
from textbench.evaluation.metrics.query_by_example import search_by_example
from textbench.evaluation.probes.catalogue import build_probe
from textbench.evaluation.probes.linear import LinearProbe
from textbench.featurizers import dcot, lsi, nb_svm, scdv, tfidf
from textbench.featurizers._dual_descent import solve_scaled
from textbench.tasks import word_vectors
from textbench.tasks.featurize import AT_ONCE
from textbench.tasks.storage.blocks import mapped_csr, write_blocks
from textbench.tasks.storage.isolate import peak_mb

SIZES = [int(n) for n in (os.environ.get("TEXTBENCH_LEARN_SIZES") or "10000,100000,1000000").split(",")]
PARTS = (os.environ.get("TEXTBENCH_LEARN_PARTS") or "lsi,probes,nb-svm").split(",")
PROBES = {"linear-svm": 0.3, "logistic-regression": 3.0}
TOLERANCE = 1e-3  # of scikit-learn's solvers, as tests.benchmarks.solvers has it
N_COMPONENTS = 300
STEPS = int(os.environ.get("TEXTBENCH_LEARN_STEPS") or 10_000)
N_VECTORS = int(os.environ.get("TEXTBENCH_LEARN_VECTORS") or 100_000)
N_QUERIES = 100
spent: list[dict[str, float]] = []  # CPU seconds of each size, by what took them


def main() -> None:
    """Print a line for each, and how seconds grow."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what scikit-learn's solvers say of their convergence
        for size in SIZES:
            print(f"-- {size:,} documents")
            spent.append({})
            _learn(size)
    for name in spent[-1]:
        seconds = {size: one[name] for size, one in zip(SIZES, spent, strict=True) if name in one}
        each = [
            f"{np.log(seconds[b] / seconds[a]) / np.log(b / a):.2f} to {b:,}" for a, b in pairwise(seconds)
        ]
        print(f"exponent of {name}: {', '.join(each)}")


def _learn(size: int) -> None:
    words, y = short_words(size, 0, 60, 4)
    n = int(0.7 * size)
    if "lsi" in PARTS:
        _lsi(counted(words, N_TERMS), n)
    if "probes" in PARTS:
        weights = tfidf.build().fit_transform(counted(words, N_TERMS))
        for name, C in PROBES.items():
            models = {name: build_probe(name, C)} | {
                f"scikit-learn, {solver}": model for solver, model in _solvers(name, C).items()
            }
            for whose, model in models.items():
                _timed(f"{whose}, C = {C:g}", lambda model=model: model.fit(weights[:n], y[:n]))  # type: ignore[misc]
                print(f"  accuracy {np.mean(model.predict(weights[n:]) == y[n:]):.4f}")
        del weights
    if "nb-svm" in PARTS:
        _nb_svm(words, y, n)
    if "dcot" in PARTS:
        _by_blocks("dCoT", dcot.build(), words, y, n)
    if "scdv" in PARTS:
        some = list(words[: min(n, N_VECTORS)].astype(np.int32))
        settings = word_vectors.DEFAULTS | {"trainer": "shared"}
        found = _timed(
            f"word vectors of {len(some):,} documents",
            lambda: word_vectors.train(some, [""] * N_TERMS, settings, 0),
        )
        _by_blocks("SCDV", scdv.build(random_state=0), words, y, n, word_vectors=found)


def _solvers(probe: str, C: float) -> dict[str, Any]:
    """Return scikit-learn's ways to fit a probe, each class against the rest."""
    if probe == "linear-svm":
        return {"LinearSVC": LinearSVC(C=C, tol=TOLERANCE)}
    settings: dict[str, Any] = {"C": C, "tol": TOLERANCE, "random_state": 0}
    return {
        f"LogisticRegression, {solver}": OneVsRestClassifier(LogisticRegression(solver=solver, **settings))
        for solver in ("liblinear", "saga")
    }


def _lsi(counts: csr_matrix, n: int) -> None:
    method = lsi.build(n_components=N_COMPONENTS, random_state=0)
    _timed("LSI, 300 dimensions, learned", lambda: method.fit(counts[:n]))
    _timed("LSI, features of all", lambda: method.transform(counts))
    weights = method.weighter_.transform(counts[:n])
    theirs = TruncatedSVD(N_COMPONENTS, random_state=0)
    _timed("scikit-learn, TruncatedSVD", lambda: theirs.fit(weights))
    whole = float(weights.multiply(weights).sum())
    for name, directions in (("ours", method.components_), ("theirs", theirs.components_)):
        held = sum(
            float(np.square(weights[i : i + AT_ONCE] @ directions.T).sum()) for i in range(0, n, AT_ONCE)
        )
        print(f"  {name} hold {held / whole:.5f} of the squares")


def _by_blocks(name: str, method: Any, words: np.ndarray, y: np.ndarray, n: int, **needed: Any) -> None:
    """Learn a representation, write its features as a run does, and classify and search by them."""
    counts = counted(words, N_TERMS)
    print(f"{name}: {_forecast(method, n):,.0f} MB are forecast")
    _timed(f"{name}, learned", lambda: method.fit(counts[:n], **needed))
    with tempfile.TemporaryDirectory() as folder:
        parts = {}
        for part, (low, high) in {"train": (0, n), "test": (n, len(y))}.items():
            blocks = (
                method.transform(counts[start : min(start + AT_ONCE, high)])
                for start in range(low, high, AT_ONCE)
            )
            _timed(f"{name}, features, {part}", lambda b=blocks, p=part: write_blocks(Path(folder), p, b))  # type: ignore[misc]
            parts[part] = mapped_csr(Path(folder), part)
        X, Z = parts["train"], parts["test"]
        print(f"  {X.nnz / n:,.0f} values a document, {X.nnz / n / X.shape[1]:.1%} of {X.shape[1]:,}")
        probe = build_probe("linear-svm", PROBES["linear-svm"], max_iter=STEPS)
        _timed("linear SVM, a fold", lambda: _score_fold(probe, X, y[:n]))
        _timed("linear SVM, all", lambda: probe.fit(X, y[:n]))
        predicted = _timed("predictions", lambda: probe.predict(Z))
        print(f"  accuracy {np.mean(predicted == y[n:]):.4f}, converged: {probe.converged_}")
        few = slice(0, N_QUERIES)
        _timed(f"the like of {N_QUERIES} documents", lambda: search_by_example(X, y[:n], Z[few], y[n:][few]))


def _score_fold(probe: LinearProbe, X: csr_matrix, y: np.ndarray) -> float:
    """Learn from two thirds and return the accuracy on the others, as tuning does."""
    train, test = np.split(np.arange(len(y)), [2 * len(y) // 3])
    ((probes, held_out),) = probe.fit_folds(X, y, [(train, test)])
    return float(np.mean(next(probes([probe.C])).predict(held_out) == y[test]))


def _forecast(method: Any, n: int) -> float:
    module = dcot if isinstance(method, dcot.DenseCohortOfTerms) else scdv
    return float(module.megabytes(method, n, word_vectors.DEFAULTS["vector_size"]))


def _nb_svm(words: np.ndarray, y: np.ndarray, n: int) -> None:
    """Train on words and the pairs of neighbours that training documents have."""
    pairs = words[:, :-1].astype(np.int64) * N_TERMS + words[:, 1:]
    known, columns = np.unique(pairs[:n], return_inverse=True)
    n_features = N_TERMS + len(known)
    columns = columns.reshape(n, -1).astype(np.int32) + N_TERMS
    train = counted(np.hstack([words[:n], columns]), n_features)
    del columns
    print(f"NB-SVM: {train.nnz:,} counts of {n_features:,} terms and pairs")
    few = slice(0, 1000)  # compile
    solve_scaled(train[few].astype(np.float64), (y[few] == 1)[None], np.ones((1, n_features)), 1.0, 0.1, 2)
    method, theirs = nb_svm.build(), nb_svm.build()
    _timed("NB-SVM", lambda: method.fit(train, y[:n]))
    with patch.object(nb_svm, "LARGE", train.nnz):
        _timed("scikit-learn, NB-SVM", lambda: theirs.fit(train, y[:n]))
    place = np.searchsorted(known, pairs[n:]).clip(max=len(known) - 1)
    is_known = known[place] == pairs[n:]
    # A pair that is not known counts as the term that no class tells from others.
    columns = np.where(is_known, place + N_TERMS, n_features).astype(np.int32)
    test = counted(np.hstack([words[n:], columns]), n_features + 1)[:, :n_features]
    for name, each in (("ours", method), ("by LinearSVC", theirs)):
        print(f"  {name}, accuracy {np.mean(each.predict(test) == y[n:]):.4f}")


def _timed(name: str, call: Callable[[], Any]) -> Any:
    forget_peak()
    cpu, wall = time.process_time(), time.perf_counter()
    with own_peak() as own:
        found = call()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    spent[-1][name] = cpu
    print(
        f"{name:48s} {cpu:8.1f} CPU s  wall {wall:8.1f} s  peak {peak_mb():8,.0f} MB, own {own[0]:8,.0f}",
        flush=True,
    )
    return found
