"""Judging a claim by what was measured for it: which yardstick applies, and the verdict.

The rule is `evaluation.claims.verdicts`, the intervals are those of `evaluation.claims.yardstick`.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from textbench.evaluation.claims.published import SECONDS, Claim, published
from textbench.evaluation.claims.verdicts import (
    WIDEST,
    Interval,
    Verdict,
    beyond_ceiling,
    judge_figure,
    judge_order,
)
from textbench.evaluation.claims.yardstick import Allowance, Split, allowance, largest_error
from textbench.flows.referee import recorded_audits
from textbench.flows.referee.measurement import MEGABYTES, Measurement, is_answered
from textbench.flows.results.metric_names import KNOWN

# Of figures that are no metric of a run: where less is better.
LESS_IS_BETTER = {MEGABYTES, "binary-to-relaxed-objective", "cross-validation-hours"}
HOURS = "hours"  # of another machine, which say nothing about these


def judge(claim: Claim, found: Measurement, claims: Mapping[str, Claim]) -> Verdict | None:
    """Return the verdict on a claim by what was measured; None for a sentence that was not measured as an order."""
    verdict = judge_order(found.comparisons) if found.comparisons else _judge_figure(claim, found, claims)
    if verdict is not None and claim.unstated:
        reason = f"the paper does not state {claim.unstated}; {verdict.reason}"
        return replace(verdict, kind="undecided", reason=reason)
    return verdict


def _judge_figure(claim: Claim, found: Measurement, claims: Mapping[str, Claim]) -> Verdict | None:
    judged = published(claim, claims)
    if judged is None or found.compared is None:
        return None
    if claim.unit == HOURS:
        return Verdict(
            "undecided", f"{found.compared:.4g} hours here, which another machine's are not judged by"
        )
    allowed, is_ratio = allowed_by(claim, found), claim.metric in SECONDS
    if math.isnan(allowed.interval.half_width):
        reason = f"{found.compared:.4g} has no interval: {allowed.algebra[-1]}"
        return Verdict("undecided", reason, algebra=allowed.algebra)
    # A ratio says how far the paper's own method is ahead, so more of it is better.
    metric = KNOWN.get(claim.metric_here or "")
    higher_is_better = is_ratio or (metric.higher_is_better if metric else claim.metric not in LESS_IS_BETTER)
    if claim.unit == "fraction" and is_answered(claim):  # more of a probability is no better than less
        higher_is_better = found.compared < judged[0].value
    verdict = judge_figure(judged[0], allowed.interval, higher_is_better, WIDEST.get(claim.unit))
    printed = f"printed {claim.text}: [{judged[0].low:.5g}, {judged[0].high:.5g}]"
    return replace(verdict, algebra=(*allowed.algebra, printed))


def allowed_by(claim: Claim, found: Measurement) -> Allowance:
    """Return where the paper's figure may lie by what was measured."""
    value = math.nan if found.compared is None else found.compared
    unknown = Interval(value, math.nan, math.nan)
    if claim.metric in SECONDS:
        if found.low is None or found.high is None:
            return Allowance(unknown, ("there is one timing of one of the two, or of both",))
        words = f"seconds by the ratio of two methods: G = {value:.4g}, [{found.low:.4g}, {found.high:.4g}]"
        return Allowance(Interval(value, found.low, found.high), (words,))
    if found.is_random and not found.each:
        return Allowance(unknown, ("the figure of each seed is not recorded",))
    split = None
    if claim.is_of_other_split:
        split = other_split(claim, value)
        if split is None:
            return Allowance(unknown, (f"the documents of {claim.dataset_here} were never counted",))
    return allowance(
        list(found.each.values()) or [value],
        is_random=found.is_random,
        n_published=claim.n_published,
        split=split,
        bounds=claim.bounds,
    )


def other_split(claim: Claim, value: float) -> Split | None:
    """Return what another split adds to a claim's figure; None where the data set's documents were never counted."""
    sizes = _sizes(claim.dataset_here or "")
    if sizes is None:
        return None
    n_train, n_test, n_classes = sizes
    ends = (1.0, float(n_classes)) if claim.unit == "labels" else (0.0, claim.scale)
    return Split(largest_error(value, ends, n_test), n_test / (n_train + n_test))


@cache
def _sizes(dataset: str) -> tuple[int, int, int] | None:
    """Return the number of training and test documents and of classes of a data set, by its recorded audit."""
    known = recorded_audits.recorded().get(dataset)
    if known is None:
        return None
    documents, classes = known["audit"]["documents"], known["audit"]["classes"]
    return documents["train"], documents["test"], classes["train"] + classes["test"] - classes["both"]


def impossible(claim: Claim, ceilings: Mapping[str, float]) -> str | None:
    """Say why no method can reach a claim's figure; None where one could. ceilings: of its data set, by metric."""
    metric = claim.metric_here
    if claim.printed is None or metric is None or metric not in ceilings:
        return None
    ceiling, is_upper = claim.scale * ceilings[metric], KNOWN[metric].higher_is_better
    reach = 0.0
    if claim.is_of_other_split:
        split = other_split(claim, ceiling)
        if split is None:
            return None
        reach = allowance([ceiling], is_random=False, split=split).interval.half_width
    if not beyond_ceiling(claim.printed, ceiling + reach * (1 if is_upper else -1), is_upper):
        return None
    side, elsewhere = (
        "at most" if is_upper else "at least",
        f" (± {reach:.2f} with another split)" if reach else "",
    )
    where = f"on the test documents of {claim.dataset_here}"
    return f"{metric} is {side} {ceiling:.2f}{elsewhere} {where}, whatever the method"
