"""Several results folders on one Prefect server: whose deployments are whose, and what tells runs apart."""

import json
import socket
from pathlib import Path

import pytest

from tests.test_flows_servers_services import ONE, answer, run_by_form
from textbench.flows.run.run_names import named
from textbench.flows.run.workspace import folder_tag
from textbench.flows.servers import prefect_server, services
from textbench.flows.servers.deployment_names import ending


def test_the_first_folder_has_the_plain_names_and_others_their_own(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name / ".textbench" for name in ("first", "my data", "third"))
    for home in (first, second, third):
        home.mkdir(parents=True)
    assert ending(first, {}) == ""
    owners = {"": folder_tag(first)}
    assert ending(first, owners) == ""
    assert ending(second, owners) == "-my-data"
    assert ending(second, owners | {"-my-data": folder_tag(third)}) == "-my-data-2"
    assert ending(second, {"-b": folder_tag(second)}) == "-b"  # what it has it keeps
    assert ending(tmp_path / "plain", owners) == "-plain"


def test_names_of_a_folder_that_is_gone_are_taken_over(tmp_path: Path) -> None:
    assert ending(tmp_path, {"": folder_tag(tmp_path / "gone")}) == ""
    assert ending(tmp_path, {"": ""}) == ""  # of deployments that were made before folders had tags
    elsewhere = f"folder:elsewhere.{socket.gethostname()}:{tmp_path / 'gone'}"
    assert ending(tmp_path, {"": elsewhere}) == f"-{tmp_path.name}"


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"datasets": ["r8"], "methods": ["nb"], "protocol": "honest"}, "r8: nb, honest"),
        ({"datasets": ["r8", "r52"], "methods": ["nb"], "protocol": "faithful", "name": "dcot"},
         "r8, r52: nb, faithful, dcot"),
        ({"datasets": ["r8"], "methods": list("abcdef"), "protocol": "honest", "name": "custom"},
         "r8: a, b, c and 3 more, honest"),
    ],
)  # fmt: skip
def test_a_runs_name_says_what_it_is_of(parameters: dict[str, object], expected: str) -> None:
    assert named(parameters) == expected


def test_a_form_runs_in_the_worker_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "none")
    homes = tmp_path / "one", tmp_path / "two"
    for home in homes:
        home.mkdir()
    info = prefect_server.wait(prefect_server.start(homes[0]))
    try:
        for home in homes:
            services.start_worker(home, info.api_url, None)
        for home in homes:
            services.worker(home).wait()
        names = {}
        for home in homes:
            wanted = {"deployments": {"tags": {"all_": [folder_tag(home)]}}}
            found = answer(f"{info.api_url}/deployments/filter", wanted)
            names[home] = {one["name"] for one in found}
            assert len(found) == 4
            assert all(str(home) in one["description"] for one in found)
        assert not names[homes[0]] & names[homes[1]]
        run = run_by_form(homes[1], info.api_url, "benchmark", ONE)
        assert run["state"]["type"] == "COMPLETED", run["state"]
        assert folder_tag(homes[1]) in run["tags"]
        assert len(list((homes[1] / "index").glob("*.json"))) == 1
        assert not (homes[0] / "index").exists()
        assert services.stop(homes[1]) == ["worker"]  # the other folder's worker needs the server
        assert prefect_server.healthy(info.api_url)
        status = json.loads(json.dumps(services.status(homes[0])))
        assert status["prefect"]["folders"][str(homes[0])]
        assert not status["prefect"]["folders"][str(homes[1])]
    finally:
        for home in homes:
            services.stop(home)
