"""Suites: sweeps and label-budget curves that belong together, written down in `suites/*.yaml`.

A suite is one part, or a list of `parts`, run in order. A part's keys are datasets, methods, grid (parameters of the
methods with lists of values: every combination is a method of its own), seeds, trials, protocol, paper, probe, rule,
timed; with `budgets` it is a label-budget curve of `draws` draws, `stratified` or not; with `pieces` it makes these
of the cells' features (`flows.pieces`) instead of classifying.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.cells import Request
from tasks import InputError, catalogue
from tasks.recipe import PROJECT

FOLDER = PROJECT / "flows" / "suites"
PART_KEYS = {
    "datasets": list,
    "methods": list,
    "grid": dict,
    "seeds": int,
    "trials": int,
    "protocol": str,
    "paper": str,
    "probe": str,
    "rule": str,
    "timed": bool,
    "budgets": list,
    "draws": int,
    "stratified": bool,
    "pieces": list,
}
KEYS = {"description": str, "parts": list} | PART_KEYS
N_DRAWS = 5


@dataclass(frozen=True)
class Part:
    """One flow of a suite: a sweep, with `budgets` a curve, with `pieces` what is made of features beside cells."""

    request: Request
    timed: bool = False
    budgets: tuple[int, ...] = ()
    draws: int = N_DRAWS
    stratified: bool = False
    pieces: tuple[str, ...] = ()


def suites() -> dict[str, Path]:
    """Return the suites by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}


def read_suite(name: str) -> dict[str, Any]:
    """Return a suite's settings. Raises InputError for an unknown suite or key, naming the nearest."""
    import yaml

    path = catalogue.pick("suite", name, suites())
    settings = yaml.safe_load(path.read_text("utf-8"))
    _check(path, settings, KEYS)
    for part in settings.get("parts", ()):
        _check(path, part, PART_KEYS)
    return settings


def _check(path: Path, settings: Mapping[str, Any], known: Mapping[str, type]) -> None:
    for key, value in settings.items():
        wanted = known.get(key)
        if wanted is None:
            raise InputError(f"{path.name}: unknown key {key!r}; {catalogue.nearest(key, known)}")
        if not isinstance(value, wanted):
            raise InputError(f"{path.name}: {key} must be a {wanted.__name__}, got {value!r}")


def parts(name: str) -> list[Part]:
    """Return the parts of a suite, in order."""
    settings = read_suite(name)
    return [_part(name, part) for part in settings.get("parts", [settings])]


def _part(name: str, settings: Mapping[str, Any]) -> Part:
    request = Request(
        settings["datasets"],
        _with_grid(settings["methods"], settings.get("grid", {})),
        list(range(settings.get("seeds", 1))),
        settings.get("protocol", "honest"),
        settings.get("trials", 0),
        name,
        settings.get("probe"),
        settings.get("rule"),
        paper=settings.get("paper"),
    )
    return Part(
        request,
        settings.get("timed", False),
        tuple(settings.get("budgets", ())),
        settings.get("draws", N_DRAWS),
        settings.get("stratified", False),
        tuple(settings.get("pieces", ())),
    )


def _with_grid(methods: list[str], grid: Mapping[str, list[Any]]) -> list[str]:
    """Return every method at every combination of the grid's values."""
    spelled = []
    for method in methods:
        method_name, fixed = catalogue.parse_method(method)
        for values in itertools.product(*grid.values()):
            spelled.append(catalogue.spelled(method_name, fixed | dict(zip(grid, values, strict=True))))
    return spelled
