"""Language model, summed (lm without logarithms): what lm+R is at lambda 0, so that R is compared with its own base.

Source: D. Mekala, V. Gupta, B. Paranjape and H. Karnick, "SCDV: Sparse composite document vectors using soft clustering
over distributional representations", EMNLP 2017, section 4.5, the equation of score(q, d).
"""

import numpy as np
from optuna.distributions import BaseDistribution

from textbench.evaluation.rankers import CollectionIndex, lm

NEEDS: tuple[str, ...] = ()
SEARCH_SPACE: dict[str, BaseDistribution] = {"mu": lm.MU}


def score(index: CollectionIndex, *, mu: float = 1000.0) -> np.ndarray:
    """Sum over query words of P(w) P(w|d), P(w|d) smoothed as in `lm`: float32 (n_queries, n_documents).

    A linear sum hardly tells rare words from common ones, for which query likelihood has its logarithms. All documents
    are retrieved by a query that has a known word.
    """
    scores = lm.linear(index, index.query_model, mu).astype(np.float32)
    scores[index.query_lengths == 0] = -np.inf
    return scores
