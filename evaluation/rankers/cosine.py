"""Cosine (vector space model): the angle between the query's and the document's features, of any representation.

With the representation `tfidf` this is the vector space model, with `lsi` or `lsa-pca` latent semantic indexing.

Source: G. Salton, A. Wong and C. Yang, "A vector space model for automatic indexing", Communications of the ACM
18(11), 1975; M. Berry, S. Dumais and G. O'Brien, "Using linear algebra for intelligent information retrieval", SIAM
Review 37(4), 1995.
"""

from typing import TYPE_CHECKING

import numpy as np
from optuna.distributions import BaseDistribution

from textbench.evaluation.rankers import CollectionIndex, norms, only_matching

if TYPE_CHECKING:
    from textbench.evaluation.rankers import Matrix

NEEDS = ("features",)
SEARCH_SPACE: dict[str, BaseDistribution] = {}


def score(index: CollectionIndex) -> np.ndarray:
    """Cosine of query and document features: float32 (n_queries, n_documents).

    A query whose features are zero retrieves nothing. Where no feature is negative, a document of cosine 0 shares
    nothing with the query and is not retrieved.
    """
    assert index.document_features is not None and index.query_features is not None
    scores = index.cosines
    if _is_never_negative(index.document_features) and _is_never_negative(index.query_features):
        return only_matching(scores, scores > 0)
    return only_matching(scores, np.broadcast_to(norms(index.query_features)[:, None] > 0, scores.shape))


def _is_never_negative(X: "Matrix") -> bool:
    values = X if isinstance(X, np.ndarray) else X.data
    return bool(values.size == 0 or values.min() >= 0)
