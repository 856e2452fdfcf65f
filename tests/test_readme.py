"""What the README says of the papers' claims is what the record and the rule say: verdicts, counts, every figure."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from textbench.evaluation.claims.published import read_claims
from textbench.flows.plan.papers import FOLDER
from textbench.flows.referee.held import headlines, totals
from textbench.flows.referee.ledger import ledger, read_measured
from textbench.flows.referee.notes import read_notes
from textbench.flows.report import recorded
from textbench.tasks.storage.definitions import PROJECT

README = (PROJECT / "README.md").read_text("utf-8")
CHAPTER = README[README.index("## What the papers claimed") : README.index("## Install without make")]
FIGURE = re.compile(r"(?<![\w.,])\d[\d,]*\.\d+(?![\w.])")


def numbers(known: Any) -> Iterator[float]:
    """Every number in nested values, those in texts too."""
    if isinstance(known, dict):
        known = list(known.values())
    if isinstance(known, list | tuple):
        for one in known:
            yield from numbers(one)
    elif isinstance(known, str):
        yield from (float(found.replace(",", "")) for found in re.findall(r"\d[\d,]*(?:\.\d+)?", known))
    elif isinstance(known, int | float) and not isinstance(known, bool):
        yield abs(float(known))


def on_record() -> set[float]:
    found = {float(claim.text) for claim in read_claims() if claim.printed}
    for row in read_measured().values():
        bounds = [float(row[name]) for name in ("value", "compared", "low", "high") if row[name]]
        half = [(float(row["high"]) - float(row["low"])) / 2] if row["low"] else []
        found.update(
            numbers([bounds, half, json.loads(row["each"] or "{}"), json.loads(row["params"] or "{}")])
        )
    for row in recorded.read():
        fractions = list(numbers([json.loads(row[name] or "{}") for name in ("metrics", "half_widths")]))
        found.update([*fractions, *(100 * value for value in fractions)])
    for path in FOLDER.glob("*/notes.yaml"):
        found.update(numbers([asdict(note) for note in read_notes(path)]))
    return {abs(value) for value in found}


def test_every_figure_on_the_papers_is_in_the_record() -> None:
    """As it is printed, to its last digit: in measured.csv, leaderboards.csv, claims.csv or the notes of the papers."""
    known = sorted(on_record())
    missing = []
    for found in FIGURE.finditer(CHAPTER):
        value, half = float(found[0].replace(",", "")), 0.5 * 10.0 ** -len(found[0].partition(".")[2])
        if not any(abs(one - value) <= half + 1e-9 for one in known):
            missing.append(CHAPTER[max(0, found.start() - 40) : found.end()])
    assert missing == []


def test_the_verdicts_are_those_of_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `textbench claims` prints them last: headline figures, then figures and sentences, then rates of classes."""
    # Ceilings are those recorded.
    monkeypatch.setattr("textbench.tasks.sources.archives.are_here", lambda files: False)
    entries = ledger(tmp_path, read_claims())
    lines = "\n".join(f"- {line}" for line in [*headlines(entries), *totals(entries)])
    assert lines in README, f"the README's lines on verdicts are now:\n{lines}"
