"""What measured.csv keeps of made runs: figures without their folder, and seeds beside fresh ones of the same key."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import textbench.flows.referee.recorded
from tests.made_runs import FAITHFUL, empty_record, entry, one_label
from textbench.evaluation.claims.published import METHODS
from textbench.flows.plan.cell import plan
from textbench.flows.plan.derived import plan_derived
from textbench.flows.plan.request import DerivedRequest, Request
from textbench.flows.referee.ledger import LedgerEntry, choose, ledger, read_measured, record

TARGET = [0, 1, 2] * 10
BOW = [0, 1, 0] * 10
BETTER = [0, 1, 2, 0, 1, 0] * 5


@pytest.fixture(autouse=True)
def nothing_is_recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    empty_record(monkeypatch, tmp_path)


def test_recorded_figures_outlive_the_results_folder(tmp_path: Path) -> None:
    home = tmp_path / "first"
    identity = {"documents_sha256": "0" * 64, "n_train": 30, "n_test": 30, "n_labels": 3}
    one_label(home, "20ng", "counts", TARGET, BOW, **FAITHFUL, corpus=identity)
    id_ = "scdv-2017/table-1/bow/accuracy"
    before = ledger(home, choose(id_))
    assert record(home, before) == 1
    (row,) = read_measured().values()
    assert row["data_sha256"] == f"made.tar={'0' * 64}"
    assert row["command"] == f"textbench claims {id_} --run --record"
    assert json.loads(row["params"]) == {"counts seed 0": {"C": 1.0}}
    after = entry(tmp_path / "second", id_)
    assert after.fresh is None
    assert (after.verdict.kind, after.verdict.reason) == (before[0].verdict.kind, before[0].verdict.reason)
    assert after.recorded is not None
    assert after.recorded.value == pytest.approx(before[0].fresh.value, abs=1e-5)  # type: ignore[union-attr]
    # A figure measured anew takes the place of the recorded one; others stay.
    one_label(home, "20ng", "counts", TARGET, BETTER, **FAITHFUL)
    record(home, ledger(home, choose("scdv-2017/table-1/bow/macro-f1")))
    assert record(home, ledger(home, choose(id_))) == 1
    assert len(read_measured()) == 2
    assert float(read_measured()[id_]["value"]) > float(row["value"])


def test_recorded_seeds_stand_beside_fresh_ones_of_the_same_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three results folders with a seed or two each; what would be made otherwise today does not count."""
    monkeypatch.setitem(METHODS, "LDA", "lsi")
    id_, keys = "scdv-2017/table-1/lda/accuracy", {}
    monkeypatch.setattr(textbench.flows.referee.recorded, "key_now", lambda asked, seeds: keys[seeds[0]])

    def run_seeds(home: Path, seeds: dict[int, float]) -> LedgerEntry:
        for seed, accuracy in seeds.items():
            own = {"seed": seed, "metrics": {"accuracy": accuracy}, "params": {"C": float(seed)}}
            row = one_label(home, "20ng", "lsi", TARGET, BOW, **FAITHFUL, **own)
            keys[seed] = row["key"]
        return entry(home, id_)

    first = run_seeds(tmp_path / "first", {0: 0.720})
    record(tmp_path / "first", [first])
    assert json.loads(read_measured()[id_]["each"]) == {"0": 72.0}
    second = run_seeds(tmp_path / "second", {2: 0.724, 1: 0.722})
    assert second.fresh is not None
    assert second.fresh.each == pytest.approx({0: 72.0, 1: 72.2, 2: 72.4})
    assert second.fresh.high == pytest.approx(72.2 + 4.302653 * 0.2 / math.sqrt(3), abs=1e-4)
    record(tmp_path / "second", [second])
    row = read_measured()[id_]
    assert (row["seeds"], row["cells"]) == ("0 1 2", " ".join(keys[seed][:12] for seed in range(3)))
    assert json.loads(row["params"])["lsi seed 0"] == {"C": 0.0}
    # Where earlier code made a fresh seed, recorded ones of today's do not stand beside it.
    own_key, keys[2] = keys[2], "of today's code"
    assert entry(tmp_path / "second", id_).fresh.each == pytest.approx({1: 72.2, 2: 72.4})  # type: ignore[union-attr]
    keys[2] = own_key
    # A fresh seed replaces the recorded one, and of two recorded ones that with another key is left out.
    keys[1] = "of other code"
    third = run_seeds(tmp_path / "third", {2: 0.730})
    assert third.fresh is not None
    assert third.fresh.each == pytest.approx({0: 72.0, 2: 73.0})
    assert third.as_json()["measured"]["seeds"] == [0, 2]


def test_the_key_of_today_is_that_of_the_plan() -> None:
    asked = Request(["20ng"], ["lda"], [3], "faithful", paper="scdv-2017")
    (cell,) = plan(asked)
    one = {"dataset": "20ng", "method": "lda", "paper": "scdv-2017"}
    row = one | {"request": asdict(replace(asked, seeds=[0]))}
    assert textbench.flows.referee.recorded._key_now(row, 3) == cell.key
    assert textbench.flows.referee.recorded._key_now(row, 4) != cell.key
    (piece,) = plan_derived(
        DerivedRequest(**asdict(replace(asked, methods=["lda(n_topics=80)"])), pieces=["topics"])
    )
    row = one | {"method": "lda(n_topics=80)", "stage": "topics"}
    assert textbench.flows.referee.recorded._key_now(row, 3) == piece.key
