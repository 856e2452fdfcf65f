"""What an ensemble costs: the suite `record` from nothing, and deciding together what has run; the bytes of scores.

`TEXTBENCH_ENSEMBLES_DATASETS` names data sets (20ng,imdb). Of each, with what the suite names, in a new folder: the
wall-clock seconds of a run of the ensemble alone, whose members are made with it; then those of its members by
themselves; of `textbench ensemble` of these, three ways of weighing them, nothing fitted; and the share of the store
that out-of-fold scores take, a file that several artifacts have counted once.
"""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.benchmarks.command_line import seconds
from tests.commands import textbench
from textbench.flows.plan.suites import parts
from textbench.tasks import catalogue, ensemble
from textbench.tasks.fold_scores import DOCUMENTS, FOLDS, ROUNDING, SCORES

DATASETS = (os.environ.get("TEXTBENCH_ENSEMBLES_DATASETS") or "20ng,imdb").split(",")


def main() -> None:
    """Print a block for each data set."""
    for dataset in DATASETS:
        asked = next(part.request for part in parts("record") if dataset in part.request.datasets)
        together = asked.methods[-1]
        members = ensemble.members(catalogue.parse_method(together)[1])
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            print(f"-- {dataset}, {len(members)} members")
            whole = seconds("run", "-d", dataset, "-m", together, "--seed", "0", home=home)
            print(f"run of the ensemble, from nothing   {whole:6.1f} s")
            for method, rule in members:
                rules = ("--rule", rule) if rule else ()
                seconds("run", "-d", dataset, "-m", method, "--seed", "0", *rules, home=home)
            for time in ("first", "again"):
                taken = seconds("ensemble", "-d", dataset, home=home)
                print(f"textbench ensemble of what ran, {time} {taken:6.1f} s")
            scores, every = sizes(home / "store")
            print(
                f"out-of-fold scores                  {100 * scores / every:6.2f} % of {every / 1e6:,.0f} MB"
            )
            textbench("down", home=home)


def sizes(store: Path) -> tuple[int, int]:
    """Return the bytes of out-of-fold scores in a store, and of all that is in it."""
    every = {path: path.stat() for path in store.rglob("*") if path.is_file()}
    scores = {
        file.parent / name
        for file in every
        if file.name == FOLDS
        for name in (SCORES, FOLDS, ROUNDING, DOCUMENTS)
    }
    return _bytes(every[path] for path in scores & every.keys()), _bytes(every.values())


def _bytes(files: Iterable[os.stat_result]) -> int:
    return sum({file.st_ino: file.st_size for file in files}.values())
