"""Whether figures of tonight lie above those of earlier nights by more than noise: a moderated t test, one-sided.

Each series has few nights, so its variance is drawn to that of the others, whose degrees of freedom are fixed here,
and tonight is held against a prediction interval.

Source: Smyth, Linear Models and Empirical Bayes Methods, Statistical Applications in Genetics and Molecular Biology 3
(2004), section 3.
"""

import math
from collections.abc import Sequence

PRIOR = 8  # degrees of freedom that the variance of the other series counts as, at most
LEAST_DEVIATION = 0.01  # of logarithms: no clock of a shared machine repeats itself to less than 1 %


def above_p(before: Sequence[Sequence[float]], tonight: Sequence[float]) -> list[float]:
    """Return the one-sided p of each series, tonight's figure being of the normal distribution of those before.

    before: of each series at least two figures, logarithms of seconds; tonight: one each. The p are not corrected for
    their number. ValueError for a series of fewer figures, or for another number of series tonight.
    """
    from scipy.special import stdtr

    if len(before) != len(tonight) or any(len(series) < 2 for series in before):
        raise ValueError("each series needs two figures and one of tonight")
    freedoms = [len(series) - 1 for series in before]
    means = [math.fsum(series) / len(series) for series in before]
    squares = [
        math.fsum((value - mean) ** 2 for value in series) for series, mean in zip(before, means, strict=True)
    ]
    found = []
    for place, value in enumerate(tonight):
        others = sum(freedoms) - freedoms[place]
        prior = min(PRIOR, others)
        drawn = prior * (math.fsum(squares) - squares[place]) / others if others else 0.0
        freedom = prior + freedoms[place]
        deviation = max(LEAST_DEVIATION, math.sqrt(max(0.0, drawn + squares[place]) / freedom))
        t = (value - means[place]) / (deviation * math.sqrt(1 + 1 / len(before[place])))
        found.append(float(stdtr(freedom, -t)))
    return found
