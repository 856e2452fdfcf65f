"""What learns from a million short documents: LSI of 300 dimensions, linear SVM, logistic regression, NB-SVM.

`TEXTBENCH_LEARN_DOCUMENTS` says how many there are (1,000,000), of 60 words and 4 classes; 70 % train. Of each: CPU and
wall-clock seconds on one thread, the process' peak MB so far, and the accuracy on the others. LSI's features are those
of all documents; NB-SVM has pairs of neighbours too. Parts are named by TEXTBENCH_LEARN_PARTS (lsi,probes,nb-svm).
"""

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from tests.benchmarks.tuning import N_TERMS, counted, short_words
from textbench.evaluation.probes.catalogue import build_probe
from textbench.featurizers import lsi, nb_svm, tfidf
from textbench.featurizers._dual_descent import solve_scaled
from textbench.tasks.storage.isolate import peak_mb

N_DOCUMENTS = int(os.environ.get("TEXTBENCH_LEARN_DOCUMENTS") or 1_000_000)
PARTS = (os.environ.get("TEXTBENCH_LEARN_PARTS") or "lsi,probes,nb-svm").split(",")
PROBES = {"linear-svm": 0.3, "logistic-regression": 3.0}
N_COMPONENTS = 300


def main() -> None:
    """Print a line for each."""
    words, y = short_words(N_DOCUMENTS, 0, 60, 4)
    n = int(0.7 * N_DOCUMENTS)
    with threadpool_limits(1):
        if "lsi" in PARTS:
            counts = counted(words, N_TERMS)
            method = lsi.build(n_components=N_COMPONENTS, random_state=0)
            _timed("LSI, 300 dimensions, learned", lambda: method.fit(counts[:n]))
            _timed("LSI, features of all", lambda: method.transform(counts))
        if "probes" in PARTS:
            weights = tfidf.build().fit_transform(counted(words, N_TERMS))
            for name, C in PROBES.items():
                probe = build_probe(name, C)
                _timed(f"{name}, C = {C:g}", lambda probe=probe: probe.fit(weights[:n], y[:n]))  # type: ignore[misc]
                print(f"  accuracy {np.mean(probe.predict(weights[n:]) == y[n:]):.4f}")
            del weights
        if "nb-svm" in PARTS:
            _nb_svm(words, y, n)


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
    method = nb_svm.build()
    _timed("NB-SVM", lambda: method.fit(train, y[:n]))
    place = np.searchsorted(known, pairs[n:]).clip(max=len(known) - 1)
    is_known = known[place] == pairs[n:]
    # A pair that is not known counts as the term that no class tells from others.
    columns = np.where(is_known, place + N_TERMS, n_features).astype(np.int32)
    test = counted(np.hstack([words[n:], columns]), n_features + 1)[:, :n_features]
    print(f"  accuracy {np.mean(method.predict(test) == y[n:]):.4f}")


def _timed(name: str, call: Callable[[], Any]) -> None:
    cpu, wall = time.process_time(), time.perf_counter()
    call()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(f"{name:32s} {cpu:8.1f} CPU s  wall {wall:8.1f} s  peak {peak_mb():8,.0f} MB")
