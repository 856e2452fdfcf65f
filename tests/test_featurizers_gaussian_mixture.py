"""Gaussian mixtures: against scikit-learn from the same start, densities by scipy, and limiting cases."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from textbench.featurizers._gaussian_mixture import COVARIANCES, Mixture, cluster, fit_mixture, fit_tied

RNG = np.random.default_rng(7)


def overlapping_points(n_points: int = 600, n_dimensions: int = 6, n_clusters: int = 5) -> np.ndarray:
    """Clusters that share an elongated covariance and overlap, so that memberships are soft."""
    centres = RNG.normal(size=(n_clusters, n_dimensions)) * 2
    shape = RNG.normal(size=(n_dimensions, n_dimensions))
    return (
        centres[RNG.integers(n_clusters, size=n_points)]
        + RNG.normal(size=(n_points, n_dimensions)) @ shape / 2
    )


POINTS = overlapping_points()


def hard(labels: np.ndarray) -> np.ndarray:
    return np.eye(labels.max() + 1)[labels]


def fit(start: np.ndarray, *, spherical: bool = False, max_iter: int = 50, tol: float = 1e-3) -> Mixture:
    return fit_tied(POINTS, start, spherical=spherical, max_iter=max_iter, tol=tol)


def test_tied_is_scikit_learns_from_the_same_start() -> None:
    theirs = GaussianMixture(5, covariance_type="tied", max_iter=50, random_state=3).fit(POINTS)
    ours = fit_mixture(POINTS, 5, "tied", seed=3)
    assert (ours.n_iter, ours.converged) == (theirs.n_iter_, theirs.converged_)
    assert ours.log_likelihood == pytest.approx(theirs.score(POINTS), rel=1e-9)
    np.testing.assert_allclose(ours.memberships, theirs.predict_proba(POINTS), atol=1e-8)
    np.testing.assert_allclose(ours.means, theirs.means_, atol=1e-8)
    np.testing.assert_allclose(ours.weights, theirs.weights_, atol=1e-10)


def test_tied_is_scikit_learns_even_without_convergence() -> None:
    with pytest.warns(UserWarning, match="did not converge"):
        theirs = GaussianMixture(5, covariance_type="tied", max_iter=4, tol=0, random_state=1).fit(POINTS)
    start = hard(KMeans(5, n_init=1, random_state=1).fit(POINTS).labels_)
    ours = fit(start, max_iter=4, tol=0)
    assert not ours.converged
    assert ours.log_likelihood == pytest.approx(theirs.score(POINTS), rel=1e-9)


@pytest.mark.parametrize("covariance", ["spherical", "diag", "full"])
def test_own_covariances_are_scikit_learns(covariance: str) -> None:
    theirs = GaussianMixture(5, covariance_type=covariance, max_iter=50, random_state=2).fit(POINTS)
    ours = fit_mixture(POINTS, 5, covariance, seed=2)
    assert ours.log_likelihood == pytest.approx(theirs.score(POINTS), rel=1e-9)
    np.testing.assert_allclose(ours.memberships, theirs.predict_proba(POINTS), atol=1e-8)


def test_tied_spherical_is_bayes_rule_with_one_variance() -> None:
    mixture = fit(hard(cluster(POINTS, 4, 0)[0]), spherical=True, max_iter=500, tol=0)
    # At convergence the shared variance is the mean squared distance to the means, a dimension.
    distances = ((POINTS[:, None] - mixture.means) ** 2).sum(axis=2)
    variance = (mixture.memberships * distances).sum() / POINTS.size
    densities = np.stack([multivariate_normal(mean, variance).pdf(POINTS) for mean in mixture.means], axis=1)
    joint = mixture.weights * densities
    np.testing.assert_allclose(mixture.memberships, joint / joint.sum(axis=1, keepdims=True), atol=1e-4)
    assert mixture.log_likelihood == pytest.approx(np.log(joint.sum(axis=1)).mean(), rel=1e-5)


def test_tied_spherical_tends_to_k_means_when_clusters_are_far_apart() -> None:
    far = np.repeat(np.eye(3) * 1000, 50, axis=0) + RNG.normal(size=(150, 3))
    mixture = fit_mixture(far, 3, "tied-spherical", seed=0)
    labels, _ = cluster(far, 3, 0)
    np.testing.assert_allclose(mixture.memberships, hard(labels), atol=1e-12)


@pytest.mark.parametrize("spherical", [False, True])
def test_likelihood_never_falls(spherical: bool) -> None:
    start = RNG.dirichlet(np.ones(5), size=len(POINTS))
    likelihoods = [fit(start, spherical=spherical, max_iter=n, tol=0).log_likelihood for n in range(1, 25)]
    assert (np.diff(likelihoods) > -1e-9).all()


def test_one_component_is_the_sample_covariance() -> None:
    mixture = fit(np.ones((len(POINTS), 1)))
    covariance = np.cov(POINTS, rowvar=False, bias=True) + 1e-6 * np.eye(POINTS.shape[1])
    expected = multivariate_normal(POINTS.mean(axis=0), covariance).logpdf(POINTS).mean()
    assert mixture.log_likelihood == pytest.approx(expected, rel=1e-9)
    np.testing.assert_array_equal(mixture.memberships, 1)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_memberships_are_probabilities_and_repeat_to_the_bit(covariance: str) -> None:
    one, two = (fit_mixture(POINTS, 5, covariance, seed=11) for _ in range(2))
    np.testing.assert_allclose(one.memberships.sum(axis=1), 1)
    assert one.memberships.min() >= 0
    assert one.memberships.tobytes() == two.memberships.tobytes()


@pytest.mark.parametrize("spherical", [False, True])
def test_a_cluster_without_points_dies_and_the_others_do_not_notice(spherical: bool) -> None:
    start = hard(cluster(POINTS, 4, 0)[0])
    dead = fit(np.insert(start, 2, 0.0, axis=1), spherical=spherical)
    alive = fit(start, spherical=spherical)
    np.testing.assert_array_equal(dead.memberships[:, 2], 0)
    assert dead.weights[2] == 0
    np.testing.assert_allclose(np.delete(dead.memberships, 2, axis=1), alive.memberships, atol=1e-9)
    assert dead.log_likelihood == pytest.approx(alive.log_likelihood)


def test_a_dead_cluster_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = cluster(POINTS, 4, 0)[0]
    # k-means itself never leaves a cluster empty.
    monkeypatch.setattr("textbench.featurizers._gaussian_mixture.cluster", lambda *_: (labels, None))
    with pytest.warns(RuntimeWarning, match="1 of 5 clusters lost all their terms"):
        fit_mixture(POINTS, 5, "tied")


def test_impossible_clusterings_are_refused() -> None:
    with pytest.raises(ValueError, match="full, diag: got 'round'"):
        fit_mixture(POINTS, 3, "round")
    for covariance in COVARIANCES:
        with pytest.raises(ValueError, match="number of terms with a word vector, 2: got 3"):
            fit_mixture(POINTS[:2], 3, covariance)
        with pytest.raises(ValueError, match=r"whole number from 1: got 2\.5"):
            fit_mixture(POINTS, 2.5, covariance)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="different word vectors, 2: got 3"):
        cluster(np.repeat(POINTS[:2], 5, axis=0), 3, 0)


def test_points_are_untouched() -> None:
    points = POINTS.astype(np.float32)
    before = points.tobytes()
    fit_mixture(points, 3, "tied", seed=0)
    assert points.tobytes() == before
