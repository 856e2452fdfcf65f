"""Isolation: what crosses between the processes, how a child can end, and that none outlives its parent."""

import contextlib
import errno
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from tests.commands import PROJECT, eventually, is_gone
from textbench.tasks.storage import isolate
from textbench.tasks.storage.isolate import CellError


@pytest.fixture(scope="module", autouse=True)
def warm_server() -> None:
    # The limits below are short: the server's imports must not count.
    isolate.run("tests.plumbing:echo", {})


def pids_in(file: Path) -> list[int]:
    assert eventually(lambda: file.exists() and len(file.read_text().split()) == 2)
    return [int(pid) for pid in file.read_text().split()]


def test_json_comes_back_as_it_was_sent() -> None:
    payload = {
        "text": "naïve ☃ \x00 \U0001f600",
        "numbers": [1, 2.5, 1e308],
        "none": None,
        "deep": {"a": [{}]},
    }
    assert isolate.run("tests.plumbing:echo", payload) == payload


def test_a_reply_larger_than_a_pipe_holds_comes_back() -> None:
    payload = {"text": "x" * 3_000_000}
    assert isolate.run("tests.plumbing:echo", payload) == payload


def test_every_computation_has_a_process_of_its_own() -> None:
    first, second = (isolate.run("tests.plumbing:process_id", {}) for _ in range(2))
    assert len({first["pid"], second["pid"], os.getpid()}) == 3
    assert first["parent"] == second["parent"] != os.getpid()
    assert eventually(lambda: is_gone(first["pid"]) and is_gone(second["pid"]))


def test_an_exception_gives_one_line_and_its_traceback() -> None:
    with pytest.raises(CellError) as caught:
        arguments = ["k must be >= 1, got 0\nmore\nlines"]
        isolate.run("tests.plumbing:raise_error", {"type": "ValueError", "args": arguments})
    assert str(caught.value) == "ValueError: k must be >= 1, got 0"
    assert "in raise_error" in caught.value.details
    assert "lines" in caught.value.details


def test_an_exception_without_a_message_is_named() -> None:
    with pytest.raises(CellError, match=r"^ValueError$"):
        isolate.run("tests.plumbing:raise_error", {"type": "ValueError", "args": []})


def test_leaving_python_is_a_failure() -> None:
    with pytest.raises(CellError, match=r"^SystemExit: 2$"):
        isolate.run("tests.plumbing:raise_error", {"type": "SystemExit", "args": [2]})


def test_an_os_error_keeps_its_number_and_file() -> None:
    arguments = [errno.ENOSPC, "said otherwise", "/some/file"]
    with pytest.raises(OSError, match="No space left on device") as caught:
        isolate.run("tests.plumbing:raise_error", {"type": "OSError", "args": arguments})
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/some/file")


def test_a_file_that_a_method_lacks_is_a_failed_cell_with_its_traceback() -> None:
    arguments = [errno.ENOENT, "No such file or directory", "/no/lexicon.txt"]
    with pytest.raises(CellError, match=r"^FileNotFoundError: .*/no/lexicon.txt") as caught:
        isolate.run("tests.plumbing:raise_error", {"type": "OSError", "args": arguments})
    assert "in raise_error" in caught.value.details


def test_an_os_error_without_a_number_is_a_failed_cell() -> None:
    with pytest.raises(CellError, match=r"^OSError: odd$"):
        isolate.run("tests.plumbing:raise_error", {"type": "OSError", "args": ["odd"]})


@pytest.mark.parametrize("function", ["tests.plumbing:no_such_function", "no_such_module:f"])
def test_a_function_that_is_not_there_is_a_failed_cell(function: str) -> None:
    with pytest.raises(CellError, match="no_such"):
        isolate.run(function, {})


def test_a_result_that_is_not_json_is_named() -> None:
    with pytest.raises(CellError, match="TypeError: Object of type set is not JSON serializable"):
        isolate.run("tests.plumbing:return_set", {})


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (signal.SIGKILL, r"its process died \(signal SIGKILL\); out of memory\?"),
        (signal.SIGSEGV, r"its process died \(signal SIGSEGV\)"),
    ],
)
def test_a_killed_child_names_the_signal(number: signal.Signals, message: str) -> None:
    with pytest.raises(CellError, match=f"^{message}$"):
        isolate.run("tests.plumbing:kill_itself", {"signal": int(number)})


def test_a_child_that_ends_without_a_word_gives_its_exit_code() -> None:
    with pytest.raises(CellError, match=r"^its process died \(exit code 3\)$"):
        isolate.run("tests.plumbing:exit_silently", {})


def test_ctrl_c_on_the_group_leaves_the_child_to_its_parent() -> None:
    with pytest.raises(CellError, match=r"^tune ran over its time limit of 0\.3 s"):
        isolate.run(
            "tests.plumbing:kill_itself", {"signal": int(signal.SIGINT)}, time_limit=0.3, stage="tune"
        )


def test_a_child_over_its_time_limit_is_stopped(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    with pytest.raises(CellError, match=r"^ran over its time limit of 0.5 s and was stopped$"):
        isolate.run("tests.plumbing:sleep", {"file": str(file), "seconds": 60}, time_limit=0.5)
    child, server = pids_in(file)
    assert is_gone(child)
    assert not is_gone(server)


def test_what_is_no_longer_waited_for_is_stopped(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    payload = {"file": str(file), "seconds": 60}
    with ThreadPoolExecutor(1) as threads, isolate.stoppable():
        ended = threads.submit(copy_context().run, isolate.run, "tests.plumbing:sleep", payload)
        child, server = pids_in(file)
    with pytest.raises(CellError, match=r"^was stopped$"):
        ended.result()
    assert is_gone(child)
    assert not is_gone(server)


def test_a_child_does_not_run_the_script_again_that_started_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from textbench.tasks.storage import isolate\n"
        "print('begun')\n"
        "print(isolate.run('tests.plumbing:echo', {'n': 3}), __file__.endswith('script.py'))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(PROJECT)}
    found = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment)
    assert found.stdout == "begun\n{'n': 3} True\n", found.stderr


def test_a_child_over_its_memory_limit_is_stopped(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    payload = {"file": str(file), "megabytes": 600, "seconds": 60}
    with pytest.raises(CellError, match=r"^used \d+ MB, over its memory limit of 400 MB, and was stopped$"):
        isolate.run("tests.plumbing:allocate", payload, memory_limit=400)
    assert is_gone(pids_in(file)[0])


def test_a_child_within_its_limits_is_left_alone(tmp_path: Path) -> None:
    payload = {"file": str(tmp_path / "pid"), "megabytes": 8, "seconds": 0.2}
    reply = isolate.run("tests.plumbing:allocate", payload, memory_limit=4000, time_limit=60)
    assert reply == {"sum": 1_000_000.0}


def test_linear_algebra_keeps_to_its_threads() -> None:
    counts = isolate.run("tests.plumbing:thread_counts", {}, threads=1)["threads"]
    assert counts
    assert set(counts) == {1}


def test_what_a_child_prints_does_no_harm() -> None:
    assert isolate.run("tests.plumbing:make_noise", {}) == {"ok": True}


def test_a_child_dies_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    payload = {"file": str(file), "seconds": 60}
    source = f"from textbench.tasks.storage import isolate; isolate.run('tests.plumbing:sleep', {payload!r})"
    parent = subprocess.Popen([sys.executable, "-c", source])
    try:
        child, server = pids_in(file)
        assert not is_gone(child)
    finally:
        parent.kill()
        parent.wait()
    assert eventually(lambda: is_gone(child) and is_gone(server))


def run_in_daemon(queue: Any) -> None:
    assert multiprocessing.current_process().daemon
    results: list[dict[str, Any]] = []
    threads = [
        threading.Thread(target=lambda: results.append(isolate.run("tests.plumbing:process_id", {})))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    queue.put((len({result["pid"] for result in results}), multiprocessing.current_process().daemon))


def test_a_daemon_process_may_isolate_too() -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=run_in_daemon, args=(queue,), daemon=True)
    process.start()
    assert queue.get(timeout=60) == (4, True)
    process.join(60)
    assert process.exitcode == 0


def test_a_child_may_isolate_too() -> None:
    reply = isolate.run("tests.plumbing:nest", {})
    assert len({reply["pid"], reply["outer"], os.getpid()}) == 3


def test_threads_get_their_own_replies() -> None:
    replies: dict[int, Any] = {}

    def call(i: int) -> None:
        replies[i] = isolate.run("tests.plumbing:echo", {"i": i})

    threads = [threading.Thread(target=call, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == {i: {"i": i} for i in range(8)}


def test_usage_grows() -> None:
    """In a process of its own: of one that once was larger, the peak tells nothing of what comes later."""
    code = (
        "import json; from textbench.tasks.storage import isolate; before = isolate.usage(); "
        "room = bytearray(b'1') * 100_000_000; sum(i * i for i in range(300_000)); "
        "print(json.dumps([before, isolate.usage()]))"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    before, after = json.loads(printed)
    assert after["cpu_seconds"] > before["cpu_seconds"]
    assert after["peak_mb"] > before["peak_mb"] + 90 > 91


def test_the_peak_of_a_process_is_its_own_and_not_of_who_started_it() -> None:
    starts = (
        "room = bytearray(b'1') * 300_000_000; import subprocess, sys; subprocess.run([sys.executable, '-c', "
    )
    says = "from textbench.tasks.storage import isolate; bytearray(b'1') * {}; print(isolate.peak_mb())"
    printed = [
        subprocess.run(
            [sys.executable, "-c", f"{starts}{says.format(n)!r}])"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for n in (1, 200_000_000)
    ]
    little, much = map(float, printed)
    assert 10 < little < 150 < 200 < much < 300


def test_a_pool_computes_and_dies_with_its_owner() -> None:
    with isolate.pool(2) as executor:
        squares = list(executor.map(abs, range(-20, 0)))
        pids = set(executor.map(_own_pid, range(20)))
    assert squares == list(range(20, 0, -1))
    assert pids and os.getpid() not in pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def _own_pid(_: int) -> int:
    return os.getpid()


STOPPED = """
import multiprocessing, os, signal, sys
from textbench.flows.cli.runner import stopped_by_hand

queues = [multiprocessing.get_context("spawn").Queue() for _ in range(2)]  # as a local Dask cluster has them
with stopped_by_hand():
    pass
number = int(sys.argv[1])
with stopped_by_hand():
    if number == signal.SIGTERM:
        signal.signal(number, lambda *_: None)  # as Prefect does
    os.kill(os.getpid(), number)
    signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_stopped_leaves_no_semaphores(number: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", STOPPED, str(int(number))],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 128 + number
    assert ended.stderr == "textbench: stopped; the same command goes on where this one was\n"


FAMILY = """
import subprocess, sys
from textbench.tasks.storage import isolate
SLEEP = "import time; time.sleep(60)"
PARENT = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {SLEEP!r}]).pid, flush=True); {SLEEP}"
child = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
grandchild = int(child.stdout.readline())
away = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
service = subprocess.Popen([sys.executable, "-c", SLEEP], **away)
isolate.end_children()
print(child.wait(), grandchild, service.pid)
"""


def test_children_and_theirs_end_at_once_and_services_go_on() -> None:
    import psutil

    command = [sys.executable, "-c", FAMILY]
    said = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True, timeout=60).stdout
    code, grandchild, service = map(int, said.split())
    assert code == -signal.SIGKILL
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(grandchild).wait(timeout=30)
    living = psutil.Process(service)
    assert living.status() != psutil.STATUS_ZOMBIE
    living.kill()
