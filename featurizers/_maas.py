"""The two half rounds of the word vectors of Maas et al.: the words' vectors by L-BFGS, the documents' by own steps.

Source: A. Maas, R. Daly, P. Pham, D. Huang, A. Ng and C. Potts, "Learning word vectors for sentiment analysis", ACL
2011, section 3.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import scipy.optimize
import scipy.sparse as sp
from scipy.special import expit, log_expit, softmax

from textbench.featurizers._dcot.kernels import in_threads
from textbench.featurizers._exponential import exponential

CHUNK = 1024  # documents whose products with all words are held at a time
N_WORD_STEPS, N_DOCUMENT_STEPS = 10, 6
MEMORY = 10  # of L-BFGS
FASTER, SLOWER = 1.5, 0.4  # what a document's step is multiplied by


@dataclass(frozen=True)
class WordVectors:
    """p(w | theta) = softmax_w(theta^T phi_w + b_w); p(s = 1 | w) = sigmoid(psi^T phi_w + b_c).

    R: (V, k), a row phi_w a word; b: (V,); psi: (k,); b_c: (1,); all of one float dtype.
    """

    R: np.ndarray
    b: np.ndarray
    psi: np.ndarray
    b_c: np.ndarray

    def flat(self) -> np.ndarray:
        """Return all numbers in a row, float64."""
        return np.concatenate([part.ravel() for part in vars(self).values()]).astype(np.float64)

    def unflat(self, numbers: np.ndarray) -> "WordVectors":
        """Return the vectors that `flat` made into numbers, (n,), of the shapes and the dtype of these."""
        ends = np.cumsum([part.size for part in vars(self).values()])
        parts = zip(np.split(numbers, ends[:-1]), vars(self).values(), strict=True)
        return WordVectors(*(values.reshape(part.shape).astype(part.dtype) for values, part in parts))


@dataclass(frozen=True)
class Objective:
    """What is minimised over words and documents:

    -sum_k sum_(i in k) log p(w_i | theta_k) + prior sum_k |theta_k|^2 + ridge |R|^2 + sentiment times `of_ratings`.

    X: counts, csr (n, V), of the vectors' dtype, so are thetas, (n, k), a row a document. masses: those of
    `rating_masses`, (2, V), or None for the semantic model, which knows no ratings.
    """

    X: sp.csr_matrix
    prior: float
    ridge: float
    sentiment: float = 0.0
    masses: np.ndarray | None = None

    def of_words(self, words: WordVectors, thetas: np.ndarray) -> tuple[float, WordVectors]:
        """Return the objective and its gradient by the words' vectors; thetas: (n, k)."""
        value = self.prior * _squared(thetas) + self.ridge * _squared(words.R)
        parts = self._parts()
        found: list[tuple[float, np.ndarray, np.ndarray]] = [(0.0, words.R, words.b)] * len(parts)

        def at(i: int) -> None:
            own = thetas[parts[i]]
            values, residuals = of_documents(words, own, self.X[parts[i]])
            found[i] = float(values.sum()), residuals.T @ own, residuals.sum(axis=0)

        _each(at, range(len(parts)))
        R, b = 2 * self.ridge * words.R.astype(np.float64), np.zeros(len(words.b))
        for part_value, part_R, part_b in found:  # in one order, whatever the number of threads
            value += part_value
            R += part_R
            b += part_b
        psi, b_c = np.zeros(words.psi.shape), np.zeros(1)
        if self.masses is not None:
            said, slope = of_ratings(words, self.masses)
            value += self.sentiment * said
            R += self.sentiment * slope.R
            psi, b_c = self.sentiment * slope.psi, self.sentiment * slope.b_c
        return value, WordVectors(R, b, psi, b_c)

    def improve_words(self, words: WordVectors, thetas: np.ndarray) -> WordVectors:
        """Return better vectors while documents stay, thetas (n, k): a few steps of L-BFGS."""

        def at(numbers: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = self.of_words(words.unflat(numbers), thetas)
            return value, slope.flat()

        options = {"maxiter": N_WORD_STEPS, "maxcor": MEMORY}
        found = scipy.optimize.minimize(at, words.flat(), jac=True, method="L-BFGS-B", options=options)
        return words.unflat(found.x)

    def improve_documents(
        self, words: WordVectors, thetas: np.ndarray, n_steps: int = N_DOCUMENT_STEPS
    ) -> None:
        """Move thetas, (n, k), in place to where the objective is lower, while the words' vectors stay.

        With C the covariance of phi under softmax(b), a document's Hessian is about n_k C + 2 prior I: one
        eigendecomposition preconditions them all. A step that does not help is not taken.
        """
        shares = softmax(words.b.astype(np.float64))
        mean = shares @ words.R
        eigenvalues, Q = np.linalg.eigh((words.R.T * shares) @ words.R - np.outer(mean, mean))
        Q = Q.astype(thetas.dtype)

        def move(part: slice) -> None:
            X, own = self.X[part], thetas[part].copy()
            n_tokens = np.asarray(X.sum(axis=1)).ravel()
            scales = (1 / (np.outer(n_tokens, eigenvalues.clip(0)) + 2 * self.prior)).astype(own.dtype)
            lengths = np.ones((len(own), 1), dtype=own.dtype)
            values, slopes = self._document_slopes(words, own, X)
            for _ in range(n_steps):
                moved = own - lengths * (((slopes @ Q) * scales) @ Q.T)
                others, other_slopes = self._document_slopes(words, moved, X)
                better = others < values
                lengths *= np.where(better, FASTER, SLOWER)[:, None].astype(own.dtype)
                for kept, new in ((own, moved), (values, others), (slopes, other_slopes)):
                    kept[better] = new[better]
            thetas[part] = own

        _each(move, self._parts())

    def _document_slopes(
        self, words: WordVectors, thetas: np.ndarray, X: sp.csr_matrix
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return each document's part of the objective, (m,), and its gradient by thetas, (m, k); X: csr (m, V)."""
        values, residuals = of_documents(words, thetas, X)
        values += self.prior * (thetas.astype(np.float64) ** 2).sum(axis=1)
        return values, residuals @ words.R + 2 * self.prior * thetas

    def _parts(self) -> list[slice]:
        return [slice(low, low + CHUNK) for low in range(0, self.X.shape[0], CHUNK)]


def of_documents(words: WordVectors, thetas: np.ndarray, X: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return -log p of each document's words, float64 (m,), and n_k p(w | theta_k) less the counts, (m, V).

    thetas: (m, k); X: counts, csr (m, V).
    """
    Z, values = thetas @ words.R.T, np.empty(len(thetas))
    _to_residuals(X.indptr, X.indices, X.data, words.b, Z, values)
    return values, Z


def rating_masses(X: sp.csr_matrix, ratings: np.ndarray) -> np.ndarray:
    """Return what sum_k (1 / |S_k|) sum_(i in k) log p(s_k | w_i) gives log p(0 | w) and log p(1 | w), float64 (2, V).

    X: counts, csr (n, V); ratings s_k: (n,), from 0 to 1; |S_k|: the documents on the same side of 0.5 as document k.
    """
    side = ratings > 0.5
    weights = 1 / np.bincount(side, minlength=2)[side.astype(int)]
    return np.stack([X.T @ (weights * share) for share in (1 - ratings, ratings)])


def of_ratings(words: WordVectors, masses: np.ndarray) -> tuple[float, WordVectors]:
    """Return -sum_w (masses_0w log p(0 | w) + masses_1w log p(1 | w)) and its gradient; masses: two of (n_words,)."""
    u = words.R.astype(np.float64) @ words.psi + words.b_c
    value = -float(masses[0] @ log_expit(-u) + masses[1] @ log_expit(u))
    slope = masses.sum(axis=0) * expit(u) - masses[1]
    return value, WordVectors(
        np.outer(slope, words.psi), np.zeros(words.b.shape), slope @ words.R, slope.sum(keepdims=True)
    )


def _each(work: Callable[[Any], None], items: Sequence[Any]) -> None:
    """Call `work(item)` for every item, several in threads: asking how many there may be takes milliseconds."""
    in_threads(work, items) if len(items) > 1 else work(items[0])


def _squared(values: np.ndarray) -> float:
    return float(np.einsum("ij,ij->", values, values, dtype=np.float64))


@numba.njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def _to_residuals(indptr, indices, data, b, Z, values):  # type: ignore[no-untyped-def]
    """Z <- n softmax(Z + b) - counts, row by row, and values <- -sum of counts times log softmax(Z + b)."""
    n_words = Z.shape[1]
    for i in range(len(Z)):
        row, low, high = Z[i], indptr[i], indptr[i + 1]
        n_tokens = data[low:high].sum()
        largest = row[0] + b[0]
        for j in range(n_words):
            row[j] += b[j]
            largest = max(largest, row[j])
        value = 0.0
        for k in range(low, high):
            value -= data[k] * (row[indices[k]] - largest)
        total = Z.dtype.type(0)
        for j in range(n_words):
            row[j] = exponential(row[j] - largest)
            total += row[j]
        values[i] = value + n_tokens * np.log(np.float64(total))
        scale = n_tokens / total
        for j in range(n_words):
            row[j] *= scale
        for k in range(low, high):
            row[indices[k]] -= data[k]
