"""The bag-of-words SVM's 88.2 on IMDb: a delta-idf bag of words, one change at a time.

The published row is of A. Maas et al., "Learning word vectors for sentiment analysis", 2011 (88.23): binary counts,
smoothed delta idf (G. Paltoglou and M. Thelwall, 2010), unit rows. C by three folds of the training documents, the
delta idf of each learned in it.
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from tests.benchmarks.gaps._printing import over_documents
from textbench.tasks import catalogue
from textbench.tasks.tokens import token_rule, vectorize

GRID = (0.03, 0.1, 0.3, 1.0)
# The vocabulary of Maas et al.: the 5,000 most frequent terms after the first 50.
N_LEFT_OUT, N_KEPT = 50, 5000

Weights = Callable[[sp.csr_matrix, np.ndarray], np.ndarray]


def ones(X: sp.csr_matrix, y: np.ndarray) -> np.ndarray:
    """No weights: (n_terms,)."""
    return np.ones(X.shape[1])


def delta_idf(X: sp.csr_matrix, y: np.ndarray) -> np.ndarray:
    """log2 of (N1 df2 + 0.5) / (N2 df1 + 0.5), with the documents N and document frequencies df of the classes."""
    n = np.bincount(y)
    df = [np.bincount(X[y == side].indices, minlength=X.shape[1]) for side in (0, 1)]
    return np.log2((n[0] * df[1] + 0.5) / (n[1] * df[0] + 0.5))


def predict(
    train: sp.csr_matrix, y: np.ndarray, test: sp.csr_matrix, weights: Weights, C: float
) -> np.ndarray:
    """The classes (n_test,) by a linear SVM on weighted unit rows."""
    weight = sp.diags(weights(train, y))
    model = LinearSVC(C=C, dual=True, max_iter=2000, random_state=0)
    return np.asarray(model.fit(normalize(train @ weight), y).predict(normalize(test @ weight)))


def chosen_c(X: sp.csr_matrix, y: np.ndarray, weights: Weights) -> float:
    """The C of the highest accuracy over three folds."""
    right = dict.fromkeys(GRID, 0)
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        for C in GRID:
            right[C] += int((predict(X[train], y[train], X[test], weights, C) == y[test]).sum())
    return max(right, key=right.__getitem__)


def main() -> None:
    corpus = catalogue.dataset("imdb").load().load()
    y, target = corpus.train_targets, corpus.test_targets
    for rule in ("letters", "words-punctuation"):
        vectors = vectorize(corpus.train_texts, corpus.test_texts, token_rule(rule))
        totals = np.asarray(vectors.train_counts.sum(axis=0)).ravel()
        frequent = np.sort(np.argsort(-totals, kind="stable")[N_LEFT_OUT : N_LEFT_OUT + N_KEPT])
        for vocabulary, terms in (("all terms", np.arange(len(totals))), ("5,000 terms", frequent)):
            X, T = (
                part[:, terms].sign().astype(float) for part in (vectors.train_counts, vectors.test_counts)
            )
            for name, weights in (("binary", ones), ("binary, delta idf", delta_idf)):
                C = chosen_c(X, y, weights)
                is_right = predict(X, y, T, weights, C) == target
                print(f"{rule}, {vocabulary}, {name}, unit rows, C {C:g}: {over_documents(is_right)}")
