"""Methods as tables name them: a representation that was fitted to labels is marked."""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from textbench.tasks import InputError, catalogue

SUPERVISED = "+"
MEANING = "fitted to the labels of training documents too"


def uses_labels(row: Mapping[str, Any]) -> bool:
    """Tell whether the representation of a row's method was fitted to labels.

    A row that does not say so goes by its method's file, if that is one of ours.
    """
    said = row.get("uses_labels")
    if said is not None:
        return bool(said)
    with contextlib.suppress(InputError):
        name, params = catalogue.parse_method(row["method"])
        if (entry := catalogue.methods().get(name)) is not None:
            return entry.uses_labels(params)
    return False


def marked(row: Mapping[str, Any]) -> str:
    """Return a row's method, with a mark if it was fitted to labels."""
    return row["method"] + SUPERVISED * uses_labels(row)


def explained(labels: Iterable[str]) -> str:
    """Return the sentence that says what the mark means, after a space; "" where none of these labels has it.

    A label is a method, its mark, and after a space what else tells it apart.
    """
    is_marked = any(f"{SUPERVISED} " in f"{label} " for label in labels)
    return f" {SUPERVISED} {MEANING}." if is_marked else ""
