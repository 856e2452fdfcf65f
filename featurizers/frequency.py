"""Relative term frequency: the share of the document's words that are the term.

Source: P. Tiňo, lecture notes on document mining, section 1, weights (iii) and equation (1).
"""

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution
from sklearn.preprocessing import normalize

from textbench.featurizers.counts import Counts, validated_counts

INPUT = "counts"
SEARCH_SPACE: dict[str, BaseDistribution] = {}


class Frequency(Counts):
    """Relative term frequency: x_k = N_k / |d|, with |d| the number of counted words in the document.

    X: sparse csr, (n_documents, n_terms), non-negative counts. Features: sparse csr float32, (n_documents,
    n_terms), each row sums to 1; an empty document is a row of zeros. Words outside the vocabulary are not in
    X and so not in |d|. Raises ValueError as `Counts` does, with which it shares all but the weights.

    Source: P. Tiňo, lecture notes on document mining, section 1, weights (iii) and equation (1).
    """

    def transform(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Return the relative frequencies: csr float32, (n_documents, n_terms)."""
        return normalize(validated_counts(self, X, reset=False), norm="l1", copy=False).astype(np.float32)


def build() -> Frequency:
    """Return the unfitted transformer; it has no parameters."""
    return Frequency()
