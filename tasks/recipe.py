"""Recipes: what an artifact is made from, and the key that follows from it.

A `Reference` names an artifact before it exists. Its key is the sha256 of canonical JSON of the stage, the parameters,
the upstream keys, the syntax tree (without docstrings) of the project code that computes it, and the versions of the
libraries that code imports. Equal keys mean equal content; a changed comment or docstring changes no key.
"""

import ast
import functools
import hashlib
import importlib.metadata
import json
import math
import stat
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
PACKAGES = ("flows", "tasks", "featurizers", "evaluation")
# These find, move, measure and name content; they do not shape it.
APART = {
    "tasks.store",
    "tasks.files",
    "tasks.isolate",
    "tasks.recipe",
    "tasks.download",
    "tasks.catalogue",
}
DISTRIBUTIONS = {"sklearn": "scikit-learn", "yaml": "pyyaml", "Stemmer": "PyStemmer", "RAKE": "python-rake"}
ALWAYS = ("numpy", "scipy")


@dataclass(frozen=True)
class Reference:
    """An artifact by its recipe. `function` is "module:name", called with a `tasks.store.Job` to make it."""

    stage: str
    function: str
    params: Mapping[str, Any]
    inputs: Mapping[str, "Reference"] = field(default_factory=dict)
    code: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict)

    @functools.cached_property
    def key(self) -> str:
        """sha256 (64 hexadecimal digits) of the recipe."""
        recipe = self._own_json() | {"inputs": {name: ref.key for name, ref in self.inputs.items()}}
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
        """Rebuild a reference from `to_json`."""
        inputs = {name: cls.from_json(value) for name, value in recipe["inputs"].items()}
        return cls(**{**recipe, "inputs": inputs})


def refer(
    function: str,
    params: Mapping[str, Any],
    inputs: Mapping[str, Reference] | None = None,
    modules: Iterable[str] = (),
    stage: str = "",
) -> Reference:
    """Return the reference of what `function` ("tasks.stage:compute") makes of `params` and `inputs`.

    `modules` are modules (dotted names, or files) that the function loads by name, such as a method's; the stage is
    named like the function's module unless said otherwise. Raises TypeError when a parameter is not a JSON value
    and ValueError when a module is not there.
    """
    module = function.partition(":")[0]
    code, libraries = fingerprint((module, *modules))
    canonical_json(params)
    return Reference(stage or module.rpartition(".")[2], function, params, inputs or {}, code, libraries)


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


def fingerprint(modules: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """Return the sha256 of the modules' syntax trees and the versions of the libraries they import.

    Follows imports inside the project, wherever they stand in the file; the store is left out. Raises ValueError when
    a module is not there.
    """
    place = (PROJECT, modules)
    trace = _TRACES.get(place)
    if trace is None or any(_stamp(path) != stamp for path, stamp in trace.seen.items()):
        trace = _TRACES[place] = _trace(modules)
    return trace.code, _versions(trace.libraries)


@dataclass(frozen=True)
class _Trace:
    """What following the imports of some modules gave, and every file, there or not, that it depends on."""

    code: str
    libraries: frozenset[str]
    seen: Mapping[Path, tuple[int, int] | None]


# A sweep asks for one fingerprint a stage thousands of times; as long as the files are the same, so is the answer.
_TRACES: dict[tuple[Path, tuple[str, ...]], _Trace] = {}


def _trace(modules: tuple[str, ...]) -> _Trace:
    trees: dict[str, str] = {}
    seen: dict[Path, tuple[int, int] | None] = {}
    libraries = set(ALWAYS)
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in trees or name in APART:
            continue
        seen |= {path: _stamp(path) for path in _candidates(name) if path not in seen}
        path, stamp = next(((path, seen[path]) for path in _candidates(name) if seen[path]), (None, None))
        if path is None or stamp is None:
            if name in modules:
                raise ValueError(f"a recipe's modules are files of the project, got {name}")
            continue
        trees[name], imported = _read(path, *stamp)
        for module in imported:
            if _is_dotted(module):
                waiting.extend(_with_parents(module))
            else:
                libraries.add(module.partition(".")[0])
    # A file outside the project goes by what it holds; where it lies is for the recipe's parameters to say.
    content = sorted((name if _is_dotted(name) else "", tree) for name, tree in trees.items())
    return _Trace(hashlib.sha256(repr(content).encode()).hexdigest(), frozenset(libraries), seen)


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return when a file was last changed, in nanoseconds, and its bytes; None where there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size) if stat.S_ISREG(status.st_mode) else None


@functools.lru_cache(maxsize=1024)
def _read(path: Path, mtime_ns: int, size: int) -> tuple[str, frozenset[str]]:
    """Return the sha256 of a file's syntax tree without docstrings, and the modules it imports."""
    tree = ast.parse(path.read_bytes(), filename=str(path))
    imported = frozenset(_imports(tree))
    return hashlib.sha256(ast.dump(_without_docstrings(tree)).encode()).hexdigest(), imported


def _is_dotted(name: str) -> bool:
    return name.partition(".")[0] in PACKAGES


def _candidates(name: str) -> tuple[Path, ...]:
    """Return the files that can hold a module, the first that is there does."""
    if not _is_dotted(name):
        return (Path(name),)
    base = PROJECT.joinpath(*name.split("."))
    return base.with_suffix(".py"), base / "__init__.py"


def _with_parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[: i + 1]) for i in range(len(parts))]


def _imports(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            # `from tasks import tokens` imports a module, `from tasks import InputError` a name: which it is
            # depends on the files.
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:]
    return tree


@functools.lru_cache(maxsize=1024)
def _versions(libraries: frozenset[str]) -> dict[str, str]:
    versions = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for name in sorted(libraries - sys.stdlib_module_names):
        versions[name] = _version(name)
    return versions


@functools.cache
def _version(library: str) -> str:
    try:
        return importlib.metadata.version(DISTRIBUTIONS.get(library, library))
    except importlib.metadata.PackageNotFoundError:
        owners = importlib.metadata.packages_distributions().get(library)
        return importlib.metadata.version(owners[0]) if owners else "unknown"
