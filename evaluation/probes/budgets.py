"""Label budgets: which training documents have their labels when only some can be paid for.

Draws are nested: the documents of a budget are among those of every larger budget of the same draw, and all
methods get the same ones, so that methods and budgets are compared on the same documents.
"""

import numpy as np


def labelled_documents(
    targets: np.ndarray, budget: int, draw: int = 0, *, stratified: bool = False
) -> np.ndarray:
    """Return the sorted rows of the `budget` training documents that keep their labels, (budget,) int64.

    targets: (n_documents,) ints, or an indicator (n_documents, n_labels), dense or csr. draw: number of the
    random draw. stratified: every budget holds each class in proportion, as far as whole documents allow; one
    label a document only. ValueError unless 1 <= budget <= n_documents.
    """
    n_documents = targets.shape[0]
    if not 1 <= budget <= n_documents:
        raise ValueError(
            f"a label budget must lie in 1 .. {n_documents}, the training documents; got {budget}"
        )
    rng = np.random.default_rng([draw, 77])  # 77 keeps draw d apart from whatever else is seeded with d
    order = rng.permutation(n_documents)
    if stratified:
        order = _spread(order, targets, rng)
    return np.sort(order[:budget])


def _spread(order: np.ndarray, targets: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Reorder so that every prefix holds the classes in proportion: the j-th of n documents goes near j/n."""
    if targets.ndim != 1:
        raise ValueError("a stratified budget needs one label a document; got an indicator of several")
    place = np.empty(len(order))
    for label in np.unique(targets):
        members = order[targets[order] == label]
        place[members] = (np.arange(len(members)) + rng.random()) / len(members)
    return order[np.argsort(place[order], kind="stable")]
