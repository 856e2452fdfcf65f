"""What answers the sentences of the compressive-features paper: its figures' artifacts, and sizes and costs of runs."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from textbench.evaluation.claims.published import Claim
from textbench.evaluation.claims.verdicts import Comparison
from textbench.flows.papers.compressive import derived as plans
from textbench.flows.papers.compressive import results as figures
from textbench.flows.referee.measurement import FaithfulRuns, Measurement, Row, exact
from textbench.flows.results.runs import Run
from textbench.tasks import InputError, catalogue, featurize
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Artifact, Store

PAPER = figures.PAPER
METRICS = ("error-order", "binary-to-relaxed-objective", "feature-count-ratio", "cross-validation-hours")
METHOD, ALL = "compressive", "kgrams"
FIGURES = {
    "cfl-2013/figure-2/order": "lz77-orders",
    "cfl-2013/figure-4/ag": "resamples-ag",
    "cfl-2013/figure-4/bh": "resamples-bh",
}


def answers(results: FaithfulRuns) -> Callable[["Claim"], Measurement | None]:
    """Return what answers a claim about one of `METRICS`: None while its artifacts are missing."""
    return partial(_answer, results)


def _answer(results: FaithfulRuns, claim: Claim) -> Measurement | None:
    if claim.id in FIGURES:
        return _figure(results, claim.id)
    rows = list(results.runs(claim).values())
    if not rows:
        return None
    if claim.metric == "cross-validation-hours":
        hours = sum(trial["seconds"] for trial in _choice(results, rows[-1])["trials"]) / 3600
        return Measurement("one run", hours, hours, rows=rows)
    if claim.metric == "feature-count-ratio":
        return _ratio(results, rows)
    gaps = [gap for row in _of_method(results, claim) for gap in _gaps(results, row)]
    return exact("certified bounds", max(gaps), rows) if gaps else None


def _figure(results: FaithfulRuns, id_: str) -> Measurement | None:
    plan = FIGURES[id_]
    is_orders = plan == "lz77-orders"
    home = results.home
    tested: Sequence[Comparison] = (
        figures.order_comparisons(home) if is_orders else figures.line_comparisons(home, plan)
    )
    if not tested:
        return None
    rows = [
        {"method": piece.method, "seed": piece.seed, "trials": 0, "params": {}, "protocol": "faithful"}
        | {"run_id": None, "key": piece.key, "paper": figures.PAPER, "documents": piece.references["classes"]}
        | {"dataset": piece.dataset}
        for piece in plans.PLANS[plan]()
    ]
    return Measurement("order", comparisons=tested, rows=rows)


def _of_method(results: FaithfulRuns, claim: Claim) -> list[Row]:
    """Return the runs of compressed features on the claim's data, whatever their parameters."""
    return [
        row
        for row in results.rows
        if (row["dataset"], row.get("paper")) == (claim.dataset_here, claim.paper)
        and catalogue.parse_method(row["method"])[0] == METHOD
    ]


def _choice(results: FaithfulRuns, row: Row) -> dict[str, Any]:
    return dict(Run(results.home, row).open("choice").json("choice"))


def _gaps(results: FaithfulRuns, row: Row) -> Iterator[float]:
    """Yield the cost over its lower bound of every compression that a run tried and that is stored."""
    for trial in _choice(results, row)["trials"]:
        if trial["state"] != "failed":
            stored = _stored(results, _features(results, row, METHOD, trial["params"]))
            if stored is not None:
                model = stored.json("model")
                yield model["objective_"] / model["lower_bound_"]


def _ratio(results: FaithfulRuns, rows: list[Row]) -> Measurement | None:
    """All 5-grams for each compressed feature, of the same documents."""
    chosen = _choice(results, rows[-1])["params"]
    found = [
        _stored(results, _features(results, rows[-1], name, params))
        for name, params in ((ALL, {}), (METHOD, chosen))
    ]
    n_all, n_compressed = (figures.n_columns(stored.folder) if stored else 0 for stored in found)
    if not n_all or not n_compressed:
        return None
    return exact("one compression", n_all / n_compressed, rows)


def _features(results: FaithfulRuns, row: Row, method: str, params: dict[str, Any]) -> Reference:
    return featurize.reference(
        Run(results.home, row).reference.inputs["vectors"], method, params, row["seed"]
    )


def _stored(results: FaithfulRuns, reference: Reference) -> Artifact | None:
    store = Store(results.home / "store", isolated=False)
    if not store.has(reference):
        return None
    try:
        return store.open(reference)
    except OSError as error:
        raise InputError(f"the features {reference.key[:12]} cannot be read: {error.strerror}") from error
