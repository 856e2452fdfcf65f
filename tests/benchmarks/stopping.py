"""Stopping: how long a run, and what it started, lives after Ctrl-C or SIGTERM, in each of its stages.

A run of three methods on a CSV of TEXTBENCH_STOPPING_SIZE short documents (60,000) is begun again and again, on one
machine and on Dask workers, and stopped a random while later, Ctrl-C and SIGTERM in turn; TEXTBENCH_STOPPING_TIMES says
how often (20). Seconds are those until the last process is gone that the command had started, Prefect's server apart,
which other commands use. What is left half-written is counted, and the last run is let go to its end.
"""

import contextlib
import os
import random
import signal
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import psutil

from tests.benchmarks.million import write_documents
from tests.commands import start_cold
from tests.faults import unfinished_in

SIZE = int(os.environ.get("TEXTBENCH_STOPPING_SIZE") or 60_000)
TIMES = int(os.environ.get("TEXTBENCH_STOPPING_TIMES") or 20)
LONGEST = 30.0  # seconds after which a run is stopped at the latest
METHODS = ("tfidf", "lsi", "lda")
SERVER = "flows.servers.supervisor"
SIGNALS = {"Ctrl-C": signal.SIGINT, "SIGTERM": signal.SIGTERM}


def main() -> None:
    """Print the seconds of each stop, and the most by signal and engine."""
    rng, most = random.Random(0), defaultdict[str, float](float)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "documents.csv"
        write_documents(path, SIZE)
        for i in range(TIMES):
            name, engine = list(SIGNALS)[i % 2], ("local", "dask")[i // 2 % 2]
            home = Path(place) / engine
            after = rng.uniform(2, LONGEST)
            stage, seconds = _stopped(path, home, engine, SIGNALS[name], after)
            most[f"{name}, {engine}"] = max(most[f"{name}, {engine}"], seconds)
            print(
                f"{name}, {engine}, {after:.1f} s after its start, at {stage}: gone in {seconds:.2f} s",
                flush=True,
            )
        for what, seconds in most.items():
            print(f"{what}: the longest took {seconds:.2f} s")
        for engine in ("local", "dask"):
            process = start_cold(_command(path, engine), Path(place) / engine)
            errors = process.communicate(timeout=3600)[1]
            home = Path(place) / engine
            left = [*(home / "store" / "tmp").glob("*"), *unfinished_in(home / "mlflow.db")]
            print(
                f"{engine}: let go, it ends with exit code {process.returncode}; half-written or open: {len(left)}"
            )
            if process.returncode:
                print(errors[-2000:])


def _command(path: Path, engine: str) -> list[str]:
    methods = [part for method in METHODS for part in ("-m", method)]
    return ["run", "--data", str(path), *methods, "--seeds", "1", "--engine", engine]


def _stopped(path: Path, home: Path, engine: str, number: int, after: float) -> tuple[str, float]:
    """Begin a run, stop it after some seconds; return its last line, and how long its processes lived on."""
    process = start_cold(_command(path, engine), home)
    known: dict[int, psutil.Process] = {}
    until = time.monotonic() + after
    while time.monotonic() < until and process.poll() is None:
        _see(process.pid, known)
        time.sleep(0.05)
    _see(process.pid, known)
    if process.poll() is not None:
        return "its end", 0.0
    begun = time.monotonic()
    process.send_signal(number)
    process.wait(timeout=120)
    while any(map(_lives, known.values())) and time.monotonic() < begun + 120:
        time.sleep(0.01)
    seconds = time.monotonic() - begun
    errors = process.communicate()[1]
    lines = [line for line in errors.splitlines() if line.strip()]
    return repr(lines[-2][:60]) if len(lines) > 1 else "its beginning", seconds


def _see(pid: int, known: dict[int, psutil.Process]) -> None:
    """Remember the processes that one has started, but for Prefect's server and what that has started."""
    with contextlib.suppress(psutil.Error):
        for one in psutil.Process(pid).children():
            if one.pid in known or SERVER not in " ".join(one.cmdline()):
                known.setdefault(one.pid, one)
                _see(one.pid, known)


def _lives(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


if __name__ == "__main__":
    main()
