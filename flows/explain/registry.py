"""MLflow's registry: a run's fitted model as a LoggedModel, a version of a name, and who may be its champion.

A new version takes the alias only where a paired test over the same test documents says that it is better than the one
that has it (bootstrap, p below 0.05).
"""

import json
import logging
import os
import re
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.flows.explain.export import Model
from textbench.flows.results.comparison import Entrant, pairs
from textbench.flows.results.index import Index
from textbench.flows.results.metric_names import heading, scale
from textbench.flows.results.predictions import corpus_key
from textbench.flows.results.runs import Run
from textbench.tasks import InputError
from textbench.tasks.tracking.tracker import CELL_TAG, Tracker, data_tag, read_settings

if TYPE_CHECKING:
    from mlflow import MlflowClient

CODE = Path(__file__).with_name("mlflow_code.py")
ALIAS = "champion"
LEVEL = 0.05
# What MLflow says of a model, and of an alias, that is not there.
NONE_YET = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")
EXAMPLES = ("a text to label", "and another one")


@dataclass(frozen=True)
class Registered:
    """What was registered: the model's id and address, its name and version, and what became of the alias."""

    model_id: str
    name: str
    version: str
    uri: str
    is_champion: bool
    said: str


def check_name(name: str, alias: str) -> None:
    """Raise InputError for what MLflow takes for no model's name, or no alias."""
    for what, text in (("--name", name), ("--alias", alias)):
        if not re.fullmatch(r"[A-Za-z0-9_.\-]{1,100}", text) or re.fullmatch(r"v\d+|latest", text):
            raise InputError(
                f"{what} must be letters, digits, . _ or -, got {text!r}; give another with {what}"
            )


def register(home: Path, row: Mapping[str, Any], model: Model, name: str, alias: str = ALIAS) -> Registered:
    """Log a run's model to that run, register it as a new version, and give it the alias if it earns it.

    Raises InputError where MLflow is not used, and for a run that it does not hold.
    """
    tracker = Tracker(read_settings(home))
    if not tracker.settings.is_on:
        raise InputError("nothing is tracked (tracking_uri is none), so there is no registry to write to")
    if not row.get("run_id"):
        raise InputError("MLflow does not hold this run; send it with: textbench send")
    if str(own := model.manifest["method"]).endswith(".py"):
        raise InputError(
            f"{own} is a method of your own, and whoever loads the model from MLflow would not have it: export a file"
        )
    tracker.prepare()
    client = tracker.client
    logged = _log(home, row, model, tracker, name)
    _create(client, name)
    version = client.create_model_version(
        name, f"models:/{logged}", run_id=row["run_id"], model_id=logged, tags={CELL_TAG: row["key"]}
    ).version
    is_better, said = _contest(home, client, row, name, alias, version)
    if is_better:
        client.set_registered_model_alias(name, alias, version)
    return Registered(logged, name, str(version), f"models:/{name}@{alias}", is_better, said)


def _log(home: Path, row: Mapping[str, Any], model: Model, tracker: Tracker, name: str) -> str:
    """Log the model with its signature, an example, its metrics and its data set; return its id."""
    import mlflow.pyfunc
    import pandas as pd
    from mlflow.entities import DatasetInput, InputTag, LoggedModelInput
    from mlflow.models import Model as LoggedOne
    from mlflow.models import infer_signature
    from mlflow.utils.mlflow_tags import MLFLOW_DATASET_CONTEXT

    # It would have the types of `predict` in words of its own, and shows a bar for one small file.
    warnings.filterwarnings("ignore", module="mlflow.pyfunc.utils.data_validation")
    logging.getLogger("mlflow.models.signature").setLevel(logging.WARNING)
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    mlflow.set_tracking_uri(tracker.settings.tracking_uri)
    mlflow.set_registry_uri(tracker.settings.tracking_uri)
    example = pd.DataFrame({"text": list(EXAMPLES)})
    answers = model.answer(list(EXAMPLES))
    shown = pd.DataFrame({"label": ["", ""], "margin": answers.margins.astype("float64")} | {
        f"{answers.kind}_{one}": answers.values[:, i].astype("float64") for i, one in enumerate(answers.classes)
    })  # fmt: skip
    run_id, run = row["run_id"], tracker.client.get_run(row["run_id"])
    begun = tracker.client.create_logged_model(
        run.info.experiment_id,
        name=name,
        source_run_id=run_id,
        tags={CELL_TAG: row["key"]} | _data(home, row),
        params={"cell": row["key"], "seed": str(row["seed"]), "protocol": row["protocol"]} | run.data.params,
        model_type=str(row["method"]),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        model.save(path)
        # As mlflow.pyfunc.log_model does, which would open the run again: a kill would leave it unfinished.
        info = LoggedOne.log(
            artifact_path=None,
            flavor=mlflow.pyfunc,
            run_id=run_id,
            name=name,
            python_model=str(CODE),
            artifacts={"model": str(path)},
            signature=infer_signature(example, shown),
            input_example=example,
            pip_requirements=["textbench", *_requirements(model)],
            model_id=begun.model_id,
        )
    data = _dataset(home, row)
    used = DatasetInput(data._to_mlflow_entity(), [InputTag(MLFLOW_DATASET_CONTEXT, "training")])
    tracker.client.log_inputs(run_id, [used], [LoggedModelInput(info.model_id)])
    mlflow.log_metrics(dict(row["metrics"]), dataset=data, model_id=info.model_id, run_id=run_id)
    return str(info.model_id)


def _requirements(model: Model) -> list[str]:
    from textbench.tasks.storage.recipe import DISTRIBUTIONS

    found = {
        DISTRIBUTIONS.get(name, name): v
        for name, v in model.manifest["libraries"].items()
        if name != "python"
    }
    return [f"{name}=={version}" for name, version in sorted(found.items()) if version != "unknown"]


def _data(home: Path, row: Mapping[str, Any]) -> dict[str, str]:
    return {data_tag(name): digest for name, digest in _corpus(home, row)["sha256"].items()}


def _corpus(home: Path, row: Mapping[str, Any]) -> dict[str, Any]:
    return dict(Run(home, row).open("corpus").json("corpus"))


def _dataset(home: Path, row: Mapping[str, Any]) -> Any:
    """Return the data set as MLflow links it: its name and the sha256 of its documents, nothing of these."""
    from mlflow.data import meta_dataset
    from mlflow.data.code_dataset_source import CodeDatasetSource

    digest = (row.get("corpus") or {}).get("documents_sha256") or json.dumps(_data(home, row))
    source = CodeDatasetSource({"textbench.dataset": row["dataset"]})
    make = vars(meta_dataset)["MetaDataset"]  # the type checker calls it abstract
    return make(source, name=row["dataset"], digest=digest[:36])


def _create(client: "MlflowClient", name: str) -> None:
    from mlflow.exceptions import MlflowException

    try:
        client.get_registered_model(name)
    except MlflowException:
        client.create_registered_model(name)


def _contest(
    home: Path, client: "MlflowClient", row: Mapping[str, Any], name: str, alias: str, version: str
) -> tuple[bool, str]:
    """Tell whether a run takes the alias from the version that has it, and say why."""
    from mlflow.exceptions import MlflowException

    try:
        holder = client.get_model_version_by_alias(name, alias)
    except MlflowException as error:
        if error.error_code not in NONE_YET:  # a server that fails says nothing of who holds it
            raise InputError(
                f"version {version} of {name} is there, but MLflow does not say who has the alias {alias}: "
                f"{' '.join(str(error).split())[:200]}"
            ) from error
        return True, f"{alias}: the first"
    known = {one["key"]: one for one in Index(home).rows()}
    old = known.get((holder.tags or {}).get(CELL_TAG, ""))
    if old is None:
        return (
            False,
            f"{alias} stays: version {holder.version} is of a run that is not here to be compared with",
        )
    if old["key"] == row["key"]:
        return True, f"{alias}: the same run, logged again"
    return contest(home, old, row, alias)


def contest(
    home: Path, old: Mapping[str, Any], new: Mapping[str, Any], alias: str = ALIAS
) -> tuple[bool, str]:
    """Tell whether a run is better than another by a paired test on the same documents, and say it."""
    try:
        if corpus_key(home, old) != corpus_key(home, new):
            return False, f"{alias} stays: {old['method']} was tested on other documents"
        entrants = [Entrant(name, {row["seed"]: row}) for name, row in (("old", old), ("new", new))]
        (test,) = pairs(home, new["dataset"], entrants)
    except InputError as error:
        return False, f"{alias} stays: {error}"
    gain = test.second_value - test.first_value
    figures = f"{heading(test.metric)} {scale(test.metric) * gain:+.2f}, p = {test.p:.2g}"
    if gain > 0 and test.p < LEVEL:
        return True, f"{alias}: {new['method']} is better than {old['method']} ({figures})"
    return False, f"{alias} stays: p = {test.p:.2g} ({new['method']} against {old['method']}, {figures})"
