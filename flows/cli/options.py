"""The options of commands: those of what is asked for, made of the fields of requests, and those of where it runs.

A command declares a parameter for what several options say together, and `takes` puts the options in its place.
"""

import functools
import inspect
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from textbench.flows.plan.request import (
    RESOURCES,
    Field,
    FieldError,
    fields_of,
    first_seeds,
)
from textbench.tasks import InputError

ENGINES = ("threads", "dask")
OWN, OUTPUT = "Your own documents", "Output"

# Options of several commands that say where and how to compute, and what to print.
DataDir = Annotated[
    Path | None,
    typer.Option(
        help="Folder of data archives.", show_default="$TEXTBENCH_DATA_DIR", rich_help_panel=RESOURCES
    ),
]
Engine = Annotated[
    str, typer.Option(help="threads, or dask for worker processes.", rich_help_panel=RESOURCES)
]
Address = Annotated[
    str | None,
    typer.Option(
        help="With dask: a cluster's scheduler, tls://HOST:PORT, or tcp:// on this machine.",
        show_default=False,
        rich_help_panel=RESOURCES,
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


def allow_upload(is_allowed: bool) -> bool:
    """Let texts leave this machine, if that is said, and return whether it is."""
    if is_allowed:
        os.environ["TEXTBENCH_ALLOW_UPLOAD"] = "1"
    return is_allowed


# Declaring it is all a command has to do.
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        help="Stages computed at once.",
        show_default="$TEXTBENCH_JOBS, or the machine's cores",
        callback=use_jobs,
        rich_help_panel=RESOURCES,
    ),
]
CellsAsJson = Annotated[
    bool,
    typer.Option(
        "--json", help="Print JSON Lines, one object a cell, and nothing else.", rich_help_panel=OUTPUT
    ),
]

AllowUpload = Annotated[
    bool,
    typer.Option(
        "--allow-upload",
        help="Let the method api send texts to an endpoint on another machine; nothing else sends any.",
        callback=allow_upload,
        show_default="$TEXTBENCH_ALLOW_UPLOAD",
        rich_help_panel=RESOURCES,
    ),
]


Endpoint = Annotated[
    str | None,
    typer.Option(
        "--endpoint",
        help="The address to which a model of the method api may send texts: the one that its file names.",
        envvar="TEXTBENCH_ENDPOINT",
        show_default=False,
        rich_help_panel=RESOURCES,
    ),
]


def takes(**readers: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of functions in place of its parameters of these names, which get what they return.

    Raises InputError for what a request refuses, in the names of the options.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command)
        options = {name: inspect.signature(reader).parameters for name, reader in readers.items()}
        flags = {name: flag for one in readers.values() for name, flag in getattr(one, "flags", {}).items()}
        parameters = {
            one.name: one
            for name, parameter in signature.parameters.items()
            for one in (options[name].values() if name in options else [parameter])
        }

        @functools.wraps(command)
        def wrapped(**arguments: Any) -> None:
            try:
                for name, reader in readers.items():
                    arguments[name] = reader(**{option: arguments.pop(option) for option in options[name]})
                command(**arguments)
            except FieldError as error:
                raise InputError(error.say(lambda name: flags.get(name, name))) from error

        wrapped.__signature__ = signature.replace(parameters=[*parameters.values()])  # type: ignore[attr-defined]
        wrapped.__annotations__ = {name: one.annotation for name, one in parameters.items()}
        return wrapped

    return decorate


def options_of(asked: type, **defaults: str) -> Callable[..., dict[str, Any]]:
    """Return a function of a request's fields as options, which returns the fields that were given.

    `defaults` say in words what holds for a field that was not.
    """
    found = list(fields_of(asked))
    options = [option for one in found for option in _options(one, defaults.get(one.name, one.shown))]

    def read(**values: Any) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for one in found:
            if (value := _read(one, values)) is not None:
                place = given.setdefault(one.group, {}) if one.group else given
                place[one.name] = value
        return given

    read.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    read.flags = {one.name: one.flag for one in found}  # type: ignore[attr-defined]
    return read


def _options(one: Field, default: str) -> list[inspect.Parameter]:
    """Return the option of a field; of seeds one that says their number, and one that says which."""
    if one.name == "seeds":
        texts = zip(one.flags, (one.asked.help, "Run this one seed."), (default, ""), strict=False)
        return [_option((flag,), int, text, shown, one.asked.panel) for flag, text, shown in texts]
    text = one.asked.help
    if one.is_list:
        kind: Any = list[str] if one.type is str else str
        text = f"{text.removesuffix('.')}; repeat for more." if one.type is str else text
    else:
        kind = one.type
    return [_option(one.flags, kind, text, default, one.asked.panel)]


def _option(flags: tuple[str, ...], kind: Any, text: str, default: str, panel: str) -> inspect.Parameter:
    info = typer.Option(*flags, help=text, show_default=default or False, rich_help_panel=panel)
    is_flag = kind is bool
    return inspect.Parameter(
        _name(flags[0]),
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=False if is_flag else None,
        annotation=Annotated[bool if is_flag else kind | None, info],
    )


def _name(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _read(one: Field, values: Mapping[str, Any]) -> Any:
    """Return what the options of a field say, None if they were not given."""
    given = {flag: value for flag in one.flags if (value := values.get(_name(flag))) not in (None, [])}
    if one.name == "seeds":
        if len(given) > 1:
            raise InputError(f"{' and '.join(given)} exclude each other: give one of them")
        return next((_seeds(flag, value) for flag, value in given.items()), None)
    for flag, value in given.items():
        if one.is_list and one.type is not str:
            return _numbers(flag, value, one.type)
        return None if value is False else value
    return None


def _seeds(flag: str, value: int) -> list[int]:
    try:
        return [value] if flag == "--seed" else first_seeds(value)
    except FieldError as error:
        raise InputError(error.say(lambda _: flag)) from error


def _numbers(flag: str, text: str, kind: type) -> list[Any]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f"{flag} is numbers parted by commas, got {text!r}") from error


def own_option(text: str, default: str = "") -> Any:
    """Return an option that describes the user's own documents, with its default in words."""
    return typer.Option(help=text, show_default=default or False, rich_help_panel=OWN)


def own_options(
    data: Annotated[
        Path | None,
        own_option(
            "Your own documents: CSV, TSV, JSON, JSONL, Parquet, Excel, or a folder of one folder a class."
        ),
    ] = None,
    text_column: Annotated[str, own_option("With --data: the column of texts.", "text")] = "text",
    label_column: Annotated[str, own_option("With --data: the column of labels.", "label")] = "label",
    label_separator: Annotated[str | None, own_option("With --data: what parts several labels.")] = None,
    split_column: Annotated[
        str | None, own_option("With --data: the column that says train, test or validation.")
    ] = None,
    test_size: Annotated[float | None, own_option("With --data: share drawn for the test.", "0.3")] = None,
    separator: Annotated[
        str | None, own_option("With --data: what parts columns; tab for a tab.", "comma, of TSV tab")
    ] = None,
    encoding: Annotated[str | None, own_option("With --data: such as utf-16 or latin-1.", "utf-8")] = None,
    name: Annotated[
        str | None, own_option("With --data: what tables call your documents.", "the file's name")
    ] = None,
) -> dict[str, Any] | None:
    """Return the fields of `tasks.sources.user_data.UserData` that are asked for, None without --data.

    Raises InputError for the other options without it.
    """
    options = dict(locals())
    path = options.pop("data")
    if path is not None:
        return {"path": str(path)} | options
    defaults = inspect.signature(own_options).parameters
    if given := [option for option, value in options.items() if value != defaults[option].default]:
        raise InputError(f"--{given[0].replace('_', '-')} describes your own documents and needs --data")
    return None


def one_data_set(dataset: str | None, own: dict[str, Any] | None, default: str = "") -> str:
    """Return the data set of a command that reads one: the one that was named, or "" for the user's own documents.

    Raises InputError where both are given, or neither and there is no default.
    """
    if dataset and own:
        raise InputError(f"--dataset {dataset} and --data exclude each other: give one of them")
    if not (dataset or own or default):
        raise InputError("it needs --dataset, a data set or collection of `textbench list`, or --data")
    return dataset or ("" if own else default)


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
