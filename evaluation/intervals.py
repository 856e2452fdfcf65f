"""Intervals of means over repetitions (seeds, draws).

Source: Student, The Probable Error of a Mean, Biometrika 6 (1908).
"""

import math
from collections.abc import Sequence


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
