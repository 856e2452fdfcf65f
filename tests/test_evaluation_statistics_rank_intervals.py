import math

import numpy as np
import pytest
from scipy import stats

from textbench.evaluation.statistics.intervals import mean_interval
from textbench.evaluation.statistics.rank_intervals import better, rank_intervals, tie_groups, welch

FAR = ([0.9, 0.8, 0.7], [0.01, 0.01, 0.01])


def test_means_far_apart_have_one_rank_and_one_letter_each() -> None:
    told = better(*FAR)
    assert rank_intervals(told, FAR[1]) == [(1, 1), (2, 2), (3, 3)]
    assert tie_groups(told, FAR[1]) == ["a", "b", "c"]


def test_a_lower_figure_is_better_where_the_metric_falls() -> None:
    assert rank_intervals(better(*FAR, is_rising=False), FAR[1]) == [(3, 3), (2, 2), (1, 1)]


def test_a_chain_of_neighbours_shares_letters() -> None:
    halves = [0.02, 0.02, 0.02]
    told = better([0.90, 0.87, 0.84], halves)  # the ends differ, neighbours do not
    assert tie_groups(told, halves) == ["a", "ab", "b"]
    assert rank_intervals(told, halves) == [(1, 2), (1, 3), (2, 3)]


def test_what_has_no_interval_has_no_rank_and_counts_in_none() -> None:
    halves = [0.01, math.nan, 0.01]
    told = better([0.9, 0.95, 0.7], halves)
    assert rank_intervals(told, halves) == [(1, 1), None, (2, 2)]
    assert tie_groups(told, halves) == ["a", "", "b"]


def test_two_means_are_compared_as_by_the_normal_distribution() -> None:
    # 1.96 standard errors of the difference, sqrt(2) times half the interval, is the edge.
    edge = 0.01 * math.sqrt(2)
    assert better([0.5 + 1.001 * edge, 0.5], [0.01, 0.01]).any()
    assert not better([0.5 + 0.999 * edge, 0.5], [0.01, 0.01]).any()


def test_true_ranks_lie_in_all_intervals_at_least_95_times_of_100() -> None:
    rng = np.random.default_rng(0)
    truth = np.array([0.9, 0.9, 0.89, 0.88, 0.8])
    covered = 0
    for _ in range(400):
        means = truth + rng.normal(0, 0.01 / 1.96, len(truth))
        found = rank_intervals(better(means, [0.01] * 5), [0.01] * 5)
        best = [1 + int((truth > t).sum()) for t in truth]
        worst = [int((truth >= t).sum()) for t in truth]
        covered += all(r[0] <= w and r[1] >= b for r, b, w in zip(found, best, worst, strict=True))
    assert covered / 400 >= 0.95


def test_p_that_is_recorded_at_the_floor_of_its_draws_keeps_no_pair_of_a_large_board_together() -> None:
    """Intervals that tell more stand for it; elsewhere the paired test does, whatever intervals tell."""
    means, halves = np.linspace(0.9, 0.1, 23).tolist(), [0.001] * 23
    pairs = [(i, j) for i in range(23) for j in range(i + 1, 23)]
    told = better(means, halves, paired=dict.fromkeys(pairs, 2 / 10_001))
    assert rank_intervals(told, halves) == [(rank, rank) for rank in range(1, 24)]
    assert not better(means, halves, paired=dict.fromkeys(pairs, 3 / 10_001)).any()


@pytest.mark.parametrize(("n_methods", "n_seeds"), [(10, 2), (37, 3), (37, 5)])
def test_few_seeds_tell_equal_means_apart_in_5_boards_of_100_at_most(n_methods: int, n_seeds: int) -> None:
    """Half-widths are Student's; the normal distribution finds differences in 21 to 41 % of boards of 37."""
    rng = np.random.default_rng(0)
    found = 0
    for values in rng.normal(0.8, 0.01, (300, n_methods, n_seeds)):
        means, halves = zip(*(mean_interval(own.tolist()) for own in values), strict=True)
        found += bool(better(means, halves, degrees=[n_seeds - 1] * n_methods).any())
    assert found / 300 <= 0.05


def test_pairs_are_tested_as_scipy_tests_them() -> None:
    rng = np.random.default_rng(1)
    groups = [rng.normal(0.8, spread, n) for spread, n in ((0.01, 3), (0.02, 5), (0.005, 2))]
    means, halves = zip(*(mean_interval(own.tolist()) for own in groups), strict=True)
    pairs = [(0, 1), (0, 2), (1, 2)]
    distance = np.array([means[i] - means[j] for i, j in pairs])
    found = welch(distance, np.array(halves), [len(own) - 1 for own in groups])
    assert found == pytest.approx(
        [stats.ttest_ind(groups[i], groups[j], equal_var=False).pvalue for i, j in pairs]
    )
    # Over thousands of documents the degrees have no end, beside few seeds those of the seeds are left.
    mixed = welch(np.array([0.03]), np.array([1.959964 * 0.01, 0.0]), [math.inf, math.inf])
    assert mixed == pytest.approx([2 * stats.norm.sf(3)], rel=1e-5)
    assert welch(np.array([0.1]), np.zeros(2), [math.inf] * 2)[0] == 0
    assert welch(np.array([0.0]), np.zeros(2), [1, 1])[0] == 1


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_means_are_no_comparison(n: int) -> None:
    told = better([0.5] * n, [0.1] * n)
    assert rank_intervals(told, [0.1] * n) == [(1, 1)] * n
    assert tie_groups(told, [0.1] * n) == ["a"] * n
