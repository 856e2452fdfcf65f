"""Language model with document vectors (lm+R): the linear query score mixed with the cosine of a representation R.

Source: D. Mekala, V. Gupta, B. Paranjape and H. Karnick, "SCDV: Sparse composite document vectors using soft clustering
over distributional representations", EMNLP 2017, section 4.5.
"""

from typing import TYPE_CHECKING

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution

from textbench.evaluation.rankers import CollectionIndex, lm

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

NEEDS = ("features",)
# The linear score is some hundredths where a cosine is some tenths: small weights of the cosine matter.
WEIGHT = FloatDistribution(1e-5, 0.999, log=True)
SEARCH_SPACE: dict[str, BaseDistribution] = {"mu": lm.MU, "weight": WEIGHT}


def score(index: CollectionIndex, *, mu: float = 1000.0, weight: float = 0.5) -> np.ndarray:
    """(1 - lambda) * sum over query words of P(w) P(w|d) + lambda * cosine(q, d): float32 (n_queries, n_documents).

    `weight` is the paper's lambda; its code has 0.5. P(w) is the word's share of the query and P(w|d) the Dirichlet
    model of `lm`; the sum is linear, as printed, where query likelihood takes logarithms. All documents are retrieved
    by a query that has a known word.
    """
    return mixed(index, index.query_model, mu, weight)


def mixed(index: CollectionIndex, model: "csr_matrix", mu: float, weight: float) -> np.ndarray:
    """The equation, with any model P(w) of the queries: csr (n_queries, n_terms)."""
    scores = ((1 - weight) * lm.linear(index, model, mu) + weight * index.cosines).astype(np.float32)
    scores[index.query_lengths == 0] = -np.inf
    return scores
