"""Language model (query likelihood): unigrams, smoothed by a Dirichlet prior of the collection's model.

Source: C. Zhai and J. Lafferty, "A study of smoothing methods for language models applied to information retrieval",
ACM Transactions on Information Systems 22(2), 2004, section 3 and table I.
"""

from typing import TYPE_CHECKING

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution

from textbench.evaluation.rankers import CollectionIndex, only_matching

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

NEEDS: tuple[str, ...] = ()
MU = FloatDistribution(20.0, 10_000.0, log=True)
SEARCH_SPACE: dict[str, BaseDistribution] = {"mu": MU}


def score(index: CollectionIndex, *, mu: float = 1000.0) -> np.ndarray:
    """log P(q|d) = sum over query words of log P(w|d), P(w|d) = (c(w, d) + mu p(w|C)) / (|d| + mu).

    The part that is the same for all documents, sum of log p(w|C), is left out. Returns float32 (n_queries,
    n_documents); a document without any query word is not retrieved.
    """
    return log_likelihood(index, index.queries.astype(np.float32), index.query_lengths, mu)


def log_likelihood(
    index: CollectionIndex, weights: "csr_matrix", totals: np.ndarray, mu: float
) -> np.ndarray:
    """Sum over words of weight(w) log P(w|d), up to a constant a query: the words of a query, or its expanded model.

    weights: csr (n_queries, n_terms); totals: (n_queries,), its row sums.
    """
    words = np.unique(weights.indices)
    seen = index.postings[words]
    seen.data = np.log1p(seen.data / (mu * np.repeat(index.background[words], np.diff(seen.indptr))))
    matched = (weights[:, words] @ seen).toarray()
    length_part = np.log(mu / (index.lengths + mu))
    return only_matching(matched + totals[:, None] * length_part, matched > 0)


def linear(index: CollectionIndex, model: "csr_matrix", mu: float) -> np.ndarray:
    """Sum over words of P(w|q) P(w|d), a linear sum: float64 (n_queries, n_documents), of all documents.

    model: csr (n_queries, n_terms), P(w|q). As printed in SCDV (EMNLP 2017), section 4.5, where query likelihood has
    the logarithm of P(w|d).
    """
    seen = (model @ index.postings).toarray()
    unseen = model @ index.background
    return (seen + mu * unseen[:, None]) / (index.lengths + mu)
