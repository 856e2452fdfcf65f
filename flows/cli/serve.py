"""`textbench serve`: a model behind HTTP on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from textbench.flows.cli.options import AllowUpload, Endpoint
from textbench.flows.cli.output import print_json
from textbench.flows.cli.take import DataSet, OfProtocol, take_run
from textbench.tasks import InputError


def serve(
    model: Annotated[
        str, typer.Argument(metavar="FILE|RUN", help="A file of `textbench export`, or a finished run.")
    ],
    dataset: DataSet = None,
    protocol: OfProtocol = None,
    port: Annotated[
        int, typer.Option(help="Port of 127.0.0.1; 0 takes a free one.", min=0, max=65535)
    ] = 8710,
    method: Annotated[
        str | None,
        typer.Option(
            help="The Python file of the model's method, if that was not one of ours.", show_default=False
        ),
    ] = None,
    allow_upload: AllowUpload = False,
    endpoint: Endpoint = None,
    json: Annotated[bool, typer.Option("--json", help="Say where it is as one line of JSON.")] = False,
) -> None:
    """Answer HTTP requests with a model, on this machine alone, until Ctrl-C; nothing of a request is kept.

    POST /predict takes a JSON list of texts; the answer has a label, a margin and a value for each class of each text,
    with the bits of `textbench transform` for as many texts.

    Example: textbench serve r8-tfidf.npz
    """
    from dataclasses import replace

    from textbench.flows.explain.answering import answered
    from textbench.flows.explain.export import Model
    from textbench.flows.results.runs import Run
    from textbench.flows.run.workspace import home_folder
    from textbench.flows.servers import model_server

    if Path(model).suffix == ".npz":
        loaded = Model.load(Path(model))
    else:
        home = home_folder()
        loaded = Model.from_run(Run(home, take_run(home, model, dataset, protocol)))
    loaded = replace(loaded, method_file=method, endpoint=endpoint)
    answered(loaded, [["a first text, so that no request waits for what it takes to load"]])
    run = loaded.manifest["run"]
    about = {"model": f"{run['dataset']} {loaded.manifest['method']} seed {run['seed']}"}
    about |= {"cell": loaded.manifest["cell"], "classes": loaded.manifest["target_names"]}

    def ready(found: int) -> None:
        address = f"http://{model_server.HOST}:{found}"
        if json:
            print_json({"address": address} | about)
            return
        print(f"Serving {about['model']} at {address}; Ctrl-C ends it.")
        print(
            f"""Try: curl {address}/predict -H 'Content-Type: application/json' -d '["a text"]'""", flush=True
        )

    try:
        model_server.serve(loaded, about, port, ready)
    except OSError as error:
        raise InputError(
            f"port {port} cannot be used ({error.strerror}); give another with --port"
        ) from error
