"""The agenda of a sweep: what starts when, what a failure takes along, and how much work keeping it is."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import plumbing
from textbench.flows.plan.base_cell import BaseCell
from textbench.flows.plan.cell import plan
from textbench.flows.plan.request import Request
from textbench.flows.run import engine
from textbench.flows.run.scheduler import Scheduler
from textbench.tasks.sources import user_data
from textbench.tasks.storage import definitions, kept_traces, recipe
from textbench.tasks.storage.isolate import CellError
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Store

Ended = list[tuple[int, str | None]]


def square(number: int, steps: Sequence[str]) -> BaseCell:
    """A cell whose stages are these, in order; equal names are one artifact."""
    references = {f"{i}": Reference("stage", "m:f", {"name": name}) for i, name in enumerate(steps)}
    return BaseCell("d", "m", "honest", number, 0, references)


def name_of(reference: Reference) -> str:
    return str(reference.params["name"])


def by_scanning(
    cells: Sequence[BaseCell], stored: set[str], failing: set[str], workers: int, rng: np.random.Generator
) -> tuple[list[list[str]], Ended]:
    """The rule, told by going over all cells whenever something ends: (what starts together, which cells ended)."""
    outcome: dict[str, str | None] = {}
    running: list[str] = []
    waiting, rounds, over = list(cells), [], []
    while waiting:
        started = []
        for cell in list(waiting):
            names = [name_of(reference) for reference in cell.references.values()]
            left = [name for name in names if outcome.get(name, "to do") is not None]
            if not left or left[0] in outcome:
                waiting.remove(cell)
                over.append((cell.seed, outcome[left[0]] if left else None))
            elif left[0] not in running and (
                left[0] in stored or sum(name not in stored for name in running) < workers
            ):
                running.append(left[0])
                started.append(left[0])
        rounds.append(started)
        if running:
            ended = running.pop(int(rng.integers(len(running))))
            outcome[ended] = f"{ended} failed" if ended in failing else None
    return rounds, over


def by_agenda(
    cells: Sequence[BaseCell], stored: set[str], failing: set[str], workers: int, rng: np.random.Generator
) -> tuple[list[list[str]], Ended]:
    """The same, by the agenda."""
    agenda = Scheduler(cells, lambda reference: name_of(reference) in stored)
    running: list[Reference] = []
    rounds: list[list[str]] = []
    over: Ended = []
    while not agenda.is_done:
        started = []
        while True:
            n_computing = sum(name_of(reference) not in stored for reference in running)
            step = agenda.take(may_read=True, may_compute=n_computing < workers)
            if step is None:
                break
            running.append(step[2])
            started.append(name_of(step[2]))
            assert step[3] == (started[-1] in stored)
        over += [(cell.seed, error) for cell, error in agenda.over]
        agenda.over.clear()
        rounds.append(started)
        if running:
            ended = running.pop(int(rng.integers(len(running))))
            name = name_of(ended)
            agenda.settle(ended.key, f"{name} failed" if name in failing else None)
    return rounds, over


def made(rng: np.random.Generator, n_cells: int) -> list[BaseCell]:
    """Cells of two to four stages, the early ones shared by many, the last ones by few."""
    return [
        square(
            i, [f"{stage}-{rng.integers(1 + n_cells * stage // 4)}" for stage in range(rng.integers(2, 5))]
        )
        for i in range(n_cells)
    ]


@pytest.mark.parametrize("seed", range(30))
def test_what_starts_and_ends_is_what_scanning_all_cells_gives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = made(rng, int(rng.integers(1, 25)))
    names = sorted({name_of(r) for cell in cells for r in cell.references.values()})
    failing = {name for name in names if rng.random() < 0.15}
    workers = int(rng.integers(1, 4))
    for stored in (set(), set(names)):  # with some of each the order inside a round is free
        rule = by_scanning(cells, stored, failing, workers, np.random.default_rng(seed))
        assert by_agenda(cells, stored, failing, workers, np.random.default_rng(seed)) == rule


@pytest.mark.parametrize("seed", range(20))
def test_with_some_stages_stored_cells_end_as_they_must_and_each_stage_starts_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = made(rng, 20)
    names = sorted({name_of(r) for cell in cells for r in cell.references.values()})
    stored, failing = ({name for name in names if rng.random() < share} for share in (0.5, 0.1))
    rounds, over = by_agenda(cells, stored, failing, 2, rng)
    started = [name for one in rounds for name in one]
    assert len(set(started)) == len(started)
    expected = {}
    for cell in cells:
        failed = [name_of(r) for r in cell.references.values() if name_of(r) in failing]
        expected[cell.seed] = f"{failed[0]} failed" if failed else None
    assert dict(over) == expected
    assert len(over) == len(cells)


def made_ensembles(rng: np.random.Generator, n_cells: int) -> list[BaseCell]:
    """Cells of a few members of a few stages each, which others may have too, between stages of their own."""
    cells = []
    for i in range(n_cells):
        names = {"ingest": "ingest"}
        for member in range(rng.integers(4)):
            which = rng.integers(6)
            names |= {
                f"{member:02} {stage}": f"{stage} {which}" for stage in ("featurize", "tune", "evaluate")
            }
        names |= {"tune": f"tune of {i}", "evaluate": f"evaluate of {i}"}
        references = {at: Reference("stage", "m:f", {"name": name}) for at, name in names.items()}
        cells.append(BaseCell("d", "m", "honest", i, 0, references))
    return cells


@pytest.mark.parametrize("seed", range(30))
def test_of_ensembles_each_stage_starts_once_after_those_it_needs_and_cells_end_as_they_must(
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    cells = made_ensembles(rng, 12)
    names = sorted({name_of(r) for cell in cells for r in cell.references.values()})
    failing = {name for name in names if name != "ingest" and rng.random() < 0.08 * (seed % 2)}
    rounds, over = by_agenda(cells, set(), failing, 3, rng)
    started = [name for one in rounds for name in one]
    assert len(set(started)) == len(started)
    whole = set()
    for cell in cells:
        own = [name_of(r) for r in cell.references.values()]
        failed = {f"{name} failed" for name in own if name in failing}
        error = dict(over)[cell.seed]
        assert error in failed if failed else error is None
        if not failed:
            whole |= {*own}
            first = {stage: started.index(name_of(r)) for stage, r in cell.references.items()}
            members = {stage.rpartition(" ")[0] for stage in first} - {""}
            for member in members:
                chain = [first[f"{member} {stage}"] for stage in ("featurize", "tune", "evaluate")]
                assert first["ingest"] < chain[0] < chain[1] < chain[2] < first["tune"] < first["evaluate"]
    assert whole <= {*started}
    assert len(over) == len(cells)
    if not failing:
        assert whole == {*started}


def test_first_cells_come_first_and_each_goes_through_to_its_end() -> None:
    cells = [square(i, ["shared", f"learn {i}", f"score {i}"]) for i in range(3)]
    rounds, over = by_agenda(cells, set(), set(), 1, np.random.default_rng(0))
    order = [name for one in rounds for name in one]
    assert order == [
        "shared", "learn 0", "score 0", "learn 1", "score 1", "learn 2", "score 2",
    ]  # fmt: skip
    assert over == [(0, None), (1, None), (2, None)]


def test_an_earlier_cell_that_comes_to_need_a_stage_brings_it_forward() -> None:
    cells = [square(0, ["a", "late"]), square(1, ["b"]), square(2, ["c"]), square(3, ["late"])]
    agenda = Scheduler(cells, lambda _: False)
    first = agenda.take(may_read=True, may_compute=True)
    assert first is not None and name_of(first[2]) == "a"
    agenda.settle(first[2].key, None)
    order = []
    while step := agenda.take(may_read=True, may_compute=True):
        order.append((step[0].seed, name_of(step[2])))
    assert order == [(0, "late"), (1, "b"), (2, "c")]


def test_a_limit_on_what_is_stored_does_not_hold_up_computing() -> None:
    cells = [square(i, [f"old {i}"]) for i in range(5)] + [square(5, ["new"])]
    agenda = Scheduler(cells, lambda reference: name_of(reference).startswith("old"))
    step = agenda.take(may_read=False, may_compute=True)
    assert step is not None and name_of(step[2]) == "new"
    assert agenda.take(may_read=False, may_compute=True) is None
    assert agenda.take(may_read=False, may_compute=False) is None
    step = agenda.take(may_read=True, may_compute=False)
    assert step is not None and name_of(step[2]) == "old 0"


def features_cell(number: int, members: int = 0) -> BaseCell:
    """A cell with features, or an ensemble of members that have some."""
    names = [f"{i:02} " for i in range(1, members + 1)] or [""]
    references = {"ingest": Reference("ingest", "m:f", {})}
    for name in names:
        for stage in ("featurize", "tune", "evaluate"):
            references[name + stage] = Reference(stage, "m:f", {"name": f"{name}{stage}", "of": number})
    if members:
        references["evaluate"] = Reference("evaluate", "m:f", {"name": "evaluate", "of": number})
    return BaseCell("d", "m", "honest", number, 0, references)


def started_with(cell: BaseCell, missing: set[str]) -> list[str]:
    """The stages that a cell goes through where some are not stored."""
    keys = {cell.references[name].key for name in missing}
    agenda = Scheduler([cell], lambda reference: reference.key not in keys)
    names = []
    while step := agenda.take(may_read=True, may_compute=True):
        names.append(step[1])
        agenda.settle(step[2].key, None)
    assert list(agenda.over) == [(cell, None)]
    return names


def test_features_are_made_only_where_something_is_made_from_them() -> None:
    cell = features_cell(0)
    assert started_with(cell, {"featurize"}) == started_with(cell, set()) == ["ingest", "tune", "evaluate"]
    for missing in ("tune", "evaluate"):
        assert started_with(cell, {"featurize", missing}) == list(cell.references)
    ensemble = features_cell(0, members=2)
    whole = [name for name in ensemble.references if "featurize" not in name]
    assert started_with(ensemble, {"01 featurize", "02 featurize", "evaluate"}) == whole
    started = started_with(ensemble, {"01 featurize", "02 featurize", "02 evaluate"})
    assert "02 featurize" in started and "01 featurize" not in started


def test_members_of_an_ensemble_go_side_by_side_and_it_waits_for_all_of_them() -> None:
    cell = features_cell(0, members=3)
    agenda = Scheduler([cell], lambda _: False)
    first = agenda.take(may_read=True, may_compute=True)
    assert first is not None and first[1] == "ingest"
    assert agenda.take(may_read=True, may_compute=True) is None
    agenda.settle(first[2].key, None)
    running = [agenda.take(may_read=True, may_compute=True) for _ in range(4)]
    assert [step and step[1] for step in running] == ["01 featurize", "02 featurize", "03 featurize", None]
    # A member that began comes before those that did not, and its own stages follow one another.
    agenda.settle(cell.references["02 featurize"].key, None)
    agenda.settle(cell.references["01 featurize"].key, None)
    started = [step[1] for _ in range(3) if (step := agenda.take(may_read=True, may_compute=True))]
    assert started == ["01 tune", "02 tune"]
    for name in ("01 tune", "02 tune", "03 featurize"):
        agenda.settle(cell.references[name].key, None)
    left = []
    while step := agenda.take(may_read=True, may_compute=True):
        left.append(step[1])
        agenda.settle(step[2].key, None)
    assert left == ["01 evaluate", "02 evaluate", "03 tune", "03 evaluate", "evaluate"]
    assert list(agenda.over) == [(cell, None)]


def test_a_member_that_fails_ends_its_ensemble_and_nothing_is_made_for_it_alone() -> None:
    ensemble, other = features_cell(0, members=3), features_cell(1)
    shared = {name: ensemble.references[f"03 {name}"] for name in ("featurize", "tune", "evaluate")}
    alone = BaseCell("d", "m", "honest", 2, 0, {"ingest": ensemble.references["ingest"]} | shared)
    agenda = Scheduler([ensemble, other, alone], lambda _: False)
    first = agenda.take(may_read=True, may_compute=True)
    assert first is not None
    agenda.settle(first[2].key, None)
    running = [agenda.take(may_read=True, may_compute=True) for _ in range(2)]
    assert [step and step[1] for step in running] == ["01 featurize", "02 featurize"]
    agenda.settle(ensemble.references["02 featurize"].key, "02 failed")
    assert agenda.over.popleft() == (ensemble, "02 failed")
    # What is under way goes on for nobody; what another cell needs too comes in its turn.
    agenda.settle(ensemble.references["01 featurize"].key, None)
    started = []
    while step := agenda.take(may_read=True, may_compute=True):
        started.append((step[0].seed, step[2].stage))
        agenda.settle(step[2].key, None)
    stages = ("featurize", "tune", "evaluate")
    assert started == [(1, stage) for stage in stages] + [(2, stage) for stage in stages]
    assert list(agenda.over) == [(other, None), (alone, None)]


class Counted(Mapping[str, Reference]):
    """References that count how often they are gone through."""

    n_read = 0

    def __init__(self, references: Mapping[str, Reference]) -> None:
        self._references = references

    def __getitem__(self, name: str) -> Reference:
        return self._references[name]

    def __len__(self) -> int:
        return len(self._references)

    def __iter__(self) -> Iterator[str]:
        Counted.n_read += 1
        return iter(self._references)


@pytest.mark.parametrize("n_stored", [0, 5000])
def test_five_thousand_cells_ask_once_a_stage_and_are_looked_at_once_a_stage(n_stored: int) -> None:
    steps = [["corpus", "counts", f"learn {i}", f"tune {i}", f"score {i}"] for i in range(5000)]
    cells = [
        BaseCell("d", "m", "honest", i, 0, Counted(square(i, names).references))
        for i, names in enumerate(steps)
    ]
    asked: Counter[str] = Counter()

    def has(reference: Reference) -> bool:
        asked[reference.key] += 1
        return n_stored > 0

    agenda = Scheduler(cells, has)
    Counted.n_read = 0
    running: list[str] = []
    n_over = 0
    while not agenda.is_done:
        while step := agenda.take(may_read=len(running) < 8, may_compute=len(running) < 2):
            running.append(step[2].key)
        agenda.settle(running.pop(0), None)
        n_over += len(agenda.over)
        agenda.over.clear()
    assert n_over == 5000
    assert len(asked) == 2 + 3 * 5000
    assert set(asked.values()) == {1}
    assert Counted.n_read == 5 * 5000


def test_a_plan_follows_imports_and_reads_documents_once_however_many_cells_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond that a cell costs three fingerprints: of its features, its choice and its result."""
    monkeypatch.setattr(kept_traces, "kept", lambda entries: None)
    path = tmp_path / "documents.csv"
    path.write_text("text,label\n" + "".join(f"word{i} {'ab'[i % 2]},{'ab'[i % 2]}\n" for i in range(20)))
    made: Counter[str] = Counter()

    def counted(module: Any, name: str) -> None:
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given: made.update([name]) or real(*given))

    for module, name in ((definitions, "trace"), (recipe, "fingerprint"), (user_data, "reference")):
        counted(module, name)
    found = []
    for n_seeds in (50, 100):
        recipe._TRACES.clear()
        made.clear()
        cells = plan(Request([], ["lsi", "binary"], list(range(n_seeds)), own={"path": str(path)}))
        assert len({cell.key for cell in cells}) == 2 * n_seeds
        found.append(dict(made))
    assert found[0]["reference"] == found[1]["reference"] == 1
    assert found[0]["trace"] == found[1]["trace"]
    assert found[1]["fingerprint"] - found[0]["fingerprint"] == 3 * 100


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many stages were under way at once, at the start of each."""
    counts: list[int] = []
    under_way: set[str] = set()

    def run(stage: str, reference: Reference, store: Store) -> None:
        under_way.add(reference.key)
        counts.append(len(under_way))
        try:
            store.ensure(reference)
            if reference.params.get("fails"):
                raise CellError("it was not to be")
        finally:
            under_way.discard(reference.key)

    monkeypatch.setattr(engine.stages, "run", run)
    return counts


def planned(count: Path, failing: set[int]) -> list[BaseCell]:
    """Cells that share their first stage; the tuning of some fails."""
    shared = plumbing.numbers({"n": 3, "count": str(count), "seconds": 0.01}, "ingest")
    cells = []
    for i in range(12):
        tuned = plumbing.numbers(
            {"n": 3, "i": i, "fails": i in failing, "count": str(count), "seconds": 0.01}, "tune"
        )
        result = plumbing.total({"i": i, "count": str(count)}, tuned)
        cells.append(
            BaseCell("d", "m", "honest", i, 0, {"ingest": shared, "tune": tuned, "evaluate": result})
        )
    return cells


@pytest.mark.parametrize("workers", [1, 2])
def test_the_engine_computes_each_stage_once_and_fails_the_cells_that_need_a_failed_one(
    tmp_path: Path, at_once: list[int], workers: int
) -> None:
    count = tmp_path / "count"
    cells = planned(count, failing={3, 7})
    ended: dict[int, str | None] = {}
    store = Store(tmp_path / "store", isolated=False)
    with engine.Threads() as runner:
        engine.execute(cells, store, runner, lambda cell, error: ended.update({cell.seed: error}), workers)
    assert ended == {i: "it was not to be" if i in (3, 7) else None for i in range(12)}
    assert max(at_once) == workers
    assert len(count.read_text().splitlines()) == 1 + 12 + 10


def test_the_engine_reads_what_is_stored_a_few_at_a_time(tmp_path: Path, at_once: list[int]) -> None:
    cells = planned(tmp_path / "count", failing=set())
    store = Store(tmp_path / "store", isolated=False)
    with engine.Threads() as runner:
        engine.execute(cells, store, runner, lambda *_: None, 2)
    n_computed = len((tmp_path / "count").read_text().splitlines())
    at_once.clear()
    ended: list[str | None] = []
    with engine.Threads() as runner:
        engine.execute(cells, store, runner, lambda _, error: ended.append(error), 1)
    assert ended == [None] * 12
    assert max(at_once) <= engine.AHEAD
    assert len((tmp_path / "count").read_text().splitlines()) == n_computed
