"""Elastic-net logistic regression where many columns are alike: equal columns become one, with a penalty of its own.

Of all k-grams most stand in one document alone, so that, once scaled by their deviation, thousands of columns are the
same. m equal columns have equal weights w at the optimum (the penalty is strictly convex); with W = m w their part of
the penalty r m |w| + (1 - r) m w^2/2 is r |W| + (1 - r) W^2/(2 m): one column, whose square counts an m-th. The optimum
is the one of all columns.

Source: Zou, Hastie, Regularization and Variable Selection via the Elastic Net, JRSS B 67 (2005), section 2.3 (equal
weights); Yuan, Ho, Lin, An Improved GLMNET, JMLR 13 (2012), algorithm 3, as in `evaluation.probes.solvers.elastic_net`.
"""

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix

from textbench.evaluation.probes.solvers.elastic_net import ElasticNetPath

DIGITS = 9  # that two columns share where they are taken as equal: the rest is rounding of their deviations


class MergedPath(ElasticNetPath):
    """The binary problems of one matrix, solved for one C after another, equal columns as one.

    X: csc float64 (n_documents, n_features), as the penalty should see it; never modified. l1_ratio: r, in (0, 1].
    Solutions are weights of merged columns; `weights @ shares` are those of all features. shares: csr (n_columns,
    n_features), a merged column's row has 1 / (how many features it stands for) at each of these.
    """

    def __init__(self, X: csc_matrix, l1_ratio: float) -> None:
        first, group, size = equal_columns(X)
        super().__init__(csc_matrix(X[:, first]), l1_ratio, size)
        every = np.arange(X.shape[1])
        self.shares = csr_matrix((1 / size[group], (group, every)), shape=(len(first), X.shape[1]))


def equal_columns(X: csc_matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the columns that are equal up to rounding: (first of each group, group of each column, sizes float64).

    Columns are told apart by their products with two random vectors: with DIGITS digits of both, two that differ are
    taken as one once in 10^18 pairs.
    """
    marks = X.T @ np.random.default_rng(0).normal(size=(X.shape[0], 2))
    largest = np.abs(marks).max(initial=0.0) or 1.0
    rounded = np.round(marks / largest, DIGITS)
    _, first, group, size = np.unique(
        rounded[:, 0] + 1j * rounded[:, 1], return_index=True, return_inverse=True, return_counts=True
    )
    return first, group, size.astype(np.float64)
