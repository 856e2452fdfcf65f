"""Thresholds of several labels: against every cut, by hand, and on labels that SCut alone gives away."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import f1_score

from textbench.evaluation.probes.thresholds import (
    MANY_TIMES,
    MOST_LOST,
    PRIORS,
    best_thresholds,
    thresholds_that_pay,
)


def column(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


@pytest.mark.parametrize("seed", range(20))
def test_without_a_prior_the_threshold_is_that_of_the_best_f1(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(-4, 5, 12) / 2  # ties, and scores of exactly 0
    positive = rng.random(12) < 0.4
    (threshold,) = best_thresholds(column(*scores), positive[:, None], prior=0)
    is_often = (scores > 0).sum() > MANY_TIMES * positive.sum()
    cuts = [0.0, *(np.unique(scores) - 0.25)]
    f1 = {cut: f1_score(positive, scores > cut, zero_division=0) for cut in cuts}
    best = max(f1.values())
    assert threshold <= 0 or is_often
    if threshold == 0 and not is_often:  # it is best, or those that are best are above it
        assert f1[0] == pytest.approx(best) or all(cut > 0 for cut in cuts if f1[cut] > best - 1e-9)
    else:
        assert f1_score(positive, scores > threshold, zero_division=0) == pytest.approx(best)


def test_thresholds_by_hand() -> None:
    positive = column(1, 1, 0, 0) > 0
    found = [
        best_thresholds(column(*scores), positive, prior=0).tolist()
        for scores in ((-1, -2, -4, -5), (1, 0.5, -4, -5), (3, 2, 1, -5), (-1, -1, -1, -1))
    ]
    assert found == [[-3], [0], [0], [-1.5]]
    assert best_thresholds(column(3, 2, 1, 0.5), column(1, 0, 0, 0) > 0, prior=0) == [2.5]  # given four times
    assert best_thresholds(column(-1, -2), column(0, 0) > 0).tolist() == [0]


def test_a_large_prior_is_the_best_micro_f1_of_every_choice() -> None:
    rng = np.random.default_rng(5)
    scores, positive = rng.normal(-1, 1, (8, 3)), rng.random((8, 3)) < 0.4
    scores += positive
    cuts = [[0.0, *(column_scores - 1e-9)] for column_scores in scores.T]
    best = max(
        f1_score(positive, scores > choice, average="micro")
        for choice in itertools.product(*cuts)
        if max(choice) <= 0
    )
    thresholds = best_thresholds(scores, positive, prior=1e9)
    assert f1_score(positive, scores > thresholds, average="micro") == pytest.approx(best, abs=0.02)


def test_a_rare_label_that_cannot_be_told_is_not_given_to_hundreds() -> None:
    rng = np.random.default_rng(0)
    positive = np.zeros((1000, 2), dtype=bool)
    positive[:400, 0], positive[::250, 1] = True, True
    scores = np.where(positive, 1.0, -1.0) + rng.normal(0, 0.4, (1000, 2))
    scores[:, 1] = rng.normal(-1, 0.1, 1000)  # says nothing
    scut, ours = (scores > best_thresholds(scores, positive, prior) for prior in (0, 3))
    assert (
        f1_score(positive, ours, average="micro") >= f1_score(positive, scores > 0, average="micro") - 0.003
    )
    assert ours[:, 1].sum() <= scut[:, 1].sum()


def which_pays(scores: np.ndarray, positive: np.ndarray, folds: np.ndarray) -> int | None:
    """The first prior by whose thresholds folds are decided hardly worse than at 0, by scikit-learn's F1 and loops."""
    occur = positive.any(axis=0)

    def figures(decided: np.ndarray) -> tuple[float, float]:
        seen = occur | decided.any(axis=0)
        micro = f1_score(positive, decided, average="micro", zero_division=0)
        return micro, f1_score(positive[:, seen], decided[:, seen], average="macro", zero_division=0)

    for prior in PRIORS:
        decided = np.zeros_like(positive)
        for document in range(len(scores)):
            others = folds != folds[document]
            cuts = best_thresholds(scores[others], positive[others], prior)
            decided[document] = scores[document] > cuts
        micro, macro = np.subtract(figures(decided), figures(scores > 0))
        if micro >= -MOST_LOST - 1e-12 and macro >= -1e-12:
            return prior
    return None


def test_the_smallest_prior_that_pays_out_of_fold_is_taken() -> None:
    seen = set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        positive = rng.random((45, 4)) < (0.3, 0.2, 0.1, 0.1)
        positive[:3] = True
        scores = np.where(positive, 0.4, -0.8) + rng.normal(0, 0.6, positive.shape)
        folds = rng.permutation(45) % 3
        found = thresholds_that_pay(scores, positive, folds)
        prior = which_pays(scores, positive, folds)
        expected = np.zeros(4) if prior is None else best_thresholds(scores, positive, prior)
        np.testing.assert_array_equal(found, expected)
        seen.add(prior)
    assert {PRIORS[0], None} < seen  # often the first, now and then none, and what lies between


def test_scores_of_one_fold_have_the_first_prior() -> None:
    rng = np.random.default_rng(0)
    positive = rng.random((20, 3)) < 0.3
    scores = rng.normal(size=(20, 3))
    found = thresholds_that_pay(scores, positive, np.zeros(20, dtype=int))
    np.testing.assert_array_equal(found, best_thresholds(scores, positive))
