"""A packed board for people: its tables with groups of ties and intervals of ranks, on a terminal or as one page."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from textbench.flows.report.boards import Board, recorded_boards, table
from textbench.flows.report.chapters import Chapter, Section
from textbench.flows.report.page import rendered
from textbench.flows.report.recorded import of_packed
from textbench.flows.results import packed
from textbench.flows.results.summary import Summary, latest, summarise
from textbench.flows.tables.table import Datum, Table, code, slug
from textbench.tasks import InputError, catalogue
from textbench.tasks.storage.files import whole

SHORT = 8  # digits of a sha256 that are shown


def summaries(lines: Iterable[packed.Line]) -> list[Summary]:
    """Return packed lines as summaries, cells over their seeds.

    Documents of one name but other content are told apart.
    """
    lines = list(lines)
    contents: dict[str, set[str]] = {}
    for line in lines:
        if line["documents_sha256"]:
            contents.setdefault(line["dataset"], set()).add(line["documents_sha256"])
    in_time = sorted(
        (line for line in lines if line["kind"] == packed.CELL), key=lambda line: line["created"]
    )
    cells = [_row(line, contents) | {"created": place} for place, line in enumerate(in_time)]
    return [of_packed(line) for line in lines if line["kind"] == packed.MEAN] + summarise(latest(cells))


def _row(line: packed.Line, contents: dict[str, set[str]]) -> dict[str, Any]:
    """Return a packed cell as a row of results."""
    is_plain = line["dataset"] in catalogue.datasets() and len(contents.get(line["dataset"], ())) < 2
    name = line["dataset"] if is_plain else f"{line['dataset']}@{line['documents_sha256'][:SHORT]}"
    copied = (
        "method",
        "protocol",
        "trials",
        "probe",
        "params",
        "on_border",
        "peak_mb",
        "uses_labels",
        "metrics",
        "settings",
    )
    return {one: line[one] for one in copied} | {
        "dataset": name, "paper": line["paper"] or None, "seed": line["seeds"][0], "seconds": line["stage_seconds"],
        "documents_95": line["half_widths"], "error": None, "key": line["cells"][0], "request": line["request"],
    }  # fmt: skip


def boards(lines: Iterable[packed.Line]) -> list[Board]:
    """Return the boards of packed lines: a data set under a protocol each, its methods best first."""
    return recorded_boards(summaries(lines), [])


def tables(lines: Iterable[packed.Line], source: str) -> list[Table]:
    """Return a table a board, with ranks and ties; `source` says whose figures they are."""
    return [_sourced(table(board), source) for board in boards(lines)]


def _sourced(one: Table, source: str) -> Table:
    return replace(one, source=source, may_go=("peak_mb", "seconds", "seeds"))


def write(path: Path, lines: Sequence[packed.Line], origin: str) -> None:
    """Write a board as one HTML page, whole or not at all. Raises InputError where it cannot be written."""
    try:
        with whole(path) as part:
            part.write_text(page(lines, origin), "utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def page(lines: Sequence[packed.Line], origin: str) -> str:
    """Return a board as HTML: the same lines give the same bytes."""
    found = boards(lines)
    sections = [Section(board.name, board.title, tables=[_sourced(table(board), "")]) for board in found]
    answer = [_best(board) for board in found]
    dates = sorted(line["created"] for line in lines)
    about = (
        f"{len(lines)} results of {origin}, measured {dates[0]} to {dates[-1]}."
        if dates
        else f"{origin} is empty."
    )
    chapters = [
        Chapter("boards", "Which representation is best", answer, sections=sections),
        Chapter(
            "made", "How each was made", [f"{len(lines)} lines; verify some with textbench results verify."],
            sections=[Section("keys", "Settings, keys and commands", tables=[_made(lines)])],
        ),
    ]  # fmt: skip
    return rendered(chapters, "Leaderboards of text representations", about)


def _best(board: Board) -> str:
    first, *_ = [line.summary for line in board.lines]
    shown = table(board)
    places = [place for place, (name, _) in enumerate(shown.headings) if name == "ties"]
    tied = sum("a" in row[place].text for place in places for row in shown.rows) - 1
    also = f"; {tied} not told apart from it" if tied > 0 else ""
    return f"{board.title}: {first.label}{also}."


def _made(lines: Sequence[packed.Line]) -> Table:
    headings = [
        ("dataset", "data set"), ("method", "method"), ("protocol", "protocol"), ("seeds", "seeds"),
        ("sha256", "sha256 of the data"), ("commit", "commit"), ("hardware", "hardware"), ("command", "command"),
        ("created", "made"), ("cells", "keys"),
    ]  # fmt: skip
    rows = [
        [
            Datum(line["dataset"]), Datum(line["method"]),
            Datum(", ".join(filter(None, [line["protocol"], line["paper"]]))),
            Datum(" ".join(map(str, line["seeds"]))), code(line["data_sha256"][:60] or "-"),
            code(line["commit"][:SHORT] or "-"), Datum(line["hardware"] or "-"), code(line["command"] or "-"),
            Datum(line["created"]), code(" ".join(key[:12] for key in line["cells"]) or "-"),
        ]
        for line in lines
    ]  # fmt: skip
    return Table(slug("made-board"), "How each was made", headings, rows, filters=["dataset", "protocol"])
