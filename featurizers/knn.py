"""k nearest neighbours (k-NN): a vote of the training documents of highest TF-IDF cosine.

Source: Y. Yang and X. Liu, "A re-examination of text categorization methods", SIGIR 1999, the section on kNN.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.neighbors import NearestNeighbors

from textbench.featurizers._classifiers import CountClassifier, csr_arrays, csr_from
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers.tfidf import TfIdf

INPUT = "counts"
ROLE = "classifier"
ACCEPTS = {
    "n_neighbors": "[1, inf)",
    "votes": ("cosine", "equal"),
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "n_neighbors": IntDistribution(1, 200, log=True),
    "votes": CategoricalDistribution(["cosine", "equal"]),
}
# A document without a term in common has distance 1 but for rounding in float32.
ROUNDING = 1e-6
# Documents among which the neighbours of a few are sought, to tell how long those of many take.
N_TIMED = 10_000


class NearestDocuments(CountClassifier):
    """k nearest neighbours: y(x, c) = sum of sim(x, d) over the k nearest documents d of class c.

    sim is the cosine of TF-IDF weights (sublinear, smoothed, as `TfIdf`), or 1 with `votes="equal"`; sums are
    divided by the sum of all votes. `n_neighbors` is clipped to the number of training documents. A document
    that shares no term with any of them, or only with less than all k, is voted on by those it shares one with;
    with none it gets the shares of the classes in training. Of several labels a score is the share of the votes
    less one half. The paper's threshold per class is left to the protocol.

    X, y, shapes and errors: `CountClassifier`; ValueError too for n_neighbors not a whole number from 1, unknown
    votes.

    Source: Yang and Liu (1999), the section on kNN.
    """

    def __init__(self, *, n_neighbors: int = 30, votes: str = "cosine") -> None:
        self.n_neighbors = n_neighbors
        self.votes = votes

    def _fit_classes(self, counts: sp.csr_matrix, codes: np.ndarray) -> None:
        self._fit_labels(counts, codes[:, None] == np.arange(len(self.classes_)))

    def _fit_labels(self, counts: sp.csr_matrix, indicator: np.ndarray) -> None:
        check_parameters(self, ACCEPTS)
        self.weighter_ = TfIdf().fit(counts)
        self.documents_ = self.weighter_.transform(counts)
        self.indicator_ = indicator

    def _scores(self, counts: sp.csr_matrix) -> np.ndarray:
        k = min(self.n_neighbors, self.documents_.shape[0])
        search = NearestNeighbors(n_neighbors=k, metric="cosine", algorithm="brute").fit(self.documents_)
        distances, neighbours = search.kneighbors(self.weighter_.transform(counts))
        cosines = 1.0 - distances.astype(np.float64)
        votes = np.where(cosines > ROUNDING, cosines if self.votes == "cosine" else 1.0, 0.0)
        # One row a document, the votes at the columns of its neighbours.
        ends = np.arange(0, votes.size + 1, k)
        table = sp.csr_matrix(
            (votes.ravel(), neighbours.ravel(), ends), shape=(len(votes), len(self.indicator_))
        )
        total = votes.sum(axis=1, keepdims=True)
        shares = np.where(
            total > 0,
            (table @ self.indicator_.astype(np.float64)) / np.where(total > 0, total, 1.0),
            self.indicator_.mean(axis=0),
        )
        return shares - 0.5 if self.several_labels_ else shares

    def _learned(self) -> dict[str, Any]:
        weighter = {f"weighter__{name}": value for name, value in self.weighter_.to_arrays().items()}
        return {"indicator_": self.indicator_, **csr_arrays(self.documents_), **weighter}

    def _restore(self, arrays: dict[str, Any]) -> None:
        weighter = {name.removeprefix("weighter__"): value for name, value in arrays.items() if "__" in name}
        self.weighter_ = TfIdf.from_arrays(weighter)
        self.indicator_ = arrays["indicator_"]
        self.documents_ = csr_from(arrays, "", self.n_features_in_)


def seconds(method: NearestDocuments, texts: Sequence[str], n_train: int, n_test: int) -> float:
    """Return about how long predicting so many test documents takes, by cosines of these texts, words as they stand."""
    counts = HashingVectorizer(norm=None, alternate_sign=False, dtype=np.float32).transform(texts)
    weights = TfIdf().fit_transform(counts)
    documents = sp.vstack([weights] * (1 + N_TIMED // len(texts)), format="csr")
    k = min(method.n_neighbors, documents.shape[0])
    search = NearestNeighbors(n_neighbors=k, metric="cosine", algorithm="brute").fit(documents)
    begun = time.process_time()
    search.kneighbors(weights)
    return (time.process_time() - begun) / (documents.shape[0] * len(texts)) * n_train * n_test


def build(**params: Any) -> NearestDocuments:
    """Return the unfitted classifier with these parameters."""
    return NearestDocuments(**params)
