"""`textbench fetch`: see that the data sets are there and are what they should be."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textbench.flows.cli.output import print_json

if TYPE_CHECKING:
    from textbench.tasks.catalogue import Entry


def fetch(
    datasets: Annotated[
        list[str] | None,
        typer.Argument(metavar="DATASET", help="Data sets.", show_default="all"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON Lines, one object a data set.")] = False,
) -> None:
    """Load data sets, downloading what is not here yet; say their source and licence and check their sha256.

    Exit code 2 if one cannot be had; its line says what to do.

    Example: textbench fetch r8 r52
    """
    from textbench.tasks import catalogue

    names = list(dict.fromkeys(datasets or catalogue.datasets()))
    entries = [catalogue.dataset(name) for name in names]
    is_complete = True
    for number, entry in enumerate(entries, start=1):
        if sys.stderr.isatty():  # a download shows its own bar under this line
            print(f"{entry.name} ({number} of {len(entries)}) ...", file=sys.stderr)
        result = _load(entry)
        is_complete = is_complete and result["error"] is None
        _report(result, json)
    if not is_complete:
        raise typer.Exit(2)


def _load(entry: "Entry") -> dict[str, Any]:
    from textbench.tasks import InputError

    module = entry.load()
    about = {
        "dataset": entry.name,
        "source": module.SOURCE,
        "licence": module.LICENCE,
        "sha256": module.SHA256,
    }
    try:
        corpus = module.load()
    except (InputError, OSError) as error:
        return about | {"train": None, "test": None, "classes": None, "error": " ".join(str(error).split())}
    return about | {
        "train": len(corpus.train_texts),
        "test": len(corpus.test_texts),
        "classes": len(corpus.target_names),
        "error": None,
    }


def _report(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(result)
    elif result["error"]:
        print(f"{result['dataset']}: missing: {result['error']}", file=sys.stderr)
    else:
        sizes = (
            f"{result['train']:,} training and {result['test']:,} test documents, {result['classes']} classes"
        )
        print(f"{result['dataset']}: {sizes}; sha256 as recorded")
        print(f"    from {result['source']}\n    licence: {result['licence']}", flush=True)
