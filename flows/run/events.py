"""Events on Prefect's server, for automations: a cell that failed, a method that got worse, a new best on a data set.

`textbench.cell.failed` comes as the cell fails, the others at the end of a run. The resource of an event is
`textbench.DATA-SET.METHOD`; its payload says the rest. Outside a flow run nothing is sent.
"""

import contextlib
import logging
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from textbench.evaluation.metrics.multilabel import is_of_several_labels
from textbench.flows.results.index import Index
from textbench.flows.results.regressions import Change
from textbench.flows.results.runs import is_whole
from textbench.flows.results.summary import latest, settings_of

FAILED, REGRESSED, RECORD = "textbench.cell.failed", "textbench.regressed", "textbench.record"
Row = Mapping[str, Any]

log = logging.getLogger("textbench")


def send(event: str, dataset: str, method: str, payload: Mapping[str, Any]) -> None:
    """Send an event of the flow run that is under way; a server that cannot be told is no reason to stop."""
    from prefect.context import FlowRunContext
    from prefect.events import emit_event

    if FlowRunContext.get() is None:
        return
    resource = {
        "prefect.resource.id": f"textbench.{dataset}.{method}",
        "prefect.resource.name": f"{method} on {dataset}",
        "textbench.dataset": dataset,
        "textbench.method": method,
    }
    with contextlib.suppress(Exception):
        emit_event(event, resource, payload=dict(payload))


class Failures(logging.Handler):
    """Listens to a flow, and sends an event for each cell that fails."""

    def emit(self, record: logging.LogRecord) -> None:
        """Take one event of the flow."""
        row = getattr(record, "row", None)
        if row and row["error"]:
            about = {"protocol": row["protocol"], "seed": row["seed"], "error": row["error"]}
            send(FAILED, row["dataset"], row["method"], about)


@contextlib.contextmanager
def watched(home: Path) -> Iterator[None]:
    """Send events of the sweep that runs inside: failures as they come, records at its end."""
    before = Index(home).rows()
    handler = Failures(logging.INFO)
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
    for dataset, method, payload in records(before, Index(home).rows()):
        send(RECORD, dataset, method, payload)


def records(before: Iterable[Row], after: Iterable[Row]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return who is best now where another was, or its own mean was lower: (data set, method, what about it).

    Means over seeds, of one data set's documents under one protocol; where nothing was finished, nothing is beaten.
    Methods are told apart by their trials and settings; points of label-budget curves are no rivals.
    """
    then, found = _best(before), []
    for place, (name, mean, n_seeds) in _best(after).items():
        dataset, _, protocol, metric = place
        # Sums of floats in another order are no gain.
        if place in then and mean > then[place][1] + 1e-9:
            about = {"protocol": protocol, "metric": metric, "value": mean, "seeds": n_seeds}
            about |= {"before": then[place][1], "method_before": then[place][0][0]}
            found.append((dataset, name[0], about))
    return found


def _best(rows: Iterable[Row]) -> dict[tuple[str, str, str, str], tuple[tuple[Any, ...], float, int]]:
    """Return the best method, its mean and seeds, by data set, its documents, protocol and metric."""
    values: dict[tuple[str, str, str, str], dict[tuple[Any, ...], list[float]]] = {}
    for row in latest(row for row in rows if is_whole(row)):
        metric = "micro_f1" if is_of_several_labels(row["metrics"]) else "accuracy"
        if metric not in row["metrics"]:
            continue
        place = (
            row["dataset"],
            (row.get("corpus") or {}).get("documents_sha256", ""),
            row["protocol"],
            metric,
        )
        name = (row["method"], int(row["trials"]), *settings_of(row))
        values.setdefault(place, {}).setdefault(name, []).append(row["metrics"][metric])
    found = {}
    for place, of_methods in values.items():
        means = {name: statistics.fmean(seeds) for name, seeds in of_methods.items()}
        best = max(means, key=lambda name: means[name])
        found[place] = best, means[best], len(of_methods[best])
    return found


def regressed(changes: Sequence[Change], slower: float) -> None:
    """Send an event for each method that got worse or slower since the last night."""
    for change in changes:
        worse, slow = change.is_worse(), change.is_slower(slower)
        if worse or slow:
            about = {
                "worse": worse, "slower": slow, "metric": change.metric, "last": change.last, "tonight": change.tonight,
                "p": change.p, "last_seconds": change.last_seconds, "seconds": change.seconds,
                "ratio": change.ratio_before or change.ratio,
            }  # fmt: skip
            send(REGRESSED, change.dataset, change.method, about)
