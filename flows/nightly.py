"""The flow `nightly`: compute everything anew, timed, and say what got worse since the last night."""

import time
from dataclasses import asdict
from typing import Annotated, Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.states import Failed, State

from flows import artifacts, nights
from flows import benchmark as sweeps
from flows.cells import Request, plan
from flows.deployments import QUICK, DataSets, Methods, Protocols, Seeds, Trials, about
from flows.engine import task_runner
from flows.home import home_folder
from flows.run_names import run_name
from flows.words import counted
from tasks import InputError

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

    A regression fails the run, so that it is seen; so does a cell that fails.
    """
    asked = asdict(Request(datasets, methods, list(range(n_seeds)), protocol, trials, NAME))
    home = home_folder()
    begun = time.time()
    try:
        cells = plan(Request(**asked))
        with artifacts.watched(len(cells)) as rows:
            state = sweeps.benchmark.fn(**asked, timed=True, fresh=True)
    except InputError as error:
        return Failed(message=str(error))
    artifacts.publish(home, rows, "Tonight", NAME)
    tonight = nights.keep(home, asked, cells, rows, begun)
    last = nights.last_night(home, tonight)
    changes = nights.compare(last, tonight) if last else []
    text = nights.report(last, tonight, changes, slower)
    create_markdown_artifact(text, key="nightly", description="Tonight against the last night")
    n_worse = sum(change.is_worse() or change.is_slower(slower) for change in changes)
    if n_worse and not state.is_failed():
        return Failed(
            name="Regressed", message=f"{n_worse} of {counted(len(changes), 'method')} got worse or slower"
        )
    return state
