"""What a finished cell took: by stage, and of a search what its trials took when they were made."""

from pathlib import Path

import pytest

from tests.plumbing import numbers
from textbench.flows.results.rows import _searched, spent
from textbench.tasks.storage.store import Store


def test_a_search_costs_at_least_what_its_trials_took(tmp_path: Path) -> None:
    """One that was taken up again did little itself; one that nothing was searched in has its own seconds alone."""
    store, search = Store(tmp_path / "store", isolated=False), numbers({"n": 1}, "tune")
    own = store.ensure(search)["seconds"]
    trials = [{"seconds": 60.25}, {"seconds": 39.75}]
    cost = {search.key: _searched({"space": {"n_components": "{}"}, "trials": trials})}
    assert spent({"tune": search}, store, cost)["seconds"] == {"tune": 100.0}
    alone = {search.key: _searched({"space": {}, "trials": trials[:1]})}
    for given in (alone, {}):
        assert spent({"tune": search}, store, given)["seconds"]["tune"] == pytest.approx(own, abs=1e-3)
