"""The user's documents, read from files of a gigabyte or two: seconds, bytes read, peak memory, and their audit.

`TEXTBENCH_READING_DOCUMENTS` says how many documents (1600000), of IMDb's length (`vectorize`), of four classes; they
are written as CSV (2 GB), and of fewer (a fifth) as JSON Lines and Parquet. Of each file, in a process of its own: the
digest that names the data, ingesting it, auditing that, each with seconds, CPU seconds, the bytes that the process
asked the system for and its peak; and pandas, which reads and digests nothing else.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from tests.benchmarks.vectorize import write_documents
from tests.commands import PROJECT
from textbench.tasks import audit
from textbench.tasks.sources import user_data
from textbench.tasks.storage.isolate import peak_mb
from textbench.tasks.storage.store import Artifact, Job, Store

N_DOCUMENTS = int(os.environ.get("TEXTBENCH_READING_DOCUMENTS") or 1_600_000)
ROWS = 20_000  # written at once


def main() -> None:
    """Print the figures of every kind of file."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, n in (("csv", N_DOCUMENTS), ("jsonl", N_DOCUMENTS // 5), ("parquet", N_DOCUMENTS // 5)):
            path = folder / f"documents.{name}"
            _write(path, n)
            os.utime(path, (1, 1))  # as of old: what was written a moment ago is digested again
            print(f"-- {name}: {n:,} documents, {path.stat().st_size / 1e6:,.0f} MB", flush=True)
            for code in ("ours", "theirs"):
                call = f"from tests.benchmarks import reading; reading.{code}({str(path)!r})"
                subprocess.run([sys.executable, "-c", call], check=True, cwd=PROJECT)
            path.unlink()


def _write(path: Path, n: int) -> None:
    rng = np.random.default_rng(0)
    write_documents(path.parent, n, 230.0)
    writer: Any = None
    for part in ("train", "test"):
        source = path.with_name(f"{part}.parquet")
        with parquet.ParquetFile(source) as file:
            for batch in file.iter_batches(ROWS):
                labels = np.char.add("class", rng.integers(0, 4, batch.num_rows).astype(str))
                table = pa.table({"text": batch.column(0), "label": labels})
                if path.suffix == ".jsonl":
                    with path.open("a", encoding="utf-8") as lines:
                        lines.writelines(f"{json.dumps(row)}\n" for row in table.to_pylist())
                    continue
                if writer is None:
                    kind = csv.CSVWriter if path.suffix == ".csv" else parquet.ParquetWriter
                    writer = kind(path, table.schema)
                writer.write_table(table)
        source.unlink()
    if writer is not None:
        writer.close()


def ours(path: str) -> None:
    """Print what a run does with the file before anything is computed from it."""
    import sklearn.model_selection  # noqa: F401  # loaded before anything is timed

    folder = Path(path).parent / "corpus"
    folder.mkdir(exist_ok=True)
    reference = user_data.UserData(path)
    params = {}

    class Stored(Job):
        def open(self, name: str) -> Artifact:
            return Artifact(folder, {})

    def refer() -> None:
        params.update(user_data.reference(reference).params)

    _step("digest, key", refer)
    job = Stored(params, {}, folder, Store(folder))
    _step("ingest", lambda: user_data.compute(job))
    _step("audit", lambda: audit.compute(job))


def theirs(path: str) -> None:
    """Print what pandas needs to read the file."""
    import pandas

    read: dict[str, Callable[..., Any]] = {
        "csv": pandas.read_csv,
        "jsonl": lambda path: pandas.read_json(path, lines=True),
        "parquet": pandas.read_parquet,
    }
    _step("pandas reads", lambda: read[path.rpartition(".")[2]](path))


def _step(name: str, do: Callable[[], Any]) -> None:
    wall, cpu, n_bytes = perf_counter(), process_time(), _n_read()
    do()
    print(
        f"  {name:14s} {perf_counter() - wall:7.2f} s {process_time() - cpu:7.2f} CPU s, "
        f"read {(_n_read() - n_bytes) / 1e6:8,.0f} MB, peak {peak_mb():8,.0f} MB",
        flush=True,
    )


def _n_read() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])
