"""The page itself: one HTML file with everything in it, and its tables as files where they are wanted."""

import base64
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from textbench.flows.report import search
from textbench.flows.report.chapters import Chapter, nothing_here
from textbench.flows.report.evidence import Evidence
from textbench.flows.tables.formats import FORMAT_NAMES, FORMATS
from textbench.flows.tables.table import LOCAL, RECORDED, Table
from textbench.tasks import InputError
from textbench.tasks.storage.files import whole
from textbench.tasks.tracking.tracker import git_commit
from textbench.tasks.words import counted

HERE = Path(__file__).parent
TYPES = {"csv": "text/csv", "md": "text/markdown", "tex": "text/x-tex"}


def write(path: Path, evidence: Evidence, found: Sequence[Chapter]) -> None:
    """Write the report as one HTML file, whole or not at all. Raises InputError when it cannot be written."""
    try:
        with whole(path) as part:
            part.write_text(render(evidence, found), "utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def render(evidence: Evidence, found: Sequence[Chapter]) -> str:
    """Return the page as HTML."""
    now = _now()
    sweeps = f" of the sweeps {', '.join(evidence.sweeps)}" if evidence.sweeps else ""
    n_runs, n_budgets = len(evidence.rows), len(evidence.budgets)
    about = f"{now}. {n_runs} local runs{sweeps}, {n_budgets} more on label budgets; {len(evidence.failed)} failed."
    if searched := search.found(evidence):
        about = f"{about[:-1]}; {counted(len(searched), 'ranking')}."
    has_results = bool(evidence.rows or evidence.budgets)
    notice = "" if has_results else nothing_here(evidence)
    return rendered(
        found, "Text representations, compared", about, notice, f"at commit {git_commit()} on {now}"
    )


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def rendered(found: Sequence[Chapter], title: str, about: str, notice: str = "", made: str = "") -> str:
    """Return chapters as a page of HTML: its title, a line about it, a notice, and how it was made."""
    import importlib.metadata

    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    version = importlib.metadata.version("textbench")
    return environment.get_template("template.html").render(
        title=title,
        about=about,
        notice=notice,
        made=f"Made by textbench {version}{made and f' {made}'}.",
        version=version,
        chapters=found,
        ids=set(_ids(found)),
        downloads=downloads,
        css=(HERE / "style.css").read_text("utf-8"),
        script=(HERE / "script.js").read_text("utf-8"),
        LOCAL=LOCAL,
        RECORDED=RECORDED,
    )


def _ids(found: Sequence[Chapter]) -> Iterator[str]:
    for chapter in found:
        yield chapter.name
        for section in chapter.sections:
            yield section.name
            yield from (table.name for table in section.tables)


def downloads(table: Table) -> list[tuple[str, str, str]]:
    """Return a table's other forms: ending, name, and an address that holds the whole file."""
    found = []
    for ending, convert in FORMATS.items():
        data = base64.b64encode(convert(table).encode()).decode()
        found.append((ending, FORMAT_NAMES[ending], f"data:{TYPES[ending]};charset=utf-8;base64,{data}"))
    return found


def write_tables(folder: Path, found: Sequence[Chapter]) -> int:
    """Write every table as CSV, Markdown and LaTeX into a folder and return how many tables there are.

    Raises InputError where the folder cannot be written.
    """
    tables = [table for chapter in found for section in chapter.sections for table in section.tables]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for table in tables:
            for ending, convert in FORMATS.items():
                (folder / f"{table.name}.{ending}").write_text(convert(table), "utf-8")
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}") from error
    return len(tables)
