"""Language model with paragraph vectors (lm+pv): P(w|d) mixed with a softmax of the document's vector over the words.

Source: Q. Ai, L. Yang, J. Guo and W. B. Croft, "Improving language estimation with the paragraph vector model for
ad-hoc retrieval", SIGIR 2016; as quoted in Mekala et al., SCDV, EMNLP 2017, section 4.5.
"""

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution

from textbench.evaluation.rankers import CollectionIndex, lm

NEEDS = ("features", "term_vectors")
SEARCH_SPACE: dict[str, BaseDistribution] = {"mu": lm.MU, "weight": FloatDistribution(0.01, 0.99)}
BLOCK_BYTES = 2**26  # of products of documents and words at a time


def score(index: CollectionIndex, *, mu: float = 1000.0, weight: float = 0.5) -> np.ndarray:
    """Query likelihood of (1 - lambda) P_LM(w|d) + lambda P_PV(w|d): float32 (n_queries, n_documents), logarithms.

    P_PV(w|d) = exp(w.d) / sum over all words of exp(w_i.d), with the words' vectors in `term_vectors` and the
    documents' in `document_features`; a word whose vector is zero has none, and probability 0 there. P_LM is the
    Dirichlet model of `lm`; `weight` is lambda. All documents are retrieved by a query that has a known word.
    """
    words = np.unique(index.queries.indices)
    counts = index.queries[:, words].toarray().astype(np.float64)
    scores = np.empty((index.queries.shape[0], index.documents.shape[0]), dtype=np.float32)
    step = max(1, BLOCK_BYTES // (8 * index.documents.shape[1]))
    for start in range(0, index.documents.shape[0], step):
        block = slice(start, start + step)
        seen = index.documents[block][:, words].toarray()
        smoothed = (seen + mu * index.background[words]) / (index.lengths[block] + mu)[:, None]
        mixed = (1 - weight) * smoothed + weight * softmax_model(index, words, block)
        scores[:, block] = counts @ np.log(mixed).T
    scores[index.query_lengths == 0] = -np.inf
    return scores


def softmax_model(index: CollectionIndex, words: np.ndarray, block: slice) -> np.ndarray:
    """P_PV(w|d) of some words in some documents: float32 (n_documents, n_words); the sum is over all words."""
    assert index.document_features is not None and index.term_vectors is not None
    documents = index.document_features[block]
    dense = documents if isinstance(documents, np.ndarray) else documents.toarray()
    products = (dense @ index.term_vectors.T).astype(np.float32, copy=False)
    products[:, ~index.term_vectors.any(axis=1)] = -np.inf
    products -= products.max(axis=1, keepdims=True)  # or exp would overflow
    np.exp(products, out=products)
    return products[:, words] / products.sum(axis=1, keepdims=True)
