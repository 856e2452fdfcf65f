"""The linear systems of dCoT: equation (4) in closed form, three ways.

Source: Z. Xu, M. Chen, K. Weinberger and F. Sha, "From sBoW to dCoT: marginalized encoders for text representation",
CIKM 2012, section 3, equations (3) to (6).
"""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from textbench.featurizers._dcot.kernels import conjugate_gradients, gram, multiply

BLOCK = 512  # columns of a Cholesky panel: large enough for matrix products to run at full speed
# What `auto` takes for the speed of a matrix product next to that of a sparse one; only their ratio matters.
DENSE_FLOPS, SPARSE_FLOPS = 9e10, 4e10


@dataclass(frozen=True)
class LayerMap:
    """One layer's map: weights (r, d), bias (r,), the solver, its steps and its largest relative residual.

    A direct solver takes no steps and states no residual.
    """

    weights: np.ndarray
    bias: np.ndarray
    solver: str
    n_iter: int = 0
    residual: float | None = None


class FirstLayer:
    """The first layer of a corpus: maps x (d terms) to its r prototype terms xbar, for any noise.

    X: csr (n, d), float32 or float64, a row a document (the paper has them as columns); prototypes: (r,) columns.
    With S the scatter matrix and Lambda = diag(S), what the corruption q = [p, ..., p, 1] makes of it (equation 6) is

        E[Q] = S o (q q^T) off the diagonal and S q on it,   E[R] = (prototype rows of S) with column b times q_b,

    where the constant feature is the last one. (The paper prints q_a in E[R]; it is the input that is corrupted, and
    with q_a the bias's column would be p times what it is.) W = E[R] E[Q]^(-1) is equation (4). Written out for the
    bias, whose row of the equations says b = mean(xbar) - p W mean(x), the rest is a problem of centred documents:

        W (p^2 X C X^T + p (1 - p) Lambda) = p Xbar C X^T,    C = I - 11^T/n,

    here with documents as columns, as in the paper. With Y = Lambda^(-1/2) X C and T = Xbar C it is

        W = T Y^T (p Y Y^T + (1 - p) I)^(-1) Lambda^(-1/2) = T (p Y^T Y + (1 - p) I)^(-1) Y^T Lambda^(-1/2),

    the second form by the push-through identity. Y^T Y is n x n and knows nothing of p: one Gram matrix serves every
    noise. As its eigenvalues are not negative, the system is the better conditioned the higher the noise. M is the
    r x n solution of M (p Y^T Y + (1 - p) I) = T; its rows sum to 0, so that W = M X^T Lambda^(-1).

    `ridge` adds ridge * I to E[Q], the bias excepted: Lambda + ridge / (p (1 - p)) I takes Lambda's place above, and
    the Gram matrix then does depend on p. Terms that no document has get zero weights.
    """

    def __init__(self, X: sp.csr_matrix, prototypes: np.ndarray) -> None:
        self.X = X
        self.prototypes = prototypes
        # In double precision whatever X is: what sums to 0 over the documents must do so to the last digit.
        values, d = X.data.astype(np.float64), X.shape[1]
        self.mean = np.bincount(X.indices, weights=values, minlength=d) / X.shape[0]
        self.scatter = np.bincount(X.indices, weights=values**2, minlength=d)  # Lambda

    def solve(self, noise: float, ridge: float, solver: str, tol: float, max_iter: int) -> LayerMap:
        """Return W and b for one noise level; what serves other levels too is kept."""
        p = 1.0 - noise
        extra = ridge / (p * (1 - p))
        if solver == "auto":
            solver = self.cheapest(p, extra, tol)
        if solver == "primal":
            return self._primal(p, ridge)
        M = self.X[:, self.prototypes].toarray()  # T, with documents as rows
        M -= self.mean[self.prototypes].astype(M.dtype)
        n_iter, residual = 0, None
        if solver == "dual":
            self._solve_dual(M, p, extra)
        else:
            n_iter, residual = self._solve_cg(M, p, extra, tol, max_iter)
        scales = _inverse(self.scatter + extra)
        scaled = self._transposed.copy()
        scaled.data *= np.repeat(scales, np.diff(scaled.indptr)).astype(M.dtype)
        weights = multiply(scaled, M)  # W = M X^T Lambda^(-1), transposed
        bias = self.mean[self.prototypes] - p * ((self.X @ (scales * self.mean)).astype(M.dtype) @ M)
        return LayerMap(weights.T, bias.astype(M.dtype), solver, n_iter, residual)

    def cheapest(self, p: float, extra: float, tol: float) -> str:
        """Return the solver with the least estimated time: operations over the speed of their kind.

        Steps of conjugate gradients: six tenths of their bound, sqrt(condition) ln(2 / tol) / 2, as was measured on
        Reuters at noise 0.1 to 0.9, with the largest eigenvalue of Y^T Y from a few power iterations.
        """
        n, d = self.X.shape
        r = len(self.prototypes)
        condition = 1 + p * self._largest_eigenvalue(extra) / (1 - p)
        steps = 0.3 * np.sqrt(condition) * np.log(2 / tol)
        # Beside four operations for each stored count, a step has some twenty for each entry of a document's vectors.
        seconds = {
            "cg": steps * r * (4 * self.X.nnz + 20 * n) / SPARSE_FLOPS,
            "dual": (n**3 / 3 + 2 * n**2 * r) / DENSE_FLOPS,
            "primal": 3 * (d**3 * 2 / 3 + 2 * d**2 * r) / DENSE_FLOPS,  # in double precision
        }
        return min(seconds, key=seconds.__getitem__)

    def _largest_eigenvalue(self, extra: float, n_steps: int = 10) -> float:
        scales = _inverse(self.scatter + extra)
        vector, value = np.cos(np.arange(self.X.shape[0])), 0.0  # any start that is not an eigenvector
        for _ in range(n_steps):
            vector = vector - vector.mean()
            length = np.linalg.norm(vector)
            if length == 0:
                break
            vector = self.X @ (scales * (self.X.T @ (vector / length)))
            value = float(np.linalg.norm(vector))
        return value

    def _primal(self, p: float, ridge: float) -> LayerMap:
        """Equation (4) as it stands, (d+1) x (d+1), in double precision: E[Q] is neither centred nor scaled.

        Only terms that occur have equations; the others' are 0 = 0.
        """
        present = np.flatnonzero(self.scatter)
        X, d = self.X[:, present].astype(np.float64), len(present)
        q = np.append(np.full(d, p), 1.0)
        Q = np.empty((d + 1, d + 1))  # S, the scatter matrix with the constant feature last
        Q[:d, :d] = (X.T @ X).toarray()
        Q[:d, d] = Q[d, :d] = np.asarray(X.sum(axis=0)).ravel()
        Q[d, d] = X.shape[0]
        R = Q[np.searchsorted(present, self.prototypes)] * q
        diagonal = np.diag(Q) * q
        Q *= q
        Q *= q[:, None]
        np.fill_diagonal(Q, diagonal + np.append(np.full(d, ridge), 0.0))
        solved = np.linalg.solve(Q, R.T)
        weights = np.zeros((self.X.shape[1], len(self.prototypes)), dtype=self.X.dtype)
        weights[present] = solved[:d]
        return LayerMap(weights.T, solved[d].astype(self.X.dtype), "primal")

    def _solve_dual(self, M: np.ndarray, p: float, extra: float) -> None:
        """(p Y^T Y + (1 - p) I) M = T in place by Cholesky factorisation, n x n."""
        A = p * (self._gram if extra == 0 else _centred_gram(*_scaled(self.X, self.scatter + extra)))
        A[np.diag_indices_from(A)] += 1 - p
        solve_positive_definite(A, M)

    def _solve_cg(
        self, M: np.ndarray, p: float, extra: float, tol: float, max_iter: int
    ) -> tuple[int, float]:
        """The same by conjugate gradients on sparse products, with the diagonal as preconditioner."""
        Y, own = self._rows if extra == 0 else _scaled(self.X, self.scatter + extra)
        # diag(C Y^T Y C) from Y that is not centred: k_ii - 2 mean_j k_ij + mean_ij k_ij.
        means = _row_means(Y, own)
        centred = np.asarray(Y.multiply(Y).sum(axis=1)).ravel() + own - 2 * means + means.mean()
        diagonal = (p * own + 1 - p).astype(M.dtype)
        preconditioner = (p * np.maximum(centred, 0) + 1 - p).astype(M.dtype)
        n_iter, residual = conjugate_gradients(Y, p, diagonal, preconditioner, M, tol, max_iter)
        if residual > 1.01 * tol:
            warnings.warn(
                f"conjugate gradients left a relative residual of {residual:.1e} after {n_iter} of at most {max_iter} "
                f"steps, above tol {tol:.1e}: raise max_iter or tol, or take dtype float64 or solver dual",
                ConvergenceWarning,
                stacklevel=4,
            )
        return n_iter, residual

    @cached_property
    def _transposed(self) -> sp.csr_matrix:
        return self.X.T.tocsr()

    @cached_property
    def _rows(self) -> tuple[sp.csr_matrix, np.ndarray]:
        return _scaled(self.X, self.scatter)

    @cached_property
    def _gram(self) -> np.ndarray:
        return _centred_gram(*self._rows)


def deeper_layer(Z: np.ndarray, noise: float, ridge: float) -> LayerMap:
    """Return the map from z_(k-1) to itself (section 3, "recursive re-application"): W (r, r), b (r,).

    Z: dense (n, r). The same equations with X = Xbar = Z^T: with the centred scatter matrix G of Z and
    Lambda = diag(S), W (p G + (1 - p) Lambda) = G. Solved in double precision; a feature that is 0 in every document
    gets zero weights.
    """
    p = 1.0 - noise
    mean = Z.mean(axis=0, dtype=np.float64)
    centred = Z - mean.astype(Z.dtype)
    G = (centred.T @ centred).astype(np.float64)
    scatter = np.diag(G) + len(Z) * mean**2
    scales = np.sqrt(_inverse(scatter + ridge / (p * (1 - p))))
    scaled = G * scales * scales[:, None]
    A = p * scaled
    A[np.diag_indices_from(A)] += 1 - p
    # The inverse of the scales would be infinite where a feature is always 0; there G is 0 as well.
    weights = scipy.linalg.solve(A, scales[:, None] * G, assume_a="pos", overwrite_a=True, check_finite=False)
    weights *= scales[:, None]
    bias = mean - p * (mean @ weights)
    return LayerMap(weights.T.astype(Z.dtype), bias.astype(Z.dtype), "direct")


def solve_positive_definite(A: np.ndarray, M: np.ndarray) -> None:
    """Replace M, (n, r), by A^(-1) M: Cholesky factorisation and both substitutions by panels of columns.

    A: (n, n), symmetric positive definite, of which the lower triangle is read and overwritten. All work is in
    matrix products, n^3/3 + 2 n^2 r operations. LAPACK's own factorisation runs at a fraction of their speed in
    the libraries that numpy and scipy bring, and scipy's crashes on some 16,000 x 16,000 matrices.
    """
    panels = [slice(low, low + BLOCK) for low in range(0, len(A), BLOCK)]
    inverses = []
    for panel in panels:
        low, high = panel.start, panel.stop
        A[low:, panel] -= A[low:, :low] @ A[panel, :low].T
        factor = np.linalg.cholesky(A[panel, panel])
        inverses.append(scipy.linalg.solve_triangular(factor, np.eye(len(factor), dtype=A.dtype), lower=True))
        A[high:, panel] = A[high:, panel] @ inverses[-1].T
        M[panel] = inverses[-1] @ (M[panel] - A[panel, :low] @ M[:low])
    for panel, inverse in zip(reversed(panels), reversed(inverses), strict=True):
        M[panel] = inverse.T @ (M[panel] - A[panel.stop :, panel].T @ M[panel.stop :])


def _scaled(X: sp.csr_matrix, scatter: np.ndarray) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return Lambda^(-1/2) X, documents as rows, not centred, in two parts: Y (n, m) and own (n,).

    A term of one document adds to that document's diagonal entry of the Gram matrix and to nothing else: such terms,
    half the vocabulary, are left out of Y and summed up in `own`.
    """
    n_documents = np.bincount(X.indices, minlength=X.shape[1])
    scales = _inverse(scatter)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    squares = X.data.astype(np.float64) ** 2 * np.where(n_documents == 1, scales, 0)[X.indices]
    shared = np.flatnonzero(n_documents > 1)
    Y = X[:, shared]
    Y.data *= np.sqrt(scales[shared]).astype(X.dtype)[Y.indices]
    return Y, np.bincount(rows, weights=squares, minlength=X.shape[0])


def _centred_gram(Y: sp.csr_matrix, own: np.ndarray) -> np.ndarray:
    """Return the lower triangle of C Y^T Y C, (n, n); above it is no meaning."""
    K = gram(Y, Y.T.tocsr())
    K[np.diag_indices_from(K)] += own.astype(K.dtype)
    means = _row_means(Y, own)
    K -= means.astype(K.dtype)
    K -= (means - means.mean()).astype(K.dtype)[:, None]
    return K


def _row_means(Y: sp.csr_matrix, own: np.ndarray) -> np.ndarray:
    """Return the row means of Y^T Y, documents as columns, from its two parts: (n,), in double precision."""
    return (Y @ (Y.T @ np.ones(Y.shape[0])) + own) / Y.shape[0]


def _inverse(values: np.ndarray) -> np.ndarray:
    """1 / values, and 0 where a value is 0."""
    return np.divide(1.0, values, where=values > 0, out=np.zeros(values.shape))
