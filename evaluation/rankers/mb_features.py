"""Model-based feedback with document vectors (mb+R): feedback from what lm+R ranks first, ranked by lm+R's equation.

Source: Mekala et al., SCDV, EMNLP 2017, section 4.5, with C. Zhai and J. Lafferty, "Model-based feedback in the
language modeling approach to information retrieval", CIKM 2001. The paper says only that feedback is applied to what
was first retrieved; here the updated query model takes the place of P(w) in its equation.
"""

import numpy as np
from optuna.distributions import BaseDistribution

from textbench.evaluation.rankers import CollectionIndex, lm_features, mb

NEEDS = ("features",)
SEARCH_SPACE: dict[str, BaseDistribution] = {**lm_features.SEARCH_SPACE, **mb.FEEDBACK}


def score(
    index: CollectionIndex,
    *,
    mu: float = 1000.0,
    weight: float = 0.5,
    n_feedback: int = 10,
    alpha: float = 0.5,
    noise: float = 0.5,
) -> np.ndarray:
    """(1 - lambda) * sum over words of P'(w) P(w|d) + lambda * cosine(q, d): float32 (n_queries, n_documents).

    P' is the query's model updated from the `n_feedback` documents that lm+R ranks first (`mb`: `alpha`, `noise`);
    `mu` and `weight` as in lm+R.
    """
    first = lm_features.score(index, mu=mu, weight=weight)
    model = mb.updated_model(index, first, n_feedback, alpha, noise)
    return lm_features.mixed(index, model, mu, weight)
