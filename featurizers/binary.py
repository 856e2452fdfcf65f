"""Binary weights (term occurrence): 1 where the term occurs in the document, else 0.

Source: P. Tiňo, lecture notes on document mining, section 1, weights (i).
"""

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution
from sklearn.preprocessing import binarize

from textbench.featurizers.counts import Counts, validated_counts

INPUT = "counts"
SEARCH_SPACE: dict[str, BaseDistribution] = {}


class Binary(Counts):
    """Binary weights: x_k = 1 if term k occurs in the document, else 0.

    X: sparse csr, (n_documents, n_terms), non-negative counts. Features: sparse csr float32 of ones,
    (n_documents, n_terms). Raises ValueError as `Counts` does, with which it shares all but the weights.

    Source: P. Tiňo, lecture notes on document mining, section 1, weights (i).
    """

    def transform(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Return the occurrences: csr float32, (n_documents, n_terms)."""
        return binarize(validated_counts(self, X, reset=False), copy=False).astype(np.float32)


def build() -> Binary:
    """Return the unfitted transformer; it has no parameters."""
    return Binary()
