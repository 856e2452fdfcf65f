"""Forms of Prefect's page: the fields of a request as a flow's parameters, with choices, bounds and defaults.

Choices are read from the catalogue when this module is imported, by the worker as it starts. A form has no empty
fields: seeds are their number, and 0 or "" stands for what is not limited or named.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from annotated_types import MinLen
from prefect.states import State
from pydantic import Field

from textbench.evaluation.probes.catalogue import PROBES
from textbench.flows.plan import request as requests
from textbench.tasks import catalogue, rankers

PROTOCOLS_OWN = "the protocol's"
CHOICES: Mapping[str, tuple[str, ...]] = {
    "datasets": tuple(catalogue.datasets()),
    "methods": tuple(catalogue.methods()),
    "collections": tuple(catalogue.collections()),
    "rankers": tuple(rankers.names()),
    "probe": (PROTOCOLS_OWN, *PROBES),
}
NEUTRAL: Mapping[Any, Any] = {int: 0, float: 0, str: ""}  # what stands for None


def form(
    asked: type[requests.AnyRequest], name: str, **defaults: Any
) -> Callable[[Callable[[requests.AnyRequest], State[Any]]], Callable[..., State[Any]]]:
    """Give a function of a request the fields of a form as its parameters.

    `name` is that of the request; `defaults` stand in place of the request's own, of `seeds` their number.
    """
    shown = [one for one in requests.fields_of(asked) if one.asked.in_forms]
    parameters = {}
    for one in shown:
        known = defaults.get(one.name, one.default)
        if one.name == "seeds" and "--seeds" in one.flags:
            bounds = requests.Asked(ge=1, le=requests.MAX_SEEDS)
            parameters["n_seeds"] = _parameter("n_seeds", Annotated[int, bounds], one.asked.help, known)
        elif one.name == "seeds":
            parameters["seed"] = _parameter("seed", one.item, one.asked.help, known[0])
        else:
            parameters[one.name] = _parameter(one.name, _type(one), _text(one), _default(one, known))

    def decorate(function: Callable[[requests.AnyRequest], State[Any]]) -> Callable[..., State[Any]]:
        @functools.wraps(function)
        def filled(**values: Any) -> State[Any]:
            asked_for = {one.name: _read(one, values[one.name]) for one in shown if one.name != "seeds"}
            seeds = [values["seed"]] if "seed" in values else requests.first_seeds(values["n_seeds"])
            return function(asked(**asked_for, seeds=seeds, name=name))

        signature = inspect.signature(function)
        filled.__signature__ = signature.replace(parameters=[*parameters.values()])  # type: ignore[attr-defined]
        filled.__annotations__ = {one.name: one.annotation for one in parameters.values()}
        return filled

    return decorate


def _parameter(name: str, kind: Any, text: str, default: Any) -> inspect.Parameter:
    # Prefect puts a description of its own, none, in the place of pydantic's; what is extra it leaves alone.
    annotation = Annotated[kind, Field(json_schema_extra={"description": text})]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _text(one: requests.Field) -> str:
    """Return what a field's help says that its choices do not, and what is no limit."""
    text = one.asked.help.removesuffix(".")
    if one.name in CHOICES:
        return f"{text.partition(':')[0]}."
    return f"{text}; 0: no limit." if one.is_optional and one.item is not str else f"{text}."


def _type(one: requests.Field) -> Any:
    item = Literal[CHOICES[one.name]] if one.name in CHOICES else one.item
    if one.is_list:
        return Annotated[list[item], MinLen(1)]  # type: ignore[valid-type]
    if one.is_optional and one.item in (int, float):
        return Annotated[item, requests.Asked(ge=0)]
    return Annotated[item, one.asked]


def _default(one: requests.Field, known: Any) -> Any:
    if one.is_list:
        return list(known)
    return _nothing(one) if known is None else known


def _nothing(one: requests.Field) -> Any:
    """Return what stands for None in an optional field."""
    return CHOICES[one.name][0] if one.name in CHOICES else NEUTRAL[one.item]


def _read(one: requests.Field, value: Any) -> Any:
    return None if one.is_optional and value == _nothing(one) else value
