"""Rankings of labels, document by document: how well a document's own labels stand above the others.

Every function takes Y_true, the labels of each document as a csr or dense indicator (n_documents, n_labels),
and scores, a dense float array of the same shape, higher meaning likelier; it returns a float64 array
(n_documents,). ValueError for shapes that differ, no documents, no labels or scores that are not finite.

Equal scores count as a tie: precision and nDCG take their expected value under a random order of the tied
labels, the other two the worst place (a label's rank is the number of labels that score at least as high),
both scikit-learn's rules. A document without labels has precision and nDCG 0, average precision 1 and
coverage 0, again as in scikit-learn.

Source: Tsoumakas, Katakis, Vlahavas, Mining Multi-label Data, in: Data Mining and Knowledge Discovery Handbook
(2010), section 34.7.2; Jarvelin, Kekalainen, Cumulated Gain-based Evaluation of IR Techniques, ACM TOIS 20
(2002), section 2.
"""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def precision_at_k(Y_true: "np.ndarray | csr_matrix", scores: np.ndarray, k: int) -> np.ndarray:
    """Precision at k: the share of a document's labels among its k highest-scored, over k in every case."""
    return _expected_gains(*_checked(Y_true, scores), k).sum(axis=1) / k


def ndcg_at_k(Y_true: "np.ndarray | csr_matrix", scores: np.ndarray, k: int) -> np.ndarray:
    """Normalised discounted cumulative gain at k (nDCG@k), gains 0 and 1: over the best ranking's DCG."""
    true, scores = _checked(Y_true, scores)
    best = np.concatenate([[0.0], np.cumsum(discounts(k))])[np.minimum(true.sum(axis=1), k)]
    return _expected_gains(true, scores, k) @ discounts(k) / np.where(best > 0, best, 1.0)


def ndcg_fixed_norm_at_k(Y_true: "np.ndarray | csr_matrix", scores: np.ndarray, k: int) -> np.ndarray:
    """The nDCG at k divided by the full k-term norm, however few labels the document has.

    As SCDV printed it (EMNLP 2017, section 4.1.2): a document with fewer than k labels cannot reach 1.
    """
    return _expected_gains(*_checked(Y_true, scores), k) @ discounts(k) / discounts(k).sum()


def coverage(Y_true: "np.ndarray | csr_matrix", scores: np.ndarray) -> np.ndarray:
    """Coverage: how many labels have to be read down the ranking to meet all of the document's; lower is better."""
    true, scores = _checked(Y_true, scores)
    return np.where(true, _worst_ranks(scores), 0).max(axis=1).astype(np.float64)


def label_ranking_average_precision(Y_true: "np.ndarray | csr_matrix", scores: np.ndarray) -> np.ndarray:
    """Label ranking average precision: the mean over a document's labels of the precision at their ranks."""
    true, scores = _checked(Y_true, scores)
    among_own = _worst_ranks(np.where(true, scores, -np.inf))
    n_own = true.sum(axis=1)
    total = np.where(true, among_own / _worst_ranks(scores), 0.0).sum(axis=1)
    return np.where(n_own > 0, total / np.maximum(n_own, 1), 1.0)


def discounts(k: int) -> np.ndarray:
    """The weights 1/log2(1 + rank) of the ranks 1..k, (k,)."""
    return 1 / np.log2(np.arange(2, k + 2))


def _expected_gains(true: np.ndarray, scores: np.ndarray, k: int) -> np.ndarray:
    """Probability that rank j = 1..k holds one of the document's labels, ties in random order: (n, k)."""
    gains = np.zeros((len(true), k))
    depth = min(k, true.shape[1])
    highest = -np.sort(np.partition(-scores, depth - 1, axis=1)[:, :depth], axis=1)
    for rank in range(depth):
        tied = scores == highest[:, rank : rank + 1]
        gains[:, rank] = (tied & true).sum(axis=1) / tied.sum(axis=1)
    return gains


def _worst_ranks(scores: np.ndarray) -> np.ndarray:
    """How many of a document's labels score at least as high as each, itself included: (n, n_labels)."""
    from scipy.stats import rankdata

    return rankdata(-scores, method="max", axis=1)


def _checked(Y_true: "np.ndarray | csr_matrix", scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels as a dense boolean array, and the scores."""
    if Y_true.ndim != 2 or Y_true.shape != scores.shape or 0 in scores.shape:
        raise ValueError(
            "Y_true and scores must be (n_documents, n_labels) alike, with at least one of each; "
            f"received {Y_true.shape} and {scores.shape}"
        )
    if not np.isfinite(scores).all():
        raise ValueError("scores must be finite; received nan or inf")
    dense = Y_true if isinstance(Y_true, np.ndarray) else Y_true.toarray()
    return dense.astype(bool), scores
