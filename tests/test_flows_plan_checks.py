"""What a request may ask for: every range of every parameter, every option beside a suite, metrics, method files."""

import contextlib
import importlib
import inspect
import math
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import typer
from typer.testing import CliRunner

from textbench.featurizers._parameters import Range, Rule, check_parameters
from textbench.flows.cli import app
from textbench.flows.cli.run import BESIDE_PARTS
from textbench.flows.plan import checks
from textbench.flows.plan.cell import plan
from textbench.flows.plan.request import Request
from textbench.tasks import InputError, catalogue, word_vectors
from textbench.tasks.featurize import PREFIX

METHODS = catalogue.methods()
NUMBERS = [
    (name, parameter, annotation)
    for name, entry in METHODS.items()
    for parameter, annotation in (entry.parameters or {}).items()
    if {"int", "float"} & set(annotation.split(" | "))
    and isinstance(entry.constant("ACCEPTS")[parameter], str)
]
RUN = typer.main.get_command(app).commands["run"]  # type: ignore[attr-defined]
OPTIONS = [option for option in RUN.params if option.param_type_name == "option" and option.name != "help"]


def asked(name: str, parameter: str, value: Any) -> None:
    plan(Request(["r8"], [f"{name}({parameter}={value!r})"]))


@pytest.mark.parametrize(("name", "parameter", "annotation"), NUMBERS)
def test_a_number_just_outside_its_range_is_refused_and_the_limits_are_not(
    name: str, parameter: str, annotation: str
) -> None:
    within = Range.read(METHODS[name].constant("ACCEPTS")[parameter])
    is_whole = "float" not in annotation.split(" | ")
    step: Any = (lambda value, way: value + way) if is_whole else lambda v, w: math.nextafter(v, v + w)
    for limit, is_in, way in ((within.low, within.has_low, -1), (within.high, within.has_high, 1)):
        if math.isinf(limit):
            continue
        limit = int(limit) if is_whole else limit
        asked(name, parameter, limit if is_in else step(limit, -way))
        with pytest.raises(InputError, match=f"{name}: {parameter} must be a .*number .*, got "):
            asked(name, parameter, step(limit, way) if is_in else limit)


@pytest.mark.parametrize("name", METHODS)
def test_defaults_and_all_that_is_searched_are_accepted(name: str) -> None:
    module, accepts = METHODS[name].load(), METHODS[name].constant("ACCEPTS", {})
    method = module.build()
    check_parameters(method, accepts)
    signature = inspect.signature(type(method)).parameters
    assert accepts.keys() <= signature.keys()
    for parameter, values in module.SEARCH_SPACE.items():
        rule = Rule.read(METHODS[name].parameters[parameter], accepts.get(parameter))  # type: ignore[index]
        for value in getattr(values, "choices", None) or (values.low, values.high):
            assert rule.allows(value), (parameter, value)
    if "random_state" in signature:
        for seed in (-1, 2**32, 0.5, "0"):
            with pytest.raises(
                ValueError, match="random_state must be a whole number from 0 to 4294967295 or None"
            ):
                check_parameters(module.build(random_state=seed), accepts)


@pytest.mark.parametrize("name", METHODS)
def test_choices_are_those_of_the_code(name: str) -> None:
    module = METHODS[name].load()
    for parameter, accepted in METHODS[name].constant("ACCEPTS", {}).items():
        if isinstance(accepted, tuple):
            known = getattr(module, f"{parameter.upper()}S", None)
            assert known is None or set(known) == set(accepted), parameter
            with pytest.raises(InputError, match=f"{parameter} must be one of .*, got 'no such thing'"):
                asked(name, parameter, "no such thing")


@pytest.mark.parametrize("parameter", [name for name in word_vectors.ACCEPTS if name != "path"])
@pytest.mark.parametrize("trials", [0, 4])
def test_parameters_of_word_vectors_are_refused_by_their_full_name(parameter: str, trials: int) -> None:
    for value in (-1, "many"):
        with pytest.raises(InputError, match=f"{PREFIX}{parameter} must be .*, got {value!r}"):
            plan(Request(["r8"], [f"scdv({PREFIX}{parameter}={value!r})"], trials=trials))
    wrong = parameter[:-1]
    with pytest.raises(
        InputError, match=rf"no parameter '{PREFIX}{wrong}'; did you mean .*{PREFIX}{parameter}\b"
    ):
        plan(Request(["r8"], [f"scdv({PREFIX}{wrong}=1)"], trials=trials))


@pytest.mark.parametrize(
    ("annotation", "accepted", "allowed", "refused", "words"),
    [
        ("int", "[1, 255]", [1, 255], [0, 256, 1.0, True, "1", None], "a whole number from 1 to 255"),
        ("float", "(0, 1)", [0.5, 1e-9], [0, 1, 0.0, math.nan], "a number above 0 and below 1"),
        ("float", "[0, inf)", [0, 1e300], [-1e-9, math.inf], "a number from 0"),
        ("float", "(-inf, 0)", [-1], [0, -math.inf], "a number below 0"),
        ("int | None", "[1, inf)", [1, None], [0, "x"], "a whole number from 1 or None"),
        ("Optional[float]", None, [1, 0.5, None], ["x", True], "a number or None"),
        ("'int | str'", None, [2, "x"], [], ""),
        ("Literal['a', 2] | bool", None, ["a", 2, True], ["b", 1], "True or False or one of a, 2"),
        ("typing.Annotated[int, 'n']", "[1, inf)", [1], [0], "a whole number from 1"),
        ("list[int] | int", None, [3, [1]], ["x", 0.5], "a list or a whole number"),
        ("str", ("a", "b"), ["a"], ["c", 1], "one of a, b"),
        ("", ("l2", None), ["l2", None], ["None", 0], "one of l2, None"),
        ("", "[1, inf)", [1, 2.5, "auto"], [0], "a number from 1"),
        ("Size", None, [1, "x"], [], ""),
    ],
)
def test_a_rule(annotation: str, accepted: Any, allowed: list[Any], refused: list[Any], words: str) -> None:
    rule = Rule.read(annotation, accepted)
    assert [rule.allows(value) for value in allowed] == [True] * len(allowed)
    assert [rule.allows(value) for value in refused] == [False] * len(refused)
    assert str(rule) == words


@pytest.mark.parametrize("accepted", ["1, 2", "[2, 1]", "[a, b]", "", 3, ()])
def test_what_is_no_rule(accepted: Any, tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text(f'INPUT = "counts"\nACCEPTS = {{"n": {accepted!r}}}\n\ndef build(n: int = 1): ...\n')
    with pytest.raises(InputError, match=r"one\.py: ACCEPTS\['n'\]"):
        plan(Request(["r8"], [str(path)]))


def test_a_users_file_may_say_what_it_accepts(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text(
        'INPUT = "counts"\nACCEPTS = {"a": "[1, inf)"}\n\n'
        "def build(a: int | None = 1, b: float = 0, c: list | int = 1, d=2): ...\n"
    )
    for params in ("a=None", "a=3, b=1", "b=0.5", "c=1", "d='x'"):
        plan(Request(["r8"], [f"{path}({params})"]))
    for params, words in (
        ("a=0.5", r"one: a must be a whole number from 1 or None, got 0\.5"),
        ("a=0", "a must be a whole number from 1 or None, got 0"),
        ("c='x'", "c must be a list or a whole number, got 'x'"),
    ):
        with pytest.raises(InputError, match=words):
            plan(Request(["r8"], [f"{path}({params})"]))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('INPUT = "counts"\n', "has no function build"),
        (
            "def build(): ...\n",
            'has no INPUT, which says what the method reads: "counts", "tokens" or "texts"',
        ),
        (
            'INPUT = "words"\ndef build(): ...\n',
            'line 1: INPUT must be "counts", "tokens" or "texts", got \'words\'',
        ),
        (
            'NEEDS = ("words",)\nINPUT = "texts"\ndef build(): ...\n',
            "line 1: NEEDS must hold some of word_vectors, terms, output_vectors, vector_norms, token_topics, "
            "text_vectors, piece_vectors, got ('words',)",
        ),
        (
            'ROLE = "classifier"\nNEEDS = ("terms",)\nINPUT = "texts"\ndef build(): ...\n',
            "line 2: a classifier is given documents and labels alone",
        ),
        (
            'INPUT = "counts"\nUSES_LABELS = "order"\ndef build(): ...\n',
            "line 2: USES_LABELS must be True, or the values of parameters with which it does such as "
            "{'order': ('by_class',)}, got 'order'",
        ),
        (
            'import numpyy as np\nINPUT = "counts"\ndef build(): ...\n',
            "line 1: import numpyy as np: there is no module 'numpyy'",
        ),
        (
            'from textbench.featurizers.cuonts import Counts\nINPUT = "counts"\ndef build(): ...\n',
            "Counts: there is no module 'textbench.featurizers.cuonts'",
        ),
    ],
)
def test_a_file_that_is_no_method_is_refused_unread(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(text)
    with pytest.raises(InputError) as caught:
        plan(Request(["r8"], [str(tmp_path / "one.py")]))
    assert str(caught.value).startswith(str(tmp_path / "one.py")) and words in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        'try:\n    import numpyy\nexcept ImportError:\n    numpyy = None\nINPUT = "counts"\ndef build(): ...\n',
        "from textbench.featurizers.tfidf import *\n",
        'if True:\n    INPUT = "counts"\n    def build(): ...\n',
        'INPUT: str = "tokens"\nfrom textbench.featurizers.tfidf import build as build\n',
    ],
)
def test_a_file_that_may_be_a_method_is_not_refused_unread(text: str, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(text)
    checks.check_file(catalogue.method(str(tmp_path / "one.py")))


def test_seeds_beyond_all_random_numbers_are_refused() -> None:
    for seed in (-1, 2**32, 1.5, True):
        with pytest.raises(InputError, match=f"seeds must be .*, got {seed}"):
            plan(Request(["r8"], ["tfidf"], seeds=[seed]))  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("dataset", "good", "bad"), [("r8", "macro_f1", "map"), ("reuters90", "map", "accuracy")]
)
def test_tuning_goes_by_what_it_can_compute(dataset: str, good: str, bad: str) -> None:
    plan(Request([dataset], ["tfidf"], validation={"metric": good}))
    for metric in (bad, "micro_f2"):
        with pytest.raises(InputError, match=f"tuning cannot go by '{metric}' on {dataset}"):
            plan(Request([dataset], ["tfidf"], validation={"metric": metric}))


def given(option: Any) -> list[str]:
    """Return an option with a value that any kind of option takes."""
    return [option.opts[0]] if option.is_flag else [option.opts[0], "2"]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_no_option_beside_a_suite_of_parts_is_ignored(
    option: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each is refused, or handed to what runs the parts: a new option is one or the other."""
    handed: list[Any] = []
    command = importlib.import_module("textbench.flows.cli.run")  # the package has a function of that name
    monkeypatch.setattr(command, "run_suite", lambda *arguments: handed.append(arguments) or 0)
    monkeypatch.setattr(command, "use_data_dir", handed.append)
    monkeypatch.setattr(command, "read_engine", lambda *arguments: handed.append(arguments))
    plain = CliRunner().invoke(app, ["run", "dcot"])
    assert plain.exit_code == 0, plain.output
    before, handed[:] = (str(handed), dict(os.environ)), []
    with patch.dict(os.environ):
        result = CliRunner().invoke(app, ["run", "dcot", *given(option)])
        after = str(handed), dict(os.environ)
    if option.name in BESIDE_PARTS:
        assert result.exit_code == 0, result.output
        assert after != before
    else:
        assert isinstance(result.exception, InputError)
        assert option.opts[0] in str(result.exception)
        is_own = "describes your own documents and needs --data" in str(result.exception)
        assert is_own or f"leave out {option.opts[0]}, or the suite" in str(result.exception)
        assert handed == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--metric", "nonsense"), "tfidf has no 'nonsense' on r8"),
        (("--metric", "map", "-m", "nb"), "nb has no 'map' on r8"),
        (
            ("--metric", "micro_f1_zero"),
            "tfidf has no 'micro_f1_zero' on r8, where a document has one label",
        ),
        (
            ("--metric", "macro_recall", "-d", "reuters90"),
            "on reuters90, where documents have several labels",
        ),
        (("--paper", "dcot-2012"), "needs --protocol faithful"),
        (("--folds", "1"), "--folds must be at least 2"),
        (("--seed", "4294967296"), "--seed must be at most 4294967295, got 4294967296"),
        (("--c-grid", "1,inf"), "--c-grid must be a finite number, got inf"),
    ],
)
def test_a_curve_refuses_first(arguments: tuple[str, ...], words: str) -> None:
    result = CliRunner().invoke(app, ["curve", "-d", "r8", "-m", "tfidf", *arguments])
    assert isinstance(result.exception, InputError), result.output
    assert words in str(result.exception)


LABELLED = "text,label,split\n{},a,train\n{},b,train\n{},a,test\n{},b,test\n"


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (("", "...", "good", "day"), r"none of the 2 training texts has a token .*'\.\.\.'; --rule"),
        (("good", "day", "", "?!"), "none of the 2 test texts has a token"),
    ],
)
def test_documents_without_a_token_are_refused(texts: tuple[str, ...], words: str, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(LABELLED.format(*texts))
    result = CliRunner().invoke(
        app, ["run", "--data", str(tmp_path / "mine.csv"), "--split-column", "split", "-m", "counts"]
    )
    assert isinstance(result.exception, InputError), result.output
    with pytest.raises(InputError, match=words):
        raise result.exception
    made = {path.parent.parent.name for path in (tmp_path / "home" / "store").rglob("meta.json")}
    assert made == {"ingest"}  # the documents were read, once, and nothing was made of them


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "from sklearn.svm import Nonsense",
            "line 4: from sklearn.svm import Nonsense: ImportError: cannot import",
        ),
        ("x = 1 / 0", "line 4: x = 1 / 0: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "line 4: raise SystemExit(3): SystemExit: 3"),
        ("import os; os._exit(3)", "cannot be loaded: its process died (exit code 3)"),
        ("build = 5", "has no function build"),
        ("SEARCH_SPACE = {'a': (1, 2)}", "SEARCH_SPACE must hold an Optuna distribution"),
    ],
)
def test_a_file_that_cannot_be_loaded_stops_the_run(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text(f'INPUT = "counts"\ndef build(): ...\n\n{text}\n')
    result = CliRunner().invoke(app, ["run", "-d", "r8", "-m", str(path)])
    assert isinstance(result.exception, InputError), result.output
    assert str(path) in str(result.exception) and words in str(result.exception)
    assert not (tmp_path / "home" / "store").exists()


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


@pytest.fixture
def deaf() -> Iterator[int]:
    """A port whose packets are swallowed: the queue of those who wait to be let in is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, contextlib.ExitStack() as stack:
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield int(server.getsockname()[1])


@pytest.mark.parametrize("kind", ["silent", "deaf"])
@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"MLFLOW_TRACKING_URI": "http://127.0.0.1:{}"}, "the MLflow server at http://127.0.0.1:"),
        (
            {"MLFLOW_TRACKING_URI": "postgresql://me:secret@127.0.0.1:{}/runs"},
            "MLflow's database at 127.0.0.1",
        ),
        (
            {"MLFLOW_TRACKING_URI": "none", "TEXTBENCH_LOCKS": "postgresql://me:secret@127.0.0.1:{}/db"},
            "_LOCKS",
        ),
        (
            {"MLFLOW_TRACKING_URI": "none", "TEXTBENCH_STUDIES": "postgresql://me:secret@127.0.0.1:{}/db"},
            "_STUDIES",
        ),
    ],
)
def test_a_server_that_does_not_answer_stops_the_run(
    kind: str, variables: dict[str, str], words: str, request: Any, monkeypatch: Any, tmp_path: Path
) -> None:
    port = request.getfixturevalue(kind)
    monkeypatch.setattr("textbench.tasks.tracking.mlflow_server.SECONDS", 0.2)
    monkeypatch.setattr("textbench.tasks.storage.remote.CONNECT_SECONDS", 2)  # libpq's least
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(port))
    result = CliRunner().invoke(app, ["run", "-d", "r8", "-m", "binary", "--seed", "0"])
    assert isinstance(result.exception, InputError), result.output
    assert words in str(result.exception) and "secret" not in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not (tmp_path / "home" / "store").exists()
