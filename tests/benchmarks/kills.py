"""Nothing is lost: a sweep of 300 small cells whose processes are killed at random, some with a full disk or no memory.

The results are on a disk of their own, a small one in memory, which is filled at times: whatever is written then, by a
computation, MLflow or Prefect's server, meets a full disk. `TEXTBENCH_KILLS` says how many are killed (100),
`TEXTBENCH_KILLS_SEED` when and which (0). Some of the commands that are killed are exports of a model to MLflow.
"""

import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from tests.commands import MAIN
from tests.faults import cells_in, documents, unfinished_in
from textbench.flows.servers import prefect_server

N_KILLS = int(os.environ.get("TEXTBENCH_KILLS") or 100)
SEED = int(os.environ.get("TEXTBENCH_KILLS_SEED") or 0)
WEIGHTINGS = ("binary", "counts", "frequency", "hashing", "tfidf", "tfidf-log2")
METHODS = (*WEIGHTINGS, "complement-nb", "majority", "nb", "nb-svm")
N_SEEDS = 30
DISK_MB = 400
PAUSE = (0.5, 7.0)  # seconds between kills
# Which process is killed: the command itself, one that it started, or one of Prefect's server.
WEIGHTS = {"command": 4, "child": 4, "Prefect's server": 1}
INSIDE = "TEXTBENCH_KILLS_INSIDE"


def main() -> None:
    """Print the kills by kind of process, what was done again or twice, and the seconds."""
    if INSIDE in os.environ:
        _Sweep(Path(os.environ[INSIDE])).run()
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "home").mkdir()
        (Path(folder) / "documents.csv").write_text(documents(48))
        script = f'mount -t tmpfs -o size={DISK_MB}m tmpfs "{folder}/home" && exec "$@"'
        code = [sys.executable, "-m", "tests.benchmarks", "kills"]
        # In name spaces of its own the disk may be mounted, and is gone with the last process that has it.
        how = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        command = [*how, "sh", "-c", script, "sh", *code]
        subprocess.run(command, env=os.environ | {INSIDE: folder}, check=True)


class _Sweep:
    """One results folder, the commands that work in it, and what of them was seen finished."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "home"
        self.chance = random.Random(SEED)
        self.kills: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.seen: dict[str, float] = {}
        self.wrong: set[str] = set()

    def run(self) -> None:
        """Start the sweep again until all were killed that are to be and it ends well."""
        started, code = time.monotonic(), 1
        try:
            while self._left or code:
                may_export = len(self._cells()) > len(METHODS) and self._left
                is_export = bool(may_export and self.chance.random() < 0.2)
                code = self._command(is_export)
                self._check()
                if not self._left:
                    self.counts["runs without kills"] += 1
                    assert self.counts["runs without kills"] < 6, (self.folder / "errors").read_text()[-2000:]
                elif not code and not is_export and len(self._cells()) == len(METHODS) * N_SEEDS:
                    self.counts["sweeps that ended before all kills"] += 1
            self._check(is_last=True)
        finally:
            prefect_server.stop(self.home)
        self._say(time.monotonic() - started)
        assert not self.wrong, sorted(self.wrong)

    @property
    def _left(self) -> int:
        return N_KILLS - self.kills.total()

    def _command(self, is_export: bool) -> int:
        """Run a command to its end, and kill meanwhile."""
        sweep = ["run", "--data", str(self.folder / "documents.csv"), "--trials", "0", "--no-scores"]
        sweep += [word for name in METHODS for word in ("-m", name)] + ["--seeds", str(N_SEEDS), "--json"]
        words = ["export", "best", "--mlflow", "--name", "killed"] if is_export else sweep
        own = {"TEXTBENCH_HOME": str(self.home), prefect_server.WHOSE_VARIABLE: prefect_server.OWN}
        if self._left:  # a server that was killed is not asked for long
            own["PREFECT_CLIENT_MAX_RETRIES"] = "1"
        self.counts["exports" if is_export else "runs"] += 1
        with (self.folder / "out").open("w") as output, (self.folder / "errors").open("w") as errors:
            process = subprocess.Popen(
                [sys.executable, "-c", MAIN, *words], env=os.environ | own, cwd=self.folder,
                stdout=output, stderr=errors, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            family: dict[int, psutil.Process] = {}
            while process.poll() is None and self._left:
                fault = self.chance.choice(["", "", "", "disk", "memory"])
                with self._fault(fault, process.pid):
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(self.chance.uniform(*PAUSE))
                    family |= {one.pid: one for one in _children(process.pid)}
                    if process.poll() is None:
                        self._kill(process.pid, is_export, fault)
            process.wait(600)
        # What it had started dies with it.
        alive = psutil.wait_procs(list(family.values()), 60)[1]
        for one in alive:
            self._note("processes left", str(one))
        said = (self.folder / "errors").read_text(errors="replace")
        if "Traceback" in said:
            self.counts["commands with a traceback"] += 1
            print(said[said.index("Traceback") :][-1500:])
        return process.returncode

    def _kill(self, pid: int, is_export: bool, fault: str) -> None:
        """Kill one process: of the command, or of Prefect's server."""
        kind = self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        children = _children(pid)
        server: list[psutil.Process] = []
        if kind == "Prefect's server":
            with contextlib.suppress(Exception):
                state = prefect_server.supervised(prefect_server.own_folder(self.home)).state()
                supervisor = psutil.Process(state["pid"])
                server = [supervisor, *supervisor.children(recursive=True)]
        one, name = psutil.Process(pid), "an export" if is_export else "the run"
        if kind == "child" and children:
            one = self.chance.choice(children)
            name = "a computation" if one.ppid() != pid else "the server of computations or another child"
        elif server:
            one, name = self.chance.choice(server), kind
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
            self.kills[name] += 1
            if fault:
                self.counts[f"kills with {fault} short"] += 1

    @contextlib.contextmanager
    def _fault(self, fault: str, pid: int) -> Iterator[None]:
        """Fill the disk up to some kilobytes, or leave computations some megabytes, and take it back in the end."""
        ballast, limited = self.home / "ballast", list[psutil.Process]()
        if fault == "disk":
            place = os.statvfs(self.home)
            room = self.chance.choice([0, 4_096, 65_536, 1_000_000])
            with ballast.open("wb") as stream, contextlib.suppress(OSError):
                os.posix_fallocate(stream.fileno(), 0, max(1, place.f_bavail * place.f_frsize - room))
        elif fault == "memory":
            for child in _children(pid):
                with contextlib.suppress(psutil.Error):
                    room = self.chance.choice([0, 2**20, 2**25])
                    child.rlimit(psutil.RLIMIT_AS, (child.memory_info().vms + room, psutil.RLIM_INFINITY))
                    limited.append(child)
        try:
            yield
        finally:
            ballast.unlink(missing_ok=True)
            for child in limited:
                with contextlib.suppress(psutil.Error):
                    child.rlimit(psutil.RLIMIT_AS, (psutil.RLIM_INFINITY, psutil.RLIM_INFINITY))

    def _artifacts(self) -> dict[str, float]:
        """Return when each artifact was made, by stage and key."""
        metas = (self.home / "store").glob("*/*/meta.json")
        return {
            f"{meta.parent.parent.name}/{meta.parent.name}": json.loads(meta.read_text())["created"]
            for meta in metas
            if meta.parent.parent.name not in ("damaged", "tmp")
        }

    def _cells(self) -> list[str]:
        return [name for name in self.seen if name.startswith("evaluate/")]

    def _check(self, is_last: bool = False) -> None:
        """Compare with what was finished before; ask MLflow for runs, aliases and what they point to."""
        now = self._artifacts()
        for name, made in self.seen.items():
            if now.get(name) != made:
                self._note("lost" if name not in now else "repeated", name)
        self.seen |= now
        database = self.home / "mlflow.db"
        if not database.exists() or database.stat().st_size == 0:
            return
        with contextlib.suppress(Exception if not is_last else ()):  # it may be without tables yet
            runs = Counter(cell for cell, status in cells_in(database) if status == "FINISHED")
            for cell, n in Counter(cell for cell, _ in cells_in(database)).items():
                if n > 1:
                    self._note("duplicate runs", cell)
            if is_last:
                for name in self._cells():
                    if runs[name.removeprefix("evaluate/")] != 1:
                        self._note("cells without a finished run", name)
                for name in unfinished_in(database):
                    self._note("unfinished runs", name)
        self._check_alias(database)

    def _check_alias(self, database: Path) -> None:
        import mlflow
        from mlflow.exceptions import MlflowException

        client = mlflow.MlflowClient(f"sqlite:///{database}", f"sqlite:///{database}")
        try:
            version = client.get_model_version_by_alias("killed", "champion")
        except (MlflowException, FileNotFoundError):
            return
        self.counts["checks of an alias"] += 1
        try:
            # A registry in a database keeps the model's id in the version's source alone.
            model = client.get_logged_model(str(version.source).removeprefix("models:/"))
            place = Path(str(model.artifact_location).removeprefix("file://"))
            whole = str(version.status) == "READY" and "READY" in str(model.status)
            whole &= (place / "MLmodel").stat().st_size > 0
            with np.load(next(place.rglob("*.npz")), allow_pickle=False) as arrays:
                for name in arrays.files:
                    _ = arrays[name]
        except (MlflowException, OSError, ValueError, StopIteration):
            whole = False
        if not whole:
            self._note("aliases at half models", f"version {version.version}")

    def _note(self, what: str, name: str) -> None:
        if f"{what}: {name}" not in self.wrong:
            self.wrong.add(f"{what}: {name}")
            print(f"{what}: {name}, after {self.kills.total()} kills")

    def _say(self, seconds: float) -> None:
        said: Counter[Any] = Counter(one.partition(":")[0] for one in self.wrong)
        print(
            f"{self.kills.total()} kills: "
            + ", ".join(f"{n} of {name}" for name, n in self.kills.most_common())
        )
        print(", ".join(f"{name}: {n}" for name, n in sorted(self.counts.items())))
        kinds = ("lost", "repeated", "duplicate runs", "cells without a finished run", "unfinished runs")
        kinds += ("aliases at half models", "processes left")
        found = ", ".join(f"{name}: {said[name]}" for name in kinds)
        print(f"{len(self._cells())} cells finished; {found}; {seconds:.0f} s")


def _children(pid: int) -> list[psutil.Process]:
    """Return what a process has started, and that in turn; a server that outlives it has a session of its own."""
    try:
        children, session = psutil.Process(pid).children(recursive=True), os.getsid(pid)
    except (psutil.NoSuchProcess, ProcessLookupError):
        return []
    found = []
    for one in children:
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(one.pid) == session:
                found.append(one)
    return found
