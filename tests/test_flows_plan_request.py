"""Requests: one line a field, from which options, keys of suites, fields of forms and printed commands are made."""

import inspect
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from tests.warm import PROJECT
from textbench.flows.cli.options import options_of, takes
from textbench.flows.plan import suites
from textbench.flows.plan.cell import plan
from textbench.flows.plan.request import (
    Asked,
    BenchmarkRequest,
    LabelBudgetRequest,
    Request,
    RetrievalRequest,
    fields_of,
)
from textbench.flows.results.runs import command_of
from textbench.flows.run.workspace import home_folder
from textbench.tasks import InputError

# What a row of the index had asked for before anything could be added to it.
RECORDED = {
    "datasets": ["r8"], "methods": ["lsi"], "seeds": [3], "protocol": "honest", "trials": 4, "name": "quick",
    "probe": None, "rule": None, "own": None, "search_seconds": None, "validation": {"n_folds": 5}, "paper": None,
    "labels": {},
}  # fmt: skip


@dataclass(frozen=True)
class Patient(BenchmarkRequest):
    """A sweep with one more field."""

    patience: Annotated[int, Asked("Minutes to wait for the others.", ge=1, le=60)] = 3


def test_a_field_is_an_option_with_its_help_default_and_bounds() -> None:
    found: dict[str, Any] = {}

    @takes(asked=options_of(Patient))
    def command(asked: dict[str, Any]) -> None:
        found.update(asked)
        Patient(["r8"], ["tfidf"], **asked)

    app = typer.Typer()
    app.command()(command)
    text = " ".join(CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).stdout.split())
    assert "Minutes to wait for the others. [default: (3)]" in text
    assert CliRunner().invoke(app, ["--patience", "5"]).exit_code == 0
    assert found == {"patience": 5}  # and nothing that was not given
    refused = CliRunner().invoke(app, ["--patience", "0"])
    assert str(refused.exception) == "--patience must be at least 1, got 0"


def test_a_field_is_a_key_of_suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "BenchmarkRequest", Patient)
    monkeypatch.setattr(suites, "FOLDER", tmp_path)
    mine = "datasets: [r8]\nmethods: [tfidf]\npatience: {}\n"
    (tmp_path / "mine.yaml").write_text(mine.format(5))
    (part,) = suites.parts("mine")
    assert isinstance(part.request, Patient) and part.request.patience == 5
    for value, words in (("61", "at most 60, got 61"), ("long", "a whole number, got 'long'")):
        (tmp_path / "mine.yaml").write_text(mine.format(value))
        with pytest.raises(InputError, match=rf"mine\.yaml: patience must be {words}"):
            suites.parts("mine")


def test_a_field_is_one_of_forms_and_reaches_the_flow() -> None:
    from prefect.utilities.callables import parameter_schema

    from textbench.flows.plan.forms import form

    @form(Patient, "by-form", datasets=["r8"], methods=["tfidf"], seeds=2)
    def flow(request: Patient) -> Any:
        return request

    fields = parameter_schema(flow).properties
    wanted = {"minimum": 1, "maximum": 60, "default": 3, "description": "Minutes to wait for the others."}
    assert fields["patience"].items() >= wanted.items()
    defaults = {name: one.default for name, one in inspect.signature(flow).parameters.items()}
    request = flow(**defaults | {"patience": 7})
    assert (request.patience, request.seeds, request.name) == (7, [0, 1], "by-form")
    assert (request.probe, request.time_limit) == (None, None)  # "the protocol's" and 0


def test_a_field_is_in_the_command_of_a_run() -> None:
    assert "--patience 5" in command_of(Patient(["r8"], ["tfidf"], patience=5))


@pytest.mark.parametrize("request_", [BenchmarkRequest, LabelBudgetRequest, RetrievalRequest])
def test_every_field_is_described_and_its_options_are_its_own(request_: type) -> None:
    found = list(fields_of(request_))
    assert all(one.asked.help.endswith(".") for one in found)
    flags = [flag for one in found for flag in one.flags]
    assert len(set(flags)) == len(flags)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"trials": -1}, "trials must be at least 0, got -1"),
        ({"trials": True}, "trials must be a whole number, got True"),
        ({"search_seconds": 0}, "search_seconds must be above 0, got 0"),
        ({"protocol": "honst"}, "protocol must be 'honest', 'transductive' or 'faithful', got 'honst'"),
        ({"methods": "tfidf"}, "methods must be a list, got 'tfidf'"),
        ({"methods": []}, "a run needs at least one data set, one method and one seed"),
        ({"datasets": []}, "a run needs at least one data set, one method and one seed"),
        ({"paper": "dcot-2012"}, "paper says whose faithful protocol is meant and needs protocol faithful, got honest"),
        ({"validation": {"n_folds": 1}}, "n_folds must be at least 2, got 1"),
        ({"validation": {"held_out": 1.0}}, "held_out must be below 1, got 1.0"),
        ({"validation": {"c_grid": [1.0, 0.0]}}, "c_grid must be above 0, got 0.0"),
        ({"validation": {"folds": 3}}, "there is no field folds"),
        ({"validation": {"n_folds": 3, "held_out": 0.5}},
         "n_folds and held_out are two ways to validate; give one of them"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_in_one_line(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        Request(**{"datasets": ["r8"], "methods": ["tfidf"]} | asked)
    assert str(caught.value) == said


def test_the_request_of_a_row_stays_readable() -> None:
    """What is recorded of a cell is what asks for it, whatever the sweep it was of could say beside."""
    request = Request(**json.loads(json.dumps(RECORDED)))
    assert json.loads(json.dumps(asdict(request))) == RECORDED
    assert list(asdict(request)) == list(RECORDED)
    (cell,) = plan(BenchmarkRequest(**RECORDED, timed=True))
    assert type(cell.request) is Request and asdict(cell.request) == RECORDED


def test_a_request_is_planned_once_and_a_changed_one_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    from textbench.flows.benchmark import benchmark

    request = BenchmarkRequest(["r8"], ["tfidf"])
    handed = benchmark.validate_parameters({"request": request})["request"]  # as Prefect does
    assert plan(handed)[0] is plan(request)[0]
    assert plan(replace(request, seeds=[1]))[0].seed == 1


def test_what_made_a_result_is_the_same_for_all_seeds_and_draws_and_another_for_other_code(
    tmp_path: Path,
) -> None:
    def made_by(*methods: str, **asked: Any) -> set[str]:
        return {cell.made_by for cell in plan(BenchmarkRequest(["r8"], methods, (0, 1), **asked))}

    for method in ("lsi", "scdv", "join(tfidf, lsi)", "ensemble(tfidf, nb)"):
        assert len(made_by(method)) == 1, method
    ways = [made_by("lsi"), made_by("lsi", trials=5), made_by("lsi", rule="words"), made_by("tfidf")]
    assert len(set.union(*ways)) == 4
    curve = plan(LabelBudgetRequest(["r8"], ["lsi"], seeds=[3], budgets=[40, 80], draws=2))
    assert {cell.made_by for cell in curve} == made_by("lsi")
    code = (PROJECT / "featurizers" / "binary.py").read_text()
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "mine.py").write_text(code)
    (tmp_path / "mine.py").write_text(code)
    first = made_by(str(tmp_path / "first" / "mine.py"))
    assert made_by(str(tmp_path / "mine.py")) == first
    (tmp_path / "mine.py").write_text(code.replace("return binarize", "return 2 * binarize"))
    assert first.isdisjoint(made_by(str(tmp_path / "mine.py")))


def test_curves_have_every_budget_of_every_draw() -> None:
    cells = plan(LabelBudgetRequest(["r8"], ["tfidf", "nb"], budgets=[80, 40, 80], draws=2))
    assert [(c.method, c.request.labels["budget"], c.request.labels["draw"]) for c in cells] == [
        (method, budget, draw) for draw in (0, 1) for budget in (40, 80) for method in ("tfidf", "nb")
    ]


def test_folds_that_are_asked_for_take_the_place_of_a_papers_documents_held_out() -> None:
    """And the other way round: one of both is what tuning reads."""

    def validation(dataset: str, paper: str, **asked: Any) -> dict[str, Any]:
        (cell,) = plan(Request([dataset], ["tfidf"], protocol="faithful", paper=paper, validation=asked))
        return dict(cell.references["tune"].params["validation"])

    assert validation("20ng-body", "drbm-2008")["held_out"] == 0.15
    asked = validation("20ng-body", "drbm-2008", n_folds=5)
    assert asked["n_folds"] == 5 and "held_out" not in asked


def test_two_threads_find_the_results_folder_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert {*pool.map(lambda _: home_folder(tmp_path), range(400))} == {tmp_path.resolve()}
    assert not [*tmp_path.iterdir()]
