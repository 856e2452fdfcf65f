"""MLflow's registry: who becomes champion, and a logged model that answers with the bits of its file, unpickled."""

import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INTERNAL_ERROR, INVALID_PARAMETER_VALUE, RESOURCE_DOES_NOT_EXIST

from tests.made_model import made_model
from tests.made_runs import one_label
from textbench.flows.explain import registry
from textbench.tasks import InputError
from textbench.tasks.tracking.tracker import Tracker, read_settings

TARGET = [0, 1, 2] * 30
WORSE = [1, 1, 2] * 30
ALMOST = [1, *TARGET[1:]]


def test_an_alias_changes_hands_by_a_paired_test_alone(tmp_path: Path) -> None:
    runs = {
        name: one_label(tmp_path, "20ng", name, TARGET, predicted)
        for name, predicted in (("tfidf", TARGET), ("nb", WORSE), ("lsi", ALMOST))
    }
    assert registry.contest(tmp_path, runs["nb"], runs["tfidf"]) == (
        True,
        "champion: tfidf is better than nb (accuracy +33.33, p = 1.9e-09)",
    )
    is_better, said = registry.contest(tmp_path, runs["lsi"], runs["tfidf"])
    assert not is_better and said.startswith("champion stays: p = 1 ") and "+1.11" in said
    assert not registry.contest(tmp_path, runs["tfidf"], runs["nb"])[0]


def test_runs_on_other_documents_are_no_contest(tmp_path: Path) -> None:
    old = one_label(tmp_path, "20ng", "nb", TARGET, WORSE)
    new = one_label(tmp_path, "20ng", "tfidf", TARGET, TARGET, edition=2)
    assert registry.contest(tmp_path, old, new) == (False, "champion stays: nb was tested on other documents")


@pytest.mark.parametrize("name", ["", "a/b", "a b", "ü", "x" * 101])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="--name"):
        registry.check_name(name, "champion")
    with pytest.raises(InputError, match="--alias"):
        registry.check_name("r8", "v3")


@pytest.fixture
def own_tracking() -> Iterator[None]:
    """Take back which database MLflow is told to use."""
    yield
    import mlflow

    mlflow.set_tracking_uri(None)
    mlflow.set_registry_uri(None)


def test_a_server_that_fails_gives_the_alias_to_nobody(tmp_path: Path) -> None:
    class Client:
        def __init__(self, code: int) -> None:
            self.code = code

        def get_model_version_by_alias(self, *_: str) -> None:
            raise MlflowException("no answer", self.code)

    row = one_label(tmp_path, "20ng", "tfidf", TARGET, TARGET)
    asked = (row, "r8", "champion", "2")
    # Of a model, and of an alias, that is not there.
    for code in (RESOURCE_DOES_NOT_EXIST, INVALID_PARAMETER_VALUE):
        assert registry._contest(tmp_path, cast("Any", Client(code)), *asked) == (True, "champion: the first")
    with pytest.raises(InputError, match="version 2 of r8 is there, but MLflow does not say who"):
        registry._contest(tmp_path, cast("Any", Client(INTERNAL_ERROR)), *asked)


def test_a_method_of_ones_own_is_not_logged(tmp_path: Path) -> None:
    row = one_label(tmp_path, "20ng", "tfidf", TARGET, TARGET) | {"run_id": "0" * 32}
    model = made_model()
    own = replace(model, manifest=dict(model.manifest) | {"method": "mine.py"})
    with pytest.raises(InputError, match=r"mine\.py is a method of your own, and whoever loads the model"):
        registry.register(tmp_path, row, own, "made")


@pytest.mark.usefixtures("own_tracking")
def test_a_logged_model_answers_with_the_bits_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_corpus", lambda home, row: {"sha256": {"made.tar": "0" * 64}})
    tracker = Tracker(read_settings(tmp_path))
    tracker.prepare()
    row = one_label(tmp_path, "20ng", "tfidf", TARGET, TARGET)
    run = tracker.client.create_run(tracker.experiment(tracker.settings.experiment))
    row |= {"run_id": run.info.run_id}
    tracker.client.set_terminated(run.info.run_id, end_time=1000)
    first = registry.register(tmp_path, row, made_model(), "made")
    again = registry.register(tmp_path, row, made_model(), "made")
    assert (first.version, first.said) == ("1", "champion: the first")
    assert (again.version, again.is_champion) == ("2", True)
    written = tracker.client.get_run(run.info.run_id)
    # It was never opened again: a kill would have left it unfinished.
    assert (written.info.status, written.info.end_time) == ("FINISHED", 1000)
    assert tracker.client.get_logged_model(again.model_id).experiment_id == run.info.experiment_id
    assert [one.tags[0].value for one in written.inputs.dataset_inputs] == ["training"]
    assert written.data.metrics == row["metrics"]

    import cloudpickle
    import mlflow
    from mlflow.pyfunc.scoring_server import init
    from starlette.testclient import TestClient

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a pickle was read")

    for module in (pickle, cloudpickle):
        monkeypatch.setattr(module, "load", refuse)
        monkeypatch.setattr(module, "loads", refuse)
    model = mlflow.pyfunc.load_model("models:/made@champion")
    assert not list(Path(model.metadata.artifact_path or tmp_path).rglob("*.pkl"))
    assert model.metadata.signature.inputs.input_names() == ["text"]
    texts = ["wheat and corn", "oil"]
    answers = made_model().answer(texts)
    client = TestClient(init(model))

    def ask(data: Any) -> Any:
        return client.post("/invocations", json={"dataframe_split": {"columns": ["text"], "data": data}})

    found = ask([[text] for text in texts]).json()["predictions"]
    assert [row["label"] for row in found] == answers.labels
    for row_found, values, margin in zip(found, answers.values, answers.margins, strict=True):
        assert [row_found[f"decision_{name}"] for name in answers.classes] == values.tolist()
        assert row_found["margin"] == float(margin)
    assert ask([[" "]]).status_code == 400
    logged = tracker.client.get_logged_model(again.model_id)
    assert {metric.key: metric.value for metric in logged.metrics} == row["metrics"]
    assert "20ng" in {metric.dataset_name for metric in logged.metrics}
