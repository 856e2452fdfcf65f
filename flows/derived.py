"""The flow `pieces`: make what a paper shows that is no result of a cell, cached and resumable."""

from typing import Any

from prefect import flow
from prefect.states import Completed, Failed, State

from textbench.flows.plan.cell import Protocol, Request
from textbench.flows.plan.derived import DerivedArtifact, plan_derived
from textbench.flows.results.rows import empty_row, spent
from textbench.flows.run.engine import execute
from textbench.flows.run.prefect_tasks import PrefectTasks
from textbench.flows.run.recorder import announce
from textbench.flows.run.run_names import run_name
from textbench.flows.run.workspace import home_folder
from textbench.tasks.storage.garbage import remove_leftovers
from textbench.tasks.storage.isolate import warm
from textbench.tasks.storage.store import Store


@flow(name="pieces", flow_run_name=lambda: run_name("stages", "datasets", "methods"), log_prints=False)
def pieces(
    stages: list[str],
    datasets: list[str],
    methods: list[str],
    seeds: list[int],
    protocol: Protocol = "honest",
    name: str = "pieces",
    rule: str | None = None,
    paper: str | None = None,
) -> State[Any]:
    """Make the artifact of every stage for every method on every data set, once a seed.

    The arguments are those of `flows.plan.cell.Request`; what is stored is not made again. The run fails when a piece
    fails; the others are finished first. Returns the flow's state.
    """
    request = Request(datasets, methods, seeds, protocol, name=name, rule=rule, paper=paper)
    planned = plan_derived(request, stages)
    store = Store(home_folder() / "store")
    remove_leftovers(store.root)
    stored = {piece.key for piece in planned if store.has(piece.reference)}
    if len(stored) < len(planned):
        warm()
    errors = []

    def finish(piece: DerivedArtifact, error: str | None) -> None:
        result = empty_row(piece, error, paper=paper, params={})
        if error is None:
            result |= spent(piece.references, store) | {"cached": piece.key in stored}
        else:
            errors.append(error)
        announce(piece, result | {"stage": piece.stage})

    execute(planned, store, PrefectTasks(), finish)
    if errors:
        return Failed(message=f"{len(errors)} of {len(planned)} pieces failed")
    return Completed(message=f"{len(planned)} pieces")
