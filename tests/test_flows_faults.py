"""Faults, done for real: processes killed in the middle of a write, a full disk, a clock that jumps, servers that die.

Afterwards cells and runs are counted: none lost, none computed again, none written twice. What kills and counts is in
`tests.faults`.
"""

import http.server
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest

from tests.commands import MAIN, eventually, free_port, is_gone, rows_of
from tests.faults import (
    PATIENCE,
    Faults,
    cells_in,
    documents,
    trials_in,
    unfinished_in,
)
from tests.test_flows_servers_services import run_by_form
from textbench.flows.run import outbox
from textbench.flows.servers import prefect_server, services
from textbench.flows.servers.orphaned_runs import PREFIX, _is_dead, owner_tag

QUICK = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "2", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables that make a results folder use one Prefect server, which no test harms."""
    home = tmp_path_factory.mktemp("faults")
    try:
        yield {"PREFECT_API_URL": prefect_server.wait(prefect_server.start(home), PATIENCE).api_url}
    finally:
        prefect_server.stop(home)


@pytest.fixture
def faults(server: dict[str, str], tmp_path: Path) -> Faults:
    return Faults(tmp_path, server)


def test_killed_in_the_middle_of_four_writes_it_goes_on_where_it_stopped(faults: Faults) -> None:
    """In ingest, tune, evaluate, and while MLflow is given the first run's files."""
    before: dict[str, float] = {}
    for name in ("corpus.json", "trial.json", "per_class.json", "mlartifacts/"):
        faults.kill_while_writing(name)
        now = faults.artifacts()
        assert {key: now.get(key) for key in before} == before, f"computed again before the kill in {name}"
        before = now
    stages = {name.partition("/")[0] for name in before}
    assert {"ingest", "vectorize", "featurize", "trial", "tune", "evaluate"} <= stages
    database = faults.home / "mlflow.db"
    assert unfinished_in(database)  # the run that was being written
    rows, _ = faults.run()
    assert [row["error"] for row in rows] == [None, None]
    faults.require_nothing_lost_or_twice(before, database, n_cells=2)
    assert len(trials_in(database)) == 2  # of tfidf; binary has nothing to choose


def test_prefects_server_is_killed_in_mid_sweep(tmp_path: Path) -> None:
    """The run that used it ends with a line that says what to do; the same command starts a server and goes on."""
    own = Faults(tmp_path, {prefect_server.WHOSE_VARIABLE: prefect_server.OWN})
    try:
        # Prefect would ask four minutes long whether the server is there again; once more it asks a busy one.
        impatient = {"PREFECT_CLIENT_MAX_RETRIES": "1"}
        process = own.start(own.command(), hold="per_class.json", variables=impatient)
        own.wait_until_held(process)
        before = own.artifacts()
        supervisor = psutil.Process(
            prefect_server.supervised(prefect_server.own_folder(own.home)).state()["pid"]
        )
        for one in [supervisor, *supervisor.children(recursive=True)]:
            one.kill()
        own.release()
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode in (0, 1), errors
        assert "Traceback" not in errors
        if process.returncode:
            assert "the same command goes on" in errors, errors
        before |= own.artifacts()
        rows, _ = own.run()
        assert [row["error"] for row in rows] == [None, None]
        own.require_nothing_lost_or_twice(before, own.home / "mlflow.db", n_cells=2)
    finally:
        prefect_server.stop(own.home)


@pytest.mark.dear
def test_a_workers_flow_process_is_killed(
    faults: Faults, server: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run shows as Crashed, its computations die with it, and the next one goes on where it stopped."""
    for name, value in faults.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("FAULTS_HOLD", "per_class.json")
    monkeypatch.setenv("PREFECT_API_URL", server["PREFECT_API_URL"])
    asked = {"datasets": ["r8"], "methods": ["nb"], "n_seeds": 1}
    state = services.start_worker(faults.home, server["PREFECT_API_URL"], None)
    try:
        services.worker(faults.home).wait(PATIENCE)
        (faults.orders / "armed").touch()
        found: list[dict[str, Any]] = []
        asking = threading.Thread(
            target=lambda: found.append(
                run_by_form(faults.home, server["PREFECT_API_URL"], "benchmark", asked)
            )
        )
        asking.start()
        faults.wait_until_held()
        family = psutil.Process(state["pid"]).children(recursive=True)
        for process in psutil.Process(state["pid"]).children():
            process.kill()
        assert eventually(lambda: all(is_gone(one.pid) for one in family), 60)
        before = faults.artifacts()
        asking.join(PATIENCE)
        assert found[0]["state"]["type"] == "CRASHED"
        faults.release()
        run = run_by_form(faults.home, server["PREFECT_API_URL"], "benchmark", asked)
        assert run["state"]["type"] == "COMPLETED", run["state"]
        faults.require_nothing_lost_or_twice(before, faults.home / "mlflow.db", n_cells=1)
    finally:
        services.stop(faults.home)


def test_a_disk_that_fills_up_in_the_middle_of_a_write(faults: Faults) -> None:
    """The store on a disk of 1 MB: the cells fail with a clear line, and when there is space they are finished."""
    faults.data.write_text(documents(600, n_words=120))
    store = faults.home / "store"
    store.mkdir()
    script = (
        f"mount -t tmpfs -o size=1m tmpfs {store} && shift && "
        f'{{ "$@" > {faults.work}/full.out 2> {faults.work}/full.err; echo $? > {faults.work}/full.code; '
        f"mount -o remount,size=200m {store}; "
        f"find {store} -type f ! -name '*.lock' ! -path '*/ingest/*' ! -path '*/audit/*' > {faults.work}/left; "
        f'"$@"; }}'
    )
    # In name spaces of its own the disk may be mounted, and is gone with the last process that has it.
    spaces = next((how for how in (["unshare", "-rm"], ["unshare", "-m"]) if may_mount(how)), None)
    assert spaces, "a small disk cannot be mounted here: neither user name spaces nor root"
    command = [sys.executable, "-c", MAIN, *faults.command("-m", "binary", "-m", "counts")]
    process = subprocess.run(
        [*spaces, "sh", "-c", script, "sh", "-", *command],
        env=os.environ | faults.variables,
        cwd=faults.work,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=True,
    )
    full = rows_of((faults.work / "full.out").read_text())
    assert (faults.work / "full.code").read_text().strip() == "1"
    for row in full:
        assert "No space left on device" in row["error"]
        assert "TEXTBENCH_HOME" in row["error"]
    assert (faults.work / "left").read_text() == ""  # nothing half-written
    assert "Traceback" not in (faults.work / "full.err").read_text()
    assert [(row["error"], row["cached"]) for row in rows_of(process.stdout)] == [(None, False)] * 2
    database = faults.home / "mlflow.db"
    assert [status for _, status in cells_in(database)] == ["FINISHED", "FINISHED"]  # what failed was adopted
    assert unfinished_in(database) == []


def may_mount(how: Sequence[str]) -> bool:
    try:
        command = [*how, "sh", "-c", "mount -t tmpfs tmpfs /mnt"]
        return subprocess.run(command, capture_output=True, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@pytest.mark.parametrize("hours", [-30, 30])
def test_a_clock_that_jumps_in_the_middle_of_a_run(faults: Faults, hours: int) -> None:
    """A run that wants everything afresh goes by what was made after it began, whatever the clock says meanwhile.

    This moves `time.time` in every process of the run, after the first artifact was begun; locks, limits and waiting
    go by the monotonic clock, and the clocks of Prefect and MLflow stay.
    """
    (faults.orders / "armed").touch()
    jump = {"FAULTS_HOLD": "corpus.json", "FAULTS_JUMP": str(3600 * hours)}
    rows, errors = faults.run("-m", "binary", "-m", "counts", "--fresh", variables=jump)
    assert (faults.orders / "held").exists(), "the clock was never moved"
    assert [row["error"] for row in rows] == [None, None], errors
    made = faults.artifacts()
    faults.release()
    rows, _ = faults.run("-m", "binary", "-m", "counts")  # by the right clock
    assert [(row["error"], row["cached"]) for row in rows] == [(None, True)] * 2
    assert faults.artifacts() == made
    assert [status for _, status in cells_in(faults.home / "mlflow.db")] == ["FINISHED"] * 2


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel keeps when a process began")
def test_a_clock_that_is_set_does_not_make_a_living_run_look_abandoned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Linux tells when it booted by the clock of now, so when a process began seems to move with the clock."""
    owner = owner_tag().removeprefix(PREFIX)
    began = psutil.Process().create_time()
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: began + 3600)
    assert not _is_dead(owner)


def start_mlflow(home: Path, port: int) -> int:
    """Serve MLflow's real server for this folder's database; return its process id."""
    home.mkdir(exist_ok=True)
    state = services.start_mlflow(home, "127.0.0.1", port)
    services.mlflow_page(home).wait(PATIENCE)
    return int(state["pid"])


def test_mlflows_server_is_killed_in_mid_sweep(
    faults: Faults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Configured to stop: the cells say that they are kept, and the same command records them and computes nothing."""
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path / "tracking"))
    port = free_port()
    address = {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{port}"}
    tracking = tmp_path / "tracking"
    pid = start_mlflow(tracking, port)
    try:
        process = faults.start(faults.command(), hold="per_class.json", variables=address | QUICK)
        faults.wait_until_held(process)
        os.kill(pid, signal.SIGKILL)
        faults.release()
        output, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1, errors
        assert len(rows_of(output)) == 2
        for row in rows_of(output):
            assert "it is kept, and the same command records it" in row["error"]
        before = faults.artifacts()
        assert len(faults.results()) == 2
        assert eventually(lambda: not services.mlflow_page(tracking).is_running(), 60)
        assert start_mlflow(tracking, port) != pid
        rows, _ = faults.run(variables=address)
        assert [(row["error"], row["cached"]) for row in rows] == [(None, True)] * 2
        faults.require_nothing_lost_or_twice(before, tracking / "mlflow.db", n_cells=2)
        assert len(trials_in(tracking / "mlflow.db")) == 2
    finally:
        services.stop(tracking)


class Slow(http.server.BaseHTTPRequestHandler):
    """A tracking server that says it is well, answers nothing else for a minute and notes what it was asked."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        if self.path != "/health":
            self.asked.append(self.path)
            time.sleep(60)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"OK")

    do_POST = do_GET  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def test_runs_wait_for_a_server_that_is_dead_or_slow_and_are_sent_once(
    faults: Faults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Configured to spool: no result is lost and none computed again; what waits is sent by the next run or by hand."""
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path / "tracking"))
    port = free_port()
    address = {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{port}", **QUICK}
    (faults.work / "mlflow.yaml").write_text("when_down: spool\n")
    rows, errors = faults.run("-m", "binary", "--trials", "2", variables=address)  # nobody listens
    assert [(row["error"], row["run_id"]) for row in rows] == [(None, None)]
    assert "1 run waits" in errors
    slow = http.server.ThreadingHTTPServer(("127.0.0.1", port), Slow)
    slow.daemon_threads = True
    threading.Thread(target=slow.serve_forever, daemon=True).start()
    rows, errors = faults.run("-m", "tfidf", "--trials", "2", variables=address)
    assert [(row["error"], row["run_id"]) for row in rows] == [(None, None)]
    assert len(Slow.asked) == len(set(Slow.asked)) <= 2, Slow.asked  # it is given up, not asked again
    assert "2 runs wait" in errors
    slow.shutdown()
    slow.server_close()
    assert len(outbox.waiting(faults.home)) == 2
    before, tracking = faults.artifacts(), tmp_path / "tracking"
    start_mlflow(tracking, port)
    try:
        said = [faults.start(["send"], variables=address).communicate(timeout=PATIENCE) for _ in range(2)]
        assert said[0][0].startswith("sent 2 runs"), said
        assert said[1][0].startswith("no runs wait"), said
        rows, _ = faults.run(variables=address)
        assert [(row["error"], row["cached"], bool(row["run_id"])) for row in rows] == [
            (None, True, True)
        ] * 2
        faults.require_nothing_lost_or_twice(before, tracking / "mlflow.db", n_cells=2)
        assert len(trials_in(tracking / "mlflow.db")) == 2
        assert list(outbox.folder(faults.home).iterdir()) == []
    finally:
        services.stop(tracking)
