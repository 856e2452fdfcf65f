"""Several machines: what a Dask cluster of one worker process of one thread takes, and one of two.

`python -m tests.benchmarks machines`; with TEXTBENCH_MACHINES_SIZE below 1 all is that much smaller. Parts are named by
TEXTBENCH_MACHINES_PARTS (cells,vectorize,lsi): eight equal heavy cells; one stage `vectorize` of 1,000,000 documents of
IMDb's length; one stage `featurize` by LSI of 300 dimensions, of 1,000,000 documents of 60 words, and of as many of
IMDb's length, and 50,000 terms, 70 % of which train. Workers are set as `infra/README.md` says. Of a stage: the seconds
of what is computed, the process' that puts it together and those of it all, what was read before, checksums and the
copy in the shared root included; the bytes over loopback meanwhile. Each is the median of TEXTBENCH_MACHINES_TIMES runs
(3), one worker and two in turn, for memory that a virtual machine has given back to its host is slow when it is used
again; beside the medians' ratio stand those of each turn.
"""

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.tuning import N_TERMS, counted, short_words
from tests.benchmarks.vectorize import write_documents
from tests.commands import PROJECT, rows_of, textbench
from textbench.flows.servers import prefect_server
from textbench.tasks import featurize, stages, vectorize
from textbench.tasks.storage.cluster import Cluster, digest
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.remote import Remote
from textbench.tasks.storage.store import Job, Store
from textbench.tasks.tokens import RULES

N_CELLS = 8
SIZE = float(os.environ.get("TEXTBENCH_MACHINES_SIZE", "1"))
PARTS = (os.environ.get("TEXTBENCH_MACHINES_PARTS") or "cells,vectorize,lsi").split(",")
TIMES = int(os.environ.get("TEXTBENCH_MACHINES_TIMES") or 3)
N_LONG, N_SHORT, N_FIRST = round(1_000_000 * SIZE), round(1_000_000 * SIZE), 100_000
WORDS = (60, 230)  # of a document; the second are IMDb's
SETTINGS = {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "false"}
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
    """Print seconds with one worker and with two, their ratio, and whether the results are the same."""
    if "cells" in PARTS:
        _cells()
    if "vectorize" in PARTS:
        corpora = [Reference("ingest", f"{__name__}:write_texts", {"n": n}) for n in (N_FIRST, N_LONG)]
        rule = asdict(RULES["words"])
        _stage(*(vectorize.reference(corpus, rule, transductive=False) for corpus in corpora))
    if "lsi" in PARTS:
        for n_words in WORDS:
            params = {"n": N_SHORT, "words": n_words, "transductive": False}
            counts = Reference("vectorize", f"{__name__}:write_counts", params)
            print(f"documents of {n_words} words")
            _stage(featurize.reference(counts, "lsi", {"n_components": 300}, 0))


def _cells() -> None:
    """Print the seconds of cells."""
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


def write_texts(job: Job) -> None:
    """Write a corpus of documents of IMDb's length."""
    write_documents(job.folder, job.params["n"], WORDS[1])


def write_counts(job: Job) -> None:
    """Write the counts of documents of some words."""
    n_words = job.params["words"]
    counts = counted(short_words(job.params["n"], 0, n_words, 4)[0], N_TERMS)
    n = round(0.7 * counts.shape[0])
    for part, rows in (("train", counts[:n]), ("test", counts[n:])):
        job.save_blocks(f"{part}_counts", [rows])
        job.save_array(f"{part}_offsets", n_words * np.arange(rows.shape[0] + 1))
    job.save_json("terms", [str(term) for term in range(N_TERMS)])


def _stage(*references: Reference) -> None:
    """Print what the last of some artifacts takes to make, by one worker and by two that have made the others."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shared = str(folder / "shared")
        for reference in references:
            for given in reference.inputs.values():
                Store(folder / "given", remote=shared).ensure(given)
        turns = [[_made(folder / "made", n, shared, references) for n in (1, 2)] for _ in range(TIMES)]
    name, n = references[-1].stage, next(iter(references[-1].inputs.values())).params["n"]
    for what in turns[0][0][0]:
        pairs = [(one[what], two[what]) for (one, _), (two, _) in turns]
        first, second = (statistics.median(figures) for figures in zip(*pairs, strict=True))
        ratio, *each = (np.divide(*pair) for pair in ((first, second), *pairs))
        print(
            f"{name}, {n:,} documents, {what}: {first:.1f}, with two workers {second:.1f}: "
            f"ratio {ratio:.2f} ({', '.join(f'{one:.2f}' for one in each)})"
        )
    files = [made[1] for turn in turns for made in turn]
    print(f"files are {'the same' if all(one == files[0] for one in files) else 'NOT the same'}")


def _made(
    home: Path, n_workers: int, shared: str, references: Sequence[Reference]
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the figures of the last artifact, made by so many workers, and its files."""
    from distributed import Client

    with (
        _cluster(home, n_workers, {"TEXTBENCH_STORE": shared}) as address,
        Client(address, set_as_default=False) as client,
    ):
        store = Store(home / "store", workers=2, remote=shared, cluster=Cluster(address, digest()))
        for reference in references:
            begun, sent = time.perf_counter(), _loopback()
            client.submit(stages.run, reference.stage, reference, store, pure=False).result()
            whole, sent = time.perf_counter() - begun, _loopback() - sent
        meta = store.meta(references[-1])
    for reference in references:
        Remote(shared).withdraw(reference)
    shutil.rmtree(home)
    computed = {f"{part}, s": seconds for part, seconds in meta["parts"].items()}
    figures = {"computed, s": sum(computed.values())} | computed
    figures |= {
        "putting together, CPU s": meta["cpu_seconds"],
        "stage, s": meta["seconds"],
        "whole, s": whole,
    }
    return figures | {"over loopback, MB": sent / 1e6}, meta["files"]


def _loopback() -> float:
    """Return the bytes that went over loopback so far."""
    line = next(
        line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:")
    )
    return float(line.split()[1])


@contextlib.contextmanager
def _cluster(home: Path, n_workers: int, variables: dict[str, str]) -> Iterator[str]:
    """Run a scheduler and worker processes of one thread, each with a results folder of its own."""
    home.mkdir()
    file = home / "scheduler.json"
    environment = os.environ | SETTINGS | variables | {"PYTHONPATH": str(PROJECT)}
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
