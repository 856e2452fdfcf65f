"""What MLflow's page is told to show, and the addresses of its pages that commands print."""

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from textbench.flows.cli.leaderboard import _mlflow_rows
from textbench.flows.cli.show import _mlflow
from textbench.flows.cli.status import status
from textbench.flows.run import mlflow_views
from textbench.flows.run.mlflow_views import COLUMNS, view
from textbench.tasks import InputError


def state_of(text: str) -> dict[str, Any]:
    """Return what a shared view says, read as MLflow's page reads it."""
    kind, _, packed = text.partition(";")
    assert kind == "deflate"
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def test_a_view_has_columns_in_their_order_and_runs_ranked() -> None:
    state = state_of(view(COLUMNS, "metrics.`accuracy`", "tags.kind = 'label_budget'"))
    assert state["selectedColumns"] == state["columnOrder"] == COLUMNS
    assert COLUMNS[:3] == ["metrics.`accuracy`", "metrics.`macro_f1`", "metrics.`seconds`"]
    assert (state["orderByKey"], state["orderByAsc"]) == ("metrics.`accuracy`", False)
    assert state["searchFilter"] == "tags.kind = 'label_budget'"
    assert "groupBy" not in state


def test_a_view_groups_runs_by_a_tag() -> None:
    state = state_of(view(COLUMNS, "metrics.`accuracy`", group="sweep"))
    assert state["groupBy"]["groupByKeys"] == [{"mode": "tag", "groupByData": "sweep"}]
    assert "tags.`sweep`" in state["selectedColumns"]


def test_the_page_of_a_run_is_named_while_it_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    row = {"tracking_uri": uri, "run_id": "abc"}
    assert mlflow_views.address_of(tmp_path, uri) is None
    assert _mlflow(tmp_path, row) == f"mlflow ui --backend-store-uri {uri}"
    up = {
        "address": "http://127.0.0.1:5000",
        "healthy": True,
        "page": "http://127.0.0.1:5000/#/experiments/1/runs",
    }
    monkeypatch.setattr(mlflow_views, "status", lambda home: up)
    assert mlflow_views.address_of(tmp_path, uri) == up["page"]
    assert _mlflow(tmp_path, row) == "http://127.0.0.1:5000/#/runs/abc"
    # Another folder's page does not show these runs.
    assert mlflow_views.address_of(tmp_path, "sqlite:////elsewhere/mlflow.db", "abc") is None


def test_runs_of_a_server_are_at_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    row = {"tracking_uri": "http://tracking:5000/", "run_id": "abc"}
    assert _mlflow(tmp_path, row) == "http://tracking:5000/#/runs/abc"


def test_what_is_not_tracked_has_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "none")
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path))
    assert mlflow_views.address_of(tmp_path, "none") is None
    assert _mlflow(tmp_path, {"tracking_uri": "none", "run_id": None}) is None
    status(json=False)
    assert "mlflow   is not used: tracking_uri is none" in capsys.readouterr().out
    with pytest.raises(InputError, match="runs are not tracked"):
        _mlflow_rows(tmp_path)
