"""The rule of verdicts on made cases, one of each kind and its borders."""

import math

import pytest

from textbench.evaluation.claims.verdicts import (
    Comparison,
    Interval,
    beyond_ceiling,
    judge_figure,
    judge_order,
    settle,
)


def printed(value: float, half: float = 0.05) -> Interval:
    return Interval(value, value - half, value + half)


@pytest.mark.parametrize(
    ("published", "measured", "kind"),
    [
        (printed(84.6), Interval(84.4, 84.1, 84.7), "reproduced"),
        # By the rounding of the printed figure alone.
        (printed(84.6), Interval(84.0, 83.45, 84.55), "reproduced"),
        (printed(84.6), Interval(84.0, 83.46, 84.54), "not reproduced"),
        (printed(84.6), Interval(85.2, 84.66, 85.74), "better than published"),
        (printed(84.6), Interval(84.6, 83.6, 85.6), "reproduced"),  # exactly one point to each side
        (printed(84.6), Interval(84.6, 83.5, 85.7), "undecided"),
        # No wider than the print is rounded by.
        (printed(80.0, 5.0), Interval(83.0, 81.5, 84.5), "reproduced"),
        (printed(80.0, 5.0), Interval(83.0, 77.9, 88.1), "undecided"),
        # Without chance only rounding is granted.
        (printed(79.7), Interval(79.65, 79.65, 79.65), "reproduced"),
        (printed(79.7), Interval(79.6499, 79.6499, 79.6499), "not reproduced"),
        (printed(84.6), Interval(80.0, 77.0, 83.0), "not reproduced"),  # wide, and yet clear
        (printed(84.6), Interval(84.6, math.nan, math.nan), "undecided"),
    ],
)
def test_a_figure_against_an_interval(published: Interval, measured: Interval, kind: str) -> None:
    assert judge_figure(published, measured, widest=1.0).kind == kind


def test_lower_may_be_better() -> None:
    measured = Interval(2.0, 1.9, 2.1)
    assert (
        judge_figure(printed(6.48, 0.005), measured, higher_is_better=False).kind == "better than published"
    )
    assert judge_figure(printed(1.5, 0.005), measured, higher_is_better=False).kind == "not reproduced"


def test_a_ratio_may_be_no_wider_than_a_factor() -> None:
    ratio = Interval(12.4, 12.3, 12.5)
    assert judge_figure(ratio, Interval(12.0, 8.1, 18.0)).kind == "reproduced"
    assert "a factor of 1.5 to each side" in judge_figure(ratio, Interval(12.0, 7.9, 18.0)).reason
    assert judge_figure(ratio, Interval(9.0, -4.0, 22.0)).kind == "undecided"
    assert judge_figure(ratio, Interval(5.0, 1.0, 9.0)).kind == "not reproduced"
    as_rounded = judge_figure(Interval(12.4, 1.0, 24.0), Interval(12.0, 6.0, 18.0))
    assert as_rounded.kind == "reproduced"


def test_rounding_of_ratios_adds_up() -> None:
    ratio = Interval(3060, 3030, 3090).over(Interval(120, 90, 150))
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((25.5, 20.2, 34.3333), abs=1e-4)
    assert Interval(1, 0.5, 1.5).over(Interval(0.4, 0.0, 0.5)).high == math.inf


def compared(*pairs: tuple[float, float]) -> list[Comparison]:
    return [Comparison(f"pair {number}", *pair) for number, pair in enumerate(pairs)]


@pytest.mark.parametrize(
    ("pairs", "kind"),
    [
        ([(1.0, 0.01), (0.5, 0.049)], "reproduced"),
        ([(1.0, 0.01), (0.5, 0.05)], "undecided"),
        ([(1.0, 0.01), (-0.5, 0.2)], "undecided"),
        ([(1.0, 0.01), (-0.5, 0.01)], "not reproduced"),
        ([(0.0, 1.0)], "undecided"),
    ],
)
def test_orders(pairs: list[tuple[float, float]], kind: str) -> None:
    verdict = judge_order(compared(*pairs))
    assert verdict.kind == kind
    assert "\n" not in verdict.reason


def test_of_one_repetition_nothing_is_tested() -> None:
    alone = Comparison("a against b", 0.02, 1.0, is_tested=False)
    assert "1 of 2 differences have one repetition" in judge_order([*compared((0.5, 0.01)), alone]).reason
    assert judge_order([*compared((-0.5, 0.01)), alone]).kind == "not reproduced"


def test_a_ceiling_grants_the_rounding() -> None:
    assert beyond_ceiling(printed(36.98, 0.005), 24.9)
    assert beyond_ceiling(printed(24.96), 24.9)
    assert not beyond_ceiling(printed(24.94), 24.9)
    assert beyond_ceiling(printed(1.0), 1.2, higher_is_better=False)
    assert not beyond_ceiling(printed(6.48), 1.2, higher_is_better=False)


def test_the_first_that_applies() -> None:
    measured = judge_figure(printed(84.6), Interval(84.6, 84.5, 84.7))
    everything = {"impossible": "a", "suspect": "b", "not_runnable": "c", "measured": measured}
    expected = ["impossible", "suspect", "reproduced"]
    for kind, given in zip(expected, ("impossible", "suspect", "not_runnable"), strict=True):
        assert settle(**everything).kind == kind
        del everything[given]
    assert settle(**everything) == measured
    assert settle(not_runnable="lost").kind == "not runnable"
    assert settle(missing="no such method yet").reason == "no such method yet"
    assert settle().kind == "not yet run"
    assert "reproduced" in settle(impossible="a", measured=measured).reason
