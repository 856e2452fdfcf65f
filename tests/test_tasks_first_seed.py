"""First seed: of many training documents a seed that would draw nothing but folds has the first one's result."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.own_documents import write
from textbench.evaluation.probes import tuning
from textbench.flows.plan.cell import Cell, plan
from textbench.flows.plan.request import BenchmarkRequest
from textbench.tasks import out_of_fold
from textbench.tasks.storage.store import Store

STAGES = ("tune", "evaluate", "out_of_fold")
ROWS = [(f"w{i % 7} {'apple' if i % 2 else 'iron'} w{i % 5}", "ab"[(i * i) % 3 % 2]) for i in range(60)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    write(tmp_path, "one.csv", "text,label\n" + "".join(f"{text},{label}\n" for text, label in ROWS))
    return Store(tmp_path / "store", isolated=False)


def cells(store: Store, method: str, seeds: list[int], **options: Any) -> list[Cell]:
    own = {"path": str(store.root.parent / "one.csv")}
    return plan(BenchmarkRequest([], [method], own=own, seeds=seeds, **options))


def taken(store: Store, cell: Cell) -> list[str | None]:
    return [store.ensure(cell.references[stage]).get("same_as") for stage in STAGES]


@pytest.mark.parametrize("method", ["tfidf", "nb", "join(tfidf, counts)"])
def test_of_many_documents_a_seed_has_the_result_of_the_first(
    store: Store, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "LARGE", 20)
    third, first = cells(store, method, [3, 0])
    assert taken(store, third) == [first.references[stage].key for stage in STAGES]
    assert taken(store, first) == [None] * 3
    for stage in STAGES:
        one, other = (store.ensure(cell.references[stage]) for cell in (first, third))
        assert one["files"] == other["files"]
        assert [one[cost] for cost in ("seconds", "cpu_seconds", "peak_mb")] == [
            other[cost] for cost in ("seconds", "cpu_seconds", "peak_mb")
        ]
    # What an ensemble reads of the scores goes with them.
    scores = [store.open(cell.references["out_of_fold"]) for cell in (first, third)]
    parts = [np.concatenate(out_of_fold.scored_together(one)) for one in scores]
    assert parts[0].tolist() == parts[1].tolist()
    assert sorted(parts[0]) == list(range(len(scores[0].array("documents"))))


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("lsi(n_components=2)", {}),  # has a seed
        ("join(tfidf, lsi(n_components=2))", {}),
        ("tfidf", {"probe": "perceptron"}),  # draws
        ("tfidf", {"trials": 2}),  # searches
    ],
)
def test_what_a_seed_changes_is_computed(
    store: Store, method: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "LARGE", 20)
    (third,) = cells(store, method, [3], **options)
    assert taken(store, third) == [None] * 3


def test_of_few_documents_every_seed_is_computed(store: Store) -> None:
    (third,) = cells(store, "tfidf", [3])
    assert taken(store, third) == [None] * 3
