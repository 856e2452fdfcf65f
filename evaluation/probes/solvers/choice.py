"""Which solver fits a linear probe: Newton's methods, dual descent or LIBLINEAR.

The limits were measured on Reuters-65 with its 65 classes and on 20 Newsgroups (tests/benchmarks/probes.py).
"""

from typing import TYPE_CHECKING, Literal

import numpy as np

from textbench.evaluation.columns import FULL, column_counts

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Fewer values than LARGE, LIBLINEAR fits while others would prepare.
LARGE = 50_000
# Newton's method on the features takes (features)^2 a document and step, that on the Gram matrix as many as there are
# documents: by WORTH to one they take equally long. What the former keeps is at most 800 MB.
WORTH = 100
MOST_VALUES = 100_000_000
# Documents whose Gram matrix is kept: 580 MB, and at most a copy of it.
MOST = 12_000
# A sparse document with fewer values is quicker with LIBLINEAR, which takes its time by the value; but its steps are
# many where some documents are much longer than others, squares of lengths above UNEVEN times their median.
MANY = 250
UNEVEN = 1000
# As MANY, for logistic regression: its steps are shared by all labels.
MANY_LOGISTIC = 150
# LIBLINEAR's descent in the dual is quicker than its primal Newton steps, which scikit-learn takes where documents are
# more than features, for documents beyond MANY_DOCUMENTS and a C up to MODERATE (tests/benchmarks/solvers.py).
MANY_DOCUMENTS = 30_000
MODERATE = 3.0
# LIBLINEAR has its documents as 28 bytes a value, 11 GB of these. More are read where they lie, by Newton's method in
# passes over all of them.
MOST_COPIED = 400_000_000
# Of fewer it is quicker than dual descent where there are ENOUGH documents a feature.
ENOUGH = 3
Solver = Literal["primal", "gram", "streamed", "descent", "liblinear"]


def choose_solver(X: "np.ndarray | csr_matrix") -> Solver:
    """The quickest solver of the linear SVM for documents X, csr or dense (n_documents, n_features)."""
    n_documents, n_features = X.shape
    n_values = np.count_nonzero(X) if isinstance(X, np.ndarray) else X.nnz
    if n_values < LARGE:
        return "liblinear"
    if n_features**2 <= WORTH * n_documents and n_documents * n_features <= MOST_VALUES:
        return "primal"
    long = n_values > MANY * n_documents
    if n_documents <= MOST and (long or _uneven(X)):
        return "gram"
    if n_values > MOST_COPIED:
        return "streamed"
    counts = column_counts(X)
    if 2 * counts[counts > FULL * n_documents].sum() <= n_values:
        return "liblinear"
    return "streamed" if n_documents >= ENOUGH * n_features else "descent"


def choose_logistic_solver(X: "np.ndarray | csr_matrix") -> Solver:
    """The quickest solver of logistic regression for documents X, csr or dense (n_documents, n_features)."""
    n_documents = X.shape[0]
    n_values = np.count_nonzero(X) if isinstance(X, np.ndarray) else X.nnz
    is_worth = n_values >= LARGE and n_values > MANY_LOGISTIC * n_documents and n_documents <= MOST
    return "gram" if is_worth else "liblinear"


def liblinear_dual(n_documents: int, C: float) -> "bool | Literal['auto']":
    """Whether LIBLINEAR solves the linear SVM of sparse documents in the dual; "auto" leaves that to scikit-learn."""
    return True if n_documents > MANY_DOCUMENTS and C <= MODERATE else "auto"


def _uneven(X: "np.ndarray | csr_matrix") -> bool:
    """Whether some documents are much longer than others."""
    if isinstance(X, np.ndarray):
        squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    else:
        squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return bool(squares.max() > UNEVEN * np.median(squares))
