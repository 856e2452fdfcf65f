"""Kept databases are what the package would make, and what cannot be used is not."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from textbench.tasks.storage import kept_databases
from textbench.tasks.tracking.tracker import Tracker, read_settings


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where MLflow's database is kept, in a cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return kept_databases._kept("mlflow")


def made(folder: Path) -> tuple[list[str], list[tuple[object, ...]]]:
    """Return the definitions and the experiments of a new results folder's database, with the folder's name hidden."""
    folder.mkdir()
    tracker = Tracker(read_settings(folder))
    tracker._make_database()
    with contextlib.closing(sqlite3.connect(folder / "mlflow.db")) as database:
        definitions = [sql for (sql,) in database.execute("SELECT sql FROM sqlite_master ORDER BY name")]
        columns = "experiment_id, name, replace(artifact_location, ?, ''), lifecycle_stage, workspace"
        rows = database.execute(f"SELECT {columns} FROM experiments", (str(folder),)).fetchall()
        ((created, updated),) = database.execute("SELECT creation_time, last_update_time FROM experiments")
    assert created == updated > 0
    return definitions, rows


def test_a_folder_that_is_filled_has_the_database_that_mlflow_makes(kept: Path, tmp_path: Path) -> None:
    assert not kept.exists()
    by_mlflow = made(tmp_path / "first")
    # Not when it was read, which a second reading moves.
    stamp = (kept.stat().st_ino, kept.stat().st_mtime_ns)
    assert made(tmp_path / "second") == by_mlflow
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == stamp
    assert list(kept.parent.iterdir()) == [kept]


@pytest.mark.parametrize("content", [None, b"", b"SQLite format 3", b"no database" * 1000])
def test_what_is_missing_or_damaged_is_not_used(content: bytes | None, kept: Path, tmp_path: Path) -> None:
    if content is not None:
        kept.parent.mkdir(parents=True)
        kept.write_bytes(content)
    assert not kept_databases.fill(tmp_path / "new.db", "mlflow")
    assert not (tmp_path / "new.db").exists()


def test_a_folder_that_cannot_be_written_to_keeps_nothing(kept: Path, tmp_path: Path) -> None:
    kept.parent.parent.parent.mkdir()
    kept.parent.parent.write_text("a file is in the way")
    with contextlib.closing(sqlite3.connect(tmp_path / "some.db")) as database:
        database.execute("CREATE TABLE birds (name TEXT)")
    kept_databases.keep(tmp_path / "some.db", "mlflow")
    assert not kept.exists()
