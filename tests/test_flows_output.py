"""Where commands write: one rule for every file and folder, kept before anything is computed or opened."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from textbench.flows.cli import app
from textbench.flows.cli.output import FIGURES, check_file, check_folder
from textbench.tasks import InputError

CURVE = ["curve", "-d", "r8", "-m", "tfidf", "--figure"]
COMPARE = ["compare", "-d", "r8", "-d", "r52", "-m", "tfidf", "-m", "lsi", "--figure"]
FEATURES = ["transform", "absent.npz", "--output", "features", "--out"]
FILES = [  # what asks for a file to write, the option, what it may end in
    (CURVE, "--figure", FIGURES),
    (COMPARE, "--figure", FIGURES),
    (["leaderboard", "--figure"], "--figure", FIGURES),
    (["terms", "--figure"], "--figure", FIGURES),
    (["report", "--figure"], "--figure", FIGURES),
    (["report", "-o"], "--out", (".html", ".htm")),
    (["report", "--output"], "--out", (".html", ".htm")),
    (FEATURES, "--out", (".csv", ".npz", ".npy")),
    (["transform", "absent.npz", "-o"], "--out", (".csv", ".txt")),
    (["transform", "absent.npz", "--json", "-o"], "--out", (".jsonl", ".json")),
]
FOLDERS = [(["report", "--tables"], "--tables"), (["retrieve", "-c", "cranfield", "--write"], "--write")]


@pytest.mark.parametrize(("command", "option", "endings"), FILES)
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_done(
    command: list[str],
    option: str,
    endings: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("TEXTBENCH_HOME", str(home))
    (tmp_path / "file").touch()
    (tmp_path / f"folder{endings[0]}").mkdir()
    refusals = {
        tmp_path / "new" / "x.jpg": f"{option} must end in {', '.join(endings)}, got x.jpg",
        tmp_path / f"folder{endings[0]}": f"{option} names a file to write, got the folder",
        tmp_path / "file" / f"x{endings[0]}": f"{tmp_path / 'file'} is a file, not a folder",
        Path(f"/proc/x{endings[0]}"): f"{option} /proc/x{endings[0]} cannot be written",
    }
    for path, said in refusals.items():
        refused = CliRunner().invoke(app, [*command, str(path)]).exception
        assert isinstance(refused, InputError)
        assert said in str(refused)
        assert "\n" not in str(refused)
    assert not home.exists()
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("command", "option"), FOLDERS)
def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_is_done(
    command: list[str], option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path / "home"))
    (tmp_path / "file").touch()
    for path, said in (
        (tmp_path / "file", "is a file, not a folder"),
        (Path("/proc/x"), "cannot be written"),
    ):
        refused = CliRunner().invoke(app, [*command, str(path)]).exception
        assert isinstance(refused, InputError)
        assert str(refused).startswith(f"{option} {path} cannot be written")
        assert said in str(refused)
    assert not (tmp_path / "home").exists()


def test_missing_folders_are_made_and_nothing_is_left_in_them(tmp_path: Path) -> None:
    check_file("--figure", tmp_path / "a" / "b" / "X.SVG", FIGURES)
    check_folder("--tables", tmp_path / "c" / "d")
    assert list((tmp_path / "a" / "b").iterdir()) == list((tmp_path / "c" / "d").iterdir()) == []


def test_a_file_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "x.svg").write_text("earlier")
    check_file("--figure", tmp_path / "x.svg", FIGURES)
    assert (tmp_path / "x.svg").read_text() == "earlier"
    check_file("--figure", None, FIGURES)
