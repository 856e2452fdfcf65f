"""A sweep of thousands of cells: what a cell costs beyond its computing, memory, and the leaderboard afterwards.

`TEXTBENCH_LOAD_CELLS` says how many cells (5,000). Overhead is the wall-clock of a sweep less what its artifacts say
they took to compute, divided by the cells. One stage is computed at a time and in the sweep's own process, so that
nothing is computed beside the overhead; planning, the Prefect tasks, storing and verifying, and recording count as
overhead, imports do not (a small sweep runs first). The CPU that this process spends beyond computing is a lower bound
of the overhead, and unlike it does not depend on what else the machine does. Peak memory is the whole process's, so it
holds the libraries that compute. The runner's own memory, as users have it, is that of a sweep of cells whose artifacts
are there and whose records are not: it schedules, verifies, scores and records all of them, 5, 500 and all. There the
artifacts of one seed are computed and the other seeds' are copies under their own keys.

`TEXTBENCH_LOAD_PARTS` names parts (overhead,memory,tracking).
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.benchmarks.command_line import seconds
from tests.commands import textbench
from textbench.flows.plan.cell import Cell, plan
from textbench.flows.plan.request import Request
from textbench.flows.servers import prefect_server, services
from textbench.tasks.storage.files import META, read_meta, sealed, write_json
from textbench.tasks.storage.isolate import peak_mb
from textbench.tasks.storage.store import Store

N_CELLS = int(os.environ.get("TEXTBENCH_LOAD_CELLS") or 5000)
PARTS = (os.environ.get("TEXTBENCH_LOAD_PARTS") or "overhead,memory,tracking").split(",")
MOST_MB = 400  # of the runner
N_RUNS = 5000  # of the leaderboard
METHODS = [f"lsi(n_components={k})" for k in (2, 3, 4, 5, 6)]
# What a run leaves in MLflow's tables, and the column that says whose it is.
TABLES = {
    "runs": "run_uuid",
    "params": "run_uuid",
    "metrics": "run_uuid",
    "latest_metrics": "run_uuid",
    "tags": "run_uuid",
    "inputs": "destination_id",
}


def main() -> None:
    """Print each figure beside its bound: ms a cell without and with tracking, MB by cells, and seconds of a table."""
    os.environ[prefect_server.WHOSE_VARIABLE] = prefect_server.OWN  # not the one that others use
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        lines = [f"word{i % 7} {'red' if i % 2 else 'blue'},{'a' if i % 2 else 'b'}" for i in range(60)]
        (root / "toy.csv").write_text("\n".join(["text,label", *lines]))
        try:
            if "memory" in PARTS:
                _memory_of_runner(root)
            if "overhead" in PARTS:
                few, many = (_sweep(root, n, "none") for n in (N_CELLS // 10, N_CELLS))
                _say("without tracking", many, 150)
                _say_memory("of a process that computes too", few, many)
                print(f"a cell's row as JSON: {many['row_kb']:.1f} KB; its plan: {many['plan_kb']:.1f} KB")
            if "tracking" in PARTS:
                _tracking(root)
        finally:
            textbench("down", home=root)


def _tracking(root: Path) -> None:
    _say("with tracking in SQLite", _sweep(root, N_CELLS, "sqlite"), 400)
    _say("with an MLflow server", _sweep(root, N_CELLS // 10, "server"), 400)
    as_run = _sweep(root, N_CELLS // 10, "sqlite", isolated=True)
    print(
        f"as users run it (children, {as_run['workers']} at once, SQLite): {as_run['ms_wall']:.0f} ms a cell, "
        f"its computing {as_run['ms_computing']:.0f} ms"
    )
    _leaderboard(root / f"sqlite-{N_CELLS}-False")


def _memory_of_runner(root: Path) -> None:
    """Print the runner's peak at a few cells, hundreds and all, each in a process of its own."""
    _sweep(root, len(METHODS), "none")
    home = root / f"none-{len(METHODS)}-False"
    found = []
    for n_cells in sorted({len(METHODS), N_CELLS // 10, N_CELLS}):
        _spread(Store(home / "store"), _plan(root, n_cells))
        found.append(_sweep(root, n_cells, "none", again=home))
    for few, many in pairwise(found):
        _say_memory("of the runner", few, many)


def _spread(store: Store, cells: Sequence[Cell]) -> None:
    """Copy artifacts of the first cell of each method to the cells of other seeds, under their own keys."""
    first: dict[str, Cell] = {}
    for cell in cells:
        computed = first.setdefault(cell.method, cell)
        for stage, reference in cell.references.items():
            if store.has(reference):
                continue
            folder = store.folder(reference)
            shutil.copytree(store.folder(computed.references[stage]), folder)
            meta = read_meta(folder / META)
            write_json(folder / META, sealed(meta | {"key": reference.key, "recipe": reference.to_json()}))


def _say(how: str, found: Mapping[str, Any], bound: float) -> None:
    print(
        f"{found['n_cells']} cells {how}: {found['ms_overhead']:.0f} ms of overhead a cell (bound {bound:.0f}), of it "
        f"planning {found['ms_plan']:.1f}; computing {found['ms_computing']:.0f} ms a cell, "
        f"CPU of this process beyond computing {found['ms_cpu']:.0f} ms"
    )


def _say_memory(whose: str, few: Mapping[str, Any], many: Mapping[str, Any]) -> None:
    grown = (many["peak_mb"] - few["peak_mb"]) / (many["n_cells"] - few["n_cells"])
    print(
        f"peak memory {whose}: {few['peak_mb']:.0f} MB at {few['n_cells']} cells, {many['peak_mb']:.0f} MB at "
        f"{many['n_cells']} (bound {MOST_MB}): {1000 * grown:.1f} KB a cell"
    )


def _sweep(
    root: Path, n_cells: int, tracking: str, isolated: bool = False, again: Path | None = None
) -> dict[str, Any]:
    """Run a sweep in a new process and return what it measured; `again`: the folder of one that has the artifacts."""
    home = again or root / f"{tracking}-{n_cells}-{isolated}"
    if again:
        shutil.rmtree(home / "index")
    with _server(home, tracking == "server") as address:
        arguments = [str(root), str(home), str(n_cells), str(int(isolated))]
        environment = os.environ | {"TEXTBENCH_HOME": str(home)}
        if tracking != "sqlite":
            environment |= {"MLFLOW_TRACKING_URI": address or tracking}
        done = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.load", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return dict(json.loads(done.stdout.splitlines()[-1]))


@contextmanager
def _server(home: Path, is_wanted: bool) -> Iterator[str | None]:
    """Keep an MLflow server while this context lasts, if one is wanted; gives its address."""
    if not is_wanted:
        yield None
        return
    home.mkdir()
    state = services.start_mlflow(home, "127.0.0.1", 0)
    try:
        services.mlflow_page(home).wait(600)
        yield str(state["address"])
    finally:
        services.stop(home)


def _measure(root: Path, home: Path, n_cells: int, isolated: bool) -> None:
    """Run one sweep in this process and print what it took as JSON."""
    from textbench.flows.servers import prefect_server

    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    with prefect_server.opened(root) as info:
        prefect_server.wait(info, timeout=600)  # the machine may be busy with the sweep before
        from prefect import flow

        from textbench.flows.run.prefect_tasks import task_runner

        found: dict[str, Any] = {}
        cells = _plan(root, len(METHODS), first_seed=10**6)

        def run() -> None:
            found.update(_run(cells, home, isolated))

        sweep = flow(run).with_options(name="load", task_runner=task_runner("threads"))
        sweep()  # imports, and makes MLflow's database
        before = _resident_mb()
        begun = time.perf_counter()
        cells = _plan(root, n_cells)
        planned = time.perf_counter() - begun
        plan_kb = 1000 * (_resident_mb() - before) / n_cells
        sweep()
    found["ms_overhead"] += 1000 * planned / n_cells
    found |= {"n_cells": n_cells, "ms_plan": 1000 * planned / n_cells, "plan_kb": plan_kb}
    print(json.dumps(found))


def _plan(root: Path, n_cells: int, first_seed: int = 0) -> list[Cell]:
    """Return cells that cost milliseconds: each has features, a choice and a result of its own."""
    seeds = range(first_seed, first_seed + n_cells // len(METHODS))
    cheap = {"c_grid": [1.0], "n_folds": 2}
    return plan(Request([], METHODS, list(seeds), own={"path": str(root / "toy.csv")}, validation=cheap))


def _run(cells: Sequence[Cell], home: Path, isolated: bool) -> dict[str, Any]:
    from textbench.evaluation.cores import n_cores
    from textbench.flows.run.engine import execute
    from textbench.flows.run.prefect_tasks import PrefectTasks
    from textbench.flows.run.sweep import SweepRecorder

    store = Store(home / "store", isolated=isolated)
    workers = n_cores() if isolated else 1
    spent, begun = time.process_time(), time.perf_counter()
    recorder = SweepRecorder(home, store, "load", "", timed=False)
    recorder.begin(cells)
    execute(cells, store, PrefectTasks(), recorder.finish, workers)
    recorder.end()
    wall, cpu = time.perf_counter() - begun, time.process_time() - spent
    peak = peak_mb()  # before this reads back what it took
    failed = [row["error"] for row in recorder.rows.values() if row["error"]]
    assert not failed and len(recorder.rows) == len(cells), failed[:1]
    keys = {reference.key: reference for cell in cells for reference in cell.references.values()}
    metas = [read_meta(store.folder(reference) / META) for reference in keys.values()]
    computing = sum(meta["seconds"] for meta in metas)
    each = 1000 / len(cells)
    return {
        "ms_wall": wall * each,
        "ms_overhead": (wall - computing) * each,
        "ms_computing": computing * each,
        "ms_cpu": (cpu - sum(meta["cpu_seconds"] for meta in metas)) * each,
        "peak_mb": peak,
        "row_kb": len(json.dumps(list(recorder.rows.values()))) / len(cells) / 1e3,
        "workers": workers,
    }


def _resident_mb() -> float:
    import psutil

    return float(psutil.Process().memory_info().rss) / 1e6


def _leaderboard(home: Path) -> None:
    """Time the command on N_RUNS runs, from the index and from MLflow, and say whether the tables are the same."""
    _multiply(home)
    for source, bound in (([], 3), (["--from-mlflow"], 15)):
        taken = seconds("leaderboard", *source, home=home, times=3)
        name = " ".join(["leaderboard", *source])
        print(f"{name}: {taken:.1f} s for {N_RUNS} runs (bound {bound} s), least of 3")
    index, mlflow = (
        textbench("leaderboard", *source, "--format", "csv", home=home)[0]
        for source in ([], ["--from-mlflow"])
    )
    print(f"both give the same table: {'yes' if index == mlflow else 'NO'}")


def _multiply(home: Path) -> None:
    """Copy the runs of a sweep, in the index and in MLflow's database, to other seeds until there are N_RUNS."""
    records = {path.stem: json.loads(path.read_text()) for path in sorted((home / "index").glob("*.json"))}
    n_seeds = len({record["seed"] for record in records.values()})
    with sqlite3.connect(home / "mlflow.db") as database:
        for number in range(N_RUNS - len(records)):
            record = records[sorted(records)[number % len(records)]]
            key, run_id = uuid.uuid4().hex * 2, uuid.uuid4().hex
            seed = record["seed"] + n_seeds * (1 + number // len(records))
            changes = {"seed": str(seed), "textbench.cell": key}
            for table, column in TABLES.items():
                _copy(database, table, column, record["run_id"], run_id, changes)
            copy = {"seed": seed, "run_id": run_id, "request": record["request"] | {"seeds": [seed]}}
            write_json(home / "index" / f"{key}.json", record | copy)


def _copy(
    database: sqlite3.Connection, table: str, column: str, old: str, new: str, changes: Mapping[str, str]
) -> None:
    """Copy the rows of one run in a table to another run; `changes` are the values of some keys."""
    found = database.execute(f"SELECT * FROM {table} WHERE {column} = ?", (old,))
    names = [description[0] for description in found.description]
    for values in found.fetchall():
        row = dict(zip(names, values, strict=True)) | {column: new}
        if "input_uuid" in row:
            row["input_uuid"] = uuid.uuid4().hex
        if row.get("key") in changes:
            row["value"] = changes[row["key"]]
        marks = ", ".join("?" * len(row))
        database.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))


if __name__ == "__main__":
    _measure(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), isolated=bool(int(sys.argv[4])))
