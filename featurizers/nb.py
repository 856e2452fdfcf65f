"""Multinomial Naive Bayes: terms are drawn independently given the class, with smoothed frequencies.

Source: A. McCallum and K. Nigam, "A comparison of event models for Naive Bayes text classification", AAAI
Workshop on Learning for Text Categorization, 1998, the multinomial event model; scikit-learn's MultinomialNB.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.special
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from sklearn.naive_bayes import MultinomialNB

from textbench.featurizers._classifiers import WEIGHTINGS, LinearCountClassifier
from textbench.featurizers._parameters import check_parameters
from textbench.featurizers.counts import validated_counts

INPUT = "counts"
ROLE = "classifier"
ACCEPTS = {
    "alpha": "(0, inf)",
    "weighting": ("counts", "binary", "tfidf"),
}
SEARCH_SPACE: dict[str, BaseDistribution] = {
    "alpha": FloatDistribution(1e-3, 10.0, log=True),
    "weighting": CategoricalDistribution(list(WEIGHTINGS)),
    "fit_prior": CategoricalDistribution([True, False]),
}


class NaiveBayes(LinearCountClassifier):
    """Multinomial Naive Bayes: log P(c) + sum_t x_t log P(t | c), P(t | c) = (N_ct + alpha) / (N_c + alpha T).

    `alpha`: pseudo-count of every term. `weighting`: "counts" as in the paper, "binary" or "tfidf". With
    `fit_prior` P(c) is the class's share of the training documents, else equal for all. Of several labels
    each is scored by the log odds of having it.

    X, y, shapes and errors: `CountClassifier`; ValueError too for alpha not positive, an unknown weighting.

    Source: McCallum and Nigam (1998), the multinomial event model.
    """

    def __init__(self, *, alpha: float = 1.0, weighting: str = "counts", fit_prior: bool = True) -> None:
        self.alpha = alpha
        self.weighting = weighting
        self.fit_prior = fit_prior

    def _check(self) -> None:
        check_parameters(self, ACCEPTS)

    def _solve(self, weights: sp.csr_matrix, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        model = MultinomialNB(alpha=self.alpha, fit_prior=self.fit_prior).fit(weights, codes)
        return model.feature_log_prob_, model.class_log_prior_

    def predict_proba(self, X: sp.csr_matrix) -> np.ndarray:
        """Return P(c | x) (n_documents, n_classes), rows summing to one; of several labels each label's own."""
        scores = self._scores(validated_counts(self, X, reset=False))
        return scipy.special.expit(scores) if self.several_labels_ else scipy.special.softmax(scores, axis=1)


def build(**params: Any) -> NaiveBayes:
    """Return the unfitted classifier with these parameters."""
    return NaiveBayes(**params)
