"""Suites: sweeps and label-budget curves that belong together, written down in `suites/*.yaml`.

A suite is one part, or a list of `parts`, run in order. A part's keys are datasets, methods, grid (parameters of the
methods with lists of values: every combination is a method of its own), seeds, trials, protocol, paper, probe, rule,
timed, and name, by which exhibits find it; with `budgets` it is a label-budget curve of `draws` draws, `stratified` or
not; with `pieces` it makes these of the cells' features (`flows.plan.derived`) instead of classifying.
"""

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textbench.flows.plan.cell import Request
from textbench.tasks import InputError, catalogue
from textbench.tasks.storage.definitions import PROJECT
from textbench.tasks.tracking.settings import read_settings_file, shown

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
    "name": str,
}
KEYS = {"description": str, "parts": list} | PART_KEYS
# A suite of these alone is a sweep in which the options of a command replace what it says.
REPLACEABLE = {"description", "datasets", "methods", "seeds", "trials"}
N_DRAWS = 5
MAX_SEEDS = 1000
MAX_COMBINED = 10_000


@dataclass(frozen=True)
class Part:
    """One flow of a suite: a sweep, with `budgets` a curve, with `pieces` what is made of features beside cells."""

    request: Request
    timed: bool = False
    budgets: tuple[int, ...] = ()
    draws: int = N_DRAWS
    stratified: bool = False
    pieces: tuple[str, ...] = ()
    name: str = ""


def suites() -> dict[str, Path]:
    """Return the suites by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}


def read_suite(name: str) -> dict[str, Any]:
    """Return a suite's settings. Raises InputError for an unknown suite or key, naming the nearest."""
    path = catalogue.pick("suite", name, suites())
    settings = read_settings_file(path)
    _check(path, settings, KEYS)
    for part in settings.get("parts", [settings]):
        _check(path, part, PART_KEYS if "parts" in settings else KEYS)
        _check_lists(path, part)
    names = Counter(part["name"] for part in settings.get("parts", ()) if "name" in part)
    if twice := [name for name, count in names.items() if count > 1]:
        raise InputError(f"{path.name}: a part's name must be its own, got {shown(twice[0])} twice")
    return settings


def _check(path: Path, settings: Any, known: Mapping[str, type]) -> None:
    if not isinstance(settings, dict):
        raise InputError(f"{path.name}: a part must hold `key: value` lines, got {shown(settings)}")
    for key, value in settings.items():
        wanted = known.get(key)
        if wanted is None:
            raise InputError(f"{path.name}: unknown key {shown(key)}; {catalogue.nearest(str(key), known)}")
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            raise InputError(f"{path.name}: {key} must be a {wanted.__name__}, got {shown(value)}")


def _check_lists(path: Path, part: Mapping[str, Any]) -> None:
    """See that a part names data sets and methods, and that what it asks for is not beyond all bounds."""
    for key, wanted in (("datasets", str), ("methods", str), ("budgets", int), ("pieces", str)):
        values = part.get(key, [] if key in ("budgets", "pieces") else None)
        if values is None or not all(isinstance(value, wanted) for value in values):
            raise InputError(f"{path.name}: {key} must be a list of {wanted.__name__}, got {shown(values)}")
    if not 1 <= part.get("seeds", 1) <= MAX_SEEDS:
        raise InputError(f"{path.name}: seeds must lie in 1 .. {MAX_SEEDS}, got {shown(part['seeds'])}")
    grid = part.get("grid", {})
    if not all(isinstance(name, str) and isinstance(values, list) for name, values in grid.items()):
        raise InputError(
            f"{path.name}: grid must hold a list of values for each parameter, got {shown(grid)}"
        )
    n_combined = math.prod(map(len, grid.values()))
    if n_combined > MAX_COMBINED:
        raise InputError(f"{path.name}: grid must have at most {MAX_COMBINED} combinations, got {n_combined}")


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
        settings.get("name", ""),
    )


def _with_grid(methods: list[str], grid: Mapping[str, list[Any]]) -> list[str]:
    """Return every method at every combination of the grid's values."""
    spelled = []
    for method in methods:
        method_name, fixed = catalogue.parse_method(method)
        for values in itertools.product(*grid.values()):
            spelled.append(catalogue.spelled(method_name, fixed | dict(zip(grid, values, strict=True))))
    return spelled
