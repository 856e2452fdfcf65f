"""The catalogue: what is found in a folder, what is suggested, what is known of a file without running it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from textbench.tasks import InputError, catalogue
from textbench.tasks.catalogue import Entry

BOOBY_TRAP = 'raise RuntimeError("imported")\n'


def entry(path: Path, text: str) -> Entry:
    path.write_text(text)
    return catalogue.method(str(path))


def test_every_file_of_the_folders_is_listed() -> None:
    for listed, folder in (
        (catalogue.methods(), catalogue.METHODS),
        (catalogue.datasets(), catalogue.DATASETS),
        (catalogue.collections(), catalogue.COLLECTIONS),
        (catalogue.rankers(), catalogue.RANKERS),
    ):
        stems = {path.stem for path in folder.iterdir() if path.suffix == ".py" and path.name[0] != "_"}
        assert {name.replace("-", "_") for name in listed} == stems
        assert not any("_" in name for name in listed)
        for name, item in listed.items():
            assert item.name == name
            assert item.description, f"{item.path} has no docstring"


def test_a_name_with_hyphens_is_the_file_with_underscores() -> None:
    found = catalogue.method("lsa-pca")
    assert (found.name, found.path.name, found.module) == (
        "lsa-pca",
        "lsa_pca.py",
        "textbench.featurizers.lsa_pca",
    )
    assert callable(found.load().build)
    assert callable(catalogue.dataset("20ng-allterms").load().load)


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("tfdif", "did you mean tfidf"), ("LSI", "did you mean lsi"), ("lsa_pca", "did you mean lsa-pca")],
)
def test_a_wrong_name_gets_the_nearest(name: str, suggestion: str) -> None:
    with pytest.raises(InputError) as caught:
        catalogue.method(name)
    assert str(caught.value).startswith(f"there is no method {name!r}; {suggestion}")


def test_a_name_like_no_other_gets_all() -> None:
    with pytest.raises(InputError, match=r"there is no data set 'qqqq'; choose from .*r52.*r8"):
        catalogue.dataset("qqqq")
    assert catalogue.nearest("x", []) == "there are none"
    assert catalogue.nearest("", ["b", "a"]) == "choose from a, b"


def test_of_many_names_the_nearest_alone_are_said() -> None:
    names = [f"{letter}{i:02}" for letter in "abcd" for i in range(25)]
    assert catalogue.nearest("zzz 07", names) == "of 100 names the nearest are d07, c07, b07"


def test_seeded_methods_are_told_from_the_others() -> None:
    assert catalogue.method("lsi").is_seeded
    assert not catalogue.method("tfidf").is_seeded


def test_is_seeded_agrees_with_what_build_makes() -> None:
    for name, item in catalogue.methods().items():
        assert item.is_seeded == ("random_state" in item.load().build().get_params()), name


def test_constants_agree_with_the_imported_modules() -> None:
    for item in catalogue.methods().values():
        module = item.load()
        for name in ("INPUT", "NEEDS"):
            assert item.constant(name, "absent") == getattr(module, name, "absent"), f"{item.name} {name}"
    for item in catalogue.datasets().values():
        module = item.load()
        assert item.constant("RULE") == module.RULE, item.name


def test_listing_imports_no_method() -> None:
    source = (
        "import sys\nfrom textbench.tasks import catalogue\n"
        "for e in [*catalogue.methods().values(), *catalogue.datasets().values()]:\n"
        "    e.description, e.is_seeded, e.constant('INPUT')\n"
        "slow = ('textbench.featurizers', 'textbench.tasks.datasets', 'sklearn')\n"
        "print(*[m for m in sys.modules if m.startswith(slow)])"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_file_is_read_without_being_run(tmp_path: Path) -> None:
    text = (
        '"""My method: it does.\n\nMore."""\n'
        'INPUT = "tokens"\nNEEDS: tuple[str, ...] = ("word_vectors",)\nBARE: int\n'
        f"class Mine:\n    def __init__(self, *, random_state=None):\n        ...\n{BOOBY_TRAP}"
    )
    mine = entry(tmp_path / "my_method.py", text)
    assert (mine.name, mine.description) == ("my-method", "My method: it does.")
    assert mine.is_seeded
    assert mine.constant("INPUT") == "tokens"
    assert mine.constant("NEEDS") == ("word_vectors",)
    assert mine.constant("BARE", "default") == "default"
    assert mine.constant("ABSENT") is None
    with pytest.raises(RuntimeError, match="imported"):
        mine.load()


def test_a_file_is_imported_from_where_it_is(tmp_path: Path) -> None:
    module = entry(tmp_path / "my_method.py", "def build(**params):\n    return params\n").load()
    assert module.build(a=1) == {"a": 1}


def test_a_constant_that_has_to_be_computed_is_refused(tmp_path: Path) -> None:
    mine = entry(tmp_path / "mine.py", "INPUT = 'count' + suffix()\n")
    with pytest.raises(InputError, match=r"mine\.py: INPUT must be a literal value, got INPUT = 'count'"):
        mine.constant("INPUT")


def test_a_file_without_a_docstring_has_no_description(tmp_path: Path) -> None:
    assert entry(tmp_path / "mine.py", "X = 1\n").description == ""


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    for name in (tmp_path / "no.py", tmp_path / "folder.py"):
        (tmp_path / "folder.py").mkdir(exist_ok=True)
        with pytest.raises(InputError, match=f"there is no method file {name}"):
            catalogue.method(str(name))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x = 1\ndef f(:\n", r"bad\.py, line 2: invalid syntax"),
        (b"x = '\xff'\n", r"bad\.py, line \d: .*utf-8"),
        (b"x = 1\x00\n", r"bad\.py.*null bytes"),
        (b"PAR1\x00\x01", r"bad\.py"),
    ],
)
def test_a_file_that_is_not_python_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.py"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        catalogue.method(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "name", "params"),
    [
        ("lsi", "lsi", {}),
        ("lsi(n_components=100)", "lsi", {"n_components": 100}),
        ("a/b c.py(x='y)', z=-1.5e-3)", "a/b c.py", {"x": "y)", "z": -0.0015}),
        ("m( b = None, a=True )", "m", {"a": True, "b": None}),
    ],
)
def test_a_method_may_have_fixed_parameters(text: str, name: str, params: dict[str, Any]) -> None:
    assert catalogue.parse_method(text) == (name, params)
    assert catalogue.parse_method(catalogue.spelled(name, params)) == (name, params)


@pytest.mark.parametrize(
    "text", ["m()", "m(1)", "m(a=)", "m(a=open('x'))", "m(a=[1])", "m(a=1, a=2)", "m(a=1)b)"]
)
def test_other_spellings_of_parameters_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="m"):
        catalogue.parse_method(text)


@pytest.mark.parametrize("text", ["lsi(n_components=5", "lsi("])
def test_a_parenthesis_that_is_missing_is_named(text: str) -> None:
    with pytest.raises(InputError, match="a closing parenthesis is missing in "):
        catalogue.parse_method(text)


def test_a_file_may_have_a_parenthesis_in_its_name() -> None:
    assert catalogue.parse_method("my (v2.py") == ("my (v2.py", {})


def test_roles_are_read_without_importing() -> None:
    assert not catalogue.method("tfidf").is_classifier
    assert {name for name, entry in catalogue.methods().items() if entry.is_classifier} >= {"nb", "majority"}
