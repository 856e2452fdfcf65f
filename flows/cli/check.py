"""`textbench check`: hold a method to the contract that every method keeps."""

import contextlib
import sys
from typing import Annotated

import typer

from textbench.tasks import InputError, catalogue


def check(
    method: Annotated[
        str, typer.Argument(help="A Python file, or a name; parameters as in `textbench run`.")
    ],
) -> None:
    """Check a method against the contract: shapes, determinism, export, labels, refusals, on made documents.

    Prints a line for each promise, with what was expected and received where it is broken; exit code 1 if one is.

    Example: textbench check my_method.py
    """
    from textbench.flows.plan.checks import check_file, check_parameters
    from textbench.tasks import method_files

    name, params = catalogue.parse_method(method)
    entry = catalogue.method(name)
    if entry.is_own:
        check_file(entry)
    check_parameters(entry, params)
    if entry.is_own:
        method_files.check(str(entry.path))
    if not _is_kept(entry, params):
        raise typer.Exit(1)


def _is_kept(entry: catalogue.Entry, params: dict[str, object]) -> bool:
    """Print a line for each promise; return whether all are kept."""
    import warnings

    from textbench.featurizers._contract import Broken, Subject, run_checks
    from textbench.tasks.method_files import describe

    module = entry.load()
    if not hasattr(module, "SEARCH_SPACE"):
        raise InputError(f"{entry.path} has no SEARCH_SPACE; one without parameters to search has {{}}")
    n_broken = n_checks = 0
    output = sys.stdout
    # What a method prints is not what was asked for.
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")
        for said, found in run_checks(Subject(module, params)):
            if isinstance(found, str):
                print(f"none  {said}\n      nothing to try: {found}", file=output)
                continue
            n_checks += 1
            n_broken += found is not None
            print(f"{'pass' if found is None else 'FAIL'}  {said}", file=output)
            if found is not None:
                reason = str(found) if isinstance(found, Broken) else describe(found, str(entry.path))
                print(f"      {reason}", file=output)
    print(f"{entry.name} keeps {n_checks - n_broken} of {n_checks} promises of the contract")
    return n_broken == 0
