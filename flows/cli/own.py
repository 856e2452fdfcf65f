"""The options that say where the user's own documents are and how they are read, the same for every command."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from textbench.tasks import InputError


def own_options(
    data: Annotated[
        Path | None,
        typer.Option(
            help="Your own documents: CSV, TSV, JSON, JSONL, Parquet, Excel, or a folder of one folder a class.",
            show_default=False,
        ),
    ] = None,
    text_column: Annotated[str, typer.Option(help="With --data: the column of texts.")] = "text",
    label_column: Annotated[str, typer.Option(help="With --data: the column of labels.")] = "label",
    label_separator: Annotated[
        str | None, typer.Option(help="With --data: what parts several labels.", show_default=False)
    ] = None,
    split_column: Annotated[
        str | None,
        typer.Option(help="With --data: the column that says train, test or validation.", show_default=False),
    ] = None,
    test_size: Annotated[
        float | None, typer.Option(help="With --data: share drawn for the test.", show_default="0.3")
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option(
            help="With --data: what parts columns; tab for a tab.", show_default="comma, of TSV tab"
        ),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="With --data: such as utf-16 or latin-1.", show_default="utf-8")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="With --data: what tables call your documents.", show_default="the file's name"),
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


def takes_own_data(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options above in place of its parameter `own`, which gets what they ask for."""
    options = inspect.signature(own_options).parameters
    signature = inspect.signature(command)
    parameters = [
        parameter
        for name, own in signature.parameters.items()
        for parameter in (options.values() if name == "own" else [own])
    ]

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> None:
        own = own_options(**{name: arguments.pop(name) for name in options})
        command(**arguments, own=own)

    wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped


def one_data_set(dataset: str | None, own: dict[str, Any] | None, default: str = "") -> str:
    """Return the data set of a command that reads one: the one that was named, or "" for the user's own documents.

    Raises InputError where both are given, or neither and there is no default.
    """
    if dataset and own:
        raise InputError(f"--dataset {dataset} and --data exclude each other: give one of them")
    if not (dataset or own or default):
        raise InputError("it needs --dataset, a data set or collection of `textbench list`, or --data")
    return dataset or ("" if own else default)
