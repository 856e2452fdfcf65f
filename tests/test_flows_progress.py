"""Progress: what is shown at every width, how long is left, and what a pipe gets."""

import io
import json
import logging
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from textbench.flows.cli import forecast, progress
from textbench.flows.cli.forecast import Forecast
from textbench.flows.cli.progress import MOST_LINES, Progress
from textbench.flows.cli.voice import VOICE, Voice
from textbench.flows.plan.cell import Cell, estimate
from textbench.flows.plan.request import Request
from textbench.tasks.storage.locks import locked
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Store

LONG = "scdv(n_clusters=10, word_vectors__min_count=2)"
run = logging.getLogger("textbench.run")
steps = logging.getLogger("textbench.steps")


def cell(place: int, method: str = LONG, labels: dict[str, Any] | None = None) -> Cell:
    references = {
        stage: Reference(stage, "tests.plumbing:make_numbers", {"n": place}) for stage in ("tune", "evaluate")
    }
    request = Request(["r8"], [method], [place], labels=labels or {})
    return Cell("r8", method, "honest", place, 0, references, "linear-svm", request)


def end(one: Cell, seconds: float = 1.0, error: str | None = None) -> None:
    row = {"error": error, "cached": False, "seconds": {"tune": seconds}}
    run.info("%s: %s", one.label, error or "done", extra={"cell": one.key, "row": row})


def start(one: Cell, stage: str = "tune") -> None:
    run.info("%s: %s", one.label, stage, extra={"cell": one.key, "stage": stage})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The time of progress and forecast, in seconds, which the test sets."""
    now = [0.0]
    for module in (progress, forecast):
        monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    yield now


def shown(made: Progress, width: int) -> list[str]:
    """What a terminal of this width shows."""
    out = io.StringIO()
    Console(width=width, force_terminal=True, color_system=None, file=out).print(made)
    return out.getvalue().splitlines()


def terminal(width: int = 80) -> Console:
    return Console(width=width, force_terminal=True, color_system=None, file=io.StringIO())


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_count_bar_and_times_stay_at_every_width(width: int, clock: list[float]) -> None:
    cells = [cell(place) for place in range(1000)]
    expected = dict.fromkeys((one.key for one in cells), 36.0)
    with Progress(list(cells), False, expected, terminal(width)) as made:
        for one in cells[:2]:
            start(one)
        for one in cells[2:500]:
            end(one)
        clock[0] = 3661.0
        lines = shown(made, width)
    assert lines[0].startswith("498/1000 ")
    assert "━" in lines[0]
    assert "1:01:01, " in lines[0]
    assert lines[0].rstrip().endswith(" left")
    assert "?" not in lines[0]
    assert len(lines) == 3
    assert all(len(line.rstrip()) <= width for line in lines)
    assert all(line.startswith("tune: r8 scdv(n_") for line in lines[1:])
    assert [line.rstrip()[-6:] for line in lines[1:]] == ["seed 0", "seed 1"]  # cut in the middle, if at all
    assert ("…" in lines[1]) == (width < len(f"tune: {cells[0].label}"))


def test_a_cell_that_waits_says_so(clock: list[float], tmp_path: Path) -> None:
    """Between its stages, and where another run makes what it needs."""
    first, second = cell(0, "tfidf"), cell(1, "lsi")
    store = Store(tmp_path, isolated=False)
    with Progress([first, second], False, {}, terminal()) as made:
        start(first)
        start(second)
        steps.debug("", extra={"cell": first.key, "stage": "tune", "waits": "waits"})
        assert [line.rstrip() for line in shown(made, 80)[1:]] == [
            "tune: r8 lsi seed 1",
            "waits: r8 tfidf seed 0",
        ]
        with locked(tmp_path / "tune" / f".{second.references['tune'].key}.lock"):
            thread = threading.Thread(target=store.ensure, args=(second.references["tune"],))
            waits = threading.Event()
            steps.addFilter(lambda record: waits.set() or True)
            thread.start()
            assert waits.wait(120)
            steps.filters.clear()
            while "another" not in (lines := "\n".join(shown(made, 80))):
                pass
            assert "waits for another run: r8 lsi seed 1" in lines
        thread.join()
        assert "tune: r8 lsi seed 1" in "\n".join(shown(made, 80))


def test_many_cells_under_way_are_counted(clock: list[float]) -> None:
    cells = [cell(place, "tfidf") for place in range(MOST_LINES + 3)]
    with Progress(list(cells), False, {}, terminal()) as made:
        for one in cells:
            start(one)
        lines = shown(made, 80)
    assert len(lines) == 1 + MOST_LINES + 1
    assert lines[-1].rstrip() == "and 3 more under way"


def test_before_the_first_cell_it_says_what_goes_on() -> None:
    with Progress([cell(0)], False, {}, terminal()) as made:
        made.say("waiting for the Prefect server")
        assert shown(made, 40)[1].rstrip() == "waiting for the Prefect server"
        assert "? left" in shown(made, 40)[0]


def test_a_pipe_gets_a_line_a_cell_with_its_budget_and_draw() -> None:
    out = io.StringIO()
    cells = [cell(draw, LONG, {"budget": 100, "draw": draw, "stratified": False}) for draw in (0, 1)]
    with Progress(list(cells), False, {}, Console(file=out, width=40)) as made:
        for one in cells:
            start(one)
            end(one)
        assert made.n_ended == 2
    assert out.getvalue().splitlines() == [
        f"[1/2] r8 {LONG} seed 0, 100 labels, draw 0: done",
        f"[2/2] r8 {LONG} seed 1, 100 labels, draw 1: done",
    ]


def test_what_is_left_goes_by_what_is_expected_and_then_by_the_runs_own_speed(clock: list[float]) -> None:
    made = Forecast({"a": 100.0, "b": 100.0, "c": 0.0}, workers=1)
    assert made.remaining() == pytest.approx(200)
    made.begin("a")
    clock[0] = 50.0
    assert made.remaining() == pytest.approx(150)  # just as fast as expected
    made.end("a", 50.0)
    left = made.remaining()
    assert left is not None
    assert 50 < left < 100  # twice as fast as expected, so what is left is less, too
    made.begin("b")
    clock[0] = 1000.0
    assert made.remaining() == pytest.approx(0)
    made.end("b", 900.0)
    assert made.remaining() == pytest.approx(0)


def test_cells_nobody_timed_count_as_the_mean_of_the_others(clock: list[float]) -> None:
    made = Forecast({"a": None, "b": None, "c": None}, workers=2)
    assert made.remaining() is None
    made.begin("a")
    clock[0] = 10.0
    made.end("a", 20.0)
    assert made.remaining() == pytest.approx(2 * 20 / ((20 + 30 * 2) / (10 + 30)))
    assert Forecast({"a": 4.0, "b": None}, workers=1).remaining() == pytest.approx(8)


class Counted(dict[str, Any]):
    """A record that counts how often its seconds are read."""

    n_read = 0

    def __getitem__(self, name: str) -> Any:
        Counted.n_read += name == "seconds"
        return super().__getitem__(name)


def test_an_estimate_reads_each_record_once(tmp_path: Path) -> None:
    cells = [cell(place, method) for method in ("tfidf", "lsi", "nmf") for place in range(20)]
    record = {"dataset": "r8", "trials": 0}
    records = [
        Counted(record, method=method, seconds={"tune": seconds, "evaluate": 1.0})
        for method, seconds in (("tfidf", 1.0), ("tfidf", 3.0), ("lsi", 5.0))
    ]
    assert estimate(cells, Store(tmp_path), records) == [3.0] * 20 + [6.0] * 20 + [None] * 20
    assert Counted.n_read == len(records)


def test_rows_are_printed_as_json_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    one = cell(0, "tfidf")
    with Progress([one], True, {}, Console(file=io.StringIO())):
        end(one, error="no")
    assert json.loads(capsys.readouterr().out)["error"] == "no"


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize(
    ("voice", "said"),
    [
        ("quiet", ["warning: slow", "[2/2] r8 lsi seed 1: failed"]),
        ("verbose", ["r8 tfidf seed 0: tune", "info: hello", "warning: slow", "[1/2] r8 tfidf seed 0: done"]),
    ],
)
def test_how_much_is_said(voice: Voice, said: list[str], is_terminal: bool) -> None:
    out, first, second = io.StringIO(), cell(0, "tfidf"), cell(1, "lsi")
    token = VOICE.set(voice)
    try:
        console = Console(width=80, force_terminal=is_terminal, color_system=None, file=out)
        with Progress([first, second], False, {}, console):
            start(first)
            steps.debug("", extra={"cell": first.key, "stage": "tune", "waits": "waits"})
            run.info("hello")
            run.warning("slow")
            end(first)
            end(second, error="failed")
    finally:
        VOICE.reset(token)
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9?]*[A-Za-z]", "\n", out.getvalue()).splitlines()]
    assert [line for line in lines if line in said] == said
    assert not any(line.endswith("waits") for line in lines)
    if voice == "quiet":
        assert [line for line in lines if line] == said


def test_an_ensemble_shows_each_member_under_way_and_waits_only_when_none_is() -> None:
    names = ("01 tune", "02 tune", "02 evaluate", "evaluate")
    references = {name: Reference(name, "tests.plumbing:make_numbers", {"n": 1}) for name in names}
    request = Request(["r8"], ["ensemble(tfidf, lsi)"], [1])
    one = Cell("r8", "ensemble(tfidf, lsi)", "honest", 1, 0, references, "linear-svm", request)

    def over(stage: str) -> None:
        steps.debug("%s", stage, extra={"cell": one.key, "stage": stage, "waits": "waits"})

    with Progress([one], as_json=False, console=Console(file=io.StringIO())) as made:
        start(one, "01 tune")
        start(one, "02 tune")
        assert shown(made, 80)[1:] == [f"{stage}: {one.label}" for stage in ("01 tune", "02 tune")]
        over("02 tune")
        start(one, "02 evaluate")
        assert shown(made, 80)[1:] == [f"{stage}: {one.label}" for stage in ("01 tune", "02 evaluate")]
        over("01 tune")
        assert shown(made, 80)[1:] == [f"02 evaluate: {one.label}"]
        over("02 evaluate")
        assert shown(made, 80)[1:] == [f"waits: {one.label}"]
        start(one, "evaluate")
        assert shown(made, 80)[1:] == [f"evaluate: {one.label}"]
        end(one)
        assert shown(made, 80)[1:] == []
