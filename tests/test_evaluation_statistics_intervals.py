"""Student's intervals against a printed table and scipy.stats."""

import math

import numpy as np
import pytest
from scipy import stats

from textbench.evaluation.statistics.intervals import documents_half_width, mean_interval
from textbench.evaluation.statistics.significance import bootstrap
from textbench.evaluation.statistics.sufficient_statistics import (
    ONE_LABEL,
    SEVERAL_LABELS,
    indicator_tally,
    label_tally,
    mean_tally,
)


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


@pytest.mark.parametrize("n_right", [97, 60])
def test_accuracy_over_documents_has_the_interval_of_a_proportion(n_right: int) -> None:
    right = np.arange(100) < n_right
    p = n_right / 100
    expected = 1.9842169515 * math.sqrt(p * (1 - p) / 99)  # Student's t at 97.5 % with 99 degrees of freedom
    assert documents_half_width(mean_tally(right)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("metric", ONE_LABEL)
def test_over_documents_it_is_what_the_bootstrap_finds(metric: str) -> None:
    rng = np.random.default_rng(0)
    target = rng.choice(4, p=[0.5, 0.3, 0.15, 0.05], size=2000)
    predicted = np.where(rng.random(2000) < 0.8, target, rng.integers(4, size=2000))
    tally = label_tally(metric, target, predicted)
    low, high = np.quantile(bootstrap([tally], 4000), [0.025, 0.975])
    assert documents_half_width(tally) == pytest.approx((high - low) / 2, rel=0.06)


def test_over_documents_blocks_of_columns_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    target, predicted = rng.integers(12, size=(2, 400))
    tally = label_tally("macro_f1", target, predicted)
    whole = documents_half_width(tally)
    monkeypatch.setattr("textbench.evaluation.statistics.intervals.BLOCK", 5)
    assert documents_half_width(tally) == whole > 0


def test_over_documents_of_several_labels_and_without_doubt() -> None:
    rng = np.random.default_rng(1)
    true = rng.random((1500, 6)) < 0.3
    found = true ^ (rng.random((1500, 6)) < 0.1)
    found[:, 5] = true[:, 5] = False  # a label nobody has
    for metric in SEVERAL_LABELS:
        tally = indicator_tally(metric, true, found)
        low, high = np.quantile(bootstrap([tally], 2000), [0.025, 0.975])
        assert documents_half_width(tally) == pytest.approx((high - low) / 2, rel=0.08)
    assert documents_half_width(indicator_tally("macro_f1", true, true)) == pytest.approx(0, abs=1e-9)


def test_one_document_has_no_interval_over_documents() -> None:
    assert math.isnan(documents_half_width(mean_tally(np.array([1.0]))))
    with pytest.raises(ValueError, match="level must lie between 0 and 1; received 2"):
        documents_half_width(mean_tally(np.ones(2)), 2)
