"""What methods on tokens, their topics and trained word vectors do alike in `fit`.

`read` are the documents of known terms with topics, `trained` these terms' vectors, `counts` csr (n_documents, n_known)
how often each occurs.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from textbench.featurizers._kernels import one_blas_thread
from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers._topical.documents import counted, known_of
from textbench.featurizers._topical.embeddings import TopicReading, Trained, read_topics
from textbench.featurizers._topical.token_topics import TokenTopics
from textbench.featurizers._word_vectors import n_empty


class TopicalMethod(LearnedArrays, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A method that learns from tokens, their topics and trained word vectors, in `_learn`.

    `accepts` says what its parameters take. Learned here: `terms_` int32 (n_known,), those with a vector; `components_`
    p(term | topic), float32 (n_topics, n_terms); `alpha_`, the prior of a document's topics; `n_empty_documents_`.
    """

    accepts: ClassVar[Mapping[str, Any]]

    @one_blas_thread()
    def fit(
        self,
        X: Sequence[np.ndarray],
        y: Any = None,
        *,
        word_vectors: np.ndarray,
        output_vectors: np.ndarray,
        vector_norms: np.ndarray,
        token_topics: TokenTopics,
    ) -> Self:
        """Learn from X, int32 token ids a document, and the topics of its tokens.

        word_vectors, output_vectors: float32 (n_terms, n_dimensions); vector_norms: (n_terms,).
        """
        check_parameters(self, self.accepts)
        self.terms_ = known_of(X, word_vectors)
        read = read_topics(X, self.terms_, token_topics, len(word_vectors))
        trained = Trained.of(word_vectors, output_vectors, vector_norms, self.terms_)
        counts = counted(X, self.terms_)
        self.alpha_, self.n_empty_documents_ = float(token_topics.alpha), n_empty(counts)
        self.components_ = np.zeros((read.n_topics, len(word_vectors)), dtype=np.float32)
        self.components_[:, self.terms_] = self._learn(read, trained, counts, float(token_topics.eta)).T
        return self

    @abstractmethod
    def _learn(self, read: TopicReading, trained: Trained, counts: sp.csr_matrix, eta: float) -> np.ndarray:
        """Learn, and return p(term | topic), (n_known, n_topics); eta: the prior of a topic's terms."""

    @property
    def _table(self) -> np.ndarray:
        return self.components_[:, self.terms_].T
