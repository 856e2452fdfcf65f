"""The split of the user's own documents into training and test documents: given, or drawn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from textbench.tasks import InputError
from textbench.tasks.sources.user_files import PARTS
from textbench.tasks.sources.user_source import named, shown

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_matrix

TEST_SIZE = 0.3
# Iterative stratification sums the dense indicator once a label: n_documents * n_labels^2, here about a minute.
MAX_STRATIFICATION = 10**11


class Splittable(Protocol):
    """What `split_of` reads of `user_data.UserData`, where it is described."""

    @property
    def path(self) -> str: ...
    @property
    def split_column(self) -> str | None: ...
    @property
    def test_size(self) -> float | None: ...
    @property
    def seed(self) -> int: ...


def split_of(
    own: Splittable, targets: np.ndarray | csr_matrix, parts: list[str | None]
) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the positions of the training and of the test documents, in order, and what is to be said of them.

    Raises InputError for fewer than two documents, or a column of parts without one of the two.
    """
    import numpy as np

    if parts[0] is not None:
        given = np.array(parts)
        for part in PARTS:
            if not (given == part).any():
                raise InputError(
                    f"{named(own.path)}: column {shown(own.split_column)} must hold both train and test, got no {part}"
                )
        n_validation = np.count_nonzero(given == "validation")
        tuned = f"; {n_validation:,} training documents are for validation" if n_validation else ""
        return (
            np.flatnonzero(given != "test"),
            np.flatnonzero(given == "test"),
            f"The split is the data's own{tuned}.",
        )
    if len(parts) < 2:
        raise InputError(f"{named(own.path)}: a split needs at least two documents, got {len(parts)}")
    test_size = TEST_SIZE if own.test_size is None else own.test_size
    draw = _draw_by_class if targets.ndim == 1 else _draw_by_labels
    train, test, how = draw(own, targets, test_size)
    return (
        np.sort(train),
        np.sort(test),
        f"Split drawn with seed {own.seed}, {test_size:g} for the test, {how}.",
    )


def _n_test(n_documents: int, test_size: float) -> int:
    """Return how many documents the test gets: the next whole number, and at least one document for each part."""
    return min(math.ceil(test_size * n_documents), n_documents - 1)


def _draw_by_class(
    own: Splittable, targets: np.ndarray, test_size: float
) -> tuple[np.ndarray, np.ndarray, str]:
    import numpy as np
    from sklearn.model_selection import train_test_split

    counts = np.bincount(targets)
    is_lone = counts[targets] == 1
    rest, lone = np.flatnonzero(~is_lone), np.flatnonzero(is_lone)
    if not len(rest):
        raise InputError(
            f"{named(own.path)}: to be split, a class must have two documents, got {len(lone)} classes of one; "
            f"are these classes?"
        )
    n_test = _n_test(len(rest), test_size)
    n_classes = np.count_nonzero(counts > 1)
    # A stratified part has a document of every class, so there must be room for them in both.
    can_stratify = n_classes <= min(n_test, len(rest) - n_test)
    stratify = targets[rest] if can_stratify else None
    train, test = train_test_split(rest, test_size=n_test, random_state=own.seed, stratify=stratify)
    how = "stratified by class" if can_stratify else "not stratified: too few documents for its classes"
    note = f"; documents alone in their class, all in training: {len(lone)}" if len(lone) else ""
    return np.concatenate([lone, train]), test, how + note


def _draw_by_labels(
    own: Splittable, targets: csr_matrix, test_size: float
) -> tuple[np.ndarray, np.ndarray, str]:
    import numpy as np
    from iterstrat.ml_stratifiers import MultilabelStratifiedShuffleSplit
    from sklearn.model_selection import train_test_split

    n_documents, n_labels = targets.shape
    n_test = _n_test(n_documents, test_size)
    is_feasible = n_documents * n_labels**2 <= MAX_STRATIFICATION
    if is_feasible:
        draw = MultilabelStratifiedShuffleSplit(n_splits=1, test_size=n_test, random_state=own.seed)
        train, test = next(draw.split(np.zeros(n_documents), targets.toarray().astype(bool)))
        if len(train) and len(test):
            return train, test, "stratified over labels"
    train, test = train_test_split(np.arange(n_documents), test_size=n_test, random_state=own.seed)
    return train, test, f"not stratified: too {'few documents' if is_feasible else 'many labels'}"
