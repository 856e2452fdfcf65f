"""`textbench texts`: documents as one table for elsewhere, which tells no label unless it is asked to."""

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from textbench.flows.cli import app


def test_no_label_is_told_unless_names_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder's names begin with the class."""
    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path / "home"))
    for number in range(12):
        place = tmp_path / "docs" / ("grain", "ship")[number % 2] / f"{number}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"text {number}")
    out = tmp_path / "texts.csv"
    for options, columns in (((), ["id", "part", "text"]), (("--names",), ["id", "part", "text", "name"])):
        found = CliRunner().invoke(app, ["texts", "--data", str(tmp_path / "docs"), "-o", str(out), *options])
        assert found.exit_code == 0, found.output
        with out.open() as stream:
            rows = list(csv.DictReader(stream))
        assert list(rows[0]) == columns and len(rows) == 12
        assert ("grain" in out.read_text()) == bool(options)
