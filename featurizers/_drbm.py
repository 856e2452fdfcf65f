"""Kernels of the discriminative restricted Boltzmann machine: p(y | x), its gradient, contrastive divergence.

Source: H. Larochelle and Y. Bengio, "Classification using discriminative restricted Boltzmann machines", ICML 2008,
sections 2 to 4.
"""

from dataclasses import dataclass

import numba
import numpy as np
import scipy.sparse as sp
import scipy.special

from textbench.featurizers._exponential import exponential

# Only the fusing of a product and a sum into one instruction is allowed; sums keep their order.
CONTRACT = {"contract"}
ANY_ORDER = CONTRACT | {"reassoc", "nsz"}  # but of exponentials, several of which are then computed at once
FACTORS = 512  # of 1 to 2 each that a double holds multiplied
LARGEST = 80.0  # exponent that a single holds the exponential of


@dataclass(frozen=True)
class Machine:
    """Joint energies -h^T W x - b^T x - c^T h - d_y - h^T U_y of binary words x (D,), hidden units h (H,), a class y.

    W: (D, H), a row a word; U: (C, H), a row a class; b: (D,), c: (H,), d: (C,); all of one float dtype. X: documents,
    csr (n, D), of which only the places of what is stored are read; codes: their classes, ints (n,).
    """

    W: np.ndarray
    U: np.ndarray
    b: np.ndarray
    c: np.ndarray
    d: np.ndarray

    @classmethod
    def initial(cls, X: sp.csr_matrix, n_classes: int, n_hidden: int, rng: np.random.Generator) -> "Machine":
        """Return the machine that learning starts from, float32: b are the log odds of X's words."""
        n, n_words = X.shape

        def drawn(n_rows: int) -> np.ndarray:
            widest = max(n_rows, n_hidden) ** -0.5
            return rng.uniform(-widest, widest, (n_rows, n_hidden)).astype(np.float32)

        n_with = np.bincount(X.indices, minlength=n_words)
        odds = np.log((n_with + 0.5) / (n - n_with + 0.5))
        zeros = (np.zeros(n_hidden, np.float32), np.zeros(n_classes, np.float32))
        return cls(drawn(n_words), drawn(n_classes), odds.astype(np.float32), *zeros)

    def free_energies(self, X: sp.csr_matrix) -> np.ndarray:
        """Return d_y + sum_j softplus(c_j + W_j x + U_jy), float64 (n, C): log p(y, x) but for a term of x alone."""
        found = np.empty((X.shape[0], len(self.d)))
        _free_energies(X.indptr, X.indices, self.W, self.U, self.c, self.d, found)
        return found

    def ascend(self, X: sp.csr_matrix, codes: np.ndarray, rate: float) -> None:
        """Climb log p(y | x), one document after the other, with steps of size `rate`."""
        _ascend(X.indptr, X.indices, codes, self.W, self.U, self.c, self.d, self.W.dtype.type(rate))

    def diverge(
        self, X: sp.csr_matrix, codes: np.ndarray, rate: float, rng: np.random.Generator, n_steps: int = 1
    ) -> None:
        """Climb log p(y, x) by contrastive divergence of `n_steps` on a batch of documents, whose gradients add up."""
        kind = self.W.dtype
        first = self.hidden(X, codes)
        last, model, drawn = first, X, codes
        for _ in range(n_steps):
            h = (rng.random(last.shape) < last).astype(kind)
            activations = h @ self.W.T
            activations += self.b
            model = _words(activations, rng.random(activations.shape, dtype=np.float32))
            drawn = _classes(h @ self.U.T + self.d, rng.random(len(h)))
            last = self.hidden(model, drawn)
        for sign, batch, classes, h in ((rate, X, codes, first), (-rate, model, drawn, last)):
            h *= kind.type(sign)
            _add_rows(batch.indptr, batch.indices, h, self.W)
            self.b[:] += kind.type(sign) * np.bincount(batch.indices, minlength=len(self.b)).astype(kind)
            np.add.at(self.U, classes, h)
            np.add.at(self.d, classes, kind.type(sign))
            self.c[:] += h.sum(axis=0)

    def hidden(self, X: sp.csr_matrix, codes: np.ndarray) -> np.ndarray:
        """Return p(h_j = 1 | x, y) of documents and their classes, (n, H)."""
        o = self.U[codes] + self.c
        _add_words(X.indptr, X.indices, self.W, o)
        return scipy.special.expit(o)

    def copy(self) -> "Machine":
        """Return a machine of its own arrays."""
        return Machine(*(array.copy() for array in vars(self).values()))

    def is_finite(self) -> bool:
        """Tell whether all of its numbers are."""
        return all(np.isfinite(array).all() for array in vars(self).values())


def _words(activations: np.ndarray, uniforms: np.ndarray) -> sp.csr_matrix:
    """Draw words with p = sigmoid(activations), both (n, D): csr (n, D) of ones."""
    n, n_words = activations.shape
    indices, indptr = np.empty(n * n_words, np.int32), np.zeros(n + 1, np.int32)
    _draw_words(activations, uniforms, indices, indptr)
    indices = indices[: indptr[-1]].copy()
    return sp.csr_matrix((np.ones(len(indices), np.int8), indices, indptr), shape=(n, n_words))


def _classes(activations: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Draw classes with p = softmax(activations), (n, C): ints (n,)."""
    shares = np.exp(activations - activations.max(axis=1, keepdims=True), dtype=np.float64).cumsum(axis=1)
    return (shares < uniforms[:, None] * shares[:, -1:]).sum(axis=1)


@numba.njit(nogil=True, cache=True, fastmath=CONTRACT)
def _add_words(indptr, indices, W, o):  # type: ignore[no-untyped-def]
    """o_i <- o_i + the sum of the rows of W of document i's words."""
    for i in range(len(o)):
        for k in range(indptr[i], indptr[i + 1]):
            row = W[indices[k]]
            for j in range(len(row)):
                o[i, j] += row[j]


@numba.njit(nogil=True, cache=True, fastmath=CONTRACT)
def _add_rows(indptr, indices, h, W):  # type: ignore[no-untyped-def]
    """Add h_i to the rows of W of document i's words."""
    for i in range(len(h)):
        for k in range(indptr[i], indptr[i + 1]):
            row = W[indices[k]]
            for j in range(len(row)):
                row[j] += h[i, j]


@numba.njit(nogil=True, cache=True)
def _draw_words(activations, uniforms, indices, indptr):  # type: ignore[no-untyped-def]
    n_drawn, n_words = 0, activations.shape[1]
    is_drawn = np.empty(n_words, np.bool_)
    one, largest = activations.dtype.type(1), activations.dtype.type(LARGEST)
    for i in range(len(activations)):
        for j in range(n_words):
            is_drawn[j] = uniforms[i, j] * (one + exponential(min(-activations[i, j], largest))) < one
        for j in range(n_words):
            if is_drawn[j]:
                indices[n_drawn] = j
                n_drawn += 1
        indptr[i + 1] = n_drawn


@numba.njit(nogil=True, cache=True, fastmath=ANY_ORDER, error_model="numpy")
def _units(a, U, d, sigmoids, energies):  # type: ignore[no-untyped-def]
    """energies_y <- d_y + sum_j softplus(o_jy) and sigmoids_yj <- sigmoid(o_jy), o_jy = a_j + U_jy.

    softplus(o) = max(o, 0) + log(1 + exp(-|o|)): one logarithm is taken of a product of many.
    """
    n_classes, n_hidden = U.shape
    zero, one = U.dtype.type(0), U.dtype.type(1)
    for y in range(n_classes):
        energy = np.float64(d[y])
        for low in range(0, n_hidden, FACTORS):
            product = 1.0
            for j in range(low, min(low + FACTORS, n_hidden)):
                o = a[j] + U[y, j]
                e = exponential(-abs(o))
                share = one / (one + e)
                sigmoids[y, j] = share if o >= zero else e * share
                energy += max(o, zero)
                product *= one + e
            energy += np.log(product)
        energies[y] = energy


@numba.njit(nogil=True, cache=True, fastmath=CONTRACT)
def _free_energies(indptr, indices, W, U, c, d, found):  # type: ignore[no-untyped-def]
    a, sigmoids = np.empty((1, len(c)), W.dtype), np.empty(U.shape, W.dtype)
    for i in range(len(found)):
        a[0] = c
        _add_words(indptr[i : i + 2], indices, W, a)
        _units(a[0], U, d, sigmoids, found[i])


@numba.njit(nogil=True, cache=True, fastmath=CONTRACT)
def _ascend(indptr, indices, codes, W, U, c, d, rate):  # type: ignore[no-untyped-def]
    """Add rate times the gradient of log p(t | x), a document at a time.

    With r_y = [y = t] - p(y | x) and g_j = sum_y r_y sigmoid(o_jy) it is g for c and for the rows of W of the words,
    r_y sigmoid(o_jy) for U_yj, and r for d.
    """
    n_classes, n_hidden = U.shape
    a, g = np.empty((1, n_hidden), W.dtype), np.empty(n_hidden, W.dtype)
    sigmoids, energies = np.empty(U.shape, W.dtype), np.empty(n_classes)
    for i in range(len(codes)):
        a[0] = c
        _add_words(indptr[i : i + 2], indices, W, a)
        _units(a[0], U, d, sigmoids, energies)
        shares = np.exp(energies - energies.max())
        shares /= shares.sum()
        g[:] = 0
        for y in range(n_classes):
            r = rate * W.dtype.type((y == codes[i]) - shares[y])
            d[y] += r
            for j in range(n_hidden):
                step = r * sigmoids[y, j]
                g[j] += step
                U[y, j] += step
        for j in range(n_hidden):
            c[j] += g[j]
        for k in range(indptr[i], indptr[i + 1]):
            row = W[indices[k]]
            for j in range(n_hidden):
                row[j] += g[j]
