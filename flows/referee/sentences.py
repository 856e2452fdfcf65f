"""Sentences that a paper's own tables deny, measured all the same: by what was measured for the figures of these."""

import re
from collections.abc import Callable, Mapping, Sequence

from textbench.evaluation.claims.ordering_claims import OrderedFigure, OrderedPair, comparisons
from textbench.evaluation.claims.published import MINUTES, NUMBERS, Claim
from textbench.evaluation.claims.verdicts import Verdict, judge_order
from textbench.flows.referee.measurement import Measurement

Find = Callable[[Claim], Measurement | None]


def judge_sentence(claim: Claim, claims: Sequence[Claim], found: Find) -> Verdict | None:
    """Return the verdict on a sentence by what was `found` for figures of its paper; None where that says nothing."""
    if said := re.fullmatch(r"(\S+) improves on (\S+) in every class", claim.text):
        return _in_every_class(said[1], said[2], claim, claims, found)
    if said := re.fullmatch(r"(\w+) orders of magnitude over (.+)", claim.text):
        return _faster(NUMBERS[said[1]], said[2].split(" and "), claim, claims, found)
    return None


def _in_every_class(
    better: str, worse: str, claim: Claim, claims: Sequence[Claim], found: Find
) -> Verdict | None:
    rates = {(c.method, c.metric): c for c in claims if c.paper == claim.paper and c.class_rate}
    pairs = []
    for (method, metric), own in rates.items():
        base = rates.get((worse, metric))
        if method != better or base is None:
            continue
        ours, theirs = found(own), found(base)
        if ours is None or theirs is None:
            return None
        above, below = _by_seed(ours, ours), _by_seed(theirs, ours)
        pairs.append(OrderedPair(metric.replace(":", " of "), above, below))
    return judge_order(comparisons(pairs)) if pairs else None


def _by_seed(own: Measurement, like: Measurement) -> Mapping[int, OrderedFigure]:
    """Return a percentage by seed, as a fraction: where it draws nothing that of each seed of another.

    A mean alone has one.
    """
    values = own.each or dict.fromkeys(like.each or [0], own.value or 0.0)
    return {seed: OrderedFigure("", {}, None, seed, value / 100) for seed, value in values.items()}


def _faster(
    n_orders: int, others: Sequence[str], claim: Claim, claims: Sequence[Claim], found: Find
) -> Verdict | None:
    """Judge a speed-up by the ratios of seconds: one timing each decides nothing."""
    ratios = [
        (other.method, ratio)
        for other in claims
        if (other.paper, other.dataset, other.metric) == (claim.paper, claim.dataset, MINUTES[1])
        and other.method in others
        and (ratio := found(other)) is not None
    ]
    if len(ratios) < len(others):
        return None
    listed = ", ".join(f"{ratio.compared:.3g} over {method}" for method, ratio in ratios)
    if any(ratio.low is None or ratio.high is None for _, ratio in ratios):
        return Verdict("undecided", f"{listed}, one timing each")
    holds = all((ratio.high or 0.0) >= 10 ** (n_orders - 0.5) for _, ratio in ratios)
    return Verdict("reproduced" if holds else "not reproduced", listed)
