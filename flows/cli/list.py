"""`textbench list`: the data sets, methods, metrics, suites, collections and rankers there are."""

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tasks.catalogue import Entry

list_app = typer.Typer(
    help="List data sets, methods, metrics, suites, collections or rankers.", no_args_is_help=True
)
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON Lines, one object an entry, and nothing else.")
]


@list_app.command("datasets")
def list_datasets(json: Json = False) -> None:
    """List the data sets with their source, licence and token rule.

    Example: textbench list datasets --json
    """
    from tasks import catalogue

    _print(list(map(_data, catalogue.datasets().values())), ("licence", "source"), json)


@list_app.command("methods")
def list_methods(json: Json = False) -> None:
    """List the methods with what they read (counts or tokens), whether seeds matter, and their reference.

    A file of your own works like one of these: textbench run -m my_method.py

    Example: textbench list methods
    """
    from tasks import catalogue

    entries = [
        {
            "name": name,
            "description": entry.description,
            "input": entry.constant("INPUT", "counts"),
            "role": entry.constant("ROLE", "representation"),
            "seeded": entry.is_seeded,
            "source": _source(entry),
        }
        for name, entry in catalogue.methods().items()
    ]
    _print(entries, ("role", "input", "source"), json)


@list_app.command("metrics")
def list_metrics(json: Json = False) -> None:
    """List the metrics, what they say, which way is better, and whether they are for one label a document or several.

    Example: textbench leaderboard --metric map
    """
    from evaluation.metrics import METRICS
    from evaluation.multilabel import MULTILABEL_METRICS

    entries = [
        {
            "name": name,
            "description": metric.description,
            "labels": labels,
            "needs": metric.needs,
            "higher_is_better": metric.higher_is_better,
        }
        for labels, metrics in (("one", METRICS), ("several", MULTILABEL_METRICS))
        for name, metric in metrics.items()
    ]
    _print(entries, ("labels",), json)


@list_app.command("suites")
def list_suites(json: Json = False) -> None:
    """List the suites: what `textbench run SUITE` runs.

    Example: textbench run quick
    """
    from flows.suites import read_suite, suites

    _print(
        [{"name": name} | read_suite(name) for name in suites()],
        ("datasets", "methods", "seeds", "trials", "parts"),
        json,
    )


@list_app.command("collections")
def list_collections(json: Json = False) -> None:
    """List the collections with judged queries, with their source, licence and token rule.

    Your own, and those of ir_datasets, work like one of these: textbench retrieve --help

    Example: textbench retrieve -c cranfield
    """
    from tasks import catalogue

    _print(list(map(_data, catalogue.collections().values())), ("licence", "source"), json)


@list_app.command("rankers")
def list_rankers(json: Json = False) -> None:
    """List the rankers and their references; METHOD is any representation of `textbench list methods`.

    Example: textbench retrieve -c cacm -m bm25 -m lsi -m lm+scdv
    """
    from tasks import rankers

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


def _data(entry: "Entry") -> dict[str, Any]:
    """Return what a data set's or collection's file says of it."""
    module = entry.load()
    return {
        "name": entry.name,
        "description": entry.description,
        "licence": module.LICENCE,
        "source": module.SOURCE,
        "citation": module.CITATION,
        "token_rule": module.RULE,
        "sha256": module.SHA256,
    }


def _source(entry: "Entry") -> str:
    """Return the paragraph of a file's docstring that begins with "Source:", on one line."""
    docstring = ast.get_docstring(ast.parse(entry.path.read_bytes())) or ""
    paragraphs = (" ".join(paragraph.split()) for paragraph in docstring.split("\n\n"))
    return next((p.removeprefix("Source:").strip() for p in paragraphs if p.startswith("Source:")), "")


def _print(entries: Sequence[Mapping[str, Any]], details: Sequence[str], as_json: bool) -> None:
    """Print entries as JSON Lines, or for people: name and description, the details indented under them."""
    import json

    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    if as_json:
        for entry in entries:
            print(json.dumps(entry, ensure_ascii=False))
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
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            grid.add_row("", Text(f"{detail}: {text}", style="dim"))
        console.print(Padding(grid, (0, 0, 1 if details else 0, 0)))
