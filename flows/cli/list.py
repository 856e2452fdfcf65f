"""`textbench list`: the data sets, methods, metrics, suites, collections and rankers there are."""

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textbench.evaluation.metrics.calibration import CALIBRATED_BY
from textbench.flows.cli.output import print_json
from textbench.flows.results.method_names import PRETRAINED, SUPERVISED

if TYPE_CHECKING:
    from textbench.tasks.catalogue import Entry
    from textbench.tasks.storage.recipe import Reference

SHOWN = 6  # methods of a part of a suite that are named
# Headings of lists that have a line an entry, by the values of some columns.
METHODS_BY: Mapping[tuple[str | bool, ...], str] = {
    ("representation", False, False): "Representations",
    ("representation", True, False): f"Representations fitted to labels too, {SUPERVISED} in tables",
    ("representation", False, True): f"Representations by a pretrained model, {PRETRAINED} in tables",
    ("classifier", False, False): "Classifiers of their own, which need no probe",
}
METRICS_BY: Mapping[tuple[str | None, ...], str] = {
    ("one", None): "One label a document: what was decided",
    ("one", "labels"): "One label a document: the classes, ranked by decision value",
    (
        "one",
        "neighbours",
    ): "One label a document: training documents, ranked by cosine to it",
    ("several", None): "Several labels a document: what was decided",
    ("several", "labels"): "Several labels a document: its labels, ranked by decision value",
    (
        "several",
        "documents",
    ): "Several labels a document: documents, ranked for each label by decision value",
    ("any", None): f"One label a document or several: probabilities, by {CALIBRATED_BY}, out of fold",
}

list_app = typer.Typer(
    help="List data sets, methods, metrics, suites, collections or rankers.", no_args_is_help=True
)
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON Lines, one object an entry, and nothing else.")
]


@list_app.command("datasets")
def list_datasets(json: Json = False) -> None:
    """List the data sets: what is here of each and what would be downloaded, licence and source.

    Example: textbench list datasets --json
    """
    _print(dataset_entries(), ("here", "licence", "source"), json)


def dataset_entries() -> list[dict[str, Any]]:
    """Return what there is to say of each data set."""
    from textbench.tasks import catalogue, ingest

    return [_data(entry, ingest.reference(name)) for name, entry in catalogue.datasets().items()]


@list_app.command("methods")
def list_methods(json: Json = False) -> None:
    """List the methods, a line each; what they read, whether seeds matter, and their source are in --json.

    A file of your own works like one of these: textbench run -m my_method.py

    Example: textbench list methods
    """
    entries = method_entries()
    if json:
        _print(entries, (), json)
    else:
        _print_lines(entries, METHODS_BY, ("role", "uses_labels", "pretrained"))


def method_entries() -> list[dict[str, Any]]:
    """Return what there is to say of each method."""
    from textbench.tasks import catalogue

    return [
        {
            "name": name,
            "description": entry.description,
            "input": entry.constant("INPUT", "counts"),
            "role": entry.constant("ROLE", "representation"),
            "uses_labels": entry.uses_labels(),
            "pretrained": entry.is_pretrained,
            "seeded": entry.is_seeded,
            "source": _source(entry),
        }
        for name, entry in catalogue.methods().items()
    ]


@list_app.command("metrics")
def list_metrics(json: Json = False) -> None:
    """List the metrics: those of one label a document and of several, by what they rank if they judge a ranking.

    Example: textbench leaderboard --metric map
    """
    from textbench.evaluation.metrics.calibration import PROBABILITIES
    from textbench.evaluation.metrics.multilabel import MULTILABEL_METRICS
    from textbench.evaluation.metrics.single_label import METRICS

    entries = [
        {
            "name": name,
            "description": metric.description,
            "labels": labels,
            "needs": metric.needs,
            "ranks": metric.ranks,
            "higher_is_better": metric.higher_is_better,
        }
        for labels, metrics in (("one", METRICS), ("several", MULTILABEL_METRICS), ("any", PROBABILITIES))
        for name, metric in metrics.items()
    ]
    if json:
        _print(entries, (), json)
    else:
        _print_lines(entries, METRICS_BY, ("labels", "ranks"))


@list_app.command("suites")
def list_suites(json: Json = False) -> None:
    """List the suites: what `textbench run SUITE` runs.

    Example: textbench run quick
    """
    from textbench.flows.plan.suites import read_suite, suites

    entries = [{"name": name} | read_suite(name) for name in suites()]
    if not json:
        entries = [
            entry | {"parts": [_in_words(part) for part in entry["parts"]]} if "parts" in entry else entry
            for entry in entries
        ]
    _print(entries, ("datasets", "methods", "seeds", "trials", "parts"), json)


@list_app.command("collections")
def list_collections(json: Json = False) -> None:
    """List the collections with judged queries, with their source, licence and token rule.

    Your own, and those of ir_datasets, work like one of these: textbench retrieve --help

    Example: textbench retrieve -c cranfield
    """
    from textbench.tasks import catalogue, collect

    entries = [_data(entry, collect.reference(name)) for name, entry in catalogue.collections().items()]
    _print(entries, ("here", "licence", "source"), json)


@list_app.command("rankers")
def list_rankers(json: Json = False) -> None:
    """List the rankers and their references; METHOD is any representation of `textbench list methods`.

    Example: textbench retrieve -c cacm -m bm25 -m lsi -m lm+scdv
    """
    from textbench.tasks import rankers

    entries = [
        {
            "name": name,
            "description": entry.description,
            "needs": list(entry.constant("NEEDS", ())),
            "source": _source(entry),
        }
        for name, entry in rankers.spellings().items()
    ]
    _print(entries, ("source",), json)


def _data(entry: "Entry", reference: "Reference") -> dict[str, Any]:
    """Return what a data set's or collection's file says of it, and whether it is here."""
    module = entry.load()
    return {
        "name": entry.name,
        "description": entry.description,
        "here": _whereabouts(module.SHA256, reference),
        "licence": module.LICENCE,
        "source": module.SOURCE,
        "citation": module.CITATION,
        "token_rule": module.RULE,
        "sha256": module.SHA256,
    }


def _whereabouts(files: Iterable[str], reference: "Reference") -> str:
    """Say where documents would come from: the store, an archive on this machine, a package, or the network."""
    from importlib import metadata

    from textbench.flows.run.workspace import home_folder
    from textbench.tasks import InputError
    from textbench.tasks.datasets._cachopo import INSTALL, PACKAGE
    from textbench.tasks.sources import archives
    from textbench.tasks.storage.store import Store

    try:
        if Store(home_folder() / "store").has(reference):
            return "stored"
    except InputError:
        pass  # without a results folder nothing is stored
    if any(file.endswith(archives.SUFFIX) for file in files):
        return "archive found" if archives.are_here(files) else "would be downloaded"
    try:
        return f"in the package {PACKAGE} {metadata.version(PACKAGE)}"
    except metadata.PackageNotFoundError:
        return f"its package is missing: {INSTALL}"


def _in_words(part: Mapping[str, Any]) -> str:
    """Say in a line what a part of a suite runs."""
    shown = part["methods"][:SHOWN]
    more = len(part["methods"]) - len(shown)
    name = f"{part['name']}: " if "name" in part else ""
    words = [
        f"{name}{', '.join(shown)}{f' and {more} more' if more else ''} on {', '.join(part['datasets'])}"
    ]
    words += [f"every {' and '.join(part['grid'])}"] if "grid" in part else []
    words += [f"{part['protocol']} protocol"] if "protocol" in part else []
    words += [f"label budgets {', '.join(map(str, part['budgets']))}"] if "budgets" in part else []
    words += [f"{part[name]} {name}" for name in ("seeds", "draws", "trials") if name in part]
    words += [f"pieces {', '.join(part['pieces'])}"] if "pieces" in part else []
    words += ["timed"] if part.get("timed") else []
    return "; ".join(words)


def _source(entry: "Entry") -> str:
    """Return the paragraph of a file's docstring that begins with "Source:", on one line."""
    docstring = ast.get_docstring(ast.parse(entry.path.read_bytes())) or ""
    paragraphs = (" ".join(paragraph.split()) for paragraph in docstring.split("\n\n"))
    return next((p.removeprefix("Source:").strip() for p in paragraphs if p.startswith("Source:")), "")


def _print_lines(
    entries: Sequence[Mapping[str, Any]], headings: Mapping[tuple[Any, ...], str], columns: Sequence[str]
) -> None:
    """Print a line an entry, cut to the width of the terminal, under a heading for each value of the columns."""
    from rich.console import Console
    from rich.text import Text

    console = Console()
    dots = "..." if console.options.ascii_only else "…"
    width = max(len(entry["name"]) for entry in entries) + 2
    for values, heading in headings.items():
        console.print(Text(heading, style="bold"))
        for entry in entries:
            if tuple(entry[column] for column in columns) == values:
                line = f"{entry['name']:<{width}}{entry['description']}"
                cut = f"{line[: console.width - len(dots)]}{dots}" if len(line) > console.width else line
                console.print(Text(cut), soft_wrap=True)


def _print(entries: Sequence[Mapping[str, Any]], details: Sequence[str], as_json: bool) -> None:
    """Print entries as JSON Lines, or for people: name and description, the details indented under them."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    if as_json:
        for entry in entries:
            print_json(entry)
        return
    console = Console()
    width = max(len(entry["name"]) for entry in entries) + 2
    for entry in entries:
        grid = Table.grid()
        grid.add_column(width=width)
        grid.add_column(overflow="fold")
        grid.add_row(Text(entry["name"], style="bold"), Text(str(entry["description"])))
        for detail in details:
            if detail not in entry:
                continue
            value = entry[detail]
            if detail == "parts":
                for number, part in enumerate(value, 1):
                    grid.add_row("", Text(f"{number}. {part}", style="dim"))
                continue
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            grid.add_row("", Text(f"{detail}: {text}", style="dim"))
        console.print(Padding(grid, (0, 0, 1 if details else 0, 0)))
