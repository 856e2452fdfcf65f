"""Naive Bayes' 81.8 on 20 Newsgroups: alone, smoothed by cross-validation, and under error-correcting output codes.

The published row is copied from B. Li and C. Vogel, "Improving multiclass text classification with error-correcting
output coding and sub-class partitions", 2010. A code has a bit for each of L two-class problems; Naive Bayes is
additive in its class counts, so that all of them come from one table of counts (n_classes, n_terms).
"""

from itertools import product

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold

from tests.benchmarks.gaps._printing import of_one_more, over_documents
from textbench.tasks import catalogue
from textbench.tasks.tokens import token_rule, vectorize

ALPHAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
LENGTHS = (15, 31, 63, 127)
N_CODES = 5


def class_counts(X: sp.csr_matrix, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Term counts (n_classes, n_terms) and documents (n_classes,) of each class."""
    indicator = sp.csr_matrix((np.ones(len(y)), y, np.arange(len(y) + 1)))
    return (indicator.T @ X).toarray(), np.bincount(y)


def plain(X: sp.csr_matrix, counts: np.ndarray, sizes: np.ndarray, alpha: float) -> np.ndarray:
    """Class of the highest posterior (n_documents,)."""
    smoothed = counts + alpha
    logs = np.log(smoothed / smoothed.sum(axis=1, keepdims=True))
    return np.argmax(X @ logs.T + np.log(sizes), axis=1)


def coded(
    X: sp.csr_matrix, counts: np.ndarray, sizes: np.ndarray, alpha: float, code: np.ndarray, *, soft: bool
) -> np.ndarray:
    """Class whose row of the code, bool (n_classes, n_bits), is nearest: Hamming, or by sums of log odds."""
    sides = []
    for bits in (code, ~code):
        smoothed = bits.T.astype(float) @ counts + alpha
        logs = np.log(smoothed / smoothed.sum(axis=1, keepdims=True))
        sides.append((logs, np.log(bits.T.astype(float) @ sizes)))
    odds = X @ (sides[0][0] - sides[1][0]).T + (sides[0][1] - sides[1][1])
    return np.argmax((odds if soft else np.sign(odds)) @ (2.0 * code - 1).T, axis=1)


def random_code(n_classes: int, n_bits: int, seed: int) -> np.ndarray:
    """A code of columns with half of the classes each, bool (n_classes, n_bits)."""
    rng = np.random.default_rng(seed)
    halves = np.arange(n_classes) < n_classes // 2
    return np.column_stack([rng.permutation(halves) for _ in range(n_bits)])


def by_folds(X: sp.csr_matrix, y: np.ndarray) -> float:
    """The alpha of the highest accuracy over five folds of the training documents."""
    right = dict.fromkeys(ALPHAS, 0)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        learned = class_counts(X[train], y[train])
        for alpha in ALPHAS:
            right[alpha] += int((plain(X[test], *learned, alpha) == y[test]).sum())
    return max(right, key=right.__getitem__)


def code_by_folds(X: sp.csr_matrix, y: np.ndarray) -> tuple[float, int, bool]:
    """The alpha, length and decoding (log odds or not) of the highest accuracy over five folds."""
    right: dict[tuple[float, int, bool], int] = {}
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        learned = class_counts(X[train], y[train])
        for alpha, n_bits, soft in product(ALPHAS, LENGTHS, (False, True)):
            code = random_code(len(learned[1]), n_bits, 0)
            hits = int((coded(X[test], *learned, alpha, code, soft=soft) == y[test]).sum())
            right[alpha, n_bits, soft] = right.get((alpha, n_bits, soft), 0) + hits
    return max(right, key=right.__getitem__)


def main() -> None:
    corpus = catalogue.dataset("20ng").load().load()
    vectors = vectorize(corpus.train_texts, corpus.test_texts, token_rule("letters"), transductive=True)
    y, target = corpus.train_targets, corpus.test_targets
    for name, binary in (("counts", False), ("binary", True)):
        X, T = (
            part.sign().astype(float) if binary else part.astype(float)
            for part in (vectors.train_counts, vectors.test_counts)
        )
        learned, chosen = class_counts(X, y), by_folds(X, y)
        for alpha in dict.fromkeys((1.0, 0.1, 0.01, chosen)):
            mark = " (chosen by five folds)" if alpha == chosen else ""
            print(
                f"{name}, plain, alpha {alpha:g}{mark}: {over_documents(plain(T, *learned, alpha) == target)}"
            )
        for alpha in dict.fromkeys((1.0, 0.1, chosen)):
            for soft in (False, True):
                for n_bits in LENGTHS:
                    codes = (random_code(len(learned[1]), n_bits, seed) for seed in range(N_CODES))
                    found = [np.mean(coded(T, *learned, alpha, code, soft=soft) == target) for code in codes]
                    how = "log odds" if soft else "Hamming"
                    print(f"{name}, {n_bits} bits, {how}, alpha {alpha:g}: {of_one_more(found)}")
        alpha, n_bits, soft = code_by_folds(X, y)
        codes = (random_code(len(learned[1]), n_bits, seed) for seed in range(N_CODES))
        found = [np.mean(coded(T, *learned, alpha, code, soft=soft) == target) for code in codes]
        how = "log odds" if soft else "Hamming"
        print(f"{name}, chosen by five folds: {n_bits} bits, {how}, alpha {alpha:g}: {of_one_more(found)}")
