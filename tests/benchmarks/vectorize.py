"""Very many documents: from Parquet to counts and TF-IDF, beside scikit-learn, and how the seconds grow.

`TEXTBENCH_VECTORIZE_SIZES` says how many documents (10000,100000,1000000), of IMDb's length (log-normal, 230 words in
the mean, 1.3 GB a million), 70 % of them for training. Words are drawn from three million by their rank r, as 1 / r and
beyond 6,000 as r ** -2.2, which gives IMDb's 25,000 and 50,000 reviews the 75,000 and
102,000 terms that they have; they are as long as English ones, with
capitals, commas and full stops, one of twenty documents with letters beyond ASCII. `TEXTBENCH_VECTORIZE_WORDS` says
another mean, `TEXTBENCH_VECTORIZE_PAIRS=1` counts pairs of words too (in ten documents or more),
`TEXTBENCH_VECTORIZE_THEIRS` of how many documents scikit-learn's seconds are taken (100000), which are then multiplied.

Of each size, in a process of its own: seconds, CPU seconds and peak MB of our files of ids and counts, by the rule
`words`, and of the weights of TF-IDF from these; the bytes of text a second and core; the exponents from the first size
and from the one before. Peaks are of all that is in memory up to then, and of it without files that are mapped, which
the system takes back when others need it.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numba import njit

from tests.benchmarks._memory import own_peak
from tests.commands import PROJECT
from textbench.tasks.storage.isolate import peak_mb
from textbench.tasks.token_bytes import characters
from textbench.tasks.tokens import RULES

SIZES = [int(n) for n in (os.environ.get("TEXTBENCH_VECTORIZE_SIZES") or "10000,100000,1000000").split(",")]
MEAN = float(os.environ.get("TEXTBENCH_VECTORIZE_WORDS") or 230)
PAIRS = os.environ.get("TEXTBENCH_VECTORIZE_PAIRS") == "1"
THEIRS = int(os.environ.get("TEXTBENCH_VECTORIZE_THEIRS") or 100_000)
N_WORDS, N_FREQUENT, SPREAD = 3_000_000, 6_000, 0.75
BLOCK = 20_000  # documents written at once, a row group
N_THREADS = 2
TRAIN = 0.7
ALONE = "(Parquet alone)"  # part of another step


class Spent(NamedTuple):
    """Seconds, CPU seconds and both peaks in MB of each step, and what there is: documents, terms, entries."""

    steps: dict[str, tuple[float, float, float, float]]
    sizes: dict[str, int]

    @property
    def seconds(self) -> float:
        return sum(seconds for step, (seconds, *_) in self.steps.items() if step != ALONE)


def main() -> None:
    """Print the figures of every size and the exponents from each to the next."""
    before: list[tuple[int, Spent]] = []
    for n in SIZES:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            n_bytes = write_documents(folder, n, MEAN)
            print(f"-- {n:,} documents, {n_bytes / 1e6:,.0f} MB of text")
            ours = _run("ours", folder)
            _print("textbench", ours, n_bytes)
            m = min(n, THEIRS)
            theirs = _run("theirs", folder, n / m) if THEIRS else None
        if theirs:
            of = "" if m == n else f", of {m:,} documents, times {n / m:g}"
            _print(f"scikit-learn{of}", theirs, n_bytes)
            print(f"scikit-learn takes {theirs.seconds / ours.seconds:.1f} times our seconds")
        for fewer, spent in dict([*before[:1], *before[-1:]]).items():
            exponent = np.log(ours.seconds / spent.seconds) / np.log(n / fewer)
            print(f"exponent of our seconds from {fewer:,}: {exponent:.2f}")
        before.append((n, ours))


def _run(which: str, folder: Path, *given: float) -> Spent:
    code = f"from tests.benchmarks import vectorize; vectorize.{which}(*{(str(folder), *given)!r})"
    command = [sys.executable, "-c", code]
    found = json.loads(
        subprocess.run(command, check=True, cwd=PROJECT, stdout=subprocess.PIPE, text=True).stdout
    )
    return Spent(found["steps"], found["sizes"])


def _print(name: str, spent: Spent, n_bytes: int) -> None:
    *_, peaks, own = zip(*spent.steps.values(), strict=True)
    print(
        f"{name}: {spent.seconds:.1f} s, peak {max(peaks):,.0f} MB, unmapped {max(own):,.0f} MB, {spent.sizes}"
    )
    for step, (seconds, cpu, peak, unmapped) in spent.steps.items():
        print(
            f"  {step:34s} {seconds:7.2f} s {cpu:7.2f} CPU s {peak:8,.0f} MB {unmapped:8,.0f} MB unmapped "
            f"{n_bytes / 1e6 / cpu:7.0f} MB/CPU s"
        )


class Steps:
    """Steps of a process that are timed, each with the peak of memory up to its end."""

    def __init__(self) -> None:
        self.spent: dict[str, tuple[float, float, float, float]] = {}

    @contextlib.contextmanager
    def step(self, name: str, times: float = 1) -> Iterator[None]:
        wall, cpu = perf_counter(), process_time()
        with own_peak() as most:
            yield
        spent = (perf_counter() - wall) * times, (process_time() - cpu) * times
        self.spent[name] = *spent, peak_mb(), most[0]

    def show(self, **sizes: int) -> None:
        print(json.dumps({"steps": self.spent, "sizes": sizes}))


def ours(place: str) -> None:
    """Count and weigh the documents of a folder as the stages do, and print what that took."""
    from textbench.featurizers.tfidf import TfIdf
    from textbench.tasks import vectorize
    from textbench.tasks.storage.store import Artifact, Job, Store
    from textbench.tasks.vectors_of_columns import learn_blocks

    folder, steps = Path(place), Steps()
    rule = replace(RULES["words"], max_n=2, min_df=10) if PAIRS else RULES["words"]
    known = characters(rule)
    assert known is not None
    paths = [folder / f"{part}.parquet" for part in ("train", "test")]
    some = [pa.array(["A few words, to load what is compiled.", "Two texts, é."])]
    job = Job({}, {}, folder, Store(folder, workers=N_THREADS))
    vectorize._save_blocks(job, learn_blocks(some, some, replace(rule, min_df=1), known, n_threads=N_THREADS))
    with steps.step(ALONE):
        for path in paths:
            for _ in vectorize._blocks(path):
                pass
    with steps.step("Parquet, tokens, vocabulary"):
        learned = learn_blocks(*map(vectorize._blocks, paths), rule, known, n_threads=N_THREADS)
    with steps.step("ids and counts, written"):
        vectorize._save_blocks(job, learned)
    sizes = {"terms": len(learned.terms)}
    del learned
    vectors = Artifact(folder, {})
    weigh = TfIdf()
    for part, make in (("train", weigh.fit_transform), ("test", weigh.transform)):
        with steps.step(f"TF-IDF of {part}"):
            weights = make(vectors.matrix(f"{part}_counts"))
        sizes[f"{part} entries"] = weights.nnz
        del weights
    steps.show(**sizes)


def theirs(place: str, times: float) -> None:
    """Count and weigh the first documents of a folder by scikit-learn, and print what that took, so many times over."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    folder, steps = Path(place), Steps()
    options = {"ngram_range": (1, 2), "min_df": 10} if PAIRS else {}
    count, weigh = CountVectorizer(token_pattern=r"\w\w+", **options), TfidfTransformer(sublinear_tf=True)
    for part in ("train", "test"):
        with steps.step(f"Parquet of {part}", times):
            table = pa.parquet.read_table(folder / f"{part}.parquet")
            texts = table["text"].slice(0, round(len(table) / times)).to_pylist()
        with steps.step(f"counts of {part}", times):
            counts = (count.fit_transform if part == "train" else count.transform)(texts)
        with steps.step(f"TF-IDF of {part}", times):
            (weigh.fit_transform if part == "train" else weigh.transform)(counts)
    steps.show(terms=len(count.vocabulary_))


def write_documents(folder: Path, n: int, mean: float, seed: int = 0) -> int:
    """Write `n` documents as train.parquet and test.parquet (text); return their bytes of text."""
    rng = np.random.default_rng(seed)
    ranks = np.arange(1, N_WORDS + 1, dtype=np.float64)
    shares = np.where(ranks <= N_FREQUENT, 1 / ranks, (ranks / N_FREQUENT) ** -2.2 / N_FREQUENT)
    bounds = np.cumsum(shares / shares.sum())
    guide = np.searchsorted(bounds, np.arange(2**16 + 1) / 2**16).clip(max=N_WORDS - 1)
    lengths = np.rint(rng.normal(1.9 + 0.5 * np.log(ranks), 1.2)).clip(1, 18).astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    letters = np.frombuffer(b"eeeetttaaaooiinnsshhrrdlucmwfgypbvkjxqz", dtype=np.uint8)
    letters = letters[rng.integers(0, len(letters), ends[-1])]
    total = 0
    for part, n_part in (("train", round(TRAIN * n)), ("test", n - round(TRAIN * n))):
        with pa.parquet.ParquetWriter(folder / f"{part}.parquet", pa.schema({"text": pa.string()})) as file:
            for start in range(0, n_part, BLOCK):
                m = min(BLOCK, n_part - start)
                n_words = np.exp(rng.normal(np.log(mean) - SPREAD**2 / 2, SPREAD, m)).astype(np.int64) + 1
                room = np.empty(int(n_words.sum()) * 24 + 16 * m, dtype=np.uint8)
                offsets = _write(n_words, bounds, guide, ends, letters, room, int(rng.integers(2**31)))
                total += int(offsets[-1])
                buffers = [None, pa.py_buffer(offsets), pa.py_buffer(room[: offsets[-1]])]
                file.write_table(pa.table({"text": pa.Array.from_buffers(pa.string(), m, buffers)}))
    return total


@njit(cache=True)
def _write(n_words, bounds, guide, ends, letters, room, seed):  # type: ignore[no-untyped-def]
    """Write documents of so many words to `room`; return where each begins, int32 (n_documents + 1,)."""
    np.random.seed(seed)
    offsets = np.zeros(len(n_words) + 1, dtype=np.int32)
    at = 0
    for d in range(len(n_words)):
        is_first = True
        if np.random.random() < 0.05:
            for byte in (67, 97, 102, 195, 169, 32):  # "Café "
                room[at] = byte
                at += 1
        for _ in range(n_words[d]):
            u = np.random.random()
            low, high = guide[int(u * 65536)], guide[int(u * 65536) + 1]
            while low < high:
                middle = (low + high) // 2
                if bounds[middle] < u:
                    low = middle + 1
                else:
                    high = middle
            begun = at
            for i in range(ends[low], ends[low + 1]):
                room[at] = letters[i]
                at += 1
            if is_first or u * 1e6 % 1 < 0.03:
                room[begun] -= 32
            end = np.random.random()
            is_first = end < 0.06
            if end < 0.12:
                room[at] = 46 if is_first else 44
                at += 1
            room[at] = 32
            at += 1
        offsets[d + 1] = at
    return offsets
