"""What MLflow's page shows first: experiments that open on their runs, ranked, and a view with the columns that matter.

MLflow keeps all this in tags of the experiments, so it is written there whenever the page is started.
"""

import base64
import json
import urllib.parse
import zlib
from typing import TYPE_CHECKING, Any

from tasks.tracking import Tracker

if TYPE_CHECKING:
    from mlflow import MlflowClient

VIEW = "textbench"  # the key of the shared view: &viewStateShareKey=textbench
SWEEPS = "sweeps"  # of the view with a row a sweep, which unfolds into its runs
KIND = {"mlflow.experimentKind": "custom_model_development"}  # or the page opens on traces of language models
RANKED = {
    "mlflow.experiment.primaryMetric.name": "accuracy",
    "mlflow.experiment.primaryMetric.greaterIsBetter": "True",
}
NOTES = {
    "experiment": "One run a cell (data set, method, protocol, seed), curves and rankings beside them by their tag "
    "`kind`. A sweep's runs share the tag `sweep.<id>`; `sweep` names the last one a run was used in, to group runs by "
    "(`&viewStateShareKey=sweeps`).",
    "trials_experiment": "One run a trial of a search; the tag `textbench.run` is the run it was made for.",
}
COLUMNS = [
    "params.`dataset`", "params.`method`", "params.`protocol`", "params.`seed`", "params.`trials`",
    "metrics.`accuracy`", "metrics.`macro_f1`", "metrics.`micro_f1`", "metrics.`map`",
    "metrics.`seconds`", "metrics.`peak_mb`", "attributes.`Dataset`", "tags.`sweep`",
]  # fmt: skip
TRIAL_COLUMNS = ["metrics.`score`", "metrics.`seconds`", "tags.`textbench.run`", "tags.`state`"]


def arrange(tracker: Tracker) -> None:
    """Write the experiments' kind, note, ranking metric and shared views."""
    client, settings = tracker.client, tracker.settings
    for name, columns, order in (
        ("experiment", COLUMNS, "metrics.`accuracy`"),
        ("trials_experiment", TRIAL_COLUMNS, "metrics.`score`"),
    ):
        tags = KIND | {
            "mlflow.note.content": NOTES[name],
            f"mlflow.sharedViewState.{VIEW}": view(columns, order),
        }
        if name == "experiment":
            tags |= RANKED | {f"mlflow.sharedViewState.{SWEEPS}": view(columns, order, group="sweep")}
        _tag(client, getattr(settings, name), tags)


def _tag(client: "MlflowClient", name: str, tags: dict[str, str]) -> None:
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        return
    for key, value in tags.items():
        if experiment.tags.get(key) != value:
            client.set_experiment_tag(experiment.experiment_id, key, value)


def view(columns: list[str], order: str, wanted: str = "", group: str = "") -> str:
    """Return a shared view as MLflow's page writes it: compressed JSON of the columns, and which runs in which order.

    `wanted` is a search of MLflow's; the page takes it from the view alone, never from the address beside a view.
    `group` is the tag whose runs make a row together, with the means of their metrics.
    """
    state: dict[str, Any] = {"selectedColumns": columns, "columnOrder": columns, "searchFilter": wanted}
    state |= {"orderByKey": order, "orderByAsc": False}
    if group:
        state["groupBy"] = {
            "aggregateFunction": "average",
            "groupByKeys": [{"mode": "tag", "groupByData": group}],
        }
    return f"deflate;{base64.b64encode(zlib.compress(json.dumps(state).encode())).decode()}"


def page_of(tracker: Tracker, address: str, name: str, wanted: str) -> str:
    """Return the address that shows the wanted runs alone, by a view of this name that is made for them."""
    shared = view(COLUMNS, "metrics.`accuracy`", wanted)
    _tag(tracker.client, tracker.settings.experiment, {f"mlflow.sharedViewState.{name}": shared})
    return runs_page(tracker, address, name)


def runs_page(tracker: Tracker, address: str, name: str = VIEW) -> str:
    """Return the address of a view of the runs."""
    found = tracker.client.get_experiment_by_name(tracker.settings.experiment)
    assert found is not None, "the tracker has made it"
    query = urllib.parse.urlencode({"workflowType": "machine_learning", "viewStateShareKey": name})
    return f"{address}/#/experiments/{found.experiment_id}/runs?{query}"
