"""TF-IDF: term frequency (sublinear by default) times inverse document frequency, rows of unit length.

Source: G. Salton and C. Buckley, "Term-weighting approaches in automatic text retrieval", Information
Processing & Management 24(5), 1988, table 1, in the variant of scikit-learn's TfidfTransformer (1 is added to
the idf).
"""

import inspect
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, CategoricalDistribution
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils.validation import check_is_fitted

from textbench.featurizers._parameters import check_parameters
from textbench.featurizers._weights import are_many, document_frequency, weigh
from textbench.featurizers.counts import validated_counts

INPUT = "counts"
ACCEPTS = {"norm": ("l2", "l1", None)}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "sublinear_tf": CategoricalDistribution([True, False]),
    "smooth_idf": CategoricalDistribution([True, False]),
    "norm": CategoricalDistribution(["l2", "l1", None]),
}


class TfIdf(TfidfTransformer):
    """TF-IDF: x_k = tf(N_k) * idf_k, each document then divided by its norm.

    tf(c) = 1 + ln c where `sublinear_tf`, else c. idf_k = 1 + ln((1 + N) / (1 + n_k)) where `smooth_idf`,
    else 1 + ln(N / n_k), with N training documents of which n_k have term k. `norm`: "l2", "l1" or None.

    X: sparse csr, (n_documents, n_terms), non-negative counts. Features: sparse csr float32, (n_documents,
    n_terms). `idf_`: float64, (n_terms,). Without smoothing a term of no training document has no idf; its
    weight is 0. Raises ValueError on unknown parameter values, negative or non-finite counts, another number
    of terms than in `fit`.

    Source: Salton and Buckley (1988), table 1; scikit-learn's TfidfTransformer.
    """

    use_idf = True  # read by TfidfTransformer; the methods without idf have their own names

    def __init__(
        self, *, sublinear_tf: bool = True, smooth_idf: bool = True, norm: str | None = "l2"
    ) -> None:
        self.sublinear_tf = sublinear_tf
        self.smooth_idf = smooth_idf
        self.norm = norm

    def fit(self, X: sp.csr_matrix, y: Any = None) -> Self:
        """Learn `idf_` from X, csr (n_documents, n_terms)."""
        check_parameters(self, ACCEPTS)
        with np.errstate(divide="ignore"):
            if are_many(X):
                validated_counts(self, X[:1], reset=True)
                smooth = float(self.smooth_idf)
                self.idf_ = np.log((X.shape[0] + smooth) / (document_frequency(X) + smooth)) + 1.0
            else:
                super().fit(validated_counts(self, X, reset=True))
        self.idf_[np.isinf(self.idf_)] = 0.0
        return self

    def transform(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Return the weights: csr float32, (n_documents, n_terms)."""
        if are_many(X):
            validated_counts(self, X[:1], reset=False)
            tf = np.arange(X.data.max() + 1, dtype=np.float64)
            if self.sublinear_tf:
                tf[1:] = np.log(tf[1:]) + 1.0
            return weigh(X, tf, self.idf_, self.norm)
        return super().transform(validated_counts(self, X, reset=False), copy=False).astype(np.float32)

    def to_arrays(self) -> dict[str, Any]:
        """Return all that `from_arrays` needs: parameters, idf and the number of terms."""
        check_is_fitted(self)
        return {**self.get_params(), "idf_": self.idf_, "n_features_in_": self.n_features_in_}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """Return the fitted transformer that `to_arrays` described."""
        transformer = cls(**{name: arrays[name] for name in inspect.signature(cls).parameters})
        transformer.idf_ = arrays["idf_"]
        transformer.n_features_in_ = arrays["n_features_in_"]
        return transformer


def build(**params: Any) -> TfIdf:
    """Return the unfitted transformer with these parameters."""
    return TfIdf(**params)
