"""Definitions: which functions, classes and constants of the project an entry function reaches, and their digest.

The digest is the part of a key that stands for code. It is made of the syntax trees of the definitions that an entry
reaches through any number of names, attributes of modules, base classes and decorators. A definition counts without
its docstrings and annotations, and a name in it counts as what it stands for, not as how it was imported: so moving or
renaming a module, an import for types alone, or a definition that nobody reaches changes no digest.

What is seen as a reference: a name that is global where it stands (function-local imports included), with its
attributes as long as they lead through modules; the text "module:name" of something that is there
(`tasks.storage.recipe` names functions so). An attribute that a project's module does not define takes the whole
module, and so does a module that is handed on as a value. Statements that define nothing count for every definition
of the modules that import them. A table of `READ_BY_NAME` is not followed: who reads an entry of it names that entry,
(module, table, key).
"""

import ast
import functools
import stat
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from textbench.tasks.storage.shapes import (
    EFFECTS,
    NAMED,
    Chain,
    Mention,
    ModuleSource,
    Shape,
    digest,
    has,
    read,
    shape,
)

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = "textbench"  # the name under which the project is imported
ROOMS = ("flows", "tasks", "featurizers", "evaluation")  # its folders
OWN = "method_"  # how the names of modules begin that are the user's files
# These find, move, measure and name content, and write it as it is: files of an older layout must stay readable.
APART = frozenset(
    {
        "textbench.tasks.storage.store",
        "textbench.tasks.storage.blocks",
        "textbench.tasks.storage.cluster",
        "textbench.tasks.storage.remote",
        "textbench.tasks.storage.files",
        "textbench.tasks.storage.locks",
        "textbench.tasks.storage.isolate",
        "textbench.tasks.storage.recipe",
        "textbench.tasks.storage.definitions",
        "textbench.tasks.storage.kept_traces",
        "textbench.tasks.storage.shapes",
        "textbench.tasks.storage.tracebacks",
        "textbench.tasks.sources.download",
        "textbench.tasks.catalogue",
    }
)
# Tables whose entries are chosen by name: a new entry is nothing to those who chose another.
READ_BY_NAME = frozenset(
    {
        "textbench.tasks.tokens:RULES",
        "textbench.tasks.word_vectors:TRAINERS",
        "textbench.tasks.word_vectors:WITH_OUTPUTS",
        "textbench.evaluation.probes.catalogue:PROBES",
        "textbench.evaluation.probes.tuning:C_GRIDS",
        "textbench.evaluation.probes.tuning:SETTING_GRIDS",
        "textbench.evaluation.metrics.single_label:METRICS",
        "textbench.evaluation.metrics.single_label:_METRICS",
        "textbench.evaluation.metrics.multilabel:MULTILABEL_METRICS",
        "textbench.evaluation.metrics.multilabel:_METRICS",
    }
)
WHOLE = "*"  # of a module: everything

# Where to begin: a module (dotted, or a file's path), a name of it, and of a table that is read by name the key.
Entry: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Trace:
    """The digest of what some entries reach, the definitions, the libraries they use, and the files looked at."""

    code: str
    definitions: frozenset[str]
    libraries: frozenset[str]
    seen: Mapping[Path, tuple[int, int] | None]


def trace(entries: Sequence[Entry]) -> Trace:
    """Return what the entries reach; an entry is (module, name), (module, table, key), or (module,) for all of it.

    A module is a dotted name of the project or the path of a file. A name that its module does not have counts as
    missing: when it appears, the digest changes. Raises ValueError for a module that is not there, or a table of which
    no entry can be picked out.
    """
    return _Walk().follow(entries)


class _Walk:
    """One walk over the references of some entries."""

    def __init__(self) -> None:
        self.seen: dict[Path, tuple[int, int] | None] = {}
        self.libraries: set[str] = set()
        self.nodes: dict[str, tuple[str, tuple[str, ...]]] = {}  # text and targets by definition
        self._waiting: deque[tuple[str, str]] = deque()
        self._executed: dict[str, list[str]] = {}
        self._sources: dict[str, ModuleSource | None] = {}

    def follow(self, entries: Sequence[Entry]) -> Trace:
        roots = [self._entry(entry) for entry in entries]
        while self._waiting:
            module, name = self._waiting.popleft()
            self._visit(module, name)
        code = _refined(self.nodes, roots)
        return Trace(code, frozenset(self.nodes), frozenset(self.libraries), self.seen)

    def _entry(self, entry: Entry) -> str:
        module, name, key = (*entry, "", "")[:3]
        source = self._source(module)
        if source is None:
            raise ValueError(f"a recipe's code is of files of the project, got {module}")
        if not name:
            return self._whole(module)
        if key:
            return self._item(module, source, name, key)
        if name in source.bound:
            return self._node(module, name)
        return self._target(module, (name,)) if has(source, name) else f"missing:{name}"

    def _item(self, module: str, source: ModuleSource, table: str, key: str) -> str:
        """Return the node of an entry of a table: of a dict, or of a tuple of calls whose first argument is the key."""
        nodes = source.bound.get(table, ())
        value = getattr(nodes[0], "value", None) if nodes else None
        items: list[tuple[ast.expr | None, ast.expr]]
        if isinstance(value, ast.Dict):
            items = list(zip(value.keys, value.values, strict=True))
        elif isinstance(value, ast.Tuple):
            items = [(call.args[0], call) for call in value.elts if isinstance(call, ast.Call)]
        else:
            raise ValueError(
                f"{module}:{table} must be written as a dict, or a tuple of calls, to be read by name"
            )
        place = f"{module}:{table}[{key}]"
        for name, item in items:
            if isinstance(name, ast.Constant) and name.value == key:
                self._add(place, module, (shape(ast.Expr(item)),))
                return place
        return f"missing:{table}[{key}]"

    def _source(self, module: str) -> ModuleSource | None:
        """Return the file of a module; None for one that is not the project's, or not there."""
        if module not in self._sources:
            self._sources[module] = self._found(module)
        return self._sources[module]

    def _found(self, module: str) -> ModuleSource | None:
        for path in _candidates(PROJECT, module):
            if path not in self.seen:
                self.seen[path] = stamp(path)
            if (known := self.seen[path]) is not None:
                return read(path, *known)
        return None

    def _visit(self, module: str, name: str) -> None:
        place = f"{module}:{name}"
        if place in self.nodes:
            return
        source = self._source(module)
        assert source is not None
        if name == WHOLE:
            everything = [self._node(module, own) for own in (*sorted(source.bound), EFFECTS)]
            self.nodes[place] = ("module", tuple(everything))
            return
        self._add(place, module, source.shapes(name))

    def _add(self, place: str, module: str, shapes: Iterable[Shape]) -> None:
        shapes = tuple(shapes)
        self.nodes[place] = ("", ())  # it may reach itself
        targets = [self._resolved(module, reference) for shape in shapes for reference in shape.references]
        if not place.endswith(EFFECTS):
            targets += self._effects(module)
        self.nodes[place] = (" ".join(shape.text for shape in shapes), tuple(targets))

    def _effects(self, module: str) -> list[str]:
        """Return the nodes of what importing a module executes beside definitions, in what it imports too."""
        if module not in self._executed:
            known, waiting = set(), _with_parents(module)
            while waiting:
                name = waiting.pop()
                if name in known or name in APART:
                    continue
                known.add(name)
                if (source := self._source(name)) is not None:
                    waiting += self._imported(source)
            self._executed[module] = sorted(name for name in known if self._has_effects(name))
        return [self._node(name, EFFECTS) for name in self._executed[module]]

    def _has_effects(self, module: str) -> bool:
        source = self._source(module)
        return source is not None and bool(source.effects)

    def _imported(self, source: ModuleSource) -> Iterator[str]:
        """Yield the project's modules that a file imports at its top, and the packages they stand in."""
        for found in source.imports.values():
            if _is_dotted(found.module):
                yield from _with_parents(found.module)
                other = self._source(found.module)
                if found.name and other is not None and not has(other, found.name):
                    yield f"{found.module}.{found.name}"

    def _whole(self, module: str) -> str:
        return "apart" if module in APART else self._node(module, WHOLE)

    def _node(self, module: str, name: str) -> str:
        place = f"{module}:{name}"
        if place not in self.nodes:
            self._waiting.append((module, name))
        return place

    def _resolved(self, module: str, reference: Mention) -> str:
        if reference.module is not None:
            return self._target(reference.module, reference.chain)
        if len(reference.chain) == 1 and NAMED.fullmatch(reference.chain[0]):
            other, _, name = reference.chain[0].partition(":")
            source = self._source(other)
            is_there = source is not None and has(source, name)
            return self._target(other, (name,)) if is_there else f"text:{reference.chain[0]}"
        return self._target(module, reference.chain, at_home=True)

    def _target(self, module: str, chain: Chain, *, at_home: bool = False) -> str:
        """Return the node that attributes of a module lead to, with what is left of them."""
        if _is_outside(module):
            self.libraries.add(module.partition(".")[0])
            return ".".join((module, *chain))
        source = self._source(module)
        if source is None:
            return f"missing:{'.'.join(chain)}"
        if not chain:
            return self._whole(module)
        name, rest = chain[0], chain[1:]
        if module in APART:
            return f"apart:{'.'.join(chain)}"
        if name in source.bound:
            if f"{module}:{name}" in READ_BY_NAME:
                return f"by name:{name}"
            return "\0".join((self._node(module, name), *rest))
        if name in source.imports:
            found = source.imports[name]
            return self._target(found.module, (*((found.name,) if found.name else ()), *rest))
        if at_home:
            return f"builtin:{'.'.join(chain)}"
        inner = f"{module}.{name}"
        # An attribute that nobody can follow may be anything of the module.
        return self._target(inner, rest) if self._source(inner) is not None else self._whole(module)


def _refined(nodes: Mapping[str, tuple[str, tuple[str, ...]]], roots: Sequence[str]) -> str:
    """Return the digest of a graph: equal for graphs whose unfolded trees are equal, whatever its places are called.

    Colours are refined until no more of them are told apart; then each stands for a tree. A target that is no node
    stands for itself.
    """
    colours = {place: digest(text) for place, (text, _) in nodes.items()}
    n_colours = 0
    while n_colours < (n_colours := len(set(colours.values()))):
        colours = {
            place: digest(text, *(_colour(target, colours) for target in targets))
            for place, (text, targets) in nodes.items()
        }
    return digest(*(_colour(root, colours) for root in roots), *sorted(colours.values()))


def _colour(target: str, colours: Mapping[str, str]) -> str:
    place, *rest = target.split("\0")
    return ".".join((colours.get(place, place), *rest))


def stamp(path: Path) -> tuple[int, int] | None:
    """Return when a file was last changed, in nanoseconds, and its bytes; None where there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size) if stat.S_ISREG(status.st_mode) else None


def _is_dotted(name: str) -> bool:
    return name.partition(".")[0] == PACKAGE


def _is_outside(module: str) -> bool:
    return not _is_dotted(module) and not module.endswith(".py")


@functools.cache
def _candidates(project: Path, module: str) -> tuple[Path, ...]:
    """Return the files that can hold a module, the first that is there does; none for a library's."""
    if not _is_dotted(module):
        return (Path(module),) if module.endswith(".py") else ()
    base = project.joinpath(*module.split(".")[1:])
    return base / "__init__.py", base.with_suffix(".py")


def _with_parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[: i + 1]) for i in range(len(parts))]
