"""The yardstick: how far a measured figure may lie from a published one of which it is a repetition.

An interval holds what can differ between the paper's run and ours, and nothing else (`docs/verdicts.md`). M is the
mean of n runs here, P the paper's figure, the mean of m runs (one, where the paper does not say):

- nothing random, the same test documents: nothing can differ. P = M, but for the rounding in print.
- seeds: M +- t(n-1) s sqrt(1/m + 1/n), with s the standard deviation of a run here. It predicts the paper's figure; an
  interval of our mean would be too narrow, as if the paper's seeds had no luck.
- another split of the same documents: the test documents differ on both sides. A share f of all is tested, and e is the
  standard error of M over them; two splits share test documents, so that each side adds (1 - f) e^2 to the variance:
  s^2 (1/m + 1/n) + 2 (1 - f) e^2, degrees of freedom by Welch and Satterthwaite.
- a bounded quantity, such as a probability of two modes: the bootstrap of P - M instead of Student's t, stretched by
  sqrt(n/(n-1)) t(n-1) / t(infinity), as few runs spread less than all, and cut at the bounds. Few runs have no tails
  either: quantiles of 99 % of the bootstrap cover 95 % of normal figures.

Sources: Bhatia, Davis, A Better Bound on the Variance, American Mathematical Monthly 107 (2000); Hahn, Meeker,
Statistical Intervals (1991), chapter 4; Nadeau, Bengio, Inference for the Generalization Error, Machine Learning 52
(2003); Satterthwaite, Biometrics Bulletin 2 (1946); Stine, Bootstrap Prediction Intervals for Regression, JASA 80
(1985).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from textbench.evaluation.claims.verdicts import Interval

if TYPE_CHECKING:
    import numpy as np

LEVEL, INNER = 0.95, 0.99  # of what is allowed, and of the bootstrap's quantiles
MOST_RUNS, N_DRAWS = 8, 20_000  # of a bootstrap that goes through all resamples, and the draws beyond that


@dataclass(frozen=True)
class Split:
    """Another split of the paper's documents: `error` of our figure over the test documents, `share` of all tested."""

    error: float
    share: float


def largest_error(value: float, ends: tuple[float, float], n_documents: int) -> float:
    """Return the largest standard error that a mean over documents can have whose figures lie between two ends.

    It is that of figures that are the one end or the other, as precision at 1 is (Bhatia, Davis, 2000). What a seed
    changes of single documents is in it, and in the spread over seeds again.
    """
    low, high = ends
    return math.sqrt(max(0.0, high - value) * max(0.0, value - low) / n_documents)


@dataclass(frozen=True)
class Allowance:
    """Where a repetition's figure may lie, nan where nothing tells, and how that comes about, a line a step."""

    interval: Interval
    algebra: tuple[str, ...]


def allowance(
    values: Sequence[float],
    *,
    is_random: bool,
    n_published: int = 1,
    split: Split | None = None,
    bounds: tuple[float, float] | None = None,
) -> Allowance:
    """Return where the paper's figure may lie, given one figure a run here, all in the claim's unit.

    is_random: whether seeds change the figure. n_published: how many runs the paper's figure is a mean of. bounds: of
    a quantity that is far from normal; its paper has one run and its documents are ours. ValueError for no values.
    """
    if not values:
        raise ValueError("values must hold at least one figure; received none")
    n, mean = len(values), fmean(values)
    if not is_random and split is None:
        return _around(mean, 0.0, ("nothing is random and the test documents are the paper's: q = 0",))
    if is_random and n == 1:
        return _around(mean, math.nan, ("one run has no spread: q is not known",))
    if bounds:
        return _bootstrapped(values, bounds)
    spread = stdev(values) if is_random else 0.0
    drawn = spread**2 * (1 / n_published + 1 / n)
    words = f"s = {spread:.4g} over n = {n} runs here, m = {n_published} of the paper"
    if split is None:
        t = quantile(n - 1)
        q = t * math.sqrt(drawn)
        root = math.sqrt(1 / n_published + 1 / n)
        step = f"q = t({n - 1}) s sqrt(1/m + 1/n) = {t:.4g} × {spread:.4g} × {root:.4g} = {q:.4g}"
        return _around(mean, q, (words, step))
    tested = 2 * (1 - split.share) * split.error**2
    freedom = (n - 1) * ((drawn + tested) / drawn) ** 2 if drawn else math.inf
    t = quantile(freedom)
    q = t * math.sqrt(drawn + tested)
    return _around(
        mean,
        q,
        (
            words,
            f"another split: e = {split.error:.4g} over the test documents, f = {split.share:.3g} of all",
            f"variance = s² (1/m + 1/n) + 2 (1 - f) e² = {drawn:.4g} + {tested:.4g} = {drawn + tested:.4g}",
            f"q = t({freedom:.4g}) sqrt(variance) = {t:.4g} × {math.sqrt(drawn + tested):.4g} = {q:.4g}",
        ),
    )


def _around(mean: float, q: float, algebra: tuple[str, ...]) -> Allowance:
    interval = Interval(mean, mean - q, mean + q)
    last = f"M ± q = {mean:.5g} ± {q:.4g} = [{interval.low:.5g}, {interval.high:.5g}]"
    return Allowance(interval, algebra if math.isnan(q) else (*algebra, last))


def _bootstrapped(values: Sequence[float], bounds: tuple[float, float]) -> Allowance:
    """Go through all resamples of the runs here, each with every run as the paper's."""
    import numpy as np

    n, mean = len(values), fmean(values)
    counts, chances = _resamples(n)
    own = np.sort(np.asarray(values, dtype=float))
    errors = own[None, :] - (counts @ own)[:, None] / n  # P - M, (n_resamples, n)
    order = np.argsort(errors, axis=None, kind="stable")
    reached = np.cumsum(np.repeat(chances / n, n)[order])
    low, high = (
        errors.ravel()[order][np.searchsorted(reached, p - 1e-12)] for p in ((1 - INNER) / 2, (1 + INNER) / 2)
    )
    stretch = math.sqrt(n / (n - 1)) * quantile(n - 1) / quantile(math.inf)
    interval = Interval(
        mean, max(bounds[0], mean + stretch * float(low)), min(bounds[1], mean + stretch * float(high))
    )
    return Allowance(
        interval,
        (
            f"bootstrap of P - M over n = {n} runs: [{low:.4g}, {high:.4g}]",
            f"stretched by sqrt(n/(n-1)) t({n - 1}) / t(inf) = {stretch:.4g}, cut at {bounds[0]:g} and {bounds[1]:g}",
            f"M = {mean:.4g}, allowed [{interval.low:.4g}, {interval.high:.4g}]",
        ),
    )


@cache
def _resamples(n: int) -> "tuple[np.ndarray, np.ndarray]":
    """Return samples of n of n things with replacement: how often each is drawn (n_samples, n), and the chance of each.

    They are all there are, of many things so many draws.
    """
    import numpy as np

    if n > MOST_RUNS:
        counts = np.random.default_rng(0).multinomial(n, [1 / n] * n, size=N_DRAWS)
        return counts, np.full(N_DRAWS, 1 / N_DRAWS)
    drawn = list(combinations_with_replacement(range(n), n))
    counts = np.stack([np.bincount(sample, minlength=n) for sample in drawn])
    ways = [math.factorial(n) / math.prod(map(math.factorial, row)) for row in counts.tolist()]
    return counts, np.asarray(ways) / n**n


@cache
def quantile(freedom: float) -> float:
    """Return the two-sided 95 % quantile of Student's t; the normal's for infinite degrees of freedom."""
    from scipy.special import ndtri, stdtrit

    p = (1 + LEVEL) / 2
    return float(ndtri(p) if math.isinf(freedom) else stdtrit(freedom, p))
