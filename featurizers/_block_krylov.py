"""Leading right singular vectors of many documents: a randomised block Krylov method of three passes.

With A = X'X a pass multiplies a block Q_j of vectors by A, one block of rows after another, and what is new in A Q_j
gives the next block of an orthonormal basis [Q_0, ..., Q_p]. After p passes A is known on K = [Q_0, ..., Q_(p-1)], and
Nystrom's approximation (A K) (K'A K)^-1 (A K)' stands for it. The first block is that of two such steps on a sample of
the rows, from random numbers.

Source: N. Halko, P.-G. Martinsson, Y. Shkolnisky and M. Tygert, "An algorithm for the principal component analysis of
large data sets", SIAM Journal on Scientific Computing 33(5), 2011; its products with A as in C. Musco and C. Musco,
"Randomized block Krylov methods for stronger and faster approximate singular value decomposition", NIPS 2015; the
approximation: N. Halko, P.-G. Martinsson and J. Tropp, "Finding structure with randomness", SIAM Review 53(2), 2011,
section 5.5.
"""

import numpy as np
import scipy.sparse as sp

N_PASSES = 3
OVERSAMPLES = 20  # vectors of a block beyond those that are wanted
ROWS = 50_000  # documents whose products are added at a time
SAMPLE = 20_000  # documents that the first block is found on
SAMPLE_STEPS = 2
EPSILON = 1e-14  # a direction with a smaller share of the squares is rounding


def n_basis(n_components: int) -> int:
    """Return how many vectors the basis has: documents and terms must be more."""
    return (N_PASSES + 1) * (n_components + OVERSAMPLES)


def leading_singular_vectors(
    X: sp.csr_matrix, n_components: int, random_state: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return singular values, float64 (n_components,), descending, and right singular vectors, (n_terms, n_components).

    X: csr float32 (n_documents, n_terms), not all zero, read N_PASSES times, both sides above `n_basis`. Memory: the
    basis, float32 (n_terms, n_basis), a few of its N_PASSES + 1 blocks as float64, and the products of ROWS documents.
    Rows are added in one order, so that the same seed gives the same bits. Singular values are never too large, but for
    rounding.
    """
    n_vectors = n_components + OVERSAMPLES
    block = np.random.default_rng(random_state).standard_normal((X.shape[1], n_vectors), dtype=np.float32)
    sample = X[:: max(1, X.shape[0] // SAMPLE)]
    for _ in range(SAMPLE_STEPS):
        block = _orthogonal(times_gram(sample, block), [])[0]
    basis, known = [block], np.zeros((n_basis(n_components), N_PASSES * n_vectors))
    for step in range(N_PASSES):
        new, coefficients = _orthogonal(times_gram(X, basis[-1]), basis)
        known[: len(coefficients), step * n_vectors : (step + 1) * n_vectors] = coefficients
        basis.append(new)
    values, turn = _nystrom(known)
    vectors = sum(
        block.astype(np.float64) @ turn[i * n_vectors : (i + 1) * n_vectors, :n_components]
        for i, block in enumerate(basis)
    )
    return np.sqrt(values[:n_components]), vectors / np.linalg.norm(vectors, axis=0)


def times_gram(X: sp.csr_matrix, block: np.ndarray) -> np.ndarray:
    """Return X'X block, float64 (n_terms, n_vectors), of X csr float32 and a block float32 (n_terms, n_vectors)."""
    product = np.zeros(block.shape)
    for start in range(0, X.shape[0], ROWS):
        rows = X[start : start + ROWS]
        product += rows.T @ (rows @ block)
    return product


def _orthogonal(product: np.ndarray, basis: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return what is new in a product, orthonormal float32, and the product's coefficients in the basis and it."""
    coefficients = np.zeros((len(basis), *2 * product.shape[1:]))
    rest, scale = product, np.eye(product.shape[1])
    for _ in range(2):  # the second time removes what rounding left the first time
        for i, block in enumerate(basis):
            wide = block.astype(np.float64)
            part = wide.T @ rest
            rest = rest - wide @ part
            coefficients[i] += part @ scale
        rest, own = _orthonormal(rest)
        scale = own @ scale
    return rest.astype(np.float32), np.vstack([*coefficients, scale])


def _orthonormal(block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return orthonormal columns, but for rounding, and the square matrix that gives the block, times them."""
    squares, axes = np.linalg.eigh(block.T @ block)
    lengths = np.sqrt(np.maximum(squares, EPSILON * squares[-1]))
    return block @ (axes / lengths), (axes * lengths).T


def _nystrom(known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues, descending, and eigenvectors in the basis, of what is known of a matrix A >= 0.

    known: the basis' inner products with A times the first of its vectors, float64 (n, m), n > m.
    """
    m = known.shape[1]
    inner, axes = np.linalg.eigh((known[:m] + known[:m].T) / 2)
    kept = inner > 1e-10 * inner[-1]
    root = known @ (axes[:, kept] / np.sqrt(inner[kept]))
    turn, values, _ = np.linalg.svd(root, full_matrices=False)
    return values**2, turn
