"""Recipes: what an artifact is made from, and the key that follows from it.

A `Reference` names an artifact before it exists. Its key is the sha256 of canonical JSON of the stage, the parameters,
the upstream keys, the digest of the definitions that its function reaches (`tasks.storage.definitions`), and the
versions of the libraries that these use. Equal keys mean equal content; where the function stands is no part of the
key.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textbench.tasks.storage import definitions, kept_traces
from textbench.tasks.storage.definitions import Entry
from textbench.tasks.storage.shapes import NAMED

DISTRIBUTIONS = {
    "iterstrat": "iterative-stratification",
    "RAKE": "python-rake",
    "sklearn": "scikit-learn",
    "Stemmer": "PyStemmer",
    "yaml": "pyyaml",
}
ALWAYS = ("numpy", "scipy")


@dataclass(frozen=True)
class Reference:
    """An artifact by its recipe. `function` is "module:name", called with a `tasks.storage.store.Job` to make it."""

    stage: str
    function: str
    params: Mapping[str, Any]
    inputs: Mapping[str, "Reference"] = field(default_factory=dict)
    code: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict)

    @functools.cached_property
    def key(self) -> str:
        """sha256 (64 hexadecimal digits) of the recipe; the function counts by its code, not by its place."""
        own = {name: value for name, value in self._own_json().items() if name != "function"}
        recipe = own | {"inputs": {name: ref.key for name, ref in self.inputs.items()}}
        return hashlib.sha256(canonical_json(recipe).encode()).hexdigest()

    @property
    def label(self) -> str:
        """A short name for people: what it is of, and the beginning of its key."""
        params = self.params
        own = params.get("method") or params.get("dataset")
        parts = [own] if own else [ref.label.partition(" ")[0] for ref in self.inputs.values()][:1]
        return " ".join([*map(str, parts), self.key[:8]])

    def to_json(self) -> dict[str, Any]:
        """Return the whole recipe, upstream recipes included, as JSON values."""
        return self._own_json() | {"inputs": {name: ref.to_json() for name, ref in self.inputs.items()}}

    def _own_json(self) -> dict[str, Any]:
        """Return the recipe without what is upstream."""
        return {
            "stage": self.stage,
            "function": self.function,
            "params": dict(self.params),
            "code": self.code,
            "libraries": dict(self.libraries),
        }

    @classmethod
    def from_json(cls, recipe: Mapping[str, Any]) -> "Reference":
        """Return the reference that `to_json` wrote."""
        inputs = {name: cls.from_json(value) for name, value in recipe["inputs"].items()}
        return cls(**{**recipe, "inputs": inputs})


def refer(
    function: str,
    params: Mapping[str, Any],
    inputs: Mapping[str, Reference] | None = None,
    uses: Iterable[Entry] = (),
    stage: str = "",
) -> Reference:
    """Return the reference of what `function` ("tasks.stage:compute") makes of `params` and `inputs`.

    `uses` are definitions that the function looks up by name, such as a method's `build`: (module, name) or (module,
    table, key), where a module is a dotted name or a file; or ("module:table", key), which code that is part of a key
    itself writes, for there a module's name does not count. The stage is named like the function's module unless said
    otherwise. Raises TypeError when a parameter is not a JSON value and ValueError when a module is not there.
    """
    module, _, name = function.partition(":")
    code, libraries = fingerprint(((module, name), *map(_entry, uses)))
    canonical_json(params)
    return Reference(stage or module.rpartition(".")[2], function, params, inputs or {}, code, libraries)


def _entry(use: Entry) -> Entry:
    place, *rest = use
    return (*place.split(":"), *rest) if NAMED.fullmatch(place) else use


def canonical_json(value: Any) -> str:
    """Return `value` as JSON with sorted keys and no spaces. Raises TypeError for what JSON cannot hold exactly."""
    _check(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _check(value: Any, place: str = "") -> None:
    if isinstance(value, Mapping):
        for name, item in value.items():
            if not isinstance(name, str):
                raise TypeError(f"a recipe's names are strings, got {name!r} in {place or 'the recipe'}")
            _check(item, f"{place}.{name}")
    elif isinstance(value, list | tuple):
        for item in value:
            _check(item, f"{place}[]")
    elif type(value) is float and not math.isfinite(value):
        raise TypeError(f"a recipe holds finite numbers, got {value} in {place or 'the recipe'}")
    elif value is not None and type(value) not in (str, int, float, bool):
        raise TypeError(f"a recipe holds JSON values, got {type(value).__name__} in {place or 'the recipe'}")
    elif isinstance(value, str) and not value.isascii() and _has_surrogate(value):
        raise TypeError(f"a recipe holds text that UTF-8 can write, got {value!a} in {place or 'the recipe'}")


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def fingerprint(entries: tuple[Entry, ...]) -> tuple[str, dict[str, str]]:
    """Return the digest of the definitions that the entries reach, and the versions of the libraries these use.

    Raises ValueError for a module that is not there (`tasks.storage.definitions.trace`).
    """
    place = (definitions.PROJECT, entries)
    settled = _SETTLED.get()
    found = _TRACES.get(place)
    if found is not None and settled is not None and place in settled:
        return found.code, versions(found.libraries)
    if found is None or any(definitions.stamp(path) != stamp for path, stamp in found.seen.items()):
        found = kept_traces.kept(entries)
        if found is None:
            found = definitions.trace(entries)
            kept_traces.keep(entries, found)
        _TRACES[place] = found
    if settled is not None:
        settled.add(place)
    return found.code, versions(found.libraries)


# A sweep asks for one fingerprint a stage thousands of times; as long as the files are the same, so is the answer.
_TRACES: dict[tuple[Path, tuple[Entry, ...]], definitions.Trace] = {}


# What was looked up within `at_one_time`.
_SETTLED: ContextVar[set[Any] | None] = ContextVar("settled", default=None)


@contextlib.contextmanager
def at_one_time() -> Iterator[None]:
    """Take the files for unchanged as long as this context lasts: each fingerprint looks at its files but once.

    Everything planned in it is of one state of the code, which costs a plan of many cells less.
    """
    token = _SETTLED.set(set())
    try:
        yield
    finally:
        _SETTLED.reset(token)


def versions(libraries: frozenset[str]) -> dict[str, str]:
    """Return the versions of libraries and of Python; of modules that are worked on, the digest of their files."""
    found = dict(_installed(libraries))
    return found | {name: _contents(places) for name in found if (places := _worked_on(name))}


@functools.lru_cache(maxsize=1024)
def _installed(libraries: frozenset[str]) -> dict[str, str]:
    found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    return found | {
        name: _version(name) for name in sorted(libraries.union(ALWAYS) - sys.stdlib_module_names)
    }


@functools.cache
def _version(library: str) -> str:
    try:
        return importlib.metadata.version(DISTRIBUTIONS.get(library, library))
    except importlib.metadata.PackageNotFoundError:
        if importlib.util.find_spec(library) is None:  # not installed; the next line reads all that is
            return "unknown"
        owners = importlib.metadata.packages_distributions().get(library)
        return importlib.metadata.version(owners[0]) if owners else "unknown"


@functools.cache
def _worked_on(library: str) -> tuple[Path, ...]:
    """Return the file or the folders of a module that changes without its version; none of one that is installed.

    It is one beside a user's method, on PYTHONPATH, or installed so that its folder can be worked on.
    """
    try:
        spec = None if library in ("python", *DISTRIBUTIONS) else importlib.util.find_spec(library)
    except (ImportError, ValueError):
        return ()
    if spec is None or spec.origin in ("built-in", "frozen"):
        return ()
    places = list(spec.submodule_search_locations or filter(None, [spec.origin]))
    found = tuple(Path(place).resolve() for place in places)
    return tuple(one for one in found if not {"site-packages", "dist-packages"} & {*one.parts})


_CONTENTS: dict[tuple[Path, ...], str] = {}


def _contents(places: tuple[Path, ...]) -> str:
    """Return the digest of the Python files of a module, looked at but once within `at_one_time`."""
    settled = _SETTLED.get()
    if settled is None or places not in settled:
        files = [
            path for place in places for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])
        ]
        with contextlib.suppress(OSError):  # what goes meanwhile is missed where it is imported
            _CONTENTS[places] = _digest(tuple((path, definitions.stamp(path)) for path in files))
        if settled is not None:
            settled.add(places)
    return _CONTENTS.get(places, "unknown")


@functools.lru_cache(maxsize=64)
def _digest(files: tuple[tuple[Path, tuple[int, int] | None], ...]) -> str:
    total = hashlib.sha256()
    for path, _ in files:
        total.update(f"{path} ".encode() + hashlib.sha256(path.read_bytes()).digest())
    return f"sha256:{total.hexdigest()[:16]}"
