"""The house rules about docstrings, read from the source: prose that names parameters, results, errors and sources."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parent.parent
ROOMS = ("flows", "tasks", "featurizers", "evaluation")
FILES = [PROJECT / "__init__.py", *sorted(path for room in ROOMS for path in (PROJECT / room).rglob("*.py"))]

# A method is a file of its own.
METHOD = re.compile(r"featurizers/[a-z]\w*\.py")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Documented(NamedTuple):
    """A public module, class or function: where it is, its syntax tree, its docstring, and its class's tree."""

    path: str
    name: str
    node: ast.Module | ast.ClassDef | Function
    doc: str
    owner: ast.ClassDef | None = None

    def __str__(self) -> str:
        return f"{self.path}:{getattr(self.node, 'lineno', 1)} {self.name}"


def promised(node: ast.ClassDef | Function) -> bool:
    """Tell whether a body is `...`: a protocol's, described where it is implemented, or an overload's."""
    only = node.body[0]
    return isinstance(only, ast.Expr) and isinstance(only.value, ast.Constant) and only.value.value is ...


def is_promise(node: Function) -> bool:
    """Tell whether this is a check of `featurizers._contract`: its docstring is the promise that it prints."""
    return any(each.annotation and ast.unparse(each.annotation) == "Subject" for each in node.args.args)


def public(path: str, body: list[ast.stmt], owner: ast.ClassDef | None = None) -> Iterator[Documented]:
    """Yield the public classes and functions of a module or class; what a function holds is its own."""
    for node in body:
        if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_") and not promised(node):
            name = f"{owner.name}.{node.name}" if owner else node.name
            yield Documented(path, name, node, ast.get_docstring(node) or "", owner)
            if isinstance(node, ast.ClassDef):
                yield from public(path, node.body, node)


class Source(NamedTuple):
    """The project's syntax trees by path, and what is documented in them."""

    trees: dict[str, ast.Module]
    modules: list[Documented]
    items: list[Documented]
    classes: dict[str, ast.ClassDef]
    functions: list[tuple[Documented, Function]]


@functools.cache
def source() -> Source:
    """Read it when a test asks: every process of pytest imports this module, and one of them runs its tests."""
    trees = {str(path.relative_to(PROJECT)): ast.parse(path.read_bytes()) for path in FILES}
    modules = [Documented(path, "", tree, ast.get_docstring(tree) or "") for path, tree in trees.items()]
    items = [item for path, tree in trees.items() for item in public(path, tree.body)]
    classes = {item.name: item.node for item in items if isinstance(item.node, ast.ClassDef)}
    functions = [
        (item, item.node) for item in items if isinstance(item.node, Function) and not is_promise(item.node)
    ]
    return Source(trees, modules, items, classes, functions)


def decorators(node: Function) -> set[str]:
    """Return the last names of a function's decorators."""
    return {ast.unparse(each).partition("(")[0].rpartition(".")[2] for each in node.decorator_list}


def test_everything_public_has_a_docstring() -> None:
    assert len(source().modules) > 200
    assert len(source().functions) > 1000
    assert [str(item) for item in (*source().modules, *source().items) if not item.doc] == []


def test_a_summary_is_a_sentence() -> None:
    """Its first paragraph ends with a period, a question mark or, before what follows, a colon."""
    summaries = (
        (item, item.doc.split("\n\n")[0].rstrip())
        for item in (*source().modules, *source().items)
        if item.doc
    )
    assert [str(item) for item, summary in summaries if not summary.endswith((".", ":", "?"))] == []


# A summary that is no order but names the result, and the words of an order that do.
NAMES_IT = re.compile(
    r"(The|An?|Its?|Every|All|Each|Whether|What|Which|Whose|Where|When|How|Tell|Say|Name|Draw)\b"
)
GIVES_IT = re.compile(r"\b(returns?|returned|yields?|yielded|gives?|given back)\b", re.IGNORECASE)
SPEAK_FOR_THEMSELVES = {"property", "cached_property", "contextmanager"}


def says_what_it_returns(doc: str) -> bool:
    """Tell whether the first sentence names the result, if only behind a colon, or any sentence gives it."""
    sentence = re.split(r"(?<=[.])\s", doc, maxsplit=1)[0]
    return bool(NAMES_IT.match(sentence) or ": " in " ".join(sentence.split()) or GIVES_IT.search(doc))


def test_what_returns_something_says_what() -> None:
    """Properties are named for it, context managers are for what they do, and `-> Self` is the estimator."""
    wordless = [
        str(item)
        for item, node in source().functions
        if node.returns
        and ast.unparse(node.returns) not in ("None", "NoReturn", "Never", "Self")
        and not decorators(node) & SPEAK_FOR_THEMSELVES
        and not says_what_it_returns(item.doc)
    ]
    assert wordless == []


def raised(node: Function) -> set[str]:
    """Return the names of the exception classes that a function raises itself."""
    calls = (each.exc for each in ast.walk(node) if isinstance(each, ast.Raise))
    names = {call.func.id for call in calls if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)}
    return {name for name in names if name[0].isupper()}  # others are functions that make one


def is_command(item: Documented, node: Function) -> bool:
    """Tell whether a function is a command, whose docstring is its help, read by who knows no exceptions."""
    annotations = (ast.unparse(each.annotation) for each in arguments(node) if each.annotation)
    return item.path.startswith("flows/cli/") and any("typer." in each for each in annotations)


def test_what_raises_says_what() -> None:
    unsaid = [
        f"{item} {name}"
        for item, node in source().functions
        if not is_command(item, node)
        for name in sorted(raised(node))
        if not re.search(rf"\b{name}s?\b", item.doc)
    ]
    assert unsaid == []


def arguments(node: Function) -> list[ast.arg]:
    """Return a function's parameters, without self."""
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [each for each in every if each.arg not in ("self", "cls")]


def says_name(name: str, doc: str) -> bool:
    return bool(re.search(rf"\b{re.escape(name)}\b", doc))


def lineage(node: ast.ClassDef) -> Iterator[ast.ClassDef]:
    """Yield a class and those of the project it inherits from."""
    yield node
    for base in node.bases:
        if ast.unparse(base) in source().classes:
            yield from lineage(source().classes[ast.unparse(base)])


def test_an_estimator_says_its_parameters() -> None:
    """Of the class that a method file's `build` returns, or of one that it inherits from."""
    unnamed = []
    for path, tree in source().trees.items():
        if METHOD.fullmatch(path):
            functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
            classes = list(
                lineage(source().classes[ast.unparse(functions["build"].returns or functions["build"])])
            )
            doc = "\n".join(ast.get_docstring(each) or "" for each in classes)
            bodies = [each for one in classes for each in one.body if isinstance(each, ast.FunctionDef)]
            constructor = next((each for each in bodies if each.name == "__init__"), None)
            names = [each.arg for each in arguments(constructor)] if constructor else []
            unnamed += [f"{path} {name}" for name in names if not says_name(name, doc)]
    assert unnamed == []


ARRAY = re.compile(r"ndarray|csr_matrix|csr_array|sparse|ArrayLike|NDArray")
# A shape stands in parentheses: (n,), (n_documents, n_terms), (length + 1,).
SHAPE = re.compile(r"\(\d*[A-Za-z][\w +]*,[\w +,.]*\)")


def where_described(item: Documented) -> str:
    """Return the docstrings that may say a function's parameters: its own, its class's and its module's."""
    trees = [*(lineage(item.owner) if item.owner else ()), source().trees[item.path]]
    return "\n".join([item.doc, *(ast.get_docstring(each) or "" for each in trees)])


def test_arrays_are_named_with_shapes() -> None:
    """Where mathematics is: an array is named, with shapes, by its function, the function's class or its module."""
    unnamed = []
    for item, node in source().functions:
        if item.path.startswith(("evaluation/", "featurizers/")):
            doc = where_described(item)
            arrays = [
                each.arg
                for each in arguments(node)
                if each.annotation and ARRAY.search(ast.unparse(each.annotation))
            ]
            unnamed += [f"{item} {name}" for name in arrays if not says_name(name, doc)]
            if arrays and not SHAPE.search(doc):
                unnamed += [f"{item}: shapes of {', '.join(arrays)}"]
    assert unnamed == []


# What is published has its source; these four are the project's own: counts of the data and of sums of metrics,
# limits that were measured, and how a product is arranged.
OUR_OWN = {
    "evaluation/metrics/ceilings.py",
    "evaluation/statistics/sufficient_statistics.py",
    "evaluation/probes/solvers/choice.py",
    "evaluation/probes/solvers/gram.py",
}
PUBLISHED = re.compile(r"evaluation/(metrics|statistics|rankers|probes/solvers)/[a-z]\w*\.py")


def test_what_is_published_has_its_source() -> None:
    """A method, metric, ranker, solver or statistic: a line of its module's docstring begins with it."""
    published = [
        each for each in source().modules if METHOD.fullmatch(each.path) or PUBLISHED.fullmatch(each.path)
    ]
    sourceless = {each.path for each in published if not re.search(r"^Sources?: ", each.doc, re.MULTILINE)}
    assert sourceless == OUR_OWN
