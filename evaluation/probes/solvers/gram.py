"""Linear probes on the Gram matrix: the product of each document with each, which serves every split and every C.

Only half of the symmetric product is computed. Columns that more than DENSE of the documents have are multiplied as
dense blocks (BLAS, syrk); of the others each value is multiplied with those below it in its column. A multiplication
of the dense product costs a few hundredths of one of the sparse product, which needs DENSE^2 as many.
"""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit
from scipy.linalg import blas

from textbench.evaluation.columns import full_columns
from textbench.evaluation.probes.solvers.finite_newton import (
    MAX_STEPS,
    NewtonPath,
    NewtonSolution,
    neighbours,
)
from textbench.evaluation.probes.solvers.logistic_newton import LogisticNewton

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix, csr_matrix

DENSE = 0.15
COLUMNS = 1024  # of a dense block
ROWS = 512  # of a block of the mirrored triangle


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
        _add_sparse(gram, rest)
    _mirror(gram)
    return gram


def _layouts(X: "np.ndarray | csr_matrix") -> tuple[Any, "csc_matrix | None"]:
    """The columns to be multiplied as dense blocks, and the others as csc, float32 (None: there are none)."""
    from scipy.sparse import csc_matrix

    if isinstance(X, np.ndarray):
        return X, None
    dense = full_columns(X, DENSE)
    columns = X.tocsc()
    rest = csc_matrix(columns[:, ~dense], dtype=np.float32)
    rest.sum_duplicates()
    return columns[:, dense], rest


def _add_sparse(gram: np.ndarray, columns: "csc_matrix") -> None:
    """Add the products of sparse rows, given by columns, to the upper triangle of gram, in place."""
    rows = columns.tocsr()
    layouts = rows.indptr, rows.indices, rows.data, columns.indptr, columns.indices, columns.data
    _add_rows(gram, *layouts)


@njit(nogil=True, cache=True)
def _add_rows(
    gram: np.ndarray,
    row_starts: np.ndarray,
    row_columns: np.ndarray,
    row_values: np.ndarray,
    column_starts: np.ndarray,
    documents: np.ndarray,
    column_values: np.ndarray,
) -> None:
    """Add the rows of the product to those of gram, from the diagonal on."""
    at = column_starts[:-1].copy()  # where in its column the next document of each stands: they come in order
    for document in range(len(gram)):
        products = gram[document]
        for entry in range(row_starts[document], row_starts[document + 1]):
            column, value = row_columns[entry], row_values[entry]
            for below in range(at[column], column_starts[column + 1]):
                products[documents[below]] += value * column_values[below]
            at[column] += 1


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

    gram: of all rows of X (`gram_matrix`); train: positions.
    """

    def __init__(
        self,
        X: "np.ndarray | csr_matrix",
        gram: np.ndarray,
        train: np.ndarray,
        scale: float,
        held_out: np.ndarray | None = None,
    ) -> None:
        self.X, self.gram, self.train, self.scale, self.held_out = X, gram, train, scale, held_out
        self.shape = (len(train), X.shape[1] if held_out is None else len(held_out))

    def plan(self, c_grid: Sequence[float]) -> None:
        """Say which C come next, in that order."""

    def pause(self) -> None:
        """Let go of what takes room and is quickly made again, for it may be long until the next C."""


class HingeDocuments(GramDocuments):
    """As a linear SVM fits them: all problems along one path of C, neighbours that are planned together.

    Where the precision of the products does not suffice, as for documents of few features and a C beyond 1,000, the
    solution is returned as not converged.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.blocks: dict[float, list[float]] = {}  # planned, by their first C
        self.newton: NewtonPath | None = None
        self.solved: dict[float, list[NewtonSolution]] = {}  # of the last block

    def plan(self, c_grid: Sequence[float]) -> None:
        """Say which C come next, in that order: neighbours among them are solved together."""
        self.blocks = {block[0]: block for block in neighbours(c_grid)}

    def solve(self, indicator: np.ndarray, C: float, max_iter: int) -> tuple[np.ndarray, np.ndarray, bool]:
        """Solve the problem of each column of indicator (n_train, n_labels): coefficients, intercepts, converged.

        It starts from the last solutions, so that a path of rising C is quickest. The indicator is the first call's.
        """
        if self.newton is None:
            self.newton = NewtonPath(self.gram, self.train, self.scale, indicator.T)
        if C not in self.solved:
            block = self.blocks.get(C, [C])
            found = self.newton.solve(block, min(max_iter, MAX_STEPS))
            self.solved = dict(zip(block, map(list, zip(*found, strict=True)), strict=True))
        solutions = self.solved[C]
        intercepts = np.array([solution.b.sum() for solution in solutions])
        converged = all(solution.converged for solution in solutions)
        if self.held_out is not None:
            scores = np.array([solution.scores[self.held_out] for solution in solutions])
            return scores - intercepts[:, None], intercepts, converged
        b = np.array([solution.b for solution in solutions])
        support = np.flatnonzero(b.any(axis=0))
        coefficients = np.asarray((self.X[support].T @ b[:, support].T).T)
        return coefficients / self.scale**2, intercepts, converged


class LogisticDocuments(GramDocuments):
    """As logistic regression fits them: all problems of a C together."""

    def pause(self) -> None:
        """Forget the products of the training documents, a copy of the Gram matrix, and with them the last solution."""
        self.__dict__.pop("_newton", None)

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
