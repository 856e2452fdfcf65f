"""Model-based feedback (mixture model): the query's model mixed with one estimated from the documents ranked first.

Source: C. Zhai and J. Lafferty, "Model-based feedback in the language modeling approach to information retrieval",
CIKM 2001, sections 3 and 4: the generative mixture, estimated by EM.
"""

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from scipy.sparse import csr_matrix

from textbench.evaluation.rankers import CollectionIndex, lm, scale_rows

NEEDS: tuple[str, ...] = ()
FEEDBACK: dict[str, BaseDistribution] = {
    "n_feedback": IntDistribution(1, 50, log=True),
    "alpha": FloatDistribution(0.0, 1.0),
    "noise": FloatDistribution(0.0, 0.95),
}
SEARCH_SPACE: dict[str, BaseDistribution] = {"mu": lm.MU, **FEEDBACK}
N_ITERATIONS = 30
# The paper's: the updated model is cut at this probability.
SMALLEST = 0.001


def score(
    index: CollectionIndex,
    *,
    mu: float = 1000.0,
    n_feedback: int = 10,
    alpha: float = 0.5,
    noise: float = 0.5,
) -> np.ndarray:
    """Cross-entropy of the updated query model and the documents' models, sum over words of P'(w|q) log P(w|d).

    `n_feedback`: how many documents that `lm` ranks first are read; `alpha`: the weight of their model in the query's,
    0 for none; `noise`: the share of their words that the collection's model explains, the paper's lambda. Returns
    float32 (n_queries, n_documents); a document without any word of the updated model is not retrieved.
    """
    model = updated_model(index, lm.score(index, mu=mu), n_feedback, alpha, noise)
    return lm.log_likelihood(index, model, np.asarray(model.sum(axis=1)).ravel(), mu)


def updated_model(
    index: CollectionIndex, first: np.ndarray, n_feedback: int, alpha: float, noise: float
) -> csr_matrix:
    """Return (1 - alpha) P(w|q) + alpha P(w|F), cut below `SMALLEST`: csr (n_queries, n_terms).

    first: float (n_queries, n_documents), the scores that choose the feedback documents F.
    """
    feedback = mixture_model(top_documents(first, n_feedback) @ index.documents, index.background, noise)
    # A query that retrieved nothing has no feedback and keeps its own model.
    has_feedback = np.diff(feedback.indptr) > 0
    own_share = np.where(has_feedback, 1 - alpha, 1.0)
    model = csr_matrix(scale_rows(index.query_model, own_share) + alpha * feedback)
    model.data[model.data < SMALLEST] = 0
    model.eliminate_zeros()
    return model


def top_documents(scores: np.ndarray, n: int) -> csr_matrix:
    """Return ones at each row's n highest scores, of equals the first, -inf left out: csr (n_queries, n_documents)."""
    n = min(n, scores.shape[1])
    threshold = np.partition(scores, -n, axis=1)[:, -n:].min(axis=1, keepdims=True)
    above = scores > threshold
    # What is left of the n places goes to the first documents that score exactly the threshold.
    tied = (scores == threshold) & np.isfinite(scores)
    places = n - above.sum(axis=1, keepdims=True)
    chosen = above
    rows = np.flatnonzero(tied.any(axis=1))
    chosen[rows] |= tied[rows] & (np.cumsum(tied[rows], axis=1) <= places[rows])
    return csr_matrix(chosen, dtype=np.float64)


def mixture_model(counts: csr_matrix, background: np.ndarray, noise: float) -> csr_matrix:
    """Maximum-likelihood P(w|F) of words drawn from (1 - noise) P(w|F) + noise p(w|C), by EM from the counts' shares.

    counts: csr (n_queries, n_terms), words of the feedback documents. Returns csr, rows that sum to one, or rows
    of zeros where there are no words. All queries at once. background: p(w|C), (n_terms,).
    """
    counts = csr_matrix(counts, dtype=np.float64)
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    elsewhere = noise * background[counts.indices]
    weighted = counts.data
    for _ in range(N_ITERATIONS + 1):
        totals = np.bincount(rows, weighted, minlength=counts.shape[0])
        probability = weighted / np.where(totals > 0, totals, 1.0)[rows]
        topical = (1 - noise) * probability
        mixed = topical + elsewhere
        weighted = counts.data * np.divide(topical, mixed, out=np.zeros_like(mixed), where=mixed > 0)
    return csr_matrix((probability, counts.indices, counts.indptr), shape=counts.shape)
