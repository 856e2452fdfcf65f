"""The yardstick: its algebra by other formulas, and how often it covers the figure of a made paper that is right."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score

from textbench.evaluation.claims.yardstick import Split, allowance, largest_error

VALUES = [83.311206, 83.603293, 83.470526, 83.961763, 83.93521]
N_WORLDS = 3000


def test_without_chance_nothing_may_differ() -> None:
    found = allowance([80.443441], is_random=False)
    assert (found.interval.low, found.interval.high) == (80.443441, 80.443441)


def test_one_run_of_a_random_method_tells_nothing() -> None:
    assert math.isnan(allowance([80.0], is_random=True).interval.half_width)
    with pytest.raises(ValueError, match="at least one figure"):
        allowance([], is_random=True)


@pytest.mark.parametrize("m", [1, 5])
def test_a_prediction_interval_is_that_of_two_samples_of_one_spread(m: int) -> None:
    """The half width is what makes Student's two-sample test, its spread from one of them alone, just significant."""
    found = allowance(VALUES, is_random=True, n_published=m).interval
    error = np.std(VALUES, ddof=1) * math.sqrt(1 / m + 1 / 5)
    p = 2 * stats.t.sf((found.high - found.value) / error, df=4)
    assert (found.value, p) == (pytest.approx(np.mean(VALUES)), pytest.approx(0.05))
    assert found.low + found.high == pytest.approx(2 * found.value)


def test_another_split_adds_the_test_documents_of_both_sides() -> None:
    same = allowance(VALUES, is_random=True).interval
    none = allowance(VALUES, is_random=True, split=Split(0.0, 0.3)).interval
    assert none.half_width == pytest.approx(same.half_width)
    # Where all documents are tested there is one split.
    assert allowance(VALUES, is_random=True, split=Split(3.0, 1.0)).interval.half_width == pytest.approx(
        same.half_width
    )
    alone = allowance([95.0], is_random=False, split=Split(0.4, 0.3)).interval
    assert alone.half_width == pytest.approx(1.959964 * 0.4 * math.sqrt(2 * 0.7))
    # With little of the seeds' chance the degrees of freedom of Welch's test hardly matter.
    spread = np.std(VALUES, ddof=1)
    wide = allowance(VALUES, is_random=True, split=Split(5.0, 0.3)).interval
    variance = 1.2 * spread**2 + 1.4 * 25
    assert wide.half_width == pytest.approx(1.959964 * math.sqrt(variance), rel=1e-3)


def test_degrees_of_freedom_are_welchs() -> None:
    """Of two variances, one known and one of n - 1 degrees: as scipy's test has it for a very large second sample."""
    spread, split = np.std(VALUES, ddof=1), Split(0.5, 0.3)
    one, other = 1.2 * spread**2, 1.4 * 0.25
    freedom = (one + other) ** 2 / (one**2 / 4)
    found = allowance(VALUES, is_random=True, split=split).interval
    assert found.half_width == pytest.approx(stats.t.ppf(0.975, freedom) * math.sqrt(one + other))


def test_a_bounded_figure_stays_between_its_bounds() -> None:
    two = allowance([0.0, 1.0, 1.0, 1.0, 1.0], is_random=True, bounds=(0.0, 1.0)).interval
    assert (two.low, two.high) == (0.0, 1.0)
    one_side = allowance([0.9, 0.95, 0.96, 0.97, 0.92], is_random=True, bounds=(0.0, 1.0)).interval
    assert 0.8 < one_side.low < 0.9
    assert one_side.high == 1.0
    same = allowance([0.0] * 5, is_random=True, bounds=(0.0, 1.0)).interval
    assert (same.low, same.high) == (0.0, 0.0)


def test_the_bootstrap_goes_through_what_drawing_would_find() -> None:
    values = np.array([0.02, 0.03, 0.2, 0.6, 0.9])
    rng = np.random.default_rng(0)
    means = values[rng.integers(5, size=(400_000, 5))].mean(axis=1)
    low, high = np.quantile(values[rng.integers(5, size=400_000)] - means, [0.005, 0.995])
    stretch = math.sqrt(5 / 4) * stats.t.ppf(0.975, 4) / stats.norm.ppf(0.975)
    found = allowance(values.tolist(), is_random=True, bounds=(-10.0, 10.0)).interval
    assert found.low == pytest.approx(values.mean() + stretch * low, abs=0.03)
    assert found.high == pytest.approx(values.mean() + stretch * high, abs=0.03)
    many = allowance(np.linspace(0, 1, 30).tolist(), is_random=True, bounds=(0.0, 1.0)).interval
    assert (many.low, many.high) == (pytest.approx(0.02, abs=0.05), pytest.approx(0.98, abs=0.05))


def coverage(ours: np.ndarray, theirs: np.ndarray, **how: object) -> float:
    """How often the figures of made papers (n_worlds,) lie where runs here (n_worlds, n_runs) allow them."""
    errors = how.pop("errors", None)
    hits = 0
    for place, (own, published) in enumerate(zip(ours.tolist(), theirs.tolist(), strict=True)):
        split = None if errors is None else Split(float(errors[place]), 0.3)  # type: ignore[index]
        found = allowance(own, split=split, **({"is_random": True} | how)).interval  # type: ignore[arg-type]
        hits += found.low - 1e-9 <= published <= found.high + 1e-9
    return hits / len(ours)


def test_a_paper_without_chance_is_met_to_the_bit() -> None:
    figures = np.random.default_rng(1).uniform(0, 100, N_WORLDS)
    assert coverage(figures[:, None], figures, is_random=False) == 1


@pytest.mark.parametrize(("n", "m"), [(5, 1), (5, 5), (3, 1), (10, 1)])
def test_coverage_of_seeds(n: int, m: int) -> None:
    rng = np.random.default_rng(n + m)
    ours = rng.normal(80, 0.3, (N_WORLDS, n))
    theirs = rng.normal(80, 0.3, (N_WORLDS, m)).mean(axis=1)
    assert 0.93 <= coverage(ours, theirs, n_published=m) <= 0.97


def test_coverage_of_the_rate_of_a_class() -> None:
    """One class's recall on the same 376 documents: most are right or wrong with any seed, some are a toss-up."""
    rng = np.random.default_rng(3)
    n_open = 60
    right = 280 + rng.binomial(n_open, 0.6, (N_WORLDS, 6))
    rates = 100 * right / 376
    assert 0.93 <= coverage(rates[:, :5], rates[:, 5]) <= 0.97


@pytest.mark.parametrize("m", [1, 5])
@pytest.mark.parametrize("kind", ["right or wrong", "graded", "weighted F1"])
def test_coverage_of_another_split(kind: str, m: int) -> None:
    """Two random splits of one pool, its documents hard or easy, and seeds that shift all of them a little.

    With the error that these test documents have, 95 %. With the largest that they could have, which claims are judged
    by, more, but not by so much that no figure would be refused: one that is off by three spreads of a run.
    """
    rng = np.random.default_rng(4)
    n_pool, n_test, n, n_worlds = 400, 120, 5, 1000
    ours, theirs = np.empty((n_worlds, n)), np.empty(n_worlds)
    own_errors, largest = np.empty(n_worlds), np.empty(n_worlds)
    for world in range(n_worlds):
        ease = rng.beta(1, 0.1, n_pool)  # few are a toss-up
        labels = rng.integers(5, size=n_pool)
        drawn = rng.permuted(np.tile(np.arange(n_pool), (2, 1)), axis=1)[:, :n_test]
        seeds = rng.normal(0, 0.01, n + m)
        tested = np.stack([drawn[0]] * n + [drawn[1]] * m)
        chance = np.clip(ease[tested] + seeds[:, None], 0, 1)
        right = rng.random(chance.shape) < chance
        scores = chance if kind == "graded" else right.astype(float)
        if kind == "weighted F1":
            said = np.where(right, labels[tested], (labels[tested] + rng.integers(1, 5, right.shape)) % 5)
            pairs = zip(labels[tested], said, strict=True)
            figures = np.array([100 * f1_score(*pair, average="weighted") for pair in pairs])
        else:
            figures = 100 * scores.mean(axis=1)
        ours[world], theirs[world] = figures[:n], figures[n:].mean()
        own_errors[world] = 100 * scores[:n].mean(axis=0).std(ddof=1) / math.sqrt(n_test)
        largest[world] = largest_error(figures[:n].mean(), (0.0, 100.0), n_test)
    assert 0.93 <= coverage(ours, theirs, errors=own_errors, n_published=m) <= 0.97
    assert 0.95 <= coverage(ours, theirs, errors=largest, n_published=m) <= 0.997
    off = theirs + 3 * np.hypot(ours.std(axis=1, ddof=1), 1.2 * largest)
    assert coverage(ours, off, errors=largest, n_published=m) < 0.6


@pytest.mark.parametrize("kind", ["two modes", "normal", "anything between", "near a bound"])
def test_coverage_of_a_probability(kind: str) -> None:
    """Of two modes, whose shares differ from paper to paper, all runs here may show one, and the paper's the other."""
    rng, shape = np.random.default_rng(5), (N_WORLDS, 6)
    near_one = rng.random(shape) < rng.random(N_WORLDS)[:, None]
    figures = {
        "two modes": np.where(near_one, rng.beta(40, 1.5, shape), rng.beta(1.5, 40, shape)),
        "normal": rng.normal(0.5, 0.05, shape),
        "anything between": rng.random(shape),
        "near a bound": rng.beta(1.5, 40, shape),
    }[kind]
    assert 0.93 <= coverage(figures[:, :5], figures[:, 5], bounds=(0.0, 1.0)) <= 0.97


def test_coverage_of_ratios_of_seconds() -> None:
    rng = np.random.default_rng(6)
    logs = rng.normal(math.log(25), 0.1, (N_WORLDS, 4))
    assert 0.93 <= coverage(logs[:, :3], logs[:, 3]) <= 0.97


def test_an_interval_of_our_mean_alone_would_not_do() -> None:
    """What was judged by before: as if the paper's seed had no luck."""
    rng = np.random.default_rng(7)
    figures = rng.normal(80, 0.3, (N_WORLDS, 6))
    ours, theirs = figures[:, :5], figures[:, 5]
    half = stats.t.ppf(0.975, 4) * ours.std(axis=1, ddof=1) / math.sqrt(5)
    assert np.mean(np.abs(theirs - ours.mean(axis=1)) <= half) < 0.75
