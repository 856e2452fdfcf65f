"""Gaussian mixtures of word vectors by expectation-maximisation (EM), from a k-means start.

Source: C. Bishop, "Pattern Recognition and Machine Learning", 2006, section 9.2.2, equations 9.23-9.28; the start, the
stopping rule and the addition to the diagonal are those of scikit-learn's GaussianMixture.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

# One covariance for all components (ours), or one each (scikit-learn's).
COVARIANCES = ("tied", "tied-spherical", "spherical", "full", "diag")
TOLERANCE = 1e-3
REGULARISATION = 1e-6
# A component with less than this expected number of points is dead: its mean is no more than rounding.
DEAD = 1e-10


@dataclass(frozen=True)
class Mixture:
    """A fitted mixture: `memberships` P(component | point), float64 (n_points, n_components), rows sum to 1.

    `means` float64 (n_components, n_dimensions); `weights` float64 (n_components,), 0 for a component that died;
    `log_likelihood`: mean log density of a point under the parameters `memberships` were computed with; `n_iter`
    EM iterations, `converged` whether the last one changed the log-likelihood by less than 1e-3.
    """

    memberships: np.ndarray
    means: np.ndarray
    weights: np.ndarray
    log_likelihood: float
    n_iter: int
    converged: bool


def fit_mixture(
    points: np.ndarray, n_components: int, covariance: str, *, max_iter: int = 50, seed: int | None = None
) -> Mixture:
    """Fit a mixture to `points`, float (n_points, n_dimensions), from one run of k-means.

    `covariance`: "tied" (all components share a full one), "tied-spherical" (all share one variance), "full",
    "diag", "spherical" (one each). A component that loses all its points keeps weight 0, with a RuntimeWarning.
    Raises ValueError for an unknown covariance, or fewer points than components. Returns the mixture.
    """
    if covariance not in COVARIANCES:
        raise ValueError(f"covariance must be one of {', '.join(COVARIANCES)}: got {covariance!r}")
    if covariance.startswith("tied"):
        labels, _ = cluster(points, n_components, seed)
        start = np.zeros((len(points), n_components))
        start[np.arange(len(points)), labels] = 1.0
        mixture = fit_tied(points, start, spherical=covariance == "tied-spherical", max_iter=max_iter)
    else:
        _check_number(n_components, len(points))
        mixture = _fit_own_covariances(points, n_components, covariance, max_iter, seed)
    n_dead = int((mixture.weights == 0).sum())
    if n_dead:
        message = f"{n_dead} of {n_components} clusters lost all their terms; their features are zero"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return mixture


def cluster(points: np.ndarray, n_clusters: int, seed: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Cluster by k-means (k-means++ start, one run): labels int32 (n_points,), centres (n_clusters, n_dimensions).

    Raises ValueError when there are fewer points, or fewer different ones, than clusters.
    """
    _check_number(n_clusters, len(points))
    with warnings.catch_warnings():
        # Too few different points: said below, as an error.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(n_clusters, n_init=1, random_state=seed).fit(points)
    n_found = len(np.unique(model.labels_))
    if n_found < n_clusters:
        raise ValueError(
            f"n_clusters must be at most the number of different word vectors, {n_found}: got {n_clusters}"
        )
    return model.labels_, model.cluster_centers_


def _check_number(n_clusters: int, n_points: int) -> None:
    if not isinstance(n_clusters, int | np.integer) or n_clusters < 1:
        raise ValueError(f"n_clusters must be a whole number from 1: got {n_clusters!r}")
    if n_points < n_clusters:
        raise ValueError(
            f"n_clusters must be at most the number of terms with a word vector, {n_points}: got {n_clusters}"
        )


def fit_tied(
    points: np.ndarray, memberships: np.ndarray, *, spherical: bool, max_iter: int, tol: float = TOLERANCE
) -> Mixture:
    """EM with one covariance, or one variance, for all components, from start `memberships`; all in float64.

    Two matrix products and one Cholesky factorisation an iteration: the second moments of the points never change, and
    the term x^T S^-1 x of the density is the same for all components. Returns the mixture. points: (n_points,
    n_dimensions). memberships: (n_points, n_components), P(component | point).
    """
    components = _Tied(np.asarray(points, dtype=np.float64), memberships.shape[1], spherical)
    components.maximise(memberships)
    previous, converged, n_iter = -np.inf, False, 0
    while not converged and n_iter < max_iter:
        memberships, likelihood = components.expect()
        components.maximise(memberships)
        converged = abs(likelihood - previous) < tol
        previous, n_iter = likelihood, n_iter + 1
    memberships, likelihood = components.expect()
    return Mixture(memberships, components.means, components.weights, likelihood, n_iter, converged)


class _Tied:
    """Components with one covariance S; `weighted` are the means times its inverse."""

    def __init__(self, points: np.ndarray, n_components: int, spherical: bool) -> None:
        self.points = points
        self.moments = points.T @ points
        self.means = np.zeros((n_components, points.shape[1]))
        self.spherical = spherical

    def maximise(self, memberships: np.ndarray) -> None:
        """M step, equations 9.24-9.28, with the covariances of 9.25 averaged over the components."""
        n_points, n_dimensions = self.points.shape
        sizes = memberships.sum(axis=0)
        alive = sizes > DEAD
        self.means[alive] = (memberships.T @ self.points)[alive] / sizes[alive, None]
        self.weights = np.where(alive, sizes, 0.0) / sizes[alive].sum()
        scaled = self.means * np.sqrt(sizes)[:, None]
        if self.spherical:
            variance = (np.trace(self.moments) - np.sum(scaled**2)) / (n_points * n_dimensions)
            variance += REGULARISATION
            self.log_det = n_dimensions * np.log(variance)
            self.weighted = self.means / variance
            self.scatter = np.trace(self.moments) / variance
        else:
            covariance = (self.moments - scaled.T @ scaled) / n_points
            covariance[np.diag_indices(n_dimensions)] += REGULARISATION
            factor = np.linalg.cholesky(covariance)
            self.log_det = 2 * np.log(np.diag(factor)).sum()
            self.weighted = cho_solve((factor, True), self.means.T).T
            self.scatter = np.trace(cho_solve((factor, True), self.moments))  # sum over points of x^T S^-1 x

    def expect(self) -> tuple[np.ndarray, float]:
        """E step, equation 9.23: memberships, and the mean log density of a point."""
        with np.errstate(divide="ignore"):  # a dead component has log weight minus infinity
            bias = np.log(self.weights) - 0.5 * np.sum(self.weighted * self.means, axis=1)
        log_joint = self.points @ self.weighted.T
        log_joint += bias
        largest = log_joint.max(axis=1, keepdims=True)
        memberships = np.exp(log_joint - largest, out=log_joint)
        total = memberships.sum(axis=1, keepdims=True)
        memberships /= total
        n_points, n_dimensions = self.points.shape
        constant = n_dimensions * np.log(2 * np.pi) + self.log_det + self.scatter / n_points
        return memberships, float(np.mean(np.log(total) + largest) - 0.5 * constant)


def _fit_own_covariances(
    points: np.ndarray, n_components: int, covariance: str, max_iter: int, seed: int | None
) -> Mixture:
    model = GaussianMixture(
        n_components,
        covariance_type=covariance,
        max_iter=max_iter,
        reg_covar=REGULARISATION,
        random_state=seed,
    )
    points = np.asarray(points, dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # `converged` says it
        model.fit(points)
    return Mixture(
        memberships=model.predict_proba(points),
        means=model.means_,
        weights=np.where(model.weights_ * len(points) > DEAD, model.weights_, 0.0),
        log_likelihood=float(model.score(points)),
        n_iter=model.n_iter_,
        converged=model.converged_,
    )
