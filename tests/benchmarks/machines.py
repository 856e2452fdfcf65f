"""Several machines: seconds of eight equal heavy cells on a Dask cluster of one worker process and of two.

`python -m tests.benchmarks machines`; with TEXTBENCH_MACHINES_SIZE below 1 the cells are that much smaller.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.commands import PROJECT, rows_of, textbench
from textbench.flows.servers import prefect_server

N_CELLS = 8
SIZE = float(os.environ.get("TEXTBENCH_MACHINES_SIZE", "1"))
METHOD = '''"""A method that is all work: sums of matrix products, on one thread.

Source: none.
"""
import numpy as np
from textbench.featurizers.counts import Counts

INPUT = "counts"
SEARCH_SPACE = {{}}
N_PRODUCTS = {n_products}


class Heavy(Counts):
    def __init__(self, *, random_state=0):
        self.random_state = random_state

    def fit(self, X, y=None):
        rng = np.random.default_rng(self.random_state)
        matrix = rng.normal(size=(1000, 1000)) / np.sqrt(1000)
        for _ in range(N_PRODUCTS):
            matrix = matrix @ matrix
            matrix /= np.linalg.norm(matrix)
        return super().fit(X)


def build(**params):
    return Heavy(**params)
'''


def main() -> None:
    """Print both in seconds, their ratio, and whether the metrics are the same."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "heavy.py").write_text(METHOD.format(n_products=max(1, round(1000 * SIZE))))
        lines = [f"word{i % 7} word{i % 5} {'red' if i % 2 else 'blue'},{'ab'[i % 2]}" for i in range(200)]
        (folder / "toy.csv").write_text("\n".join(["text,label", *lines]))
        (folder / "server").mkdir()
        os.environ[prefect_server.WHOSE_VARIABLE] = prefect_server.OWN  # not the one that others use
        url = prefect_server.wait(prefect_server.start(folder / "server"), timeout=600).api_url
        try:
            one, two = (_run(folder, n_workers, url) for n_workers in (1, 2))
        finally:
            prefect_server.stop(folder / "server")
    for what, first, second in (("heavy stages", one[0], two[0]), ("whole command", one[1], two[1])):
        print(
            f"{N_CELLS} cells, {what}: {first:.1f} s, with two workers {second:.1f} s: ratio {first / second:.2f}"
        )
    print(f"metrics are {'the same' if one[2] == two[2] else 'NOT the same'}")


def _run(folder: Path, n_workers: int, url: str) -> tuple[float, float, list[dict[str, float]]]:
    """Return the seconds of all heavy stages, first to last, those of the whole command, and each cell's metrics."""
    home = folder / str(n_workers)
    shared = {"TEXTBENCH_STORE": str(home / "shared"), "PREFECT_API_URL": url}
    with _cluster(home, n_workers, shared) as address:
        run = ("run", "--data", str(folder / "toy.csv"), "-m", str(folder / "heavy.py"))
        options = ("--seeds", str(N_CELLS), "--engine", "dask", "--address", address, "--json")
        started = time.perf_counter()
        output, _ = textbench(*run, *options, home=home / "flow", variables=shared)
        whole = time.perf_counter() - started
    metas = [
        json.loads(path.read_text())["meta"] for path in (home / "shared" / "featurize").glob("*/meta.json")
    ]
    assert len(metas) == N_CELLS, "a cell's features are its heavy part"
    begun = min(meta["created"] - meta["seconds"] for meta in metas)
    heavy = max(meta["created"] for meta in metas) - begun
    return heavy, whole, [row["metrics"] for row in rows_of(output)]


@contextlib.contextmanager
def _cluster(home: Path, n_workers: int, variables: dict[str, str]) -> Iterator[str]:
    """Run a scheduler and worker processes of one thread, each with a results folder of its own."""
    home.mkdir()
    file, environment = home / "scheduler.json", os.environ | variables | {"PYTHONPATH": str(PROJECT)}
    scheduler = ["scheduler", "--port", "0", "--scheduler-file", str(file)]
    worker = [
        "worker",
        "--scheduler-file",
        str(file),
        "--nthreads",
        "1",
        "--no-nanny",
        "--local-directory",
        str(home),
    ]
    processes: list[subprocess.Popen[Any]] = []
    try:
        for number, command in enumerate([scheduler, *[worker] * n_workers]):
            processes.append(subprocess.Popen(
                [sys.executable, "-m", "dask", *command, "--host", "127.0.0.1", "--no-dashboard"],
                env=environment | {"TEXTBENCH_HOME": str(home / f"worker{number}")},
                cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            ))  # fmt: skip
            while not file.exists() or not file.read_text().endswith("}"):
                time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        _wait_for_workers(address, n_workers)
        yield address
    finally:
        for process in reversed(processes):  # a worker that ends while its scheduler does may never do so
            process.terminate()
            process.wait()


def _wait_for_workers(address: str, n_workers: int) -> None:
    from distributed import Client

    with Client(address, timeout=60, set_as_default=False) as client:
        client.wait_for_workers(n_workers, timeout=600)


if __name__ == "__main__":
    main()
