"""`textbench export`: a run's fitted representation and probe as one file."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from textbench.flows.cli.output import check_file, print_json
from textbench.flows.cli.take import DataSet, OfProtocol, RunName, take_run
from textbench.tasks import InputError


def export(
    run: RunName,
    dataset: DataSet = None,
    protocol: OfProtocol = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="The file to write, .npz.", show_default="DATASET-METHOD.npz"),
    ] = None,
    refit: Annotated[
        bool,
        typer.Option(
            "--refit",
            help="Train on all documents, training and test, with the run's settings; its accuracy is not measured.",
        ),
    ] = False,
    mlflow: Annotated[
        bool,
        typer.Option("--mlflow", help="Log it to its MLflow run and register it, instead of writing a file."),
    ] = False,
    name: Annotated[
        str | None,
        typer.Option(help="With --mlflow: the registered model's name.", show_default="the data set"),
    ] = None,
    alias: Annotated[
        str, typer.Option(help="With --mlflow: what the better one gets, by a paired test.")
    ] = "champion",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Write a run's fitted method and classifier to one .npz file, for `textbench transform`.

    The file holds arrays and a manifest.json, no pickle; it does not need the results folder any more.

    With --mlflow it becomes a version of a registered model, which takes the alias only where a paired test says that
    it is better than the one that has it; mlflow models serve -m models:/NAME@champion answers with it.

    Example: textbench export tfidf -d r8 -o r8-tfidf.npz
    """
    from textbench.flows.explain.export import Model
    from textbench.flows.results.runs import Run, in_words
    from textbench.flows.run.workspace import home_folder
    from textbench.tasks.storage.isolate import CellError

    home = home_folder()
    row = take_run(home, run, dataset, protocol)
    if mlflow:
        _register(home, row, name, alias, is_file=out is not None or refit, as_json=json)
        return
    path = out or Path(f"{row['dataset']}-{row['method']}.npz")
    check_file("--out", path, [".npz"])
    try:
        model = Model.from_run(Run(home, row), refit=refit)
    except CellError as error:
        typer.echo(f"textbench: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(1) from error
    model.save(path)
    size = path.stat().st_size
    if json:
        print_json({"file": str(path), "bytes": size, "cell": row["key"], "refit": refit})
    else:
        print(f"Wrote {path} ({size / 1e6:.1f} MB): {in_words(row)}.")
        if refit:
            print("Trained on all documents: none are left to measure its accuracy on.")
        print(f"Use it with: textbench transform {path} TEXTS.csv")


def _register(
    home: Path, row: dict[str, Any], name: str | None, alias: str, *, is_file: bool, as_json: bool
) -> None:
    from dataclasses import asdict

    from textbench.flows.explain import registry
    from textbench.flows.explain.export import Model
    from textbench.flows.results.runs import Run, in_words
    from textbench.tasks.tracking.tracker import read_settings

    if is_file:
        raise InputError("--mlflow registers a run as it was measured: leave out --out and --refit")
    registry.check_name(name or row["dataset"], alias)
    found = registry.register(home, row, Model.from_run(Run(home, row)), name or row["dataset"], alias)
    if as_json:
        print_json(asdict(found))
        return
    print(f"Registered {found.name} version {found.version}: {in_words(row)}. {found.said}")
    uri = read_settings(home).tracking_uri
    where = "..." if "@" in uri else shlex.quote(uri)  # an address with a password is not shown
    print(
        f"Serve the {alias} with: MLFLOW_TRACKING_URI={where} mlflow models serve -m {found.uri} --env-manager local"
    )
