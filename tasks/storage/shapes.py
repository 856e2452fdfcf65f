"""Shapes: what the top level of a Python file binds, imports and does, and what each of its statements refers to.

The text of a statement's shape has no docstrings, no annotations and no import lines, and every reference to something
global is left blank; `tasks.storage.definitions` finds what the references lead to.
"""

import ast
import functools
import hashlib
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

EFFECTS = "<effects>"  # of a file: the statements that define nothing
NAMED = re.compile(r"(?:\w+\.)+\w+:\w+")  # a text that names a function: "module:name"

TRIES = 100

Chain: TypeAlias = tuple[str, ...]


def syntax_tree(source: str | bytes, filename: str = "<text>", mode: Literal["exec", "eval"] = "exec") -> Any:
    """Return what `ast.parse` does, also while other threads parse.

    CPython 3.11 counts the depth of its trees over all threads, and raises SystemError where another thread's parsing
    came between (gh-106905): the same text is parsed again. Raises SyntaxError and ValueError as `ast.parse`.
    """
    for _ in range(TRIES):
        try:
            return ast.parse(source, filename, mode)
        except SystemError:
            time.sleep(0.001)
    return ast.parse(source, filename, mode)


@dataclass(frozen=True)
class Mention:
    """A mention of something global: its name and attributes; `module` where the function imports it itself."""

    chain: Chain
    module: str | None = None


@dataclass(frozen=True)
class Shape:
    """One statement: the digest of its tree with every reference left blank, and these references in order."""

    text: str
    references: tuple[Mention, ...] = ()


@dataclass(frozen=True)
class Import:
    """What an import binds a name to: a module, or a name of one."""

    module: str
    name: str | None = None


@dataclass
class ModuleSource:
    """A file: what its top level binds, by name, what it imports there, and what else it executes."""

    bound: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, Import] = field(default_factory=dict)
    effects: list[ast.stmt] = field(default_factory=list)
    _shapes: dict[str, tuple[Shape, ...]] = field(default_factory=dict)

    def shapes(self, name: str) -> tuple[Shape, ...]:
        """Return the statements behind a name of the file, or behind `EFFECTS`."""
        if name not in self._shapes:
            nodes = self.effects if name == EFFECTS else self.bound[name]
            self._shapes[name] = tuple(shape(node) for node in nodes)
        return self._shapes[name]


def has(source: ModuleSource, name: str) -> bool:
    """Tell whether a file's top level binds or imports a name."""
    return name in source.bound or name in source.imports


def digest(*texts: str) -> str:
    """Return the sha256 of texts, as hexadecimal digits."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


@functools.lru_cache(maxsize=1024)
def read(path: Path, mtime_ns: int, size: int) -> ModuleSource:
    """Return what a file's top level holds."""
    source = ModuleSource()
    for node in syntax_tree(path.read_bytes(), str(path)).body:
        _enter(source, node)
    return source


def _enter(source: ModuleSource, node: ast.stmt) -> None:
    """Note what one statement of the top level binds, imports or does."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        source.imports.update(_bindings(node))
    elif isinstance(node, ast.If) and _is_not_here(node.test):
        for other in node.orelse:
            _enter(source, other)
    elif isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While | ast.Match):
        names = set(stored(node))
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                _enter(source, inner)
        for name in names - source.imports.keys():
            source.bound.setdefault(name, []).append(node)
        if not names:
            source.effects.append(node)
    elif bound := list(stored(node)):
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


def stored(node: ast.stmt) -> Iterator[str]:
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


def shape(node: ast.stmt) -> Shape:
    """Return a statement's shape."""
    writer = _Writer()
    writer.write(node)
    return Shape(digest(*writer.text), tuple(writer.references))


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
        self.references: list[Mention] = []
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

    def _reference(self, node: ast.AST) -> Mention | None:
        """Return what a node mentions if that is global or imported; None for what is the function's own."""
        if isinstance(node, ast.Constant):
            is_named = isinstance(node.value, str) and NAMED.fullmatch(node.value)
            return Mention((str(node.value),)) if is_named else None
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
                return Mention((*((found.name,) if found.name else ()), *whole[1:]), found.module)
            if node.id in scope.names:
                return None
        # What the top level binds itself is no mention; what a function changes there is.
        is_own = not self._scopes and not isinstance(node.ctx, ast.Load)
        return None if is_own else Mention(whole)


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
