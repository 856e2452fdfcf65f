"""Orders of methods and shapes of sweeps on made runs: judged once all is measured, and recorded with their runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import textbench.flows.referee.recorded_draws
from tests.made_runs import FAITHFUL, empty_record, entry, finish, one_label
from textbench.evaluation.claims.ordering_claims import ORDERS, Above
from textbench.evaluation.claims.published import UNSTATED
from textbench.flows.referee.ledger import choose, ledger, read_measured, record
from textbench.flows.report import recorded_curves
from textbench.flows.report.evidence import gather

TARGET = [0, 1, 2] * 10
PREDICTED = [0, 1, 0] * 10
FIGURE_4 = "dcot-2012/figure-4/reuters65/order"


@pytest.fixture(autouse=True)
def nothing_is_recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    empty_record(monkeypatch, tmp_path)
    monkeypatch.delitem(UNSTATED, "dcot-2012")  # as if the paper stated its settings


def budget(home: Path, method: str, n_labels: int, draw: int, accuracy: float, trials: int = 0) -> str:
    """Make a cell of a label budget; return its key."""
    own = {"protocol": "faithful", "paper": "dcot-2012", "metrics": {"accuracy": accuracy}, "trials": trials}
    asked = {"labels": {"budget": n_labels, "draw": draw, "stratified": False}, "trials": trials}
    row = finish(home, "reuters65", method, {"document": [n_labels, draw]}, request=asked, **own)
    return str(row["key"])


def test_an_order_is_judged_over_the_draws_of_every_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ORDERS, FIGURE_4, Above("dcot", ("lsi",), (500, 1000)))
    for draw in range(5):
        for n_labels in (500, 1000):
            budget(tmp_path, "dcot", n_labels, draw, 0.90 + 0.001 * draw)
        budget(tmp_path, "lsi", 500, draw, 0.88 + 0.0012 * draw)
    assert entry(tmp_path, FIGURE_4).fresh is None
    for draw in range(5):
        budget(tmp_path, "lsi", 1000, draw, 0.91 + 0.0008 * draw)
    found = entry(tmp_path, FIGURE_4)
    assert found.verdict.kind == "not reproduced"
    assert "dcot against lsi at 1000 labels" in found.verdict.reason
    monkeypatch.setitem(UNSTATED, "dcot-2012", "how many prototypes")
    unstated = entry(tmp_path, FIGURE_4).verdict
    assert unstated.kind == "undecided"
    assert unstated.reason == f"the paper does not state how many prototypes; {found.verdict.reason}"


def test_an_order_is_judged_with_draws_recorded_earlier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two folders have other draws of a curve; the verdict is that of one folder with all of them."""
    monkeypatch.setitem(ORDERS, FIGURE_4, Above("dcot", ("lsi",), (500,)))
    keys: dict[tuple[str, int, int], str] = {}

    def key_now(asked: Mapping[str, Any], labels: Mapping[str, Any] | None = None) -> str:
        return keys[asked["methods"][0], asked["trials"], (labels or asked["labels"])["draw"]]

    monkeypatch.setattr(textbench.flows.referee.recorded_draws, "key_now", key_now)

    def run(name: str, draws: Sequence[int], trials: int = 4, better: float = 0.01) -> Path:
        for draw in draws:
            for method, accuracy in (("dcot", 0.89 + better + 0.001 * draw), ("lsi", 0.89 + 0.0012 * draw)):
                key = budget(tmp_path / name, method, 500, draw, accuracy, trials)
                keys[method, trials, draw] = key
        return tmp_path / name

    whole = entry(run("whole", range(6)), FIGURE_4)
    recorded_curves.record(gather(run("first", (0, 1, 2))))
    run("second", (0, 1, 2), trials=0, better=-0.05)  # not tuned, so that the recorded ones count before them
    second = run("second", (3, 4, 5))
    found = entry(second, FIGURE_4)
    assert found.verdict == whole.verdict
    assert found.fresh is not None and whole.fresh is not None
    assert found.fresh.comparisons == whole.fresh.comparisons
    record(second, [found])
    row = read_measured()[FIGURE_4]
    assert {*row["cells"].split()} == {key[:12] for (_, trials, _), key in keys.items() if trials}
    # What is recorded alone is no fresh figure, nor is an order of recorded draws that no fresh one is compared with.
    assert entry(tmp_path / "none", FIGURE_4).fresh is None
    for method, draw in (("dcot", 7), ("lsi", 8)):
        keys[method, 4, draw] = budget(tmp_path / "apart", method, 500, draw, 0.9, 4)
    assert entry(tmp_path / "apart", FIGURE_4).fresh is None


def sweep(home: Path, values: dict[float, float], seeds: Sequence[int], **row: Any) -> list[str]:
    """Runs of SCDV's figure 4 over numbers of clusters; the keys of the runs."""
    keys = []
    for x, value in values.items():
        method = "scdv" if x == 60 else f"scdv(n_clusters={x})"
        for seed in seeds:
            own = {"seed": seed, "metrics": {"accuracy": value + 0.001 * seed * (1 + value)}} | row
            keys.append(one_label(home, "20ng", method, TARGET, PREDICTED, **FAITHFUL, **own)["key"])
    return keys


def test_the_runs_behind_a_sweep_are_those_it_compares(tmp_path: Path) -> None:
    id_ = "scdv-2017/figure-4/scdv/n_clusters"
    values = {10: 0.80, 20: 0.81, 40: 0.82, 60: 0.84, 80: 0.84, 100: 0.83}
    one_label(tmp_path, "20ng", "scdv", TARGET, PREDICTED, seed=4, **FAITHFUL)  # which no other value has
    for other in ("scdv(sparsity=0.0)", "scdv(word_vectors__trainer='shared')"):
        one_label(tmp_path, "20ng", other, TARGET, PREDICTED, **FAITHFUL)
    partial = {x: values[x] for x in (10, 60)}
    sweep(tmp_path, partial, (0, 1))
    assert entry(tmp_path, id_).verdict.reason == "run it with: textbench run scdv"
    keys = sweep(tmp_path, values, (0, 1, 2))
    found = entry(tmp_path, id_)
    assert found.fresh is not None
    assert found.verdict.kind == "reproduced"
    assert {row["key"] for row in found.fresh.rows} == set(keys)
    record(tmp_path, [found])
    row = read_measured()[id_]
    assert (row["seeds"], row["command"]) == ("0 1 2", "textbench run scdv")
    assert entry(tmp_path / "empty", id_).verdict == found.verdict
    # Tuned runs do not have the setting that their method's name stands for.
    sweep(tmp_path, {60: 0.70}, (0, 1, 2), trials=10)
    again = entry(tmp_path, id_)
    assert again.fresh is not None
    assert {row["key"] for row in again.fresh.rows} == set(keys)


def test_recorded_orders_keep_their_comparisons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ORDERS, FIGURE_4, Above("dcot", ("lsi",), (500,)))
    for draw in range(3):
        budget(tmp_path, "dcot", 500, draw, 0.90 + 0.001 * draw)
        budget(tmp_path, "lsi", 500, draw, 0.80 + 0.0011 * draw)
    entries = ledger(tmp_path, choose(FIGURE_4))
    record(tmp_path, entries)
    again = entry(tmp_path / "empty", FIGURE_4)
    assert again.verdict.kind == entries[0].verdict.kind == "reproduced"
