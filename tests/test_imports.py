"""The house rules about imports, read from the source: which room imports which, and what nobody imports."""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from textbench.tasks.storage.definitions import PACKAGE

PROJECT = Path(__file__).resolve().parent.parent
# What a room may import of the project.
ALLOWED = {
    "flows": {"flows", "tasks", "featurizers", "evaluation"},
    "tasks": {"tasks", "featurizers", "evaluation"},
    "featurizers": {"featurizers"},
    "evaluation": {"evaluation"},
}
# featurizers and evaluation know nothing of what runs and records them.
PLUMBING = {"prefect", "prefect_dask", "mlflow", "optuna", "dask", "distributed"}
PICKLES = {"pickle", "joblib", "cloudpickle", "dill", "marshal", "shelve"}
SLOW = (
    "sklearn",
    "mlflow",
    "prefect",
    "pandas",
    "numpy",
    "optuna",
    "scipy",
    "pyarrow",
    "matplotlib",
    "gensim",
)
FILES = sorted(path for room in ALLOWED for path in (PROJECT / room).rglob("*.py"))


@functools.cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return what a file is made of: two tests read each file."""
    return tuple(ast.walk(ast.parse(path.read_bytes())))


def imports(path: Path) -> Iterator[str]:
    """Yield the dotted name of everything a file imports, wherever in it."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, (
                f"{path}, line {node.lineno}: relative imports escape a recipe's fingerprint"
            )
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def name_of(path: Path) -> str:
    return str(path.relative_to(PROJECT))


# The formatter breaks a line that its comment makes too long, and leaves the comment at the bracket.
TORN = re.compile(r"^\s*[\])}]+[:,]*  # (?!fmt: |type: )")


def test_no_comment_is_torn_from_its_line() -> None:
    files = [*FILES, *(PROJECT / "tests").rglob("*.py"), *(PROJECT / "infra").rglob("*.py")]
    lines = ((path, *line) for path in files for line in enumerate(path.read_text("utf-8").splitlines(), 1))
    assert [f"{name_of(path)}:{number}" for path, number, line in lines if TORN.match(line)] == []


def test_there_are_files_to_read() -> None:
    assert {path.relative_to(PROJECT).parts[0] for path in FILES} == set(ALLOWED)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_go_one_way(path: Path) -> None:
    room = path.relative_to(PROJECT).parts[0]
    for name in imports(path):
        top, _, rest = name.partition(".")
        assert top not in {*ALLOWED, "tests"}, f"{name_of(path)} imports {name}"
        if top == PACKAGE:
            assert rest.partition(".")[0] in ALLOWED[room], f"{name_of(path)} imports {name}"
        if room in ("featurizers", "evaluation") and not f"{name}.".startswith("optuna.distributions."):
            assert top not in PLUMBING, f"{name_of(path)} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_nothing_pickles(path: Path) -> None:
    for name in imports(path):
        assert not PICKLES & set(name.split(".")), f"{name_of(path)} imports {name}"
    for node in nodes_of(path):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            allowed = node.value.value if isinstance(node.value, ast.Constant) else "a value"
            assert allowed is False, f"{name_of(path)}, line {node.value.lineno}: allow_pickle is {allowed}"


def loaded_by(statement: str) -> set[str]:
    source = f"{statement}\nimport sys\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    command = [sys.executable, "-c", source]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


LIGHT = ("storage.recipe", "storage.store", "storage.isolate", "catalogue", "tracking.tracker")


@pytest.mark.parametrize(
    "module", ["textbench", "textbench.flows.cli", *(f"textbench.tasks.{name}" for name in LIGHT)]
)
def test_what_answers_at_once_imports_nothing_slow(module: str) -> None:
    assert {*SLOW, "pydantic"} & loaded_by(f"import {module}") == set()


def test_planning_a_run_imports_nothing_slower_than_numpy() -> None:
    statement = (
        "from textbench.flows.plan.cell import Request, plan; plan(Request(['r8'], ['tfidf', 'lsi'], [0, 1]))"
    )
    assert set(SLOW) & loaded_by(statement) <= {"numpy"}
