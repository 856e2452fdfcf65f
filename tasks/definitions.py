"""Definitions: which functions, classes and constants of the project an entry function reaches, and their digest.

The digest is the part of a key that stands for code. It is made of the syntax trees of the definitions that an entry
reaches through any number of names, attributes of modules, base classes and decorators. A definition counts without
its docstrings and annotations, and a name in it counts as what it stands for, not as how it was imported: so moving or
renaming a module, an import for types alone, or a definition that nobody reaches changes no digest.

What is seen as a reference: a name that is global where it stands (function-local imports included), with its
attributes as long as they lead through modules; the text "module:name" of something that is there (`tasks.recipe`
names functions so). An attribute that a project's module does not define takes the whole module, and so does a module
that is handed on as a value. Statements that define nothing count for every definition of the modules that import them.
A table of `READ_BY_NAME` is not followed: who reads an entry of it names that entry, (module, table, key).
"""

import ast
import functools
import hashlib
import re
import stat
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

PROJECT = Path(__file__).resolve().parent.parent
PACKAGES = ("flows", "tasks", "featurizers", "evaluation")
# These find, move, measure and name content; they do not shape it.
APART = frozenset(
    {
        "tasks.store",
        "tasks.cluster",
        "tasks.remote",
        "tasks.files",
        "tasks.isolate",
        "tasks.recipe",
        "tasks.definitions",
        "tasks.download",
        "tasks.catalogue",
    }
)
# Tables whose entries are chosen by name: a new entry is nothing to those who chose another.
READ_BY_NAME = frozenset(
    {
        "tasks.tokens:RULES",
        "tasks.word_vectors:TRAINERS",
        "evaluation.probes:PROBES",
        "evaluation.tuning:C_GRIDS",
        "evaluation.tuning:SETTING_GRIDS",
        "evaluation.metrics:METRICS",
        "evaluation.multilabel:MULTILABEL_METRICS",
    }
)
WHOLE, EFFECTS = "*", "<effects>"  # of a module: everything; the statements that define nothing
NAMED = re.compile(r"(?:\w+\.)+\w+:\w+")

Chain: TypeAlias = tuple[str, ...]
# Where to begin: a module (dotted, or a file's path), a name of it, and of a table that is read by name the key.
Entry: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Reference:
    """A mention of something global: its name and attributes; `module` where the function imports it itself."""

    chain: Chain
    module: str | None = None


@dataclass(frozen=True)
class Shape:
    """One statement: the digest of its tree with every reference left blank, and these references in order."""

    text: str
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True)
class Import:
    """What an import binds a name to: a module, or a name of one."""

    module: str
    name: str | None = None


@dataclass
class Source:
    """A file: what its top level binds, by name, what it imports there, and what else it executes."""

    bound: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, Import] = field(default_factory=dict)
    effects: list[ast.stmt] = field(default_factory=list)
    _shapes: dict[str, tuple[Shape, ...]] = field(default_factory=dict)

    def shapes(self, name: str) -> tuple[Shape, ...]:
        """Return the statements behind a name of the file, or behind `EFFECTS`."""
        if name not in self._shapes:
            nodes = self.effects if name == EFFECTS else self.bound[name]
            self._shapes[name] = tuple(_shape(node) for node in nodes)
        return self._shapes[name]


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
        return self._target(module, (name,)) if _has(source, name) else f"missing:{name}"

    def _item(self, module: str, source: Source, table: str, key: str) -> str:
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
                self._add(place, module, (_shape(ast.Expr(item)),))
                return place
        return f"missing:{table}[{key}]"

    def _source(self, module: str) -> Source | None:
        """Return the file of a module; None for one that is not the project's, or not there."""
        for path in _candidates(module):
            if path not in self.seen:
                self.seen[path] = stamp(path)
            if (known := self.seen[path]) is not None:
                return _read(path, *known)
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

    def _imported(self, source: Source) -> Iterator[str]:
        """Yield the project's modules that a file imports at its top, and the packages they stand in."""
        for found in source.imports.values():
            if _is_dotted(found.module):
                yield from _with_parents(found.module)
                other = self._source(found.module)
                if found.name and other is not None and not _has(other, found.name):
                    yield f"{found.module}.{found.name}"

    def _whole(self, module: str) -> str:
        return "apart" if module in APART else self._node(module, WHOLE)

    def _node(self, module: str, name: str) -> str:
        place = f"{module}:{name}"
        if place not in self.nodes:
            self._waiting.append((module, name))
        return place

    def _resolved(self, module: str, reference: Reference) -> str:
        if reference.module is not None:
            return self._target(reference.module, reference.chain)
        if len(reference.chain) == 1 and NAMED.fullmatch(reference.chain[0]):
            other, _, name = reference.chain[0].partition(":")
            source = self._source(other)
            is_there = source is not None and _has(source, name)
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
    colours = {place: _digest(text) for place, (text, _) in nodes.items()}
    n_colours = 0
    while n_colours < (n_colours := len(set(colours.values()))):
        colours = {
            place: _digest(text, *(_colour(target, colours) for target in targets))
            for place, (text, targets) in nodes.items()
        }
    return _digest(*(_colour(root, colours) for root in roots), *sorted(colours.values()))


def _colour(target: str, colours: Mapping[str, str]) -> str:
    place, *rest = target.split("\0")
    return ".".join((colours.get(place, place), *rest))


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _has(source: Source, name: str) -> bool:
    return name in source.bound or name in source.imports


def stamp(path: Path) -> tuple[int, int] | None:
    """Return when a file was last changed, in nanoseconds, and its bytes; None where there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size) if stat.S_ISREG(status.st_mode) else None


def _is_dotted(name: str) -> bool:
    return name.partition(".")[0] in PACKAGES


def _is_outside(module: str) -> bool:
    return not _is_dotted(module) and not module.endswith(".py")


def _candidates(module: str) -> tuple[Path, ...]:
    """Return the files that can hold a module, the first that is there does; none for a library's."""
    if not _is_dotted(module):
        return (Path(module),) if module.endswith(".py") else ()
    base = PROJECT.joinpath(*module.split("."))
    return base / "__init__.py", base.with_suffix(".py")


def _with_parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[: i + 1]) for i in range(len(parts))]


@functools.lru_cache(maxsize=1024)
def _read(path: Path, mtime_ns: int, size: int) -> Source:
    """Return what a file's top level holds."""
    source = Source()
    for node in ast.parse(path.read_bytes(), filename=str(path)).body:
        _enter(source, node)
    return source


def _enter(source: Source, node: ast.stmt) -> None:
    """Note what one statement of the top level binds, imports or does."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        source.imports.update(_bindings(node))
    elif isinstance(node, ast.If) and _is_not_here(node.test):
        for other in node.orelse:
            _enter(source, other)
    elif isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While | ast.Match):
        names = set(_stored(node))
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                _enter(source, inner)
        for name in names - source.imports.keys():
            source.bound.setdefault(name, []).append(node)
        if not names:
            source.effects.append(node)
    elif bound := list(_stored(node)):
        for name in bound:
            source.bound.setdefault(name, []).append(node)
    elif (root := _changed(node)) in source.bound:
        source.bound[root].append(node)
    elif not _is_docstring(node) and not isinstance(node, ast.Pass):
        source.effects.append(node)


def _bindings(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Import]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            whole = alias.name if alias.asname else alias.name.partition(".")[0]
            yield alias.asname or whole, Import(whole)
    elif node.module and not node.level:
        for alias in node.names:
            yield alias.asname or alias.name, Import(node.module, alias.name)


def _stored(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of the top level binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
        return
    waiting: list[ast.AST] = [node]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield inner.name
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id
        elif not isinstance(inner, ast.Lambda | _COMPREHENSIONS):
            waiting.extend(ast.iter_child_nodes(inner))


def _changed(node: ast.stmt) -> str:
    """Return the name whose value a statement changes in place: `TABLE["key"] = value`, `TABLE.update(...)`."""
    target: ast.AST | None = None
    if isinstance(node, ast.Assign):
        target = node.targets[0]
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        target = node.target
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        target = node.value.func
    while isinstance(target, ast.Attribute | ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""


def _is_not_here(test: ast.expr) -> bool:
    """Tell whether a condition is one that an imported module never meets: for types alone, or run as a script."""
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING", "__name__ == '__main__'")


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def _shape(node: ast.stmt) -> Shape:
    """Return a statement's shape."""
    writer = _Writer()
    writer.write(node)
    return Shape(_digest(*writer.text), tuple(writer.references))


@dataclass
class _Scope:
    """The names of a function, class or comprehension, and those of them that an import binds."""

    names: set[str]
    imports: dict[str, Import] = field(default_factory=dict)
    is_class: bool = False


class _Writer:
    """Writes a tree as text, without docstrings, annotations and import lines, every reference left blank."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.references: list[Reference] = []
        self._scopes: list[_Scope] = []

    def write(self, node: ast.AST) -> None:
        """Write a node and what is below it."""
        if (reference := self._reference(node)) is not None:
            self.text.append("reference")
            self.references.append(reference)
            return
        if isinstance(node, ast.Import | ast.ImportFrom):
            return
        self.text.append(type(node).__name__)
        if isinstance(node, _FUNCTIONS):
            self._write_function(node)
        elif isinstance(node, ast.ClassDef):
            self._write_class(node)
        elif isinstance(node, _COMPREHENSIONS):
            names = {
                inner.id
                for generator in node.generators
                for inner in ast.walk(generator.target)
                if isinstance(inner, ast.Name)
            }
            self._scopes.append(_Scope(names))
            self._write_fields(node)
            self._scopes.pop()
        else:
            self._write_fields(node)
        self.text.append("end")

    def _write_fields(self, node: ast.AST, leave_out: Sequence[str] = ()) -> None:
        for name, value in ast.iter_fields(node):
            if name in leave_out or name in ("ctx", "type_comment", "type_params", "kind"):
                continue
            if isinstance(node, ast.AnnAssign) and name == "annotation":
                # Of a class's fields the text counts: dataclasses go by it.
                if self._scopes and self._scopes[-1].is_class:
                    self.text.append(ast.unparse(node.annotation))
                continue
            self._write_value(name, value)

    def _write_value(self, name: str, value: object) -> None:
        if isinstance(value, ast.AST):
            self.text.append(name)
            self.write(value)
        elif isinstance(value, list):
            if value:
                self.text.append(name)
            for item in value:
                self._write_value("-", item)
        elif value is not None:
            self.text.append(f"{name}={value!r}")

    def _write_body(self, body: Sequence[ast.stmt]) -> None:
        for i, node in enumerate(body):
            if not (i == 0 and _is_docstring(node)) and not _is_bare_annotation(node, self._scopes):
                self.write(node)

    def _write_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [one for one in (arguments.vararg, arguments.kwarg) if one]
        counts = [len(arguments.posonlyargs), len(arguments.args), arguments.vararg is not None]
        self.text.append(f"{getattr(node, 'name', '')}({', '.join(a.arg for a in every)}) {counts}")
        # Defaults and decorators are worked out where the function stands.
        for outer in (*arguments.defaults, *arguments.kw_defaults, *getattr(node, "decorator_list", ())):
            if outer is None:
                self.text.append("none")
            else:
                self.write(outer)
        body = node.body if isinstance(node.body, list) else [ast.Expr(node.body)]
        self._scopes.append(_function_scope([a.arg for a in every], body))
        self._write_body(body)
        self._scopes.pop()

    def _write_class(self, node: ast.ClassDef) -> None:
        self.text.append(node.name)
        for outer in (*node.bases, *node.keywords, *node.decorator_list):
            self.write(outer)
        scope = _function_scope([], node.body)
        scope.is_class = True
        self._scopes.append(scope)
        self._write_body(node.body)
        self._scopes.pop()

    def _reference(self, node: ast.AST) -> Reference | None:
        """Return what a node mentions if that is global or imported; None for what is the function's own."""
        if isinstance(node, ast.Constant):
            is_named = isinstance(node.value, str) and NAMED.fullmatch(node.value)
            return Reference((str(node.value),)) if is_named else None
        chain: list[str] = []
        while isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            chain.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        whole = (node.id, *reversed(chain))
        for scope in reversed(self._scopes):
            if scope.is_class and scope is not self._scopes[-1]:
                continue
            if node.id in scope.imports:
                found = scope.imports[node.id]
                return Reference((*((found.name,) if found.name else ()), *whole[1:]), found.module)
            if node.id in scope.names:
                return None
        # What the top level binds itself is no mention; what a function changes there is.
        is_own = not self._scopes and not isinstance(node.ctx, ast.Load)
        return None if is_own else Reference(whole)


def _is_bare_annotation(node: ast.stmt, scopes: Sequence[_Scope]) -> bool:
    return isinstance(node, ast.AnnAssign) and node.value is None and not scopes[-1].is_class


def _function_scope(arguments: Iterable[str], body: Sequence[ast.stmt]) -> _Scope:
    """Return the names that are a function's or class's own: arguments, and what its body binds."""
    scope = _Scope(set(arguments))
    others: set[str] = set()
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            scope.names.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            scope.imports.update(_bindings(node))
        elif isinstance(node, ast.Global | ast.Nonlocal):
            others.update(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            scope.names.add(node.id)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            scope.names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            scope.names.add(node.rest)
        if isinstance(node, _COMPREHENSIONS):
            # Its targets are its own; what it assigns by := is the function's.
            walrus = (inner.target for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr))
            scope.names.update(target.id for target in walrus)
            continue
        waiting.extend(ast.iter_child_nodes(node))
    scope.names -= others
    return scope
