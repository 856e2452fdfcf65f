"""Tallies against the metrics they stand for, on the documents and on samples of them."""

import numpy as np
import pytest

from textbench.evaluation.metrics.multilabel import MULTILABEL_METRICS
from textbench.evaluation.metrics.single_label import METRICS, per_class
from textbench.evaluation.statistics.significance import bootstrap
from textbench.evaluation.statistics.sufficient_statistics import (
    ONE_LABEL,
    SEVERAL_LABELS,
    class_tally,
    indicator_tally,
    label_tally,
    mean_of,
)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("metric", ONE_LABEL)
def test_a_tally_is_its_metric_on_every_sample_of_documents(metric: str, rng: np.random.Generator) -> None:
    """Samples of few documents lose classes: what does not occur in a sample does not count there either."""
    true = rng.integers(0, 5, 40)
    predicted = np.where(rng.random(40) < 0.6, true, rng.integers(0, 6, 40))
    tally = label_tally(metric, true, predicted)
    assert tally.value == pytest.approx(METRICS[metric].function(true, predicted))
    for _ in range(20):
        chosen = rng.integers(40, size=12)
        value = tally.statistic(tally.columns[chosen].sum(axis=0)[None])[0]
        assert value == pytest.approx(METRICS[metric].function(true[chosen], predicted[chosen]))


@pytest.mark.parametrize("metric", SEVERAL_LABELS)
def test_a_tally_of_several_labels_is_its_metric(metric: str, rng: np.random.Generator) -> None:
    true, predicted = rng.random((30, 6)) < 0.3, rng.random((30, 6)) < 0.3
    true[:, 5] = predicted[:, 5] = False
    tally = indicator_tally(metric, true, predicted)
    assert tally.value == pytest.approx(MULTILABEL_METRICS[metric].function(true, predicted))
    for _ in range(20):
        chosen = rng.integers(30, size=9)
        value = tally.statistic(tally.columns[chosen].sum(axis=0)[None])[0]
        assert value == pytest.approx(MULTILABEL_METRICS[metric].function(true[chosen], predicted[chosen]))


def test_rates_of_a_class_are_those_of_per_class(rng: np.random.Generator) -> None:
    true, predicted = rng.integers(0, 4, 60), rng.integers(0, 4, 60)
    for label, row in enumerate(per_class(true, predicted, ["a", "b", "c", "d"])):
        assert class_tally("precision", label, true, predicted).value == pytest.approx(row["precision"])
        assert class_tally("recall", label, true, predicted).value == pytest.approx(row["recall"])


def test_the_mean_over_runs(rng: np.random.Generator) -> None:
    true = rng.integers(0, 3, 50)
    runs = [label_tally("macro_f1", true, rng.integers(0, 3, 50)) for _ in range(3)]
    both = mean_of(runs)
    assert both.value == pytest.approx(np.mean([run.value for run in runs]))
    sampled = bootstrap([both, *runs], n_draws=20)
    assert sampled[:, 0] == pytest.approx(sampled[:, 1:].mean(axis=1))


def test_other_metrics_are_refused() -> None:
    with pytest.raises(ValueError, match="'map' is not a sum over documents of one label"):
        label_tally("map", np.zeros(1, int), np.zeros(1, int))
    with pytest.raises(ValueError, match="'lraps' is not a sum"):
        indicator_tally("lraps", np.ones((1, 1), bool), np.ones((1, 1), bool))
    with pytest.raises(ValueError, match="received 'f1'"):
        class_tally("f1", 0, np.zeros(1, int), np.zeros(1, int))
