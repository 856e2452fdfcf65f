"""What `textbench run` refuses before it begins: one line on standard error, exit code 2, nothing computed."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.commands import copied, textbench
from tests.warm import PROJECT
from textbench.flows.plan.cell import plan
from textbench.flows.plan.request import Request
from textbench.tasks.catalogue import method, methods


def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "read-only"
    folder.mkdir()
    if os.geteuid() == 0:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", folder], capture_output=True)
        if mounted.returncode:
            pytest.skip("root may write to any folder, and mounting a read-only one is not allowed here")
    else:
        folder.chmod(0o500)
    try:
        _, errors = textbench("run", home=folder / "home", code=2)
    finally:
        subprocess.run(["umount", folder], capture_output=True)
    assert "cannot be written to" in errors
    assert len(errors.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--dataset", "r9"), ("no data set 'r9'", "r8")),
        (("--method", "tfid"), ("no method 'tfid'", "tfidf")),
        (("quik",), ("no suite 'quik'", "quick")),
        (
            ("--protocol", "honst"),
            ("--protocol must be 'honest', 'transductive' or 'faithful', got 'honst'",),
        ),
        (("--protocol", "faithful"), ("no paper's protocol is known for r8",)),
        (("--engine", "ray"), ("threads or dask", "'ray'")),
        (("--seed", "1", "--seeds", "2"), ("one of them",)),
        (("--seeds", "0"), ("1 .. 1000, got 0",)),
        (("--trials", "-1"), ("at least 0, got -1",)),
        (("--time-limit", "0"), ("above 0",)),
        (("--data-dir", "nowhere"), ("nowhere is not a folder",)),
        (("--method", "nowhere.py"), ("no method file nowhere.py",)),
        (("--method", "counts(weight=1)"), ("counts has no parameter 'weight'; it has none",)),
        (("--method", "scdv(n_cluster=9)", "--dry-run"), ("'n_cluster'", "did you mean n_clusters?")),
        (
            ("--method", "scdv(n_clusters=True)", "--dry-run"),
            ("scdv: n_clusters must be a whole number from 1, got True",),
        ),
        (
            ("--method", "scdv(sparsity='4%')", "--dry-run"),
            ("scdv: sparsity must be a number from 0 to 1, got '4%'",),
        ),
        (("--method", "bowv(pooling=1)", "--dry-run"), ("bowv: pooling must be one of mean, sum, got 1",)),
        (("--method", "scdv(min_count=5)", "--dry-run"), ("its word vectors have: word_vectors__min_count",)),
        (("--method", "lda(random_state=5)"), ("lda has no parameter 'random_state'", "--seed")),
        (("dcot", "-d", "r8"), ("suite dcot is made of parts", "leave out --dataset, or the suite")),
        (("--tune-metric", "map"), ("tuning cannot go by 'map' on r8", "one label; choose from accuracy")),
    ],
)
def test_bad_arguments_are_one_line_and_exit_code_2(
    arguments: tuple[str, ...], words: tuple[str, ...], tmp_path: Path
) -> None:
    output, errors = textbench("run", *arguments, home=tmp_path / "home", code=2)
    assert output == ""
    assert len(errors.splitlines()) == 1
    assert all(word in errors for word in words)


def test_an_unknown_key_of_mlflow_yaml_is_refused_with_the_nearest(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    (copy / "mlflow.yaml").write_text("tracking_url: sqlite:///mlflow.db\n")
    _, errors = textbench("run", home=tmp_path / "home", project=copy, code=2)
    assert "unknown key 'tracking_url'; did you mean tracking_uri" in errors


def test_an_unknown_key_of_a_suite_is_refused_with_the_nearest(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    (copy / "flows" / "suites" / "mine.yaml").write_text("datasets: [r8]\nmethods: [tfidf]\nseed: 2\n")
    _, errors = textbench("run", "mine", home=tmp_path / "home", project=copy, code=2)
    assert "mine.yaml: unknown key 'seed'; did you mean seeds" in errors


def test_a_suite_may_have_one_part(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    (copy / "flows" / "suites" / "mine.yaml").write_text("parts:\n  - datasets: [r8]\n    methods: [tfidf]\n")
    output, errors = textbench("run", "mine", "--dry-run", home=tmp_path / "home", project=copy)
    assert "part 1 of 1: sweep, tfidf" in errors
    assert "r8" in output + errors


def test_a_method_file_named_like_a_method_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary.py").write_text((PROJECT / "featurizers" / "binary.py").read_text())
    _, errors = textbench("run", "-m", str(tmp_path / "binary.py"), home=tmp_path / "home", code=2)
    assert "has the name of another method, binary; rename the file" in errors


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def build(n=1, *, random_state=None): ...", {"n": ""}),
        (
            "class A:\n    def __init__(self, *, a: int | None = 1): ...\n\n"
            "def build(b=2, **params):\n    return A(**params)",
            {"a": "int | None", "b": ""},
        ),
        # What another file's class takes is not known, nor what a class hands on.
        ("from x import A\n\ndef build(**params):\n    return A(**params)", None),
        (
            "class A:\n    def __init__(self, **all): ...\n\ndef build(**params):\n    return A(**params)",
            None,
        ),
        ("build = print", None),
    ],
)
def test_parameters_are_read_from_the_file(
    code: str, expected: dict[str, str] | None, tmp_path: Path
) -> None:
    (tmp_path / "one.py").write_text(code)
    assert method(str(tmp_path / "one.py")).parameters == expected


def test_all_that_a_method_searches_may_be_asked_for() -> None:
    for name, entry in methods().items():
        assert entry.parameters is not None, name
        for parameter, values in getattr(entry.load(), "SEARCH_SPACE", {}).items():
            for value in getattr(values, "choices", None) or (values.low, values.high):
                plan(Request(["r8"], [f"{name}({parameter}={value!r})"], trials=0))
