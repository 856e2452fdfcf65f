"""Verdicts on published figures, by rule. This page is the rule; nothing is judged by hand.

A claim gets the first of these that applies:

- `impossible`: the figure lies, with all its rounding, beyond a ceiling computed from the test documents
  (`evaluation.metrics.ceilings`): no method can reach it, whatever was run.
- `suspect`: the paper contradicts itself (`evaluation.claims.published.contradictions`): two methods share three or
  more figures of one table, or a sentence says what the paper's own table denies.
- `not runnable`: nothing was measured, for the data are licensed or lost, or nothing here implements the method.
- `not yet run`: nothing was measured, though it could be.

and otherwise what the measured figure says of it:

- `reproduced`: the published figure, as rounded in print, meets the measured 95 % interval;
- `undecided`: it does so only because the interval is wide, or there is no interval;
- `better than published`, `not reproduced`: it lies outside, and the measured figure is better or worse.

The interval is Student's t over the seeds of a method that draws random numbers (word vectors count as such: they
are trained with the seed), and the percentile bootstrap over test documents for a method that draws none. It may be at
most one point wide to each side (`WIDEST`, in the unit of the claim) to count as reproduction. Three kinds of claims
are judged by a comparison, and only by whether the interval is met:

- a figure of one class, by the paired difference to bag of words on the same test documents: published
  difference against measured difference. Bag of words itself is judged by its own bootstrapped figure.
- seconds, by the ratio of two methods timed in one run; the machines of the papers are not ours.
- orderings ("A above B at every budget"), by paired tests, Holm-corrected over all comparisons of the claim:
  reproduced if every difference goes the claimed way and is significant, not reproduced if one is significant
  the other way, undecided otherwise. Where a curve is said to saturate, larger values may be level with the
  value named, and speak against it where one is significantly better.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, get_args

Kind = Literal[
    "reproduced", "better than published", "not reproduced", "undecided",
    "impossible", "suspect", "not runnable", "not yet run",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
# One point to each side: of a rate in percent or as a fraction, or one label, one unit of a log-likelihood score.
WIDEST = {"percent": 1.0, "fraction": 0.01, "labels": 1.0, "log": 1.0}
LEVEL = 0.05
ROUNDING = 1e-9  # of floating point, so that 84.6 + 0.05 meets 84.65


@dataclass(frozen=True)
class Verdict:
    """A verdict and, in one line, what it rests on."""

    kind: Kind
    reason: str


@dataclass(frozen=True)
class Interval:
    """A figure and the interval it may lie in: for a published one all that rounds to what was printed."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of its width; nan where there is no interval."""
        return (self.high - self.low) / 2

    def minus(self, other: "Interval") -> "Interval":
        """The difference of two printed figures, and all that it may be."""
        return Interval(self.value - other.value, self.low - other.high, self.high - other.low)

    def over(self, other: "Interval") -> "Interval":
        """The ratio of two printed positive figures, and all that it may be."""
        high = self.high / other.low if other.low > 0 else math.inf
        return Interval(self.value / other.value, self.low / other.high, high)


@dataclass(frozen=True)
class Comparison:
    """One pair of an ordering: how far the method claimed to be better is ahead, and the corrected p.

    Where it `may_tie` it is claimed to be no worse, and only a significant difference the other way says anything.
    `detectable`: the difference that the test would find four times in five; None where it is not known.
    """

    pair: str
    difference: float
    p: float
    may_tie: bool = False
    detectable: float | None = None


def judge_figure(
    published: Interval, measured: Interval, higher_is_better: bool = True, widest: float | None = None
) -> Verdict:
    """Judge a published figure by a measured one, both in the claim's unit; `widest` bounds the half-width.

    Returns the verdict.
    """
    if math.isnan(measured.half_width):
        return Verdict("undecided", "one run has no interval; more seeds would give one")
    spread = f"{measured.value:.4g} [{measured.low:.4g}, {measured.high:.4g}]"
    if measured.low <= published.high + ROUNDING and published.low <= measured.high + ROUNDING:
        if widest is not None and measured.half_width > widest + ROUNDING:
            return Verdict(
                "undecided",
                f"{published.value:.4g} lies in {spread}, which is wider than {widest:g} to each side",
            )
        return Verdict("reproduced", f"{published.value:.4g} lies in {spread}")
    is_better = (measured.value > published.value) == higher_is_better
    kind: Kind = "better than published" if is_better else "not reproduced"
    return Verdict(kind, f"{published.value:.4g} lies outside {spread}")


def judge_order(comparisons: Sequence[Comparison]) -> Verdict:
    """Judge an ordering by its comparisons, at least one, whose p values are corrected together.

    Returns the verdict.
    """
    against = [c for c in comparisons if c.difference < 0 and c.p < LEVEL]
    claimed = [c for c in comparisons if not c.may_tie]
    open_ = [c for c in claimed if c.p >= LEVEL or c.difference == 0]
    if against:
        worst = min(against, key=lambda c: c.p)
        return Verdict(
            "not reproduced",
            f"{len(against)} of {len(comparisons)} comparisons say the opposite, first {worst.pair}",
        )
    if open_:
        return Verdict(
            "undecided",
            f"{len(open_)} of {len(claimed)} differences are not significant, such as {open_[0].pair}{_power(open_)}",
        )
    return Verdict("reproduced", f"all {len(claimed)} differences go the claimed way and are significant")


def _power(open_: Sequence[Comparison]) -> str:
    """Say what differences such tests would find: those of the middle pair and of the one that is hardest to tell."""
    known = sorted(c.detectable for c in open_ if c.detectable is not None)
    if not known:
        return ""
    middle, largest = 100 * median(known), 100 * known[-1]
    return f"; such tests find {middle:.2g} points (the middle one) to {largest:.2g} four times in five"


def beyond_ceiling(published: Interval, ceiling: float, higher_is_better: bool = True) -> bool:
    """Tell whether all that rounds to the published figure lies beyond a ceiling, both in the claim's unit."""
    if higher_is_better:
        return published.low > ceiling + ROUNDING
    return published.high < ceiling - ROUNDING


def settle(
    *,
    impossible: str | None = None,
    suspect: str | None = None,
    not_runnable: str | None = None,
    measured: Verdict | None = None,
    missing: str = "nothing has been run for it",
) -> Verdict:
    """Return the first verdict that applies, given the reasons for those that do."""
    also = f"; measured: {measured.kind}, {measured.reason}" if measured else ""
    if impossible:
        return Verdict("impossible", impossible + also)
    if suspect:
        return Verdict("suspect", suspect + also)
    if measured:
        return measured
    if not_runnable:
        return Verdict("not runnable", not_runnable)
    return Verdict("not yet run", missing)
