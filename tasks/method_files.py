"""A method's file of the user's, loaded before anything is computed for it: what it lacks is said in one line."""

import linecache
import traceback
from collections.abc import Mapping
from typing import Any

from textbench.tasks import InputError, catalogue
from textbench.tasks.storage import isolate


def check(path: str) -> None:
    """Raise InputError, naming file, line and statement, for a file that cannot be loaded or holds no method.

    It is loaded in a process of its own, for loading runs it.
    """
    try:
        fault = isolate.run("textbench.tasks.method_files:examine", {"path": path})["fault"]
    except isolate.CellError as error:
        fault = f"{path} cannot be loaded: {error}"
    if fault:
        raise InputError(fault)


def examine(payload: Mapping[str, Any]) -> dict[str, str | None]:
    """Load the file of `payload["path"]`; return what is wrong with it as `fault`, None if nothing is."""
    from optuna.distributions import BaseDistribution

    path = payload["path"]
    try:
        module = catalogue.method(path).load()
    except BaseException as error:  # whatever the file does, sys.exit() included
        return {"fault": describe(error, path)}
    if not callable(getattr(module, "build", None)):
        return {"fault": f"{path} has no function build(**params), which returns the method unfitted"}
    space = getattr(module, "SEARCH_SPACE", {})
    if not isinstance(space, dict) or not all(isinstance(one, BaseDistribution) for one in space.values()):
        return {"fault": f"{path}: SEARCH_SPACE must hold an Optuna distribution a parameter, got {space!r}"}
    entry = catalogue.method(path)
    for name in ("INPUT", "NEEDS", "USES_LABELS"):
        # A plan reads the file without running it, and takes counts for granted.
        found = getattr(module, name, None)
        if found not in (entry.constant(name), "counts", "tokens"):
            return {"fault": f"{path}: {name} must be written out in this file, got {found!r} from elsewhere"}
    return {"fault": None}


def describe(error: BaseException, path: str) -> str:
    """Say in one line what went wrong in a file, and in which of its lines."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    place = f"{path}, line {lines[-1]}: {linecache.getline(path, lines[-1] or 0).strip()}" if lines else path
    return f"{place}: {' '.join(f'{type(error).__name__}: {error}'.split())}"
