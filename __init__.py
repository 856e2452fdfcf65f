"""textbench: a benchmark platform for text representations, from Python.

    import textbench as tb

    found = tb.run("r8", ["tfidf", "lsi", "nb"], seeds=3)
    found.verdict                      # what is best, and what is tied with it
    found.table()                      # a pandas DataFrame

The functions are those of the commands of the same names (`textbench.flows.cli.api`), imported when the first of them
is used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textbench.flows.cli.api import (
        InputError,
        claims,
        compare,
        curve,
        datasets,
        ensemble,
        errors,
        load_dataset,
        load_model,
        method,
        methods,
        report,
        retrieve,
        run,
    )

__all__ = [
    "InputError",
    "claims",
    "compare",
    "curve",
    "datasets",
    "ensemble",
    "errors",
    "load_dataset",
    "load_model",
    "method",
    "methods",
    "report",
    "retrieve",
    "run",
]


def __getattr__(name: str) -> Any:
    import importlib
    import sys

    if name not in __all__:
        raise AttributeError(f"textbench has no {name!r}", name=name, obj=sys.modules[__name__])
    return getattr(importlib.import_module("textbench.flows.cli.api"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
