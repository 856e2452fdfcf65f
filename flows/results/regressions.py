"""Nights: the results of a flow run every night, kept, and compared with those of the night before.

A night is kept in `<home>/nights/<UTC time>/`: `night.json` with the rows, and each row's predictions, so that it can
be compared even where the store has replaced the artifacts since. Nights are compared that were asked for the same.

- Accuracy: both nights' predictions on the same test documents, in pairs (`evaluation.statistics.significance`): the
  paired bootstrap of the metric over documents and McNemar's exact test, each with Holm's correction over the
  methods. The same seeds give the same bits, so a quiet night loses nothing: what falls by `LEAST_LOSS` and by three
  documents is marked too, whatever chance over documents would explain.
- Speed: the seconds of each seed, tonight's over last night's; the geometric mean over seeds and, from two seeds on,
  its 95 % interval (Student's t on logarithms). From `LEAST_NIGHTS` earlier nights on, tonight is held against up to
  `MOST_NIGHTS` of them instead: of the seeds the one least slower than its own median, for noise of a clock only adds,
  by a moderated t test (`evaluation.statistics.slower`), Holm over methods. Seconds of different hardware are not
  compared.
"""

import itertools
import json
import math
import os
import platform
import shutil
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.evaluation.cores import n_cores
from textbench.evaluation.metrics.multilabel import is_of_several_labels
from textbench.evaluation.statistics.intervals import mean_interval
from textbench.evaluation.statistics.significance import bootstrap, holm, mcnemar_exact, paired_difference
from textbench.evaluation.statistics.slower import above_p
from textbench.flows.plan.cell import Cell
from textbench.flows.plan.request import Request
from textbench.flows.results.method_names import explained, marked, uses_labels
from textbench.flows.results.metric_names import heading, scale
from textbench.flows.results.predictions import is_right, tally
from textbench.flows.tables.formats import rows_in_markdown
from textbench.flows.tables.table import Datum, of_texts
from textbench.tasks.storage.files import write_json
from textbench.tasks.storage.store import Store
from textbench.tasks.tracking.tracker import git_commit

if TYPE_CHECKING:
    import pyarrow

LEVEL = 0.05
LEAST_LOSS, LEAST_DOCUMENTS = 0.002, 3
SLOWER_LEVEL = 0.01  # false alarms of one night
LEAST_NIGHTS, MOST_NIGHTS = 5, 14
ALONE = 1.5  # times the seconds, where there are fewer nights: what noise of a clock does not reach
COLUMNS = (
    "data", "method", "last", "tonight", "difference (95 % interval)", "p", "McNemar p", "seconds", "ratio", "",
)  # fmt: skip
Row = Mapping[str, Any]
Night = dict[str, Any]
Name = tuple[str, str]  # of a data set and a method


@dataclass(frozen=True)
class Change:
    """One method on one data set, tonight against the last night; differences are tonight minus last, in fractions.

    `low` and `high` are the difference's 95 % interval over test documents, `p` and `mcnemar_p` are corrected over all
    methods of the night. `ratio` is tonight's seconds over last night's, with `ratio_low` the lower end of its
    interval; None where seconds cannot be compared, or for one seed. `slower_p` and `ratio_before` are against all
    earlier nights, None where these are too few. `note` says why something is missing.
    """

    dataset: str
    method: str
    metric: str
    last: float | None
    tonight: float | None
    low: float = 0.0
    high: float = 0.0
    p: float = 1.0
    mcnemar_p: float = 1.0
    last_seconds: float | None = None
    seconds: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    slower_p: float | None = None
    ratio_before: float | None = None
    n_documents: int = 0
    note: str = ""

    def is_worse(self) -> bool:
        """Tell whether the metric fell by more than chance explains, or by more than equal bits allow."""
        if self.last is None or self.tonight is None:
            return False
        loss = self.last - self.tonight
        is_much = loss > LEAST_LOSS - 1e-9 and loss * self.n_documents > LEAST_DOCUMENTS - 1e-6
        return loss > 0 and (self.p < LEVEL or is_much)

    def is_slower(self, slower: float) -> bool:
        """Tell whether it took `slower` times as long or more, and more than noise of the clock explains.

        Where there are too few earlier nights to know that noise, only `ALONE` times or more counts, with an interval,
        if there is one, that leaves out 1.
        """
        if self.slower_p is not None and self.ratio_before is not None:
            return self.slower_p < SLOWER_LEVEL and self.ratio_before >= slower
        return (
            self.ratio is not None and self.ratio >= max(slower, ALONE) and (self.ratio_low or self.ratio) > 1
        )


def keep(home: Path, asked: Row, cells: Sequence[Cell], rows: Sequence[Row], begun: float) -> Night:
    """Write a night to its folder, with the predictions of what succeeded, and return it."""
    stamp = time.strftime("%Y-%m-%dT%H%M%S", time.gmtime(begun))
    folder = home / "nights" / stamp
    folder.mkdir(parents=True)
    store = Store(home / "store")
    kept = []
    for cell, row in zip(cells, rows, strict=True):
        if row["error"]:
            continue
        file = f"{cell.key}.parquet"
        shutil.copyfile(store.folder(cell.references["evaluate"]) / "predictions.parquet", folder / file)
        names = ("dataset", "corpus", "method", "seed", "metrics", "seconds", "run_id")
        kept.append(
            {name: row[name] for name in names} | {"uses_labels": uses_labels(row), "predictions": file}
        )
    night = {
        "asked": dict(asked),
        "begun": begun,
        "commit": git_commit(),
        "hardware": hardware(),
        "rows": kept,
    }
    write_json(folder / "night.json", night)
    return night | {"folder": folder}


def hardware() -> str:
    """Return what seconds depend on: the machine's name, its processor, and the cores this process may use."""
    return f"{platform.node()} {platform.machine()} {os.cpu_count()} cores, {n_cores()} used"


def last_night(home: Path, tonight: Night) -> Night | None:
    """Return the newest earlier night that was asked for the same, None if there is none."""
    return next(_earlier(home, tonight), None)


def earlier_nights(home: Path, tonight: Night) -> list[Night]:
    """Return the `MOST_NIGHTS` newest earlier nights that were asked for the same on the same hardware."""
    same = (night for night in _earlier(home, tonight) if night["hardware"] == tonight["hardware"])
    return list(itertools.islice(same, MOST_NIGHTS))


def _earlier(home: Path, tonight: Night) -> Iterator[Night]:
    """Yield the earlier nights that were asked for the same, the newest first."""
    for path in sorted((home / "nights").glob("*/night.json"), reverse=True):
        try:
            night = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            continue
        if night["begun"] < tonight["begun"] and _asked(night) == _asked(tonight):
            yield {**night, "folder": path.parent}


def _asked(night: Night) -> Request:
    return Request(**night["asked"])  # what it could not yet ask for is as it is by default


def compare(last: Night, tonight: Night, earlier: Sequence[Night] = ()) -> list[Change]:
    """Return what changed between two nights, in the order of tonight's rows; what only one of them has is noted.

    earlier: nights that tell how much seconds differ by themselves (`earlier_nights`).
    """
    before, after = _by_method(last), _by_method(tonight)
    same = last["hardware"] == tonight["hardware"]
    changes = [
        _change(name, _loaded(last, before.get(name, [])), _loaded(tonight, after.get(name, [])), same)
        for name in dict.fromkeys([*after, *before])
    ]
    tested = [place for place, change in enumerate(changes) if not change.note]
    adjusted = zip(
        holm([changes[place].p for place in tested]),
        holm([changes[place].mcnemar_p for place in tested]),
        strict=True,
    )
    for place, (p, mcnemar_p) in zip(tested, adjusted, strict=True):
        changes[place] = replace(changes[place], p=p, mcnemar_p=mcnemar_p)
    found = slowed([_logarithms(night) for night in earlier], _logarithms(tonight))
    return [
        replace(change, slower_p=found[name][0], ratio_before=found[name][1]) if name in found else change
        for change in changes
        for name in [(change.dataset, change.method)]
    ]


def _logarithms(night: Night) -> dict[Name, dict[int, float]]:
    """Return the logarithm of the seconds of each method and seed."""
    sums = {
        name: {row["seed"]: math.fsum(row["seconds"].values()) for row in rows}
        for name, rows in _by_method(night).items()
    }
    return {
        name: {seed: math.log(spent) for seed, spent in of_seeds.items()}
        for name, of_seeds in sums.items()
        if all(spent > 0 for spent in of_seeds.values())
    }


def slowed(
    earlier: Sequence[Mapping[Name, Mapping[int, float]]], tonight: Mapping[Name, Mapping[int, float]]
) -> dict[Name, tuple[float, float]]:
    """Return of each method of tonight how it stands to earlier nights: (p after Holm, times the seconds).

    The arguments hold logarithms of seconds by method and seed. What fewer than `LEAST_NIGHTS` nights have is left out.
    """
    known = {}
    for name, seeds in tonight.items():
        nights = [night[name] for night in earlier if seeds.keys() <= night.get(name, {}).keys()]
        if len(nights) >= LEAST_NIGHTS:
            usual = {seed: statistics.median(night[seed] for night in nights) for seed in seeds}
            excess = [min(night[seed] - usual[seed] for seed in seeds) for night in [*nights, seeds]]
            known[name] = excess[:-1], excess[-1]
    p = holm(above_p([before for before, _ in known.values()], [now for _, now in known.values()]))
    return {
        name: (one, math.exp(now - statistics.fmean(before)))
        for (name, (before, now)), one in zip(known.items(), p, strict=True)
    }


def _by_method(night: Night) -> dict[Name, list[Row]]:
    found: dict[Name, list[Row]] = {}
    for row in night["rows"]:
        found.setdefault((row["dataset"], marked(row)), []).append(row)
    return found


def _loaded(night: Night, rows: Sequence[Row]) -> dict[int, tuple[Row, "pyarrow.Table"]]:
    import pyarrow.parquet

    return {
        row["seed"]: (row, pyarrow.parquet.read_table(night["folder"] / row["predictions"])) for row in rows
    }


def _change(
    name: Name,
    last: Mapping[int, tuple[Row, "pyarrow.Table"]],
    tonight: Mapping[int, tuple[Row, "pyarrow.Table"]],
    same_hardware: bool,
) -> Change:

    seeds = sorted(last.keys() & tonight.keys())
    if not seeds:
        missing = "tonight" if last else "last night"
        return Change(*name, "", None, None, note=f"no result {missing}")
    rows = [[night[seed][0] for seed in seeds] for night in (last, tonight)]
    tables = [[night[seed][1] for seed in seeds] for night in (last, tonight)]
    metric = "micro_f1" if is_of_several_labels(rows[1][0]["metrics"]) else "accuracy"
    if not _same_documents(*rows) or not all(_same_targets(*pair) for pair in zip(*tables, strict=True)):
        return Change(*name, metric, None, None, note="the test documents have changed")
    before, after = (tally(of_night, metric) for of_night in tables)
    draws = bootstrap([before, after])
    gap = paired_difference(after, before, draws[:, 1] - draws[:, 0])
    exact = mcnemar_exact(is_right(tables[0][0]), is_right(tables[1][0]))
    change = Change(*name, metric, before.value, after.value, gap.low, gap.high, gap.p, exact.p)
    return Change(
        **asdict(change) | {"n_documents": len(tables[0][0])} | _seconds(rows[0], rows[1], same_hardware)
    )


def _same_documents(last: Sequence[Row], tonight: Sequence[Row]) -> bool:
    """Tell whether the rows are of the same documents, as far as they say so: those of earlier versions do not."""
    return len({row["corpus"]["documents_sha256"] for row in [*last, *tonight] if row.get("corpus")}) < 2


def _same_targets(first: "pyarrow.Table", second: "pyarrow.Table") -> bool:
    return bool(first["target"].combine_chunks().equals(second["target"].combine_chunks()))


def _seconds(last: Sequence[Row], tonight: Sequence[Row], same_hardware: bool) -> dict[str, Any]:
    """Return what a Change says of seconds."""
    sums = [[math.fsum(row["seconds"].values()) for row in rows] for rows in (last, tonight)]
    means = [math.fsum(values) / len(values) for values in sums]
    found: dict[str, Any] = {"last_seconds": means[0], "seconds": means[1]}
    if not same_hardware or not all(value > 0 for values in sums for value in values):
        return found
    mean, half = mean_interval([math.log(after / before) for before, after in zip(*sums, strict=True)])
    return found | {
        "ratio": math.exp(mean),
        "ratio_low": None if math.isnan(half) else math.exp(mean - half),
    }


def report(last: Night | None, tonight: Night, changes: Sequence[Change], slower: float) -> str:
    """Return the night's artifact as Markdown: the verdict, a row a method, and what the words mean."""
    if last is None:
        return (
            f"# First night\n\n{len(tonight['rows'])} results are kept; the next night is compared with them."
        )
    worse = [f"{c.dataset} {c.method}" for c in changes if c.is_worse()]
    slow = [f"{c.dataset} {c.method}" for c in changes if c.is_slower(slower)]
    verdict = [f"**Worse than last night: {', '.join(worse)}.**"] * bool(worse)
    verdict += [f"**Slower than last night: {', '.join(slow)}.**"] * bool(slow)
    same_place = last["hardware"] == tonight["hardware"]
    table = of_texts("", COLUMNS, [_line(change, slower) for change in changes], left=("method", ""))
    return "\n".join([
        f"# {'Regressions' if verdict else 'No regression'}", "",
        *(verdict or ["Nothing got worse by more than chance explains, and nothing much slower."]), "",
        f"Tonight (commit `{tonight['commit'][:12]}`) against {_day(last)} (commit `{last['commit'][:12]}`).", "",
        *rows_in_markdown(table), "",
        "Metrics in percent, tonight minus last, on the same test documents; p by the paired bootstrap over "
        "documents and by McNemar's exact test (lowest seed), both after Holm over all methods. Worse: lower with "
        f"p < {LEVEL:g}, or by {100 * LEAST_LOSS:g} points and {LEAST_DOCUMENTS} documents, for the same code gives "
        f"the same bits. Slower: {slower:g} times the seconds of up to {MOST_NIGHTS} earlier nights or more, with "
        f"p < {SLOWER_LEVEL:g} (moderated t test, Holm); of fewer than {LEAST_NIGHTS} nights {max(slower, ALONE):g} "
        "times last night's, the interval over seeds leaving out 1."
        f"{explained(change.method for change in changes)}",
        *([] if same_place else [f"\nSeconds are not compared: {last['hardware']} then, {tonight['hardware']} now."]),
    ])  # fmt: skip


def _day(night: Night) -> str:
    return time.strftime("%d %B %Y %H:%M UTC", time.gmtime(night["begun"]))


def _line(change: Change, slower: float) -> list[str | Datum]:
    if change.note or change.last is None or change.tonight is None:
        return [change.dataset, change.method, *[""] * 7, change.note]
    unit = scale(change.metric)
    marks = ["worse"] * change.is_worse() + ["slower"] * change.is_slower(slower)
    return [
        change.dataset,
        change.method,
        f"{unit * change.last:.2f}",
        f"{unit * change.tonight:.2f} {heading(change.metric)}",
        f"{unit * (change.tonight - change.last):+.2f} ({unit * change.low:+.2f} to {unit * change.high:+.2f})",
        f"{change.p:.3g}",
        f"{change.mcnemar_p:.3g}",
        f"{change.last_seconds:.1f} → {change.seconds:.1f}",
        "-" if (ratio := change.ratio_before or change.ratio) is None else f"{ratio:.2f}",
        Datum(", ".join(marks), is_strong=bool(marks)),
    ]
