"""One Prefect server for all results folders of a user: found by all, and stopped by none that others would miss."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.commands import eventually
from tests.test_flows_servers_prefect_server import START, processes_of
from textbench.flows.cli.down import down
from textbench.flows.cli.status import status
from textbench.flows.servers import ports, prefect_server, services
from textbench.tasks import InputError

Folders = tuple[Path, Path]


@pytest.fixture(autouse=True)
def unconfigured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(prefect_server.OWN_VARIABLE, raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "no-profiles"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Folders]:
    """Two results folders; their server is stopped in any case."""
    both = tmp_path / "a", tmp_path / "b"
    for home in both:
        home.mkdir()
    yield both
    prefect_server.stop(both[0], everything=True)


def test_two_folders_at_once_start_one_server(homes: Folders) -> None:
    commands = [
        subprocess.Popen([sys.executable, "-c", START, str(home)], stdout=subprocess.PIPE, text=True)
        for home in homes * 2
    ]
    assert len({command.communicate()[0] for command in commands}) == 1
    assert len(processes_of(homes[0])) <= 2  # the supervisor, and the server that it starts
    assert prefect_server.folder(homes[0]) == prefect_server.folder(homes[1])
    # One that has just started on a busy machine may be slow to answer a single question.
    assert all(eventually(lambda home=home: prefect_server.status(home)["healthy"]) for home in homes)
    first, second = ({**prefect_server.status(home), "healthy": True} for home in homes)
    assert first == second
    assert prefect_server.folders(homes[0]) == {homes[0]: False, homes[1]: False}
    assert not any((home / "prefect").exists() for home in homes)


def test_down_leaves_a_server_that_another_folder_uses(
    homes: Folders, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    used, other = homes
    monkeypatch.setenv("TEXTBENCH_HOME", str(other))
    pid = prefect_server.start(other).pid
    with prefect_server.hold(used):
        status(json=False)
        assert f"\n         serves {used}\n         serves {other} (not in use)\n" in capsys.readouterr().out
        down(everything=False)
        said = capsys.readouterr().out
        assert said.startswith(f"no server was running\nthe Prefect server stays up for {used};")
        assert prefect_server.status(used)["pid"] == pid
        down(everything=True)
        assert capsys.readouterr().out == "stopped: prefect\n"
        assert prefect_server.status(used)["pid"] is None
    assert prefect_server.start(used).pid != pid
    down(everything=False)  # nobody uses it now
    assert capsys.readouterr().out == "stopped: prefect\n"
    assert not processes_of(used)


def test_a_command_holds_the_server_before_it_finds_it(
    homes: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a `down` elsewhere, between the two, would stop what has just been found."""
    start, left = prefect_server.start, []

    def find(home: Path) -> prefect_server.ServerInfo:
        info = start(home)
        left.append(not prefect_server.stop(homes[1]))
        return info

    monkeypatch.setattr(prefect_server, "start", find)
    for name in prefect_server.environment(homes[0], ""):  # to be taken back
        monkeypatch.setenv(name, "")
    with prefect_server.opened(homes[0]):
        assert left == [True]


def test_down_stops_a_server_of_the_old_layout_first(homes: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    home, other = homes
    monkeypatch.setenv(prefect_server.WHOSE_VARIABLE, prefect_server.OWN)
    old = psutil.Process(prefect_server.start(home).pid)
    assert (home / "prefect" / "server.json").exists()
    monkeypatch.delenv(prefect_server.WHOSE_VARIABLE)
    prefect_server.start(other)
    with prefect_server.hold(other):
        assert services.stop(home) == ["prefect"]
        assert eventually(lambda: not old.is_running())
        assert prefect_server.status(other)["pid"]


def test_folders_of_an_earlier_server_are_not_served(homes: Folders) -> None:
    prefect_server.touch(homes[1])
    time.sleep(0.05)
    prefect_server.start(homes[0])
    assert prefect_server.folders(homes[0]) == {homes[0]: False}


def test_a_server_listens_where_up_showed_it_if_it_can(homes: Folders) -> None:
    place = prefect_server.folder(homes[0])
    with ports.listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    place.mkdir(parents=True)
    ports.remember(place / "port", port)
    assert prefect_server.start(homes[0]).port == port
    prefect_server.stop(homes[0])
    with ports.listen("127.0.0.1", port):
        assert prefect_server.start(homes[0]).port != port


@pytest.mark.parametrize("text", ["mine", "Own", "/srv/prefect"])
def test_whose_server_is_shared_or_own(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(prefect_server.WHOSE_VARIABLE, text)
    with pytest.raises(InputError, match=f"TEXTBENCH_PREFECT must be shared .* or own, got '{text}'"):
        prefect_server.start(tmp_path)
