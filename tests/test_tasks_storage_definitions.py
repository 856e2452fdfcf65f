"""Keys by definition: on the real tree, what changes which keys; and that nothing that runs is missed."""

import ast
import contextlib
import dis
import inspect
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from tests.own_documents import write
from textbench.flows.plan.cell import plan
from textbench.flows.plan.request import Request
from textbench.tasks import featurize
from textbench.tasks.storage import definitions, recipe, shapes
from textbench.tasks.storage.definitions import APART, PACKAGE, READ_BY_NAME, ROOMS, trace
from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Store

Keys = dict[str, str]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project's code to be changed; keys are worked out from it, the code that does so stays."""
    copy = tmp_path / "tree"
    for package in ROOMS:
        shutil.copytree(
            definitions.PROJECT / package,
            copy / package,
            ignore=shutil.ignore_patterns("__pycache__", "*.csv"),
        )
    monkeypatch.setattr(definitions, "PROJECT", copy)
    return copy


def keys(methods: tuple[str, ...] = ("tfidf", "scdv", "nb"), **asked: Any) -> Keys:
    """Return the key of every stage of cells on R8, tuned and not, by method and stage."""
    found = {}
    for trials in (0, 4):
        for cell in plan(Request(["r8"], methods, trials=trials, **asked)):
            found |= {f"{cell.method} {trials} {stage}": ref.key for stage, ref in cell.references.items()}
    return found


def edit(tree: Path, name: str, old: str, new: str) -> None:
    path = tree / name
    text = path.read_text()
    assert text.count(old) == 1, (name, old)
    path.write_text(text.replace(old, new))


def changed(before: Keys) -> set[str]:
    return {name for name, key in keys().items() if key != before[name]}


def append(name: str, text: str) -> Callable[[Path], None]:
    def change(tree: Path) -> None:
        with (tree / name).open("a") as file:
            file.write(text)

    return change


def replace(name: str, old: str, new: str) -> Callable[[Path], None]:
    return lambda tree: edit(tree, name, old, new)


class _Moving(ast.NodeTransformer):
    """Renames a module in whatever mentions it."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new
        (self.package, _, self.name), (self.new_package, _, self.new_name) = (
            whole.rpartition(".") for whole in (old, new)
        )

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if node.module == self.old:
            node.module = self.new
        if node.module != self.package or self.name not in {alias.name for alias in node.names}:
            return node
        rest = [alias for alias in node.names if alias.name != self.name]
        moved = ast.ImportFrom(self.new_package, [ast.alias(self.new_name)], 0)
        return [moved, *([ast.ImportFrom(node.module, rest, 0)] if rest else [])]

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id == self.name:
            node.value.id = self.new_name
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, str) and node.value.startswith(f"{self.old}:"):
            return ast.Constant(node.value.replace(self.old, self.new))
        return node


def move(tree: Path, old: str, new: str) -> None:
    """Move a module, and rename it wherever it is mentioned."""
    target = tree.joinpath(*new.split(".")[1:]).with_suffix(".py")
    target.parent.mkdir(parents=True, exist_ok=True)
    tree.joinpath(*old.split(".")[1:]).with_suffix(".py").rename(target)
    for path in tree.rglob("*.py"):
        text = path.read_text()
        if old.rpartition(".")[2] in text:
            path.write_text(ast.unparse(_Moving(old, new).visit(ast.parse(text))))


NOTHING: dict[str, Callable[[Path], None]] = {
    "a metric": replace(
        "evaluation/metrics/single_label.py",
        'METRICS: dict[str, Metric] = {metric.name: metric for metric in _METRICS}',
        'METRICS: dict[str, Metric] = {metric.name: metric for metric in _METRICS}\n'
        'METRICS["half"] = Metric("half", "half of accuracy", lambda t, p: accuracy(t, p) / 2, "labels")',
    ),
    "a token rule": replace("tasks/tokens.py", "RULES = {", 'RULES = {\n    "added": TokenRule(),'),
    "a data set": append("tasks/datasets/added.py", '"""Added."""\nRULE = "words"\n'),
    "a method": append("featurizers/added.py", '"""Added."""\nINPUT = "counts"\n\n\ndef build():\n    return None\n'),
    "a probe": replace("evaluation/probes/catalogue.py", "] = {\n", '] = {\n    "added": LinearSVMProbe,\n'),
    "a docstring": replace(
        "tasks/vectorize.py", "def compute(job", "def compute_nothing():\n    pass\n\n\ndef compute(job"
    ),
    "an annotation": replace("tasks/featurize.py", "def compute(job: Job) -> None:", "def compute(job):"),
    "an import for types": replace(
        "tasks/vectorize.py",
        "if TYPE_CHECKING:\n",
        "if TYPE_CHECKING:\n    from textbench.flows.plan.cell import Cell\n",
    ),
    "a comment": append("evaluation/probes/tuning.py", "# The end.\n"),
    "a data set's protocols": append("tasks/datasets/r8.py", '\nFAITHFUL = {"somebody-2030": {}}\n'),
}  # fmt: skip


@pytest.mark.parametrize("change", NOTHING.values(), ids=NOTHING.keys())
def test_what_is_added_or_said_better_changes_no_key(tree: Path, change: Callable[[Path], None]) -> None:
    before = keys()
    change(tree)
    assert changed(before) == set()


# Every stage, with a method of each kind; what the moves below rename is found from here.
ENTRIES: dict[str, list[tuple[str, ...]]] = {
    "ingest": [("textbench.tasks.ingest", "compute"), ("textbench.tasks.datasets.r8", "load")],
    "vectorize": [("textbench.tasks.vectorize", "compute")],
    "word_vectors": [("textbench.tasks.skip_gram", "compute")],
    "featurize": [("textbench.tasks.featurize", "compute"), *featurize.uses("scdv", {})],
    "tune": [("textbench.tasks.tune", "compute"), *featurize.uses("scdv", {})],
    "evaluate": [
        ("textbench.tasks.predict", "compute"),
        ("textbench.evaluation.probes.catalogue", "PROBES", "linear-svm"),
    ],
}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("textbench.evaluation.probes.folds", "textbench.evaluation.partitions.folds"),
        ("textbench.evaluation.probes.tuning", "textbench.evaluation.choice.grids"),
        ("textbench.tasks.vectorize", "textbench.tasks.text.counting"),
        ("textbench.tasks.featurize", "textbench.tasks.representations"),
        ("textbench.featurizers._word_vectors", "textbench.featurizers._shared.word_sums"),
    ],
)
def test_a_module_that_moves_changes_nothing(
    tree: Path, old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {stage: trace(entries).code for stage, entries in ENTRIES.items()}
    move(tree, old, new)
    # A table that is read by name is listed by its module's name, and moves there with it.
    listed = frozenset(place.replace(f"{old}:", f"{new}:") for place in READ_BY_NAME)
    monkeypatch.setattr(definitions, "READ_BY_NAME", listed)
    for stage, entries in ENTRIES.items():
        here = [(new if module == old else module, *names) for module, *names in entries]
        assert trace(here).code == before[stage], stage


EVERYTHING_OF = {
    "a wider search range": (
        replace("featurizers/scdv.py", "IntDistribution(10, 100, step=10)", "IntDistribution(10, 120, step=10)"),
        {"scdv 4 tune", "scdv 4 evaluate"},
    ),
    "a constant of one method": (
        replace("featurizers/scdv.py", "SMALLEST_MEMBERSHIP = 1e-6", "SMALLEST_MEMBERSHIP = 1e-7"),
        {"scdv 0 featurize", "scdv 0 tune", "scdv 0 evaluate", "scdv 4 tune", "scdv 4 evaluate"},
    ),
    "a base class of several methods": (
        replace("featurizers/_learned.py", "for name in self.learned}", "for name in sorted(self.learned)}"),
        {f"{m} {t} {s}" for m in ("scdv",) for t in (0, 4) for s in ("featurize", "tune", "evaluate")}
        - {"scdv 4 featurize"},
    ),
    "what trains the word vectors": (
        replace("tasks/skip_gram.py", "def compute(job: \"Job\"", "def compute(job: \"Job\", spare=None"),
        {"scdv 0 word_vectors", "scdv 0 featurize", "scdv 0 tune", "scdv 0 evaluate", "scdv 4 tune",
         "scdv 4 evaluate"},
    ),
    "the probe that is asked for": (
        replace("evaluation/probes/catalogue.py", "TOLERANCE = 1e-3", "TOLERANCE = 1e-4"),
        {f"{m} {t} {s}" for m in ("tfidf", "scdv") for t in (0, 4) for s in ("tune", "evaluate")},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), EVERYTHING_OF.values(), ids=EVERYTHING_OF.keys())
def test_a_change_reaches_the_keys_of_what_uses_it_and_no_others(
    tree: Path, change: Callable[[Path], None], expected: set[str]
) -> None:
    before = keys()
    change(tree)
    assert changed(before) == expected


# Methods and probes that between them run most of what stages are made of, on a few documents.
RUN = (
    ("scdv(n_clusters=2, word_vectors__min_count=1, word_vectors__vector_size=4)", "linear-svm", 0),
    ("lsi(n_components=3)", "logistic-regression", 0),
    ("tfidf", "elastic-net", 2),
    ("complement-nb", None, 0),
    ("dcot(n_layers=1)", "linear-svm", 0),
    ("chi2(n_terms=5)", "linear-svm", 0),
    ("char-ngrams", "linear-svm", 0),
)
WORDS = {"fruit": "apple pear plum grape melon peach", "metal": "iron zinc lead gold copper nickel"}


class _Watch:
    """Notes which functions, classes and constants of the project's top levels are run or read meanwhile."""

    def __init__(self) -> None:
        self.definitions: set[str] = set()
        self._known: set[CodeType] = set()

    def __enter__(self) -> None:
        sys.setprofile(self._note)

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_OPTIMIZED  # not the body of a module or class
        if event != "call" or not is_function or code in self._known:
            return
        self._known.add(code)
        own = _module_of(Path(code.co_filename))
        if own is None:
            return
        self.definitions.add(f"{own}:{code.co_qualname.partition('.')[0]}")
        for instruction in dis.get_instructions(code):
            name = instruction.argval
            if instruction.opname == "LOAD_GLOBAL" and name in frame.f_globals:
                self._note_value(own, name, frame.f_globals[name])

    def _note_value(self, module: str, name: str, value: object) -> None:
        """Note a constant that is read where it is bound; functions count when they run."""
        if isinstance(value, str | int | float | tuple | dict | list | frozenset):
            self.definitions.add(f"{module}:{name}")


def _module_of(path: Path) -> str | None:
    if not path.is_relative_to(definitions.PROJECT):
        return None
    inner = path.relative_to(definitions.PROJECT).with_suffix("")
    parts = inner.parts[:-1] if inner.name == "__init__" else inner.parts
    return ".".join((PACKAGE, *parts)) if parts[0] in ROOMS else None


def _is_bound(place: str) -> bool:
    module, _, name = place.partition(":")
    return any(
        name in shapes.read(path, *known).bound
        for path in definitions._candidates(definitions.PROJECT, module)
        if (known := definitions.stamp(path))
    )


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Reference, set[str]]]:
    """A few cells, computed here: by stage its reference, and the definitions that were run or read for it."""
    folder = tmp_path_factory.mktemp("executed")
    draw = random.Random(0)
    rows = [
        (" ".join(draw.choices(words.split(), k=8)), name) for name, words in WORDS.items() for _ in range(20)
    ]
    data = write(folder, "documents.csv", "text,label\n" + "".join(f"{text},{name}\n" for text, name in rows))
    found: dict[str, tuple[Reference, set[str]]] = {}
    store = Store(folder / "store", isolated=False)
    for method, probe, trials in RUN:
        asked: dict[str, Any] = {"probe": probe, "trials": trials, "validation": {"n_folds": 2}}
        (cell,) = plan(Request([], [method], own={"path": str(data)}, **asked))
        for stage, reference in cell.references.items():
            if not store.has(reference):
                with (watch := _Watch()):
                    store.ensure(reference)
                found[f"{cell.method} {stage}"] = (reference, watch.definitions)
    return found


@contextlib.contextmanager
def _edited(place: str) -> Iterator[None]:
    """Change a definition, for as long as it takes: one statement more in its body, or beside a constant."""
    module, _, name = place.partition(":")
    path = next(path for path in definitions._candidates(definitions.PROJECT, module) if path.exists())
    before = path.read_text()
    parsed = ast.parse(before)
    for i, node in enumerate(parsed.body):
        if getattr(node, "name", "") == name and isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.body.append(ast.Pass())
            break
        if name in shapes.stored(node):
            parsed.body[i + 1 : i + 1] = ast.parse(f"{name} = {name}").body
            break
    path.write_text(ast.unparse(parsed))
    yield
    path.write_text(before)


def _is_followed(place: str) -> bool:
    return place.partition(":")[0] not in APART and place not in READ_BY_NAME and _is_bound(place)


def test_whatever_a_stage_runs_or_reads_is_in_its_key(
    executed: dict[str, tuple[Reference, set[str]]], reached: dict[str, frozenset[str]]
) -> None:
    assert {name.partition(" ")[2] for name in executed} >= {"tune", "evaluate"}
    for name, (_, ran) in executed.items():
        missed = {place for place in ran if _is_followed(place)} - reached[name]
        assert not missed, f"{name}: {sorted(missed)}"


@pytest.fixture(scope="module")
def reached(executed: dict[str, tuple[Reference, set[str]]]) -> dict[str, frozenset[str]]:
    """What the trace behind the key of each of these artifacts has."""
    by_code = {found.code: found.definitions for found in recipe._TRACES.values()}
    return {name: by_code[reference.code] for name, (reference, _) in executed.items()}


def test_of_200_definitions_that_are_edited_each_changes_the_keys_it_reaches_and_no_others(
    executed: dict[str, tuple[Reference, set[str]]], reached: dict[str, frozenset[str]], tree: Path
) -> None:
    """What was run or read may change bytes: its edit must change the key. What a key does not reach must not."""
    entries = {
        name: next(place[1] for place, found in recipe._TRACES.items() if found.code == reference.code)
        for name, (reference, _) in executed.items()
    }
    draw = random.Random(1)
    ran = sorted({place for _, seen in executed.values() for place in seen if _is_followed(place)})
    others = sorted({place for seen in reached.values() for place in seen if _is_followed(place)} - set(ran))
    n_ran = min(len(ran), 150)
    for place in draw.sample(ran, n_ran) + draw.sample(others, min(len(others), 200 - n_ran)):
        with _edited(place):
            for name in [n for n in executed if place in executed[n][1]] + draw.sample(sorted(executed), 2):
                is_new = trace(entries[name]).code != executed[name][0].code
                assert is_new == (place in reached[name]), (place, name)
                assert is_new or place not in executed[name][1], (place, name)
