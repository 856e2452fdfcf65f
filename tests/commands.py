"""The command line as a process of its own, for tests that kill it, starve it or change its code."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from tests.warm import PROJECT, Process
from textbench.tasks.storage.definitions import ROOMS

# Below the ports that the system hands out, a hundred for each process: what was found free stays free till used.
PORTS = iter(range(10_000 + 100 * (os.getpid() % 200), 32_000))
MAIN = "import sys; from textbench.flows.cli import main; sys.argv[0] = 'textbench'; main()"


def environment(home: Path, project: Path, variables: Mapping[str, str] | None) -> dict[str, str]:
    """Return the environment of a command."""
    own = {"TEXTBENCH_HOME": str(home), "PYTHONPATH": str(project.parent), "COLUMNS": "200"}
    return os.environ | own | dict(variables or {})


def start(
    arguments: Sequence[str], home: Path, project: Path = PROJECT, variables: Mapping[str, str] | None = None
) -> Process:
    """Start `textbench ARGUMENTS` from the code in `project`, with its results in `home`."""
    return Process(arguments, environment(home, project, variables), project)


def start_cold(
    arguments: Sequence[str], home: Path, variables: Mapping[str, str] | None = None
) -> "subprocess.Popen[str]":
    """Start `textbench ARGUMENTS` as a shell does: nothing is imported, output goes to pipes."""
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *arguments],
        env=environment(home, PROJECT, variables),
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def textbench(
    *arguments: str,
    home: Path,
    code: int = 0,
    project: Path = PROJECT,
    variables: Mapping[str, str] | None = None,
) -> tuple[str, str]:
    """Run `textbench ARGUMENTS`, expect the exit code, and return what it printed: (output, errors)."""
    process = start(arguments, home, project, variables)
    try:
        output, errors = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == code, f"exit code {process.returncode}\n{output}\n{errors}"
    return output, errors


def copied(folder: Path) -> Path:
    """Return a copy of the project in a folder, whose code a test may change."""
    copy = folder / "copy" / "textbench"
    for package in ROOMS:
        shutil.copytree(PROJECT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("__init__.py", "mlflow.yaml"):
        shutil.copy(PROJECT / name, copy)
    return copy


def rows_of(output: str) -> list[dict[str, Any]]:
    """Return the JSON Lines of a run, in the order of data set, method and seed."""
    rows = [json.loads(line) for line in output.splitlines()]
    return sorted(rows, key=lambda row: (row["dataset"], row["method"], row["seed"]))


def free_port() -> int:
    """Return a port on loopback that nobody listens to, another at each call, in each of pytest's processes."""
    for port in PORTS:
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise RuntimeError("no port is free")


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended, whoever has still to notice."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def eventually(is_true: Callable[[], bool], seconds: float = 120.0) -> bool:
    """Tell whether something becomes true in time."""
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
