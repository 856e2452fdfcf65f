"""The flow `retrieval`: rank every collection by every ranker, cached, tracked and resumable."""

from typing import Any

from prefect import flow
from prefect.states import State

from textbench.flows.plan.request import RetrievalRequest
from textbench.flows.run.prefect_tasks import PrefectTasks, state_of
from textbench.flows.run.rankings import run_rankings
from textbench.flows.run.run_names import run_name


@flow(name="retrieval", flow_run_name=run_name, log_prints=False)
def retrieval(request: RetrievalRequest) -> State[Any]:
    """Rank every collection by every ranker, once a seed, record each result in MLflow, return their rows.

    With `fresh` nothing stored before is used. The run fails when a cell fails; the other cells are finished first.
    """
    return state_of(run_rankings(request, PrefectTasks()))
