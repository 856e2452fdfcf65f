"""`textbench up`, `status` and `down`, and what the worker does with runs that are asked for on Prefect's page."""

import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pyarrow
import pyarrow.parquet
import pytest

from tests import commands
from tests.commands import free_port, rows_of
from textbench.flows.run.workspace import folder_tag
from textbench.flows.servers import ports, prefect_server, services
from textbench.tasks import InputError

ONE = {"datasets": ["r8"], "methods": ["nb"], "n_seeds": 1}
RUN_SECONDS = 400
PATIENCE = 120.0  # seconds for an answer


def answer(address: str, body: Any = None) -> Any:
    """Return what a service answers to a GET, or to a POST of this body, as JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
                return json.loads(reply.read())
        except urllib.error.HTTPError as error:
            # Prefect's server says 503 while its database is busy, for clients to ask again.
            if error.code != 503 or time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def textbench(*arguments: str, home: Path, code: int = 0) -> tuple[str, str]:
    """Run `textbench ARGUMENTS` with a Prefect server for this results folder alone."""
    return commands.textbench(*arguments, home=home, code=code, variables={"TEXTBENCH_PREFECT": "own"})


def run_by_form(home: Path, api_url: str, flow: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Ask a deployment of a results folder for a run, wait for its end, and return it."""
    wanted = {"flows": {"name": {"any_": [flow]}}, "deployments": {"tags": {"all_": [folder_tag(home)]}}}
    (deployment,) = answer(f"{api_url}/deployments/filter", wanted)
    run = answer(f"{api_url}/deployments/{deployment['id']}/create_flow_run", {"parameters": parameters})
    deadline = time.monotonic() + RUN_SECONDS
    while run["state"]["type"] not in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED"):
        assert time.monotonic() < deadline, run["state"]
        time.sleep(0.5)
        run = answer(f"{api_url}/flow_runs/{run['id']}")
    return run


def artifacts_of(api_url: str, run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the artifacts of a flow run by their key."""
    wanted = {"flow_runs": {"id": {"any_": [run["id"]]}}}
    return {one["key"]: one for one in answer(f"{api_url}/artifacts/filter", wanted)}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A results folder in which everything is up, with one finished run."""
    folder = tmp_path_factory.mktemp("services")
    try:
        prefect_server.stop(folder, everything=True)  # that of tests before these has another port
        at = ("--port", str(free_port()), "--mlflow-port", str(free_port()))
        textbench("up", *at, "--nightly", "30 3 * * 1", home=folder)
        yield folder
    finally:
        textbench("down", home=folder)


@pytest.fixture(scope="module")
def found(home: Path) -> dict[str, dict[str, Any]]:
    """What `textbench status --json` says."""
    return json.loads(textbench("status", "--json", home=home)[0])


@pytest.fixture(scope="module")
def first(home: Path, found: dict[str, Any]) -> dict[str, Any]:
    """The row of a run on the command line, of what is run by form afterwards."""
    (row,) = rows_of(textbench("run", "-d", "r8", "-m", "nb", "--seed", "0", "--json", home=home)[0])
    return row


def test_both_pages_and_the_worker_are_up(found: dict[str, dict[str, Any]]) -> None:
    assert list(found) == ["prefect", "worker", "mlflow"]
    assert all(state["healthy"] and not state["configured"] for state in found.values())
    assert all(psutil.pid_exists(state["pid"]) for state in found.values())
    for state in (found["prefect"], found["mlflow"]):
        with urllib.request.urlopen(state["page"].partition("#")[0], timeout=PATIENCE) as reply:
            assert b"<html" in reply.read()[:500].lower()
    assert found["worker"]["address"] == found["prefect"]["address"]


def test_services_listen_on_loopback_alone(found: dict[str, dict[str, Any]]) -> None:
    family = [psutil.Process(found["mlflow"]["pid"])]
    family += psutil.Process(found["prefect"]["pid"]).children(recursive=True)
    listening = {
        connection.laddr.ip
        for process in family
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_deployments_are_registered_with_tags_and_the_schedule(found: dict[str, dict[str, Any]]) -> None:
    api_url = found["prefect"]["address"]
    flows = {flow["id"]: flow["name"] for flow in answer(f"{api_url}/flows/filter", {})}
    deployments = {flows[one["flow_id"]]: one for one in answer(f"{api_url}/deployments/filter", {})}
    assert deployments.keys() >= {"benchmark", "label_budget", "retrieval", "nightly"}
    assert all("textbench" in one["tags"] for one in deployments.values())
    assert [one["schedule"]["cron"] for one in deployments["nightly"]["schedules"]] == ["30 3 * * 1"]
    assert found["worker"]["nightly"] == "30 3 * * 1"


def test_the_schedule_makes_runs(found: dict[str, dict[str, Any]]) -> None:
    wanted = {
        "flows": {"name": {"any_": ["nightly"]}},
        "flow_runs": {"state": {"type": {"any_": ["SCHEDULED"]}}},
        "sort": "EXPECTED_START_TIME_ASC",
    }
    deadline = time.monotonic() + PATIENCE
    while not (runs := answer(f"{found['prefect']['address']}/flow_runs/filter", wanted)):
        assert time.monotonic() < deadline, "the server's scheduler has made no run; its log says why"
        time.sleep(0.5)
    begin = datetime.fromisoformat(runs[0]["expected_start_time"])
    assert (begin.weekday(), begin.hour, begin.minute) == (0, 3, 30)


def test_up_again_starts_nothing_new(home: Path, found: dict[str, dict[str, Any]]) -> None:
    again = json.loads(textbench("up", "--json", home=home)[0])
    assert {name: state["pid"] for name, state in again.items()} == {
        name: state["pid"] for name, state in found.items()
    }
    _, errors = textbench("up", "--nightly", "off", home=home, code=2)
    assert "the worker already runs, with nightly 30 3 * * 1; textbench down stops it" in errors
    _, errors = textbench("up", "--host", "0.0.0.0", home=home, code=2)
    assert "--host 0.0.0.0: prefect already listens on 127.0.0.1; textbench down --all stops it" in errors
    assert "lets other machines in" not in errors
    assert "lets other machines in" not in textbench("up", "--host", "localhost", "--json", home=home)[1]


def test_a_wrong_value_is_refused_by_the_server(found: dict[str, dict[str, Any]]) -> None:
    api_url = found["prefect"]["address"]
    (deployment,) = answer(f"{api_url}/deployments/filter", {"flows": {"name": {"any_": ["benchmark"]}}})
    with pytest.raises(urllib.error.HTTPError) as refused:
        answer(f"{api_url}/deployments/{deployment['id']}/create_flow_run", {"parameters": {"n_seeds": 5000}})
    assert "5000 is greater than the maximum of 1000" in refused.value.read().decode()


def test_a_run_by_form_shows_cached_tasks_and_its_results(
    home: Path, found: dict[str, dict[str, Any]], first: dict[str, Any]
) -> None:
    api_url = found["prefect"]["address"]
    # Prefect notes a stored result when it is first asked for again.
    run_by_form(home, api_url, "benchmark", ONE)
    run = run_by_form(home, api_url, "benchmark", ONE)
    assert run["state"]["type"] == "COMPLETED", run["state"]
    assert run["name"] == "r8: nb, honest"
    tasks = answer(f"{api_url}/task_runs/filter", {"flow_runs": {"id": {"any_": [run["id"]]}}})
    assert {task["state"]["name"] for task in tasks} == {"Cached"}
    shown = artifacts_of(api_url, run)
    assert shown.keys() == {"progress", "results", "lineage", "leaderboard", "mlflow"}
    (behind,) = json.loads(shown["lineage"]["data"])
    stages = [behind[name].split("/")[0] for name in ("data set", "vectors", "model", "result")]
    assert stages == ["ingest", "vectorize", "tune", "evaluate"] and behind["features"] == "-"
    assert shown["progress"]["data"] == 100
    (line,) = json.loads(shown["results"]["data"])
    assert line["accuracy"] == f"{100 * first['metrics']['accuracy']:.2f}"
    assert shown["leaderboard"]["data"].startswith("data:image/png")
    assert found["mlflow"]["address"] in shown["mlflow"]["data"]


def test_input_that_the_form_cannot_refuse_fails_the_run_with_its_reason(
    home: Path,
    found: dict[str, dict[str, Any]],
) -> None:
    run = run_by_form(home, found["prefect"]["address"], "benchmark", ONE | {"protocol": "faithful"})
    assert run["state"]["type"] == "FAILED"
    assert "no paper's protocol is known for r8" in run["state"]["message"]


def test_a_night_that_got_worse_and_slower_is_red(
    home: Path, found: dict[str, dict[str, Any]], first: dict[str, Any]
) -> None:
    api_url = found["prefect"]["address"]
    run = run_by_form(home, api_url, "nightly", ONE)
    assert run["state"]["type"] == "COMPLETED", run["state"]
    assert "# First night" in artifacts_of(api_url, run)["nightly"]["data"]
    (path,) = (home / "nights").glob("*/night.json")
    night = json.loads(path.read_text())
    (row,) = night["rows"]
    assert row["metrics"] == first["metrics"]  # computed anew, to the same bits
    # As if all had been right, in a moment, the night before.
    file = path.parent / row["predictions"]
    answers = pyarrow.parquet.read_table(file)
    right = answers.set_column(answers.column_names.index("predicted"), "predicted", answers["target"])
    pyarrow.parquet.write_table(right, file)
    row["seconds"] = {"evaluate": 0.001}
    path.write_text(json.dumps(night))
    run = run_by_form(home, api_url, "nightly", ONE)
    assert (run["state"]["type"], run["state"]["name"]) == ("FAILED", "Regressed")
    text = artifacts_of(api_url, run)["nightly"]["data"]
    assert "**Worse than last night: r8 nb.**" in text
    assert "**Slower than last night: r8 nb.**" in text


def test_down_leaves_no_process_and_up_comes_back(home: Path, found: dict[str, dict[str, Any]]) -> None:
    family = [psutil.Process(state["pid"]) for state in found.values()]
    family += [child for process in family for child in process.children(recursive=True)]
    said, _ = textbench("down", home=home)
    assert said == "stopped: worker, mlflow, prefect\n"
    _, alive = psutil.wait_procs(family, timeout=120)
    assert not alive
    states = json.loads(textbench("status", "--json", home=home)[0])
    assert not any(state["healthy"] or state["address"] for state in states.values())
    assert textbench("down", home=home)[0] == "no server was running\n"
    again = json.loads(textbench("up", "--json", home=home)[0])
    assert all(state["healthy"] for state in again.values())
    assert again["worker"]["nightly"] is None  # it was not asked for
    assert [again[name]["page"] for name in ("prefect", "mlflow")] == [
        found[name]["page"] for name in ("prefect", "mlflow")
    ]
    wanted = {"flows": {"name": {"any_": ["nightly"]}}}
    (nightly,) = answer(f"{again['prefect']['address']}/deployments/filter", wanted)
    assert (nightly["schedules"], nightly["paused"]) == ([], False)  # paused by `down`, and taken up again


def test_a_port_in_use_is_named_and_another_offered() -> None:
    with ports.listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(
            InputError, match=rf"--port: port {port} on 127.0.0.1 is in use; (\d+) is free: --port \1"
        ):
            ports.choose("--port", "127.0.0.1", port, 4200)
        other, said = ports.choose("--port", "127.0.0.1", None, port)
        assert other != port
        assert said.startswith(f"port {port} on 127.0.0.1 is in use; taking {other} instead")
        assert ports.is_free("127.0.0.1", other)
    assert ports.choose("--port", "127.0.0.1", port, 4200) == (port, "")
    assert ports.choose("--port", "127.0.0.1", None, port, taken=[port])[0] != port


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_what_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(InputError, match=rf"--port must lie in 1 .. 65535, got {port}"):
        ports.choose("--port", "127.0.0.1", port, 4200)


def test_a_host_of_another_machine_is_refused() -> None:
    with pytest.raises(InputError, match=r"--host must be an address of this machine.*192\.0\.2\.1"):
        ports.is_free("192.0.2.1", 4200)  # an address for documentation, nobody's


def test_a_port_asked_for_that_is_taken_ends_up_with_code_2_and_starts_nothing(tmp_path: Path) -> None:
    with ports.listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        _, errors = textbench("up", "--port", str(port), home=tmp_path, code=2)
        assert f"port {port} on 127.0.0.1 is in use" in errors
    _, errors = textbench("up", "--nightly", "at noon", home=tmp_path, code=2)
    assert "--nightly is cron" in errors
    assert "got 'at noon'" in errors
    _, errors = textbench("up", "30 3 * * 1", home=tmp_path, code=2)
    assert "textbench up --nightly '30 3 * * 1'" in errors
    assert not (tmp_path / "services").exists()
    assert not (tmp_path / "prefect" / "server.json").exists()


def test_status_without_services_says_how_to_start_them(tmp_path: Path) -> None:
    said, _ = textbench("status", home=tmp_path)
    assert [line.split()[0] for line in said.splitlines()] == ["prefect", "worker", "mlflow"]
    assert said.count("textbench up starts it") == 2


def test_an_mlflow_server_of_the_users_is_used_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{nobody_listens.getsockname()[1]}"
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        state = services.status(tmp_path)["mlflow"]
    assert (state["address"], state["healthy"], state["pid"], state["configured"]) == (
        address,
        False,
        None,
        True,
    )
    assert services.stop(tmp_path) == []
