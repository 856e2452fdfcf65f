"""What is said before and after a sweep: where to look next, and what it will take."""

from pathlib import Path

import pytest

from tests.made_runs import one_label
from textbench.flows.cli.summary import WIDTH, print_plan, print_summary
from textbench.flows.cli.voice import VOICE
from textbench.flows.plan.cell import plan
from textbench.flows.plan.request import Request

PAGE = f"http://127.0.0.1:4200/runs/flow-run/{'0' * 36}"


def said(home: Path, capsys: pytest.CaptureFixture[str], **changes: object) -> str:
    row = one_label(home, "r8", "nb", [0, 1] * 5, [0, 1] * 5)
    print_summary(home, [row | changes], PAGE)
    return capsys.readouterr().out


def test_where_to_look_next_fits_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, heading, lines = said(tmp_path, capsys).partition("Where to look next\n")
    assert heading
    assert PAGE in lines
    assert max(map(len, lines.splitlines())) <= WIDTH


def test_what_was_there_before_is_shown_by_its_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "textbench show last" in said(tmp_path, capsys, cached=False)
    assert "textbench show 0123abcd\n" in said(tmp_path, capsys, cached=True, run_id="0123abcd" * 4)


def test_a_quiet_run_says_its_results_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token = VOICE.set("quiet")
    try:
        printed = said(tmp_path, capsys)
    finally:
        VOICE.reset(token)
    assert "nb" in printed
    assert "look next" not in printed
    assert PAGE not in printed


def test_a_plan_of_cells_never_timed_claims_no_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_plan(tmp_path, plan(Request(["r8"], ["tfidf"], [0, 1, 2])), False)
    assert capsys.readouterr().out.splitlines()[-1] == "3 cells never timed here."
