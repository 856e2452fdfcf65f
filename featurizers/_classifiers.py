"""What the classifiers on term counts share: weights of the terms, classes or labels, scores, export.

Source: R. Rifkin and A. Klautau, "In defense of one-vs-all classification", JMLR 5 (2004), for several labels
and for two-class methods.
"""

import inspect
from abc import abstractmethod
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers.binary import Binary
from textbench.featurizers.counts import Counts, validated_counts
from textbench.featurizers.tfidf import TfIdf

WEIGHTINGS = {"counts": Counts, "binary": Binary, "tfidf": TfIdf}
# The score, with its sign, of a label that no training document has, or that all have: beyond any margin.
CONSTANT = 1e6
CSR_PARTS = ("data", "indices", "indptr")


class CountClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of term counts: checks, classes and predictions; the subclass learns and scores.

    X: sparse csr, (n_documents, n_terms), non-negative counts. y: (n_documents,) ints, or a csr or dense
    indicator (n_documents, n_labels), and then each label is a problem of its own. `classes_`: the classes,
    or the columns of the indicator.

    ValueError for no documents, another number of targets than documents, negative or non-finite counts,
    and, after `fit`, another number of terms.
    """

    @abstractmethod
    def _fit_classes(self, counts: sp.csr_matrix, codes: np.ndarray) -> None:
        """Learn from the positions in `classes_` of the documents' classes, (n_documents,)."""

    @abstractmethod
    def _fit_labels(self, counts: sp.csr_matrix, indicator: np.ndarray) -> None:
        """Learn from a boolean indicator (n_documents, n_labels)."""

    @abstractmethod
    def _scores(self, counts: sp.csr_matrix) -> np.ndarray:
        """Return (n_documents, n_classes); a label is predicted where its score is above 0."""

    @abstractmethod
    def _learned(self) -> dict[str, Any]:
        """Return the learned state beside the classes, as arrays and JSON values."""

    @abstractmethod
    def _restore(self, arrays: dict[str, Any]) -> None:
        """Take the learned state back from what `_learned` gave."""

    def fit(self, X: sp.csr_matrix, y: "np.ndarray | sp.csr_matrix") -> Self:
        """Learn from X, csr (n_documents, n_terms), and y, classes or an indicator.

        Raises ValueError unless both have one row a document.
        """
        counts = validated_counts(self, X, reset=True)
        if y.shape[0] != counts.shape[0]:
            raise ValueError(
                f"X and y must have one row a document: got {counts.shape[0]} rows, {y.shape[0]} targets"
            )
        self.several_labels_ = y.ndim == 2
        if y.ndim == 2:
            self.classes_ = np.arange(y.shape[1])
            self._fit_labels(counts, (y if isinstance(y, np.ndarray) else y.toarray()).astype(bool))
        else:
            self.classes_, codes = np.unique(y, return_inverse=True)
            self._fit_classes(counts, codes)
        return self

    def decision_function(self, X: sp.csr_matrix) -> np.ndarray:
        """Return scores (n_documents, n_classes); of two classes (n_documents,), for the second one.

        With a single class, (n_documents,) of zeros.
        """
        scores = self._scores(validated_counts(self, X, reset=False))
        if self.several_labels_ or len(self.classes_) > 2:
            return scores
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else np.zeros(len(scores))

    def predict(self, X: sp.csr_matrix) -> "np.ndarray | sp.csr_matrix":
        """Return the class of the highest score (n_documents,), of equals the first.

        For several labels, those with scores above 0: csr int8 (n_documents, n_labels).
        """
        return self.labels_of(self.decision_function(X))

    def labels_of(self, scores: np.ndarray) -> "np.ndarray | sp.csr_matrix":
        """Return what `predict` returns where `decision_function` returned these scores."""
        if self.several_labels_:
            return sp.csr_matrix(scores > 0, dtype=np.int8)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(scores))
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def to_arrays(self) -> dict[str, Any]:
        """Return all that `from_arrays` needs: parameters, classes and learned state."""
        check_is_fitted(self)
        shared = {name: getattr(self, name) for name in ("n_features_in_", "classes_", "several_labels_")}
        return {**self.get_params(), **shared, **self._learned()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """Return the fitted classifier that `to_arrays` described."""
        classifier = cls(**{name: arrays[name] for name in inspect.signature(cls).parameters})
        for name in ("n_features_in_", "classes_", "several_labels_"):
            setattr(classifier, name, arrays[name])
        classifier._restore(arrays)
        return classifier


class LinearCountClassifier(CountClassifier):
    """A `CountClassifier` whose scores are linear in the weights of the terms.

    `coef_`: float64, (n_classes, n_terms); `intercept_`: float64, (n_classes,). A label that no training
    document has scores -CONSTANT, one that all have +CONSTANT. `weighting`, a parameter of the subclass: a
    key of WEIGHTINGS.
    """

    weighting: str

    @abstractmethod
    def _solve(self, weights: sp.csr_matrix, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients (n_classes, n_terms) and intercepts (n_classes,) of two classes or more."""

    @abstractmethod
    def _check(self) -> None:
        """Raise ValueError for an impossible parameter."""

    def _fit_classes(self, counts: sp.csr_matrix, codes: np.ndarray) -> None:
        weights = self._fit_weights(counts)
        if len(self.classes_) == 1:
            self.coef_, self.intercept_ = np.zeros((1, counts.shape[1])), np.zeros(1)
        else:
            self.coef_, self.intercept_ = self._solve(weights, codes)

    def _fit_labels(self, counts: sp.csr_matrix, indicator: np.ndarray) -> None:
        weights = self._fit_weights(counts)
        n_positive = indicator.sum(axis=0)
        self.coef_ = np.zeros((indicator.shape[1], counts.shape[1]))
        self.intercept_ = np.where(n_positive == 0, -CONSTANT, CONSTANT)
        for label in np.flatnonzero((n_positive > 0) & (n_positive < len(indicator))):
            coef, intercept = self._solve(weights, indicator[:, label].astype(int))
            self.coef_[label] = coef[1] - coef[0]
            self.intercept_[label] = intercept[1] - intercept[0]

    def _fit_weights(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        self._check()
        self.weighter_ = WEIGHTINGS[self.weighting]().fit(counts)
        return self._weigh(counts)

    def _weigh(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        # Scores of a long document add up to thousands, too many for float32 to tell close classes apart.
        return self.weighter_.transform(counts).astype(np.float64)

    def _scores(self, counts: sp.csr_matrix) -> np.ndarray:
        return self._weigh(counts) @ self.coef_.T + self.intercept_

    def _learned(self) -> dict[str, Any]:
        weighter = {f"weighter__{name}": value for name, value in self.weighter_.to_arrays().items()}
        return {**_packed(self.coef_), "intercept_": self.intercept_, **weighter}

    def _restore(self, arrays: dict[str, Any]) -> None:
        weighter = {name.removeprefix("weighter__"): value for name, value in arrays.items() if "__" in name}
        self.weighter_ = WEIGHTINGS[self.weighting].from_arrays(weighter)
        self.coef_, self.intercept_ = _unpacked(arrays, self.n_features_in_), arrays["intercept_"]


def _packed(coef: np.ndarray) -> dict[str, np.ndarray]:
    """Return coefficients as they are stored: without zeros where most are 0, as an SVM's of few documents are."""
    if 3 * np.count_nonzero(coef) >= 2 * coef.size:  # a number takes 8 bytes, its index 4
        return {"coef_": coef}
    return csr_arrays(sp.csr_matrix(coef), "coef_")


def _unpacked(arrays: dict[str, Any], n_terms: int) -> np.ndarray:
    return arrays["coef_"] if "coef_" in arrays else csr_from(arrays, "coef_", n_terms).toarray()


def csr_arrays(matrix: sp.csr_matrix, name: str = "") -> dict[str, np.ndarray]:
    """Return the arrays that a csr matrix, (n_rows, n_columns), consists of, each with `name` before its own."""
    return {f"{name}{part}": getattr(matrix, part) for part in CSR_PARTS}


def csr_from(arrays: dict[str, Any], name: str, n_columns: int) -> sp.csr_matrix:
    """Return the csr matrix, (n_rows, n_columns), whose arrays `csr_arrays` gave."""
    data, indices, indptr = (arrays[f"{name}{part}"] for part in CSR_PARTS)
    return sp.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, n_columns))
