"""The flow `benchmark`: run every cell of a sweep, cached, tracked and resumable, and write its rows."""

from typing import Any

from prefect import flow
from prefect.states import State

from textbench.flows.plan.request import BenchmarkRequest
from textbench.flows.run import events
from textbench.flows.run.prefect_tasks import PrefectTasks, state_of
from textbench.flows.run.run_names import run_name
from textbench.flows.run.sweep import run_sweep
from textbench.flows.run.workspace import home_folder


@flow(name="benchmark", flow_run_name=run_name, log_prints=False)
def benchmark(request: BenchmarkRequest) -> State[Any]:
    """Run every method on every data set, once a seed, record each cell in the index and in MLflow, return their rows.

    The run fails when a cell fails; the other cells are finished first.
    """
    with events.watched(home_folder()):
        return state_of(run_sweep(request, PrefectTasks()))
