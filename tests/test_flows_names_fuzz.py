"""Names under fire: files and labels of any name go through a tracked run, and come out of everything that shows it."""

import csv
import html
import io
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from textbench.flows.cli import app
from textbench.flows.cli.show import _render, describe
from textbench.flows.plan.cell import Cell, plan
from textbench.flows.plan.request import Request
from textbench.flows.results.index import Index
from textbench.flows.results.runs import Run
from textbench.flows.run.engine import sweep_id
from textbench.flows.run.sweep import SweepRecorder
from textbench.tasks.sources.user_data import MISSING, digest
from textbench.tasks.sources.user_source import named
from textbench.tasks.storage.store import Store
from textbench.tasks.tracking.tracker import data_tag

N_FILES, N_LABELS, LABELS_A_FILE = 50, 450, 90
PIECES = [
    *("my data (v2)", "a&b<c>", "<script>alert(1)</script>", "$x_1$ \\frac", "%28%29", "%", "{}", "[bold red]x[/]"),
    *("'", '"', "`", "\\", ";", ":", "*", "?", "|", "#", "~", "@", "=", ",", "\t", "\n", "\r\n", " ", "  ", ".", ".."),
    *("-", "--help", "-rf", "CON", "nul", "aux", "LPT1", "last", "best", "r8", "mlflow.runName", "../../etc"),
    *("\x01", "\x07", "\x1b[2J\x1b[31m", "\x7f", "\x85", "\u2028", "\u202e", "\u200b", "\ufeff", "\u0301", "\ufffe"),
    *("é", "ß", "İ", "отзывы", "评论", "レビュー", "مراجعة", "ביקורות", "🙂", "👩‍👩‍👧", "🇩🇪", "𝕏", "ﬀ"),
    *("x" * 60, "日" * 60),
]  # fmt: skip


def names(seed: int, n: int, *, is_file: bool) -> list[str]:
    """Return n different names, each put together from pieces and from letters drawn of all of Unicode."""
    draw, found = random.Random(seed), dict.fromkeys(PIECES)
    while len(found) < 3 * n:
        letters = "".join(map(chr, (draw.randrange(1, 0xD800), draw.randrange(0xE000, 0x110000))))
        found["".join(draw.sample([*PIECES, letters], draw.randint(1, 4)))] = None
    if is_file:
        kept = [name.replace("/", "_").encode()[:240].decode(errors="ignore") for name in found]
        kept = [name for name in kept if not name.startswith(".")]
    else:
        kept = [name.strip() for name in found if name.strip() not in MISSING]
    return list(dict.fromkeys(kept))[:n]


def write(path: Path, labels: list[str]) -> None:
    """Write two training documents and a test document of each label; no two files have the same documents."""
    rows = [
        (f"word{i} of {path.parent.name}", label, part)
        for i, label in enumerate(labels)
        for part in ("train", "train", "test")
    ]
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("text", "label", "part"), *rows])


@dataclass(frozen=True)
class Tracked:
    """A results folder with finished runs, their cells, and the labels of each by its key."""

    home: Path
    cells: list[Cell]
    labels: dict[str, list[str]]
    files: dict[str, Path]
    rows: dict[str, dict[str, Any]]
    recorder: SweepRecorder


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tracked]:
    """Every file by the majority class, those with the drawn labels also by naive Bayes."""
    folder = tmp_path_factory.mktemp("names")
    labels = names(1, N_LABELS, is_file=False)
    cells: list[Cell] = []
    labels_of, files = {}, {}
    for number, name in enumerate(names(0, N_FILES, is_file=True)):
        path = folder / "files" / str(number) / f"{name}.csv"
        path.parent.mkdir(parents=True)
        own = labels[number * LABELS_A_FILE : (number + 1) * LABELS_A_FILE] or ["x", "y"]
        write(path, own)
        methods = ["majority", "nb"] if len(own) > 2 else ["majority"]
        planned = plan(Request([], methods, own={"path": str(path), "split_column": "part"}))
        cells += planned
        labels_of |= {cell.key: own for cell in planned}
        files |= {cell.key: path for cell in planned}
    home = folder / "home"
    store = Store(home / "store", isolated=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("textbench.flows.run.recorder.warm", lambda: None)
        recorder = SweepRecorder(home, store, sweep_id("names", cells), "", timed=False)
        recorder.begin(cells)
        for cell in cells:
            for reference in cell.references.values():
                store.ensure(reference)
            recorder.finish(cell, None)
        yield Tracked(home, cells, labels_of, files, recorder.rows, recorder)


def test_there_are_enough_names_and_they_differ() -> None:
    files, labels = names(0, N_FILES, is_file=True), names(1, N_LABELS, is_file=False)
    assert (len(set(files)), len(set(labels))) == (N_FILES, N_LABELS)
    assert "my data (v2)" in files and "<script>alert(1)</script>" in labels


def test_every_run_is_recorded_under_the_name_of_its_file(tracked: Tracked) -> None:
    assert {row["error"] for row in tracked.rows.values()} == {None}
    assert {row["key"] for row in Index(tracked.home).rows()} == set(tracked.rows)
    for cell in tracked.cells:
        tags = tracked.recorder.mlflow.client.get_run(tracked.rows[cell.key]["run_id"]).data.tags
        path = tracked.files[cell.key]
        assert tags[data_tag(path.name)] == digest(path)


def test_labels_come_out_as_they_went_in_and_steer_no_terminal(tracked: Tracked) -> None:
    rows = {row["key"]: row for row in Index(tracked.home).rows()}
    for cell in tracked.cells:
        about = describe(Run(tracked.home, rows[cell.key]))
        assert about["note"] is None
        assert sorted(line["class"] for line in about["per_class"]) == sorted(tracked.labels[cell.key])
        console = Console(file=io.StringIO(), width=400, force_terminal=False)
        _render(console, about)
        page = console.file.getvalue()
        assert all(line.isprintable() for line in page.split("\n"))
        for label in tracked.labels[cell.key]:
            assert named(label)[:80] in page


def test_the_leaderboard_has_every_data_set(tracked: Tracked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTBENCH_HOME", str(tracked.home))
    for arguments in (["--format", "json"], ["--format", "latex"], [], ["--from-mlflow", "--format", "csv"]):
        result = CliRunner().invoke(app, ["leaderboard", *arguments])
        assert result.exit_code == 0, result.output
        text = result.output.replace(r"\_", "_")
        assert {cell.dataset for cell in tracked.cells if cell.dataset not in text} == set(), arguments


def test_the_report_holds_every_label_escaped(
    tracked: Tracked, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TEXTBENCH_HOME", str(tracked.home))
    path = tmp_path / "report.html"
    result = CliRunner().invoke(app, ["report", "-o", str(path)])
    assert result.exit_code == 0, result.output
    page = path.read_bytes().decode()
    plain = html.unescape(page)
    drawn = {label for labels in tracked.labels.values() for label in labels if len(labels) > 2}
    assert {label for label in drawn if label not in plain} == set()
    assert "<script>alert(1)</script>" not in page
