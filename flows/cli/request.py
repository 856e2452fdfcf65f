"""What the options of `textbench run` ask for, checked, as a request."""

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textbench.tasks import InputError

if TYPE_CHECKING:
    from textbench.flows.plan.cell import Request

PROTOCOLS = ("honest", "transductive", "faithful")
ENGINES = ("threads", "dask")
MAX_SEEDS = 1000

# The options that several commands have.
DataDir = Annotated[
    Path | None, typer.Option(help="Folder of data archives.", show_default="$TEXTBENCH_DATA_DIR")
]
Engine = Annotated[str, typer.Option(help="threads, or dask for worker processes.")]
Address = Annotated[
    str | None,
    typer.Option(
        help="With dask: a cluster's scheduler, tls://HOST:PORT, or tcp:// on this machine.",
        show_default=False,
    ),
]


def use_jobs(jobs: int | None) -> int | None:
    """Have the flow that a command runs compute at most so many stages at once.

    Returns how many, None for no limit. Raises InputError for fewer than 1.
    """
    from textbench.tasks.storage.isolate import JOBS, n_jobs

    if jobs is not None:
        if jobs < 1:
            raise InputError(f"--jobs must be at least 1, got {jobs}")
        os.environ[JOBS] = str(jobs)
    return n_jobs()


# Declaring it is all a command has to do.
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        help="Stages computed at once.",
        show_default="$TEXTBENCH_JOBS, or the machine's cores",
        callback=use_jobs,
    ),
]
Paper = Annotated[
    str | None,
    typer.Option(help="With faithful: whose protocol, such as scdv-2017.", show_default="the method's"),
]
Probe = Annotated[
    str | None,
    typer.Option(help="linear-svm, logistic-regression or elastic-net.", show_default="the protocol's"),
]
Folds = Annotated[int | None, typer.Option(help="Folds of the cross-validation.", show_default="3")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Compute everything again.")]
CellsAsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON Lines, one object a cell, and nothing else.")
]


def refuse_beside(suite: str, context: typer.Context, accepted: Collection[str]) -> None:
    """Refuse any option of the command that was given beside a suite of parts and is not one of `accepted`."""
    flags = {
        str(option.name): option.opts[0]
        for option in context.command.params
        if option.param_type_name == "option"
    }
    for name, flag in flags.items():
        source = context.get_parameter_source(name)
        if name not in accepted and source is not None and source.name != "DEFAULT":
            raise InputError(
                f"{suite} is made of parts with data sets, methods and settings of their own; leave out {flag}, or "
                f"the suite (beside it go {', '.join(flags[one] for one in accepted)})"
            )


def read_request(
    suite: str | None,
    datasets: list[str] | None,
    methods: list[str] | None,
    seeds: list[int] | None,
    trials: int | None,
    protocol: str,
) -> "Request":
    """Return what is asked: the suite's settings, each replaced by what was given beside it.

    Raises InputError for an unknown protocol and a negative number of trials.
    """
    from textbench.flows.plan.cell import Request
    from textbench.flows.plan.suites import read_suite
    from textbench.tasks.catalogue import nearest

    if protocol not in PROTOCOLS:
        raise InputError(f"there is no protocol {protocol!r}; {nearest(protocol, PROTOCOLS)}")
    settings = read_suite(suite or "quick")
    trials = settings.get("trials", 0) if trials is None else trials
    if trials < 0:
        raise InputError(f"--trials must be at least 0, got {trials}")
    return Request(
        datasets=datasets or settings["datasets"],
        methods=methods or settings["methods"],
        seeds=seeds if seeds is not None else list(range(settings.get("seeds", 1))),
        protocol=protocol,  # type: ignore[arg-type]
        trials=trials,
        name="custom" if datasets or methods else suite or "quick",
    )


def read_seeds(seed: int | None, seeds: int | None) -> list[int] | None:
    """Return the seeds that `--seed` or `--seeds` ask for, None where neither is given.

    Raises InputError for both at once, and for a number out of range.
    """
    if seed is not None and seeds is not None:
        raise InputError("--seed runs one seed and --seeds runs several; give one of them")
    if seeds is not None and not 1 <= seeds <= MAX_SEEDS:
        raise InputError(f"--seeds must lie in 1 .. {MAX_SEEDS}, got {seeds}")
    if seed is not None and not 0 <= seed < 2**32:
        raise InputError(f"--seed must lie in 0 .. 2^32 - 1, got {seed}")
    return [seed] if seed is not None else list(range(seeds)) if seeds is not None else None


def read_search(
    seconds: float | None, validation: dict[str, Any], protocol: str, paper: str | None
) -> dict[str, Any]:
    """Return what the options on tuning change in a request, after checking them.

    Raises InputError naming the option.
    """
    if seconds is not None and not seconds > 0:
        raise InputError(f"--search-seconds must be above 0, got {seconds:g}")
    given = {name: value for name, value in validation.items() if value is not None}
    if given.get("n_folds", 2) < 2:
        raise InputError(f"--folds must be at least 2, got {given['n_folds']}")
    if not 0 < given.get("held_out", 0.5) < 1:
        raise InputError(f"--held-out is a share between 0 and 1, got {given['held_out']:g}")
    if len(given.keys() & {"n_folds", "held_out"}) == 2:
        raise InputError("--folds and --held-out are two ways to validate; give one of them")
    if paper is not None and protocol != "faithful":
        raise InputError(
            f"--paper says whose faithful protocol is meant and needs --protocol faithful, got {protocol}"
        )
    return {"search_seconds": seconds, "validation": given}


def read_engine(engine: str, address: str | None, *, timed: bool = False) -> str:
    """Return where stages are computed, checked: threads, dask, or the address of a Dask cluster's scheduler.

    Raises InputError for what cannot be, and for a cluster that does not answer or is not fit to compute.
    """
    if engine not in ENGINES:
        raise InputError(f"--engine must be {' or '.join(ENGINES)}, got {engine!r}")
    if address is None:
        return engine
    if engine != "dask":
        raise InputError(f"--address is of a Dask cluster and needs --engine dask, got {engine}")
    if timed:
        raise InputError("--timed measures this machine; leave --address out")
    from textbench.flows.run.dask_cluster import check_address, check_workers
    from textbench.flows.run.workspace import home_folder

    check_address(address)
    check_workers(address, home_folder())
    return address


def check_limits(time_limit: float | None, memory_limit: float | None) -> None:
    """Refuse what `--time-limit` and `--memory-limit` cannot be. Raises InputError for anything not above 0."""
    for name, limit in (("--time-limit", time_limit), ("--memory-limit", memory_limit)):
        if limit is not None and not limit > 0:
            raise InputError(f"{name} must be above 0, got {limit:g}")
