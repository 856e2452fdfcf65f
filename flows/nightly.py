"""The flow `nightly`: compute everything anew, timed, and say what got worse since the last night."""

import time
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.states import Failed, State

from textbench.flows.plan.cell import plan
from textbench.flows.plan.forms import form
from textbench.flows.plan.request import Asked, BenchmarkRequest, Request
from textbench.flows.plan.suites import read_suite
from textbench.flows.results import regressions
from textbench.flows.run import events, prefect_page
from textbench.flows.run.prefect_tasks import PrefectTasks, state_of, task_runner
from textbench.flows.run.run_names import run_name
from textbench.flows.run.sweep import run_sweep
from textbench.flows.run.workspace import home_folder
from textbench.tasks import InputError
from textbench.tasks.words import counted

NAME = "nightly"
QUICK = read_suite("quick")


@dataclass(frozen=True)
class NightlyRequest(Request):
    """A sweep to repeat every night, and from where on it counts as slower."""

    slower: Annotated[
        float, Asked("How many times as long counts as a regression in speed.", gt=1, le=100)
    ] = 1.08


@flow(name=NAME, flow_run_name=run_name, task_runner=task_runner("threads"))
@form(NightlyRequest, NAME, datasets=QUICK["datasets"], methods=QUICK["methods"], seeds=3)
def nightly(request: NightlyRequest) -> State[Any]:
    """Compute everything anew, one cell at a time, and mark what got worse or slower since the last night.

    A regression fails the run, so that it is seen; so does a cell that fails. Returns the flow's state.
    """
    asked = asdict(request.alone())
    anew = BenchmarkRequest(**asked, timed=True, fresh=True)
    home = home_folder()
    begun = time.time()
    try:
        cells = plan(anew)
        with prefect_page.watched(len(cells)), events.watched(home):
            rows = run_sweep(anew, PrefectTasks())
    except InputError as error:
        return Failed(message=str(error))
    prefect_page.publish(home, rows, "Tonight", NAME)
    prefect_page.show_lineage(home, cells)
    tonight = regressions.keep(home, asked, cells, rows, begun)
    last = regressions.last_night(home, tonight)
    changes = regressions.compare(last, tonight, regressions.earlier_nights(home, tonight)) if last else []
    text = regressions.report(last, tonight, changes, request.slower)
    create_markdown_artifact(text, key="nightly", description="Tonight against the last night")
    events.regressed(changes, request.slower)
    n_worse = sum(change.is_worse() or change.is_slower(request.slower) for change in changes)
    state = state_of(rows)
    if n_worse and not state.is_failed():
        return Failed(
            name="Regressed", message=f"{n_worse} of {counted(len(changes), 'method')} got worse or slower"
        )
    return state
