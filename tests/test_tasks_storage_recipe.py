"""Recipes: what changes a key, what does not, and what no key may hold."""

import ast
import importlib.metadata
import json
import math
import os
import re
import shutil
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textbench.tasks.storage import definitions, kept_traces, recipe, shapes
from textbench.tasks.storage.recipe import Reference, at_one_time, canonical_json, refer

JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
    ),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def forget() -> None:
    shapes.read.cache_clear()
    recipe._TRACES.clear()
    kept_traces._content.cache_clear()
    recipe._version.cache_clear()
    recipe._installed.cache_clear()
    recipe._worked_on.cache_clear()


@pytest.fixture(autouse=True)
def fresh_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    forget()
    yield
    forget()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project to make recipes of: a stage, a module it imports inside a function, the store."""
    sources = {
        "tasks/__init__.py": '"""Tasks."""\n',
        "tasks/stage.py": (
            '"""A stage."""\n\nimport json\n\nfrom textbench.tasks.storage import store\n\n\n'
            'def compute(job):\n    """Compute."""\n    from textbench.featurizers import method\n\n'
            "    return method.apply(job) + method.later('textbench.tasks.second:compute', store.VERSION)\n"
        ),
        "tasks/storage/store.py": '"""Store."""\n\nVERSION = 1\n',
        "featurizers/__init__.py": "",
        "featurizers/method.py": (
            "import json\nimport yaml\n\nfrom textbench.featurizers.basis import apply\n\n"
            "__all__ = ['apply', 'later']\n\n\n"
            "def later(function, n):\n    return yaml.dump(function) * n\n\n\n"
            "def unused(x):\n    return x\n"
        ),
        "featurizers/basis.py": (
            "from textbench.featurizers import base\n\nSCALE = 2\nTABLE = {'a': 1}\nTABLE['b'] = 2\n\n\n"
            "def twice(function):\n    return function\n\n\n"
            "class Shape(base.Parent):\n    factor = SCALE\n\n    def area(self):\n"
            "        return self.side() * TABLE['a']\n\n\n"
            "@twice\ndef apply(x):\n    scale = 3\n    return Shape().area() + [scale for scale in x][0]\n"
        ),
        "featurizers/base.py": "class Parent:\n    def side(self):\n        return 1\n",
        "tasks/second.py": "LOCAL = 1\n\n\ndef compute(job):\n    return LOCAL\n",
        "featurizers/stranger.py": "VALUE = 1\n",
    }
    for name, text in sources.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(definitions, "PROJECT", tmp_path)
    return tmp_path


def key(params: dict[str, Any] | None = None, **more: Any) -> str:
    forget()
    return refer("textbench.tasks.stage:compute", params or {"k": 1}, **more).key


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_order_of_names_does_not_matter() -> None:
    one = {"a": 1, "b": {"c": [1, 2], "d": None}}
    other = {"b": {"d": None, "c": [1, 2]}, "a": 1}
    assert Reference("s", "m:f", one).key == Reference("s", "m:f", other).key
    assert re.fullmatch("[0-9a-f]{64}", Reference("s", "m:f", one).key)


def test_every_part_of_the_recipe_is_in_the_key() -> None:
    up, other_up = Reference("up", "m:f", {"n": 1}), Reference("up", "m:f", {"n": 2})
    references = [
        Reference("s", "m:f", {"a": 1}),
        Reference("t", "m:f", {"a": 1}),
        Reference("s", "m:f", {"a": 2}),
        Reference("s", "m:f", {"a": 1.0}),
        Reference("s", "m:f", {"a": True}),
        Reference("s", "m:f", {"a": "1"}),
        Reference("s", "m:f", {"a": [1]}),
        Reference("s", "m:f", {"a": 1}, code="c"),
        Reference("s", "m:f", {"a": 1}, libraries={"numpy": "1"}),
        Reference("s", "m:f", {"a": 1}, {"x": up}),
        Reference("s", "m:f", {"a": 1}, {"x": other_up}),
        Reference("s", "m:f", {"a": 1}, {"y": up}),
    ]
    assert len({reference.key for reference in references}) == len(references)
    assert Reference("s", "m:g", {"a": 1}).key == references[0].key  # its code counts, not its place


def test_order_of_a_list_matters_but_a_tuple_is_a_list() -> None:
    assert Reference("s", "m:f", {"a": [1, 2]}).key != Reference("s", "m:f", {"a": [2, 1]}).key
    assert Reference("s", "m:f", {"a": [1, 2]}).key == Reference("s", "m:f", {"a": (1, 2)}).key


def test_the_key_survives_json() -> None:
    up = Reference("up", "m:f", {"text": "naïve ☃", "x": 0.1 + 0.2, "none": None})
    reference = Reference("s", "m:g", {"k": (1, 2)}, {"up": up}, "code", {"numpy": "2.4"})
    again = Reference.from_json(json.loads(json.dumps(reference.to_json())))
    assert again.key == reference.key
    assert again.inputs["up"].key == up.key
    assert again.to_json() == json.loads(json.dumps(reference.to_json()))


def test_a_label_names_the_method_or_what_it_is_made_of() -> None:
    corpus = Reference("ingest", "m:f", {"dataset": "r8"})
    vectors = Reference("vectorize", "m:f", {}, {"corpus": corpus})
    assert corpus.label == f"r8 {corpus.key[:8]}"
    assert vectors.label == f"r8 {vectors.key[:8]}"
    assert Reference("s", "m:f", {}).label == Reference("s", "m:f", {}).key[:8]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"a": np.float64(1)}, r"float64 in \.a$"),
        ({"a": {"b": np.int64(1)}}, r"int64 in \.a\.b$"),
        ({"a": [1, {"b": {1, 2}}]}, r"set in \.a\[\]\.b$"),
        ({"a": np.array([1])}, r"ndarray in \.a$"),
        ({"a": math.nan}, r"finite numbers, got nan in \.a$"),
        ({"a": [-math.inf]}, r"finite numbers, got -inf in \.a\[\]$"),
        ({"a": Path("x")}, r"PosixPath in \.a$"),
        ({"a": b"x"}, r"bytes in \.a$"),
        ({"a": {1: 2}}, r"names are strings, got 1 in \.a$"),
        ({None: 2}, r"names are strings, got None in the recipe$"),
        ({"a": np.str_("x")}, r"str_ in \.a$"),
        ({"a": "\ud800"}, r"in \.a$"),
    ],
)
def test_what_json_cannot_hold_exactly_is_refused(params: dict[Any, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        refer("textbench.tasks.ingest:compute", params)
    with pytest.raises(TypeError, match=r"in \.params"):
        _ = Reference("s", "m:f", params).key


@settings(max_examples=60, derandomize=True)
@given(JSON)
def test_canonical_json_reads_back_and_is_its_own_canon(value: Any) -> None:
    text = canonical_json(value)
    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text


@settings(max_examples=60, derandomize=True)
@given(st.dictionaries(st.text(), JSON, min_size=2))
def test_canonical_json_does_not_see_the_order(value: dict[str, Any]) -> None:
    assert canonical_json(dict(reversed(value.items()))) == canonical_json(value)


def test_a_stage_is_named_like_its_module() -> None:
    assert refer("textbench.tasks.ingest:compute", {}).stage == "ingest"
    assert refer("textbench.tasks.ingest:compute", {}, stage="other").stage == "other"


CHANGES = {
    "a line of the stage": ("tasks/stage.py", "(job) +", "(job) -"),
    "a line of what it imports in a function": ("featurizers/method.py", "* n", "* (n + 1)"),
    "a line of what that imports": ("featurizers/basis.py", "[0]", "[1]"),
    "a constant that a class reads": ("featurizers/basis.py", "SCALE = 2", "SCALE = 3"),
    "a table that is filled later": ("featurizers/basis.py", "TABLE['b'] = 2", "TABLE['b'] = 3"),
    "a method of a base class": ("featurizers/base.py", "return 1", "return 2"),
    "a decorator": ("featurizers/basis.py", "    return function", "    return function or None"),
    "a function that a text names": ("tasks/second.py", "LOCAL = 1", "LOCAL = 2"),
    "what importing a module does": ("featurizers/base.py", "class Parent", "print(1)\n\n\nclass Parent"),
    "what a package does when it is imported": ("tasks/__init__.py", '"""\n', '"""\nprint(1)\n'),
}
KEEPS = {
    "a docstring of a module": ("tasks/stage.py", '"""A stage."""', '"""The same stage, said better."""'),
    "no docstring": ("tasks/stage.py", '    """Compute."""\n', ""),
    "a comment": ("tasks/stage.py", "VERSION)", "VERSION)  # why"),
    "formatting": ("tasks/stage.py", "method.apply(job) +", "method . apply( job )+"),
    "a function that nobody calls": ("featurizers/method.py", "return x", "return -x"),
    "an import that nobody uses": ("featurizers/method.py", "import json\n", "import os\n"),
    "another name for a module": ("tasks/stage.py", "import method", "import method as method"),
    "an annotation": ("featurizers/basis.py", "def apply(x):", "def apply(x: 'int') -> 'int':"),
    "a constant of a package": ("tasks/__init__.py", '"""\n', '"""\nX = 1\n'),
    "what only a script does": (
        "featurizers/base.py",
        "class",
        "if __name__ == '__main__':\n    print(1)\n\nclass",
    ),
    "the store": ("tasks/storage/store.py", "VERSION = 1", "VERSION = 2"),
    "a module nobody imports": ("featurizers/stranger.py", "1", "2"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_changed_code_changes_the_key(project: Path, change: tuple[str, str, str]) -> None:
    before = key()
    edit(project / change[0], *change[1:])
    assert key() != before


@pytest.mark.parametrize("change", KEEPS.values(), ids=KEEPS.keys())
def test_what_computes_the_same_keeps_the_key(project: Path, change: tuple[str, str, str]) -> None:
    before = key()
    edit(project / change[0], *change[1:])
    assert key() == before


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_file_that_changes_in_the_life_of_a_process_is_read_again(
    project: Path, change: tuple[str, str, str]
) -> None:
    before = refer("textbench.tasks.stage:compute", {}).code
    path = project / change[0]
    written = path.stat().st_mtime_ns
    edit(path, *change[1:])
    os.utime(path, ns=(written, written + 10**7))  # the file system's clock may not have moved on
    assert refer("textbench.tasks.stage:compute", {}).code != before


def test_a_package_that_appears_is_followed_and_one_that_goes_is_not(project: Path) -> None:
    """A package stands before a file of its name, as it does for Python."""
    before = refer("textbench.tasks.stage:compute", {}).code
    new = project / "featurizers/basis/__init__.py"
    new.parent.mkdir()
    new.write_text("def apply(x):\n    return 0\n")
    assert refer("textbench.tasks.stage:compute", {}).code != before
    new.unlink()
    assert refer("textbench.tasks.stage:compute", {}).code == before


def test_definitions_are_followed_once_as_long_as_the_files_are_the_same(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed: list[Any] = []
    trace = definitions.trace
    monkeypatch.setattr(definitions, "trace", lambda entries: followed.append(entries) or trace(entries))
    keys = {refer("textbench.tasks.stage:compute", {"k": k}).key for k in range(100)}
    assert len(keys) == 100
    assert followed == [(("textbench.tasks.stage", "compute"),)]


def test_files_are_looked_at_once_where_they_are_taken_for_unchanged(project: Path) -> None:
    with at_one_time():
        before = refer("textbench.tasks.stage:compute", {}).code
        edit(project / "featurizers/basis.py", "SCALE = 2", "SCALE = 3 + 4")
        assert refer("textbench.tasks.stage:compute", {}).code == before
    assert refer("textbench.tasks.stage:compute", {}).code != before


@pytest.fixture
def followed(project: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What definitions were followed of, in a project whose files have been there for an hour."""
    for path in project.rglob("*.py"):
        age(path)
    asked: list[Any] = []
    trace = definitions.trace
    monkeypatch.setattr(definitions, "trace", lambda entries: asked.append(entries) or trace(entries))
    return asked


def age(path: Path) -> None:
    """Make a file an hour older than it is."""
    an_hour_ago = path.stat().st_mtime_ns - 3600 * 10**9
    os.utime(path, ns=(an_hour_ago, an_hour_ago))


def test_another_process_does_not_follow_what_was_followed(followed: list[Any]) -> None:
    before = refer("textbench.tasks.stage:compute", {})
    (found,) = recipe._TRACES.values()
    forget()
    assert refer("textbench.tasks.stage:compute", {}) == before
    assert len(followed) == 1
    assert list(recipe._TRACES.values()) == [found]


def test_a_file_of_other_content_is_followed_again_whatever_its_date(
    project: Path, followed: list[Any]
) -> None:
    before = key()
    path = project / "featurizers/basis.py"
    status = path.stat()
    edit(path, "SCALE = 2", "SCALE = 3")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert definitions.stamp(path) == (status.st_mtime_ns, status.st_size)
    changed = key()
    path.unlink()
    assert len({before, changed, key()}) == 3
    assert len(followed) == 3


def test_a_file_that_has_only_just_changed_is_followed_again(project: Path, followed: list[Any]) -> None:
    """It may change once more within the same tick of the file system's clock."""
    (project / "featurizers/method.py").touch()
    key()
    forget()
    key()
    assert len(followed) == 2


def test_a_kept_trace_that_is_damaged_is_noticed(followed: list[Any], tmp_path: Path) -> None:
    before = key()
    (file,) = (tmp_path / "cache").rglob("*.json")
    whole = file.read_bytes()
    for damage in (b"", whole[:100], whole.replace(b'"code": "', b'"code": "0'), b"\xff" + whole):
        file.write_bytes(damage)
        forget()
        assert key() == before
    assert len(followed) == 5
    assert file.read_bytes() == whole


def test_a_cache_folder_that_cannot_be_written_to_costs_time_alone(
    followed: list[Any], tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file stands where the folder should be")
    before = key()
    forget()
    assert key() == before
    assert len(followed) == 2


def test_definitions_looked_up_by_name_count(project: Path) -> None:
    stranger = ("textbench.featurizers.stranger", "VALUE")
    assert key(uses=[stranger]) != key()
    before = key(uses=[stranger])
    edit(project / "featurizers/stranger.py", "1", "2")
    assert key(uses=[stranger]) != before


def test_a_name_that_is_missing_counts_once_it_appears(project: Path) -> None:
    needs = ("textbench.featurizers.stranger", "NEEDS")
    before = key(uses=[needs])
    with (project / "featurizers/stranger.py").open("a") as file:
        file.write("NEEDS = ('word_vectors',)\n")
    assert key(uses=[needs]) != before


@pytest.mark.parametrize("table", ["{'a': VALUE, 'b': 2}", "(Row('a', VALUE), Row('b', 2))"])
def test_an_entry_of_a_table_counts_alone(project: Path, table: str) -> None:
    path = project / "featurizers/stranger.py"
    path.write_text(f"VALUE = 1\nROWS = {table}\n")
    one, other = (("textbench.featurizers.stranger", "ROWS", name) for name in ("a", "b"))
    before = key(uses=[one]), key(uses=[other])
    edit(path, "VALUE = 1", "VALUE = 3")
    assert key(uses=[one]) != before[0]
    assert key(uses=[other]) == before[1]


def test_an_attribute_that_cannot_be_followed_takes_the_whole_module(project: Path) -> None:
    edit(project / "tasks/stage.py", "method.apply(job)", "getattr(method, job)")
    before = key()
    edit(project / "featurizers/method.py", "return x", "return -x")
    assert key() != before


def test_a_function_that_stands_elsewhere_is_the_same(project: Path) -> None:
    before = key()
    (project / "tasks/moved.py").write_text((project / "tasks/stage.py").read_text())
    assert refer("textbench.tasks.moved:compute", {"k": 1}, stage="stage").key == before


def test_a_file_of_the_users_counts_by_what_it_holds(project: Path, tmp_path: Path) -> None:
    mine, moved = tmp_path / "mine.py", tmp_path / "elsewhere.py"
    mine.write_text("from textbench.featurizers import stranger\nX = stranger.VALUE\n")
    moved.write_text('"""Documented."""\nfrom textbench.featurizers import stranger\nX = stranger.VALUE\n')
    before = key(uses=[(str(mine), "X")])
    assert key(uses=[(str(moved), "X")]) == before
    edit(project / "featurizers/stranger.py", "1", "2")
    assert key(uses=[(str(mine), "X")]) != before


def test_a_module_that_is_not_there_is_refused(project: Path) -> None:
    with pytest.raises(ValueError, match=r"tasks\.no_such_stage"):
        refer("textbench.tasks.no_such_stage:compute", {})
    with pytest.raises(ValueError, match=r"featurizers\.no_such_method"):
        refer("textbench.tasks.stage:compute", {}, uses=[("textbench.featurizers.no_such_method", "build")])


def library_change(name: str) -> Callable[[str], str]:
    real = importlib.metadata.version
    return lambda library: "0.0.1" if library == name else real(library)


@pytest.mark.parametrize(
    ("name", "counts"), [("pyyaml", True), ("numpy", True), ("scipy", True), ("mlflow", False)]
)
def test_versions_of_imported_libraries_count(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str, counts: bool
) -> None:
    before = key()
    monkeypatch.setattr(importlib.metadata, "version", library_change(name))
    assert (key() != before) == counts


def test_libraries_are_named_with_their_versions(project: Path) -> None:
    libraries = refer("textbench.tasks.stage:compute", {}).libraries
    assert set(libraries) == {"python", "numpy", "scipy", "yaml"}
    assert libraries["yaml"] == importlib.metadata.version("pyyaml")
    assert libraries["numpy"] == np.__version__


@pytest.mark.parametrize("is_package", [False, True])
def test_a_module_that_is_worked_on_counts_by_its_files(
    is_package: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no version, or one that stays while it changes."""
    place = tmp_path / "helper_of_a_test"
    file = place / "inner.py" if is_package else place.with_suffix(".py")
    file.parent.mkdir(exist_ok=True)
    file.write_text("FACTOR = 1")
    if is_package:
        (place / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    names = frozenset({"helper_of_a_test", "numpy"})
    first = recipe.versions(names)
    assert first["numpy"] == np.__version__ and first["helper_of_a_test"].startswith("sha256:")
    assert recipe.versions(names) == first
    file.write_text("FACTOR = 3")
    assert recipe.versions(names)["helper_of_a_test"] != first["helper_of_a_test"]


def test_a_folder_without_init_is_a_module_and_what_has_no_spec_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "folder_of_a_test" / "inner.py"
    file.parent.mkdir()
    file.write_text("FACTOR = 1")
    stub = types.ModuleType("stub_of_a_test")
    stub.__spec__ = None
    monkeypatch.setitem(sys.modules, "stub_of_a_test", stub)
    names = frozenset({"folder_of_a_test"})
    first = recipe.versions(names)["folder_of_a_test"]
    assert first.startswith("sha256:") and recipe._worked_on("stub_of_a_test") == ()
    with recipe.at_one_time():  # of one state of the files
        assert recipe.versions(names)["folder_of_a_test"] == first
        file.write_text("FACTOR = 22")
        assert recipe.versions(names)["folder_of_a_test"] == first
    assert recipe.versions(names)["folder_of_a_test"] != first
    shutil.rmtree(file.parent)  # a module that is gone is missed where it is imported, not here
    assert recipe.versions(names)["folder_of_a_test"].startswith("sha256:")


def test_the_projects_own_libraries_are_all_known() -> None:
    for stage in ("ingest", "audit", "vectorize", "featurize", "tune", "predict"):
        libraries = refer(f"textbench.tasks.{stage}:compute", {}).libraries
        assert not any(one == "unknown" or one.startswith("sha256:") for one in libraries.values()), stage


def test_a_text_is_parsed_while_other_threads_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython 3.11 raises SystemError when threads parse at once (gh-106905); bad texts are refused at once."""
    parse, failures = ast.parse, iter([SystemError("AST constructor recursion depth mismatch")] * 3)

    def unlucky(*arguments: Any) -> ast.AST:
        for failure in failures:
            raise failure
        return parse(*arguments)

    monkeypatch.setattr(shapes.ast, "parse", unlucky)
    assert ast.dump(shapes.syntax_tree("a = 1")) == ast.dump(parse("a = 1"))
    assert next(failures, None) is None
    with pytest.raises(SyntaxError):
        shapes.syntax_tree("a =")


def test_a_library_that_is_not_installed_is_unknown_without_reading_all_that_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused() -> dict[str, list[str]]:
        raise AssertionError("every installed distribution is read")

    recipe._version.cache_clear()
    assert recipe._version("yaml") == importlib.metadata.version("pyyaml")
    assert recipe._version("_pytest") == importlib.metadata.version("pytest")  # by its owner
    monkeypatch.setattr(importlib.metadata, "packages_distributions", refused)
    assert recipe._version("no_such_library") == "unknown"
