"""What retrieval by example found, query by query; whoever only reads it loads no compiled search.

Source: Manning, Raghavan, Schuetze, Introduction to Information Retrieval (2008), section 8.4.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class QueryScores:
    """Retrieval by example, query by query: float64 arrays (n_test,) of fractions, in the queries' order.

    n_without_relevant counts the queries whose class no training document has; they score 0 everywhere.
    """

    average_precision: np.ndarray
    precision_at_1: np.ndarray
    precision_at_3: np.ndarray
    precision_at_5: np.ndarray
    precision_at_10: np.ndarray
    ndcg_at_5: np.ndarray
    n_without_relevant: int
