"""Finished runs made up for tests: an index row and the predictions behind it, without computing anything."""

import pickle
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import textbench.flows.referee.ledger
import textbench.flows.referee.recorded_draws
import textbench.flows.report.charts
import textbench.flows.report.probes
import textbench.flows.report.recorded
import textbench.flows.report.recorded_curves
from textbench.flows.plan.request import Request
from textbench.flows.referee.ledger import LedgerEntry, choose, ledger
from textbench.tasks.storage.files import write_json
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Job, Store

CLASSES = ["alt.atheism", "sci.med", "sci.space"]
FAITHFUL = {"protocol": "faithful", "paper": "scdv-2017"}


def make_corpus(job: Job) -> None:
    """Write what is known of a corpus."""
    job.save_json("corpus", {"target_names": CLASSES, "sha256": {"made.tar": "0" * 64}} | dict(job.params))


def make_result(job: Job) -> None:
    """Write the predictions of the parameters."""
    job.save_table("predictions", dict(job.params["columns"]))


def empty_record(
    patch: pytest.MonkeyPatch, folder: Path, ceilings: Mapping[str, Mapping[str, float]] | None = None
) -> Path:
    """Let nothing be recorded yet: the files of the record are headings alone, in a folder of the test's.

    The project's files may differ from its commit.

    ceilings: of each data set, as none is computed; without them there is no impossible figure.
    """
    patch.setattr(
        textbench.flows.referee.ledger, "_ceilings", lambda home, name: (ceilings or {}).get(name, {})
    )
    for module in (textbench.flows.referee.ledger, textbench.flows.report.recorded):
        patch.setattr(module, "committed", lambda *records: "0" * 40)
    path = folder / "measured.csv"
    path.write_text(",".join(textbench.flows.referee.ledger.COLUMNS) + "\n")
    patch.setattr(textbench.flows.referee.ledger, "MEASURED", path)
    boards = folder / "leaderboards.csv"
    boards.write_text(",".join(textbench.flows.report.recorded.COLUMNS) + "\n")
    patch.setattr(textbench.flows.report.recorded, "FILE", boards)
    probes = folder / "probes.csv"
    probes.write_text(",".join(textbench.flows.report.probes.COLUMNS) + "\n")
    patch.setattr(textbench.flows.report.recorded, "OF_PROBES", probes)
    # No code makes these runs.
    patch.setattr(textbench.flows.report.recorded, "is_current", lambda row: True)
    curves = folder / "curves.csv"
    curves.write_text(",".join(textbench.flows.report.recorded_curves.COLUMNS) + "\n")
    patch.setattr(textbench.flows.referee.recorded_draws, "FILE", curves)
    return path


def finish(home: Path, dataset: str, method: str, columns: dict[str, Any], **row: Any) -> dict[str, Any]:
    """Put a finished run into a results folder and return its index row with its key.

    columns: those of predictions.parquet. row: what differs from an honest run of seed 0 without tuning; its `request`
    holds what differs in that.
    """
    corpus = Reference(
        "ingest", "tests.made_runs:make_corpus", {"dataset": dataset, "edition": row.pop("edition", 1)}
    )
    params = {"method": method, "columns": columns, "row": repr(sorted(row.items()))}
    result = Reference("evaluate", "tests.made_runs:make_result", params, {"corpus": corpus})
    store = Store(home / "store", isolated=False)  # a child would import all of this for each file it writes
    store.ensure(corpus)
    store.ensure(result)
    record: dict[str, Any] = {
        "dataset": dataset,
        "method": method,
        "protocol": "honest",
        "seed": 0,
        "trials": 0,
        "probe": "linear-svm",
        "paper": None,
        "params": {"C": 1.0},
        "on_border": [],
        "metrics": {},
        "seconds": {"featurize": 1.0, "evaluate": 1.0},
        "peak_mb": 100.0,
        "run_id": result.key[::-1][:32],
        "cached": False,
        "error": None,
        "attempt": "",
        "tracking_uri": f"sqlite:///{home}/mlflow.db",
        "sweeps": [],
        "made_by": "the same code",
        "created": time.time(),
    } | row
    asked = {"probe": None} | (row.get("request") or {})
    request = Request(
        [dataset], [method], [record["seed"]], record["protocol"], paper=record["paper"], **asked
    )
    record["request"] = asdict(request)
    write_json(home / "index" / f"{result.key}.json", record)
    return record | {"key": result.key}


def entry(home: Path, id_: str) -> LedgerEntry:
    """The ledger's entry of one claim."""
    (found,) = [found for found in ledger(home, choose(id_)) if found.claim.id == id_]
    return found


def one_label(
    home: Path, dataset: str, method: str, target: Sequence[int], predicted: Sequence[int], **row: Any
) -> dict[str, Any]:
    """A finished run on documents of one label, its metrics those of its predictions."""
    import numpy as np

    from textbench.evaluation.metrics.single_label import score_labels

    columns = {
        "document": list(range(len(target))),
        "target": list(map(int, target)),
        "predicted": list(map(int, predicted)),
        "average_precision": [float(a == b) / 2 for a, b in zip(target, predicted, strict=True)],
    }
    metrics = score_labels(np.array(target), np.array(predicted)) | {
        "map": float(np.mean(columns["average_precision"]))
    }
    return finish(home, dataset, method, columns, **({"metrics": metrics} | row))


def several_labels(
    home: Path, dataset: str, method: str, target: list[list[int]], predicted: list[list[int]], **row: Any
) -> dict[str, Any]:
    """A finished run on documents of several labels: right at the top where the first prediction is a true label."""
    columns = {
        "document": list(range(len(target))),
        "target": target,
        "predicted": predicted,
        "precision_at_1": [float(bool(p) and p[0] in t) for t, p in zip(target, predicted, strict=True)],
        "label_ranking_average_precision": [
            0.5 + 0.5 * (t == p) for t, p in zip(target, predicted, strict=True)
        ],
    }
    both = sum(len({*t} & {*p}) for t, p in zip(target, predicted, strict=True))
    total = sum(len(t) + len(p) for t, p in zip(target, predicted, strict=True))
    lraps = sum(columns["label_ranking_average_precision"]) / len(target)
    metrics = dict.fromkeys(("micro_f1", "micro_f1_zero"), 2 * both / total) | {"lraps": lraps}
    return finish(home, dataset, method, columns, metrics=metrics, **row)


def draw_once(patch: pytest.MonkeyPatch) -> None:
    """Draw each figure of reports once: pages on different runs show the same of what is recorded."""
    charts, drawn = textbench.flows.report.charts, {}

    def once(name: str) -> None:
        draw = getattr(charts, name)

        def remembered(*arguments: Any) -> Any:
            key = name, pickle.dumps(arguments)
            if key not in drawn:
                drawn[key] = draw(*arguments)
            return drawn[key]

        patch.setattr(charts, name, remembered)

    for name in ("leaderboard", "curves", "held"):
        once(name)
