"""Tuning C: what a sample saves, and whether all documents would have chosen otherwise.

`TEXTBENCH_TUNING_DOCUMENTS` says how many short documents are drawn (200,000, of which 70 % train). CPU seconds of the
search with a sample, of the whole grid on three folds (only up to 50,000 documents), of one fit at the C that was
found, and of scikit-learn's LinearSVC at it. Then the recorded data sets, or those that TEXTBENCH_TUNING_DATASETS
names, with samples of a quarter and an eighth of their training documents, and IMDb with the sample that larger sets
have: the C of both searches, and how much worse the sample's is on all folds, in standard errors of the difference,
document by document.
"""

import os
import time
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.svm import LinearSVC

from textbench.evaluation.probes import tuning
from textbench.evaluation.probes.catalogue import build_probe
from textbench.evaluation.probes.folds import folds_of
from textbench.featurizers import tfidf
from textbench.tasks import catalogue
from textbench.tasks.tokens import token_rule, vectorize

N_DOCUMENTS = int(os.environ.get("TEXTBENCH_TUNING_DOCUMENTS") or 200_000)  # none with 0
N_TERMS = 50_000
N_WHOLE = 50_000  # beyond these the whole grid takes many minutes
DATASETS = (
    os.environ.get("TEXTBENCH_TUNING_DATASETS")
    or "r8,r52,reuters65,20ng,20ng-stripped,20ng-body,20ng-subject,20ng-allterms,imdb,reuters90,reuters-random70"
).split(",")


def main() -> None:
    """Print seconds for short documents, then both choices on every data set that is here."""
    if N_DOCUMENTS:
        _seconds(round(0.7 * N_DOCUMENTS))
    for dataset in DATASETS:
        _compare(dataset)


def short_documents(n: int, seed: int = 0, n_words: int = 60, n_classes: int = 4) -> tuple[Any, np.ndarray]:
    """Return the counts and classes of the documents of `short_words`."""
    words, y = short_words(n, seed, n_words, n_classes)
    return counted(words, N_TERMS), y


def counted(words: np.ndarray, n_terms: int) -> csr_matrix:
    """Return counts, csr int32 (n_documents, n_terms), of documents of equal length, ints (n_documents, n_words)."""
    n, n_words = words.shape
    counts = csr_matrix(
        (np.ones(words.size, np.int32), words.flatten(), np.arange(0, words.size + 1, n_words)), (n, n_terms)
    )
    counts.sum_duplicates()
    return counts


def short_words(n: int, seed: int, n_words: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return documents, int32 (n, n_words), and classes: words are one class's, three in ten any class's."""
    n_terms = N_TERMS
    rng = np.random.default_rng(seed)
    tilts = np.exp(rng.normal(0, 0.7, (n_classes, n_terms)))
    tilts[:, :200] = 1  # the most frequent words say nothing
    shares = tilts / np.arange(1, n_terms + 1) ** 1.05
    shares = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
    y = rng.integers(0, n_classes, n)
    speaks = np.where(rng.random((n, n_words)) < 0.7, y[:, None], rng.integers(0, n_classes, n)[:, None])
    drawn = rng.random((n, n_words))
    words = np.empty((n, n_words), dtype=np.int32)
    for c in range(n_classes):
        words[speaks == c] = np.searchsorted(shares[c], drawn[speaks == c]).clip(max=n_terms - 1)
    return words, y


def _seconds(n: int) -> None:
    counts, y = short_documents(n)
    X = tfidf.build().fit_transform(counts)
    found, seconds = _timed(lambda: tuning.choose_c(X, y))
    assert found.C is not None
    chosen = found.C
    _, one = _timed(lambda: build_probe("linear-svm", chosen).fit(X, y))
    print(
        f"{n} training documents, C = {chosen:g}: {seconds:.1f} s, {seconds / one:.2f} fits at it ({one:.1f} s)"
    )
    unit = X.astype(np.float64)
    _, theirs = _timed(lambda: LinearSVC(C=chosen, tol=1e-3).fit(unit, y))
    print(f"  scikit-learn's LinearSVC at it: {theirs:.1f} s, three fits {3 * theirs:.1f} s")
    if n <= N_WHOLE:
        with patch.object(tuning, "LARGE", n):
            whole, seconds = _timed(lambda: tuning.choose_c(X, y))
        print(f"  the whole grid on three folds: C = {whole.C:g}, {seconds:.1f} s")


def _timed(call: Any) -> tuple[Any, float]:
    begun = time.process_time()
    return call(), time.process_time() - begun


def _compare(dataset: str) -> None:
    corpus = catalogue.dataset(dataset).load().load()
    counts = vectorize(corpus.train_texts, corpus.test_texts, token_rule("words")).train_counts
    X, y = tfidf.build().fit_transform(counts), corpus.train_targets
    with patch.object(tuning, "LARGE", len(y) if y.ndim == 1 else y.shape[0]):
        whole, _ = _timed(lambda: tuning.choose_c(X, y))
    n = X.shape[0]
    for size in (n // 8, n // 4, *([tuning.SAMPLE] if n > 2 * tuning.SAMPLE else [])):
        with patch.object(tuning, "LARGE", 0), patch.object(tuning, "SAMPLE", size):
            ours, _ = _timed(lambda: tuning.choose_c(X, y))
        loss, error = (0.0, 0.0) if ours.C == whole.C else _loss(X, y, whole.C, ours.C)
        print(
            f"{dataset}, sample of {size} of {n}: C = {ours.C:g}, whole grid {whole.C:g}; "
            f"{100 * loss:+.2f} points, standard error {100 * error:.2f}"
        )


def _loss(X: Any, y: Any, best: float, other: float) -> tuple[float, float]:
    """How much less is right at another C, of all documents' decisions on three folds, and its standard error."""
    right = []
    for C in (best, other):
        values = np.empty(X.shape[0])
        for train, test in folds_of(X, y, 3, 0):
            predicted = build_probe("linear-svm", C).fit(X[train], y[train]).predict(X[test])
            if y.ndim == 1:
                values[test] = predicted == y[test]
                continue
            both = y[test].multiply(predicted).sum(axis=1)
            either = y[test].sum(axis=1) + predicted.sum(axis=1)
            values[test] = np.asarray(2 * both / np.maximum(either, 1)).ravel()
        right.append(values)
    difference = right[1] - right[0]
    return float(difference.mean()), float(difference.std() / np.sqrt(len(difference)))
