"""The flow `pieces`: make what a paper shows that is no result of a cell, cached and resumable."""

import time
from typing import Any

from prefect import flow
from prefect.states import State

from textbench.flows.plan.derived import DerivedArtifact, plan_derived
from textbench.flows.plan.request import DerivedRequest
from textbench.flows.results.rows import empty_row, spent
from textbench.flows.run.engine import execute
from textbench.flows.run.features import let_features_go
from textbench.flows.run.prefect_tasks import PrefectTasks, state_of
from textbench.flows.run.recorder import announce
from textbench.flows.run.run_names import run_name
from textbench.flows.run.workspace import home_folder
from textbench.tasks.storage.garbage import reading, remove_leftovers
from textbench.tasks.storage.isolate import warm
from textbench.tasks.storage.store import Store


@flow(name="pieces", flow_run_name=run_name, log_prints=False)
def pieces(request: DerivedRequest) -> State[Any]:
    """Make the artifact of every stage for every method on every data set, once a seed; return a row of each.

    What is stored is not made again. The run fails when a piece fails; the others are finished first.
    """
    planned, begun = plan_derived(request), time.time()
    store = Store(home_folder() / "store")
    remove_leftovers(store.root)
    stored = {piece.key for piece in planned if store.has(piece.reference)}
    if len(stored) < len(planned):
        warm()
    rows: dict[str, dict[str, Any]] = {}

    def finish(piece: DerivedArtifact, error: str | None) -> None:
        result = empty_row(piece, error, paper=request.paper, params={}) | {"stage": piece.stage}
        if error is None:
            result |= spent(piece.references, store) | {"cached": piece.key in stored}
        rows[piece.key] = result
        announce(piece, result)

    with reading(store.root):
        execute(planned, store, PrefectTasks(), finish)
    in_order = [rows[piece.key] for piece in planned]
    if not request.keep_features:
        let_features_go(store, planned, in_order, begun)
    return state_of(in_order, "piece")
