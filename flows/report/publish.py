"""Passing a report on inside the house: an MLflow run that holds it, and a link on Prefect's page of the last runs.

Both are left out where there is nothing to write to: no MLflow database in the results folder, no Prefect server.
"""

import json
import os
import urllib.request
from pathlib import Path
from typing import Any

from textbench.flows.run.workspace import folder_tag
from textbench.tasks.tracking.tracker import KIND_TAG, REPORTS, Tracker, git_commit, read_settings

FLOWS = ("benchmark", "label_budget", "retrieval")
N_LINKED = 5  # the newest flow runs, whose pages get the link
TIMEOUT = 5.0


def publish(home: Path, path: Path, api_url: str | None) -> list[str]:
    """Log the report to MLflow and link it from Prefect; return a line for each thing that was done, or why not.

    `api_url` is the address of a Prefect server that answers, None where there is none.
    """
    run_id = log(home, path)
    if run_id is None:
        return ["Not logged to MLflow: nothing has been recorded there yet (textbench run quick)."]
    lines = [f"Logged to MLflow's experiment {REPORTS} as run {run_id}."]
    if api_url is None:
        return [*lines, "Not linked from Prefect: no server is running (textbench up)."]
    n_linked = link(home, path, run_id, api_url)
    return [*lines, f"Linked from Prefect's page of the last {n_linked} flow runs."]


def log(home: Path, path: Path) -> str | None:
    """Write the report as an artifact of a new MLflow run "report", tagged kind=report; None without a database.

    Returns the run's id.
    """
    tracker = Tracker(read_settings(home))
    if not tracker.exists():
        return None
    client = tracker.client
    tags = {KIND_TAG: "report", "git.commit": git_commit()}
    run_id = client.create_run(tracker.experiment(REPORTS), run_name="report", tags=tags).info.run_id
    client.log_artifact(run_id, str(path))
    client.set_terminated(run_id, "FINISHED")
    return str(run_id)


def link(home: Path, path: Path, run_id: str, api_url: str) -> int:
    """Add an artifact that names the report to the newest flow runs of a folder; return how many."""
    wanted = {"flows": {"name": {"any_": list(FLOWS)}}, "sort": "START_TIME_DESC", "limit": N_LINKED}
    wanted["flow_runs"] = {"tags": {"all_": [folder_tag(home)]}}
    runs = _post(f"{api_url}/flow_runs/filter", wanted)
    text = f"[{path.name}]({path.resolve().as_uri()}), also an artifact of MLflow's run `{run_id}` in `{REPORTS}`."
    for run in runs:
        about = {"key": "report", "type": "markdown", "description": "The report that people pass on"}
        _post(f"{api_url}/artifacts/", about | {"data": text, "flow_run_id": run["id"]})
    return len(runs)


def _post(address: str, body: dict[str, Any]) -> Any:
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("PREFECT_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    with urllib.request.build_opener().open(request, timeout=TIMEOUT) as answer:
        return json.loads(answer.read() or b"null")
