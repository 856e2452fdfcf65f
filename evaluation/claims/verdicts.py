"""Verdicts on published figures, by rule: nothing is judged by hand. `docs/verdicts.md` is the rule in one page.

A claim gets the first of these that applies:

- `impossible`: the figure lies, with all its rounding, beyond a ceiling computed from the test documents
  (`evaluation.metrics.ceilings`), and where the paper's are others, beyond what another split can add to it.
- `suspect`: the paper contradicts itself (`evaluation.claims.published.contradictions`). What can be run is measured
  all the same, and the reason says what came of it.
- `not runnable`: nothing was measured. The reason's first word says why: `licensed` or `lost` data, or `unwritten`,
  where nothing here implements the method.
- `not yet run`: nothing was measured, though it could be.

and otherwise what the measured figure says of it:

- `undecided`: neither the paper nor the code that it links to states what the figure depends on, or there is no
  interval (`evaluation.claims.yardstick`), or it meets the figure only because it is wide: more than a point to each
  side (`WIDEST`), or a factor of 1.5 where it is of seconds or megabytes, and more than the print is rounded by. A rate
  of one class is held to this as any other is.
- `reproduced`: all that rounds to the published figure meets the interval;
- `better than published`, `not reproduced`: it does not, and the measured figure is better or worse.

Seconds are judged by the ratio of two methods timed in one run, and hours not at all, for machines differ. Orderings
("A above B at every budget") are judged by paired tests, Holm-corrected over all comparisons of the claim: reproduced
if every difference goes the claimed way and is significant, not reproduced if one is significant the other way,
undecided otherwise. Where a curve is said to saturate, larger values may be level with the value named, and speak
against it where one is significantly better.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal, get_args

Kind = Literal[
    "reproduced", "better than published", "not reproduced", "undecided",
    "impossible", "suspect", "not runnable", "not yet run",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
# One point to each side: of a rate in percent or as a fraction, or one label, one unit of a log-likelihood score.
WIDEST = {"percent": 1.0, "fraction": 0.01, "labels": 1.0, "log": 1.0}
WIDEST_FACTOR = 1.5  # to each side of anything else, such as a ratio of seconds or megabytes
LEVEL = 0.05
ROUNDING = 1e-9  # of floating point, so that 84.6 + 0.05 meets 84.65


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

    def over(self, other: "Interval") -> "Interval":
        """The ratio of two printed positive figures, and all that it may be."""
        high = self.high / other.low if other.low > 0 else math.inf
        return Interval(self.value / other.value, self.low / other.high, high)


@dataclass(frozen=True)
class Verdict:
    """A verdict and, in one line, what it rests on.

    `allowed` is where a repetition may lie, in the claim's unit (None: it was not judged by an interval), and `algebra`
    how that came about, a line a step.
    """

    kind: Kind
    reason: str
    allowed: Interval | None = None
    algebra: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """One pair of an ordering: how far the method claimed to be better is ahead, and the corrected p.

    Where it `may_tie` it is claimed to be no worse, and only a significant difference the other way says anything.
    `detectable`: the difference that the test would find four times in five; None where it is not known. Not
    `is_tested`: of one repetition, by which no test can judge; p is 1.
    """

    pair: str
    difference: float
    p: float
    may_tie: bool = False
    detectable: float | None = None
    is_tested: bool = True


def judge_figure(
    published: Interval, allowed: Interval, higher_is_better: bool = True, widest: float | None = None
) -> Verdict:
    """Judge a published figure by where a repetition may lie, both in the claim's unit.

    `widest` bounds the half-width; without it `WIDEST_FACTOR` bounds the ratio of the ends. Returns the verdict:
    undecided where nothing tells where it may lie (nan).
    """
    if math.isnan(allowed.half_width):
        return Verdict("undecided", f"{allowed.value:.4g} has no interval")
    reach = f"{allowed.value:.4g}"
    if allowed.half_width > 0:
        reach += f" [{allowed.low:.4g}, {allowed.high:.4g}]"
    if allowed.low <= published.high + ROUNDING and published.low <= allowed.high + ROUNDING:
        if _is_wide(published, allowed, widest):
            most = f"a factor of {WIDEST_FACTOR:g}" if widest is None else f"{widest:g}"
            reason = f"{published.value:.4g} lies in {reach}, which is wider than {most} to each side"
            return Verdict("undecided", reason, allowed)
        return Verdict("reproduced", f"{published.value:.4g} as printed meets {reach}", allowed)
    is_better = (allowed.value > published.value) == higher_is_better
    kind: Kind = "better than published" if is_better else "not reproduced"
    return Verdict(kind, f"{published.value:.4g} lies outside {reach}", allowed)


def _is_wide(published: Interval, allowed: Interval, widest: float | None) -> bool:
    """Tell whether an interval is too wide to say anything, and wider than the print is rounded by."""
    if widest is not None:
        return allowed.half_width > max(widest, published.half_width) + ROUNDING
    if allowed.half_width <= published.half_width:
        return False
    return allowed.low <= 0 or allowed.high > WIDEST_FACTOR**2 * allowed.low


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
    if untested := [c for c in open_ if not c.is_tested]:
        return Verdict(
            "undecided",
            f"{len(untested)} of {len(claimed)} differences have one repetition, which no test can judge, such as "
            f"{untested[0].pair}",
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
        return _instead(measured, Verdict("impossible", impossible + also))
    if suspect:
        return _instead(measured, Verdict("suspect", suspect + also))
    if measured:
        return measured
    if not_runnable:
        return Verdict("not runnable", not_runnable)
    return Verdict("not yet run", missing)


def _instead(measured: Verdict | None, verdict: Verdict) -> Verdict:
    """Return a verdict with the interval of what was measured all the same."""
    return replace(verdict, allowed=measured.allowed, algebra=measured.algebra) if measured else verdict
