"""Stopping: how long a run, and what it started, lives after Ctrl-C or SIGTERM, wherever it is.

A run of three methods on a CSV of TEXTBENCH_STOPPING_SIZE short documents (200,000) is begun, each time in a new
results folder, on one machine and on Dask workers in turn, and stopped a random while later by Ctrl-C or SIGTERM;
TEXTBENCH_STOPPING_TIMES says how often (20). Seconds are those until the last process is gone that the command had
started, Prefect's server apart, which other commands use. Then the last run of either kind goes on to its end, and
what is left half-written or open is counted.
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

SIZE = int(os.environ.get("TEXTBENCH_STOPPING_SIZE") or 200_000)
TIMES = int(os.environ.get("TEXTBENCH_STOPPING_TIMES") or 20)
LONGEST = 30.0  # seconds after which a run is stopped at the latest
METHODS = ("tfidf", "lsi", "lda")
SERVER = "flows.servers.supervisor"
SIGNALS = {"Ctrl-C": signal.SIGINT, "SIGTERM": signal.SIGTERM}


def main() -> None:
    """Print the seconds of each stop, and the most by signal and engine."""
    rng, most = random.Random(0), defaultdict[str, float](float)
    with tempfile.TemporaryDirectory() as place:
        path, homes = Path(place) / "documents.csv", dict[str, Path]()
        write_documents(path, SIZE)
        for i in range(TIMES):
            name, engine = list(SIGNALS)[i % 2], ("threads", "dask")[i // 2 % 2]
            home = homes[engine] = Path(place) / str(i)
            seconds = _stopped(path, home, engine, SIGNALS[name], after := rng.uniform(2, LONGEST))
            most[f"{name}, {engine}"] = max(most[f"{name}, {engine}"], seconds)
            made = sorted({folder.parent.name for folder in (home / "store").glob("*/*/")} - {"tmp"})
            print(
                f"{name}, {engine}, {after:.1f} s after its start ({', '.join(made)}): gone in {seconds:.2f} s"
            )
        for what, seconds in most.items():
            print(f"{what}: the longest took {seconds:.2f} s")
        for engine, home in homes.items():
            process = start_cold(_command(path, engine), home)
            errors = process.communicate(timeout=3600)[1]
            left = [*(home / "store" / "tmp").glob("*"), *unfinished_in(home / "mlflow.db")]
            print(
                f"{engine}: let go, it ends with exit code {process.returncode}; half-written or open: {len(left)}"
            )
            if process.returncode:
                print(errors[-2000:])


def _command(path: Path, engine: str) -> list[str]:
    methods = [part for method in METHODS for part in ("-m", method)]
    return ["run", "--data", str(path), *methods, "--seeds", "1", "--engine", engine]


def _stopped(path: Path, home: Path, engine: str, number: int, after: float) -> float:
    """Begin a run, stop it after some seconds, and return how many its processes lived on."""
    process = start_cold(_command(path, engine), home)
    known: dict[int, psutil.Process] = {}
    until = time.monotonic() + after
    while time.monotonic() < until:
        _see(process.pid, known)
        time.sleep(0.05)
    if process.poll() is not None:
        raise RuntimeError(f"it had ended: {process.communicate()[1][-2000:]}")
    begun = time.monotonic()
    process.send_signal(number)
    process.communicate(timeout=120)
    while any(map(_lives, known.values())) and time.monotonic() < begun + 120:
        time.sleep(0.01)
    return time.monotonic() - begun


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
