"""`textbench export`: a run's fitted representation and probe as one file."""

from pathlib import Path
from typing import Annotated

import typer

from textbench.flows.cli.output import check_file, print_json
from textbench.flows.cli.take import DataSet, OfProtocol, RunName, take_run


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
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Write a run's fitted method and classifier to one .npz file, for `textbench transform`.

    The file holds arrays and a manifest.json, no pickle; it does not need the results folder any more.

    Example: textbench export tfidf -d r8 -o r8-tfidf.npz
    """
    from textbench.flows.explain.export import Model
    from textbench.flows.results.runs import Run
    from textbench.flows.run.workspace import home_folder
    from textbench.tasks.storage.isolate import CellError

    home = home_folder()
    row = take_run(home, run, dataset, protocol)
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
        print(f"Wrote {path} ({size / 1e6:.1f} MB): {row['dataset']} {row['method']} seed {row['seed']}.")
        if refit:
            print("Trained on all documents: none are left to measure its accuracy on.")
        print(f"Use it with: textbench transform {path} TEXTS.csv")
