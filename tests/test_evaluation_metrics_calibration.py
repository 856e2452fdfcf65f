"""Metrics of probabilities: agreement with scikit-learn, by hand, and limiting cases."""

import numpy as np
import pytest
import sklearn.metrics

from textbench.evaluation.metrics.calibration import brier_score, calibration_error, log_loss

RNG = np.random.default_rng(0)
TARGETS = RNG.integers(3, size=200)
ONE = TARGETS[:, None] == np.arange(3)
SHARES = RNG.dirichlet([1, 1, 1], 200)


def test_log_loss_is_scikit_learns() -> None:
    assert log_loss(ONE, SHARES, several_labels=False) == pytest.approx(
        sklearn.metrics.log_loss(TARGETS, SHARES)
    )
    each = np.mean([sklearn.metrics.log_loss(ONE[:, label], SHARES[:, label]) for label in range(3)])
    assert log_loss(ONE, SHARES, several_labels=True) == pytest.approx(each)


def test_brier_score_is_scikit_learns() -> None:
    each = [sklearn.metrics.brier_score_loss(ONE[:, label], SHARES[:, label]) for label in range(3)]
    assert brier_score(ONE, SHARES, several_labels=False) == pytest.approx(sum(each))
    assert brier_score(ONE, SHARES, several_labels=True) == pytest.approx(np.mean(each))


def test_calibration_error_by_hand() -> None:
    """Four documents with confidence 0.9, of which three are right, and one with 0.6 that is: (4 x 0.15 + 0.4) / 5."""
    shares = np.array([[0.9, 0.1]] * 4 + [[0.4, 0.6]])
    right = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [0, 1]], dtype=bool)
    assert calibration_error(right, shares, several_labels=False) == pytest.approx(0.2)
    assert calibration_error(right, shares, several_labels=True) == pytest.approx(0.2)


@pytest.mark.parametrize("several", [False, True])
def test_certainty_that_is_right_costs_nothing(several: bool) -> None:
    certain = ONE.astype(float)
    for metric in (log_loss, brier_score, calibration_error):
        assert metric(ONE, certain, several_labels=several) == 0
