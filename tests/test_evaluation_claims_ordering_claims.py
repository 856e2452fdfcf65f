"""Orders: pairs are found where they are measured, and tested as scipy and statsmodels test them."""

import numpy as np
import pytest
from scipy import stats

from textbench.evaluation.claims.ordering_claims import (
    ORDERS,
    Above,
    OrderedFigure,
    Sweep,
    comparisons,
    pairs,
)
from textbench.evaluation.claims.published import read_claims
from textbench.evaluation.claims.verdicts import Comparison, judge_order
from textbench.evaluation.statistics.significance import detectable_difference, holm


def runs(method: str, values: list[float], budget: int | None = 100, **params: float) -> list[OrderedFigure]:
    return [OrderedFigure(method, params, budget, draw, value) for draw, value in enumerate(values)]


def judged(order: Above | Sweep, points: list[OrderedFigure]) -> list[Comparison]:
    return comparisons(pairs(order, points))


def test_every_order_is_a_claim() -> None:
    sentences = {claim.id for claim in read_claims() if claim.unit == "order"}
    assert set(ORDERS) <= sentences


def test_one_method_above_others() -> None:
    order = Above("dcot", ("lsi", "tfidf"), (100, 200))
    rng = np.random.default_rng(0)
    points, expected = [], []
    for budget in (100, 200):
        ours = rng.normal(0.9, 0.01, 5)
        points += runs("dcot", ours.tolist(), budget)
        for other in ("lsi", "tfidf"):
            theirs = rng.normal(0.88, 0.01, 5)
            points += runs(other, theirs.tolist(), budget)
            expected.append(stats.ttest_rel(ours, theirs).pvalue)
    found = judged(order, points)
    assert [c.p for c in found] == pytest.approx(holm(expected))
    assert found[0].pair == "dcot against lsi at 100 labels"
    assert all(c.difference > 0 for c in found)
    assert found[0].detectable == detectable_difference(
        {p.repetition: p.value for p in points if (p.method, p.budget) == ("dcot", 100)},
        {p.repetition: p.value for p in points if (p.method, p.budget) == ("lsi", 100)},
        4,
    )


def test_nothing_is_said_before_all_is_measured() -> None:
    order = Above("dcot", ("lsi",), (100, 200))
    points = runs("dcot", [0.9, 0.8]) + runs("lsi", [0.7, 0.6])
    assert judged(order, points) == []
    # Tuned or fixed otherwise is another method.
    assert judged(order, points + runs("dcot", [1, 1], 200, noise=0.5) + runs("lsi", [0, 0], 200)) == []


def test_a_sweep_compares_what_differs_in_one_parameter() -> None:
    order = Sweep("dcot", "n_layers", 3, (2, 3), (1,), budget=100)
    points = []
    for noise in (0.5, 0.9):
        for n_layers in (1, 2, 3):
            values = [0.8 + 0.01 * n_layers + noise / 100, 0.81 + 0.011 * n_layers, 0.79 + 0.012 * n_layers]
            points += runs("dcot", values, 100, n_layers=n_layers, noise=noise)
    points += runs("dcot", [0.1] * 3, 200, n_layers=1, noise=0.5)
    found = judged(order, points)
    assert [c.pair for c in found] == [
        f"n_layers {high} against 1 with {{'noise': {noise}}}" for noise in (0.5, 0.9) for high in (2, 3)
    ]
    assert judge_order(found).kind == "reproduced"


def swept(order: Sweep, values: dict[float, float], n_seeds: int = 5) -> list[OrderedFigure]:
    """Runs of a sweep whose differences vary a little from seed to seed; the default is a method without a value."""
    return [
        OrderedFigure(
            order.method,
            {} if x == order.default else {order.parameter: x},
            None,
            seed,
            value + 0.001 * seed * (1 + value),
        )
        for x, value in values.items()
        for seed in range(n_seeds)
    ]


def test_best_in_the_middle() -> None:
    order = ORDERS["scdv-2017/figure-4/scdv/sparsity-percent"]
    assert isinstance(order, Sweep)
    values = {0.0: 0.80, 0.02: 0.81, 0.04: 0.84, 0.06: 0.85, 0.08: 0.83, 0.1: 0.82}
    found = judged(order, swept(order, values))
    assert [c.difference > 0 for c in found] == [True, True, False, True, True]
    assert judge_order(found).kind == "not reproduced"
    assert judge_order(judged(order, swept(order, values | {0.06: 0.83}))).kind == "reproduced"


def test_a_sweep_waits_for_all_its_values() -> None:
    order = ORDERS["scdv-2017/figure-4/scdv/n_clusters"]
    assert isinstance(order, Sweep)
    values = {10: 0.80, 20: 0.81, 40: 0.82, 60: 0.84, 80: 0.838, 100: 0.839}
    for left_out in values:
        assert judged(order, swept(order, {x: v for x, v in values.items() if x != left_out})) == []
    points = swept(order, values)
    found = judged(order, points)
    assert [(c.pair, c.may_tie) for c in found[2:4]] == [
        ("n_clusters 60 against 40", False),
        ("n_clusters 60 against 80", True),
    ]
    # Values of one seed decide nothing, whatever the others have.
    alone = [point for point in points if point.repetition == 0 or point.params.get("n_clusters") != 10]
    assert judge_order(judged(order, alone)).kind == "undecided"


def test_what_saturates_may_go_on_level_but_not_rise() -> None:
    order = ORDERS["scdv-2017/figure-4/scdv/n_clusters"]
    assert isinstance(order, Sweep)
    rising = {10: 0.80, 20: 0.81, 40: 0.82, 60: 0.84}
    level = judge_order(judged(order, swept(order, rising | {80: 0.84, 100: 0.835})))
    assert (level.kind, level.reason[:9]) == ("reproduced", "all 3 dif")
    risen = judge_order(judged(order, swept(order, rising | {80: 0.85, 100: 0.86})))
    assert risen.kind == "not reproduced"
    assert "60 against" in risen.reason


def test_one_repetition_decides_nothing() -> None:
    order = Above("a", ("b",), (1,))
    (found,) = judged(order, runs("a", [0.9], 1) + runs("b", [0.1], 1))
    assert (found.difference, found.p) == (0.8, 1.0)
    (same,) = judged(order, runs("a", [0.5, 0.5], 1) + runs("b", [0.5, 0.5], 1))
    assert (same.difference, same.p) == (0.0, 1.0)
    # A gap that is the same in both tells nothing of how much it varies.
    (always,) = judged(order, runs("a", [0.75, 0.5], 1) + runs("b", [0.5, 0.25], 1))
    assert (always.difference, always.p) == (0.25, 1.0)
