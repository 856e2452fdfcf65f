"""Does the linear probe favour sparse features? What it gives them beside another probe, tested in pairs and recorded.

Of a sparse representation, a dense one, the linear SVM and another probe there are four runs. The linear probe favours
the sparse one where its lead over the dense one is larger under the linear SVM: the interaction of representation and
probe, a difference of differences, by the paired bootstrap over test documents.
"""

import csv
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from textbench.evaluation.metrics.multilabel import is_of_several_labels
from textbench.evaluation.statistics.significance import Difference, bootstrap, difference, holm
from textbench.flows.plan.corpora import newest
from textbench.flows.referee.ledger import hardware_here
from textbench.flows.report import recorded
from textbench.flows.report.evidence import Evidence
from textbench.flows.report.provenance import SHORT
from textbench.flows.results.metric_names import heading
from textbench.flows.results.predictions import corpus_key, predictions, tally
from textbench.flows.results.runs import Run
from textbench.flows.results.summary import settings_of
from textbench.flows.tables.table import LOCAL, Datum, Table, number
from textbench.tasks import InputError, predict
from textbench.tasks.storage.files import META, Damaged, read_meta
from textbench.tasks.storage.store import Store
from textbench.tasks.words import counted

Row = Mapping[str, Any]
LINEAR, LEVEL = "linear-svm", 0.05
PLACE = ("dataset", "protocol", "paper", "trials", "metric", "sparse", "dense", "probe")
FIGURES = ("linear_lead", "other_lead", "gap", "low", "high", "p")
COLUMNS = (*PLACE, *FIGURES, "seeds", "cells", "commit", "hardware", "command", "recorded")
QUESTION = "Does the linear probe favour sparse features?"
NOTE = (
    "Lead: of the sparse over the dense representation, in points. Interaction: how much larger it is under the linear "
    "SVM, with its 95 % interval; p of the paired bootstrap over test documents, Holm-corrected over the table."
)


@dataclass(frozen=True)
class Interaction:
    """A sparse and a dense representation under two probes: the sparse one's leads, and their difference.

    All are fractions. `gap` is the lead under the linear SVM less that under the other `probe`; `p` is Holm-corrected
    over all that were found together. `cells`: the keys of the runs that were compared, those of the shared `seeds`.
    """

    dataset: str
    protocol: str
    metric: str
    sparse: str
    dense: str
    probe: str
    linear_lead: float
    other_lead: float
    gap: Difference
    p: float
    paper: str = ""
    trials: int = 0
    seeds: Sequence[int] = ()
    cells: Sequence[str] = ()


def is_sparse(home: Path, row: Row) -> bool | None:
    """Tell whether a run's features are stored as a sparse matrix; None where they are gone, or it has none."""
    try:
        result = Run(home, row).reference
    except InputError:
        return None
    store, choice = Store(home / "store"), result.inputs.get("choice")
    if choice is None or not store.has(choice):  # nothing is made again for this
        return None
    features = predict.features_of(result.inputs["vectors"], store.open(choice))
    if features is None:
        return None
    try:  # that they were sparse is known when they are not kept
        return "test.npz" in read_meta(store.folder(features) / META)["files"]
    except (OSError, Damaged):
        return None


def interactions(
    home: Path, rows: Sequence[Row], sparse: Callable[[Path, Row], bool | None] = is_sparse
) -> list[Interaction]:
    """Return every interaction that these rows of the index, the newest of each cell, can show.

    Runs of a place share documents, protocol and number of trials, and of the four runs the seeds in common count.
    """
    places: dict[tuple[Any, ...], dict[tuple[str, str], dict[int, Row]]] = {}
    for row in rows:
        if row["error"] or not row.get("key") or not row.get("probe"):
            continue
        others = tuple(word for word in settings_of(row) if word != row["probe"])
        place = (row["dataset"], row["protocol"], int(row["trials"]), others)
        places.setdefault(place, {}).setdefault((row["method"], row["probe"]), {})[row["seed"]] = row
    found = []
    for (dataset, protocol, trials, _), runs in places.items():
        probes = sorted({probe for _, probe in runs} - {LINEAR})
        methods = [method for method, probe in runs if probe == LINEAR] if probes else []
        kinds = {method: sparse(home, next(iter(runs[method, LINEAR].values()))) for method in methods}
        for probe in probes:
            own = [method for method in methods if (method, probe) in runs]
            for first in (method for method in own if kinds[method]):
                for second in (method for method in own if kinds[method] is False):
                    four = [runs[one, by] for by in (LINEAR, probe) for one in (first, second)]
                    seeds = sorted(set.intersection(*map(set, four)))
                    told = _interaction(home, four, seeds)
                    if told is not None:
                        metric, leads, gap = told
                        paper = str(four[0][seeds[0]].get("paper") or "")
                        cells = [str(runs[seed]["key"]) for runs in four for seed in seeds]
                        names = (dataset, protocol, metric, first, second, probe)
                        found.append(Interaction(*names, *leads, gap, gap.p, paper, trials, seeds, cells))
    return _together(found)


def _together(found: Sequence[Interaction]) -> list[Interaction]:
    corrected = holm([one.gap.p for one in found])
    return [replace(one, p=p) for one, p in zip(found, corrected, strict=True)]


def read() -> list[Interaction]:
    """Return the interactions that the repository records, their p corrected over all of these."""
    with recorded.OF_PROBES.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    found = []
    for row in rows:
        linear_lead, other_lead, *gap = (float(row[name]) for name in FIGURES)
        one = Interaction(
            dataset=row["dataset"],
            protocol=row["protocol"],
            metric=row["metric"],
            sparse=row["sparse"],
            dense=row["dense"],
            probe=row["probe"],
            linear_lead=linear_lead,
            other_lead=other_lead,
            gap=Difference(*gap),
            p=gap[-1],
            paper=row["paper"],
            trials=int(row["trials"]),
            seeds=[*map(int, row["seeds"].split())],
            cells=row["cells"].split(),
        )
        found.append(one)
    return _together(found)


def record(evidence: Evidence) -> int:
    """Write the interactions of a results folder into probes.csv, in place of older lines; return how many.

    Runs of `recorded.may_record` count. Raises InputError where the file cannot be written, and for code that no
    commit has.
    """
    commit = recorded.commit_of_code()
    with recorded.OF_PROBES.open(encoding="utf-8", newline="") as stream:
        lines = {tuple(row[name] for name in PLACE): row for row in csv.DictReader(stream)}
    rows = newest(row for row in evidence.rows if recorded.may_record(row))
    found = interactions(evidence.home, rows)
    for one in found:
        place = tuple(str(getattr(one, name)) for name in PLACE)
        values = (one.linear_lead, one.other_lead, one.gap.value, one.gap.low, one.gap.high, one.gap.p)
        figures = [f"{value:.6g}" for value in values]
        of_runs = [" ".join(map(str, one.seeds)), " ".join(cell[:SHORT] for cell in one.cells)]
        made = [commit, hardware_here(), _command(one), datetime.now(UTC).date().isoformat()]
        lines[place] = dict(zip(COLUMNS, (*place, *figures, *of_runs, *made), strict=True))
    recorded.write(recorded.OF_PROBES, COLUMNS, [lines[place] for place in sorted(lines)])
    return len(found)


def _command(one: Interaction) -> str:
    """Return the commands that make the runs: under the linear SVM, then under the other probe."""
    words = [
        "textbench",
        "run",
        "-d",
        one.dataset,
        "-m",
        one.sparse,
        "-m",
        one.dense,
        "--protocol",
        one.protocol,
    ]
    words += ["--paper", one.paper] if one.paper else []
    words += ["--trials", str(one.trials)] if one.trials else []
    words += [word for seed in one.seeds for word in ("--seed", str(seed))]
    return " && ".join(shlex.join([*words, "--probe", probe]) for probe in (LINEAR, one.probe))


def _interaction(
    home: Path, four: Sequence[Mapping[int, Row]], seeds: Sequence[int]
) -> tuple[str, tuple[float, float], Difference] | None:
    """Return the metric, both leads and their difference; None where seeds or predictions in common are lacking."""
    if not seeds:
        return None
    several = is_of_several_labels(four[0][seeds[0]]["metrics"])
    metric = "micro_f1" if several else "accuracy"
    try:
        if len({corpus_key(home, runs[seed]) for runs in four for seed in seeds}) > 1:
            return None
        tallies = [tally([predictions(home, runs[seed]) for seed in seeds], metric) for runs in four]
    except InputError:
        return None
    draws, values = bootstrap(tallies), [one.value for one in tallies]
    leads = (values[0] - values[1], values[2] - values[3])
    drawn = (draws[:, 0] - draws[:, 1]) - (draws[:, 2] - draws[:, 3])
    return metric, leads, difference(leads[0] - leads[1], drawn)


def answer(found: Sequence[Interaction]) -> str:
    """Return in words whom the linear probe favours, by more than chance."""
    sure = [one for one in found if one.p < LEVEL]
    n_sparse = sum(one.gap.value > 0 for one in sure)
    n_dense = len(sure) - n_sparse
    said = f"Of {counted(len(found), 'comparison')} of a sparse and a dense representation under two probes"
    return (
        f"{said}, the linear SVM favours the sparse one in {n_sparse} and the dense one in {n_dense} by more than "
        f"chance explains; in {len(found) - len(sure)} neither."
    )


def table(found: Sequence[Interaction], source: str = LOCAL) -> Table:
    """Return the interactions as a table, the largest first."""
    rows = [
        [
            Datum(one.dataset),
            Datum(one.protocol),
            Datum(one.sparse),
            Datum(one.dense),
            Datum(one.probe),
            number(one.linear_lead, scale=100),
            number(one.other_lead, scale=100),
            Datum(
                f"{100 * one.gap.value:+.2f} ({100 * one.gap.low:+.2f} .. {100 * one.gap.high:+.2f})",
                one.gap.value,
                is_strong=one.p < LEVEL,
            ),
            Datum(f"{one.p:.2g}", one.p),
        ]
        for one in sorted(found, key=lambda one: -one.gap.value)
    ]
    headings = [
        ("dataset", "data set"), ("protocol", "protocol"), ("sparse", "sparse"), ("dense", "dense"),
        ("probe", "other probe"), ("linear_lead", "lead, linear SVM"), ("other_lead", "lead, other probe"),
        ("interaction", "interaction"), ("p", "p"),
    ]  # fmt: skip
    of = ", ".join(dict.fromkeys(heading(one.metric) for one in found))
    name = "of-probes" if source == LOCAL else "of-probes-recorded"
    return Table(name, f"Representations and probes, {of}", headings, rows, NOTE, source)
