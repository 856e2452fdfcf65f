"""Splits of the training documents for tuning: stratified folds, or one stratified part held out.

Stratified by class, or for several labels a document by iterative stratification.

Source: Sechidis, Tsoumakas, Vlahavas, On the Stratification of Multi-Label Data, ECML PKDD (2011), section 4.
"""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from textbench.evaluation.probes.linear import check_documents, dense_indicator

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    Targets: TypeAlias = "np.ndarray | csr_matrix"

Fold: TypeAlias = tuple[np.ndarray, np.ndarray]


def folds_of(
    X: Any, y: "Targets", n_folds: int, random_state: int, held_out: "float | Sequence[int] | None" = None
) -> list[Fold]:
    """Stratified folds: a list of (training documents, documents to score), int arrays of positions.

    X: whatever has one row a document; y: (n_documents,) ints, or an indicator (n_documents, n_labels).
    held_out: instead of folds one split that scores this share of the documents, within (0, 1), or the documents at
    these positions, some of them but not all. A class with
    fewer documents than folds is missing from some of them. When every class is that small the folds are
    drawn without regard to class. Fewer documents than folds make fewer folds, down to 2; a single document
    makes none. ValueError for a wrong argument.
    """
    if n_folds < 2:
        raise ValueError(f"n_folds must be at least 2; received {n_folds!r}")
    if isinstance(held_out, Sequence):
        return [_given(y.shape[0], held_out)]
    if held_out is not None and not 0 < held_out < 1:
        raise ValueError(f"held_out must lie between 0 and 1, both excluded; received {held_out!r}")
    check_documents(X, y)
    if y.shape[0] == 1:
        return []
    if held_out is not None:
        return [_held_out(y, held_out, random_state)]
    n_folds = min(n_folds, y.shape[0])
    return _folds_of_labels(y, n_folds, random_state) if y.ndim == 2 else _folds(y, n_folds, random_state)


def _given(n_documents: int, held_out: "Sequence[int]") -> Fold:
    test = np.unique(np.asarray(held_out, dtype=np.int64))
    if not 0 < len(test) < n_documents or test[0] < 0 or test[-1] >= n_documents:
        raise ValueError(
            f"held_out must be positions of some of the {n_documents} documents; received {len(test)} of them"
        )
    return np.setdiff1d(np.arange(n_documents), test), test


def rows(X: Any, documents: np.ndarray) -> Any:
    """The rows of some documents, positions (n,): of a matrix, or of a list with one entry a document (token ids)."""
    return [X[document] for document in documents] if isinstance(X, list) else X[documents]


def sample(y: "Targets", size: int, random_state: int) -> np.ndarray:
    """Return the positions of a stratified sample, rising ints (min(size, n_documents),), drawn by the seed.

    y: (n_documents,) ints, or an indicator (n_documents, n_labels), of which each document's rarest label counts.
    """
    classes = y
    if y.ndim == 2:
        indicator = dense_indicator(y)
        classes = np.where(indicator, indicator.sum(axis=0), len(indicator) + 1).argmin(axis=1)
    return _systematic(np.asarray(classes), min(size, len(classes)), np.random.default_rng(random_state))


def _folds(y: np.ndarray, n_folds: int, random_state: int) -> list[Fold]:
    from sklearn.model_selection import StratifiedKFold

    if np.unique(y, return_counts=True)[1].max() < n_folds:
        return _plain_folds(len(y), n_folds, random_state)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        return list(StratifiedKFold(n_folds, shuffle=True, random_state=random_state).split(y, y))


def _plain_folds(n_documents: int, n_folds: int, random_state: int) -> list[Fold]:
    from sklearn.model_selection import KFold

    return list(KFold(n_folds, shuffle=True, random_state=random_state).split(np.zeros(n_documents)))


def _folds_of_labels(Y: "Targets", n_folds: int, random_state: int) -> list[Fold]:
    from iterstrat.ml_stratifiers import MultilabelStratifiedKFold

    indicator = _two_columns(Y)
    splitter = MultilabelStratifiedKFold(n_splits=n_folds, shuffle=True, random_state=random_state)
    folds = list(splitter.split(indicator, indicator))
    # Of a handful of documents the stratification may leave a fold none.
    whole = all(len(test) for _, test in folds)
    return folds if whole else _plain_folds(len(indicator), n_folds, random_state)


def _held_out(y: "Targets", share: float, random_state: int) -> Fold:
    """One split: the share of every class or label, give or take a document, at least one document on each side."""
    n_documents = y.shape[0]
    n_test = min(max(round(share * n_documents), 1), n_documents - 1)
    if y.ndim == 2:
        from iterstrat.ml_stratifiers import MultilabelStratifiedShuffleSplit

        splitter = MultilabelStratifiedShuffleSplit(1, test_size=n_test, random_state=random_state)
        indicator = _two_columns(y)
        train, test = next(splitter.split(indicator, indicator))
        if len(train) and len(test):
            return train, test
        y = np.zeros(n_documents, dtype=int)
    # scikit-learn's StratifiedShuffleSplit refuses a class of one document.
    test = _systematic(y, n_test, np.random.default_rng(random_state))
    return np.setdiff1d(np.arange(n_documents), test), test


def _systematic(classes: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Systematic sampling: documents shuffled, then sorted by class, and each (n / size)-th from a random start."""
    shuffled = rng.permutation(len(classes))
    ordered = shuffled[np.argsort(classes[shuffled], kind="stable")]
    steps = (np.arange(len(classes) + 1) * size + rng.integers(len(classes))) // len(classes)
    return np.sort(ordered[np.diff(steps) > 0])


def _two_columns(Y: "Targets") -> np.ndarray:
    # The splitters want two labels; the complement of a lone one says the same.
    indicator = dense_indicator(Y)
    return np.column_stack([indicator, ~indicator]) if indicator.shape[1] == 1 else indicator
