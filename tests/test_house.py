"""The plan of the house, read from the source: rooms import downwards alone, and each name of a class is used once.

A room is a folder, or a file that lies beside folders; every import counts, inside functions and for types alone too.
"""

import ast
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from textbench.tasks.storage.definitions import PACKAGE, PROJECT, ROOMS

Graph = Mapping[str, set[str]]
MOST_ROOMS, MOST_FLOORS = 17, 8  # of flows


@cache
def files() -> dict[str, Path]:
    """Every file of the project by its dotted name; a package is its `__init__.py`."""
    found = {}
    for path in sorted(path for room in ROOMS for path in (PROJECT / room).rglob("*.py")):
        parts = path.relative_to(PROJECT).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


def imported(path: Path) -> set[str]:
    """The files of the project that a file imports, wherever in it."""
    names = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    inside = [name.removeprefix(f"{PACKAGE}.") for name in names if name.startswith(f"{PACKAGE}.")]
    # The last part may be a name of the file.
    places = (name if name in files() else name.rpartition(".")[0] for name in inside)
    return {place for place in places if place in files()} - {
        name for name, own in files().items() if own == path
    }


@cache
def arrows() -> dict[str, set[str]]:
    return {name: imported(path) for name, path in files().items()}


def rooms_of(place: str) -> dict[str, set[str]]:
    """The rooms that lie in a folder (dotted, "" for the house), and which of the others each imports."""

    def room(name: str) -> str | None:
        if not f"{name}.".startswith(f"{place}." if place else "") or name == place:
            return None
        return name.removeprefix(f"{place}." if place else "").partition(".")[0]

    found: dict[str, set[str]] = {}
    for name, others in arrows().items():
        if (own := room(name)) is not None:
            found.setdefault(own, set()).update(
                other for other in map(room, others) if other is not None and other != own
            )
    return found


def circle(graph: Graph) -> list[str]:
    """One circle of a graph, empty where it has none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def floors(graph: Graph) -> dict[str, int]:
    """The floor of each room: one above the highest that it imports, the ground being 1."""
    found: dict[str, int] = {}
    for name in TopologicalSorter(graph).static_order():
        found[name] = 1 + max((found[other] for other in graph.get(name, ())), default=0)
    return found


def folders() -> Iterable[str]:
    return sorted({"", *(name for name, path in files().items() if path.name == "__init__.py")})


def test_no_files_import_each_other_in_a_circle() -> None:
    assert circle(arrows()) == []


@pytest.mark.parametrize("place", folders())
def test_rooms_import_downwards_alone(place: str) -> None:
    assert circle(rooms_of(place)) == []


def test_flows_is_not_a_hall_again() -> None:
    rooms = rooms_of("flows")
    assert len(rooms) <= MOST_ROOMS
    assert max(floors(rooms).values()) <= MOST_FLOORS


def test_a_class_name_is_used_once() -> None:
    names = [
        node.name
        for path in files().values()
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.ClassDef)
    ]
    assert [name for name, n in Counter(names).items() if n > 1] == []


def test_a_circle_and_a_floor_are_seen() -> None:
    """The measure itself, on a small house."""
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) != []
    assert floors({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"c": 1, "b": 2, "a": 3}
