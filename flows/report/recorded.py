"""Chapter one, from the record: methods that were measured before, under the protocols that runs here follow too.

`evaluation/leaderboards.csv` keeps whole leaderboards, baselines among them, `evaluation/measured.csv` the figures of
claims. Both are read as summaries like those of local runs, one a method, so that they stand in one table with these.
"""

import csv
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from textbench.evaluation.claims.published import PROBES, read_claims
from textbench.flows.plan.corpora import newest
from textbench.flows.plan.request import Request
from textbench.flows.referee import recorded_audits, recorded_draws
from textbench.flows.referee.held import PLAIN
from textbench.flows.referee.ledger import MEASURED, hardware_here, read_measured
from textbench.flows.report.evidence import Evidence, known, published_name
from textbench.flows.report.provenance import SHORT, digests, settings
from textbench.flows.results import packed
from textbench.flows.results.method_names import explained, marked, uses_labels
from textbench.flows.results.placed import paired
from textbench.flows.results.runs import command_of, is_current
from textbench.flows.results.summary import Summary, columns, summarise, tables
from textbench.flows.tables.table import RECORDED, Datum, Table, code
from textbench.tasks import InputError, catalogue
from textbench.tasks.storage.definitions import PROJECT
from textbench.tasks.storage.files import whole
from textbench.tasks.tracking.tracker import committed

FILE = PROJECT / "evaluation" / "leaderboards.csv"
# Interactions of representations and probes (`flows.report.probes`).
OF_PROBES = PROJECT / "evaluation" / "probes.csv"
PLACE = ("dataset", "protocol", "paper", "method", "probe", "trials")  # what tells one line from another
COLUMNS = (
    *PLACE, "seeds", "metrics", "half_widths", "over", "seconds", "peak_mb", "params", "on_border", "data_sha256",
    "cells", "pairs", "commit", "hardware", "command", "recorded",
)  # fmt: skip
PAPERS = frozenset(name for claim in read_claims() for name in (claim.paper, claim.source))
SAME, PRINTED = 1e-6, 5.1e-5  # of a fraction: figures of one run, as they are rounded in the record

Place = tuple[str, ...]


def read() -> list[dict[str, str]]:
    """Return the lines of leaderboards.csv."""
    with FILE.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def summaries() -> list[Summary]:
    """Return what is recorded of each method on each data set under each protocol, metrics in fractions."""
    return [summary for summary, _ in _lines().values()]


def _lines() -> dict[Place, tuple[Summary, Mapping[str, str]]]:
    """Return what is recorded by its place, with the row of the record that has the most metrics of it."""
    found: dict[Place, tuple[Summary, Mapping[str, str]]] = {}
    for row, summary in [*_of_claims(), *_of_leaderboards()]:
        place = tuple(row[name] for name in PLACE)
        earlier, _ = found.get(place, (summary, row))
        told = {name: half for name, half in summary.half_width.items() if not math.isnan(half)}
        joined = replace(
            summary,
            mean={**earlier.mean, **summary.mean},
            half_width={**summary.half_width, **earlier.half_width, **told},
            over={**earlier.over, **summary.over},
        )
        found[place] = joined, row
    return found


def packed_lines() -> list[packed.Line]:
    """Return all that is recorded as lines of a packed board, in the order of the record's places."""
    return [_packed(*found) for _, found in sorted(_lines().items(), key=lambda line: line[0])]


def _packed(summary: Summary, row: Mapping[str, str]) -> packed.Line:
    halves = {name: half for name, half in summary.half_width.items() if not math.isnan(half)}
    copied = (
        "dataset",
        "protocol",
        "paper",
        "method",
        "probe",
        "data_sha256",
        "commit",
        "hardware",
        "command",
    )
    return packed.blank() | {name: row[name] for name in copied} | {
        "kind": packed.MEAN, "created": row["recorded"], "trials": summary.trials,
        "seeds": [int(seed) for seed in row["seeds"].split()], "metrics": dict(summary.mean), "half_widths": halves,
        "over": {name: summary.over[name] for name in halves}, "seconds": summary.seconds,
        "peak_mb": summary.peak_mb, "settings": list(summary.settings), "uses_labels": summary.uses_labels,
        "on_border": list(summary.on_border), "cells": row["cells"].split(),
        "params": {"said": row["params"]} if row["params"] else {}, "pairs": dict(summary.pairs),
    }  # fmt: skip


def of_packed(line: packed.Line) -> Summary:
    """Return a packed mean as a recorded method."""
    intervals = {name: (half, line["over"][name]) for name, half in line["half_widths"].items()}
    row = (
        line
        | {"trials": str(line["trials"])}
        | {name: " ".join(map(str, line[name])) for name in ("seeds", "cells")}
    )
    return summary_of(row, line["metrics"], intervals, line["seconds"], line["peak_mb"])


def _of_leaderboards() -> Iterable[tuple[Mapping[str, str], Summary]]:
    for row in read():
        over = json.loads(row["over"] or "{}")
        halves = json.loads(row["half_widths"] or "{}")
        intervals = {name: (half, over.get(name, "seeds")) for name, half in halves.items()}
        cost = {name: float(row[name]) if row[name] else None for name in ("seconds", "peak_mb")}
        yield row, summary_of(row, json.loads(row["metrics"]), intervals, **cost)


def _of_claims() -> Iterable[tuple[Mapping[str, str], Summary]]:
    records = read_measured()
    for claim in read_claims():
        row, metric = records.get(claim.id), claim.metric_here
        if (
            row is None
            or row["basis"] not in PLAIN
            or None in (metric, claim.dataset_here, claim.method_here)
        ):
            continue
        place = row | {"dataset": claim.dataset_here, "method": claim.method_here}
        place |= {"probe": PROBES.get(claim.method, ""), "trials": (row["trials"].split() or ["0"])[-1]}
        reach = (float(row["high"]) - float(row["low"])) / claim.scale if row["low"] else None
        interval = {} if reach is None else {str(metric): (reach / 2, row["basis"])}
        told = {name: str(value) for name, value in place.items()}
        yield told, summary_of(told, {str(metric): float(row["value"]) / claim.scale}, interval)


def summary_of(
    row: Mapping[str, Any],
    mean: Mapping[str, float],
    intervals: Mapping[str, tuple[float, str]],
    seconds: float | None = None,
    peak_mb: float | None = None,
) -> Summary:
    """Return a recorded method; `intervals` has half the interval of a metric, and what that is over."""
    asked = [word for word in (row["probe"], row["paper"]) if word]
    half_width = {name: intervals[name][0] if name in intervals else math.nan for name in mean}
    return Summary(
        dataset=row["dataset"], method=row["method"], protocol=row["protocol"], trials=int(row["trials"]),
        n_seeds=len(row["seeds"].split()), mean=mean, half_width=half_width, seconds=seconds, peak_mb=peak_mb,
        params=[], on_border=_on_border(row), n_failed=0, errors=[], settings=tuple(asked), apart=asked,
        over={name: over for name, (_, over) in intervals.items()}, uses_labels=uses_labels(row),
        cells=row.get("cells") or "", pairs=_pairs(row),
    )  # fmt: skip


def _on_border(row: Mapping[str, Any]) -> list[str]:
    """Return the parameters whose best value is an end of what was searched; figures of claims do not say."""
    said = row.get("on_border") or ""
    return said.split() if isinstance(said, str) else list(said)


def _pairs(row: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return p of paired tests by metric and the keys of the other; figures of claims have none."""
    said = row.get("pairs") or {}
    return dict(json.loads(said) if isinstance(said, str) else said)


def beside(own: Sequence[Summary], recorded: Sequence[Summary]) -> list[Summary]:
    """Return the recorded summaries of a board that the local ones do not repeat to the digit, labelled apart.

    A label names the paper where methods would else be called alike.
    """
    found = [summary for summary in recorded if not any(_repeats(one, summary) for one in own)]
    plain = [replace(s, apart=[word for word in s.apart if word != paper_of(s)]) for s in found]
    counts = Counter(summary.label for summary in [*own, *plain])
    return [short if counts[short.label] == 1 else whole for short, whole in zip(plain, found, strict=True)]


def paper_of(summary: Summary) -> str:
    """Return the paper whose protocol a summary follows, nothing for none."""
    return next((word for word in summary.settings if word in PAPERS), "")


def _repeats(own: Summary, recorded: Summary) -> bool:
    shared = own.mean.keys() & recorded.mean.keys()
    # Some figures were printed with two decimals of percent before there was a record of them.
    near = {n: PRINTED if round(recorded.mean[n], 4) == recorded.mean[n] else SAME for n in shared}
    return (
        (own.method, own.trials) == (recorded.method, recorded.trials)
        and set(recorded.settings) <= set(own.settings)
        and bool(shared)
        and all(abs(own.mean[name] - recorded.mean[name]) < near[name] for name in shared)
    )


def made(places: set[tuple[str, str]] | None) -> Table:
    """Return how the recorded leaderboards were made: those of (data set, protocol), all for None."""
    headings = [
        ("dataset", "data set"), ("method", "method"), ("protocol", "protocol"), ("seeds", "seeds"),
        ("trials", "settings tried"), ("params", "settings"), ("sha256", "sha256 of the data"), ("commit", "commit"),
        ("hardware", "hardware"), ("command", "command"), ("recorded", "recorded"), ("cells", "keys"),
    ]  # fmt: skip
    rows = []
    for row in read():
        if places is not None and (row["dataset"], row["protocol"]) not in places:
            continue
        files = dict(pair.split("=", 1) for pair in row["data_sha256"].split() if "=" in pair)
        rows.append([
            Datum(row["dataset"]), Datum(marked(row)),
            Datum(", ".join(filter(None, [row["protocol"], row["paper"]]))),
            Datum(row["seeds"]), Datum(row["trials"]), Datum(row["params"] or "-"), digests(files),
            Datum(row["commit"][:SHORT], row["commit"], is_code=True), Datum(row["hardware"]), code(row["command"]),
            Datum(row["recorded"]), Datum(row["cells"] or "-", is_code=True),
        ])  # fmt: skip
    note = "From evaluation/leaderboards.csv. The versions are those of requirements.lock at that commit."
    note += explained(line[1].text for line in rows)
    title = "How the recorded leaderboards were made"
    return Table("made-leaderboards", title, headings, rows, note, RECORDED, is_folded=True)


def record(evidence: Evidence) -> int:
    """Write the local leaderboards into leaderboards.csv, in place of older lines; return how many lines.

    Those of `may_record` are recorded. What is on one board is tested in pairs; a test counts as long as both lines are
    of the runs that were tested. Raises InputError where the file cannot be written, and for code that no commit has.
    """
    commit = commit_of_code()
    rows = {tuple(row[name] for name in PLACE): row for row in read()}
    n_new = 0
    rows_here = newest(row for row in evidence.rows if may_record(row))
    for table in tables(summarise(rows_here)):
        metric = columns(table, None)[0]
        tests = _tests(evidence.home, rows_here, table, metric)
        for summary in table:
            own = sorted((row for row in rows_here if summary.holds(row)), key=lambda row: row["seed"])
            line = _record(evidence, summary, own, commit)
            place = tuple(line[name] for name in PLACE)
            earlier = rows[place] if place in rows and rows[place]["cells"] == line["cells"] else {}
            pairs = _pairs(earlier)
            pairs[metric] = pairs.get(metric, {}) | tests[summary.label]
            line["pairs"] = json.dumps(pairs)
            rows[place] = line
            n_new += 1
    known = {line["cells"] for line in rows.values()}
    for line in rows.values():
        line["pairs"] = _of_lines(known, _pairs(line))
    write(FILE, COLUMNS, sorted(rows.values(), key=lambda row: [row[name] for name in PLACE]))
    return n_new


def _of_lines(cells: Set[str], pairs: Mapping[str, Mapping[str, float]]) -> str:
    """Return as JSON the tests with lines that are there, nothing for none: what others were tested with is gone."""
    found = {
        metric: {other: p for other, p in of_metric.items() if other in cells}
        for metric, of_metric in pairs.items()
    }
    return json.dumps(found) if any(found.values()) else ""


def commit_of_code() -> str:
    """Return the project's commit; the files of the record may differ from it.

    Raises InputError outside a checkout, and where a file of the code differs from the commit or is not in it.
    """
    return committed(FILE, OF_PROBES, recorded_draws.FILE, MEASURED, recorded_audits.FILE)


def _tests(
    home: Path, rows: Sequence[Mapping[str, Any]], table: Sequence[Summary], metric: str
) -> dict[str, dict[str, float]]:
    """Return p of each method's paired tests with the others of its paper, by its label and the cells of the other."""
    found: dict[str, dict[str, float]] = {summary.label: {} for summary in table}
    cells = {summary.label: summary.cells for summary in table}
    for paper in {paper_of(summary) for summary in table}:
        own = [summary for summary in table if paper_of(summary) == paper]
        for (one, other), p in paired(home, rows, own, metric).items():
            found[one][cells[other]] = found[other][cells[one]] = p
    return found


def write(path: Path, names: Sequence[str], rows: Iterable[Mapping[str, str]]) -> None:
    """Write a file of the record whole, in place of what was there. Raises InputError where it cannot be written."""
    try:
        with whole(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def may_record(row: Mapping[str, Any]) -> bool:
    """Tell whether a run is of the catalogue's data sets and methods, and of today's code.

    Methods may be joined and may decide together, under their protocols' own rules. A run that the code of today would
    make otherwise is not what the commit that the record names has computed.
    """
    return _is_ours(row) and is_current(row)


def n_of_earlier_code(evidence: Evidence) -> int:
    """Return how many runs are left out of the record for no other reason than that the code has changed since."""
    return sum(_is_ours(row) and not is_current(row) for row in [*evidence.rows, *evidence.budgets])


def _is_ours(row: Mapping[str, Any]) -> bool:
    asked = row["request"]
    is_method = catalogue.parse_method(row["method"])[0] in (
        *catalogue.methods(),
        catalogue.JOIN,
        catalogue.ENSEMBLE,
    )
    others = (asked.get(name) for name in ("rule", "validation", "search_seconds"))
    return bool(published_name(row)) and is_method and not any(others)


def _record(
    evidence: Evidence, summary: Summary, own: Sequence[Mapping[str, Any]], commit: str
) -> dict[str, str]:
    first = own[0]
    corpus = known(evidence.home, first).corpus or {"sha256": {}}
    half_widths = {name: half for name, half in summary.half_width.items() if not math.isnan(half)}
    return {
        "dataset": summary.dataset,
        "protocol": summary.protocol,
        "paper": first.get("paper") or "",
        "method": summary.method,
        "probe": first["request"].get("probe") or "",
        "trials": str(summary.trials),
        "seeds": " ".join(str(row["seed"]) for row in own),
        "metrics": json.dumps(dict(summary.mean)),
        "half_widths": json.dumps(half_widths) if half_widths else "",
        "over": json.dumps(dict(summary.over)) if half_widths else "",
        "seconds": "" if summary.seconds is None else f"{summary.seconds:.3f}",
        "peak_mb": "" if summary.peak_mb is None else f"{summary.peak_mb:.1f}",
        "params": settings(own),
        "on_border": " ".join(summary.on_border),
        "cells": summary.cells,
        "data_sha256": " ".join(f"{name}={digest}" for name, digest in sorted(corpus["sha256"].items())),
        "commit": commit,
        "hardware": hardware_here(),
        "command": command_of(Request(**first["request"])),
        "recorded": datetime.now(UTC).strftime("%Y-%m-%d"),
    }
