"""Papers: each is a folder of `flows.papers`, found by listing, and what belongs to it is a module there."""

import importlib
from types import ModuleType

from textbench.tasks.storage.definitions import PACKAGE, PROJECT

FOLDER = PROJECT / "flows" / "papers"


def modules(name: str) -> list[ModuleType]:
    """Return the modules of this name of all papers that have one, imported: `derived`, `answers`."""
    places = sorted(FOLDER.glob(f"[!_]*/{name}.py"))
    return [importlib.import_module(f"{PACKAGE}.flows.papers.{place.parent.name}.{name}") for place in places]
