"""What an installation adds: one import name, `textbench`, with all that it needs, whatever the user's folder holds."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.commands import MAIN, PROJECT, rows_of
from tests.faults import documents
from textbench.tasks.storage.definitions import PACKAGE, ROOMS

SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
# What the code opens beside its own files.
READ = (
    "evaluation/claims.csv",
    "evaluation/measured.csv",
    "flows/suites/quick.yaml",
    "flows/report/template.html",
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the tree."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "checkout"
    copy.mkdir()
    for name in ("__init__.py", "pyproject.toml", "README.md", "LICENSE", "mlflow.yaml"):
        shutil.copy(PROJECT / name, copy)
    for room in ROOMS:
        shutil.copytree(PROJECT / room, copy / room, ignore=shutil.ignore_patterns("__pycache__"))
    build = "from setuptools.build_meta import build_wheel; build_wheel('..')"
    subprocess.run([sys.executable, "-c", build], cwd=copy, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_every_folder_of_code_is_listed() -> None:
    folders = {path.parent for room in ROOMS for path in (PROJECT / room).rglob("*.py")}
    packages = {".".join((PACKAGE, *folder.relative_to(PROJECT).parts)) for folder in folders}
    assert set(SETTINGS["packages"]) == packages | {PACKAGE, "textbench.flows.suites"}


def test_a_wheel_holds_one_package(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {PACKAGE}
    code = {str(path.relative_to(PROJECT)) for room in ROOMS for path in (PROJECT / room).rglob("*.py")}
    assert {f"{PACKAGE}/{name}" for name in ("__init__.py", *code, *READ)} <= set(names)


def test_it_runs_outside_the_checkout_in_a_folder_with_modules_of_the_same_names(
    wheel: Path, tmp_path: Path
) -> None:
    site, work = tmp_path / "site", tmp_path / "work"
    zipfile.ZipFile(wheel).extractall(site)
    work.mkdir()
    for name in ("tasks", "flows", "evaluation", "featurizers"):
        (work / f"{name}.py").write_text("raise SystemExit('the wrong module')\n")
    (work / "documents.csv").write_text(documents(60))
    environment = os.environ | {"PYTHONPATH": str(site), "TEXTBENCH_HOME": str(tmp_path / "home")}

    def python(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=work, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = python("-c", "import textbench; print(textbench.__file__)").strip()
    assert Path(where) == site / PACKAGE / "__init__.py"
    names = python("-c", "import textbench; print(*textbench.datasets().index)").split()
    assert {"r8", "20ng", "imdb"} <= set(names)
    command = ("run", "--data", "documents.csv", "-m", "binary", "--seed", "0", "--json")
    (row,) = rows_of(python("-c", MAIN, *command))
    assert row["error"] is None
    assert row["metrics"]["accuracy"] > 0
