"""The compressive-features paper's figures, read from their artifacts, and the tests that answer its sentences.

An error has two forms: `on_test`, the classifier's constants chosen by the error on the test documents as in the paper,
and `tuned`, chosen by cross-validation on training documents.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textbench.evaluation.claims.verdicts import Comparison
from textbench.evaluation.statistics.intervals import mean_interval
from textbench.evaluation.statistics.significance import (
    bootstrap,
    detectable_by_bootstrap,
    detectable_difference,
    holm,
    paired_difference,
    paired_t,
)
from textbench.evaluation.statistics.sufficient_statistics import SufficientStatistics, mean_tally
from textbench.flows.papers.compressive import derived as plans
from textbench.flows.plan.derived import DerivedArtifact
from textbench.tasks.storage.store import Artifact, Store

if TYPE_CHECKING:
    import numpy as np


SUITE, PAPER = "compressive", "compressive-features-2013"
TUNINGS = ("on_test", "tuned")
N_BARS = 100  # bootstraps of the test documents behind the bars of figure 2
OURS = "compressed"
# Figure 2's rows by method and protocol, in the paper's letters.
ROWS = {
    ("lz77(order='by_class')", "honest"): "AG",
    ("lz77(order='by_class_reversed')", "honest"): "GA",
    ("lz77(order='random')", "honest"): "random",
    ("lz77(order='alternating')", "honest"): "alternating",
    ("compressive", "transductive"): OURS,
    ("compressive", "honest"): f"{OURS}, training documents alone",
}
LZ77 = ("AG", "GA", "random", "alternating")
# A difference, its p, and the difference that one of so many tests would find four times in five.
Tested = tuple[float, float, Callable[[int], float | None]]


def stored(home: Path, pieces: Iterable[DerivedArtifact]) -> list[tuple[DerivedArtifact, Artifact]]:
    """Return the pieces whose artifacts are there, opened."""
    store = Store(home / "store", isolated=False)
    return [(piece, store.open(piece.reference)) for piece in pieces if store.has(piece.reference)]


def made(home: Path, figure: str) -> list[tuple[DerivedArtifact, Artifact]]:
    """Return what is there of a figure of `derived.PLANS`."""
    return stored(home, plans.PLANS[figure]())


@dataclass(frozen=True)
class Order:
    """A row of figure 2: over its random orders the share of right answers of each test document, and the errors.

    right: by tuning, (n_documents,). error and bar (one standard error, bootstrapped) are fractions, by tuning.
    """

    name: str
    n_orders: int
    n_features: int
    right: "Mapping[str, np.ndarray]"
    error: Mapping[str, float]
    bar: Mapping[str, float]


def orders(home: Path) -> list[Order]:
    """Return the rows of figure 2 that are there, in the paper's order."""
    import numpy as np

    groups: dict[str, list[tuple[DerivedArtifact, Artifact]]] = {}
    for piece, artifact in made(home, "lz77-orders"):
        groups.setdefault(ROWS[piece.method, piece.protocol], []).append((piece, artifact))
    found = []
    for name in (name for name in ROWS.values() if name in groups):
        tables = [artifact.table("predictions") for _, artifact in groups[name]]
        right = {
            tuning: np.mean([t[tuning].to_numpy() == t["target"].to_numpy() for t in tables], axis=0)
            for tuning in TUNINGS
        }
        bars = {t: float(bootstrap([mean_tally(values)], N_BARS).std()) for t, values in right.items()}
        errors = {tuning: 1 - float(values.mean()) for tuning, values in right.items()}
        n_features = width(home, groups[name][0][0])
        found.append(Order(name, len(tables), n_features, right, errors, bars))
    return found


def width(home: Path, piece: DerivedArtifact) -> int:
    """Return the number of features that a piece is made of; 0 where they are no longer stored."""
    store = Store(home / "store", isolated=False)
    reference = piece.references["featurize"]
    return n_columns(store.folder(reference)) if store.has(reference) else 0


def n_columns(folder: Path) -> int:
    """Return the number of columns of a stored features artifact, without reading its values."""
    import numpy as np

    dense = folder / "train.npy"
    if dense.exists():
        return int(np.load(dense, mmap_mode="r").shape[1])
    with np.load(folder / "train.npz", allow_pickle=False) as arrays:
        return int(arrays["shape"][1])


def order_comparisons(home: Path) -> list[Comparison]:
    """Return tests of figure 2's sentence under the paper's tuning, paired by test document; [] until all is there."""
    tallies = {row.name: mean_tally(row.right["on_test"]) for row in orders(home)}
    pairs = [("alternating", other) for other in LZ77[:3]] + [(OURS, other) for other in LZ77]
    if not all(name in tallies for pair in pairs for name in pair):
        return []
    return _corrected([
        (f"{_long(better)} against {_long(worse)}", _bootstrapped(tallies[better], tallies[worse]))
        for better, worse in pairs
    ])  # fmt: skip


def _long(name: str) -> str:
    return name if name == OURS else f"LZ77 {name}"


def _bootstrapped(better: SufficientStatistics, worse: SufficientStatistics) -> Tested:
    draws = bootstrap([better, worse]) @ [1, -1]
    found = paired_difference(better, worse, draws)
    return found.value, found.p, partial(detectable_by_bootstrap, draws)


def _corrected(tested: Sequence[tuple[str, Tested]]) -> list[Comparison]:
    corrected = holm([p for _, (_, p, _) in tested])
    return [
        Comparison(name, gap, p, detectable=detectable(len(tested)))
        for (name, (gap, _, detectable)), p in zip(tested, corrected, strict=True)
    ]


@dataclass(frozen=True)
class SharePoint:
    """A line of figure 4 at a share: by tuning the errors by draw; right: of a draw of all, by test document."""

    documents: int
    errors: Mapping[str, Mapping[int, float]]
    right: "Mapping[str, np.ndarray] | None" = None

    @property
    def n_draws(self) -> int:
        """How many draws are there."""
        return len(self.errors["tuned"])

    def mean(self, tuning: str) -> tuple[float, float]:
        """Return the mean error and the half width of its 95 % interval over draws, nan for one draw."""
        return mean_interval(list(self.errors[tuning].values()))


def lines(home: Path, figure: str) -> dict[str, dict[float, SharePoint]]:
    """Return the lines of figure 4 by name and share, as far as their draws are there."""
    names = {(line.method, line.penalty, line.known): line.name for line in plans.LINES}
    draws: dict[tuple[str, float], list[dict[str, Any]]] = {}
    whole: dict[tuple[str, float], dict[str, np.ndarray]] = {}
    for piece, artifact in made(home, figure):
        params = piece.reference.params
        place = (names[piece.method, params["penalty"], params["known"]], params["share"])
        draws.setdefault(place, []).extend(artifact.json("draws"))
        if params["share"] == 1:
            table = artifact.table("predictions")
            whole[place] = {t: table[t].to_numpy() == table["target"].to_numpy() for t in TUNINGS}
    found: dict[str, dict[float, SharePoint]] = {}
    for (name, share), each in sorted(draws.items(), key=lambda item: item[0][1]):
        errors = {tuning: {one["draw"]: one[tuning]["error"] for one in each} for tuning in TUNINGS}
        found.setdefault(name, {})[share] = SharePoint(each[0]["documents"], errors, whole.get((name, share)))
    return {line.name: found[line.name] for line in plans.LINES if line.name in found}


def line_comparisons(home: Path, figure: str) -> list[Comparison]:
    """Return tests of figure 4's sentence under the paper's tuning at every share; [] until every share is there.

    Shares are paired by draw (Student's paired t); all documents, of which there is one draw, by test document.
    """

    found = lines(home, figure)
    others = [line.name for line in plans.LINES if line.name != OURS and not line.known]
    tested = []
    for share in (*plans.SHARES, 1.0):
        for other in others:
            own, theirs = found.get(OURS, {}).get(share), found.get(other, {}).get(share)
            if own is None or theirs is None:
                return []
            if own.right is not None and theirs.right is not None:
                result = _bootstrapped(mean_tally(own.right["on_test"]), mean_tally(theirs.right["on_test"]))
            else:
                errors = theirs.errors["on_test"], own.errors["on_test"]
                result = (*paired_t(*errors), partial(detectable_difference, *errors))
            tested.append((f"{OURS} against {other} at {100 * share:.0f} % of the documents", result))
    return _corrected(tested)
