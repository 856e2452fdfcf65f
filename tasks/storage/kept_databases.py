"""Empty databases of MLflow and Prefect, kept in the user's cache folder: their migrations take seconds each time.

A kept database is that of one version of the package. Where the folder cannot be written to, or a file in it is
damaged, the package makes its database itself.
"""

import contextlib
import importlib.metadata
import os
import shutil
import sqlite3
from pathlib import Path


def fill(place: Path, package: str) -> bool:
    """Copy the package's empty database to a place; return whether one is kept."""
    try:
        shutil.copyfile(_kept(package), place)
        with contextlib.closing(sqlite3.connect(place)) as database:
            if database.execute("PRAGMA integrity_check").fetchone() == ("ok",) and _has_tables(database):
                return True
    except (OSError, sqlite3.Error):
        pass
    with contextlib.suppress(OSError):
        place.unlink()
    return False


def keep(database: Path, package: str) -> None:
    """Keep a copy of the package's empty database for other folders."""
    place = _kept(package)
    part = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with (
            contextlib.closing(sqlite3.connect(database)) as source,
            contextlib.closing(sqlite3.connect(part)) as copy,
        ):
            source.backup(copy)
        part.replace(place)
    except (OSError, sqlite3.Error):
        with contextlib.suppress(OSError):
            part.unlink()


def _has_tables(database: sqlite3.Connection) -> bool:
    return bool(database.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()[0])


def _kept(package: str) -> Path:
    from platformdirs import user_cache_path

    name = f"{package}-{importlib.metadata.version(package)}.db"
    return user_cache_path("textbench", appauthor=False) / "databases" / name
