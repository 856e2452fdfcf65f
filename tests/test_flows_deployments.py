"""The forms of Prefect's page: choices, bounds and defaults, checked by what Prefect's server itself refuses by."""

import importlib
from pathlib import Path
from typing import Any

import pytest
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools.validation import is_valid, validate

from textbench.flows.plan.request import RANKERS
from textbench.flows.plan.suites import read_suite
from textbench.flows.run.prefect_page import pictures, table
from textbench.tasks import catalogue, rankers

FLOWS = {
    "benchmark": "textbench.flows.deployments",
    "label_budget": "textbench.flows.deployments",
    "retrieval": "textbench.flows.deployments",
    "nightly": "textbench.flows.nightly",
}


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON schema of a deployment's form."""
    function = getattr(importlib.import_module(FLOWS[name]), name)
    return parameter_schema(function).model_dump_for_openapi()


def row(**others: Any) -> dict[str, Any]:
    """Return a finished cell's row."""
    made = {
        "dataset": "r8", "method": "tfidf", "protocol": "honest", "seed": 0, "trials": 0, "params": {}, "on_border": [],
        "metrics": {"accuracy": 0.9758, "macro_f1": 0.9, "map": 0.5}, "seconds": {"tune": 1.25, "evaluate": 0.5},
        "peak_mb": 1.0, "cached": True, "error": None,
    }  # fmt: skip
    return made | others


@pytest.mark.parametrize("name", FLOWS)
def test_every_field_has_a_type_a_description_and_a_default_that_is_accepted(name: str) -> None:
    schema = schema_of(name)
    assert not schema.get("required")
    for field, about in schema["properties"].items():
        assert about.get("description"), field
        assert "type" in about or "enum" in about, field
        assert "default" in about, field
    defaults = {field: about["default"] for field, about in schema["properties"].items()}
    assert is_valid(defaults, schema)
    assert is_valid({}, schema)


@pytest.mark.parametrize("name", FLOWS)
def test_numbers_have_bounds_and_lists_have_choices(name: str) -> None:
    for field, about in schema_of(name)["properties"].items():
        if about.get("type") in ("integer", "number"):
            assert {"minimum", "exclusiveMinimum"} & about.keys(), field
        if about.get("type") == "array":
            assert about["minItems"] == 1, field
            assert "enum" in about["items"] or "minimum" in about["items"], field


def test_choices_are_those_of_the_catalogue() -> None:
    fields = schema_of("benchmark")["properties"]
    assert fields["methods"]["items"]["enum"] == list(catalogue.methods())
    assert fields["datasets"]["items"]["enum"] == list(catalogue.datasets())
    assert fields["methods"]["default"] == read_suite("quick")["methods"]
    fields = schema_of("retrieval")["properties"]
    assert fields["collections"]["items"]["enum"] == list(catalogue.collections())
    offered = fields["rankers"]["items"]["enum"]
    assert len(set(offered)) == len(offered)
    assert set(RANKERS) | rankers.plain_rankers().keys() <= set(offered)
    for method, entry in catalogue.methods().items():
        assert {method, f"lm+{method}", f"mb+{method}"} & set(offered) == (
            set() if entry.is_classifier or entry.uses_labels() else {method, f"lm+{method}", f"mb+{method}"}
        )
    for name in offered:
        assert rankers.parse(name).name == name


@pytest.mark.parametrize(
    ("name", "wrong", "word"),
    [
        ("benchmark", {"methods": ["tfdif"]}, "tfdif"),
        ("benchmark", {"datasets": []}, "non-empty|too short"),
        ("benchmark", {"n_seeds": 0}, "0 is less than the minimum of 1"),
        ("benchmark", {"n_seeds": 5000}, "5000 is greater than the maximum of 1000"),
        ("benchmark", {"trials": 1.5}, "1.5 is not of type 'integer'"),
        ("benchmark", {"protocol": "cheating"}, "cheating"),
        ("label_budget", {"budgets": [100, 0]}, "0 is less than the minimum of 1"),
        ("label_budget", {"draws": "many"}, "many"),
        ("retrieval", {"n_folds": 1}, "1 is less than the minimum of 2"),
        ("nightly", {"slower": 1}, "1 is less than or equal to the minimum of 1"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_runs(name: str, wrong: dict[str, Any], word: str) -> None:
    with pytest.raises(Exception, match=word):
        validate(wrong, schema_of(name), raise_on_error=True)


def test_deployments_have_tags_entrypoints_and_one_schedule(tmp_path: Path) -> None:
    from textbench.flows.deployments import deployments

    made = {deployment.flow_name: deployment for deployment in deployments(tmp_path, "30 3 * * 1")}
    assert set(made) == set(FLOWS)
    for name, deployment in made.items():
        assert "textbench" in deployment.tags
        assert deployment.entrypoint == f"{FLOWS[name]}.{name}"
        assert deployment.enforce_parameter_schema
    assert [one.schedule.cron for one in made["nightly"].schedules] == ["30 3 * * 1"]
    assert not any(made[name].schedules for name in ("benchmark", "label_budget", "retrieval"))
    assert not any(deployment.schedules for deployment in deployments(tmp_path))


def test_results_table_is_plain_text_in_percent() -> None:
    (line,) = table([row()])
    assert line == {
        "data": "r8", "method": "tfidf", "seed": 0, "accuracy": "97.58", "macro-F1": "90.00", "MAP": "50.00",
        "seconds": "1.8", "cached": "yes",
    }  # fmt: skip
    lines = table([row(), row(seed=1, metrics={}, seconds={}, error="it failed", cached=False)])
    assert lines[1]["accuracy"] == "-"
    assert [line["error"] for line in lines] == ["", "it failed"]
    (line,) = table([row(labels={"budget": 100, "draw": 2})])
    assert (line["labels"], line["draw"]) == (100, 2)


def test_pictures_are_one_leaderboard_or_a_curve_a_data_set() -> None:
    ((title, address),) = pictures([row(), row(method="lsi")])
    assert title.startswith("Leaderboard")
    assert address.startswith("data:image/png;base64,iVBOR")  # how every PNG begins
    limited = [
        row(dataset=dataset, labels={"budget": budget, "draw": 0})
        for dataset in ("r8", "r52")
        for budget in (10, 20)
    ]
    assert [title for title, _ in pictures(limited)] == [
        "r8 by labelled documents",
        "r52 by labelled documents",
    ]
    assert pictures([row(metrics={}, error="it failed")]) == []
    ((_, ranking),) = pictures([row(metrics={"map": 0.3, "ndcg_at_10": 0.4})])
    assert ranking.startswith("data:image/png")
