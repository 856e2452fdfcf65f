"""The Prefect server that textbench starts, keeps and stops. One server serves most tests of this file."""

import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import psutil
import pytest

from tests.commands import eventually
from textbench.flows.cli.status import status
from textbench.flows.servers import orphaned_runs, prefect_server
from textbench.flows.servers.orphaned_runs import _is_dead, owner_tag
from textbench.flows.servers.service import ServerError
from textbench.tasks import InputError

START = """
import sys
from pathlib import Path
from textbench.flows.servers import prefect_server
info = prefect_server.start(Path(sys.argv[1]))
print(info.pid)
"""

KILLED_FLOW = """
import sys, time
from textbench.flows.servers.orphaned_runs import owner_tag
from prefect import flow, tags, task

@task
def endless_task():
    time.sleep(600)

@flow
def abandoned_flow():
    endless_task()

with tags(owner_tag()):
    abandoned_flow()
"""

KILL_AND_CLEAR = """
import asyncio, json, os, signal, sys, time
from textbench.flows.servers.orphaned_runs import crash_abandoned_runs, owner_tag
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.states import Running

@flow
def living_flow():
    pass

async def states():
    async with get_client() as client:
        runs = await client.read_flow_runs() + await client.read_task_runs()
    known = [run for run in runs if run.state]  # a task run is there a moment before its state is
    return {run.name if run.name == "alive" else type(run).__name__: run.state.type.value for run in known}

async def start_living_flow():
    async with get_client() as client:
        await client.create_flow_run(living_flow, name="alive", tags=[owner_tag()], state=Running())

asyncio.run(start_living_flow())
while asyncio.run(states()).get("TaskRun") != "RUNNING":
    time.sleep(0.2)
before_kill = crash_abandoned_runs()
os.kill(int(sys.argv[1]), signal.SIGKILL)
counts = [before_kill, crash_abandoned_runs(), crash_abandoned_runs()]
print(json.dumps({"counts": counts, "states": asyncio.run(states())}))
"""


def processes_of(home: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if str(prefect_server.folder(home)) in process.cmdline():
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture(autouse=True)
def unconfigured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PREFECT_API_URL", "PREFECT_PROFILE", "PREFECT_PROFILES_PATH", prefect_server.OWN_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "no-profiles"))
    monkeypatch.setenv(prefect_server.IDLE_VARIABLE, "1")
    monkeypatch.setenv(prefect_server.WHOSE_VARIABLE, prefect_server.OWN)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A results folder whose server is stopped in any case."""
    yield tmp_path / "home"
    prefect_server.stop(tmp_path / "home")


@pytest.fixture(scope="module")
def kept(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[prefect_server.ServerInfo, ExitStack, list[str]]]:
    """A server started by four commands at once and held, with what the four were told."""
    home = tmp_path_factory.mktemp("kept")
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PREFECT")}
    environ |= {"PREFECT_HOME": str(home / "no-profiles"), prefect_server.IDLE_VARIABLE: "1"}
    environ[prefect_server.WHOSE_VARIABLE] = prefect_server.OWN
    with ExitStack() as holders, pytest.MonkeyPatch.context() as patch:
        holders.callback(prefect_server.supervised(prefect_server.own_folder(home)).stop)
        held = holders.enter_context(ExitStack())
        patch.delenv("PREFECT_API_URL", raising=False)
        patch.setenv("PREFECT_HOME", str(home / "no-profiles"))
        patch.setenv(prefect_server.WHOSE_VARIABLE, prefect_server.OWN)
        held.enter_context(prefect_server.hold(home))
        command = [sys.executable, "-c", START, str(home)]
        commands = [
            subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) for _ in range(4)
        ]
        told = [process.communicate()[0] for process in commands]
        info = prefect_server.wait(prefect_server.start(home))
        patch.undo()
        yield info, held, told


def test_commands_at_once_start_one_server(kept):
    info, _, told = kept
    assert told == [f"{info.pid}\n"] * 4
    assert len(processes_of(info.home)) == 2  # the supervisor and the server
    assert not info.configured


def test_page_looks_for_the_server_at_its_own_port(kept):
    info, _, _ = kept
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    page = urllib.request.Request(info.ui_url, headers={"Accept": "text/html"})
    with opener.open(page) as answer:
        assert b"<html" in answer.read()
    with opener.open(f"{info.ui_url}/ui-settings") as answer:
        assert json.load(answer)["api_url"] == info.api_url


def test_status_command_prints_one_line_of_json(kept, monkeypatch, capsys):
    info, _, _ = kept
    monkeypatch.setenv("TEXTBENCH_HOME", str(info.home))
    status(json=True)
    expected = {"address": info.api_url, "healthy": True, "pid": info.pid, "configured": False}
    found = json.loads(capsys.readouterr().out)
    folders = {str(info.home): True}
    assert found.pop("prefect") == expected | {"page": info.ui_url, "folders": folders}
    # A server and nothing else.
    assert not any(state["address"] or state["healthy"] for state in found.values())


def test_runs_of_a_killed_process_are_crashed_and_others_left_alone(kept):
    info, _, _ = kept
    environ = os.environ | prefect_server.environment(info.home, info.api_url)
    flow = subprocess.Popen([sys.executable, "-c", KILLED_FLOW], env=environ, stderr=subprocess.DEVNULL)
    try:
        command = [sys.executable, "-c", KILL_AND_CLEAR, str(flow.pid)]
        told = subprocess.run(
            command, env=environ, stdout=subprocess.PIPE, text=True, timeout=300, check=True
        ).stdout
    finally:
        flow.kill()
        flow.wait()
    expected_states = {"FlowRun": "CRASHED", "TaskRun": "CRASHED", "alive": "RUNNING"}
    assert json.loads(told) == {"counts": [0, 2, 0], "states": expected_states}


def test_unused_server_stops_and_no_process_is_left(kept):
    info, held, _ = kept
    assert prefect_server.healthy(info.api_url)  # unused for much longer than a second, but held
    held.close()
    assert eventually(lambda: not processes_of(info.home))
    assert not prefect_server.supervised(prefect_server.folder(info.home)).state_path.exists()
    assert prefect_server.status(info.home)["address"] is None


def test_server_dies_with_its_supervisor_and_is_replaced(home):
    first = prefect_server.start(home)
    supervisor = psutil.Process(first.pid)
    assert eventually(lambda: bool(supervisor.children()))
    supervisor.kill()
    assert eventually(lambda: not processes_of(home))
    # It is stale, and not believed:
    assert prefect_server.supervised(prefect_server.folder(home)).state()["pid"] == first.pid
    assert prefect_server.status(home)["pid"] is None
    second = prefect_server.start(home)
    assert second.pid != first.pid
    assert prefect_server.stop(home)
    assert not processes_of(home)


def test_server_stops_when_its_home_disappears(home):
    prefect_server.start(home)
    shutil.rmtree(home)
    assert eventually(lambda: not processes_of(home))


def test_death_at_start_shows_the_end_of_the_log(home, monkeypatch):
    monkeypatch.setenv("PREFECT_SERVER_DATABASE_CONNECTION_URL", "nosuchdatabase://")
    with pytest.raises(ServerError, match=r"(?s)ended while it was starting.*nosuchdatabase"):
        prefect_server.wait(prefect_server.start(home))
    assert not processes_of(home)


def test_configured_server_is_used_and_left_alone(home, monkeypatch):
    monkeypatch.setattr(prefect_server, "CONFIGURED_SECONDS", 0.2)
    with socket.socket() as nobody_listens:
        nobody_listens.bind((prefect_server.HOST, 0))
        url = f"http://{prefect_server.HOST}:{nobody_listens.getsockname()[1]}/api"
        monkeypatch.setenv("PREFECT_API_URL", url)
        info = prefect_server.start(home)
        assert info.configured
        assert info.api_url == url
        assert not home.exists()
        with pytest.raises(ServerError, match="configured"):
            prefect_server.wait(info)
        assert prefect_server.status(home) == {
            "address": url,
            "healthy": False,
            "pid": None,
            "configured": True,
        }
        assert not any(
            "URL" in name or name == "PREFECT_HOME" for name in prefect_server.environment(home, url)
        )


def test_profile_configures_a_server_and_our_own_address_does_not(tmp_path, monkeypatch):
    profiles = tmp_path / "profiles.toml"
    profiles.write_text('active = "a"\n[profiles.a]\nPREFECT_API_URL = "http://a/api/"\n[profiles.b]\n')
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    assert prefect_server.configured_api_url() == "http://a/api"
    monkeypatch.setenv("PREFECT_PROFILE", "b")
    assert prefect_server.configured_api_url() is None
    for name, value in prefect_server.environment(tmp_path, "http://127.0.0.1:9/api").items():
        monkeypatch.setenv(name, value)
    assert os.environ["PREFECT_API_URL"] == "http://127.0.0.1:9/api"
    assert prefect_server.configured_api_url() is None
    monkeypatch.setenv("PREFECT_PROFILES_PATH", str(profiles))
    monkeypatch.delenv("PREFECT_API_URL")
    profiles.write_text("not = toml = at all")
    with pytest.raises(InputError, match=r"profiles\.toml"):
        prefect_server.configured_api_url()


@pytest.mark.parametrize("text", ["0", "-5", "soon", "nan"])
def test_bad_idle_time_is_refused(home, monkeypatch, text):
    monkeypatch.setenv(prefect_server.IDLE_VARIABLE, text)
    with pytest.raises(InputError, match=f"{prefect_server.IDLE_VARIABLE} must be.*{text}"):
        prefect_server.start(home)
    assert not home.exists()


def test_owner_is_dead_when_its_process_id_was_reused():
    owner = owner_tag().removeprefix("owner:")
    hostname, pid, created = owner.rsplit(":", 2)
    assert not _is_dead(owner)
    assert _is_dead(f"{hostname}:{pid}:{float(created) - 3600:.2f}")
    assert not _is_dead(f"elsewhere.{hostname}:{pid}:{float(created) - 3600:.2f}")


def test_a_server_that_is_gone_before_a_run_begins_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone() -> int:
        raise httpx.ConnectError("All connection attempts failed")

    monkeypatch.setattr(orphaned_runs, "_crash_abandoned_runs", gone)
    with pytest.raises(ServerError, match=r"stopped answering \(ConnectError\); the same command goes on"):
        orphaned_runs.crash_abandoned_runs()
