"""Normal distributions with unknown mean and covariance: posterior, predictive density, and topics that are such.

Source: K. Murphy, "Conjugate Bayesian analysis of the Gaussian distribution", 2007, section 9; W. Smith and R. Hocking,
"Algorithm AS 53: Wishart variate generator", Applied Statistics 21 (1972).

`vectors` are of terms, (n_terms, n_dimensions); `n` is how often each occurs, (n_terms,); `counts` are csr
(n_documents, n_terms).
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from scipy.special import gammaln

from textbench.featurizers._topical.gibbs import Assignments
from textbench.featurizers._topical.inference import table_of

SMALLEST_VARIANCE = 1e-6  # of the prior, in each direction


@dataclass(frozen=True)
class Prior:
    """A normal inverse Wishart distribution: `mean` (n_dimensions,) with the weight of `kappa` vectors, `scatter`
    Psi (n_dimensions, n_dimensions) with `nu` degrees of freedom."""

    mean: np.ndarray
    kappa: float
    scatter: np.ndarray
    nu: float

    @classmethod
    def of(cls, vectors: np.ndarray, n: np.ndarray, kappa: float, weight: float) -> "Prior":
        """Return the prior whose mean and mean covariance are those of all tokens.

        weight: how many tokens the covariance weighs as much as, at least 1, the least that has a mean.
        """
        size, total = vectors.shape[1], max(n.sum(), 1e-12)
        mean = n @ vectors / total
        centred = vectors - mean
        covariance = (centred * n[:, None]).T @ centred / total
        scatter = weight * (covariance + SMALLEST_VARIANCE * np.eye(size))
        # The mean of the covariance is the scatter over nu - size - 1.
        return cls(mean, kappa, scatter, size + 1.0 + weight)

    def log_predictive(self, vectors: np.ndarray) -> np.ndarray:
        """Return the log density of the next vector, Student's t, float64 (n_terms,)."""
        size, root = len(self.mean), np.linalg.cholesky(self.scatter)
        apart = solve_triangular(root, (vectors - self.mean).T, lower=True)
        square = (apart**2).sum(axis=0) * self.kappa / (self.kappa + 1)
        return (
            gammaln((self.nu + 1) / 2)
            - gammaln((self.nu + 1 - size) / 2)
            - size / 2 * np.log(np.pi * (self.kappa + 1) / self.kappa)
            - np.log(np.diag(root)).sum()
            - (self.nu + 1) / 2 * np.log1p(square)
        )

    def log_density_of_a_draw(self, vectors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return log N(v; mu, Sigma) of vectors with mu and Sigma drawn from this distribution, float64 (n_terms,)."""
        size, root = len(self.mean), np.linalg.cholesky(self.scatter)
        # Bartlett: the precision is (L^-T A)(L^-T A)' with A lower triangular, L L' the scatter.
        a = np.tril(rng.normal(size=(size, size)), -1)
        a[np.diag_indices(size)] = np.sqrt(rng.chisquare(self.nu - np.arange(size)))
        noise = rng.normal(size=size) / np.sqrt(self.kappa)
        mean = self.mean + root @ solve_triangular(a.T, noise, lower=False)
        # Its product with its transpose is the precision.
        half = solve_triangular(root, a, lower=True, trans="T")
        apart = vectors @ half - mean @ half
        log_root = np.log(np.diag(a)).sum() - np.log(np.diag(root)).sum()
        return log_root - size / 2 * np.log(2 * np.pi) - 0.5 * np.einsum("ij,ij->i", apart, apart)


def posterior(prior: Prior, vectors: np.ndarray, n: np.ndarray) -> Prior:
    """Return the prior after vectors that occur n times: the same whatever their order."""
    total, occurring = n.sum(), n > 0
    if not total:
        return prior
    vectors, n = vectors[occurring], n[occurring]
    mean = n @ vectors / total
    weighted = vectors * np.sqrt(n)[:, None]
    # Of vectors about their mean: the sum of squares less that of the mean.
    scatter = weighted.T @ weighted - total * np.outer(mean, mean)
    apart, kappa = mean - prior.mean, prior.kappa + total
    scatter += prior.scatter + prior.kappa * total / kappa * np.outer(apart, apart)
    return Prior((prior.kappa * prior.mean + total * mean) / kappa, kappa, scatter, prior.nu + total)


def sampled_topics(
    counts: sp.csr_matrix,
    vectors: np.ndarray,
    prior: Prior,
    start: np.ndarray,
    n_topics: int,
    alpha: float,
    n_sweeps: int,
    seed: int | None,
) -> np.ndarray:
    """Return how often each term has each topic after sweeps, float64 (n_terms, n_topics).

    start: each term's topic before the first sweep, ints (n_terms,) below `n_topics`.
    """
    rng = np.random.default_rng(seed)
    tokens = np.repeat(counts.indices, counts.data.astype(np.int64)).astype(np.int32)
    ends = np.concatenate([[0], np.cumsum(counts.data.astype(np.int64))])
    topics = start[tokens].astype(np.int32)
    own = Assignments(
        tokens,
        ends[counts.indptr],
        topics,
        np.ones(len(tokens), dtype=bool),
        np.zeros((counts.shape[1], n_topics), dtype=np.float32),
        rng.integers(2**63, size=1).astype(np.uint64),
    )
    n = own.of_terms(counts.shape[1], n_topics)
    for _ in range(n_sweeps):
        draws = [posterior(prior, vectors, each).log_density_of_a_draw(vectors, rng) for each in n.T]
        own.sweep(table_of(np.column_stack(draws)), 1.0, alpha, 0.01)
        n = own.of_terms(counts.shape[1], n_topics)
    return n
