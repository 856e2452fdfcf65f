"""The flows as Prefect's page offers them: forms with choices, bounds and defaults, in front of the flows of the house.

Each function here takes the fields of one form, runs the flow of the same name, and shows its results as artifacts of
the run. Choices are read from the catalogue when this module is imported, by the worker as it starts.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from prefect import flow
from prefect.states import Failed, State
from pydantic import Field

from textbench.flows import benchmark as sweeps
from textbench.flows import label_budget as budgets_flow
from textbench.flows import retrieval as retrieval_flow
from textbench.flows.plan.cell import Protocol, Request, plan
from textbench.flows.plan.learning_curves import curve_arguments, plan_curves
from textbench.flows.plan.suites import Part, read_suite
from textbench.flows.results import rankings
from textbench.flows.run import prefect_page
from textbench.flows.run.prefect_tasks import task_runner
from textbench.flows.run.run_names import FORM as NAME
from textbench.flows.run.run_names import run_name
from textbench.flows.run.workspace import folder_tag, home_folder
from textbench.tasks import InputError, catalogue
from textbench.tasks.rankers import names as ranker_names

PROTOCOLS_OWN = "the protocol's"

if TYPE_CHECKING:
    from prefect.deployments.runner import RunnerDeployment

    DataSet: TypeAlias = str
    Method: TypeAlias = str
    Collection: TypeAlias = str
    RankerName: TypeAlias = str
    Probe: TypeAlias = str
else:
    from textbench.evaluation.probes.catalogue import PROBES

    DataSet = Literal[tuple(catalogue.datasets())]
    Method = Literal[tuple(catalogue.methods())]
    Collection = Literal[tuple(catalogue.collections())]
    RankerName = Literal[tuple(ranker_names())]
    Probe = Literal[(PROTOCOLS_OWN, *PROBES)]

QUICK = read_suite("quick")
FEW_METHODS, FEW_RANKERS = ["tfidf", "nb"], ["bm25", "tfidf", "lm"]
BUDGETS, EVERY_COLLECTION = [100, 200, 500, 1000, 2000, 5000], list(rankings.COLLECTIONS)


def about(text: str, **bounds: Any) -> Any:
    """Return the pydantic field of a parameter: its description in the form, and its bounds."""
    # Prefect puts a description of its own, none, in the place of pydantic's; what is extra it leaves alone.
    return Field(json_schema_extra={"description": text}, **bounds)


Seeds = Annotated[int, about("Run seeds 0 .. N-1; intervals need at least 2.", ge=1, le=1000)]
Trials = Annotated[int, about("Settings tried for each method; 0 runs its defaults.", ge=0, le=10_000)]
DataSets = Annotated[
    list[DataSet], about("Data sets; what is not on this machine is downloaded.", min_length=1)
]
Methods = Annotated[list[Method], about("Methods to compare.", min_length=1)]
Protocols = Annotated[
    Protocol,
    about("honest learns from training texts alone; transductive also reads unlabelled test texts; faithful does what "
          "a paper did."),
]  # fmt: skip


@flow(
    name="benchmark",
    flow_run_name=lambda: run_name("datasets", "methods"),
    task_runner=task_runner("threads"),
)
def benchmark(
    datasets: DataSets = QUICK["datasets"],
    methods: Methods = QUICK["methods"],
    n_seeds: Seeds = 3,
    trials: Trials = 0,
    protocol: Protocols = "honest",
    probe: Annotated[Probe, about("The classifier.")] = PROTOCOLS_OWN,
    timed: Annotated[bool, about("One cell at a time, nothing cached: seconds to publish.")] = False,
    fresh: Annotated[bool, about("Compute everything again.")] = False,
    time_limit: Annotated[float, about("Seconds a stage may take; 0: no limit.", ge=0)] = 0,
    memory_limit: Annotated[float, about("Megabytes a stage may use; 0: no limit.", ge=0)] = 0,
) -> State[Any]:
    """Compare methods on data sets: a leaderboard with intervals over seeds. Finished work is kept and used again."""
    chosen = None if probe == PROTOCOLS_OWN else probe
    request = Request(datasets, methods, list(range(n_seeds)), protocol, trials, NAME, chosen)
    limits: dict[str, Any] = {"time_limit": time_limit or None, "memory_limit": memory_limit or None}
    return shown(
        "Leaderboard",
        lambda: plan(request),
        lambda: sweeps.benchmark.fn(**asdict(request), **limits, timed=timed, fresh=fresh),
    )


@flow(
    name="label_budget",
    flow_run_name=lambda: run_name("datasets", "methods"),
    task_runner=task_runner("threads"),
)
def label_budget(
    datasets: DataSets = QUICK["datasets"],
    methods: Methods = FEW_METHODS,
    budgets: Annotated[
        list[Annotated[int, Field(ge=1)]], about("Numbers of labelled training documents.", min_length=1)
    ] = BUDGETS,
    draws: Annotated[int, about("Random draws of labels; every method gets the same.", ge=1, le=1000)] = 5,
    stratified: Annotated[bool, about("Draw each class in proportion.")] = False,
    seed: Annotated[int, about("Seed of the methods.", ge=0, lt=2**32)] = 0,
    trials: Trials = 0,
    protocol: Protocols = "honest",
) -> State[Any]:
    """Draw label-budget curves: how good methods are when only some of the training documents have labels."""
    part = Part(
        Request(datasets, methods, [seed], protocol, trials, NAME),
        budgets=tuple(sorted(set(budgets))),
        draws=draws,
        stratified=stratified,
    )
    return shown(
        "Label-budget curves",
        lambda: plan_curves(part.request, part.budgets, part.draws, stratified=part.stratified),
        lambda: budgets_flow.label_budget.fn(**curve_arguments(part)),
    )


@flow(
    name="retrieval",
    flow_run_name=lambda: run_name("collections", "rankers"),
    task_runner=task_runner("threads"),
)
def retrieval(
    collections: Annotated[
        list[Collection], about("Collections of documents, queries and judgments.", min_length=1)
    ] = EVERY_COLLECTION,
    rankers: Annotated[list[RankerName], about("Rankers to compare.", min_length=1)] = FEW_RANKERS,
    n_seeds: Seeds = 1,
    trials: Annotated[
        int, about("Settings tried on other queries; 0 ranks by the defaults.", ge=0, le=10_000)
    ] = 30,
    n_folds: Annotated[int, about("Folds of queries that the choice is made over.", ge=2, le=100)] = 5,
    protocol: Annotated[
        Literal["honest", "faithful"],
        about("honest chooses on other queries; faithful keeps what was published."),
    ] = "honest",
    judgments: Annotated[
        Literal["positive", "nonzero"],
        about("positive: codes from 1 are relevant; nonzero: Cranfield's -1 too."),
    ] = "positive",
    fresh: Annotated[bool, about("Compute everything again.")] = False,
) -> State[Any]:
    """Rank collections of documents for their queries: MAP of queries that took no part in choosing parameters."""
    seeds = list(range(n_seeds))
    request = rankings.Request(collections, rankers, seeds, protocol, trials, n_folds, judgments)
    return shown(
        "Rankings",
        lambda: rankings.plan(request),
        lambda: retrieval_flow.retrieval.fn(**asdict(request), name=NAME, fresh=fresh),
    )


def shown(title: str, planned: Callable[[], Sequence[Any]], run: Callable[[], State[Any]]) -> State[Any]:
    """Run a flow with its progress shown, then show its results; input that no form can refuse fails the run.

    Returns the flow's state.
    """
    try:
        with prefect_page.watched(len(planned())) as rows:
            state = run()
    except InputError as error:
        return Failed(message=str(error))
    prefect_page.publish(home_folder(), rows, title, NAME)
    return state


def deployments(home: Path, cron: str | None = None, ending: str = "") -> "list[RunnerDeployment]":
    """Return the four deployments of a results folder; `nightly` has the schedule `cron` (UTC), unless it is None.

    Their names end in `ending` (`flows.servers.deployment_names`).
    """
    from prefect.flows import EntrypointType

    from textbench.flows.nightly import nightly

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
