"""What README and documentation say of papers and figures is what the record and the rule say, to the last digit."""

import csv
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infra.docs import record, site
from textbench.evaluation.claims.ordering_claims import OrderedFigure, OrderedPair, comparisons
from textbench.evaluation.claims.published import read_claims
from textbench.flows.plan.papers import FOLDER
from textbench.flows.referee.held import headlines, totals
from textbench.flows.referee.ledger import read_measured
from textbench.flows.referee.notes import read_notes
from textbench.tasks.storage.definitions import PROJECT

README = (PROJECT / "README.md").read_text("utf-8")
# Written by hand, about what the papers claimed.
ON_PAPERS = {
    "dcot": "dcot-2012",
    "scdv": "scdv-2017",
    "compressive-features": "compressive-features-2013",
    "tfidf-and-lsa": "",  # no paper's, so that it has no figure
}
HELD = "## What held"
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


def on_record(paper: str) -> set[float]:
    """What is recorded of a paper: its figures, what was measured for them, and its folder's notes."""
    own = [claim for claim in read_claims() if claim.paper == paper]
    found = {float(claim.text) for claim in own if claim.printed}
    rows = read_measured()
    for row in (rows[claim.id] for claim in own if claim.id in rows):
        bounds = [float(row[name]) for name in ("value", "compared", "low", "high") if row[name]]
        half = [(float(row["high"]) - float(row["low"])) / 2] if row["low"] else []
        p_values = [pair[2] for pair in json.loads(row["comparisons"] or "[]")]
        found.update(numbers([bounds, half, p_values, json.loads(row["params"] or "{}")]))
    for path in FOLDER.glob("*/notes.yaml"):
        notes = [note for note in read_notes(path) if any(note.is_about(claim.id) for claim in own)]
        found.update(numbers([asdict(note) for note in notes]))
    return {abs(value) for value in found}


def missing(page: str, known: Iterable[float]) -> list[str]:
    """The figures of a page that are none of these to their last digit, with what stands before them."""
    found, known = [], list(known)
    for figure in FIGURE.finditer(page):
        value, half = float(figure[0].replace(",", "")), 0.5 * 10.0 ** -len(figure[0].partition(".")[2])
        if not any(abs(one - value) <= half + 1e-9 for one in known):
            found.append(page[max(0, figure.start() - 40) : figure.end()])
    return found


@pytest.mark.parametrize(("name", "paper"), ON_PAPERS.items())
def test_every_figure_on_the_papers_is_in_the_record(name: str, paper: str) -> None:
    """As it is printed, to its last digit: in measured.csv, claims.csv or the notes, of this paper alone."""
    page = (record.DOCS / "explanation" / f"{name}.md").read_text("utf-8")
    assert missing(page[page.index(HELD) :], on_record(paper)) == []


@pytest.mark.parametrize(
    ("paper", "most"),
    [(ON_PAPERS["dcot"], 100), (ON_PAPERS["compressive-features"], 150), (ON_PAPERS["scdv"], 200)],
)
def test_a_figure_at_random_is_hardly_ever_in_the_record(paper: str, most: int) -> None:
    """Of 1,000 with two places. Beside every number that is recorded of anything nearly half of them were."""
    page = " ".join(f"{value:.2f}" for value in np.random.default_rng(0).uniform(60, 100, 1000))
    assert 1000 - len(missing(page, on_record(paper))) <= most


def test_what_is_said_of_figure_4_of_the_compressive_paper_is_recorded() -> None:
    """How many comparisons are significant, and what p the others have."""
    page = (record.DOCS / "explanation" / "compressive-features.md").read_text("utf-8").replace("\n ", "")
    rows = read_measured()
    pairs = [
        pair for one in ("ag", "bh") for pair in json.loads(rows[f"cfl-2013/figure-4/{one}"]["comparisons"])
    ]
    others = [p for _, _, p, *_ in pairs if p >= 0.05]
    assert f"Of {len(pairs)} such comparisons {len(pairs) - len(others)} are significant" in page
    assert f"p = {' and '.join(f'{p:.2f}' for p in others)}" in page


def test_what_is_said_of_figure_4_of_the_dcot_paper_is_recorded() -> None:
    """Against whom it is ahead or behind, at which budgets, by how much."""
    page = (record.DOCS / "explanation" / "dcot.md").read_text("utf-8").replace("\n", " ")
    points: dict[str, dict[int, tuple[float, bool]]] = {}
    for name, difference, p, *_ in json.loads(
        read_measured()["dcot-2012/figure-4/reuters65/order"]["comparisons"]
    ):
        _, _, other, _, budget, _ = name.split()
        points.setdefault(other, {})[int(budget)] = 100 * difference, p < 0.05
    told = {other: [b for b, (_, is_told) in of.items() if is_told] for other, of in points.items()}
    by = {other: sorted(abs(of[b][0]) for b in told[other]) for other, of in points.items()}
    for other, said in (("lda", "LDA ({} points)"), ("counts", "of bag of words ({}) at all eleven budgets")):
        assert told[other] == list(points[other]) and min(points[other].values())[0] > 0
        assert said.format(f"{by[other][0]:.1f} to {by[other][-1]:.1f}") in page
    assert told["tfidf"] == [1500, *range(2500, 6000, 500)] and told["lsi"] == [500, 3000, 3500, 5000]
    behind = sorted(-difference for difference, _ in points["tfidf"].values())
    assert f"at every budget ({behind[0]:.1f} to {behind[-1]:.1f} points" in page
    at_500, *ahead = (points["lsi"][b][0] for b in told["lsi"])
    assert f"LSI is {-at_500:.1f} points ahead at 500 labels" in page
    assert f"at 3,000, 3,500 and 5,000 ({min(ahead):.1f} to {max(ahead):.1f} points)" in page


def test_what_is_said_of_the_classes_of_the_scdv_paper_is_recorded() -> None:
    """In how many rates it is above or below bag of words, beyond chance."""
    page = (record.DOCS / "explanation" / "scdv.md").read_text("utf-8").replace("\n ", "")
    rows, pairs = read_measured(), []
    for claim in read_claims():
        if claim.paper == "scdv-2017" and claim.class_rate and claim.method == "SCDV":
            other = rows[claim.id.replace("/scdv/", "/bow/")]["value"]
            each = {int(seed): value for seed, value in json.loads(rows[claim.id]["each"]).items()}
            above = {seed: OrderedFigure("", {}, None, seed, value) for seed, value in each.items()}
            below = {seed: OrderedFigure("", {}, None, seed, float(other)) for seed in each}
            pairs.append(OrderedPair(claim.metric, above, below))
    sure = [found.difference > 0 for found in comparisons(pairs) if found.p < 0.05]
    assert {len(pair.shared) for pair in pairs} == {5}
    assert (
        f"in {sum(sure)} of {len(pairs)} rates of single classes, and below beyond chance in {sure.count(False)}."
        in page
    )


def test_generated_pages_are_as_old_as_the_record() -> None:
    assert record.stale() == [], "`make pages` writes them anew"
    assert site.LLMS.read_text("utf-8") == site.llms(record.DOCS, "docs/"), "`make pages` writes it anew"


def test_an_older_figure_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, make = next(iter(record.PAGES.items()))
    page = make()
    figure = FIGURE.search(page)
    assert figure
    (tmp_path / name).write_text(page.replace(figure[0], "99.99", 1), "utf-8")
    monkeypatch.setattr(record, "DOCS", tmp_path)
    monkeypatch.setattr(record, "PAGES", {name: make})
    (line,) = record.stale()
    assert "is older than the record" in line and "99.99" in line and figure[0] in line


def test_verdicts_are_those_of_the_ledger() -> None:
    """As `textbench claims` prints them last: headline figures, then figures and sentences, then rates of classes."""
    page = (record.DOCS / "claims.md").read_text("utf-8")
    lines = "\n".join(f"- {line}" for line in [*headlines(record.entries()), *totals(record.entries())])
    assert lines in page


def test_the_readme_fits_a_screen_and_has_figures_of_claims_in_one_chapter_alone() -> None:
    assert len(README.splitlines()) <= 120
    before, heading, rest = README.partition(record.CHAPTER)
    chapter, _, after = rest.partition("\n## ")
    assert heading and "reproduced" in chapter
    assert not re.search(r"\d+ claims|reproduced", before + after)


def test_benchmarks_say_how_they_are_measured_again() -> None:
    with record.BENCHMARKS.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows and all(all(row.values()) for row in rows)
    modules = {found[1] for row in rows if (found := re.search(r"-m (tests[\w.]+) ?(\w*)", row["command"]))}
    named = {row["command"] for row in rows if row["command"].startswith("python -m tests.benchmarks ")}
    for command in named:
        assert (PROJECT / "tests" / "benchmarks" / f"{command.split()[-1]}.py").exists(), command
    assert modules <= {"tests.benchmarks", "tests.benchmarks.gaps"}
