"""Many short documents: from a CSV to the leaderboard, beside scikit-learn, and how the seconds grow.

`TEXTBENCH_MILLION_SIZES` says how many documents (10000,50000,200000), each of 60 words, of 4 classes, 30 % for the
test. Of each size: the command `textbench run --data FILE -m tfidf` in a new folder, CPU seconds and peak MB of every
stage (`ingest` runs in the command's own process; trials are part of tuning; the final fit, `train`, and retrieval by
example are not counted as `evaluate`, and samples of the documents are `forecast`), wall-clock seconds of the whole;
and scikit-learn's in a process of its own: pandas' CSV, TfidfVectorizer, one LinearSVC at the C that was chosen,
accuracy.
Then, from one size to the next, the exponent by which CPU seconds grow: 1 is linear. The command's default is three
seeds; `TEXTBENCH_MILLION_SEEDS` says another number. `TEXTBENCH_MILLION_METHOD` names a method in TF-IDF's place, such
as `dcot` or `scdv(word_vectors__trainer="shared")`, which scikit-learn does not have.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

from tests.commands import rows_of, start, textbench

SIZES = [int(n) for n in (os.environ.get("TEXTBENCH_MILLION_SIZES") or "10000,50000,200000").split(",")]
METHOD = os.environ.get("TEXTBENCH_MILLION_METHOD") or "tfidf"
N_SEEDS = os.environ.get("TEXTBENCH_MILLION_SEEDS") or "3"
N_WORDS, N_CLASSES, N_TERMS = 60, 4, 50_000
BLOCK = 20_000  # documents written at once
THEIRS = """
import json, sys, time
begun = time.process_time(), time.perf_counter()
import numpy as np, pandas
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC
def step(name, last=[begun[0]]):
    now = time.process_time(); spent[name] = now - last[0]; last[0] = now
spent = {}
table = pandas.read_csv(sys.argv[1])
step("CSV")
train, test, y, known = train_test_split(table.text, table.label, test_size=0.3, random_state=0, stratify=table.label)
weigh = TfidfVectorizer()
X = weigh.fit_transform(train); Z = weigh.transform(test)
step("TF-IDF")
accuracy = float((LinearSVC(C=float(sys.argv[2]), tol=1e-3).fit(X, y).predict(Z) == known).mean())
step("SVM")
wall = time.perf_counter() - begun[1]
from textbench.tasks.storage.isolate import peak_mb
print(json.dumps({"stages": spent, "peak_mb": peak_mb(), "wall": wall, "accuracy": accuracy}))
"""


class Spent(NamedTuple):
    """CPU seconds of each stage, peak MB of each, wall-clock seconds of the whole, and the accuracy."""

    stages: dict[str, float]
    peak_mb: dict[str, float]
    wall: float
    accuracy: float


def main() -> None:
    """Print a block for each size, and the exponents from each to the next."""
    before: tuple[int, Spent, Spent | None] | None = None
    for n in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "documents.csv"
            write_documents(path, n)
            print(f"-- {n:,} documents, {path.stat().st_size / 1e6:,.0f} MB")
            ours, C = _ours(path, Path(folder) / "home")
            theirs = _theirs(path, C) if METHOD == "tfidf" else None
        _print(f"textbench, {METHOD}, C = {C:g}", ours)
        if theirs:
            _print(f"scikit-learn, C = {C:g}", theirs)
            total, other = sum(ours.stages.values()), sum(theirs.stages.values())
            print(f"CPU {total:.1f} s, {total / other:.2f} times scikit-learn's; wall {ours.wall:.1f} s")
        if before:
            for name, now, then in (("textbench", ours, before[1]), ("scikit-learn", theirs, before[2])):
                if now and then:
                    print(f"exponents of {name} from {before[0]:,}: {_exponents(now, then, n / before[0])}")
        before = n, ours, theirs


def write_documents(path: Path, n: int, seed: int = 0) -> None:
    """Write `n` documents as CSV (text, label): seven words of ten are drawn for the class, three for any."""
    rng = np.random.default_rng(seed)
    tilts = np.exp(rng.normal(0, 0.7, (N_CLASSES, N_TERMS)))
    tilts[:, :200] = 1  # the most frequent words say nothing
    shares = tilts / np.arange(1, N_TERMS + 1) ** 1.05
    shares = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
    vocabulary = np.array([_word(i) for i in range(N_TERMS)], dtype=object)
    with path.open("w", encoding="utf-8") as file:
        file.write("text,label\n")
        for start in range(0, n, BLOCK):
            m = min(BLOCK, n - start)
            labels = rng.integers(0, N_CLASSES, m)
            drawn = rng.random((m, N_WORDS))
            mixed = np.where(
                rng.random((m, N_WORDS)) < 0.7, labels[:, None], rng.integers(0, N_CLASSES, (m, 1))
            )
            words = np.empty((m, N_WORDS), dtype=np.int64)
            for c in range(N_CLASSES):
                words[mixed == c] = np.searchsorted(shares[c], drawn[mixed == c]).clip(max=N_TERMS - 1)
            for row, label in zip(vocabulary[words].tolist(), labels.tolist(), strict=True):
                file.write(f"{' '.join(row)},class{label}\n")


def _word(i: int) -> str:
    """Return a word of letters for a number, frequent ones short; no two numbers have the same."""
    letters = ""
    i += 26
    while i:
        i, rest = divmod(i, 26)
        letters += chr(97 + rest)
    return letters


def _ours(path: Path, home: Path) -> tuple[Spent, float]:
    started = perf_counter()
    command = start(("run", "--data", str(path), "-m", METHOD, "--seeds", N_SEEDS, "--json"), home)
    output, errors = command.communicate()
    wall = perf_counter() - started
    if command.returncode:
        raise RuntimeError(errors)
    textbench("down", home=home)
    row = rows_of(output)[0]  # of the first seed; the seconds are those of all
    stages: dict[str, float] = defaultdict(float)
    peak: dict[str, float] = {}
    for file in (home / "store").glob("*/*/meta.json"):
        meta = json.loads(file.read_text())
        stage = meta["recipe"]["stage"]
        if stage == "trial" or "same_as" in meta:  # part of tuning; taken from another seed
            continue
        if stage == "sample" or '"stage": "sample"' in json.dumps(meta["recipe"]):
            stage = "forecast"
        parts = {part: meta["parts"][part] for part in ("train", "by_example") if part in meta["parts"]}
        for part, seconds in parts.items():  # on one thread
            stages[part] += seconds
        stages[stage] += meta["cpu_seconds"] - sum(parts.values())
        peak[stage] = max(peak.get(stage, 0), meta["peak_mb"])
    return Spent(dict(stages), peak, wall, row["metrics"]["accuracy"]), float(row["params"]["C"])


def _theirs(path: Path, C: float) -> Spent:
    command = [sys.executable, "-c", THEIRS, str(path), str(C)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return Spent(found["stages"], {"whole": found["peak_mb"]}, found["wall"], found["accuracy"])


def _print(name: str, spent: Spent) -> None:
    print(f"{name}: wall {spent.wall:.1f} s, accuracy {spent.accuracy:.4f}")
    for stage, seconds in sorted(spent.stages.items(), key=lambda item: -item[1]):
        peak = f"{spent.peak_mb[stage]:8,.0f} MB" if stage in spent.peak_mb else ""
        print(f"  {stage:14s} {seconds:8.2f} CPU s {peak}")
    if "whole" in spent.peak_mb:
        print(f"  {'peak':14s} {'':14s} {spent.peak_mb['whole']:8,.0f} MB")


def _exponents(now: Spent, then: Spent, ratio: float) -> str:
    def exponent(seconds: float, before: float) -> str:
        return f"{np.log(seconds / before) / np.log(ratio):.2f}" if min(seconds, before) > 0 else "-"

    whole = exponent(sum(now.stages.values()), sum(then.stages.values()))
    each = (f"{stage} {exponent(now.stages[stage], then.stages[stage])}" for stage in then.stages)
    return f"whole {whole}, " + ", ".join(each)
