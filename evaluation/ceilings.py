"""Ceilings: what no classifier and no ranking can exceed on a test set, whatever the representation.

Two facts of the data bound every figure: test documents with one text but several classes get one prediction,
and a class without training documents is never predicted.
"""

import numpy as np

from evaluation.metrics import METRICS


def ceilings(
    train_targets: np.ndarray, test_targets: np.ndarray, test_groups: np.ndarray
) -> dict[str, float]:
    """Upper bounds of every metric for deterministic classifiers that predict trained classes only.

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
    return {name: bounds[name] for name in METRICS}


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
