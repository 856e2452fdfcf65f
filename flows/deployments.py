"""The flows as Prefect's page offers them: forms in front of the flows of the house.

Each function here runs the flow of the same name with what its form asks for, and shows its results as artifacts of the
run.
"""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect import flow
from prefect.states import Failed, State

from textbench.flows.nightly import nightly
from textbench.flows.plan.cell import plan
from textbench.flows.plan.forms import form
from textbench.flows.plan.request import BenchmarkRequest, LabelBudgetRequest, RetrievalRequest
from textbench.flows.plan.suites import read_suite
from textbench.flows.results import rankings
from textbench.flows.run import events, prefect_page
from textbench.flows.run.label_budgets import run_label_budgets
from textbench.flows.run.prefect_tasks import PrefectTasks, state_of, task_runner
from textbench.flows.run.rankings import run_rankings
from textbench.flows.run.run_names import FORM as NAME
from textbench.flows.run.run_names import run_name
from textbench.flows.run.sweep import run_sweep
from textbench.flows.run.workspace import folder_tag, home_folder
from textbench.tasks import InputError

if TYPE_CHECKING:
    from prefect.deployments.runner import RunnerDeployment

QUICK = read_suite("quick")


@flow(name="benchmark", flow_run_name=run_name, task_runner=task_runner("threads"))
@form(BenchmarkRequest, NAME, datasets=QUICK["datasets"], methods=QUICK["methods"], seeds=3)
def benchmark(request: BenchmarkRequest) -> State[Any]:
    """Compare methods on data sets: a leaderboard with intervals over seeds. Finished work is kept and used again."""
    return shown("Leaderboard", lambda: plan(request), lambda: run_sweep(request, PrefectTasks()))


@flow(name="label_budget", flow_run_name=run_name, task_runner=task_runner("threads"))
@form(LabelBudgetRequest, NAME, datasets=QUICK["datasets"], methods=["tfidf", "nb"])
def label_budget(request: LabelBudgetRequest) -> State[Any]:
    """Draw label-budget curves: how good methods are when only some of the training documents have labels."""
    return shown(
        "Label-budget curves", lambda: plan(request), lambda: run_label_budgets(request, PrefectTasks())
    )


@flow(name="retrieval", flow_run_name=run_name, task_runner=task_runner("threads"))
@form(RetrievalRequest, NAME, rankers=["bm25", "tfidf", "lm"], seeds=1)
def retrieval(request: RetrievalRequest) -> State[Any]:
    """Rank collections of documents for their queries: MAP of queries that took no part in choosing parameters."""
    return shown("Rankings", lambda: rankings.plan(request), lambda: run_rankings(request, PrefectTasks()))


def shown(
    title: str, planned: Callable[[], Sequence[Any]], run: Callable[[], list[dict[str, Any]]]
) -> State[Any]:
    """Run cells with their progress shown, then show their results; input that no form can refuse fails the run.

    Returns the flow's state.
    """
    try:
        cells = planned()
        with prefect_page.watched(len(cells)), events.watched(home_folder()):
            rows = run()
    except InputError as error:
        return Failed(message=str(error))
    prefect_page.publish(home_folder(), rows, title, NAME)
    prefect_page.show_lineage(home_folder(), cells)
    return state_of(rows)


def deployments(home: Path, cron: str | None = None, ending: str = "") -> "list[RunnerDeployment]":
    """Return the four deployments of a results folder; `nightly` has the schedule `cron` (UTC), unless it is None.

    Their names end in `ending` (`flows.servers.deployment_names`).
    """
    from prefect.flows import EntrypointType

    asked: dict[Any, dict[str, Any]] = {
        benchmark: {"tags": ["classification"]},
        label_budget: {"tags": ["classification", "curves"]},
        retrieval: {"tags": ["retrieval"]},
        nightly: {"tags": ["classification", "regression-watch"], "cron": cron},
    }
    return [
        one.to_deployment(
            f"{NAME if one is not nightly else 'nightly'}{ending}",
            description=f"{inspect.cleandoc(one.description)}\n\nResults: `{home}`",
            tags=["textbench", folder_tag(home), *options.pop("tags")],
            entrypoint_type=EntrypointType.MODULE_PATH,
            enforce_parameter_schema=True,
            paused=False,  # the last worker paused it as it ended
            **options,
        )
        for one, options in asked.items()
    ]
