"""What every command has in common: its help teaches by an example, and options that hold everywhere."""

import os
import re
from importlib.metadata import version
from pathlib import Path

import click
import pytest
import typer
from typer.testing import CliRunner

from textbench.evaluation.cores import n_cores
from textbench.flows.cli import app
from textbench.flows.run.prefect_tasks import PrefectTasks, task_runner
from textbench.tasks import InputError

ROOT = typer.main.get_command(app)


def commands(group: click.Command = ROOT, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], click.Command]:
    """Return every command that can be run, by its words."""
    if not hasattr(group, "commands"):
        return {path: group}
    return {
        key: one for name, sub in group.commands.items() for key, one in commands(sub, (*path, name)).items()
    }


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_help_teaches_by_an_example_that_the_command_understands(words: tuple[str, ...]) -> None:
    command = commands()[words]
    examples = re.findall(r"^Example: (.+)$", command.help or "", flags=re.MULTILINE)
    assert examples, f"textbench {' '.join(words)} --help has no example"
    for example in (re.sub(r"^[A-Z_]+=\S+ ", "", found) for found in examples):
        assert example.startswith("textbench ")
        others = [known for known in commands() if example.split()[1:][: len(known)] == list(known)]
        assert others, f"{example} names no command"
        text, *_ = re.split(r" [|>] ", example)
        _parses(text, others[0])


def _parses(example: str, words: tuple[str, ...]) -> None:
    """Parse an example's options and arguments without running anything."""
    import shlex

    arguments = shlex.split(example)[1 + len(words) :]
    parser = commands()[words].make_parser(click.Context(commands()[words], resilient_parsing=True))
    parser.parse_args(arguments)


def test_examples_are_shown_by_help() -> None:
    for words in (("leaderboard",), ("store", "prune")):
        shown = " ".join(CliRunner().invoke(app, [*words, "--help"]).stdout.split())
        assert "Example: textbench" in shown


def test_options_of_run_are_in_groups() -> None:
    for name in ("run", "curve", "retrieve"):
        panels = [
            getattr(p, "rich_help_panel", None) for p in commands()[name,].params if p.opts[0][0] == "-"
        ]
        assert None not in panels, name
    shown = CliRunner().invoke(app, ["run", "--help"]).stdout
    headings = ("What to compare", "Your own documents", "Tuning", "Resources", "Output")
    assert all(f"─ {heading} ─" in shown for heading in headings)


def test_the_version_is_that_of_the_package() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"textbench {version('textbench')}\n"


def test_quiet_and_verbose_exclude_each_other() -> None:
    assert isinstance(CliRunner().invoke(app, ["-q", "-v", "status"]).exception, InputError)


def test_quiet_keeps_notes_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.made_runs import one_label

    monkeypatch.setenv("TEXTBENCH_HOME", str(tmp_path))
    one_label(tmp_path, "r8", "tfidf", [0, 1, 0, 1], [0, 1, 0, 0])
    one_label(tmp_path, "r8", "lsi", [0, 1, 0, 1], [0, 1, 0, 1])
    arguments = ["compare", "lsi", "tfidf"]
    assert "lsi is r8 lsi seed 0" in CliRunner().invoke(app, arguments).stderr
    assert CliRunner().invoke(app, ["--quiet", *arguments]).stderr == ""


def test_jobs_say_how_many_stages_are_computed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTBENCH_JOBS", "")
    assert PrefectTasks().n_workers == n_cores()
    refused = CliRunner().invoke(app, ["run", "--dry-run", "-j", "0"])
    assert str(refused.exception) == "--jobs must be at least 1, got 0"
    assert CliRunner().invoke(app, ["run", "--dry-run", "-j", "3"]).exit_code == 0
    assert os.environ["TEXTBENCH_JOBS"] == "3"
    assert PrefectTasks().n_workers == 3
    assert task_runner("threads")._max_workers >= 3  # type: ignore[attr-defined]
    monkeypatch.setenv("TEXTBENCH_JOBS", "many")
    assert "TEXTBENCH_JOBS must be a whole number from 1 on, got 'many'" in str(
        CliRunner().invoke(app, ["run", "--dry-run"]).exception
    )
