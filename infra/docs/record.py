"""The pages made of recorded evidence: what is measured, and what the papers claimed.

They are committed, so that they are read without building anything. `stale` names those that are older than the record,
`write` writes them anew.
"""

import csv
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path

from infra.docs.markdown import code, plain, table
from textbench.evaluation.claims.published import read_claims
from textbench.flows.plan.papers import FOLDER
from textbench.flows.referee import recorded_draws
from textbench.flows.referee.held import headlines, totals
from textbench.flows.referee.ledger import LedgerEntry, ledger
from textbench.flows.referee.notes import Note, read_notes
from textbench.flows.report import boards, curves, papers, probes, recorded
from textbench.flows.results import learning_curves, packed
from textbench.flows.tables.formats import rows_in_markdown
from textbench.flows.tables.table import RECORDED
from textbench.tasks.sources import archives
from textbench.tasks.storage.definitions import PROJECT

DOCS = PROJECT / "docs"
README = PROJECT / "README.md"
BENCHMARKS = PROJECT / "evaluation" / "benchmarks.csv"
CHAPTER = "## What became of the papers' headlines\n\n"
OF_CHAPTER = (
    "Each has a verdict by [one rule](docs/verdicts.md); [all of them](docs/claims.md). By `make pages`."
)
MADE = "<!-- Generated from the record by `make pages`: change the record, not this page. -->"


@cache
def entries() -> tuple[LedgerEntry, ...]:
    """The ledger of what the repository records alone: no results folder, ceilings as recorded."""
    are_here = archives.are_here
    archives.are_here = lambda files: False  # type: ignore[assignment]
    try:
        with tempfile.TemporaryDirectory() as home:
            return tuple(ledger(Path(home), read_claims()))
    finally:
        archives.are_here = are_here


def notes() -> Iterator[Note]:
    """Yield the notes of every paper's folder."""
    for path in sorted(FOLDER.glob("*/notes.yaml")):
        yield from read_notes(path)


def measured() -> str:
    """Return the page "What is measured"."""
    lines = [
        MADE, "# What is measured", "",
        "Every leaderboard that the repository records: accuracy and its relatives in percent, ± half of a 95 %",
        "interval. A [protocol](glossary.md#protocol) says what a method may learn from. Costs of programs are",
        "[further down](#benchmarks). `textbench report --claims` has the same with settings and commands.", "",
    ]  # fmt: skip
    for board in boards.recorded_boards(recorded.summaries(), []):
        paper = f" of {board.paper}" if board.paper else ""
        lines += [f"## {board.dataset}, {board.protocol} protocol{paper}", ""]
        lines += [*rows_in_markdown(boards.table(board)), ""]
    for (dataset, protocol, by), rows in curves.groups(recorded_draws.rows()).items():
        found = learning_curves.summarise(rows)
        lines += [f"## {curves.headed(dataset, protocol, by)}", ""]
        for one in curves.tables(dataset, protocol, found, RECORDED):
            lines += [*rows_in_markdown(one), "", plain(one.note), ""]
        lines += [line for said in learning_curves.verdicts(rows) for line in (plain(said), "")]
    if kept := probes.read():
        lines += [f"## {probes.QUESTION}", "", plain(probes.answer(kept)), ""]
        lines += [*rows_in_markdown(probes.table(kept, RECORDED)), "", plain(probes.NOTE), ""]
    lines += [
        "## Benchmarks",
        "",
        "Each group has the command that measures it again, and the machine it ran on.",
        "",
    ]
    with BENCHMARKS.open(encoding="utf-8", newline="") as stream:
        for group, found in groupby(csv.DictReader(stream), lambda row: row["group"]):
            rows = list(found)
            lines += [f"### {group}", ""]
            lines += table(
                ["what", "figure", "unit"], [[plain(r["what"]), plain(r["figure"]), r["unit"]] for r in rows]
            )
            made = dict.fromkeys((row["command"], row["hardware"]) for row in rows)
            lines += [f"By `{command}`, {hardware}." for command, hardware in made if command] + [""]
    return _text(lines)


def claims() -> str:
    """Return the page "What the papers claimed"."""
    found = entries()
    lines = [
        MADE, "# What the papers claimed", "",
        "Each figure that a paper published, beside what was measured here, with a verdict by",
        "[one rule](verdicts.md). Nothing is judged by hand. One claim in full, with its settings, its arithmetic and",
        "the experiments that explain a gap: `textbench claims ID --explain`.", "",
        "## Headlines", "", *(f"- {line}" for line in [*headlines(found), *totals(found)]), "",
        "## Verdicts", "", *rows_in_markdown(papers.verdict_counts(found)), "",
    ]  # fmt: skip
    for paper in dict.fromkeys(entry.claim.paper for entry in found):
        own = [entry for entry in found if entry.claim.paper == paper]
        lines += [f"## {paper}", "", *_figures([entry for entry in own if not entry.claim.class_rate])]
        if rates := [entry for entry in own if entry.claim.class_rate]:
            lines += ["Rates of single classes:", "", *_figures(rates)]
    lines += [
        "## Experiments that explain a gap", "",
        "From the notes of each paper's folder (`flows/papers/*/notes.yaml`).", "",
    ]  # fmt: skip
    for note in notes():
        lines += [f"### {note.about}", "", *_note(note)]
    return _text(lines)


def readme() -> str:
    """Return README with what became of the papers' headlines in its chapter of that name."""
    found = entries()
    before, heading, rest = README.read_text("utf-8").partition(CHAPTER)
    lines = [f"- {line}" for line in [*headlines(found), *totals(found)]]
    _, following, after = rest.partition("\n## ")
    return "\n".join([f"{before}{heading}{OF_CHAPTER}", "", *lines, f"{following}{after}"])


def _figures(own: Sequence[LedgerEntry]) -> list[str]:
    rows = []
    for entry in own:
        claim, line = entry.claim, papers.ledger([entry]).rows[0]
        what = code(claim.id.removeprefix(f"{claim.paper}/"))
        said = f"{what}: {plain(claim.text)}" if claim.printed is None else what
        values = [datum.text for datum in line[3:6]]
        word = f" ({claim.obstacle.partition(':')[0]})" if claim.obstacle else ""
        rows.append([said, plain(line[2].text), *values, f"{line[8].text}{word}"])
    return table(["claim", "published", "measured", "from", "to", "verdict"], rows)


def _note(note: Note) -> Iterator[str]:
    yield from (plain(note.text), "")
    for name in ("origin", "certainty"):
        if getattr(note, name):
            yield from (f"*{name}*: {plain(getattr(note, name))}", "")
    for one in note.experiments:
        yield from (f"{plain(one.settings)} ({plain(one.of)}):", "")
        rows = [
            [plain(each.change), _number(each.value), _number(each.half_width), _number(each.worth, "+")]
            for each in one.figures
        ]
        yield from table(["change", "figure", "±", "worth"], rows)
        if one.command:
            yield from (f"By `{one.command}`.", "")


def _number(value: float | None, sign: str = "") -> str:
    return "-" if value is None else f"{value:{sign}g}"


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"


PAGES: dict[str, Callable[[], str]] = {"measured.md": measured, "claims.md": claims, "../README.md": readme}


def stale() -> list[str]:
    """Return a line for each committed page that is not what the record says now: the first line that differs."""
    found = []
    for name, make in PAGES.items():
        path = DOCS / name
        now, then = make().splitlines(), path.read_text("utf-8").splitlines() if path.exists() else []
        if now != then:
            longest = max(len(now), len(then))
            pairs = zip(
                [*now, *[""] * (longest - len(now))], [*then, *[""] * (longest - len(then))], strict=True
            )
            number, (new, old) = next((n, pair) for n, pair in enumerate(pairs, 1) if pair[0] != pair[1])
            found.append(f"docs/{name}, line {number}, is older than the record: {old!r} is now {new!r}")
    if packed.read(packed.FILE) != recorded.packed_lines():
        found.append(f"evaluation/{packed.FILE.name} is older than the record")
    return found


def write() -> None:
    """Write the committed pages and the packed board anew."""
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), "utf-8")
    packed.write(packed.FILE, recorded.packed_lines())
