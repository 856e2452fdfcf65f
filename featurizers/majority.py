"""Majority class: the most frequent class, whatever the document says.

Source: scikit-learn's DummyClassifier, strategy "prior".
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution

from textbench.featurizers._classifiers import CountClassifier

INPUT = "counts"
ROLE = "classifier"
SEARCH_SPACE: dict[str, BaseDistribution] = {}


class Majority(CountClassifier):
    """Majority class: every document gets the training class with the most documents, of equals the lowest.

    Scores are the classes' shares of the training documents. Of several labels a document gets those that more
    than half of the training documents have; a label's score is its share less one half.

    X, y, shapes and errors: `CountClassifier`. `shares_`: float64, (n_classes,).

    Source: scikit-learn's DummyClassifier, strategy "prior".
    """

    def _fit_classes(self, counts: sp.csr_matrix, codes: np.ndarray) -> None:
        self.shares_ = np.bincount(codes) / len(codes)

    def _fit_labels(self, counts: sp.csr_matrix, indicator: np.ndarray) -> None:
        self.shares_ = indicator.mean(axis=0)

    def _scores(self, counts: sp.csr_matrix) -> np.ndarray:
        scores = self.shares_ - 0.5 if self.several_labels_ else self.shares_
        return np.tile(scores, (counts.shape[0], 1))

    def _learned(self) -> dict[str, Any]:
        return {"shares_": self.shares_}

    def _restore(self, arrays: dict[str, Any]) -> None:
        self.shares_ = arrays["shares_"]


def build() -> Majority:
    """Return the unfitted classifier; it has no parameters."""
    return Majority()
