"""`textbench show`: one finished run in detail."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textbench.evaluation.metrics.calibration import CALIBRATED_BY
from textbench.flows.cli.output import print_json
from textbench.flows.cli.take import DataSet, OfProtocol, RunName, take_run
from textbench.flows.tables.table import Table, of_texts
from textbench.flows.tables.terminal import print_table
from textbench.tasks import InputError
from textbench.tasks.sources.user_source import named

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from textbench.flows.results.runs import Run


def show(
    run: RunName,
    dataset: DataSet = None,
    protocol: OfProtocol = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Show a finished run: settings, metrics, each with the best it could be, costs, classes, data audit and recipe.

    Example: textbench show best -d r8
    """
    from textbench.flows.results.runs import Run
    from textbench.flows.run.workspace import home_folder

    home = home_folder()
    found = Run(home, take_run(home, run, dataset, protocol))
    about = describe(found)
    if json:
        print_json(about)
        return
    from rich.console import Console

    _render(Console(), about)


def describe(run: "Run") -> dict[str, Any]:
    """Return all that is known of a run as JSON values; what is not in the store is None, `note` says why."""
    from textbench.flows.results.calibrated import calibration
    from textbench.flows.results.doubt import intervals
    from textbench.flows.results.leakage import costs
    from textbench.flows.results.runs import read_audit

    row = run.row
    about: dict[str, Any] = dict(row) | {
        "per_class": None,
        "audit": None,
        "costs": None,
        "recipe": None,
        "predictions": None,
        "zero_rows": None,
        "calibration": None,
        "intervals": intervals(run.home, row),
        "data": None,
        "mlflow": _mlflow(run.home, row),
        "note": None,
    }
    try:
        result = run.open("result")
        about |= {
            "per_class": result.json("per_class"),
            "predictions": str(result.folder / "predictions.parquet"),
            "recipe": _recipe(run, result.meta),
            "audit": read_audit(run),
            "costs": costs(run),
            "zero_rows": run.zero_rows,
            "calibration": calibration(run),
            "data": _data(run),
        }
    except InputError as error:
        about["note"] = str(error)
    return about


def _data(run: "Run") -> dict[str, Any]:
    """Return what is known of the data set's edition, and how many training documents are there for tuning alone."""
    corpus = run.open("corpus").json("corpus")
    return {"notes": corpus.get("notes", ""), "n_validation": corpus.get("n_validation", 0)}


def _recipe(run: "Run", meta: Mapping[str, Any]) -> dict[str, Any]:
    recipe = meta["recipe"]
    return {
        "keys": {name: reference.key for name, reference in run.reference.inputs.items()}
        | {"result": meta["key"]},
        "token_rule": recipe["inputs"]["vectors"]["params"]["rule"],
        "transductive": recipe["inputs"]["vectors"]["params"]["transductive"],
        "code": recipe["code"],
        "libraries": recipe["libraries"],
        "created": meta["created"],
        "host": meta["host"],
    }


def _mlflow(home: "Path", row: Mapping[str, Any]) -> str | None:
    """Return the address of the run's MLflow page if that is up, else the command that opens it; None without a run."""
    from textbench.flows.run import mlflow_views
    from textbench.tasks.tracking.tracker import NONE

    if row["tracking_uri"] == NONE:
        return None
    if page := mlflow_views.address_of(home, row["tracking_uri"], row["run_id"]):
        return page
    return f"mlflow ui --backend-store-uri {row['tracking_uri']}"


def _render(console: "Console", about: Mapping[str, Any]) -> None:
    from rich.text import Text

    from textbench.flows.results.calibrated import shown
    from textbench.flows.results.leakage import audit_in_words, in_words
    from textbench.flows.results.method_names import (
        MEANING,
        MEANINGS,
        PRETRAINED,
        SUPERVISED,
        is_pretrained,
        marked,
        uses_labels,
    )
    from textbench.flows.results.runs import labels_in_words

    console.print(Text(f"{about['dataset']} {marked(about)}", style="bold"))
    tuned = f"best of {about['trials']} settings" if about["trials"] else "default settings"
    probe = f", probe {about['probe']}" if about["probe"] else ""  # a classifier needs none
    fields = {
        "protocol": f"{about['protocol']}, seed {about['seed']}, {tuned}{probe}",
        "settings": ", ".join(f"{name} = {value}" for name, value in about["params"].items()) or "defaults",
        "seconds": _seconds(about["seconds"]),
        "peak memory": "-" if about["peak_mb"] is None else f"{about['peak_mb']:.0f} MB",
    }
    if uses_labels(about):
        fields[SUPERVISED] = MEANING
    if is_pretrained(about["method"]):
        fields[PRETRAINED] = MEANINGS[PRETRAINED]
    if unread := about.get("unread"):
        cut, lost = (f"{100 * unread[name]:.0f} %" for name in ("documents", "tokens"))
        fields["not read"] = f"the ends of {cut} of the documents, {lost} of all tokens"
    if sent := about.get("sent"):
        fields["sent"] = f"{sent['texts']:,} texts, {sent['tokens']:,} tokens by its count, to {sent['to']}"
    if labels := labels_in_words(about):
        fields["labels"] = labels
    if about["data"]:
        fields["data"] = about["data"]["notes"]
        if n_validation := about["data"]["n_validation"]:
            fields["tuned on"] = (
                f"{n_validation:,} validation documents; what is tested learned from training and validation documents"
            )
    if about["zero_rows"]:
        zero = about["zero_rows"]
        fields["no features"] = f"{zero['train']:,} training and {zero['test']:,} test documents"
    if about["on_border"]:
        fields["on the border"] = f"{', '.join(about['on_border'])}: a wider search might find better"
    if about["calibration"]:
        fields["calibration"] = (
            f"{shown(about['calibration'])} (probabilities by {CALIBRATED_BY}, out of fold)"
        )
    _print_fields(console, fields)
    for table in [_metrics(about), *([_classes(about["per_class"])] if about["per_class"] else [])]:
        console.print()
        print_table(console, table)
    if about["audit"]:
        _print_heading(console, f"Audit of {about['dataset']}")
        lines = audit_in_words(about["audit"]) + in_words(
            about["costs"], about["metrics"].get("accuracy", 0.0)
        )
        for line in lines:
            console.print(Text(f"- {line}"))
    _print_recipe(console, about)


def _seconds(seconds: Mapping[str, float]) -> str:
    stages = ", ".join(f"{stage} {value:.1f}" for stage, value in seconds.items())
    return f"{sum(seconds.values()):.1f} ({stages})" if stages else "-"


def _print_heading(console: "Console", text: str) -> None:
    from rich.text import Text

    console.print()
    console.print(Text(text, style="bold"))


def _print_fields(console: "Console", fields: Mapping[str, str]) -> None:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for name, value in fields.items():
        grid.add_row(Text(name, style="dim"), Text(value, overflow="fold"))
    console.print(grid)


def _metrics(about: Mapping[str, Any]) -> Table:
    from textbench.flows.results.half_widths import is_told

    ceilings = (about["audit"] or {}).get("ceilings", {})
    halves = about["intervals"]
    of_documents = {name: half for name, half in halves["documents"].items() if is_told(half)}
    columns = [about["metrics"], of_documents, halves["seeds"], ceilings]
    rows = [
        [name, *(_figure(name, of[name]) if name in of else "-" for of in columns)]
        for name in about["metrics"]
    ]
    n_seeds = halves["n_seeds"]
    over = (
        f"of the mean over {n_seeds} seeds (Student t), where it has one"
        if n_seeds > 1
        else "one seed has none"
    )
    note = (
        f"± half the 95 % interval: of this run over test documents, where they are kept one by one; {over}."
    )
    headings = ("metric", "value", "± documents", "± seeds", "ceiling")
    return of_texts("Metrics, in percent (coverage_error in labels)", headings, rows, note)


def _figure(name: str, value: float) -> str:
    from textbench.flows.results.metric_names import places, scale

    return f"{scale(name) * value:.{places(name)}f}"


def _classes(classes: Sequence[Mapping[str, Any]]) -> Table:
    rates = ("precision", "recall", "f1")
    rows = [
        [named(row["class"]), *(f"{100 * row[rate]:.2f}" for rate in rates), str(row["support"])]
        for row in classes
    ]
    return of_texts("Classes, in percent", ("class", "precision", "recall", "F1", "documents"), rows)


def _rule(rule: Mapping[str, Any] | None) -> str:
    if rule is None:
        return "none: the method reads raw texts"
    return ", ".join(f"{name} = {value}" for name, value in rule.items())


def _print_recipe(console: "Console", about: Mapping[str, Any]) -> None:
    from textbench.flows.results.runs import is_whole

    _print_heading(console, "Recipe")
    fields = {"key": about["key"]}
    if about["mlflow"]:
        waits = "waits to be sent: textbench send" if is_whole(about) else "none"
        fields |= {"MLflow run": about["run_id"] or waits, "MLflow page": about["mlflow"]}
    if about["predictions"]:
        fields["predictions"] = about["predictions"]
    recipe = about["recipe"]
    if recipe:
        created = datetime.fromtimestamp(recipe["created"]).astimezone().isoformat(" ", "seconds")
        fields |= {
            "made": f"{created} on {recipe['host']}",
            "libraries": ", ".join(f"{name} {version}" for name, version in recipe["libraries"].items()),
            "token rule": _rule(recipe["token_rule"]),
            "code": recipe["code"],
            **{f"{name} key": key for name, key in recipe["keys"].items() if name != "result"},
        }
    if about["note"]:
        fields["note"] = about["note"]
    _print_fields(console, fields)
