"""Paired tests: whether one method is better than another on the same test documents, and by how much.

Two classifiers are compared document by document: McNemar's test counts where just one of them is right, the
paired bootstrap draws test documents anew and follows any metric. Where many pairs are compared Holm's
correction holds the chance of one false finding at the level of a single test. Over several data sets methods
are compared by their average ranks.

Sources: McNemar, Psychometrika 12 (1947); Dietterich, Neural Computation 10 (1998); Efron, Tibshirani, An
Introduction to the Bootstrap (1993), chapters 13 and 15; Holm, Scandinavian Journal of Statistics 6 (1979);
Demsar, Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 7 (2006).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from textbench.evaluation.statistics.sufficient_statistics import SufficientStatistics

LEVEL, POWER = 0.05, 0.8
N_DRAWS = 10_000
BLOCK = 256  # draws at a time, which bounds the memory of their weights
MANY = 20  # documents to a kind, from which on kinds are drawn sooner than documents
WIDE = 64  # columns, from which on it is not worth looking for documents that are alike


@dataclass(frozen=True)
class McNemar:
    """McNemar's test: documents that only the first and only the second gets right, and the two-sided p."""

    first_only: int
    second_only: int
    p: float


@dataclass(frozen=True)
class Difference:
    """A difference of two methods (first minus second), its percentile interval, and its two-sided p."""

    value: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class Ranks:
    """Methods over data sets: average ranks (1 is best), the test that all are alike, and what sets two apart.

    `average` (n_methods,); `statistic` and `p` are Friedman's, None for fewer than three methods and for methods
    that are equal everywhere. Two methods differ at `level` where their average ranks are `critical_difference`
    apart (Nemenyi).
    """

    average: np.ndarray
    statistic: float | None
    p: float | None
    critical_difference: float
    level: float


def mcnemar_exact(first: np.ndarray, second: np.ndarray) -> McNemar:
    """McNemar's exact test: the sign test on the documents that only one of two classifiers gets right.

    first, second: (n_documents,) bool, whether each classifier is right. ValueError for other shapes.
    """
    from scipy.special import bdtr  # the binomial distribution, without the seconds that scipy.stats takes

    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(
            f"both classifiers need one answer for each document; received {first.shape} and {second.shape}"
        )
    first_only, second_only = int(np.sum(first & ~second)), int(np.sum(second & ~first))
    n_apart = first_only + second_only
    p = 2 * float(bdtr(min(first_only, second_only), n_apart, 0.5)) if n_apart else 1.0
    return McNemar(first_only, second_only, min(1.0, p))


def bootstrap(tallies: "Sequence[SufficientStatistics]", n_draws: int = N_DRAWS, seed: int = 0) -> np.ndarray:
    """Bootstrap over documents: metrics of n_draws samples of the documents, drawn with replacement.

    tallies: metrics on the same documents; all see the same samples, so that differences of columns of the
    result, (n_draws, n_tallies), are paired. ValueError for no documents or tallies of different documents.
    """
    sizes = {len(tally.columns) for tally in tallies}
    if len(sizes) != 1 or 0 in sizes:
        raise ValueError(
            f"tallies must be of the same documents, at least one; received {sorted(sizes)} documents"
        )
    tallies, counts = _kinds(tallies)
    (n_documents,), rng = sizes, np.random.default_rng(seed)
    values = np.empty((n_draws, len(tallies)))
    for start in range(0, n_draws, BLOCK):
        n = min(BLOCK, n_draws - start)
        if counts is not None:
            weights = rng.multinomial(n_documents, counts / n_documents, size=n)
        else:
            drawn = (rng.integers(n_documents, size=n_documents) for _ in range(n))
            weights = np.stack([np.bincount(sample, minlength=n_documents) for sample in drawn])
        for place, tally in enumerate(tallies):
            sums = weights.astype(tally.columns.dtype) @ tally.columns
            values[start : start + n, place] = tally.statistic(sums.astype(float))
    return values


def _kinds(
    tallies: "Sequence[SufficientStatistics]",
) -> "tuple[Sequence[SufficientStatistics], np.ndarray | None]":
    """Merge documents that add the same to every tally, if that leaves few kinds, and count the kinds.

    How often each kind is in a sample is one multinomial, which is drawn sooner than the documents one by one.
    """
    widths = [tally.columns.shape[1] for tally in tallies]
    if sum(widths) > WIDE:
        return tallies, None
    columns = np.hstack([tally.columns for tally in tallies])
    kinds, counts = np.unique(columns, axis=0, return_counts=True)
    if len(kinds) > len(columns) / MANY:
        return tallies, None
    parts = np.split(kinds, np.cumsum(widths)[:-1], axis=1)
    return [replace(tally, columns=part) for tally, part in zip(tallies, parts, strict=True)], counts


def difference(value: float, draws: np.ndarray, level: float = 0.95) -> Difference:
    """Return a bootstrapped difference with its percentile interval and the p that goes with it.

    value: the difference on the documents themselves; draws: (n_draws,). p is twice the smaller share of draws
    on one side of 0, the draws themselves counted in, so that p < 1 - level where the interval leaves out 0
    (Efron, Tibshirani, section 15.4). Draws that differ by rounding alone are ties. Where none is on the other side
    draws tell only that p is below 2 / (1 + n_draws), which Holm's correction over 250 pairs lifts above 0.05: there
    it is that of the normal distribution with their deviation as standard error, if this is smaller (chapter 13).
    """
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    fewest, error = min(np.sum(draws <= 1e-12), np.sum(draws >= -1e-12)), float(np.std(draws))
    p = float(2 * (1 + fewest) / (1 + len(draws)))
    if fewest == 0 and error > 1e-12:
        p = min(p, math.erfc(abs(value) / error / math.sqrt(2)))
    return Difference(float(value), float(low), float(high), min(1.0, p))


def paired_difference(
    first: "SufficientStatistics", second: "SufficientStatistics", draws: np.ndarray, level: float = 0.95
) -> Difference:
    """Return the `difference` of two metrics on the same documents, first minus second.

    draws: (n_draws,), the difference of their columns of `bootstrap`. Where few documents tell the methods apart the
    bootstrap is too sure, for it never draws one that is not there. What is random in a paired test is which of the
    two has the better answer, so that k documents whose answers differ give no p below 2 ** (1 - k), McNemar's.
    """
    found = difference(first.value - second.value, draws, level)
    told = [tally.columns if tally.answers is None else tally.answers for tally in (first, second)]
    if told[0].shape != told[1].shape:  # labels that only one of them gives: not document by document
        return found
    n_apart = int((told[0] != told[1]).any(axis=1).sum())
    return replace(found, p=min(1.0, max(found.p, 2.0 ** (1 - n_apart))))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: adjusted p values, in the order received; reject those below the level."""
    order = np.argsort(p_values, kind="stable")
    adjusted = np.asarray(p_values, dtype=float)[order] * np.arange(len(order), 0, -1)
    result = np.empty(len(order))
    result[order] = np.minimum(np.maximum.accumulate(adjusted), 1.0)
    return result.tolist()


def paired_t(first: Mapping[int, float], second: Mapping[int, float]) -> tuple[float, float]:
    """Student's paired t test over shared repetitions (draws or seeds, the keys): (mean difference, two-sided p).

    The difference is first minus second. p is 1 for fewer than two shared repetitions, and for
    differences that are all alike, of which nothing tells by how much they vary.
    """
    from scipy.special import stdtr

    apart = [first[repetition] - second[repetition] for repetition in sorted(first.keys() & second.keys())]
    n = len(apart)
    mean = math.fsum(apart) / n if n else 0.0
    if n < 2 or max(apart) - min(apart) <= 1e-12:  # differences that rounding alone sets apart are alike
        return mean, 1.0
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in apart) / (n - 1) / n)
    return mean, 2 * float(stdtr(n - 1, -abs(mean) / error))


def detectable_difference(
    first: Mapping[int, float], second: Mapping[int, float], n_tests: int
) -> float | None:
    """The mean difference that a paired t test over such repetitions, one of n_tests, finds four times in five.

    It is that of a test at 0.05 / n_tests, as Holm's correction has the smallest p; None for fewer than two shared
    repetitions. By the noncentral t distribution, with the deviation that the repetitions have.
    """
    from scipy.special import nctdtrinc, stdtrit

    apart = [first[repetition] - second[repetition] for repetition in sorted(first.keys() & second.keys())]
    n = len(apart)
    if n < 2:
        return None
    mean = math.fsum(apart) / n
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in apart) / (n - 1) / n)
    return error * float(nctdtrinc(n - 1, 1 - POWER, stdtrit(n - 1, 1 - LEVEL / n_tests / 2)))


def detectable_by_bootstrap(draws: np.ndarray, n_tests: int) -> float:
    """The same for a test by the bootstrap, from its differences, (n_draws,): their deviation is the standard error."""
    from scipy.special import ndtri

    return float(np.std(draws)) * float(ndtri(1 - LEVEL / n_tests / 2) + ndtri(POWER))


def average_ranks(scores: np.ndarray, level: float = 0.05) -> Ranks:
    """The average ranks over data sets, Friedman's test and Nemenyi's critical difference (Demsar 2006, section 3.2.2).

    scores: (n_datasets, n_methods), higher is better; equal scores share their ranks. ValueError for fewer than
    two data sets or two methods.
    """
    from scipy.stats import friedmanchisquare, rankdata, studentized_range

    if scores.ndim != 2 or min(scores.shape) < 2:
        raise ValueError(f"ranks need at least two data sets and two methods; received {scores.shape}")
    n_datasets, n_methods = scores.shape
    ranks = rankdata(-scores, axis=1)
    # The test has no value where all are alike.
    are_apart = n_methods > 2 and bool(np.ptp(ranks, axis=1).any())
    statistic, p = map(float, friedmanchisquare(*scores.T)) if are_apart else (None, None)
    quantile = float(studentized_range.ppf(1 - level, n_methods, np.inf)) / np.sqrt(2)
    return Ranks(
        average=ranks.mean(axis=0),
        statistic=statistic,
        p=p,
        critical_difference=float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets))),
        level=level,
    )
