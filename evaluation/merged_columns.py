"""Elastic-net logistic regression where many columns are alike: equal columns become one, with a penalty of its own.

Of all k-grams most stand in one document alone, so that, once scaled by their deviation, thousands of columns are the
same. m equal columns have equal weights w at the optimum (the penalty is strictly convex); with W = m w their part of
the penalty r m |w| + (1 - r) m w^2/2 is r |W| + (1 - r) W^2/(2 m): one column, whose square counts an m-th. The optimum
is the one of all columns.

Source: Zou, Hastie, Regularization and Variable Selection via the Elastic Net, JRSS B 67 (2005), section 2.3 (equal
weights); Yuan, Ho, Lin, An Improved GLMNET, JMLR 13 (2012), algorithm 3, as in `evaluation.elastic_net`.
"""

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix

DIGITS = 9  # that two columns share where they are taken as equal: the rest is rounding of their deviations


def merge_columns(X: csc_matrix) -> tuple[csc_matrix, np.ndarray, csr_matrix]:
    """Make one column of equal ones: (the columns that differ, how many each stands for, the matrix that merges).

    X: csc float64 (n_documents, n_features), never modified. The second is float64 (n_columns,); the last, csr
    (n_features, n_columns), holds for each feature 1 / (how many are equal to it) in its merged column, so that
    `documents @ matrix` are the merged columns of any documents, and `weights @ matrix.T` every feature's weight.
    """
    first, group, size = equal_columns(X)
    n_features = X.shape[1]
    merge = csr_matrix((1 / size[group], group, np.arange(n_features + 1)), shape=(n_features, len(first)))
    return csc_matrix(X[:, first]), size, merge


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
