"""Topics as regions of the space of word vectors, learned round by round with the documents' proportions.

Source: S. Li, T.-S. Chua, J. Zhu and C. Miao, "Generative topic embedding", ACL 2016, section 5 (variational EM, with
exact steps for its damped gradient); X. Li, J. Chi, C. Li, J. Ouyang and B. Fu, "Integrating topic modeling with word
embeddings by mixtures of vMFs", COLING 2016 (mixtures of von Mises-Fisher distributions).

`counts` are csr (n_documents, n_terms); `vectors` unit rows (n_terms, n_dimensions); `log_base` the log of how frequent
each term is, (n_terms,).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import psi

from textbench.featurizers._topical.inference import expected_counts, infer, table_of
from textbench.featurizers._topical.topic_vectors import fit_softmax, log_softmax
from textbench.featurizers._topical.von_mises_fisher import concentration, log_normaliser

STEPS_A_ROUND = 5  # of proportions, and of topic vectors
N_K_MEANS = 10
START_KAPPA = 20.0


def link_of(topics: np.ndarray, vectors: np.ndarray, log_base: np.ndarray) -> np.ndarray:
    """Return log P(w | k) - log P(w) = v_w . t_k + r_k, float64 (n_terms, n_topics); topics: (n_topics, n_dims)."""
    return (log_softmax(topics, vectors, log_base) - log_base).T


def topic_vec(
    counts: sp.csr_matrix,
    vectors: np.ndarray,
    log_base: np.ndarray,
    start: np.ndarray,
    *,
    alpha: float,
    radius: float,
    n_rounds: int,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield topic vectors t (n_topics, n_dimensions) and proportions (n_documents, n_topics) after each round.

    Proportions are those that the vectors were fitted to. The first topic is null: its vector stays zero. The others,
    from `start` on, stay within `radius`. No round lowers the variational bound.
    """
    topics = np.array(start, dtype=np.float64)
    topics[0] = 0
    proportions, by_term = None, counts.tocsc()
    totals = np.asarray(counts.sum(axis=1))
    for _ in range(n_rounds):
        table = table_of(link_of(topics, vectors, log_base))
        found = infer(counts, table, alpha, n_steps=STEPS_A_ROUND, is_variational=True, start=proportions)
        proportions = found.proportions
        whole = totals + alpha * len(topics)
        mixing = np.exp(psi(np.maximum(proportions, 1e-30) * whole) - np.log(whole))
        n = expected_counts(by_term, table, mixing).T
        topics[1:] = fit_softmax(
            n[1:], vectors, topics[1:], penalty=0.0, log_base=log_base, radius=radius, n_steps=STEPS_A_ROUND
        )
        yield topics.copy(), proportions


@dataclass(frozen=True)
class Spheres:
    """Mixtures of von Mises-Fisher distributions, one mixture a topic over bases that all share.

    `means` mu, unit rows (n_bases, n_dimensions); `kappas` (n_bases,); `weights` omega (n_topics, n_bases), rows that
    sum to 1. A topic has no other bases than those of positive weight.
    """

    means: np.ndarray
    kappas: np.ndarray
    weights: np.ndarray

    def log_densities(self, vectors: np.ndarray) -> np.ndarray:
        """Return log of the bases' densities, float64 (n_terms, n_bases)."""
        scores = vectors.astype(np.float64) @ (self.means * self.kappas[:, None]).T
        return scores + log_normaliser(self.kappas, vectors.shape[1])

    def densities(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the bases' densities, (n_terms, n_bases), and the topics', (n_terms, n_topics), both over exp(scale).

        The scale, (n_terms,), is the log of a term's largest.
        """
        logs = self.log_densities(vectors)
        scale = logs.max(axis=1)
        bases = np.exp(logs - scale[:, None])
        return bases, bases @ self.weights.T, scale


def spheres_at_start(
    vectors: np.ndarray, n: np.ndarray, n_topics: int, n_bases: int, *, overlapping: bool, seed: int | None
) -> Spheres:
    """Return bases around the means of spherical k-means over terms that occur n times, (n_terms,).

    Each topic has `n_bases` of its own; `overlapping` it has a tenth of all others' too.
    """
    rng, size = np.random.default_rng(seed), n_topics * n_bases
    vectors = vectors.astype(np.float64)
    means = vectors[
        rng.choice(len(vectors), size=size, replace=bool(size > np.count_nonzero(n)), p=n / n.sum())
    ]
    for _ in range(N_K_MEANS):
        nearest = (vectors @ means.T).argmax(axis=1)
        groups = sp.csr_matrix((n, (nearest, np.arange(len(n)))), shape=(size, len(n)))
        sums = groups @ vectors
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        means = np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1), means)
    weights = np.kron(np.eye(n_topics), np.full(n_bases, 1 / n_bases))
    if overlapping:
        weights = 0.9 * weights + 0.1 / size
    return Spheres(means, np.full(size, START_KAPPA), weights)


def mixtures(
    counts: sp.csr_matrix,
    vectors: np.ndarray,
    start: Spheres,
    *,
    alpha: float,
    beta: float,
    highest: float,
    n_rounds: int,
) -> Iterator[tuple[Spheres, np.ndarray]]:
    """Yield the mixtures, and the proportions (n_documents, n_topics) that they were fitted to, after each round.

    `highest` is the largest kappa. Without such a limit no round lowers sum_dw n_dw log sum_k theta_dk p(w | k) + alpha
    sum_dk log theta_dk + beta sum_kc log omega_kc.
    """
    spheres, proportions, by_term = start, None, counts.tocsc()
    for _ in range(n_rounds):
        bases, topics, _ = spheres.densities(vectors)
        found = infer(counts, topics.astype(np.float32), alpha, n_steps=STEPS_A_ROUND, start=proportions)
        proportions = found.proportions
        n = expected_counts(by_term, topics, proportions)
        ratio = np.divide(n, topics, out=np.zeros_like(n), where=topics > 0)
        weights = spheres.weights * (ratio.T @ bases) + beta * (spheres.weights > 0)
        weights /= weights.sum(axis=1, keepdims=True)
        shares = bases * (ratio @ spheres.weights)
        spheres = _fitted(spheres, vectors, shares, weights, highest)
        yield spheres, proportions


def _fitted(
    spheres: Spheres, vectors: np.ndarray, shares: np.ndarray, weights: np.ndarray, highest: float
) -> Spheres:
    """Return bases fitted to the weight that each has of each term, (n_terms, n_bases); one of no weight stays."""
    masses = shares.sum(axis=0)
    sums = shares.T @ vectors.astype(np.float64)
    lengths = np.linalg.norm(sums, axis=1)
    has_any = (masses > 1e-12) & (lengths > 0)
    safe = np.where(has_any, lengths, 1)
    means = np.where(has_any[:, None], sums / safe[:, None], spheres.means)
    r = np.where(has_any, lengths / np.where(has_any, masses, 1), 0)
    kappas = np.where(has_any, concentration(r, vectors.shape[1], highest), spheres.kappas)
    return Spheres(means, kappas, weights)
