"""MLflow's page: where it is, and what it shows first: experiments that open on their runs, ranked, and views of them.

MLflow keeps what it shows in tags of the experiments, so it is written there whenever the page is started.
"""

import base64
import json
import urllib.parse
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.flows.run.health import answers
from textbench.flows.run.workspace import SERVICES
from textbench.tasks.storage.files import read_json
from textbench.tasks.storage.locks import is_held
from textbench.tasks.tracking.tracker import Tracker, read_settings

if TYPE_CHECKING:
    from mlflow import MlflowClient

# Of a server that was not told what to show first; without it the page opens on traces of language models.
PATH = "/#/experiments?workflowType=machine_learning"
VIEW = "textbench"  # the key of the shared view: &viewStateShareKey=textbench
SWEEPS = "sweeps"  # of the view with a row a sweep, which unfolds into its runs
KIND = {"mlflow.experimentKind": "custom_model_development"}  # or the page opens on traces of language models
RANKED = {
    "mlflow.experiment.primaryMetric.name": "accuracy",
    "mlflow.experiment.primaryMetric.greaterIsBetter": "True",
}
NOTES = {
    "experiment": "One run a cell (data set, method, protocol, seed). A sweep's runs share the tag `sweep.<id>`; "
    "`sweep` names the last one a run was used in.",
    "trials_experiment": "One run a trial of a search; the tag `textbench.run` is the run it was made for.",
    "curves_experiment": "One run a label-budget curve: its steps are numbers of labelled documents.",
    "retrieval_experiment": "One run a ranking (collection, ranker, protocol, seed).",
}
# A run's name says its data set, method and seed. What comes first is seen on a small screen.
ABOUT = ["params.`protocol`", "params.`trials`", "params.`dataset`", "params.`method`", "params.`seed`"]
COLUMNS = [
    "metrics.`accuracy`", "metrics.`macro_f1`", "metrics.`seconds`", "metrics.`micro_f1`", "metrics.`peak_mb`",
    *ABOUT, "tags.`sweep`",
]  # fmt: skip
# Of each experiment: the columns, and what ranks its runs.
VIEWS = {
    "experiment": (COLUMNS, "metrics.`accuracy`"),
    "trials_experiment": (
        ["metrics.`score`", "metrics.`seconds`", "tags.`textbench.run`", "tags.`state`"],
        "metrics.`score`",
    ),
    "curves_experiment": (
        ["metrics.`accuracy`", "metrics.`micro_f1`", "params.`draws`", *ABOUT],
        "metrics.`accuracy`",
    ),
    "retrieval_experiment": (["metrics.`map`", "metrics.`seconds`", *ABOUT, "tags.`sweep`"], "metrics.`map`"),
}


def status(home: Path) -> dict[str, Any]:
    """Return where MLflow's page of a results folder is: `address`, `healthy`, `pid`, `configured` and `page`, to open.

    The address of ours is None while it is not up. A server of the user's is configured, and so is that runs are not
    tracked, where the address is None.
    """
    settings = read_settings(home)
    is_ours = settings.is_on and not settings.tracking_uri.startswith("http")
    state: dict[str, Any] = {}
    if is_ours and is_held(home / SERVICES / "mlflow.lock"):
        state = read_json(home / SERVICES / "mlflow.json")
    elif settings.is_on and not is_ours:
        uri = settings.tracking_uri
        state = {"address": uri, "page": f"{uri.rstrip('/')}{PATH}"}
    found = {name: state.get(name) for name in ("address", "pid", "page")}
    is_healthy = "address" in state and answers(f"{state['address'].rstrip('/')}/health")
    return found | {"healthy": is_healthy, "configured": not is_ours}


def address_of(home: Path, uri: str, run_id: str | None = None) -> str | None:
    """Return the address that shows the runs kept at `uri`, or one of them; None when no page of theirs is up."""
    state = status(home) if uri == read_settings(home).tracking_uri else {}
    address = uri if uri.startswith("http") else state.get("address") if state.get("healthy") else None
    if address is None:
        return None
    page = state.get("page") or f"{address.rstrip('/')}{PATH}"
    return f"{address.rstrip('/')}/#/runs/{run_id}" if run_id else page


def arrange(tracker: Tracker) -> None:
    """Write the experiments' kind, note, ranking metric and shared views.

    The page's own choice of columns has no metric and cannot be changed here, so the note links to the views.
    """
    client, names = tracker.client, tracker.settings.experiments
    for kind, (columns, order) in VIEWS.items():
        links = f"[Runs with the columns that matter]({_view_address(tracker, names[kind], VIEW)})."
        tags = KIND | {f"mlflow.sharedViewState.{VIEW}": view(columns, order)}
        if kind == "experiment":
            links += f" [By sweep]({_view_address(tracker, names[kind], SWEEPS)})."
            tags |= RANKED | {f"mlflow.sharedViewState.{SWEEPS}": view(columns, order, group="sweep")}
        _tag(client, names[kind], tags | {"mlflow.note.content": f"{links}\n\n{NOTES[kind]}"})


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


def page_of(tracker: Tracker, address: str, experiment: str, name: str, wanted: str) -> str:
    """Return the address that shows the wanted runs of an experiment alone, by a view of this name made for them."""
    columns, order = next(
        VIEWS[kind] for kind, own in tracker.settings.experiments.items() if own == experiment
    )
    _tag(tracker.client, experiment, {f"mlflow.sharedViewState.{name}": view(columns, order, wanted)})
    return runs_page(tracker, address, experiment, name)


def runs_page(tracker: Tracker, address: str, experiment: str = "", name: str = VIEW) -> str:
    """Return the address of a view of an experiment's runs, without one those of cells."""
    return f"{address}/{_view_address(tracker, experiment or tracker.settings.experiment, name)}"


def _view_address(tracker: Tracker, experiment: str, name: str) -> str:
    query = urllib.parse.urlencode({"workflowType": "machine_learning", "viewStateShareKey": name})
    return f"#/experiments/{tracker.experiment(experiment)}/runs?{query}"
