"""Nights on a simulated clock: how often a quiet one raises an alarm, and how often a slower method is marked.

Six methods with three seeds each; a run's seconds vary by some percent, a night's too, and one run in twenty takes 40 %
longer. Fourteen nights go before. A method is marked as `flows.results.regressions` marks it: 1.08 times the seconds
and p below its level.
"""

import numpy as np

from textbench.flows.results.regressions import MOST_NIGHTS, SLOWER_LEVEL, Name, slowed

N_METHODS, N_SEEDS, N_WORLDS = 6, 3, 2000
SLOWER, MORE = 1.08, 0.15
OTHER_WORK, HOW_OFTEN = 0.4, 1 / 20
CLOCKS = ((0.03, 0.01), (0.05, 0.03))  # noise of a run and of a night


def night(
    rng: np.random.Generator, run: float, whole: float, more: float = 0.0
) -> dict[Name, dict[int, float]]:
    """Return logarithms of seconds by method and seed; the first method takes `more`."""
    seconds = rng.normal(0, whole) + rng.normal(0, run, (N_METHODS, N_SEEDS))
    seconds += np.log1p(OTHER_WORK) * (rng.random(seconds.shape) < HOW_OFTEN)
    seconds[0] += np.log1p(more)
    return {("data", f"method {m}"): dict(enumerate(row.tolist())) for m, row in enumerate(seconds)}


def main() -> None:
    rng = np.random.default_rng(0)
    for run, whole in CLOCKS:
        alarms = marked = 0
        for _ in range(N_WORLDS):
            earlier = [night(rng, run, whole) for _ in range(MOST_NIGHTS)]
            quiet, slow = (slowed(earlier, night(rng, run, whole, more)) for more in (0.0, MORE))
            alarms += any(p < SLOWER_LEVEL and ratio >= SLOWER for p, ratio in quiet.values())
            p, ratio = slow["data", "method 0"]
            marked += p < SLOWER_LEVEL and ratio >= SLOWER
        print(
            f"noise of {run:.0%} a run and {whole:.0%} a night: {1000 * alarms / N_WORLDS:.1f} of 1,000 quiet nights "
            f"raise an alarm, {MORE:.0%} more seconds are marked in {100 * marked / N_WORLDS:.1f} of 100"
        )
