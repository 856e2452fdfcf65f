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
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
PACKAGES = ("flows", "tasks", "featurizers", "evaluation")
# These find, move, measure and name content; they do not shape it.
APART = {"tasks.store", "tasks.isolate", "tasks.recipe", "tasks.download", "tasks.catalogue"}
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
        recipe = self.to_json() | {"inputs": {name: ref.key for name, ref in self.inputs.items()}}
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
        return {
            "stage": self.stage,
            "function": self.function,
            "params": dict(self.params),
            "inputs": {name: reference.to_json() for name, reference in self.inputs.items()},
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
    for name in (module, *modules):
        if _source(name) is None:
            raise ValueError(f"a recipe's modules are files of the project, got {name}")
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
    elif isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise TypeError(f"a recipe holds text that UTF-8 can write, got {value!a} in {place or 'the recipe'}")


def fingerprint(modules: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """Return the sha256 of the modules' syntax trees and the versions of the libraries they import.

    Follows imports inside the project, wherever they stand in the file; the store is left out.
    """
    trees: dict[str, str] = {}
    libraries = set(ALWAYS)
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        path = None if name in trees or name in APART else _source(name)
        if path is None:
            continue
        status = path.stat()
        trees[name], imported = _read(path, status.st_mtime_ns, status.st_size)
        for module in imported:
            if _is_dotted(module):
                waiting.extend(_with_parents(module))
            else:
                libraries.add(module.partition(".")[0])
    # A file outside the project goes by what it holds; where it lies is for the recipe's parameters to say.
    content = sorted((name if _is_dotted(name) else "", tree) for name, tree in trees.items())
    return hashlib.sha256(repr(content).encode()).hexdigest(), _versions(libraries)


@functools.lru_cache(maxsize=1024)
def _read(path: Path, mtime_ns: int, size: int) -> tuple[str, frozenset[str]]:
    """Return the sha256 of a file's syntax tree without docstrings, and the modules it imports."""
    tree = ast.parse(path.read_bytes(), filename=str(path))
    imported = frozenset(_imports(tree))
    return hashlib.sha256(ast.dump(_without_docstrings(tree)).encode()).hexdigest(), imported


def _is_dotted(name: str) -> bool:
    return name.partition(".")[0] in PACKAGES


def _source(name: str) -> Path | None:
    if not _is_dotted(name):
        return Path(name)
    base = PROJECT.joinpath(*name.split("."))
    return next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.is_file()), None)


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
            # `from tasks import tokens` imports a module, `from tasks import InputError` a name: `_source` tells.
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


def _versions(libraries: Iterable[str]) -> dict[str, str]:
    versions = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for name in sorted(set(libraries) - sys.stdlib_module_names):
        versions[name] = _version(name)
    return versions


@functools.cache
def _version(library: str) -> str:
    try:
        return importlib.metadata.version(DISTRIBUTIONS.get(library, library))
    except importlib.metadata.PackageNotFoundError:
        owners = importlib.metadata.packages_distributions().get(library)
        return importlib.metadata.version(owners[0]) if owners else "unknown"
