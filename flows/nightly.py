"""The flow `nightly`: compute everything anew, timed, and say what got worse since the last night."""

import time
from dataclasses import asdict
from typing import Annotated, Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.states import Failed, State

from textbench.flows import benchmark as sweeps
from textbench.flows.deployments import QUICK, DataSets, Methods, Protocols, Seeds, Trials, about
from textbench.flows.plan.cell import Request, plan
from textbench.flows.results import regressions
from textbench.flows.run import prefect_page
from textbench.flows.run.prefect_tasks import task_runner
from textbench.flows.run.run_names import run_name
from textbench.flows.run.workspace import home_folder
from textbench.flows.tables.words import counted
from textbench.tasks import InputError

NAME = "nightly"


@flow(
    name="nightly", flow_run_name=lambda: run_name("datasets", "methods"), task_runner=task_runner("threads")
)
def nightly(
    datasets: DataSets = QUICK["datasets"],
    methods: Methods = QUICK["methods"],
    n_seeds: Seeds = 3,
    trials: Trials = 0,
    protocol: Protocols = "honest",
    slower: Annotated[
        float, about("How many times as long counts as a regression in speed.", gt=1, le=100)
    ] = 1.5,
) -> State[Any]:
    """Compute everything anew, one cell at a time, and mark what got worse or slower since the last night.

    A regression fails the run, so that it is seen; so does a cell that fails. Returns the flow's state.
    """
    asked = asdict(Request(datasets, methods, list(range(n_seeds)), protocol, trials, NAME))
    home = home_folder()
    begun = time.time()
    try:
        cells = plan(Request(**asked))
        with prefect_page.watched(len(cells)) as rows:
            state = sweeps.benchmark.fn(**asked, timed=True, fresh=True)
    except InputError as error:
        return Failed(message=str(error))
    prefect_page.publish(home, rows, "Tonight", NAME)
    tonight = regressions.keep(home, asked, cells, rows, begun)
    last = regressions.last_night(home, tonight)
    changes = regressions.compare(last, tonight) if last else []
    text = regressions.report(last, tonight, changes, slower)
    create_markdown_artifact(text, key="nightly", description="Tonight against the last night")
    n_worse = sum(change.is_worse() or change.is_slower(slower) for change in changes)
    if n_worse and not state.is_failed():
        return Failed(
            name="Regressed", message=f"{n_worse} of {counted(len(changes), 'method')} got worse or slower"
        )
    return state
