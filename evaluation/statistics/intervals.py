"""Intervals of means over repetitions (seeds, draws), and of metrics over test documents.

Sources: Student, The Probable Error of a Mean, Biometrika 6 (1908); Efron, Tibshirani, An Introduction to the
Bootstrap (1993), chapter 21 (the infinitesimal jackknife, or delta method).
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textbench.evaluation.statistics.sufficient_statistics import SufficientStatistics


BLOCK = 256  # columns of a tally at a time, which bounds the memory of their steps


def mean_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Student's t interval of a mean: (mean, half width), mean +- half width covering at the level given.

    values: one figure a repetition, in any unit, taken as independent and normal. One value has no interval:
    its half width is nan. ValueError for no values or a level outside (0, 1).
    """
    from scipy.special import stdtrit

    if len(values) == 0:
        raise ValueError("values must hold at least one figure; received none")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1; received {level!r}")
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return mean, math.nan
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    quantile = float(stdtrit(n - 1, (1 + level) / 2))
    return mean, quantile * math.sqrt(variance / n)


def documents_half_width(tally: "SufficientStatistics", level: float = 0.95) -> float:
    """Half the interval of a metric over test documents, as if these had been drawn at random: in the metric's unit.

    It is the delta method's: the metric is taken as linear in what the documents add to its sums, which gives to first
    order what a bootstrap over documents converges to, in a thousandth of the time and without chance. One document has
    no interval: nan. ValueError for a level outside (0, 1).
    """
    import numpy as np
    from scipy.special import stdtrit

    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1; received {level!r}")
    n = len(tally.columns)
    if n < 2:
        return math.nan
    sums = tally.columns.sum(axis=0, dtype=float)
    rise = np.empty_like(sums)  # where a sum is 0 every document adds 0, and its slope does not matter
    for start in range(0, len(sums), BLOCK):
        own = slice(start, start + BLOCK)
        steps = 1e-4 * sums * np.eye(len(sums[own]), len(sums), start)
        rise[own] = tally.statistic(sums + steps) - tally.statistic(sums - steps)
    slopes = np.divide(rise, 2e-4 * sums, out=np.zeros_like(sums), where=sums != 0)
    influence = (tally.columns - sums / n) @ slopes
    return float(stdtrit(n - 1, (1 + level) / 2) * math.sqrt(n / (n - 1) * float(influence @ influence)))
