"""Faults for tests: commands that stop at a moment of the test's choice, to be killed there, and what is counted after.

Every process of a command reads `HOOK`, which stops it when it opens a certain file for writing. What is killed then is
killed with half a result on the disk.
"""

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from tests.commands import rows_of
from tests.warm import Process

PATIENCE = 300.0  # seconds that a process may take to come to the moment it is stopped at
HOOK = """
import os, sys, time
FOLDER, WANTED = os.environ["FAULTS"], os.environ.get("FAULTS_HOLD", "")
JUMP = float(os.environ.get("FAULTS_JUMP", 0))
ARMED, HELD = FOLDER + "/armed", FOLDER + "/held"
real_time, real_time_ns = time.time, time.time_ns

def hook(event, arguments):
    if event != "open" or not WANTED or not isinstance(arguments[0], str):
        return
    path, mode, flags = arguments
    if WANTED in path and isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR) and os.path.exists(ARMED):
        if not os.path.exists(HELD):
            os.mkdir(HELD)
        while os.path.exists(ARMED) and not JUMP:
            time.sleep(0.02)

sys.addaudithook(hook)
if JUMP:  # the clock is moved for all processes as soon as one of them begins to write WANTED
    time.time = lambda: real_time() + (JUMP if os.path.exists(HELD) else 0)
    time.time_ns = lambda: real_time_ns() + (int(JUMP * 1e9) if os.path.exists(HELD) else 0)
"""


class Faults:
    """A results folder, with a folder that tells the processes of its commands where to stop."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self.home, self.orders, self.work = folder / "home", folder / "orders", folder / "work"
        for place in (self.home, self.orders, self.work):
            place.mkdir(parents=True)
        (self.orders / "sitecustomize.py").write_text(HOOK)
        self.variables = {
            "TEXTBENCH_HOME": str(self.home),
            "PYTHONPATH": str(self.orders),
            "FAULTS": str(self.orders),
            **variables,
        }
        self.data = self.work / "documents.csv"
        self.data.write_text(documents(60))

    def command(self, *arguments: str) -> list[str]:
        """Return the arguments that run two methods, one of them with a search, on small documents."""
        asked = arguments or ("-m", "binary", "-m", "tfidf", "--trials", "2")
        return ["run", "--data", str(self.data), *asked, "--seed", "0", "--json"]

    def start(
        self, command: Sequence[str], hold: str = "", variables: Mapping[str, str] | None = None
    ) -> Process:
        """Start a command, in a folder of its own; it stops when it begins to write a path with `hold` in it."""
        if hold:
            (self.orders / "armed").touch()
        environment = os.environ | self.variables | {"FAULTS_HOLD": hold} | dict(variables or {})
        return Process(command, environment, self.work)

    def run(
        self, *arguments: str, variables: Mapping[str, str] | None = None
    ) -> tuple[list[dict[str, Any]], str]:
        """Run the sweep to a good end, and return its rows and what it said."""
        process = self.start(self.command(*arguments), variables=variables)
        output, errors = process.communicate(timeout=2 * PATIENCE)
        assert process.returncode == 0, f"exit code {process.returncode}\n{output}\n{errors}"
        return rows_of(output), errors

    def wait_until_held(self, process: Process | None = None) -> None:
        """Wait until a process stands at the moment it was told to stop at."""
        deadline = time.monotonic() + PATIENCE
        while not (self.orders / "held").exists():
            assert process is None or process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def release(self) -> None:
        """Let what stands go on, and whatever comes after it."""
        (self.orders / "armed").unlink()
        (self.orders / "held").rmdir()

    def kill_while_writing(self, name: str) -> None:
        """Start the sweep and kill it, SIGKILL, while one of its processes begins to write this file."""
        process = self.start(self.command(), hold=name)
        self.wait_until_held(process)
        family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.communicate()
        assert not psutil.wait_procs(family, PATIENCE)[1]  # what it had started to compute dies with it
        self.release()

    def artifacts(self) -> dict[str, float]:
        """Return when each artifact of the store was made, by stage and key; one whose making was cut short is none."""
        metas = (self.home / "store").glob("*/*/meta.json")
        return {
            f"{meta.parent.parent.name}/{meta.parent.name}": json.loads(meta.read_text())["created"]
            for meta in metas
            if meta.parent.parent.name not in ("damaged", "tmp")
        }

    def results(self) -> list[str]:
        """Return the keys of the finished cells."""
        return sorted(
            name.removeprefix("evaluate/") for name in self.artifacts() if name.startswith("evaluate/")
        )

    def require_nothing_lost_or_twice(
        self, before: Mapping[str, float], database: Path, n_cells: int
    ) -> None:
        """Count: what was whole before is what it was, every cell has one finished run, and no trial is unfinished."""
        now = self.artifacts()
        assert {name: now[name] for name in before} == dict(before), "something finished was computed again"
        assert len(self.results()) == n_cells, self.results()
        assert cells_in(database) == [(key, "FINISHED") for key in self.results()]
        assert unfinished_in(database) == []
        assert not list((self.home / "store" / "tmp").glob("*"))
        assert not list((self.home / "store" / "damaged").glob("*"))


def documents(n: int, n_words: int = 8) -> str:
    """Return a CSV of documents of two classes; which words they are made of tells which class."""
    lines = ["label,text"]
    for i in range(n):
        label = "ab"[i % 2]
        words = [f"{label}{(i * 7 + j * j) % 97}x{(i + 3 * j) % 89}" for j in range(n_words)]
        lines.append(f"{label},{label}word the {' '.join(words)}")
    return "\n".join(lines) + "\n"


def cells_in(database: Path) -> list[tuple[str, str]]:
    """Return (cell, status) of every cell's run that MLflow holds."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        query = (
            "SELECT tags.value, runs.status FROM runs JOIN tags USING (run_uuid) "
            "WHERE tags.key = 'textbench.cell' AND runs.lifecycle_stage = 'active' ORDER BY 1"
        )
        return connection.execute(query).fetchall()


def unfinished_in(database: Path) -> list[str]:
    """Return the names of runs and trials that MLflow shows as running."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM runs WHERE status = 'RUNNING'")]


def trials_in(database: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(database)) as connection:
        query = "SELECT name FROM runs WHERE name LIKE '% trial %' ORDER BY 1"
        return [name for (name,) in connection.execute(query)]
