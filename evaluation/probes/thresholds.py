"""Thresholds of several labels on out-of-fold scores: SCut, drawn to one cost for all labels where a label is rare.

A label's best F1 is reached where 2 hits - F1 given is largest, and the micro-averaged F1 of all labels likewise, by
one F1 for all. A label of few documents that is hard to tell has its best F1 where hundreds are given: these cost the
averaged figure, and what they hit is mostly chance. So its own F1 is drawn to that of all labels, and the more so until
thresholds learned from some documents are hardly worse than 0 on others.

Source: Yang, A Study of Thresholding Strategies for Text Categorization, SIGIR (2001), section 3.3 (SCut); Lipton,
Elkan, Naryanaswamy, Optimal Thresholding of Classifiers to Maximize F1 Measure, ECML PKDD (2014), theorem 1.
"""

import numpy as np

from textbench.evaluation.metrics.multilabel import macro_f1, micro_f1

# Documents of a label that weigh as much as all labels together. With 1 to 30 micro-F1 is within 1 point on Reuters.
PRIOR = 3
PRIORS = (PRIOR, 10, 30, 100)  # the smallest that pays is taken
MOST_LOST = 0.003  # of micro-averaged F1 for a macro-averaged one that does not fall, mostly by points
# A threshold rises above 0 only for a label that is given more than this many times as often as documents have it.
MANY_TIMES = 2


def best_thresholds(scores: np.ndarray, positive: np.ndarray, prior: float = PRIOR) -> np.ndarray:
    """The thresholds t of `scores > t`, float64 (n_labels,): each label's with the best 2 hits - cost * given.

    scores: floats, positive: bools, both (n_documents, n_labels), a document and a label at least. cost: the label's
    best F1, counted as often as it has documents, and the best micro-averaged F1 of all labels, counted `prior`
    times; 0 is SCut. A threshold is 0, or midway between two neighbouring scores; of equally good ones the nearest to
    0 is taken, then the lower. It is above 0 only where 0 gives the label more than MANY_TIMES as often as documents
    have it: else 0 stands for a best one above it, even where one below 0 would be better than 0.
    """
    n_positive = positive.sum(axis=0)
    cuts = [_cuts(scores[:, label], positive[:, label]) for label in range(scores.shape[1])]
    shared = _best_micro_f1(cuts, int(n_positive.sum()))
    thresholds = np.zeros(scores.shape[1])
    for label, ((candidates, n_given, n_hits), n) in enumerate(zip(cuts, n_positive.tolist(), strict=True)):
        if not n:
            continue
        own = (2 * n_hits / (n_given + n)).max()
        value = 2 * n_hits - n_given * (n * own + prior * shared) / (n + prior)
        best = candidates[value >= value.max() - 1e-9]
        nearest = float(best[np.lexsort((best, np.abs(best)))[0]])
        is_often = n_given[-1] > MANY_TIMES * n
        thresholds[label] = nearest if is_often else min(nearest, 0.0)
    return thresholds


def thresholds_that_pay(scores: np.ndarray, positive: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Return `best_thresholds` with the smallest of PRIORS that pays, or zeros, float64 (n_labels,).

    scores, positive: as there; folds: ints (n_documents,). Each fold's documents are decided by the thresholds of the
    others: macro-averaged F1 must reach that at 0, and micro-averaged F1 that less MOST_LOST. One fold alone takes the
    first prior unchecked.
    """
    numbers = np.unique(folds)
    if len(numbers) == 1:
        return best_thresholds(scores, positive)
    at_zero, decided = scores > 0, np.empty(positive.shape, dtype=bool)
    for prior in PRIORS:
        for fold in numbers:
            inside = folds == fold
            decided[inside] = scores[inside] > best_thresholds(scores[~inside], positive[~inside], prior)
        most_lost = ((micro_f1, MOST_LOST), (macro_f1, 0.0))
        if all(f1(positive, decided) >= f1(positive, at_zero) - lost for f1, lost in most_lost):
            return best_thresholds(scores, positive, prior)
    return np.zeros(scores.shape[1])


def _cuts(scores: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every cut that differs, 0 the last: thresholds, how many documents are above, and how many of them rightly."""
    order = np.argsort(-scores, kind="stable")
    ordered, n_right = scores[order], np.cumsum(positive[order])
    # A cut can fall only where the score changes, or below the last document.
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
    below = np.append(ordered[last[:-1] + 1], ordered[-1] - 1.0)
    above_zero = np.count_nonzero(scores > 0)
    return (
        np.append((ordered[last] + below) / 2, 0.0),
        np.append(last + 1, above_zero),
        np.append(n_right[last], n_right[above_zero - 1] if above_zero else 0),
    )


def _best_micro_f1(cuts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], n_positive: int) -> float:
    """The largest F1 of all labels' decisions together, over every choice of cuts, by Dinkelbach's steps."""
    f1, before = 0.0, -1.0
    while n_positive and f1 > before:
        places = [(2 * n_hits - f1 * n_given).argmax() for _, n_given, n_hits in cuts]
        given = sum(int(n_given[place]) for place, (_, n_given, _) in zip(places, cuts, strict=True))
        hits = sum(int(n_hits[place]) for place, (_, _, n_hits) in zip(places, cuts, strict=True))
        f1, before = 2 * hits / (given + n_positive), f1
    return f1
