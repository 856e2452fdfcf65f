"""The von Mises-Fisher distribution on the unit sphere: p(v) = C_D(kappa) exp(kappa mu . v).

Source: A. Banerjee, I. Dhillon, J. Ghosh and S. Sra, "Clustering on the unit hypersphere using von Mises-Fisher
distributions", JMLR 6 (2005), sections 2.3 and 4; the Bessel function by its uniform expansion, NIST handbook of
mathematical functions, 10.41.3, or in few dimensions by that of large arguments, 10.40.1, and ratios of it by a
continued fraction, 10.33.1.

`kappa` is the concentration, and `r` the mean resultant length, of each distribution, (n_distributions,).
"""

import numpy as np
from scipy.special import gammaln, ive

EXACT_BELOW = 50  # dimensions, up to which scipy's Bessel function does not underflow
# In so few dimensions four terms are exact of a kappa above this; scipy's function is NaN above 2e9.
LARGE = 1e5
SMALLEST = 1e-2  # below, the density is that of kappa = 0 but for terms of kappa squared
N_TERMS = 60  # of the continued fraction


def log_normaliser(kappa: np.ndarray, n_dimensions: int) -> np.ndarray:
    """Return log C_D(kappa) = nu log kappa - D/2 log 2 pi - log I_nu(kappa), nu = D/2 - 1, float64."""
    kappa = np.asarray(kappa, dtype=np.float64)
    nu, small = n_dimensions / 2 - 1, kappa < SMALLEST
    own = np.where(small, 1.0, kappa)
    found = nu * np.log(own) - (nu + 1) * np.log(2 * np.pi) - _log_bessel(nu, own, n_dimensions)
    # I_nu(kappa) = (kappa / 2)^nu / Gamma(nu + 1) (1 + kappa^2 / (4 (nu + 1)) + ...).
    flat = nu * np.log(2) + gammaln(nu + 1) - (nu + 1) * np.log(2 * np.pi) - kappa**2 / (4 * (nu + 1))
    return np.where(small, flat, found)


def _log_bessel(nu: float, kappa: np.ndarray, n_dimensions: int) -> np.ndarray:
    if n_dimensions < EXACT_BELOW:
        near, far = np.minimum(kappa, LARGE), np.maximum(kappa, LARGE)
        return np.where(kappa > LARGE, _log_bessel_far_out(nu, far), np.log(ive(nu, near)) + near)
    root = np.sqrt(nu**2 + kappa**2)
    p = nu / root
    u1 = (3 * p - 5 * p**3) / 24
    u2 = (81 * p**2 - 462 * p**4 + 385 * p**6) / 1152
    u3 = (30375 * p**3 - 369603 * p**5 + 765765 * p**7 - 425425 * p**9) / 414720
    series = 1 + u1 / nu + u2 / nu**2 + u3 / nu**3
    return root + nu * np.log(kappa / (nu + root)) - 0.5 * np.log(2 * np.pi * root) + np.log(series)


def _log_bessel_far_out(nu: float, kappa: np.ndarray) -> np.ndarray:
    m, x = 4 * nu**2, 8 * kappa
    less = (m - 1) / x * (1 - (m - 9) / (2 * x) * (1 - (m - 25) / (3 * x)))
    return kappa - 0.5 * np.log(2 * np.pi * kappa) + np.log1p(-less)


def mean_resultant(kappa: np.ndarray, n_dimensions: int) -> np.ndarray:
    """Return A(kappa) = I_{D/2}(kappa) / I_{D/2-1}(kappa), the length of the mean, float64 in 0 .. 1."""
    kappa = np.asarray(kappa, dtype=np.float64)
    safe, found = np.maximum(kappa, 1e-300), np.zeros_like(kappa)
    n_terms = N_TERMS + int(np.max(kappa, initial=0))  # it converges when its index passes kappa
    for term in range(n_terms, 0, -1):
        found = 1 / ((n_dimensions - 2 + 2 * term) / safe + found)
    return found


def concentration(r: np.ndarray, n_dimensions: int, highest: float = np.inf) -> np.ndarray:
    """Return the kappa whose mean has length r in 0 .. 1, at most `highest`, by Newton's method from Banerjee's."""
    r = np.clip(np.asarray(r, dtype=np.float64), 0, 1 - 1e-9)
    kappa = r * (n_dimensions - r**2) / (1 - r**2)
    capped = kappa > min(highest, 1e5) * 1.1  # no need to know them better
    for _ in range(3):
        own = np.where(capped | (kappa <= 0), 1.0, kappa)
        a = mean_resultant(own, n_dimensions)
        step = (a - r) / (1 - a**2 - (n_dimensions - 1) * a / own)
        kappa = np.where(capped | (kappa <= 0), kappa, np.maximum(kappa - step, kappa / 2))
    return np.minimum(kappa, highest)
