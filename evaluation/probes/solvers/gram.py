"""Linear probes on the Gram matrix: the product of each document with each, which serves every split and every C.

Columns that more than DENSE of the documents have are multiplied as dense blocks, half of the symmetric product alone
(BLAS, syrk); the others as sparse rows. A multiplication of the dense product costs about a hundredth of one of the
sparse product, which needs DENSE^2 as many.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import blas

from textbench.evaluation.columns import full_columns
from textbench.evaluation.probes.solvers.finite_newton import MAX_STEPS, NewtonPath, NewtonSolution
from textbench.evaluation.probes.solvers.logistic_newton import LogisticNewton

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

DENSE = 0.1
COLUMNS = 1024  # of a dense block
ROWS = 512  # of a block of sparse rows, and of the mirrored triangle


def gram_matrix(X: "np.ndarray | csr_matrix") -> np.ndarray:
    """The inner products of the rows of X, float32 (n_documents, n_documents), symmetric to the bit, C order.

    X: csr or dense (n_documents, n_features), any real dtype, never modified; values are read as float32.
    """
    n_documents = X.shape[0]
    # In Fortran's order BLAS adds to the matrix in place: its lower triangle is the upper one of the transpose.
    gram = np.zeros((n_documents, n_documents), dtype=np.float32, order="F")
    columns, rest = _layouts(X)
    for start in range(0, columns.shape[1], COLUMNS):
        block = columns[:, start : start + COLUMNS]
        block = block if isinstance(block, np.ndarray) else block.toarray(order="F")
        gram = blas.ssyrk(
            1.0, block.astype(np.float32, order="F", copy=False), beta=1.0, c=gram, overwrite_c=1, lower=1
        )
    gram = gram.T
    if rest is not None:
        transposed = rest.T.tocsr()
        for start in range(0, n_documents, ROWS):
            gram[start : start + ROWS] += (rest[start : start + ROWS] @ transposed).toarray()
    _mirror(gram)
    return gram


def _layouts(X: "np.ndarray | csr_matrix") -> tuple[Any, Any]:
    """The columns to be multiplied as dense blocks, and the csr rows of the others (None: there are none)."""
    from scipy.sparse import csr_matrix

    if isinstance(X, np.ndarray):
        return X, None
    dense = full_columns(X, DENSE)
    columns = X.tocsc()
    return columns[:, dense], csr_matrix(columns[:, ~dense], dtype=np.float32)


def _mirror(gram: np.ndarray) -> None:
    """Copy the upper triangle onto the lower one, in place."""
    for start in range(0, len(gram), ROWS):
        stop = start + ROWS
        gram[stop:, start:stop] = gram[start:stop, stop:].T
        corner = gram[start:stop, start:stop]
        corner[:] = np.triu(corner) + np.triu(corner, 1).T


class GramDocuments:
    """Training documents by their inner products, as a probe fits them; the subclasses say with which loss.

    Without `held_out` solutions are coefficients (n_features,) of X. With `held_out`, positions of documents that
    are to be scored, the products with those are the features: the coefficients (n_held_out,) are the scores of
    the held-out documents less the intercept, so that these documents are the rows of an identity matrix.

    gram: of all rows of X (`gram_matrix`); train: positions; c_grid: the values of C, in the order in which each
    problem is solved.
    """

    def __init__(
        self,
        X: "np.ndarray | csr_matrix",
        gram: np.ndarray,
        train: np.ndarray,
        scale: float,
        c_grid: Sequence[float],
        held_out: np.ndarray | None = None,
    ) -> None:
        self.X, self.gram, self.train, self.scale = X, gram, train, scale
        self.c_grid, self.held_out = c_grid, held_out
        self.shape = (len(train), X.shape[1] if held_out is None else len(held_out))


class HingeDocuments(GramDocuments):
    """As a linear SVM fits them: one path of solutions for each problem.

    Where the precision of the products does not suffice, as for documents of few features and a C beyond 1,000, the
    solution is returned as not converged.
    """

    @functools.cached_property
    def _newton(self) -> NewtonPath:
        return NewtonPath(self.gram, self.train, self.scale)

    @functools.cached_property
    def _paths(self) -> dict[int, Iterator[tuple[float, NewtonSolution]]]:
        return {}

    def solve(
        self, problem: int, positive: np.ndarray, C: float, max_iter: int
    ) -> tuple[np.ndarray, float, bool]:
        """Solve one problem for the C that is next on its path: (coefficients, intercept, whether it converged).

        Raises ValueError for another C. positive: bools (n_train,).
        """
        if problem not in self._paths:
            path = self._newton.solve(positive, self.c_grid, min(max_iter, MAX_STEPS))
            self._paths[problem] = zip(self.c_grid, path, strict=True)
        expected, solution = next(self._paths[problem])
        if expected != C:
            raise ValueError(f"C must be the next one of the path, {expected:g}, got {C:g}")
        intercept = float(solution.b.sum())
        if self.held_out is not None:
            return solution.scores[self.held_out] - intercept, intercept, solution.converged
        support = np.flatnonzero(solution.b)
        coefficients = np.asarray(self.X[support].T @ solution.b[support]) / self.scale**2
        return coefficients, intercept, solution.converged


class LogisticDocuments(GramDocuments):
    """As logistic regression fits them: all problems of a C together."""

    @functools.cached_property
    def _newton(self) -> LogisticNewton:
        if isinstance(self.X, np.ndarray) and 2 * self.X.shape[1] < len(self.train):
            return LogisticNewton(self.X[self.train].astype(np.float32), self.scale, narrow=True)
        every = len(self.train) == len(self.gram)
        return LogisticNewton(self.gram if every else self.gram[np.ix_(self.train, self.train)], self.scale)

    def solve(self, indicator: np.ndarray, C: float, max_iter: int) -> tuple[np.ndarray, np.ndarray, bool]:
        """Solve the problem of each column of indicator (n_train, n_labels): coefficients, intercepts, converged."""
        b, converged = self._newton.solve(indicator.T, C, min(max_iter, MAX_STEPS))
        if self.held_out is not None:
            coefficients = b.astype(np.float32) @ self.gram[np.ix_(self.train, self.held_out)]
        else:
            coefficients = np.asarray((self.X[self.train].T @ b.T).T)
        return coefficients / self.scale**2, b.sum(axis=1), bool(converged.all())
