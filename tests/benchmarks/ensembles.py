"""What an ensemble costs: the suite `record` from nothing, and deciding together what has run; the bytes of scores.

`TEXTBENCH_ENSEMBLES_DATASETS` names data sets (20ng,imdb). Of each, with what the suite names, in a new folder: the
wall-clock seconds of a run of the ensemble alone, whose members are made with it; then those of its members by
themselves; of `textbench ensemble` of these, three ways of weighing them, nothing fitted; and the share of the store
that out-of-fold scores take.
"""

import json
import os
import tempfile
from pathlib import Path

from tests.benchmarks.command_line import seconds
from tests.commands import textbench
from textbench.flows.plan.suites import parts
from textbench.tasks import catalogue, ensemble

DATASETS = (os.environ.get("TEXTBENCH_ENSEMBLES_DATASETS") or "20ng,imdb").split(",")


def main() -> None:
    """Print a block for each data set."""
    together = parts("record")[0].request.methods[-1]
    members = ensemble.members(catalogue.parse_method(together)[1])
    for dataset in DATASETS:
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
            lines = map(json.loads, textbench("store", "size", "--json", home=home)[0].splitlines())
            sizes = {line["stage"]: line["bytes"] for line in lines}
            share = sizes.get("out_of_fold", 0) / sum(sizes.values())
            print(
                f"out-of-fold scores                  {100 * share:6.2f} % of {sum(sizes.values()) / 1e6:,.0f} MB"
            )
            textbench("down", home=home)
