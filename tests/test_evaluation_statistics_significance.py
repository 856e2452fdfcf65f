"""Paired tests against worked examples of the literature, counting by hand, and the statistics libraries."""

import math

import numpy as np
import pytest
from scipy import stats

from textbench.evaluation.statistics.significance import (
    average_ranks,
    bootstrap,
    detectable_by_bootstrap,
    detectable_difference,
    difference,
    holm,
    mcnemar_exact,
    paired_difference,
    paired_t,
)
from textbench.evaluation.statistics.sufficient_statistics import (
    SufficientStatistics,
    label_tally,
    mean_of,
    mean_tally,
)

# Demsar (2006), table 6: AUC of C4.5 and three variants (m, cf, m and cf tuned) on 14 data sets. Of the two figures
# printed as 0.975 the paper ranks the first higher.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def answers(both: int, first: int, second: int, neither: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classifiers' right answers with these counts."""
    counts = [both, first, second, neither]
    return np.repeat([True, True, False, False], counts), np.repeat([True, False, True, False], counts)


def test_mcnemar_by_hand() -> None:
    """1 against 9 of 10 documents: (1 + 10) of 2^10 outcomes are as extreme on one side."""
    test = mcnemar_exact(*answers(50, 1, 9, 3))
    assert (test.first_only, test.second_only) == (1, 9)
    assert test.p == pytest.approx(2 * 11 / 1024)


def test_mcnemar_on_approval_ratings() -> None:
    """Agresti, Categorical Data Analysis, table of the prime minister's ratings: 150 against 86, z = -4.17."""
    test = mcnemar_exact(*answers(794, 150, 86, 570))
    exact = 2 * sum(math.comb(236, k) for k in range(87)) / 2**236
    assert test.p == pytest.approx(exact, rel=1e-9)
    assert test.p == pytest.approx(2 * stats.norm.sf(4.17), rel=0.3)


@pytest.mark.parametrize("counts", [(3, 7), (0, 5), (12, 12), (40, 61), (1, 0)])
def test_mcnemar_agrees_with_statsmodels_and_scipy(counts: tuple[int, int]) -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    first, second = counts
    p = mcnemar_exact(*answers(20, first, second, 4)).p
    assert p == pytest.approx(mcnemar([[20, first], [second, 4]], exact=True).pvalue)
    assert p == pytest.approx(stats.binomtest(first, first + second).pvalue)


def test_mcnemar_of_a_method_with_itself() -> None:
    right = np.array([True, False, True])
    assert mcnemar_exact(right, right).p == 1.0
    with pytest.raises(ValueError, match=r"received \(3,\) and \(2,\)"):
        mcnemar_exact(right, right[:2])


def test_bootstrap_enumerates_the_samples_of_three_documents() -> None:
    """With 3 documents there are 27 samples; their means have a distribution that can be written down."""
    values = np.array([0.0, 0.0, 1.0])
    draws = bootstrap([mean_tally(values)], n_draws=40_000)[:, 0]
    shares = [(np.abs(draws - k / 3) < 1e-12).mean() for k in range(4)]
    assert shares == pytest.approx([8 / 27, 12 / 27, 6 / 27, 1 / 27], abs=0.01)


def test_bootstrap_has_the_standard_error_of_a_mean() -> None:
    values = np.random.default_rng(0).normal(size=400)
    draws = bootstrap([mean_tally(values)])[:, 0]
    assert draws.std() == pytest.approx(values.std() / 20, rel=0.03)
    low, high = stats.bootstrap((values,), np.mean, method="percentile", rng=1).confidence_interval
    assert difference(values.mean(), draws).low == pytest.approx(low, abs=0.01)
    assert difference(values.mean(), draws).high == pytest.approx(high, abs=0.01)


@pytest.mark.parametrize("n_kinds", [2, 400])
def test_bootstrap_repeats_itself(n_kinds: int) -> None:
    """Both ways of drawing, of kinds and of documents, do; and they mean the same."""
    values = np.arange(400.0) % n_kinds
    draws = bootstrap([mean_tally(values)], n_draws=4000)
    assert np.array_equal(draws, bootstrap([mean_tally(values)], n_draws=4000))
    assert draws.mean() == pytest.approx(values.mean(), rel=0.01)
    assert draws.std() == pytest.approx(values.std() / 20, rel=0.05)


@pytest.mark.parametrize("n_classes", [3, 40])
def test_all_metrics_see_the_same_samples(n_classes: int) -> None:
    """What two tallies share cancels sample by sample, few kinds of documents or many."""
    rng = np.random.default_rng(1)
    true, predicted = rng.integers(0, n_classes, (2, 300))
    tallies = [label_tally("accuracy", true, predicted), label_tally("macro_f1", true, predicted)]
    draws = bootstrap([*tallies, mean_tally((true == predicted) + 1.0), tallies[1]], n_draws=200)
    assert draws[:, 2] - draws[:, 0] == pytest.approx(np.ones(200))
    assert np.array_equal(draws[:, 1], draws[:, 3])
    assert draws[:, 1].std() > 0


def test_tallies_of_other_documents_are_refused() -> None:
    with pytest.raises(ValueError, match=r"received \[2, 3\] documents"):
        bootstrap([mean_tally(np.ones(2)), mean_tally(np.ones(3))])
    with pytest.raises(ValueError, match=r"received \[0\] documents"):
        bootstrap([SufficientStatistics(np.empty((0, 1)), lambda sums: sums[:, 0])])


def test_paired_bootstrap_agrees_with_mcnemar_on_many_documents() -> None:
    """Both test the same hypothesis: with many documents their p values meet."""
    first, second = answers(700, 130, 100, 70)
    apart = first.astype(float) - second
    draws = bootstrap([mean_tally(first), mean_tally(second)])
    found = difference(apart.mean(), draws[:, 0] - draws[:, 1])
    assert found.value == pytest.approx(0.03)
    assert found.p == pytest.approx(mcnemar_exact(first, second).p, abs=0.01)


def test_p_and_interval_say_the_same() -> None:
    rng = np.random.default_rng(5)
    for shift in np.linspace(-4, 4, 41):
        draws = shift + rng.normal(size=2000)
        found = difference(shift, draws)
        if abs(found.p - 0.05) > 0.002:
            assert (found.p < 0.05) == (found.low > 0 or found.high < 0)


def test_gaps_that_rounding_alone_sets_apart_are_alike() -> None:
    first, second = {0: 0.3, 1: 0.2, 2: 0.9}, {0: 0.2, 1: 0.1, 2: 0.8}
    assert len({first[draw] - second[draw] for draw in first}) == 2
    assert paired_t(first, second) == (pytest.approx(0.1), 1.0)


@pytest.mark.parametrize(("n", "apart"), [(1, 1), (3, 3), (12, 4), (140, 4), (2000, 4), (2000, 5)])
def test_few_documents_that_tell_two_methods_apart_prove_no_more_than_mcnemar(n: int, apart: int) -> None:
    """One-sided cases, where the bootstrap draws no document that speaks for the other method."""
    first, second = answers(n - apart, apart, 0, 0)
    tallies = [mean_tally(first), mean_tally(second)]
    draws = bootstrap(tallies) @ [1, -1]
    exact = mcnemar_exact(first, second).p
    found = paired_difference(*tallies, draws)
    assert found.p == pytest.approx(exact) and difference(found.value, draws).p < 0.05 < exact
    assert paired_difference(*tallies[::-1], -draws).p == found.p


@pytest.mark.parametrize("absent", [(3, 4), (3, 3), (9, 3)])
def test_few_documents_count_where_methods_name_classes_that_are_not_there(absent: tuple[int, int]) -> None:
    """Columns of two methods go by other classes then; their answers do not."""
    target = np.arange(2000) % 3
    first, second = target.copy(), target.copy()
    first[0], second[1], second[2:5] = absent[0], absent[1], (target[2:5] + 1) % 3
    tallies = [label_tally("macro_f1", target, one) for one in (first, second)]
    found = paired_difference(*tallies, bootstrap(tallies) @ [1, -1])
    assert found.p >= 2**-4
    several = [mean_of([one, one]) for one in tallies]
    assert paired_difference(*several, bootstrap(several) @ [1, -1]).p >= 2**-4


def test_many_documents_that_differ_leave_the_bootstrap_its_p() -> None:
    first, second = answers(700, 130, 100, 70)
    tallies = [mean_tally(first), mean_tally(second)]
    draws = bootstrap(tallies) @ [1, -1]
    assert paired_difference(*tallies, draws) == difference(tallies[0].value - tallies[1].value, draws)
    assert paired_difference(tallies[0], tallies[0], 0 * draws).p == 1
    wide = SufficientStatistics(np.ones((1000, 3)), lambda sums: sums[:, 0] / sums[:, 1])
    assert paired_difference(wide, tallies[0], draws).p == difference(wide.value - tallies[0].value, draws).p


def test_p_goes_on_where_no_draw_is_on_the_other_side() -> None:
    """There it is that of the normal distribution, and never more than what the draws alone tell."""
    noise = np.random.default_rng(5).normal(size=2000)
    floor = 2 / 2001
    for shift in (-9.0, 6.0, 12.0):
        assert difference(shift, shift + noise).p == pytest.approx(
            2 * stats.norm.sf(abs(shift) / noise.std())
        )
    # No draw is beyond 0, though the normal distribution has more than the floor there.
    near = np.abs(noise).max() + 0.01
    assert difference(0.01, noise + near).p == floor
    assert difference(1.0, np.ones(2000)).p == floor  # draws that are all alike have no deviation


def test_no_difference_at_all() -> None:
    found = difference(0.0, np.zeros(1000))
    assert (found.low, found.high, found.p) == (0, 0, 1.0)


def test_holm_by_hand() -> None:
    """Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1, never falling."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.7, 0.9]) == [1.0, 1.0]


def test_holm_agrees_with_statsmodels() -> None:
    from statsmodels.stats.multitest import multipletests

    for seed in range(20):
        p_values = np.random.default_rng(seed).random(12) ** 3
        assert holm(p_values.tolist()) == pytest.approx(multipletests(p_values, method="holm")[1])


def test_ranks_of_demsar() -> None:
    """Section 3.2.2: average ranks 3.143, 2.000, 2.893, 1.964, Friedman 9.28; section 3.2.3: CD = 1.25 at 0.05."""
    ranks = average_ranks(DEMSAR)
    assert ranks.average == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    # The paper's 9.28 leaves out the correction for ties that scipy makes.
    n, k = DEMSAR.shape
    plain = 12 * n / (k * (k + 1)) * (np.sum(ranks.average**2) - k * (k + 1) ** 2 / 4)
    assert plain == pytest.approx(9.28, abs=5e-3)
    assert ranks.statistic == pytest.approx(stats.friedmanchisquare(*DEMSAR.T).statistic)
    assert ranks.critical_difference == pytest.approx(1.25, abs=5e-3)
    assert average_ranks(DEMSAR, level=0.10).critical_difference == pytest.approx(1.12, abs=5e-3)


def test_nemenyi_agrees_with_scikit_posthocs() -> None:
    """Ranks a critical difference apart have p = 0.05 there."""
    from scikit_posthocs import posthoc_nemenyi_friedman

    ranks = average_ranks(DEMSAR)
    p_values = posthoc_nemenyi_friedman(DEMSAR).to_numpy()
    apart = np.abs(ranks.average[:, None] - ranks.average)
    for i, j in zip(*np.triu_indices(4, 1), strict=True):
        assert (p_values[i, j] < 0.05) == (apart[i, j] >= ranks.critical_difference)
        q = apart[i, j] / np.sqrt(4 * 5 / (6 * 14)) * np.sqrt(2)
        assert p_values[i, j] == pytest.approx(stats.studentized_range.sf(q, 4, np.inf), abs=1e-6)


def test_ranks_of_two_methods_and_of_ties() -> None:
    ranks = average_ranks(np.array([[0.9, 0.8], [0.7, 0.7]]))
    assert ranks.average.tolist() == [1.25, 1.75]
    assert ranks.p is None
    assert average_ranks(np.ones((3, 3))).p is None
    with pytest.raises(ValueError, match=r"received \(1, 3\)"):
        average_ranks(np.ones((1, 3)))


@pytest.mark.parametrize(("n", "n_tests"), [(3, 5), (5, 1), (20, 44)])
def test_a_detectable_difference_is_detected_four_times_in_five(n: int, n_tests: int) -> None:
    """By the non-central t distribution, for differences whose spread is as it was found."""
    first = dict(enumerate(np.random.default_rng(n).normal(0.9, 0.01, n)))
    second = dict.fromkeys(first, 0.9)
    found = detectable_difference(first, second, n_tests)
    error = stats.sem(list(first.values()))
    edge = stats.t.ppf(1 - 0.05 / n_tests / 2, n - 1)
    assert found is not None
    assert 1 - stats.nct.cdf(edge, n - 1, found / error) == pytest.approx(0.8, abs=1e-6)
    assert detectable_difference({0: 0.9}, {0: 0.8}, n_tests) is None


def test_a_difference_that_a_bootstrap_would_find_is_found_four_times_in_five() -> None:
    """Normal differences of a known standard error, tested at the smallest of Holm's levels."""
    rng = np.random.default_rng(0)
    error, n_tests = 0.004, 6
    found = detectable_by_bootstrap(rng.normal(0.01, error, 20_000), n_tests)
    estimates = rng.normal(found, error, 20_000)
    p = 2 * stats.norm.sf(np.abs(estimates) / error)
    assert np.mean(p < 0.05 / n_tests) == pytest.approx(0.8, abs=0.02)
