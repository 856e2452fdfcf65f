"""The catalogue: methods, data sets, collections and rankers are found by listing their folders; nothing is registered.

Descriptions and properties are read from the syntax tree, so that listing a folder imports none of its files.
"""

import ast
import difflib
import functools
import importlib
import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from textbench.tasks import InputError
from textbench.tasks.storage.definitions import OWN, PACKAGE, PROJECT
from textbench.tasks.storage.shapes import syntax_tree

METHODS = PROJECT / "featurizers"
DATASETS = PROJECT / "tasks" / "datasets"
COLLECTIONS = PROJECT / "tasks" / "collections"
RANKERS = PROJECT / "evaluation" / "rankers"
# What stands in a method's place where a file has its vectors or its predictions (`tasks.sources.given_files`).
VECTORS, PREDICTIONS = "file-vectors", "file-predictions"
FILES = {VECTORS: "file_vectors", PREDICTIONS: "file_predictions"}
JOIN = "join"  # two representations side by side (`tasks.joined`)
ENSEMBLE = "ensemble"  # several tuned methods that decide together (`tasks.ensemble`)
MANY = 40  # names, from which on the nearest alone are said


@dataclass(frozen=True)
class Entry:
    """One file of a catalogue: its name on the command line, and where it is."""

    name: str
    path: Path
    module: str

    @property
    def description(self) -> str:
        """The first line of the file's docstring."""
        return (ast.get_docstring(self._tree) or "").partition("\n")[0]

    @property
    def is_seeded(self) -> bool:
        """Whether the method's constructor takes a `random_state`."""
        return _is_seeded(self.path, self.path.stat().st_mtime_ns)

    @property
    def parameters(self) -> dict[str, str] | None:
        """The parameters of the method's `build` and their annotations, but for the seed; None if its file hides them.

        They are its own arguments, and those of the class in its file that it hands `**params` to.
        """
        makers = [node for node in self._functions(self._tree) if node.name == "build"]
        if not makers:
            return None
        if makers[0].args.kwarg:
            handed = {
                call.func.id
                for call in ast.walk(makers[0])
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
                if any(keyword.arg is None for keyword in call.keywords)
            }
            classes = [n for n in self._tree.body if isinstance(n, ast.ClassDef) and n.name in handed]
            own = [n for one in classes for n in self._functions(one) if n.name == "__init__"]
            if len(handed) != 1 or len(own) != 1 or own[0].args.kwarg:
                return None
            makers += own
        arguments = [a for one in makers for a in (*one.args.args, *one.args.kwonlyargs)]
        return {
            a.arg: ast.unparse(a.annotation) if a.annotation else ""
            for a in arguments
            if a.arg not in ("self", "random_state")
        }

    @property
    def bound(self) -> dict[str, int]:
        """The names that the file defines, assigns or imports, each with its line."""
        return {name: node.lineno for node in self._tree.body for name in _bound(node)}

    @property
    def imports(self) -> list[tuple[int, str, str]]:
        """What the file imports when it is loaded, but for what may fail in a `try`: line, statement and module."""
        found = []
        for node in self._tree.body:
            if isinstance(node, ast.Import):
                found += [(node.lineno, ast.unparse(node), alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.append((node.lineno, ast.unparse(node), node.module))
        return found

    @staticmethod
    def _functions(node: ast.Module | ast.ClassDef) -> list[ast.FunctionDef]:
        return [one for one in node.body if isinstance(one, ast.FunctionDef)]

    @property
    def is_classifier(self) -> bool:
        """Whether the method classifies by itself, in the probe's place."""
        return self.constant("ROLE") == "classifier"

    @property
    def needs(self) -> tuple[str, ...]:
        """What the method's `fit` takes beside documents and labels, in the file's words."""
        return tuple(self.constant("NEEDS", ()))

    @property
    def reads_texts(self) -> bool:
        """Whether documents come as raw texts."""
        return self.constant("INPUT") == "texts"

    @property
    def reads_texts_alone(self) -> bool:
        """Whether no token rule has a part in the method's features: it reads raw texts and needs no terms beside."""
        return self.reads_texts and set(self.needs) <= {"text_vectors", "piece_vectors"}

    @property
    def is_pretrained(self) -> bool:
        """Whether the method stands on a model that was trained elsewhere, on other texts."""
        return bool(self.constant("PRETRAINED", False))

    def uses_labels(self, params: Mapping[str, Any] | None = None) -> bool:
        """Whether the method is a representation that is fitted to labels too, with these parameters."""
        said = not self.is_classifier and self.constant("USES_LABELS", False)
        if isinstance(said, dict):
            return any((params or {}).get(name) in values for name, values in said.items())
        return bool(said)

    def constant(self, name: str, default: Any = None) -> Any:
        """Return the value of a module-level literal such as `INPUT`, without importing the module.

        InputError for another value.
        """
        node = _assigned(self.path, self.path.stat().st_mtime_ns).get(name)
        if node is None:
            return default
        try:
            return ast.literal_eval(node.value or ast.Constant(default))
        except ValueError as error:
            found = ast.unparse(node)
            raise InputError(f"{self.path}: {name} must be a literal value, got {found}") from error

    @property
    def is_file(self) -> bool:
        """Whether it stands for a file with what a method made elsewhere."""
        return self.name in FILES and self.path.parent == PROJECT / "tasks"

    @property
    def is_join(self) -> bool:
        """Whether it stands for two methods side by side."""
        return self.name == JOIN and self.path.parent == PROJECT / "tasks"

    @property
    def is_ensemble(self) -> bool:
        """Whether it stands for several methods that decide together."""
        return self.name == ENSEMBLE and self.path.parent == PROJECT / "tasks"

    @property
    def is_own(self) -> bool:
        """Whether it is a file of the user's, which is named by its path."""
        return self.module == str(self.path)

    def code(self, *names: str) -> list[tuple[str, ...]]:
        """Return these names of the file as what a recipe's function looks up by name (`recipe.refer`)."""
        return [(self.module, name) for name in names]

    def load(self) -> ModuleType:
        """Import the file and return the module. Raises InputError for what is no Python file."""
        if self.is_own:
            specification = importlib.util.spec_from_file_location(f"{OWN}{self.path.stem}", self.path)
            if specification is None or specification.loader is None:
                raise InputError(f"{self.path} cannot be imported as a Python file")
            module = importlib.util.module_from_spec(specification)
            specification.loader.exec_module(module)
            return module
        return importlib.import_module(self.module)

    @property
    def _tree(self) -> ast.Module:
        return _parsed(self.path, self.path.stat().st_mtime_ns)


def _bound(node: ast.AST) -> list[str]:
    """Return the names that a statement of a module binds; "*" for an import of whatever there is."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    return [name for child in ast.iter_child_nodes(node) for name in _bound(child)]


@functools.lru_cache(maxsize=256)
def _parsed(path: Path, mtime_ns: int) -> ast.Module:
    tree: ast.Module = syntax_tree(path.read_bytes(), str(path))
    return tree


@functools.lru_cache(maxsize=256)
def _assigned(path: Path, mtime_ns: int) -> dict[str, ast.Assign | ast.AnnAssign]:
    """Return the first assignment to each name of a module."""
    found: dict[str, ast.Assign | ast.AnnAssign] = {}
    for node in _parsed(path, mtime_ns).body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, node)
    return found


@functools.lru_cache(maxsize=256)
def _is_seeded(path: Path, mtime_ns: int) -> bool:
    return any(
        argument.arg == "random_state"
        for node in ast.walk(_parsed(path, mtime_ns))
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
        for argument in (*node.args.args, *node.args.kwonlyargs)
    )


def methods() -> dict[str, Entry]:
    """Return the methods by name."""
    return _list(METHODS)


def datasets() -> dict[str, Entry]:
    """Return the data sets by name."""
    return _list(DATASETS)


def collections() -> dict[str, Entry]:
    """Return the retrieval collections by name."""
    return _list(COLLECTIONS)


def rankers() -> dict[str, Entry]:
    """Return the retrieval models by name; `tasks.rankers` says how each is asked for."""
    return _list(RANKERS)


def method(name: str) -> Entry:
    """Return one method: a name, or the path of a Python file that keeps the contract of `featurizers`.

    Raises InputError for a file that is missing or is not Python.
    """
    if name.endswith(".py"):
        path = Path(name).expanduser().resolve()
        if not path.is_file():
            raise InputError(f"there is no method file {name}")
        try:
            syntax_tree(path.read_bytes())
        except SyntaxError as error:
            raise InputError(f"{name}, line {error.lineno}: {error.msg}") from error
        except ValueError as error:
            raise InputError(f"{name} is not a Python file: {error}") from error
        return Entry(path.stem.replace("_", "-"), path, str(path))
    if name == JOIN:
        return Entry(name, PROJECT / "tasks" / "joined.py", f"{PACKAGE}.tasks.joined")
    if name == ENSEMBLE:
        return Entry(name, PROJECT / "tasks" / "ensemble.py", f"{PACKAGE}.tasks.ensemble")
    if name in FILES:
        return Entry(name, PROJECT / "tasks" / f"{FILES[name]}.py", f"{PACKAGE}.tasks.{FILES[name]}")
    return pick("method", name, methods())


def dataset(name: str) -> Entry:
    """Return one data set."""
    return pick("data set", name, datasets())


def collection(name: str) -> Entry:
    """Return one retrieval collection."""
    return pick("collection", name, collections())


def parse_method(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the fixed parameters of `name` or `name(parameter=value, ...)`; values as Python writes them.

    Raises InputError for anything else, or a parameter given twice.
    """
    if not text.endswith(")"):
        if text.count("(") > text.count(")") and not text.endswith(".py"):
            raise InputError(
                f"a closing parenthesis is missing in {text!r}; parameters are given as in lsi(n_components=100)"
            )
        return text, {}
    name, _, rest = text.partition("(")
    rule = f"a method is a name, or a name with parameters such as lsi(n_components=100), got {text!r}"
    try:
        source = f"f({rest}"
        call = syntax_tree(source, mode="eval").body
        if name.strip() == JOIN and isinstance(call, ast.Call) and len(call.args) == 2:
            both = [ast.Constant(ast.get_source_segment(source, part)) for part in call.args]
            call = ast.Call(
                call.func,
                [],
                [ast.keyword("first", both[0]), ast.keyword("second", both[1]), *call.keywords],
            )
        if name.strip() == ENSEMBLE and isinstance(call, ast.Call) and call.args:
            of = ", ".join(str(ast.get_source_segment(source, member)) for member in call.args)
            call = ast.Call(call.func, [], [ast.keyword("of", ast.Constant(of)), *call.keywords])
        names = [keyword.arg for keyword in call.keywords] if isinstance(call, ast.Call) else []
        if not isinstance(call, ast.Call) or call.args or not names or None in names:
            raise InputError(rule)
        if len(set(names)) < len(names):
            raise InputError(f"a parameter is given twice in {text!r}")
        params = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise InputError(rule) from error
    wrong = [key for key, value in params.items() if not isinstance(value, str | int | float | bool | None)]
    if wrong:
        raise InputError(f"{text}: {wrong[0]} must be a number, a string, True, False or None")
    return name.strip(), dict(sorted(params.items()))


def spelled(name: str, params: Mapping[str, Any]) -> str:
    """Return the method as `parse_method` reads it."""
    return (
        f"{name}({', '.join(f'{key}={value!r}' for key, value in sorted(params.items()))})"
        if params
        else name
    )


def pick(kind: str, name: str, choices: dict[str, Any]) -> Any:
    """Return `choices[name]`, or raise InputError with the nearest names."""
    if name not in choices:
        raise InputError(f"there is no {kind} {name!r}; {nearest(name, choices)}")
    return choices[name]


def nearest(name: str, choices: Iterable[str]) -> str:
    """Say what could have been meant by `name`: the closest choices, else all of them, of many those least unlike."""
    names = sorted(choices)
    close = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(close)}?"
    if len(names) > MANY:
        likest = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.0)
        return f"of {len(names)} names the nearest are {', '.join(likest)}"
    return f"choose from {', '.join(names)}" if names else "there are none"


def _list(folder: Path) -> dict[str, Entry]:
    return dict(_listed(folder, folder.stat().st_mtime_ns))


# A folder's stamp changes with the files in it, and a plan asks for its list once a cell.
@functools.lru_cache(maxsize=16)
def _listed(folder: Path, mtime_ns: int) -> dict[str, Entry]:
    package = ".".join((PACKAGE, *folder.relative_to(PROJECT).parts))
    files = sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))
    return {
        name: Entry(name, path, f"{package}.{path.stem}")
        for path in files
        for name in [path.stem.replace("_", "-")]
    }
