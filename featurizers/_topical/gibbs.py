"""Gibbs sampling of tokens' topics where a topic mixes a table of terms that stays and counts that follow the sampling.

Source: D. Q. Nguyen, R. Billingsley, L. Du and M. Johnson, "Improving topic models with latent feature word
representations", TACL 3 (2015), section 3.4; without the table it is collapsed Gibbs sampling of latent Dirichlet
allocation, T. Griffiths and M. Steyvers, PNAS 101 (2004), equation (5).

`tokens` and `topics` are int32 (n_tokens,); `table` is of p(term | topic), (n_terms, n_topics).
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from textbench.featurizers._topical.skip_gram import KnownTokens

BLOCK = 16  # topics whose weights are added up before it is known which of them is drawn


@dataclass
class Assignments:
    """Tokens of documents with their topics, which sweeps change in place. One thread: a state gives the same bits.

    `tokens` int32 (n_tokens,), of terms below `n_terms`; `offsets` int64 (n_documents + 1,), where documents begin;
    `topics` int32 (n_tokens,), and `latent` bool (n_tokens,), whether the token is of the table, not of the counts;
    `counts` float32 (n_terms, n_topics), how often each term that is not has each topic; `state` uint64 (1,), where the
    stream of random numbers has got to.
    """

    tokens: np.ndarray
    offsets: np.ndarray
    topics: np.ndarray
    latent: np.ndarray
    counts: np.ndarray
    state: np.ndarray

    @classmethod
    def of(
        cls, read: KnownTokens, topics: np.ndarray, n_topics: int, share: float, seed: int | None
    ) -> "Assignments":
        """Return topics as they are, to begin with; a token is of the table by chance, `share` of them."""
        rng = np.random.default_rng(seed)
        latent = rng.random(len(topics)) < share
        state = rng.integers(2**63, size=1).astype(np.uint64)
        n_terms = len(read.counts)
        own = cls(read.tokens, read.offsets, topics.astype(np.int32), latent, np.zeros((0, 0)), state)
        own.counts = own.of_terms(n_terms, n_topics, latent=False).astype(np.float32)
        return own

    def of_terms(self, n_terms: int, n_topics: int, *, latent: bool | None = None) -> np.ndarray:
        """Return how often each term has each topic, float64 (n_terms, n_topics), of all tokens or of one kind."""
        pairs = self.tokens.astype(np.int64) * n_topics + self.topics
        if latent is not None:
            pairs = pairs[self.latent == latent]
        found = np.bincount(pairs, minlength=n_terms * n_topics)
        return found.reshape(n_terms, n_topics).astype(np.float64)

    def sweep(self, table: np.ndarray, share: float, alpha: float, beta: float, n: int = 1) -> None:
        """Draw every token's topic anew, n times, at `share` of the table and the rest of the counts.

        p(topic k, from the table) ~ (n_dk + alpha) share B_wk, and from the counts (n_dk + alpha) (1 - share) (C_wk +
        beta) / (C_k + n_terms beta), the token itself left out.
        """
        rows = np.ascontiguousarray(table, dtype=np.float32)
        for _ in range(n):
            totals = self.counts.sum(axis=0, dtype=np.float64)
            _sweep(
                (self.tokens, self.offsets, self.topics, self.latent),
                self.counts,
                totals,
                rows,
                (float(share), float(alpha), float(beta)),
                self.state,
            )


@njit(cache=True)
def _uniform(state):  # type: ignore[no-untyped-def]
    """The next of SplitMix64's numbers, from 0 to 1."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    mixed = state[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)) / 2.0**53


@njit(cache=True, fastmath=True)
def _sweep(work, counts, totals, table, settings, state):  # type: ignore[no-untyped-def]
    tokens, offsets, topics, latent = work
    share, alpha, beta = np.float32(settings[0]), np.float32(settings[1]), np.float32(settings[2])
    n_terms, n_topics = counts.shape
    rest, whole = np.float32(1.0) - share, n_terms * settings[2]
    inverse, own = np.empty(n_topics, np.float32), np.empty(n_topics, np.float32)
    n_blocks = (n_topics + BLOCK - 1) // BLOCK
    weights, sums = np.zeros(n_blocks * BLOCK, np.float32), np.empty(n_blocks, np.float32)
    for k in range(n_topics):
        inverse[k] = rest / (totals[k] + whole)
    for d in range(len(offsets) - 1):
        own[:] = alpha
        for i in range(offsets[d], offsets[d + 1]):
            own[topics[i]] += np.float32(1.0)
        for i in range(offsets[d], offsets[d + 1]):
            word, old = tokens[i], topics[i]
            own[old] -= np.float32(1.0)
            if not latent[i]:
                counts[word, old] -= np.float32(1.0)
                totals[old] -= 1.0
                inverse[old] = rest / (totals[old] + whole)
            row, fixed = counts[word], table[word]
            for k in range(n_topics):
                weights[k] = own[k] * (share * fixed[k] + (row[k] + beta) * inverse[k])
            total = 0.0
            for block in range(n_blocks):
                added = np.float32(0.0)
                for k in range(block * BLOCK, (block + 1) * BLOCK):
                    added += weights[k]
                sums[block] = added
                total += added
            left = _uniform(state) * total
            block = 0
            while block < n_blocks - 1 and left >= sums[block]:
                left -= sums[block]
                block += 1
            new, last = block * BLOCK, min((block + 1) * BLOCK, n_topics) - 1
            while new < last and left >= weights[new]:
                left -= weights[new]
                new += 1
            if share == 0.0:
                is_latent = False
            elif rest == 0.0:
                is_latent = True
            else:
                of_table, of_counts = share * fixed[new], (row[new] + beta) * inverse[new]
                is_latent = _uniform(state) * (of_table + of_counts) < of_table
            topics[i], latent[i] = new, is_latent
            own[new] += np.float32(1.0)
            if not is_latent:
                counts[word, new] += np.float32(1.0)
                totals[new] += 1.0
                inverse[new] = rest / (totals[new] + whole)
