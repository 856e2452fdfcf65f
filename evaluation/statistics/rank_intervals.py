"""Ranks as far as they are known: which means of a board are told apart, the ranks each may have, and ties in a row.

Two means differ where their distance is more than chance explains, by Welch's t test with the standard errors that
their 95 % intervals are of, Holm-corrected over all pairs of the board. The intervals are taken as independent:
over the same test documents they rarely are, and the test then finds less than a paired one. All intervals of ranks
hold at once with 95 % certainty.

Sources: Welch, The Generalization of "Student's" Problem when Several Different Population Variances are Involved,
Biometrika 34 (1947); Mogstad, Romano, Shaikh, Wilhelm, Inference for Ranks with Applications to Mobility across
Neighborhoods and Academic Achievement across Countries, Review of Economic Studies 91 (2024), section 3.

Who has tests of pairs that are better than this one gives their p values.

Every array has as many rows as there are means; a half-width that is nan compares with nothing.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from textbench.evaluation.statistics.significance import LEVEL, N_DRAWS, holm

FLOOR = 2 / (1 + N_DRAWS)  # of p by draws alone, as some are recorded


def better(
    means: Sequence[float],
    half_widths: Sequence[float],
    *,
    degrees: Sequence[float] | None = None,
    is_rising: bool = True,
    paired: Mapping[tuple[int, int], float] | None = None,
) -> np.ndarray:
    """Return (n, n) of truth: whether the mean of the row is told apart from that of the column, and better.

    degrees: of freedom of Student's t behind each half-width, one less than its seeds; infinite, as they are unless
    given, for one over thousands of documents. paired: p of a better test of pairs, by their places, the lower one
    first; it stands for that of the intervals, but where it is the least that a bootstrap's draws tell and these tell
    more.
    """
    tested = paired or {}
    means_, halves = np.asarray(means, dtype=float), np.asarray(half_widths, dtype=float)
    rows, columns = np.triu_indices(len(means_), 1)
    distance = means_[rows] - means_[columns]
    independent = welch(distance, halves, degrees or [math.inf] * len(halves))
    known = ~np.isnan(independent)
    p = [
        min(given, own) if math.isclose(given := tested.get((row, column), own), FLOOR) else given
        for row, column, own in zip(
            rows[known].tolist(), columns[known].tolist(), independent[known].tolist(), strict=True
        )
    ]
    told = np.zeros((len(means_), len(means_)), dtype=bool)
    adjusted = np.asarray(holm(p))
    for row, column, value, is_apart in zip(
        rows[known], columns[known], distance[known], adjusted < LEVEL, strict=True
    ):
        if is_apart:
            first = (value > 0) == is_rising
            told[(row, column) if first else (column, row)] = True
    return told


def welch(distance: np.ndarray, half_widths: np.ndarray, degrees: Sequence[float]) -> np.ndarray:
    """Return the two-sided p of Welch's t test of all pairs of means, in the order of `np.triu_indices`.

    distance: (n_pairs,) of the means; half_widths, degrees: (n,) as `better` takes them. nan for a pair of which one
    has no half-width.
    """
    from scipy.special import ndtr, ndtri, stdtr, stdtrit

    df = np.asarray(degrees, dtype=float)
    is_normal = np.isinf(df)
    variance = (
        half_widths / np.where(is_normal, ndtri(0.975), stdtrit(np.where(is_normal, 1, df), 0.975))
    ) ** 2
    rows, columns = np.triu_indices(len(df), 1)
    both = variance[rows] + variance[columns]
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = variance[rows] ** 2 / df[rows] + variance[columns] ** 2 / df[columns]
        t, joint = np.abs(distance) / np.sqrt(both), both**2 / spread
    exact = both == 0  # both means are known exactly
    t = np.where(exact, np.where(distance == 0, 0.0, np.inf), t)
    is_normal = np.isinf(joint) | exact
    return 2 * np.where(is_normal, ndtr(-t), stdtr(np.where(is_normal, 1, joint), -t))


def rank_intervals(told: np.ndarray, half_widths: Sequence[float]) -> list[tuple[int, int] | None]:
    """Return the least and the greatest rank that each may have, 1 the best; None where its interval is not known.

    told: (n, n) as `better` returns. What has no interval counts in nobody's rank.
    """
    n_known = sum(not math.isnan(half) for half in half_widths)
    return [
        None if math.isnan(half) else (1 + int(told[:, i].sum()), n_known - int(told[i].sum()))
        for i, half in enumerate(half_widths)
    ]


def tie_groups(told: np.ndarray, half_widths: Sequence[float]) -> list[str]:
    """Return of each the letters of its groups: "a" is that of the best, and two that share one are not told apart.

    told: (n, n) as `better` returns, of means in order, best first. Groups are runs of neighbours of whom no two are
    told apart, none within another (the bars of a critical-difference diagram). What has no interval has no letter;
    after the 26th group come two.
    """
    known = [i for i, half in enumerate(half_widths) if not math.isnan(half)]
    apart = told | told.T
    groups: list[tuple[int, int]] = []
    for start in range(len(known)):
        end = start + 1
        while end < len(known) and not apart[known[end], known[start:end]].any():
            end += 1
        if not groups or end > groups[-1][1]:
            groups.append((start, end))
    letters = ["" for _ in half_widths]
    for number, (start, end) in enumerate(groups):
        for i in known[start:end]:
            letters[i] += _letter(number)
    return letters


def _letter(number: int) -> str:
    before, last = divmod(number, 26)
    return (chr(ord("a") + before - 1) if before else "") + chr(ord("a") + last)
