"""The test of tonight's seconds against those of earlier nights."""

import numpy as np
import pytest
from scipy.stats import t

from textbench.evaluation.statistics.slower import PRIOR, above_p


def test_one_series_has_students_prediction_interval() -> None:
    before = [0.0, 0.1, -0.1, 0.05, -0.05]
    quantile = t.ppf(0.975, 4) * np.std(before, ddof=1) * np.sqrt(1 + 1 / 5)
    assert above_p([before], [float(np.mean(before) + quantile)]) == pytest.approx([0.025])
    assert above_p([before], [float(np.mean(before))]) == pytest.approx([0.5])


def test_a_variance_is_drawn_to_that_of_the_others() -> None:
    calm, wild = [0.0, 0.02] * 5, [0.0, 0.2] * 5
    alone, beside = above_p([calm], [0.1])[0], above_p([calm, wild], [0.1, 0.1])[0]
    variance = (PRIOR * np.var(wild, ddof=1) + 9 * np.var(calm, ddof=1)) / (PRIOR + 9)
    wanted = t.sf(0.09 / np.sqrt(variance * 1.1), PRIOR + 9)
    assert beside == pytest.approx(wanted) and alone < beside


def test_series_without_any_noise_are_told_apart_by_one_percent_of_a_clock() -> None:
    assert above_p([[1.0] * 9], [1.0]) == pytest.approx([0.5])
    assert above_p([[1.0] * 9], [1.1])[0] < 1e-4


def test_too_few_figures_are_refused() -> None:
    with pytest.raises(ValueError, match="two figures"):
        above_p([[1.0]], [1.0])
