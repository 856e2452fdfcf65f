"""Answers to the compressive-features paper's sentences on costs and sizes, from runs made up for it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from tests.made_runs import one_label
from textbench.evaluation.claims.published import SEARCHED, read_claims
from textbench.flows.papers.compressive import answers
from textbench.flows.referee.ledger import judge
from textbench.flows.referee.measurement import FaithfulRuns

CLAIMS = {claim.id: claim for claim in read_claims()}
PLACE = "cfl-2013/section-5"
TRIALS = [
    {"state": "complete", "params": {}, "seconds": 3600.0},
    {"state": "pruned", "params": {"pointer_cost": 0.5}, "seconds": 1800.0},
    {"state": "failed", "params": {"pointer_cost": 9.0}, "seconds": 0.0},
]
COSTS = {"{}": (1001.0, 1000.0), "{'pointer_cost': 0.5}": (2008.0, 2000.0)}
WIDTHS = {"kgrams": 900, "compressive": 30}


class Stored:
    """A features artifact of a method with some columns, and what its model cost."""

    def __init__(self, folder: Path, method: str, params: dict[str, Any]) -> None:
        self.folder, self.params = folder / method, params
        self.folder.mkdir(exist_ok=True)
        matrix = csr_matrix((2, WIDTHS[method]))
        np.savez(self.folder / "train.npz", shape=matrix.shape)

    def json(self, name: str) -> dict[str, float]:
        """Return the model's figures."""
        objective, bound = COSTS[str(self.params)]
        return {"objective_": objective, "lower_bound_": bound}


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FaithfulRuns:
    """Results of one tuned run of compressed features, and one of another paper's protocol."""
    about: dict[str, Any] = {"protocol": "faithful", "probe": "elastic-net", "trials": 3}
    one_label(tmp_path, "20ng", "compressive", [0, 1], [0, 1], paper="compressive-features-2013", **about)
    one_label(tmp_path, "20ng", "compressive", [0, 1], [1, 1], paper="scdv-2017", **about)
    monkeypatch.setattr(answers, "_choice", lambda *_: {"params": {"pointer_cost": 0.5}, "trials": TRIALS})
    monkeypatch.setattr(answers, "_features", lambda _, row, method, params: (method, params))
    monkeypatch.setattr(answers, "_stored", lambda _, reference: Stored(tmp_path, *reference))
    return FaithfulRuns(tmp_path)


def test_the_gap_is_the_largest_of_all_that_was_compressed(results: FaithfulRuns) -> None:
    claim = CLAIMS[f"{PLACE}/gap"]
    found = results.measure(claim, CLAIMS)
    assert found is not None and found.value == pytest.approx(1.004)
    assert len(found.rows) == 1
    verdict = judge(claim, found, CLAIMS)
    assert verdict is not None and verdict.kind == "undecided"
    assert verdict.reason.startswith(f"the paper does not state {SEARCHED}")


def test_the_size_is_of_the_chosen_pointer_cost(results: FaithfulRuns) -> None:
    claim = CLAIMS[f"{PLACE}/size"]
    found = results.measure(claim, CLAIMS)
    assert found is not None and found.value == 30
    verdict = judge(claim, found, CLAIMS)
    assert (
        verdict is not None
        and verdict.kind == "undecided"
        and "grids of its cross-validation" in verdict.reason
    )


def test_hours_are_those_of_every_trial_and_one_run_decides_nothing(results: FaithfulRuns) -> None:
    claim = CLAIMS[f"{PLACE}/time"]
    found = results.measure(claim, CLAIMS)
    assert found is not None and found.value == 1.5
    verdict = judge(claim, found, CLAIMS)
    assert verdict is not None and verdict.kind == "undecided"


def test_what_is_not_stored_answers_nothing(results: FaithfulRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_stored", lambda *_: None)
    for name in ("gap", "size"):
        assert results.measure(CLAIMS[f"{PLACE}/{name}"], CLAIMS) is None
