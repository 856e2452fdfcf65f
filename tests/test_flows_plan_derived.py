"""Pieces through the flow on real documents, the suite's order, and what is refused."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.commands import environment, textbench
from tests.warm import PROJECT, Process
from textbench.flows.cli.summary import print_plan
from textbench.flows.plan.cell import plan
from textbench.flows.plan.derived import MADE, plan_derived
from textbench.flows.plan.request import DerivedRequest
from textbench.flows.plan.suites import Part, parts
from textbench.flows.referee.measurement import is_random
from textbench.tasks import InputError, catalogue, stages

SMALL = "word_vectors__epochs=1, word_vectors__vector_size=10"
ASKED = DerivedRequest(
    ["r8"], [f"scdv(n_clusters=5, {SMALL})"], (0, 1), name="small", pieces=["topics", "values"]
)
RUN = """
import json, sys
from pathlib import Path
from textbench.flows.cli.runner import run_flow
from textbench.flows.plan.request import DerivedRequest
asked, home = json.loads(sys.argv[1])
run_flow(Path(home), DerivedRequest(**asked), as_json=True)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A results folder whose server is stopped at the end."""
    folder = tmp_path_factory.mktemp("pieces")
    yield folder
    textbench("down", home=folder)


def run(home: Path, request: DerivedRequest) -> list[dict[str, Any]]:
    asked = json.dumps([asdict(request), str(home)])
    process = Process([asked], environment(home, PROJECT, {}), PROJECT, RUN)
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    rows = [json.loads(line) for line in output.splitlines()]
    return sorted(rows, key=lambda row: (row["seed"], row["stage"]))  # they come as they end


def test_pieces_are_prefect_tasks_that_are_cached_and_resumed(home: Path) -> None:
    """Two seeds train vectors of their own; what is there is not made again, what is lost is."""
    rows = run(home, ASKED)
    assert [(row["seed"], row["stage"], row["cached"], row["error"]) for row in rows] == [
        (seed, stage, False, None) for seed in (0, 1) for stage in ("topics", "values")
    ]
    store = home / "store"
    assert len(list((store / "word_vectors").glob("*/meta.json"))) == 2
    assert not (store / "tune").exists()
    planned = plan_derived(ASKED)
    lost = store / "topics" / planned[0].key
    for path in lost.iterdir():
        path.unlink()
    lost.rmdir()
    again = run(home, ASKED)
    assert [row["cached"] for row in again] == [False, True, True, True]
    assert json.loads((lost / "topics.json").read_text("utf-8"))["n_documents"] == 5485


def test_a_piece_that_fails_fails_alone(home: Path) -> None:
    """Bags of vectors have hard clusters and no topics."""
    bags = DerivedRequest(["r8"], [f"bowv(n_clusters=5, {SMALL})"], (0,), name="small", pieces=["topics"])
    (row,) = run(home, bags)
    assert "bowv has neither" in row["error"]


def test_a_plan_says_what_is_stored(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planned = plan_derived(DerivedRequest(["r8"], ["lda"], pieces=["topics"]))
    print_plan(home, planned, True)
    (line,) = capsys.readouterr().out.splitlines()
    wanted = {"dataset": "r8", "method": "lda", "protocol": "honest", "seed": 0}
    assert json.loads(line) == wanted | {"stage": "topics", "stored": False}
    print_plan(home, planned, False)
    assert capsys.readouterr().out == "r8 lda seed 0: topics: to be made\n"


def test_every_piece_is_a_stage() -> None:
    assert MADE.keys() <= stages.STAGES.keys()


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (DerivedRequest(["r8"], ["scdv"], pieces=["topic"]), "did you mean topics"),
        (DerivedRequest(["r8"], ["nb"], pieces=["topics"]), "features of a method at fixed settings, got nb"),
        (DerivedRequest(["r8"], ["scdv"], trials=3, pieces=["topics"]), "got scdv with 3 trials"),
    ],
)
def test_bad_input_is_refused_in_one_line(request_: DerivedRequest, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        plan_derived(request_)
    assert "\n" not in str(caught.value)


def test_one_seed_of_every_row_comes_first_then_five_then_sweeps() -> None:
    suite = parts("scdv")

    def kind(part: Part) -> int:
        """0 one seed of the rows, 1 five seeds, 2 the sweeps of one parameter, 3 what is timed."""
        swept = all(catalogue.parse_method(method)[1] for method in part.request.methods)
        is_sweep = swept and not part.is_derived and len(part.request.methods) > 1
        return 3 if part.is_timed else 2 if is_sweep else 1 if len(part.request.seeds) == 5 else 0

    kinds = [kind(part) for part in suite]
    assert kinds == sorted(kinds)
    assert set(kinds) == {0, 1, 2, 3}

    def rows(wanted: int) -> set[tuple[str, str, str]]:
        return {
            (dataset, method, part.request.protocol)
            for part, found in zip(suite, kinds, strict=True)
            if found == wanted and not part.is_derived and part.name != "topical"  # of one seed alone
            for dataset in part.request.datasets
            for method in part.request.methods
        }

    # What draws random numbers has five seeds, what draws none has one.
    assert rows(1) == {row for row in rows(0) if is_random(row[1])}


def test_a_seed_of_a_data_set_trains_its_word_vectors_once() -> None:
    """Rows, topics, senses and sweeps over clusters and thresholds share a training."""
    trained = set()
    for part in parts("scdv"):
        if part.request.datasets == ["20ng"] and part.request.protocol == "faithful" and not part.is_timed:
            for cell in plan(part.request):
                if "word_vectors__" not in cell.method:
                    stages = list(cell.references)
                    if "word_vectors" in stages:
                        trained.add((cell.seed, cell.references["word_vectors"].key))
                        assert stages.index("word_vectors") < stages.index("featurize")
    assert len(trained) == 5
