"""Gaussian LDA: the predictive is Student's t, updates commute and undo each other, draws have its mean density."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_t

from tests.topical import COUNTS, KNOWN, VECTORS
from textbench.featurizers import gaussian_lda
from textbench.featurizers._topical.gaussians import Prior, posterior

RNG = np.random.default_rng(6)
OWN = VECTORS[KNOWN].astype(float)
N = np.asarray(COUNTS[:, KNOWN].sum(axis=0)).ravel().astype(float)
PRIOR = Prior.of(OWN, N, 0.5, 1.0)


def fitted(**params: Any) -> gaussian_lda.GaussianLda:
    given = {"n_topics": 3, "n_iter": 20, "random_state": 0, **params}
    return gaussian_lda.build(**given).fit(COUNTS, word_vectors=VECTORS)


def added(prior: Prior, x: np.ndarray) -> Prior:
    """The posterior of one more vector, by the recursion."""
    apart = x - prior.mean
    return Prior(
        prior.mean + apart / (prior.kappa + 1),
        prior.kappa + 1,
        prior.scatter + prior.kappa / (prior.kappa + 1) * np.outer(apart, apart),
        prior.nu + 1,
    )


def taken(prior: Prior, x: np.ndarray) -> Prior:
    """The recursion the other way."""
    kappa = prior.kappa - 1
    mean = (prior.kappa * prior.mean - x) / kappa
    scatter = prior.scatter - kappa / prior.kappa * np.outer(x - mean, x - mean)
    return Prior(mean, kappa, scatter, prior.nu - 1)


def same(one: Prior, other: Prior) -> None:
    for name in ("mean", "kappa", "scatter", "nu"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-9)


def test_the_predictive_is_students_t() -> None:
    after = posterior(PRIOR, OWN, N)
    freedom = after.nu - OWN.shape[1] + 1
    shape = after.scatter * (after.kappa + 1) / (after.kappa * freedom)
    expected = multivariate_t(after.mean, shape, df=freedom).logpdf(OWN)
    np.testing.assert_allclose(after.log_predictive(OWN), expected, rtol=1e-8)


def test_vectors_may_come_in_any_order_and_go_again() -> None:
    n = np.zeros(len(OWN))
    n[[3, 5, 9]] = [2, 1, 3]
    order = RNG.permutation(np.repeat([3, 5, 9], [2, 1, 3]))
    one = PRIOR
    for term in order:
        one = added(one, OWN[term])
    same(one, posterior(PRIOR, OWN, n))
    for term in RNG.permutation(order):
        one = taken(one, OWN[term])
    same(one, PRIOR)
    same(posterior(PRIOR, OWN, 0 * n), PRIOR)


@pytest.mark.parametrize("weight", [1.0, 25.0])
def test_the_prior_is_as_the_tokens_are(weight: float) -> None:
    prior = Prior.of(OWN, N, 0.5, weight)
    np.testing.assert_allclose(prior.mean, np.average(OWN, axis=0, weights=N))
    expected = np.cov(OWN.T, aweights=N, ddof=0) * (prior.nu - OWN.shape[1] - 1)
    np.testing.assert_allclose(prior.scatter, expected, atol=1e-4)
    assert prior.nu - OWN.shape[1] - 1 == weight


def test_a_topic_of_the_priors_weight_lies_half_way() -> None:
    """Of so many tokens as the prior counts for, with the prior's mean, half of the covariance is their own."""
    n = N * (np.arange(len(N)) < 5)
    own = np.cov(OWN.T, aweights=n, ddof=0)
    prior = replace(Prior.of(OWN, N, 0.5, n.sum()), mean=np.average(OWN, axis=0, weights=n))
    after = posterior(prior, OWN, n)
    found = after.scatter / (after.nu - OWN.shape[1] - 1)
    np.testing.assert_allclose(found, (own + np.cov(OWN.T, aweights=N, ddof=0)) / 2, atol=1e-5)


def test_draws_have_the_predictive_as_their_mean_density() -> None:
    after = posterior(PRIOR, OWN, N)
    draws = [np.exp(after.log_density_of_a_draw(OWN[:4], RNG)) for _ in range(4000)]
    np.testing.assert_allclose(np.mean(draws, axis=0), np.exp(after.log_predictive(OWN[:4])), rtol=0.1)


def test_a_boundless_prior_tells_topics_nothing() -> None:
    """Topics of as many tokens, which have no term in common, have the same density everywhere."""
    is_first = np.arange(len(OWN)) % 2 == 0
    n_first, n_other = np.where(is_first, 3.0, 0), np.where(is_first, 0, 3.0)
    assert n_first.sum() == n_other.sum() > 0
    wide = replace(PRIOR, scatter=1e12 * np.eye(OWN.shape[1]))
    one, other = (posterior(wide, OWN, n).log_predictive(OWN) for n in (n_first, n_other))
    np.testing.assert_allclose(one, one[0], atol=1e-6)
    np.testing.assert_allclose(one, other, rtol=1e-9)
    narrow = replace(PRIOR, scatter=np.eye(OWN.shape[1]))
    one, other = (posterior(narrow, OWN, n).log_predictive(OWN) for n in (n_first, n_other))
    assert np.abs(one - other).max() > 0.1


def test_topics_that_made_the_documents_are_found_again() -> None:
    rng = np.random.default_rng(1)
    centres = np.eye(2, 4)
    vectors = (np.repeat(centres, 20, axis=0) + 0.2 * rng.normal(size=(40, 4))).astype(np.float32)
    share = rng.random(60) < 0.5
    ids = [rng.integers(20, size=30) + 20 * own for own in share]
    counts = sp.csr_matrix(np.array([np.bincount(d, minlength=40) for d in ids]))
    method = gaussian_lda.build(n_topics=2, n_iter=40, random_state=2).fit(counts, word_vectors=vectors)
    best = method.transform(counts).argmax(axis=1)
    assert max(np.mean(best == share), np.mean(best != share)) > 0.95


def test_before_the_first_sweep_topics_are_regions_of_words() -> None:
    """Two groups of words, far apart, are two topics before anything is sampled."""
    vectors = np.repeat(np.eye(2, 3), 10, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(20, 3))
    counts = sp.csr_matrix(np.ones((4, 20)))
    method = gaussian_lda.build(n_topics=2, n_iter=0, random_state=0).fit(
        counts, word_vectors=vectors.astype("f4")
    )
    best = method.components_.argmax(axis=0)
    assert len(set(best[:10])) == len(set(best[10:])) == 1 and best[0] != best[10]


def test_rows_are_distributions_seeds_repeat_and_one_topic_is_all() -> None:
    method = fitted()
    np.testing.assert_allclose(method.components_.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(method.transform(COUNTS).sum(axis=1), 1, rtol=1e-5)
    assert (
        method.components_.tobytes()
        == fitted().components_.tobytes()
        != fitted(random_state=1).components_.tobytes()
    )
    assert (fitted(n_topics=1).transform(COUNTS) == 1).all()
    assert np.isfinite(fitted(n_topics=60, alpha=None, n_iter=3).transform(COUNTS)).all()


@pytest.mark.parametrize(
    "params", [{"n_topics": 0}, {"alpha": 0.0}, {"kappa": 0.0}, {"shrinkage": -1.0}, {"n_iter": -1}]
)
def test_what_a_parameter_does_not_take_is_named(params: dict) -> None:
    with pytest.raises(ValueError, match=f"got {next(iter(params.values()))!r}"):
        fitted(**params)
