"""Every block of README and documentation: commands are ones there are, Python is run, what it shows is compared.

Pages whose Python needs a run of its own share one results folder. Dear ones, whole commands one after the other, have
the marker `dear`, which `.ci/run` runs too.
"""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from infra.docs import notebooks, record, site
from tests.commands import textbench
from textbench.flows.cli import app
from textbench.flows.plan.suites import suites
from textbench.tasks import catalogue, rankers
from textbench.tasks.storage import isolate
from textbench.tasks.storage.definitions import PROJECT

PAGES = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted(record.DOCS.rglob("*.md"))]
BLOCK = re.compile(r"^( *)```(\w+)(?: file=(\S+))?\n(.*?)^ *```$", re.M | re.S)
# Seconds, peak MB (where there is room for it) and run are left out.
ROW = re.compile(r"^(.*?)(?: +[\d.,]+(?: +[\d,]+)?)( +\d+) +[0-9a-f]{8}$", re.M)
CHEAPEST = re.compile(
    r"(The cheapest of them is|It is also the cheapest of them:) .*? s(?: against .*? s)?\. "
)
OWN = {"stories", "my-dataset", "data (2)", "DATASET"}  # data sets that a page's reader has


class Block(NamedTuple):
    """A fenced block: its page, its language, the file that it is, its text."""

    page: Path
    language: str
    file: str | None
    text: str


def blocks(page: Path) -> Iterator[Block]:
    for indent, language, file, text in BLOCK.findall(page.read_text("utf-8")):
        yield Block(page, language, file or None, re.sub(rf"^{indent}", "", text, flags=re.M))


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of each textbench command of a page."""
    for block in blocks(page):
        if block.language in ("bash", "console"):
            for line in block.text.splitlines():
                words = shlex.split(line.removeprefix("$ "), comments=True)
                if words and words[0] == "textbench" and "COMMAND" not in words and "..." not in words:
                    yield words[1:]


def parsed(words: list[str]) -> dict[str, Any]:
    """Return the options of a command as they were given; raises click's errors for one that there is not."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and words:
        words = [word for word in words if word not in ("--quiet", "--verbose")]
        if words[0].startswith("--"):
            break
        command, words = command.commands[words[0]], words[1:]
    context = command.context_class(command, info_name="textbench")
    return dict(command.make_parser(context).parse_args(list(words))[0])


def several(values: str | list[str] | None) -> list[str]:
    return [values] if isinstance(values, str) else values or []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_commands_are_ones_there_are(page: Path) -> None:
    """Each with its options, and with names of data sets, methods and suites that there are."""
    for words in commands(page):
        options = parsed(words)
        for name in several(options.get("dataset")):
            assert name in OWN or catalogue.dataset(name), words
        for text in several(options.get("method")):
            if words[0] == "retrieve":
                assert text.partition("+")[0] in {*rankers.spellings(), *catalogue.methods()}, words
            elif not text.endswith(".py") and not text.startswith("join("):
                assert catalogue.method(catalogue.parse_method(text)[0]), words
        if words[0] == "run" and isinstance(options.get("suite"), str):
            assert options["suite"] in suites(), words


def settled(text: str) -> str:
    """What of an output is the same at every run: without seconds, memory, ids of runs and how lines are broken."""
    return CHEAPEST.sub("", " ".join(ROW.sub(r"\1\2", text).split()))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder for all pages."""
    return tmp_path_factory.mktemp("blocks")


@pytest.fixture
def without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """No archives. The server of computations, whose environment outlives a test's, is started with them."""
    isolate.warm()
    monkeypatch.delenv("TEXTBENCH_DATA_DIR", raising=False)


RUN = ["README.md", "docs/tutorial/own-csv.md", "docs/tutorial/label-budget.md", "docs/tutorial/python.md"]


@pytest.mark.usefixtures("without_data")  # ceilings are those that are recorded
@pytest.mark.parametrize("name", RUN)
def test_python_shows_what_the_page_shows(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTBENCH_HOME", str(home / "results"))
    monkeypatch.chdir(home)
    found = [
        block for block in blocks(PROJECT / name) if block.language in ("python", "text", "console", "bash")
    ]
    names: dict[str, Any] = {"__name__": "__main__"}
    n_compared = 0
    for block, after in zip(found, [*found[1:], None], strict=True):
        if block.language == "python":
            shown = notebooks.text_of(notebooks.outputs_of(block.text, names))
            if after is not None and after.language == "text":
                assert settled(shown) == settled(after.text)
                n_compared += 1
        elif block.language == "console":
            command, _, output = block.text.partition("\n")
            options = parsed(shlex.split(command)[2:])
            run = names["tb"].run(options["data"], several(options["method"]), progress=False)
            assert settled(repr(run)) == settled(output)
            n_compared += 1
        elif "export tfidf -d stories -o" in block.text:
            app(["export", "tfidf", "-d", "stories", "-o", "model.npz"], standalone_mode=False)
    assert n_compared > 0


def test_every_page_with_python_is_run() -> None:
    with_python = {
        str(page.relative_to(PROJECT))
        for page in PAGES
        for block in blocks(page)
        if block.language == "python" and not block.file
    }
    assert with_python == set(RUN)


def test_the_example_of_a_method_keeps_the_contract(tmp_path: Path) -> None:
    page = record.DOCS / "how-to" / "own-method.md"
    (block,) = [block for block in blocks(page) if block.file]
    (tmp_path / str(block.file)).write_text(block.text, "utf-8")
    assert ["check", block.file] in [*commands(page)]
    output, _ = textbench("check", str(tmp_path / str(block.file)), home=tmp_path / "home")
    assert "FAILED" not in output


@pytest.mark.usefixtures("without_data")
@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_show_what_is_stored(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert path.stat().st_size < 1_000_000
    for cell, outputs in notebooks.run(path):
        stored = notebooks.text_of(cell["outputs"])
        assert notebooks.text_of(outputs) == stored, "`python -m infra.docs notebooks` stores them anew"
    assert json.loads(path.read_text("utf-8"))["nbformat"] == 4


def test_links_between_committed_pages_lead_somewhere() -> None:
    """Those to pages that are only built are checked by `make docs`, as all others are."""
    built = ("reference/methods/", "reference/command-line", "reference/python", "reference/datasets")
    built += ("reference/metrics", "reference/rankers", "reference/protocols", "reference/suites", "gallery")
    broken = [line for line in site.broken_links(record.DOCS) if not any(place in line for place in built)]
    assert broken == []


@pytest.mark.dear
def test_the_tutorial_from_csv_to_served_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands one after the other, as a reader types them; the search is left to the tests of searches."""
    page = record.DOCS / "tutorial" / "own-csv.md"
    python = next(block.text for block in blocks(page) if block.language == "python")
    monkeypatch.chdir(tmp_path)
    notebooks.outputs_of(python, {"__name__": "__main__"})
    (tmp_path / "new.csv").write_text("text\nthree mln tonnes of wheat\n", "utf-8")
    names = ("stories.csv", "model.npz", "new.csv", "labelled.csv", "report.html")
    files = {name: str(tmp_path / name) for name in names}
    for words in commands(page):
        if "--trials" not in words:
            textbench(*(files.get(word, word) for word in words), home=tmp_path / "results")
    assert "grain" in (tmp_path / "labelled.csv").read_text("utf-8")
