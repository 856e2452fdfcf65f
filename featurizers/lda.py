"""Latent Dirichlet allocation (LDA, topic model): a document is the proportions of its topics.

Source: D. Blei, A. Ng and M. Jordan, "Latent Dirichlet allocation", JMLR 3 (2003); topics by collapsed Gibbs
sampling, T. Griffiths and M. Steyvers, "Finding scientific topics", PNAS 101 (2004), equation (5), as in the
library tomotopy; proportions by maximum a posteriori, A. Asuncion, M. Welling, P. Smyth and Y. W. Teh, "On
smoothing and inference for topic models", UAI 2009, MAP with the prior offset by one.
"""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from textbench.featurizers._learned import LearnedArrays
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers.counts import validated_counts

INPUT = "counts"
ACCEPTS = {
    "n_topics": "[1, inf)",
    "alpha": "(0, inf)",
    "eta": "(0, inf)",
    "n_iter": "[1, inf)",
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "n_topics": IntDistribution(20, 400, log=True),
    "alpha": FloatDistribution(1e-2, 2.0, log=True),
    "eta": FloatDistribution(1e-3, 1.0, log=True),
    "n_iter": IntDistribution(50, 400, log=True),
}
# Proportions are iterated until none of a document's steps adds up to more than this.
TOLERANCE = 1e-4
MAX_FOLD_IN = 200


class LatentDirichletAllocation(
    LearnedArrays, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Latent Dirichlet allocation: theta, the proportions of the topics in a document.

    `n_topics` topics are sampled in `n_iter` sweeps of collapsed Gibbs sampling, one thread, with symmetric
    priors: `alpha` on a document's topics, `eta` on a topic's terms. phi is read from the last state. A
    document's theta maximises sum_w n_w log(sum_k theta_k phi_kw) + alpha sum_k log theta_k, a concave problem
    (the posterior mode in the softmax parametrisation), for training and new documents alike: sampled
    proportions would make the features of a document depend on chance. `random_state`: seed of the sampling.

    X: sparse csr, (n_documents, n_terms), counts. Features: dense float32, (n_documents, n_topics), rows that
    sum to 1; a document without a term of the training documents is a row of zeros. `components_`: phi,
    float32, (n_topics, n_terms), rows that sum to 1, zero for terms of no training document. Raises ValueError
    on parameters that are not positive, counts that are negative, fractional or not finite, another number of
    terms than in `fit`.

    Source: Griffiths and Steyvers (2004), equation (5); Asuncion et al. (2009), MAP estimation.
    """

    learned = ("components_", "n_features_in_")

    def __init__(
        self,
        *,
        n_topics: int = 100,
        alpha: float = 0.5,
        eta: float = 0.01,
        n_iter: int = 200,
        random_state: int | None = None,
    ) -> None:
        self.n_topics = n_topics
        self.alpha = alpha
        self.eta = eta
        self.n_iter = n_iter
        self.random_state = random_state

    def fit(self, X: sp.csr_matrix, y: Any = None) -> Self:
        """Sample the topics of X, csr (n_documents, n_terms). Raises ValueError for counts that are not whole."""
        check_parameters(self, ACCEPTS)
        counts = validated_counts(self, X, reset=True)
        if np.any(counts.data != np.rint(counts.data)):
            odd = counts.data[counts.data != np.rint(counts.data)][0]
            raise ValueError(f"term counts must be whole numbers: got {odd:g}, accepted are 0, 1, 2, ...")
        self.components_ = self._sample(counts) if counts.nnz else np.zeros((self.n_topics, counts.shape[1]))
        self.components_ = self.components_.astype(np.float32)
        return self

    def _sample(self, counts: sp.csr_matrix) -> np.ndarray:
        """Return phi, float64 (n_topics, n_terms), by tomotopy."""
        from tomotopy import LDAModel

        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        model = LDAModel(k=int(self.n_topics), alpha=float(self.alpha), eta=float(self.eta), seed=seed)
        model.optim_interval = 0  # the prior stays as given
        words = np.array([str(term) for term in range(counts.shape[1])], dtype=object)
        for document in range(counts.shape[0]):
            row = slice(counts.indptr[document], counts.indptr[document + 1])
            tokens = np.repeat(words[counts.indices[row]], counts.data[row].astype(int))
            if len(tokens):
                model.add_doc(tokens.tolist())
        # The result depends on the number of workers, so it is one wherever this runs.
        model.train(int(self.n_iter), workers=1)
        phi = np.zeros((self.n_topics, counts.shape[1]))
        terms = np.array([int(word) for word in model.used_vocabs])
        for topic in range(self.n_topics):
            phi[topic, terms] = model.get_topic_word_dist(topic)
        return phi

    def transform(self, X: sp.csr_matrix) -> np.ndarray:
        """Return the proportions: dense float32, (n_documents, n_topics)."""
        counts = validated_counts(self, X, reset=False)
        phi = np.ascontiguousarray(self.components_.T)
        theta = np.zeros((counts.shape[0], phi.shape[1]), dtype=np.float32)
        for document in range(counts.shape[0]):
            row = slice(counts.indptr[document], counts.indptr[document + 1])
            known = phi[counts.indices[row]].astype(np.float64)
            in_training = known.any(axis=1)
            if in_training.any():
                theta[document] = proportions(known[in_training], counts.data[row][in_training], self.alpha)
        return theta

    @property
    def _n_features_out(self) -> int:  # read by get_feature_names_out
        return self.components_.shape[0]


def proportions(phi: np.ndarray, n: np.ndarray, alpha: float) -> np.ndarray:
    """Return the topic proportions of one document, float64 (n_topics,), by the EM updates of Asuncion et al.

    phi: (n_distinct_terms, n_topics), each row with a positive entry; n: their counts, (n_distinct_terms,).
    theta_k <- (alpha + sum_w n_w theta_k phi_wk / sum_j theta_j phi_wj) / (n_topics alpha + sum_w n_w).
    """
    theta = np.full(phi.shape[1], 1 / phi.shape[1])
    total = phi.shape[1] * alpha + n.sum()
    for _ in range(MAX_FOLD_IN):
        updated = (alpha + theta * ((n / (phi @ theta)) @ phi)) / total
        step = np.abs(updated - theta).sum()
        theta = updated
        if step < TOLERANCE:
            break
    return theta


def build(**params: Any) -> LatentDirichletAllocation:
    """Return the unfitted transformer with these parameters."""
    return LatentDirichletAllocation(**params)
