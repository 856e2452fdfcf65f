"""Suites: sweeps and label-budget curves that belong together, written down in `suites/*.yaml`.

A suite is one part, or a list of `parts`, run in order. The keys of a part are the fields of a request
(`flows.plan.request`), with `seeds` their number, `grid` (parameters of the methods with lists of values: every
combination is a method of its own), and `name`, by which exhibits find it. With `budgets` it is a label-budget curve;
with `pieces` it makes these of the cells' features (`flows.plan.derived`) instead of classifying; else it is a sweep.
"""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from textbench.flows.plan.request import (
    BenchmarkRequest,
    DerivedRequest,
    LabelBudgetRequest,
    Request,
    first_seeds,
)
from textbench.tasks import InputError, catalogue
from textbench.tasks.storage.definitions import PROJECT
from textbench.tasks.tracking.settings import read_settings_file, shown

FOLDER = PROJECT / "flows" / "suites"
# A suite of these alone is a sweep in which the options of a command replace what it says.
REPLACEABLE = {"description", "datasets", "methods", "seeds", "trials"}
NO_KEYS = {"own", "labels", "n_documents"}  # which of a request's fields no suite says
MAX_COMBINED = 10_000


@dataclass(frozen=True)
class Part:
    """One flow of a suite: what it asks for, and the name by which exhibits find it, if it has one."""

    request: Request
    name: str = ""

    @property
    def is_timed(self) -> bool:
        """Whether its cells are run one at a time, for their seconds."""
        return isinstance(self.request, BenchmarkRequest) and self.request.timed

    @property
    def is_derived(self) -> bool:
        """Whether it makes pieces instead of classifying."""
        return isinstance(self.request, DerivedRequest)


def suites() -> dict[str, Path]:
    """Return the suites by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}


def read_suite(name: str) -> dict[str, Any]:
    """Return a suite's settings. Raises InputError for an unknown suite or key, naming the nearest, and for values."""
    path = catalogue.pick("suite", name, suites())
    settings = read_settings_file(path)
    _parts(path, settings)
    return settings


def parts(name: str) -> list[Part]:
    """Return the parts of a suite, in order; its errors are those of `read_suite`."""
    path = catalogue.pick("suite", name, suites())
    return _parts(path, read_settings_file(path))


def number_of(parts: Sequence[Part], part: str) -> int:
    """Return which part, from 1, is meant by its number or its name. Raises InputError with the nearest."""
    numbers = {str(number): number for number in range(1, len(parts) + 1)}
    return catalogue.pick(
        "part", part, numbers | {one.name: number for number, one in enumerate(parts, 1) if one.name}
    )


def _parts(path: Path, settings: dict[str, Any]) -> list[Part]:
    plain = {key: value for key, value in settings.items() if key != "description"}
    try:
        if "parts" not in plain:
            return [_part(path.stem, plain)]
        _check_keys(plain, {"description", "parts"})
        if not isinstance(plain["parts"], list):
            raise InputError(f"parts must be a list, got {shown(plain['parts'])}")
        found = [_part(path.stem, part) for part in plain["parts"]]
        names = Counter(part.name for part in found if part.name)
        if twice := [name for name, count in names.items() if count > 1]:
            raise InputError(f"a part's name must be its own, got {shown(twice[0])} twice")
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from error
    return found


def _part(suite: str, settings: Any) -> Part:
    if not isinstance(settings, dict):
        raise InputError(f"a part must hold `key: value` lines, got {shown(settings)}")
    kind: type[Request] = BenchmarkRequest
    kind = DerivedRequest if "pieces" in settings else LabelBudgetRequest if "budgets" in settings else kind
    _check_keys(settings, {field.name for field in fields(kind)} - NO_KEYS | {"grid"})
    asked = {"datasets": [], "methods": [], **settings, "name": suite}
    asked["seeds"] = first_seeds(settings.get("seeds", 1))
    grid = asked.pop("grid", {})
    request = kind(**asked)
    return Part(replace(request, methods=_with_grid(request.methods, grid)), str(settings.get("name", "")))


def _check_keys(settings: Mapping[Any, Any], known: set[str]) -> None:
    for key in settings:
        if key not in known:
            raise InputError(f"unknown key {shown(key)}; {catalogue.nearest(str(key), known)}")


def _with_grid(methods: Sequence[str], grid: Any) -> list[str]:
    """Return every method at every combination of the grid's values. Raises InputError for what is no grid."""
    if not isinstance(grid, dict) or not all(
        isinstance(name, str) and isinstance(values, list) for name, values in grid.items()
    ):
        raise InputError(f"grid must hold a list of values for each parameter, got {shown(grid)}")
    n_combined = math.prod(map(len, grid.values()))
    if n_combined > MAX_COMBINED:
        raise InputError(f"grid must have at most {MAX_COMBINED} combinations, got {n_combined}")
    spelled = []
    for method in methods:
        method_name, fixed = catalogue.parse_method(method)
        for values in itertools.product(*grid.values()):
            spelled.append(catalogue.spelled(method_name, fixed | dict(zip(grid, values, strict=True))))
    return spelled
