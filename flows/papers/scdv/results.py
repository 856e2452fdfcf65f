"""The finished cells of the SCDV suite and what they are held against, and how figures over runs are put."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textbench.evaluation.claims.published import Claim, read_claims
from textbench.evaluation.statistics.intervals import mean_interval
from textbench.flows.papers import Done
from textbench.flows.papers.scdv.answers import PAPER
from textbench.flows.plan.cell import Cell
from textbench.flows.referee.ledger import LedgerEntry
from textbench.flows.results.metric_names import HEADINGS, scale
from textbench.tasks.storage.files import META, read_meta
from textbench.tasks.storage.store import Store


@dataclass(frozen=True)
class SuiteResults:
    """What the suite has finished: rows by data set, method, protocol and seed, and the ledger by claim."""

    home: Path
    parts: Sequence[Done]
    entries: Mapping[str, LedgerEntry]

    def runs(self, dataset: str, method: str, protocol: str = "faithful") -> dict[int, dict[str, Any]]:
        """Return the rows of a method by seed."""
        found = [
            row
            for part in self.parts
            for cell, row in part.found
            if (cell.dataset, cell.method, cell.protocol) == (dataset, method, protocol)
        ]
        return {row["seed"]: row for row in found}

    def values(self, dataset: str, method: str, metric: str, protocol: str = "faithful") -> list[float]:
        """Return a metric of a method, a figure a seed, rates in percent."""
        rows = self.runs(dataset, method, protocol).values()
        return [scaled(metric, row["metrics"][metric]) for row in rows if metric in row["metrics"]]

    def remarks(self, *datasets: str, protocol: str = "faithful") -> str:
        """Say what is missing of the cells of these data sets, and what earlier code ran."""
        cells = {
            cell.key
            for part in self.parts
            for cell in part.cells
            if cell.dataset in datasets and cell.protocol == protocol and not part.part.is_derived
        }
        kept = [
            (cell.key, row.get("key", cell.key))
            for part in self.parts
            for cell, row in part.found
            if cell.key in cells
        ]
        n_found, n_earlier = len({key for key, _ in kept}), len({k for k, other in kept if k != other})
        missing = "" if n_found == len(cells) else f" {n_found} of {len(cells)} cells are finished so far."
        return missing + (f" Cells that earlier code ran: {n_earlier}." if n_earlier else "")

    def words_per_second(self, cell: Cell, row: Mapping[str, Any]) -> float | None:
        """Return the words that a run's training of word vectors read a second; None where it did not train any."""
        store, vectors = Store(self.home / "store"), cell.references.get("word_vectors")
        seconds = row["seconds"].get("word_vectors")
        if vectors is None or not seconds or not store.has(vectors):
            return None
        training = store.open(vectors).json("training")
        return float(training["n_tokens"] * training["epochs"] / seconds)

    def n_at_border(self, dataset: str, method: str, protocol: str = "faithful") -> int:
        """Return how many runs chose the smallest or largest C of those tried: a wider grid might do better."""
        return sum("C" in row["on_border"] for row in self.runs(dataset, method, protocol).values())

    def n_empty(self, dataset: str, method: str, protocol: str = "faithful") -> int | None:
        """Return how many training and test documents have features that are all zero; None where nobody counted."""
        store = Store(self.home / "store")
        for part in self.parts:
            for cell, _ in part.found:
                asked = (cell.dataset, cell.method, cell.protocol)
                if asked != (dataset, method, protocol):
                    continue
                path = store.folder(cell.references["featurize"]) / META  # it outlives the features
                if path.exists():
                    meta = read_meta(path)
                    return sum(meta["zero_rows"].values()) if "zero_rows" in meta else None
        return None


def scaled(metric: str, value: float) -> float:
    """Return a rate in percent, a number of labels as it is."""
    return scale(metric) * value


def claims_of(place: str) -> list[Claim]:
    """Return the paper's claims of one place, as in "table-2"."""
    return [claim for claim in read_claims() if (claim.paper, claim.place) == (PAPER, place)]


def id_of(place: str, name: str, metric: str) -> str:
    """Return the id of the claim on a method's metric at a place."""
    return f"{PAPER}/{place}/{name.lower()}/{metric}"


def is_of(claim: Claim, place: str, name: str, metric: str) -> bool:
    """Tell whether a claim is on this method's metric at this place."""
    return (claim.place, claim.method, claim.metric_here) == (place, name, metric)


def figures(values: Sequence[float], entry: LedgerEntry | None) -> list[Any]:
    """Return a figure, its interval and its number of runs: those that its claim is judged by, where it has any.

    They count recorded seeds beside the runs of this folder; without a claim a figure is the mean of `values`.
    """
    found = entry.fresh if entry else None
    if found is None:
        return summary(values) if values else [None, None, None, 0]
    return [*map(rounded, (found.value, found.low, found.high)), len(found.rows)]


def summary(values: Sequence[float]) -> list[Any]:
    """Return a mean, its 95 % interval (none for one value), and how many values there are."""
    mean, half = mean_interval(values)
    bounds = [None, None] if half != half else [rounded(mean - half), rounded(mean + half)]
    return [rounded(mean), *bounds, len(values)]


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, rounded; None without values."""
    return rounded(sum(values) / len(values)) if values else None


def less(values: Sequence[float], base: Sequence[float]) -> float | None:
    """Return the mean less that of `base`, rounded; None where either has no values."""
    return rounded(sum(values) / len(values) - sum(base) / len(base)) if values and base else None


def rounded(value: float | None) -> float | None:
    """Return a value to three places, None as it is."""
    return None if value is None else round(value, 3)


def short(metric: str) -> str:
    """Return a metric's heading; those of labels that score above 0 go by their plain names."""
    return HEADINGS[metric.removesuffix("_zero")]
