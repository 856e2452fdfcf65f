"""BM25 (Okapi): saturating term frequency, normalised by length, times inverse document frequency.

Source: S. Robertson and H. Zaragoza, "The probabilistic relevance framework: BM25 and beyond", Foundations and Trends
in Information Retrieval 3(4), 2009, equation (3.15); idf as in Lucene, ln(1 + (N - n + 0.5) / (n + 0.5)). Computed by
the library bm25s.
"""

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution

from textbench.evaluation.rankers import CollectionIndex, only_matching

NEEDS: tuple[str, ...] = ()
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "k1": FloatDistribution(0.4, 3.0),
    "b": FloatDistribution(0.0, 1.0),
}


def score(index: CollectionIndex, *, k1: float = 1.2, b: float = 0.75) -> np.ndarray:
    """BM25 of every document: sum over query words of idf(w) tf / (tf + k1 (1 - b + b |d| / mean length)).

    Returns float32 (n_queries, n_documents); a document without any query word is not retrieved. A word that is
    twice in the query counts twice.
    """
    import bm25s
    from scipy.sparse import csc_matrix

    counts = index.documents
    words = np.repeat(counts.indices, counts.data.astype(np.int64))
    ends = np.cumsum(index.lengths.astype(np.int64))[:-1]
    model = bm25s.BM25(k1=k1, b=b, method="lucene")
    weights = model.build_index_from_ids(
        range(counts.shape[1]), [document.tolist() for document in np.split(words, ends)], show_progress=False
    )
    table = csc_matrix(
        (weights["data"], weights["indices"], weights["indptr"]), shape=(counts.shape[0], counts.shape[1])
    )
    scores = (index.queries.astype(np.float32) @ table.T.tocsr()).toarray()
    return only_matching(scores, scores > 0)
