"""Small documents of known topics with word vectors of them, which the tests of topical methods share."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from textbench.featurizers._topical.token_topics import TokenTopics

N_TERMS, N_DIMENSIONS, N_TOPICS, N_DOCUMENTS = 24, 5, 3, 40
WITHOUT = (4, 17)  # terms without a vector

_rng = np.random.default_rng(7)
TERM_TOPICS = np.arange(N_TERMS) % N_TOPICS
DOCUMENTS = [
    np.where(
        _rng.random(size := int(_rng.integers(6, 25))) < 0.8,
        _rng.integers(N_TERMS // N_TOPICS, size=size) * N_TOPICS + i % N_TOPICS,
        _rng.integers(N_TERMS, size=size),
    ).astype(np.int32)
    for i in range(N_DOCUMENTS)
]
TOKENS = np.concatenate(DOCUMENTS)
TOPICS = TokenTopics(TERM_TOPICS[TOKENS].astype(np.int32), N_TOPICS, 0.3, 0.01)
ONE_TOPIC = TokenTopics(np.zeros(len(TOKENS), dtype=np.int32), 1, 0.5, 0.01)
COUNTS = sp.csr_matrix(np.array([np.bincount(d, minlength=N_TERMS) for d in DOCUMENTS]))


def _unit(rows: np.ndarray) -> np.ndarray:
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    rows[list(WITHOUT)] = 0
    return rows.astype(np.float32)


CENTRES = _rng.normal(size=(N_TOPICS, N_DIMENSIONS))
VECTORS = _unit(CENTRES[TERM_TOPICS] + 0.5 * _rng.normal(size=(N_TERMS, N_DIMENSIONS)))
OUTPUTS = (0.7 * VECTORS + 0.3 * _unit(_rng.normal(size=VECTORS.shape))).astype(np.float32)
NORMS = np.where(VECTORS.any(axis=1), _rng.uniform(1, 3, N_TERMS), 0).astype(np.float32)
KNOWN = np.flatnonzero(NORMS)
TRAINED = {"word_vectors": VECTORS, "output_vectors": OUTPUTS, "vector_norms": NORMS}
NEEDS: dict[str, Any] = {**TRAINED, "token_topics": TOPICS}


def slope_by_differences(function: Any, at: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The gradient of a function of an array by central differences."""
    found = np.zeros_like(at)
    for place in np.ndindex(*at.shape):
        up, down = at.copy(), at.copy()
        up[place] += step
        down[place] -= step
        found[place] = (function(up) - function(down)) / (2 * step)
    return found
