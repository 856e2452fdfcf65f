"""Label budgets: nested, the same for everyone, and in proportion where asked."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from textbench.evaluation.probes.budgets import labelled_documents

TARGETS = np.repeat([0, 1, 2, 3], [500, 300, 150, 50])


@pytest.mark.parametrize("stratified", [False, True])
def test_budgets_of_a_draw_are_nested_and_draws_differ(stratified: bool) -> None:
    rows = [labelled_documents(TARGETS, n, 3, stratified=stratified) for n in (10, 100, 400, 1000)]
    for small, large in pairwise(rows):
        assert set(small) < set(large)
    assert [len(found) for found in rows] == [10, 100, 400, 1000]
    assert all(np.all(np.diff(found) > 0) for found in rows)
    assert set(labelled_documents(TARGETS, 100, 4, stratified=stratified)) != set(rows[1])


def test_the_same_draw_gives_the_same_documents_whatever_the_labels() -> None:
    other = labelled_documents(csr_matrix(np.eye(1000)), 100, 3)
    np.testing.assert_array_equal(labelled_documents(TARGETS, 100, 3), other)


def test_every_document_is_as_likely_as_any_other() -> None:
    times = np.zeros(1000)
    for draw in range(400):
        times[labelled_documents(TARGETS, 100, draw)] += 1
    # Binomial(400, 0.1): mean 40, deviation 6; of 1,000 such counts none is 5 deviations away.
    assert abs(times.mean() - 40) < 1e-9
    assert np.abs(times - 40).max() < 30


@pytest.mark.parametrize("budget", [20, 100, 333, 1000])
def test_a_stratified_budget_is_in_proportion(budget: int) -> None:
    for draw in range(20):
        found = np.bincount(TARGETS[labelled_documents(TARGETS, budget, draw, stratified=True)], minlength=4)
        wanted = budget * np.bincount(TARGETS) / len(TARGETS)
        assert np.abs(found - wanted).max() < 2


def test_impossible_budgets_are_refused() -> None:
    for budget in (0, 1001):
        with pytest.raises(ValueError, match=rf"1 \.\. 1000.*got {budget}"):
            labelled_documents(TARGETS, budget)
    with pytest.raises(ValueError, match="one label a document"):
        labelled_documents(np.eye(5), 2, stratified=True)
