"""Ceilings: what no classifier and no ranking can exceed on a test set, whatever the representation.

Two facts of the data bound every figure: test documents with one text but several classes get one prediction,
and a class without training documents is never predicted. Where a document may have several labels a third
one does: a document of few labels cannot fill a list of k.
"""

from typing import TYPE_CHECKING

import numpy as np

from textbench.evaluation.metrics.label_ranking import discounts
from textbench.evaluation.metrics.multilabel import MULTILABEL_METRICS
from textbench.evaluation.metrics.single_label import METRICS

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def ceilings(
    train_targets: np.ndarray, test_targets: np.ndarray, test_groups: np.ndarray
) -> dict[str, float]:
    """Upper bounds of every metric that has one, for deterministic classifiers that predict trained classes only.

    train_targets (n_train,), test_targets (n_test,): ints. test_groups (n_test,): ints, equal for test
    documents of identical text.

    accuracy, micro_f1 and macro_recall are attained by some predictions. macro_f1, weighted_f1 and
    macro_precision give each class the predictions that suit it best, as if classes did not compete for
    documents: they hold but need not be attained. So do the bounds of the rankings, from the number of
    relevant training documents alone. ValueError for no documents or lengths that differ.
    """
    if len(train_targets) == 0 or len(test_targets) == 0 or len(test_targets) != len(test_groups):
        raise ValueError(
            "ceilings need training documents and one group for each test document; received "
            f"{len(train_targets)} training, {len(test_targets)} test documents, {len(test_groups)} groups"
        )
    classes, class_of = np.unique(test_targets, return_inverse=True)
    groups, group_of = np.unique(test_groups, return_inverse=True)
    counts = np.zeros((len(groups), len(classes)), dtype=np.int64)
    np.add.at(counts, (group_of, class_of), 1)
    support = counts.sum(axis=0)
    n_relevant = np.array([np.count_nonzero(train_targets == c) for c in classes])
    bounds = _bounds_of_labels(counts, n_relevant > 0) | _bounds_of_rankings(support, n_relevant)
    n_classes = len(np.union1d(train_targets, classes))
    bounds |= _bounds_of_class_rankings(counts, n_relevant > 0, n_classes)
    return {name: bounds[name] for name in METRICS if name in bounds}


def _bounds_of_labels(counts: np.ndarray, trained: np.ndarray) -> dict[str, float]:
    support = counts.sum(axis=0)
    # Predicting a class that no test document has only adds a zero to the macro averages, so the classes of
    # the test set are enough; of these the untrained ones are never predicted and contribute nothing.
    n_in_group = counts.sum(axis=1)
    reachable = counts * trained
    f1 = np.array([_best_f1(column, n_in_group, n) for column, n in zip(reachable.T, support, strict=True)])
    purity = reachable / n_in_group[:, None]
    accuracy = float(reachable.max(axis=1).sum() / support.sum())
    return {
        "accuracy": accuracy,
        "micro_f1": accuracy,
        "macro_f1": float(f1.mean()),
        "weighted_f1": float(f1 @ support / support.sum()),
        "macro_precision": float(purity.max(axis=0).mean()),
        # Macro-recall is a sum over documents of 1/(size of the class), so each group chooses for itself.
        "macro_recall": float((reachable / support).max(axis=1).sum() / len(support)),
    }


def _bounds_of_class_rankings(counts: np.ndarray, trained: np.ndarray, n_classes: int) -> dict[str, float]:
    """Bounds of what ranks the classes: each group's trained classes by their documents, the others tied at the end."""
    known = -np.sort(-counts[:, trained], axis=1).sum(axis=0)[None, :]
    ranks = np.arange(1, known.shape[1] + 1)
    n, n_unknown = counts.sum(), counts[:, ~trained].sum()
    return {
        "lraps": float(((known / ranks).sum() + n_unknown / n_classes) / n),
        "coverage_error": float(((known * ranks).sum() + n_unknown * n_classes) / n),
    }


def _best_f1(n_in_class: np.ndarray, n_in_group: np.ndarray, support: int) -> float:
    """The best F1 of one class over all unions of groups.

    F1 = 2 tp / (support + predicted) exceeds t where the sum over the chosen groups of 2 n_in_class - t
    n_in_group exceeds t support: the best union holds the groups of purity above t/2, the first ones by
    purity.
    """
    order = np.argsort(-n_in_class / n_in_group, kind="stable")
    true_positives = np.cumsum(n_in_class[order])
    predicted = np.cumsum(n_in_group[order])
    return float((2 * true_positives / (support + predicted)).max())


def _bounds_of_rankings(support: np.ndarray, n_relevant: np.ndarray) -> dict[str, float]:
    n = support.sum()
    answered = float(support[n_relevant > 0].sum() / n)
    precision = {
        f"precision_at_{k}": float(support @ np.minimum(n_relevant, k) / (k * n)) for k in (1, 3, 5, 10)
    }
    return {"map": answered, "ndcg_at_5": answered, **precision}


def multilabel_ceilings(
    train_targets: "csr_matrix", test_targets: "csr_matrix", test_groups: np.ndarray
) -> dict[str, float]:
    """The best values of MULTILABEL_METRICS that have one, for deterministic methods that score trained labels only.

    train_targets, test_targets: csr indicators (n_train, n_labels), (n_test, n_labels). test_groups (n_test,):
    ints, equal for test documents of identical text. A label without training documents is never given, and
    scores the same everywhere, below every trained label: by accident it may still be met at the end of a
    ranking, where the untrained labels tie.

    Precision, nDCG and the F1s are attained by some method. map, lraps and coverage_error (the least, since
    lower is better) let documents of one text be ranked differently: they hold but need not be attained.
    ValueError for no documents or shapes that differ.
    """
    n_test, n_labels = test_targets.shape
    if (
        train_targets.shape[1] != n_labels
        or n_test != len(test_groups)
        or 0 in (train_targets.shape[0], n_test)
    ):
        raise ValueError(
            "ceilings need two indicators of the same labels, documents in both, and one group for each test "
            f"document; received {train_targets.shape} and {test_targets.shape}, {len(test_groups)} groups"
        )
    labels = test_targets.toarray().astype(bool)
    trained = np.asarray(train_targets.sum(axis=0)).ravel() > 0
    group_of = np.unique(test_groups, return_inverse=True)[1]
    bounds = _bounds_of_decisions(_grouped(labels, group_of), np.bincount(group_of), trained)
    bounds |= _bounds_of_short_lists(labels, group_of, trained) | _bounds_of_label_rankings(labels, trained)
    bounds["accuracy"] = _best_exact(labels, group_of, trained)
    return {name: bounds[name] for name in MULTILABEL_METRICS if name in bounds}


def _grouped(values: np.ndarray, group_of: np.ndarray) -> np.ndarray:
    """Sum the rows (n_test, n_labels) of each group: (n_groups, n_labels)."""
    total = np.zeros((group_of.max() + 1, values.shape[1]), dtype=np.float64)
    np.add.at(total, group_of, values)
    return total


def _best_exact(labels: np.ndarray, group_of: np.ndarray, trained: np.ndarray) -> float:
    """The share of documents that get just their labels, each group being given its commonest set of trained ones."""
    possible = ~labels[:, ~trained].any(axis=1)
    sets, counts = np.unique(np.column_stack([group_of, labels])[possible], axis=0, return_counts=True)
    best = np.zeros(group_of.max() + 1)
    np.maximum.at(best, sets[:, 0].astype(int), counts)
    return float(best.sum() / len(labels))


def _bounds_of_decisions(counts: np.ndarray, n_in_group: np.ndarray, trained: np.ndarray) -> dict[str, float]:
    support, reachable = counts.sum(axis=0), counts * trained
    present = support > 0
    f1 = np.array(
        [_best_f1(column, n_in_group, max(n, 1)) for column, n in zip(reachable.T, support, strict=True)]
    )
    pooled = _best_f1(reachable.ravel(), np.repeat(n_in_group, counts.shape[1]), max(support.sum(), 1))
    macro = float(f1[present].mean()) if present.any() else 0.0
    bounds = {
        "micro_f1": pooled,
        "macro_f1": macro,
        "weighted_f1": float(f1 @ support / max(support.sum(), 1)),
    }
    return bounds | {f"{name}_zero": bound for name, bound in bounds.items()}


def _bounds_of_short_lists(labels: np.ndarray, group_of: np.ndarray, trained: np.ndarray) -> dict[str, float]:
    n_own = labels.sum(axis=1)
    bounds = {}
    for k in (1, 3, 5):
        weights = discounts(k)
        norms = np.concatenate([[1.0], np.cumsum(weights)])[np.minimum(n_own, k)]
        gains = _best_lists(_grouped(labels, group_of), trained, k)
        relative = _best_lists(_grouped(labels / norms[:, None], group_of), trained, k)
        bounds[f"precision_at_{k}"] = float(gains.sum() / (k * len(labels)))
        bounds[f"ndcg_fixed_norm_at_{k}"] = float((gains @ weights).sum() / (weights.sum() * len(labels)))
        bounds[f"ndcg_at_{k}"] = float((relative @ weights).sum() / len(labels))
    return bounds


def _best_lists(values: np.ndarray, trained: np.ndarray, k: int) -> np.ndarray:
    """What the first k of each group's best list hold: trained labels by value, then the untrained at random."""
    known = -np.sort(-values[:, trained], axis=1)
    unknown = values[:, ~trained]
    if unknown.shape[1]:
        unknown = np.repeat(unknown.mean(axis=1, keepdims=True), unknown.shape[1], axis=1)
    best = np.hstack([known, unknown, np.zeros((len(values), k))])
    return best[:, :k]


def _bounds_of_label_rankings(labels: np.ndarray, trained: np.ndarray) -> dict[str, float]:
    n_own, n_unknown, n_labels = labels.sum(axis=1), labels[:, ~trained].sum(axis=1), labels.shape[1]
    n_known = n_own - n_unknown
    # Trained labels on top, each at precision 1; the untrained ones of a document are met at the very end.
    precision = (n_known + n_unknown * n_own / n_labels) / np.maximum(n_own, 1)
    support = labels.sum(axis=0)
    answered = np.where(trained, 1.0, support / len(labels))[support > 0]
    return {
        "lraps": float(np.where(n_own > 0, precision, 1.0).mean()),
        "coverage_error": float(np.where(n_unknown > 0, n_labels, n_known).mean()),
        "map": float(answered.mean()) if len(answered) else 0.0,
    }
