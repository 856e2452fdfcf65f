"""A Gram matrix as one of low rank and a diagonal, whose inverse is the preconditioner of a slow linear system.

With L some of the documents, evenly spaced, K is about F F' where F = K_:L chol(K_LL)^-T (Nystroem); what F F' leaves
of the diagonal of K is kept as it is. The spectrum of documents' features falls fast: K is large in the directions of
F, which would cost conjugate gradients many steps, and small in the others.

Source: Williams and Seeger, Using the Nystroem Method to Speed Up Kernel Machines, NIPS 13 (2000); Frangella, Tropp
and Udell, Randomized Nystroem Preconditioning, SIAM Journal on Matrix Analysis and Applications 44 (2023). The inverse
is Woodbury's.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpstrf

RANK = 200
NOISE = 1e-6  # of the largest value of K: what less is left of a document is rounding


class LowRank:
    """K = factor * products + 1 (n, n), about F F' + diag(remainder) with F (n, RANK or fewer), float64.

    products: float32 (n, n), symmetric; square: (n,), the diagonal of K.
    """

    def __init__(self, products: np.ndarray, square: np.ndarray, factor: float) -> None:
        landmarks = np.unique(np.linspace(0, len(products) - 1, RANK).astype(np.intp))
        columns = products[landmarks] * factor + 1.0
        # Documents that others explain are left out: pivots come last where nothing is left of them.
        corner, pivots, rank, _ = dpstrf(columns[:, landmarks], tol=NOISE * square.max(), lower=1)
        first = pivots[:rank] - 1
        self.factors = solve_triangular(corner[:rank, :rank], columns[first], lower=True).T
        explained = np.einsum("ij,ij->i", self.factors, self.factors)
        self.remainder = np.maximum(square - explained, NOISE * square)

    def inverses(self, inside: np.ndarray, ridge: np.ndarray) -> Callable[..., np.ndarray]:
        """The inverses of F_S F_S' + diag(remainder_S) + ridge, zero outside S.

        inside: (n_rows, n) bools, the S of each row; ridge: (n_rows, 1). Returns a function of vectors (n_some, n) and
        of the rows (n_some,), ints, whose inverses multiply them.
        """
        diagonal = np.where(inside, 1 / (self.remainder + ridge), 0.0)
        inner = [self._inner(row) for row in diagonal]

        def multiply(vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
            halved = vectors * diagonal[rows]
            within = [
                cho_solve(inner[row], each) for row, each in zip(rows, halved @ self.factors, strict=True)
            ]
            return halved - diagonal[rows] * (np.array(within) @ self.factors.T)

        return multiply

    def _inner(self, diagonal: np.ndarray) -> tuple[np.ndarray, bool]:
        some = np.flatnonzero(diagonal)
        scaled = self.factors[some] * np.sqrt(diagonal[some])[:, None]
        return cho_factor(np.eye(scaled.shape[1]) + scaled.T @ scaled)
