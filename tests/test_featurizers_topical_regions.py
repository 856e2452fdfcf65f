"""TopicVec and MvTM: bounds that never fall, distributions that sum to 1, limits of one topic and of none."""

import functools
import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import gammaln, ive, psi

from tests.topical import COUNTS, KNOWN, N_DIMENSIONS, N_DOCUMENTS, VECTORS
from textbench.featurizers import avgvec, mvtm, topicvec
from textbench.featurizers._topical import von_mises_fisher as vmf
from textbench.featurizers._topical.inference import infer
from textbench.featurizers._topical.topic_em import (
    Spheres,
    link_of,
    mixtures,
    spheres_at_start,
    topic_vec,
)
from textbench.featurizers._topical.topic_vectors import fit_softmax, log_softmax

RNG = np.random.default_rng(4)
OWN, UNIT = COUNTS[:, KNOWN], VECTORS[KNOWN].astype(float)
N = np.asarray(OWN.sum(axis=0)).ravel().astype(float)
LOG_BASE = np.log(N / N.sum())
LABELS = np.arange(N_DOCUMENTS) % 3


def topics_of(**params: Any) -> topicvec.TopicVec:
    given = {"n_topics": 4, "max_iter": 8, "random_state": 0, **params}
    return topicvec.build(**given).fit(COUNTS, LABELS, word_vectors=VECTORS)


def regions_of(vectors: np.ndarray = VECTORS, **params: Any) -> mvtm.MixturesOfVonMisesFisher:
    given = {"n_topics": 3, "max_iter": 8, "random_state": 0, **params}
    return mvtm.build(**given).fit(COUNTS, word_vectors=vectors)


def variational_bound(topics: np.ndarray, theta: np.ndarray, alpha: float) -> float:
    """The evidence bound of proportions whose responsibilities are the best for them, per document and summed."""
    link, n = link_of(topics, UNIT, LOG_BASE), OWN.toarray()
    k = len(topics)
    gamma = theta * (n.sum(axis=1, keepdims=True) + k * alpha)
    gamma *= (n.sum(axis=1, keepdims=True) + k * alpha) / gamma.sum(axis=1, keepdims=True)
    expected = psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))
    likelihood = (n * np.log(np.exp(expected) @ np.exp(link).T)).sum()
    prior = gammaln(k * alpha) - k * gammaln(alpha) + ((alpha - 1) * expected).sum(axis=1)
    entropy = gammaln(gamma).sum(axis=1) - gammaln(gamma.sum(axis=1)) - ((gamma - 1) * expected).sum(axis=1)
    return float(likelihood + (prior + entropy).sum())


def test_topicvecs_bound_never_falls() -> None:
    start = RNG.normal(size=(4, N_DIMENSIONS))
    found = list(topic_vec(OWN, UNIT, LOG_BASE, start, alpha=0.3, radius=6.0, n_rounds=15))
    values = [variational_bound(topics, theta, 0.3) for topics, theta in found]
    assert (np.diff(values) > -1e-3).all() and values[-1] > values[0] + 1
    assert not found[-1][0][0].any()
    assert (np.linalg.norm(found[-1][0], axis=1) <= 6 + 1e-9).all()


def test_topicvecs_topics_are_distributions_and_the_first_is_the_unigram() -> None:
    method = topics_of()
    np.testing.assert_allclose(method.components_.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(method.components_[0, KNOWN], N / N.sum(), rtol=1e-4)
    link = link_of(method.topic_vectors_, method.vectors_, method.log_base_)
    np.testing.assert_allclose(np.exp(link).T @ np.exp(method.log_base_), 1, rtol=1e-5)


def test_topicvec_without_room_or_of_one_topic_counts_tokens() -> None:
    totals = np.asarray(OWN.sum(axis=1))
    flat = topics_of(radius=0.0).transform(COUNTS)[:, :4]
    np.testing.assert_allclose(flat, np.repeat(totals / 4, 4, axis=1), rtol=1e-5)
    np.testing.assert_allclose(topics_of(n_topics=1).transform(COUNTS)[:, :1], totals, rtol=1e-5)
    shares = topics_of(amounts="shares", e_steps=20).transform(COUNTS)[:, :4]
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)


def test_one_step_is_linear_in_counts_and_the_means_are_avgvec() -> None:
    method = topics_of()
    found = method.transform(COUNTS)
    link = np.exp(link_of(method.topic_vectors_, method.vectors_, method.log_base_))
    np.testing.assert_allclose(
        found[:, :4], OWN @ (link / link.sum(axis=1, keepdims=True)), rtol=1e-3, atol=1e-4
    )
    average = avgvec.build().fit(COUNTS, word_vectors=VECTORS).transform(COUNTS)
    np.testing.assert_allclose(found[:, 4:], average, atol=1e-6)


def test_with_a_uniform_base_the_fit_is_that_of_latent_features() -> None:
    counts, flat = RNG.gamma(1, 4, size=(2, len(KNOWN))), np.full(len(KNOWN), -np.log(len(KNOWN)))
    start = np.zeros((2, N_DIMENSIONS))
    fit = functools.partial(fit_softmax, counts, UNIT, start, penalty=0.2, n_steps=200)
    np.testing.assert_allclose(fit(log_base=flat), fit(), atol=1e-3)
    topics = counts[:, :N_DIMENSIONS]
    np.testing.assert_allclose(log_softmax(topics, UNIT, flat), log_softmax(topics, UNIT))


def test_a_label_of_no_document_has_no_topics() -> None:
    """Its random start would be columns of features that the seed alone makes."""
    labels = np.eye(3, dtype=int)[LABELS]
    labels[:, 1] = 0
    method = topicvec.build(n_topics=4, max_iter=8, random_state=0, topics="by_class")
    assert len(method.fit(COUNTS, labels, word_vectors=VECTORS).topic_vectors_) == 1 + 2 * 3


def test_topics_by_class_are_put_together_and_need_labels() -> None:
    method = topics_of(topics="by_class")
    assert method.transform(COUNTS).shape[1] == 1 + 3 * 3 + N_DIMENSIONS
    rows = sp.csr_matrix(np.eye(3, dtype=np.int8)[LABELS])
    other = topicvec.build(n_topics=4, max_iter=8, random_state=0, topics="by_class")
    np.testing.assert_array_equal(
        other.fit(COUNTS, rows, word_vectors=VECTORS).transform(COUNTS), method.transform(COUNTS)
    )
    with pytest.raises(ValueError, match="labels: got none"):
        topicvec.build(topics="by_class").fit(COUNTS, word_vectors=VECTORS)


@pytest.mark.parametrize("n_dimensions", [3, 60, 200, 400])
def test_densities_of_the_sphere(n_dimensions: int) -> None:
    """The normaliser is continuous into kappa = 0, its slope is minus the mean length, whose inverse finds kappa."""
    kappa = np.array([0.5, 3.0, 40.0, 400.0])
    step = 1e-4 * kappa
    difference = vmf.log_normaliser(kappa + step, n_dimensions) - vmf.log_normaliser(
        kappa - step, n_dimensions
    )
    mean = vmf.mean_resultant(kappa, n_dimensions)
    np.testing.assert_allclose(-difference / (2 * step), mean, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(vmf.concentration(mean, n_dimensions), kappa, rtol=1e-3)
    edge = vmf.log_normaliser(np.array([0.00999999, 0.01000001]), n_dimensions)
    assert abs(edge[0] - edge[1]) < 1e-6
    surface = np.log(2) + n_dimensions / 2 * np.log(np.pi) - gammaln(n_dimensions / 2)
    np.testing.assert_allclose(vmf.log_normaliser(np.zeros(1), n_dimensions), -surface, rtol=1e-9)
    if n_dimensions == 60:
        exact = 29 * np.log(kappa) - 30 * np.log(2 * np.pi) - np.log(ive(29, kappa)) - kappa
        np.testing.assert_allclose(vmf.log_normaliser(kappa, 60), exact, atol=1e-7)


def test_densities_of_directions_that_are_all_but_one() -> None:
    """In 3 and 5 dimensions they have closed forms, and in any they are normal around the mean."""
    kappa = np.array([0.02, 3.0, 900.0, 99_999.0, 100_001.0, 1e7, 2.1e9, 1e11, 1e15])
    log_sinh = kappa + np.log1p(-np.exp(-2 * kappa)) - np.log(2)
    found = vmf.log_normaliser(kappa, 3)
    np.testing.assert_allclose(found, np.log(kappa / (4 * np.pi)) - log_sinh, rtol=1e-13)
    # I_3/2(kappa) = sqrt(2 / (pi kappa)) (cosh kappa - sinh kappa / kappa).
    kappa, log_sinh = kappa[1:], log_sinh[1:]
    log_bessel = 0.5 * np.log(2 / np.pi / kappa) + log_sinh + np.log(1 / np.tanh(kappa) - 1 / kappa)
    found, exact = vmf.log_normaliser(kappa, 5), 1.5 * np.log(kappa) - 2.5 * np.log(2 * np.pi) - log_bessel
    np.testing.assert_allclose(found, exact, rtol=1e-13, atol=1e-12)
    for n_dimensions in (1, 2, 4, 30, 49, 50, 200):
        kappa = np.array([1e9, 1e12])
        normal = (n_dimensions - 1) / 2 * np.log(kappa / (2 * np.pi)) - kappa
        np.testing.assert_allclose(vmf.log_normaliser(kappa, n_dimensions), normal, rtol=1e-13, atol=1e-4)
        # The mean has all of its length; with a limit, no kappa is beyond it.
        assert np.isfinite(
            vmf.log_normaliser(vmf.concentration(np.ones(1), n_dimensions), n_dimensions)
        ).all()
        assert vmf.concentration(np.ones(1), n_dimensions, 200.0) <= 200


def objective(spheres: Spheres, theta: np.ndarray, alpha: float, beta: float) -> float:
    density = np.exp(spheres.log_densities(UNIT)) @ spheres.weights.T
    theta = theta / theta.sum(axis=1, keepdims=True)
    own = spheres.weights[spheres.weights > 0]
    likelihood = (OWN.toarray() * np.log(theta @ density.T)).sum()
    return float(likelihood + alpha * np.log(theta).sum() + beta * np.log(own).sum())


@pytest.mark.parametrize(("n_bases", "overlapping"), [(1, False), (2, False), (2, True)])
def test_mixtures_never_fall(n_bases: int, overlapping: bool) -> None:
    start = spheres_at_start(UNIT, N, 3, n_bases, overlapping=overlapping, seed=1)
    rounds = list(mixtures(OWN, UNIT, start, alpha=0.4, beta=0.1, highest=np.inf, n_rounds=12))
    values = [objective(spheres, theta, 0.4, 0.1) for spheres, theta in rounds]
    assert (np.diff(values) > -1e-2).all() and values[-1] > values[0]
    np.testing.assert_allclose(rounds[-1][0].weights.sum(axis=1), 1)


def disjoint(start: Spheres, alpha: float, n_rounds: int) -> tuple[Spheres, np.ndarray]:
    """The mixtures and proportions after rounds of topics that have one base each, of their own, topic by topic."""
    spheres, theta, n = start, None, OWN.toarray()
    for _ in range(n_rounds):
        logs = UNIT @ (spheres.means * spheres.kappas[:, None]).T
        logs += vmf.log_normaliser(spheres.kappas, N_DIMENSIONS)
        density = np.exp(logs - logs.max(axis=1, keepdims=True))
        theta = infer(OWN, density.astype(np.float32), alpha, n_steps=5, start=theta).proportions
        q = theta[:, None] * density
        q /= q.sum(axis=2, keepdims=True)
        sums = np.array([(n * q[:, :, k]).sum(axis=0) @ UNIT for k in range(len(start.means))])
        masses = np.array([(n * q[:, :, k]).sum() for k in range(len(start.means))])
        lengths = np.linalg.norm(sums, axis=1)
        kappas = vmf.concentration(lengths / masses, N_DIMENSIONS)
        spheres = Spheres(sums / lengths[:, None], kappas, start.weights)
    return spheres, theta


def test_disjoint_topics_of_one_base_are_bases_mixed_by_the_identity() -> None:
    start = spheres_at_start(UNIT, N, 3, 1, overlapping=False, seed=1)
    np.testing.assert_array_equal(start.weights, np.eye(3))
    *_, (spheres, theta) = mixtures(OWN, UNIT, start, alpha=0.4, beta=0.1, highest=np.inf, n_rounds=5)
    np.testing.assert_array_equal(spheres.weights, np.eye(3))
    expected, proportions = disjoint(start, 0.4, 5)
    np.testing.assert_allclose(spheres.means, expected.means, atol=1e-5)
    np.testing.assert_allclose(spheres.kappas, expected.kappas, rtol=1e-4)
    np.testing.assert_allclose(theta, proportions, atol=1e-5)
    method = regions_of(random_state=1, alpha=0.4, max_kappa=None, max_iter=5)
    np.testing.assert_allclose(method.means_, expected.means, atol=1e-4)


def test_bases_without_concentration_tell_documents_nothing() -> None:
    flat = Spheres(UNIT[:3], np.zeros(3), np.eye(3))
    _, topics, scale = flat.densities(UNIT)
    np.testing.assert_allclose(topics, 1)
    np.testing.assert_allclose(scale, scale[0])
    rounds = mixtures(OWN, UNIT, flat, alpha=0.4, beta=0.1, highest=np.inf, n_rounds=1)
    for theta in (next(rounds)[1], regions_of(max_kappa=1e-9).transform(COUNTS)):
        np.testing.assert_allclose(theta, 1 / 3, atol=1e-6)
        np.testing.assert_allclose(theta, theta[:1].repeat(N_DOCUMENTS, axis=0), atol=1e-7)


def test_one_topic_is_the_mean_direction_and_its_closed_form() -> None:
    method = regions_of(n_topics=1, max_kappa=None)
    mean = N @ UNIT / N.sum()
    length = np.linalg.norm(mean)
    np.testing.assert_allclose(method.means_[0], mean / length, atol=1e-5)
    np.testing.assert_allclose(vmf.mean_resultant(method.kappas_, N_DIMENSIONS), length, rtol=1e-4)
    assert (method.transform(COUNTS) == 1).all()


def test_the_words_of_a_topic_are_counted() -> None:
    """Of one topic they are all tokens, though its density has its peak at whatever word lies nearest."""
    only = regions_of(n_topics=1).components_
    np.testing.assert_allclose(only[0, KNOWN], (N + 0.01) / (N + 0.01).sum(), rtol=1e-4)
    several = regions_of(max_kappa=1000.0).components_
    np.testing.assert_allclose(several.sum(axis=1), 1, rtol=1e-5)
    assert (several[:, KNOWN] > 0).all()  # a density of such a kappa is 0 in most places


def test_rotating_all_vectors_changes_no_proportion() -> None:
    rotation = np.linalg.qr(RNG.normal(size=(N_DIMENSIONS, N_DIMENSIONS)))[0]
    one, other = regions_of(), regions_of(VECTORS @ rotation)
    np.testing.assert_allclose(one.transform(COUNTS), other.transform(COUNTS), atol=1e-3)


def test_two_regions_of_directions_are_found_again() -> None:
    centres = np.eye(2, 6)
    vectors = np.repeat(centres, 30, axis=0) + 0.25 * RNG.normal(size=(60, 6))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    share = RNG.random(80) < 0.5
    ids = [RNG.integers(30, size=40) + 30 * own for own in share]
    counts = sp.csr_matrix(np.array([np.bincount(d, minlength=60) for d in ids]))
    method = mvtm.build(n_topics=2, max_kappa=None, random_state=3).fit(counts, word_vectors=vectors)
    order = (method.means_ @ centres.T).argmax(axis=0)
    assert sorted(order) == [0, 1] and (np.einsum("kd,kd->k", method.means_[order], centres) > 0.97).all()
    theta = method.transform(counts)[:, order]
    np.testing.assert_array_equal(theta.argmax(axis=1), share.astype(int))


def test_fewer_terms_than_topics_and_limits_of_kappa_are_finite() -> None:
    many = regions_of(n_topics=40, n_bases=2, max_kappa=5.0)
    assert np.isfinite(many.transform(COUNTS)).all() and many.kappas_.max() <= 5
    assert np.isfinite(topics_of(n_topics=60).transform(COUNTS)).all()


@pytest.mark.parametrize(
    ("module", "params"),
    [
        *itertools.product(
            [topicvec], [{"n_topics": 0}, {"radius": -1.0}, {"topics": "mine"}, {"alpha": 0.0}]
        ),
        *itertools.product([mvtm], [{"n_bases": 0}, {"beta": -1.0}, {"max_kappa": 0.0}, {"overlapping": 2}]),
    ],
)
def test_what_a_parameter_does_not_take_is_named(module: Any, params: dict) -> None:
    with pytest.raises(ValueError, match=f"got {next(iter(params.values()))!r}"):
        module.build(**params).fit(COUNTS, LABELS, word_vectors=VECTORS)
