"""A service: started once by all who ask, found by its lock and never by a stale state, stopped with its children."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.commands import eventually, is_gone
from textbench.flows.servers.service import Launch, ServerError, Service
from textbench.tasks.storage.locks import is_held

SLEEPS = "import time; time.sleep(600)"
IS_STUBBORN = f"""
import signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {SLEEPS!r}])
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("child", child.pid, flush=True)
{SLEEPS}
"""
DIES = "for i in range(20): print('line', i)\nraise SystemExit('no settings')"


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A service that is ready when its state says so; it is stopped in any case."""
    monkeypatch.setattr("textbench.flows.servers.service.STOP_SECONDS", 0.5)
    made = Service("the sleeper", tmp_path / "place", "sleeper", lambda state: bool(state.get("ready")))
    yield made
    made.stop()


def python(code: str) -> Callable[[], Launch]:
    return lambda: Launch([sys.executable, "-c", code], {"ready": True, "address": "here"})


def child_of(service: Service) -> int:
    assert eventually(lambda: service.log.read_text().endswith("\n"))
    return int(service.log.read_text().split()[1])


def test_many_who_start_it_at_once_start_one(service: Service) -> None:
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(service.start(python(SLEEPS))["pid"])) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    service.wait()
    assert service.running_state() == service.state()
    assert service.state()["address"] == "here"
    assert service.stop()
    assert is_gone(found[0])
    assert not service.stop()
    assert not service.state_path.exists()


def test_a_killed_one_is_not_found_and_is_replaced(service: Service) -> None:
    """Nor does a child that outlives it keep its lock."""
    first = service.start(python(IS_STUBBORN))["pid"]
    child = child_of(service)
    os.kill(first, signal.SIGKILL)
    assert eventually(lambda: not service.is_running())
    assert not is_gone(child)
    os.kill(child, signal.SIGKILL)
    assert service.state()["pid"] == first  # stale, and not believed
    assert service.running_state() == {}
    assert service.start(python(SLEEPS))["pid"] != first


def test_one_that_does_not_listen_is_killed_with_its_children(service: Service) -> None:
    pid = service.start(python(IS_STUBBORN))["pid"]
    child = child_of(service)
    assert service.stop()
    assert eventually(lambda: is_gone(pid) and is_gone(child))


def test_a_stale_state_names_nobody_to_be_killed(service: Service) -> None:
    """Its process id may be another's by now: here it is this test's."""
    service.place.mkdir()
    service.state_path.write_text(json.dumps({"pid": os.getpid()}))
    assert not service.stop()
    assert not service.state_path.exists()


def test_what_another_version_started_is_found_by_its_files_and_stopped(service: Service) -> None:
    service.place.mkdir()
    with service.lock.open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = [sys.executable, "-c", SLEEPS, "flows.worker", "HOME", str(lock.fileno())]
        process = subprocess.Popen(command, pass_fds=(lock.fileno(),), start_new_session=True)
    service.state_path.write_text(json.dumps({"pid": process.pid, "ready": True}))
    assert service.start(python(SLEEPS))["pid"] == process.pid
    assert service.stop()
    assert process.wait(10) < 0


def test_it_is_left_alone_where_somebody_needs_it(service: Service) -> None:
    service.start(python(SLEEPS))
    assert not service.stop(unless=lambda: True)
    assert service.is_running()
    assert service.stop(unless=lambda: False)
    assert not service.stop(unless=lambda: True)


def test_who_dies_at_start_or_is_never_ready_shows_the_end_of_its_log(service: Service) -> None:
    service.start(lambda: Launch([sys.executable, "-c", DIES]))
    with pytest.raises(ServerError, match="the sleeper ended while it was starting") as died:
        service.wait()
    assert str(died.value).splitlines()[1:] == [*(f"line {i}" for i in range(13, 20)), "no settings"]
    service.start(lambda: Launch([sys.executable, "-c", SLEEPS]))
    with pytest.raises(ServerError, match=r"the sleeper was not ready in 0\.2 s"):
        service.wait(0.2)


def test_asking_for_what_was_never_started_makes_no_files(service: Service) -> None:
    assert not service.is_running()
    assert not service.stop()
    assert not is_held(service.lock)
    assert not service.place.exists()
