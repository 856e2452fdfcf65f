"""How the experiments print a figure."""

from collections.abc import Sequence

import numpy as np

from textbench.evaluation.statistics.intervals import mean_interval

N_RESAMPLES = 2000


def over_documents(is_right: np.ndarray) -> str:
    """An accuracy in percent with its 95 % percentile interval over test documents, bool (n_documents,)."""
    rng = np.random.default_rng(0)
    n_right = rng.binomial(len(is_right), is_right.mean(), N_RESAMPLES)  # of documents drawn with replacement
    low, high = 100 * np.quantile(n_right / len(is_right), [0.025, 0.975])
    return f"{100 * is_right.mean():.2f} [{low:.2f}, {high:.2f}]"


def of_one_more(values: Sequence[float]) -> str:
    """Shares as percent: their mean, and half of the 95 % interval in which one further draw is expected."""
    mean, half = mean_interval([100 * value for value in values])
    return f"{mean:.2f} ± {half * (len(values) + 1) ** 0.5:.2f} (one more than {len(values)} draws)"


def over_draws(values: Sequence[float]) -> str:
    """Shares as percent: their mean, half of its 95 % interval (Student's t), and how many there are."""
    mean, half = mean_interval([100 * value for value in values])
    return f"{mean:.2f} ± {half:.2f} ({len(values)} draws)"
