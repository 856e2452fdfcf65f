"""Student's intervals against a printed table and scipy.stats."""

import math

import numpy as np
import pytest
from scipy import stats

from evaluation.intervals import mean_interval


def test_five_seeds_by_hand() -> None:
    # Sum of squares 10, variance 2.5, t(4 degrees, 97.5 %) = 2.776 in any printed table.
    mean, half_width = mean_interval([1, 2, 3, 4, 5])
    assert mean == 3
    assert half_width == pytest.approx(2.776 * math.sqrt(2.5 / 5), abs=1e-3)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_agreement_with_scipy(level: float) -> None:
    values = np.random.default_rng(0).normal(0.9, 0.01, 7)
    mean, half_width = mean_interval(values, level)
    low, high = stats.t.interval(level, df=6, loc=values.mean(), scale=stats.sem(values))
    assert (mean - half_width, mean + half_width) == pytest.approx((low, high))


def test_limiting_cases() -> None:
    assert mean_interval([0.5, 0.5, 0.5]) == (0.5, 0.0)
    mean, half_width = mean_interval([0.25])
    assert mean == 0.25
    assert math.isnan(half_width)
    with pytest.raises(ValueError, match="at least one"):
        mean_interval([])
    with pytest.raises(ValueError, match=r"between 0 and 1; received 95"):
        mean_interval([1, 2], level=95)
